"""Prepares prompts, from a validated request to token ids.

    request -normalise-> conversation -adapt, render-> text -end, split-> segments -tokenize-> prompt
                                                          `-build-> outline, grammar, reading

The same model, request and moment give the same tokens. Nothing here bounds time: a template may loop, so the
caller runs this in a process that can be killed.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable
from datetime import datetime

import msgspec

from b3node.config import Budgets
from b3node.contract.image import images
from b3node.contract.request import Request, TextPart
from b3node.errors import Refusal
from b3node.prompt.ending import PromptEnd, end_prompt
from b3node.prompt.formats import Formats, with_format
from b3node.prompt.outline import OutlineBuilder, may_call
from b3node.prompt.prepared import Prepared
from b3node.prompt.probe.capabilities import probe
from b3node.prompt.probe.dialect import Learned, learn, traits_of, with_tags
from b3node.prompt.template.capabilities import TemplateCapabilities
from b3node.prompt.template.chat_template import ChatTemplate, default_template
from b3node.prompt.template.conversation import Conversation, UserTurn, normalise
from b3node.prompt.template.reasoning_variables import enables_thinking, reasoning_variables
from b3node.prompt.template.render import render
from b3node.prompt.tokens.markers import MarkerIndex
from b3node.prompt.tokens.segments import split
from b3node.prompt.tokens.tokenize import Prompt, check_length, tokenize
from b3node.prompt.tokens.vocabulary import PromptVocabulary
from b3node.prompt.traits import Traits


class Preparer:
    """Prepares requests for one model; tables are made once, here.

    Args:
        vocabulary: the model's, with the chat templates of its file (see `default_template` for one without).
        n_ctx: tokens of the context that the model is served with.
        accepts: returns whether the model's runtime loads a grammar (see `Formats`).
        budgets: tokens of thinking for each effort.

    Raises:
        BrokenTemplateError: a template of the file cannot be used; the message is for the operator.
    """

    def __init__(
        self,
        vocabulary: PromptVocabulary,
        *,
        n_ctx: int,
        accepts: Callable[[str], bool] = bool,
        budgets: Budgets = Budgets(),  # noqa: B008 - a frozen value
    ) -> None:
        self._vocabulary = vocabulary
        self._n_ctx = n_ctx
        self._accepts, self._budgets = accepts, budgets
        self._formats = Formats(accepts)
        self._markers = MarkerIndex(vocabulary.specials)
        self._outlines = OutlineBuilder(vocabulary, self._markers, accepts, n_ctx, budgets)
        self._plain_writer = _template_writer(
            vocabulary.chat_template or default_template(vocabulary), vocabulary
        )
        tool_template = vocabulary.tool_template
        self._tool_writer = (
            _template_writer(tool_template, vocabulary) if tool_template else self._plain_writer
        )

    def with_context(self, n_ctx: int) -> Preparer:
        """Returns this preparer for a context of `n_ctx` tokens: itself, or a copy that shares its tables."""
        if n_ctx == self._n_ctx:
            return self
        other = copy.copy(self)
        other._n_ctx = n_ctx  # noqa: SLF001 - a copy of this very object
        outlines = OutlineBuilder(self._vocabulary, self._markers, self._accepts, n_ctx, self._budgets)
        other._outlines = outlines  # noqa: SLF001 - the same
        return other

    @property
    def has_template(self) -> bool:
        """Whether the model's file has a chat template."""
        return self._vocabulary.chat_template is not None

    @property
    def capabilities(self) -> TemplateCapabilities:
        """Capabilities of the template for requests with functions."""
        return self._tool_writer.capabilities

    @property
    def traits(self) -> Traits:
        """Traits of the model, by the template for requests with functions."""
        return traits_of(self.capabilities, self._tool_writer.learned, template=self.has_template)

    def prepare(self, request: Request, now: datetime) -> Prepared:
        """Returns a request's prompt, ready to be submitted.

        Args:
            request: decoded and validated, for this model.
            now: the moment for the template.

        Raises:
            Refusal: `context_length_exceeded` if the prompt leaves no room for an answer; `invalid_request`
                if it has images, if the template cannot write it, or if its schemas cannot be enforced.
        """
        answer = self._formats.grammar(request.text_format)
        writer = self._writer_of(request)
        prompt, end = self._compose(request, now)
        spec = self._outlines.build(request, writer.learned, end, answer, len(prompt.tokens))
        return Prepared(
            _little_endian(prompt.tokens),
            len(prompt.tokens),
            prompt.cache_boundaries,
            spec.grammar,
            spec.outline,
            spec.reading,
            spec.loosened,
        )

    def compose(self, request: Request, now: datetime) -> Prompt:
        """Returns a request's prompt as a `Prompt`, which a person can read. Raises as `prepare`."""
        return self._compose(request, now)[0]

    def _compose(self, request: Request, now: datetime) -> tuple[Prompt, PromptEnd]:
        """Returns a request's prompt and its end. Raises as `prepare`."""
        for path, _ in images(request.input):
            raise Refusal("invalid_request", "This model takes no images.", param=path)
        plain = normalise(request)
        check_length(_min_prompt_bytes(plain), self._vocabulary, self._n_ctx)
        extended = with_format(plain, request.text_format, self._n_ctx)
        try:
            return self._tokenized(extended, request, now)
        except Refusal as refusal:
            if extended is plain or refusal.code != "context_length_exceeded":
                raise
        return self._tokenized(plain, request, now)  # the client's own words fit: ours are left out

    def _tokenized(
        self, conversation: Conversation, request: Request, now: datetime
    ) -> tuple[Prompt, PromptEnd]:
        """Returns the prompt of a conversation and its end. Raises as `prepare`."""
        writer = self._writer_of(request)
        effort = reasoning_variables(request.effort, writer.template.source)
        limit = self._n_ctx * self._vocabulary.longest
        rendered = render(
            conversation,
            writer.template,
            writer.capabilities,
            effort,
            now,
            limit,
            writer.learned.calls,
            explain_calls=writer.learned.explain_calls,
        )
        forced = may_call(request) and request.tool_choice.mode != "auto"
        end = end_prompt(
            rendered,
            writer.learned,
            thinks=enables_thinking(request.effort),
            grammar=forced or request.text_format.type != "text",
            calls=forced,
        )
        prompt = tokenize(
            tuple(split(end.rendered, self._markers)), self._vocabulary, self._markers, self._n_ctx
        )
        if not prompt.tokens:
            raise Refusal(
                "invalid_request", "This model's chat template writes nothing for this input.", param="input"
            )
        return prompt, end

    def _writer_of(self, request: Request) -> _TemplateWriter:
        return self._tool_writer if request.tools else self._plain_writer


