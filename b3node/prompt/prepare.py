"""The story of a prompt, from a validated request to token ids: what a prepare worker does.

    request -normalise-> conversation -fit, template-> rendered text -split-> segments -tokenize-> prompt

The same model, request and moment give the same tokens. Nothing here bounds time: a template may loop, so
whoever calls this does it in a process that can be killed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import datetime

import msgspec

from b3node.contract.image import images
from b3node.contract.request import Request, TextPart
from b3node.errors import Refusal
from b3node.prompt.abilities import Abilities, probe
from b3node.prompt.defaults import default_template
from b3node.prompt.effort import variables
from b3node.prompt.formats import Formats, with_format
from b3node.prompt.markers import Markers
from b3node.prompt.prepared import Prepared
from b3node.prompt.render import render
from b3node.prompt.segments import split
from b3node.prompt.template import ChatTemplate
from b3node.prompt.tokens import Prompt, check_length, tokenize
from b3node.prompt.turns import Conversation, UserTurn, normalise
from b3node.prompt.vocabulary import Vocabulary


class Preparer:
    """Prepares requests for one model; what can be made once is made here.

    Args:
        vocabulary: the model's, its file's chat templates among it (see `defaults` if it has none).
        n_ctx: tokens of the context that the model is served with.
        runs: whether the model's runtime takes a grammar (see `Formats`).

    Raises:
        BrokenTemplateError: a template of the file cannot be used; the message is for the operator.
    """

    def __init__(self, vocabulary: Vocabulary, *, n_ctx: int, runs: Callable[[str], bool] = bool) -> None:
        self._vocabulary = vocabulary
        self._n_ctx = n_ctx
        self._formats = Formats(runs)
        self._markers = Markers(vocabulary.specials)
        self._writer = _writer(vocabulary.chat_template or default_template(vocabulary), vocabulary)
        tool_template = vocabulary.tool_template
        self._tool_writer = _writer(tool_template, vocabulary) if tool_template else self._writer

    @property
    def has_template(self) -> bool:
        """Whether the model's file brought a chat template."""
        return self._vocabulary.chat_template is not None

    @property
    def able(self) -> Abilities:
        """What the template for requests with functions can write."""
        return self._tool_writer.able

    def prepare(self, request: Request, now: datetime) -> Prepared:
        """A request's prompt, ready to be submitted.

        Args:
            request: decoded and validated, for this model.
            now: the moment that the template is told.

        Raises:
            Refusal: `context_length_exceeded` if the prompt leaves no room for an answer; `invalid_request`
                if it has images, if the template cannot write it, or if its schema cannot be enforced.
        """
        grammar = self._formats.grammar(request.text_format)
        prompt = self.compose(request, now)
        return Prepared(_little_endian(prompt.tokens), len(prompt.tokens), prompt.marks, grammar)

    def compose(self, request: Request, now: datetime) -> Prompt:
        """Like `prepare`, but as a `Prompt`, which a person can read."""
        for path, _ in images(request.input):
            raise Refusal("invalid_request", "This model takes no images.", param=path)
        plain = normalise(request)
        check_length(_least_length(plain), self._vocabulary, self._n_ctx)
        told = with_format(plain, request.text_format, self._n_ctx)
        try:
            return self._written(told, request, now)
        except Refusal as refusal:
            if told is plain or refusal.code != "context_length_exceeded":
                raise
        return self._written(plain, request, now)  # the client's own words fit: ours are left out

    def _written(self, conversation: Conversation, request: Request, now: datetime) -> Prompt:
        """A conversation as tokens. Raises what `prepare` does."""
        writer = self._tool_writer if conversation.tools else self._writer
        effort = variables(request.effort, writer.template.source)
        limit = self._n_ctx * self._vocabulary.longest
        rendered = render(conversation, writer.template, writer.able, effort, now, limit)
        prompt = tokenize(tuple(split(rendered, self._markers)), self._vocabulary, self._markers, self._n_ctx)
        if not prompt.tokens:
            raise Refusal(
                "invalid_request", "This model's chat template writes nothing for this input.", param="input"
            )
        return prompt


def _least_length(conversation: Conversation) -> int:
    """Bytes that a prompt must have at least, because no template drops them: not white space, not thoughts."""
    texts = [conversation.system]
    for turn in conversation.turns:
        if isinstance(turn, UserTurn):
            texts += [part.text for part in turn.content if isinstance(part, TextPart)]
        else:
            texts.append(turn.text)
    return sum(len(text.strip()) for text in texts)


class _Writer(msgspec.Struct, frozen=True):
    """A template and what it can write."""

    template: ChatTemplate
    able: Abilities


def _writer(source: str, vocabulary: Vocabulary) -> _Writer:
    texts = {special.id: special.text for special in vocabulary.specials}
    bos, eos = ("" if token is None else texts.get(token, "") for token in (vocabulary.bos, vocabulary.eos))
    template = ChatTemplate(source, bos=bos, eos=eos)
    return _Writer(template, probe(template))


def _little_endian(tokens: tuple[int, ...]) -> bytes:
    return struct.pack(f"<{len(tokens)}i", *tokens)
