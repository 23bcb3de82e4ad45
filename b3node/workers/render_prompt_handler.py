"""Renders the prompt of one request for `render_prompt`, in a child, with llama.cpp's vocabulary."""

from __future__ import annotations

from datetime import UTC, datetime

from b3node.errors import Refusal
from b3node.llama.grammar import Grammars
from b3node.llama.vocab import Vocabulary, VocabularyError
from b3node.prompt.prepare import Preparer
from b3node.prompt.template.chat_template import BrokenTemplateError
from b3node.prompt.tokens.tokenize import Prompt
from b3node.workers.messages import PrepareFailed, RequestRefused
from b3node.workers.render_prompt import RenderAnswer, RenderedPrompt, RenderedToken, RenderOrder


def answer(order: RenderOrder) -> RenderAnswer:
    """Returns the prompt, or the reason why there is none."""
    try:
        vocabulary = Vocabulary.load(order.path)
        runs = Grammars(vocabulary).runs
        preparer = Preparer(vocabulary, n_ctx=order.n_ctx, accepts=runs, budgets=order.thinking)
    except (VocabularyError, BrokenTemplateError) as error:
        return PrepareFailed(str(error))
    now = datetime.fromtimestamp(order.now, UTC)
    try:
        prepared = preparer.prepare(order.request, now)
        prompt = preparer.compose(order.request, now)
    except Refusal as refusal:
        return RequestRefused(refusal.code, refusal.message, refusal.param)
    return RenderedPrompt(_tokens(prompt, vocabulary), prompt.text, prepared, preparer.traits)


def _tokens(prompt: Prompt, vocabulary: Vocabulary) -> tuple[RenderedToken, ...]:
    """Returns the prompt's tokens; a special one with its text as bytes."""
    specials = {special.id: special.text for special in vocabulary.specials}
    return tuple(
        RenderedToken(token, specials[token].encode(), special=True)
        if token in specials
        else RenderedToken(token, vocabulary.pieces[token])
        for token in prompt.tokens
    )