def _min_prompt_bytes(conversation: Conversation) -> int:
    """Returns the least bytes of a prompt: texts that no template drops."""
    texts = [conversation.system]
    for turn in conversation.turns:
        if isinstance(turn, UserTurn):
            texts += [part.text for part in turn.content if isinstance(part, TextPart)]
        else:
            texts.append(turn.text)
    return sum(len(text.strip()) for text in texts)


class _TemplateWriter(msgspec.Struct, frozen=True):
    """A template, its capabilities, and the findings about its model."""

    template: ChatTemplate
    """The compiled template."""
    capabilities: TemplateCapabilities
    """The constructs that it writes."""
    learned: Learned
    """The facts about the model that it shows."""


def _template_writer(source: str, vocabulary: PromptVocabulary) -> _TemplateWriter:
    texts = {special.id: special.text for special in vocabulary.specials}
    bos, eos = ("" if token is None else texts.get(token, "") for token in (vocabulary.bos, vocabulary.eos))
    template = ChatTemplate(source, bos=bos, eos=eos)
    capabilities = probe(template)
    learned = learn(template, capabilities)
    tags = {"<think>", "</think>"} <= set(texts.values())
    return _TemplateWriter(template, capabilities, with_tags(learned) if tags else learned)


def _little_endian(tokens: tuple[int, ...]) -> bytes:
    return struct.pack(f"<{len(tokens)}i", *tokens)
