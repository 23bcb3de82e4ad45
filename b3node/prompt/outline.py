"""Builds the outline of one answer: its reading, its grammar, and where the grammar applies.

A request asks for calls, for an answer of some form, for reasoning, or for none of these, and a dialect has
markers for some of them. Both together give an `AnswerSpec`; a plain answer in a plain dialect needs none.
"""

from __future__ import annotations

import struct
from collections import ChainMap
from collections.abc import Callable, Iterator, MutableMapping
from typing import Final

import msgspec
from msgspec.structs import replace

from b3node.config import Budgets
from b3node.contract.request import Effort, Request
from b3node.dialects.dialect import PLAIN, Calls, Dialect, Hole, NamedBody, Pattern
from b3node.dialects.outline import Outline, Reading, Thinking
from b3node.errors import Refusal
from b3node.grammar import LIMITS, CallGrammar, Loose, SchemaLimits, SpecialTokens, TextAnswer, calls_gbnf
from b3node.grammar.calls.answer import answer_gbnf
from b3node.lru import LruCache
from b3node.parse.markers import marked
from b3node.prompt.ending import PromptEnd
from b3node.prompt.probe.dialect import Learned
from b3node.prompt.probe.thinking_format import ThinkingFormat
from b3node.prompt.template.reasoning_variables import enables_thinking
from b3node.prompt.tokens.markers import MarkerIndex
from b3node.prompt.tokens.segments import ControlSegment, split
from b3node.prompt.tokens.vocabulary import PromptVocabulary, Special

ANSWER_DIVISOR: Final = 4
"""Thinking leaves at least one in this many of the remaining tokens to the answer."""
_LIMIT_DIVISORS: Final = (1, 4, 16, 64)
"""Divisors of the bounds, tried in turn when a runtime does not load a grammar: with each, the largest
functions may be called with any arguments. A grammar within smaller bounds is not cached for other requests.
"""
_UNBOUNDED_TOKENS: Final = (1 << 31) - 1


class AnswerSpec(msgspec.Struct, frozen=True):
    """The constraints of one answer, as `Prepared` has them under the same names."""

    reading: Reading = Reading()
    """How the answer is read."""
    outline: Outline | None = None
    """When the grammar holds, and how thinking is bounded; None if neither is needed."""
    grammar: str | None = None
    """The GBNF text that the answer must keep to, or None."""
    loosened: tuple[str, ...] = ()
    """The parts of the functions' schemas that the grammar does not enforce."""


class OutlineBuilder:
    """Builds outlines of answers for one vocabulary.

    Args:
        vocabulary: the model's.
        markers: its markers.
        accepts: returns whether the model's runtime loads a grammar; called once for each compiled one.
        n_ctx: tokens of the context.
        budgets: tokens of thinking for each effort.
    """

    def __init__(
        self,
        vocabulary: PromptVocabulary,
        markers: MarkerIndex,
        accepts: Callable[[str], bool],
        n_ctx: int,
        budgets: Budgets,
    ) -> None:
        self._vocabulary = vocabulary
        self._markers = markers
        self._accepts = accepts
        self._n_ctx = n_ctx
        self._budgets = budgets
        self._ends = [special.text for special in vocabulary.specials if special.id in vocabulary.eog]
        self._function_grammars: LruCache[bytes, Loose] = LruCache(
            lambda key, loose: len(key) + len(loose.gbnf)
        )
        self._call_grammars: LruCache[bytes, CallGrammar] = LruCache(
            lambda key, found: len(key) + len(found.grammar)
        )

    def build(
        self, request: Request, learned: Learned, end: PromptEnd, answer: str | None, prompt_tokens: int
    ) -> AnswerSpec:
        """Returns the outline of the answer to a request.

        Args:
            request: the request.
            learned: the findings about the template that wrote the prompt.
            end: the end of the prompt.
            answer: the grammar of the answer's text, None for free text.
            prompt_tokens: tokens of the prompt.

        Raises:
            Refusal: `invalid_request` at `tools[i].parameters` or `text.format.schema`, see
                `grammar.calls_gbnf`; at `tools` if the grammar of all functions is too large for the model's
                runtime.
        """
        calling = may_call(request)
        dialect = learned.dialect if calling else replace(learned.dialect, calls=None, also=())
        if dialect == PLAIN:
            return AnswerSpec(grammar=answer)
        specials = self._specials(dialect)
        texts = tuple(special.text for special in specials)
        silent = calling and request.tool_choice.mode in {"required", "function"}
        reading = Reading(
            dialect, end.thinking, end.answering, calling, texts, marked(end.begun, texts), silent
        )
        thinks = learned.thinking is not None and (end.thinking or enables_thinking(request.effort))
        text = TextAnswer(answer, end.answering, end.begun, thinks)
        special_tokens = SpecialTokens({special.text: special.id for special in specials}, self._ends)
        found = self._grammar(request, dialect, text, special_tokens) if calling else None
        grammar = found.grammar if found else answer_gbnf(dialect, text, special_tokens) if answer else None
        triggered = found is not None and found.triggered
        held = grammar is not None and not triggered
        outline = Outline(
            reading,
            triggered,
            self._thinking(learned.thinking, request, prompt_tokens) if thinks or not held else None,
            tuple(special.id for special in specials),
            held,
        )
        return AnswerSpec(reading, outline, grammar, tuple(map(str, found.loosened)) if found else ())

    # ---------------------------------------------------------------------------------------- grammars

    def _grammar(
        self, request: Request, dialect: Dialect, answer: TextAnswer, special_tokens: SpecialTokens
    ) -> CallGrammar:
        """Returns the grammar of an answer that may call, cached for requests that ask for the same."""
        parallel = request.parallel_tool_calls and not (dialect.calls and dialect.calls.alone)
        key = msgspec.json.encode((dialect, request.tools, request.tool_choice, parallel, answer))
        if key not in self._call_grammars:

            def within(limits: SchemaLimits, known: MutableMapping[bytes, Loose]) -> CallGrammar:
                return calls_gbnf(
                    dialect,
                    request.tools,
                    request.tool_choice,
                    parallel=parallel,
                    answer=answer,
                    marks=special_tokens,
                    known=known,
                    limits=limits,
                )

            self._call_grammars[key] = self._largest_accepted(within)
        return self._call_grammars[key]

    def _largest_accepted(
        self, within: Callable[[SchemaLimits, MutableMapping[bytes, Loose]], CallGrammar]
    ) -> CallGrammar:
        """Returns the largest grammar of a request's calls that the model's runtime loads."""
        for divisor in _LIMIT_DIVISORS:
            known = (
                self._function_grammars
                if divisor == 1
                else ChainMap[bytes, Loose]({}, self._function_grammars)
            )
            try:
                found = within(_divided_limits(divisor), known)
            except Refusal:
                if divisor == 1:
                    raise
                break
            if self._accepts(found.grammar):
                return found
        raise Refusal(
            "invalid_request",
            "The functions cannot be called: their grammar is too large for the model's runtime.",
            param="tools",
        )

    # ---------------------------------------------------------------------------------------- thinking

    def _thinking(self, form: ThinkingFormat | None, request: Request, prompt_tokens: int) -> Thinking | None:
        """Returns the bound of thinking; thinking that was not asked for gets the smallest."""
        if form is None:
            return None
        closing = tuple(self._tokens(form.trail + form.span.close + form.after))
        room = self._n_ctx - prompt_tokens  # a smaller limit of the client cuts thinking, visibly
        max_tokens = max(0, room - room // ANSWER_DIVISOR - len(closing))
        budget = _budget(self._budgets, request.effort)
        return Thinking(
            _UNBOUNDED_TOKENS if budget is None else min(budget, max_tokens),
            struct.pack(f"<{len(closing)}i", *closing),
        )

    def _tokens(self, text: str) -> Iterator[int]:
        """Yields the tokens of a template's own words that follow other text."""
        for segment in split(text, self._markers):
            if isinstance(segment, ControlSegment):
                yield segment.id
            else:
                yield from self._vocabulary.tokenize(segment.text, continues=True)

    # ---------------------------------------------------------------------------------------- specials

    def _specials(self, dialect: Dialect) -> list[Special]:
        """Returns the special tokens in the dialect's markers, without ends of generation."""
        found: dict[int, Special] = {}
        for literal in literals(dialect):
            for _, special in self._markers.find(literal):
                if special.id not in self._vocabulary.eog:
                    found[special.id] = special
        return [found[number] for number in sorted(found)]


def may_call(request: Request) -> bool:
    """Returns whether the answer may call functions."""
    return bool(request.tools) and request.tool_choice.mode != "none"


def _divided_limits(divisor: int) -> SchemaLimits:
    """Returns the bounds of a printed grammar, divided."""
    return replace(
        LIMITS,
        grammar_bytes=LIMITS.grammar_bytes // divisor,
        printed_rules=LIMITS.printed_rules // divisor,
        repeats=LIMITS.repeats // divisor,
    )


def _budget(budgets: Budgets, effort: Effort | None) -> int | None:
    """Returns the tokens of thinking; None for no bound."""
    budget = getattr(budgets, effort or "low", budgets.low)
    return None if budget == "unlimited" else budget


def literals(dialect: Dialect) -> Iterator[str]:
    """Yields every text of a dialect's markers."""
    for span in (dialect.thinking, dialect.text):
        if span:
            yield from (span.open, span.close)
    yield from dialect.skipped
    for each in (dialect.calls, *dialect.also):
        if each:
            yield from _call_literals(each)


def _call_literals(how: Calls) -> Iterator[str]:
    yield from (how.section.open, how.close, how.between, how.section.close)
    yield from _texts(how.open)
    if isinstance(how.body, NamedBody):
        yield from _texts(how.body.between)
        described: dict[str, object] = msgspec.structs.asdict(how.body.arguments)
        yield from (part for part in described.values() if isinstance(part, str))


def _texts(pattern: Pattern) -> Iterator[str]:
    return (part for part in pattern if not isinstance(part, Hole))
