"""Keeps one answer to its outline.

Free thinking within its budget, free text, and a grammar from where it applies.

A guide is the constraint of its sequence; like every constraint, its state is that after the last drawn
token. The scanner with which the front reads the answer (`parse.channels`) decides where thinking ends and a
call begins, fed with the same bytes. So the grammar constrains exactly the text that will be read as the call
or the answer.

Phases, in this order; any of the first three may be missing:

* Thinking or grammar: the grammar applies from the beginning, but the model may start to think instead.
* Free: thinking, text before a call, or all of an answer without a grammar. Every token is allowed except
  control tokens that the dialect does not need, and except the end while thinking must be followed by an
  answer.
* Forced: thinking has used up its budget or repeats itself; the tokens that close it are the only ones
  allowed.
* Grammar: to the end.

A token may complete the marker after which the grammar applies, and continue with further bytes. It is
allowed only if the grammar allows those bytes, and the grammar then continues after them; nothing is ever
accepted unchecked. Such tokens are looked up by the marker's last bytes, and tried only while a marker is
being written. So a free token costs its scan and one table lookup. Each spelling of calls that a family has
continues with a grammar of its own.

A bare call has no marker except the beginning of its body, and that is white space and common words. As long
as an answer may begin with one, the tokens that could complete it are tried as they are drawn
(`phases.CheckedFree`).

Not chosen: checking free text by a grammar rule that takes anything (llama.cpp's "lazy" grammars). The
grammar would be asked about every token, and it cannot know code, thinking and special tokens as the scanner
does.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from b3node.dialects.dialect import Calls
from b3node.dialects.outline import MARK, Outline
from b3node.engine.guidance.phases import CheckedFree, Forced, Free, NothingAllowed, ThinkingOrGrammar
from b3node.engine.guidance.thinking_budget import ThinkingBudget
from b3node.engine.guidance.token_table import TokenTable
from b3node.engine.sampling.constraint import Constraint, ConstraintError, ForcedText, Grammar, Mask, TokenIds
from b3node.engine.sampling.sampler import Places
from b3node.parse.channels import Channels
from b3node.parse.markers import marked
from b3node.parse.views import call_head, spellings

_QUOTE: Final = b'"'
"""Last byte of the text with which a bare call begins."""


class GrammarStart(NamedTuple):
    """Place where a grammar begins, inside a token."""

    spelling: int | None
    """Place of the call's spelling in `Dialect.also`; None for the one that the model is asked to write."""
    rest: bytes
    """The bytes of the token that belong to the grammar."""


def _no_other_grammar(spelling: int) -> Grammar:
    """Raises `ConstraintError`."""
    raise ConstraintError(f"nothing is known of the spelling {spelling} of calls")


class Guide:
    """Implements `engine.sampling.constraint.Constraint`.

    Args:
        outline: the form of the answer.
        token_table: the vocabulary's.
        grammar: at its beginning, for this guide alone; None if there is none.
        other_grammar: makes the grammar of a call that was begun in the spelling `Dialect.also[k]`, when it
            is first needed. If it raises `ConstraintError` such a call cannot go on.

    Raises:
        ConstraintError: the outline cannot be enforced with this vocabulary.
    """

    def __init__(
        self,
        outline: Outline,
        token_table: TokenTable,
        grammar: Grammar | None,
        other_grammar: Callable[[int], Grammar] = _no_other_grammar,
    ) -> None:
        if not token_table.marked.keys() >= set(outline.specials):
            raise ConstraintError("an outline names a token that is not special")
        self.marked: Final = {token: token_table.marked[token] for token in outline.specials}
        """The bytes under which the front gets each special token that may be written."""
        self._specials = frozenset(outline.specials)
        self._outline = outline
        self._token_table = token_table
        self._grammar = grammar
        self._grammars: dict[int | None, Grammar | None] = {None: grammar}
        self._other_grammar = other_grammar
        self._channels = Channels(outline.reading)
        self._budget = ThinkingBudget(outline.thinking, len(token_table.pieces)) if outline.thinking else None
        self._scanning = grammar is not None or self._budget is not None or outline.must
        self._grammar_begun = False
        """Whether the place where the grammar begins is passed while tokens are still forced."""
        self._forced_grammar: Grammar | None = None
        """The grammar advanced by those tokens; None once it refused one."""
        self._beginnings: dict[GrammarStart, bool] = {}
        """Whether a grammar may begin so, as far as it was asked."""
        self._marker_ends = _marker_ends(outline, token_table) if grammar else ()
        bare = outline.triggered and any(calls.bare for calls in spellings(outline.reading.dialect))
        self._quote_tokens = token_table.containing(_QUOTE) if bare and grammar else None
        self._phase: Constraint = NothingAllowed()
        self._phase = self._first_phase()

    # -- constraint ------------------------------------------------------------------------------------

    def allows(self, tokens: TokenIds) -> Mask:
        """Returns for each token whether it may come next.

        See `engine.sampling.constraint.Constraint.allows`.
        """
        return self._phase.allows(tokens)

    def narrow(self) -> TokenIds | None:
        """Returns tokens among which all allowed ones are, if they are few."""
        return self._phase.narrow()

    def refused(self) -> Places | None:
        """Returns all tokens that are not allowed, if they are few."""
        return self._phase.refused()

    def forced(self, max_bytes: int) -> ForcedText:
        """Returns the text that the grammar forces; empty before it applies."""
        return self._phase.forced(max_bytes)

    def accept(self, token: int) -> None:
        """Advances by a token that was allowed. Raises `ValueError` for any other."""
        self._phase.accept(token)
        if self._scanning and token not in self._token_table.eog:
            self._advance(token)

    # -- phases ----------------------------------------------------------------------------------------

    def _first_phase(self) -> Constraint:
        """Returns the phase that the answer begins with."""
        grammar = self._grammar
        if grammar is None or self._outline.triggered or self._channels.thinking:
            return self._free_phase()
        opener = self._thinking_opener()
        copy = grammar.after(b"")
        if opener and copy:
            return ThinkingOrGrammar(opener, self._token_table, self.marked, copy)
        return self._grammar_phase(grammar)

    def _free_phase(self) -> Constraint:
        """Returns the phase of the next token, as long as no grammar applies."""
        if self._budget and self._channels.thinking and self._budget.reached:
            return Forced(self._budget.close())
        silent = self._outline.must and self._channels.thinking
        free = self._token_table.free(self._specials, ends=not silent)
        also_refused = [token for token, start in self._completing_tokens() if not self._can_begin(start)]
        if self._quote_tokens is not None and self._channels.beginning:
            return CheckedFree(free, also_refused, self._quote_tokens, self._is_allowed)
        phase = self._phase
        if not also_refused and type(phase) is Free and phase.free is free and not phase.also_refused.size:
            return phase
        return Free(free, also_refused)

    def _grammar_phase(self, grammar: Grammar | None) -> Constraint:
        """Returns the last phase: the grammar, as far as it was advanced. Without one no token may follow."""
        self._scanning = False
        return grammar or NothingAllowed()

    def _advance(self, token: int) -> None:
        """Changes the phase by an accepted token."""
        piece = self.marked.get(token) or self._token_table.pieces[token]
        if self._budget and self._channels.thinking:
            self._budget.feed(token, piece)
        phase = self._phase
        if isinstance(phase, ThinkingOrGrammar):
            self._channels.feed(piece)
            self._phase = self._thinking_or_grammar(phase)
            return
        start = self._feed(self._channels, piece)
        if isinstance(phase, Forced):
            self._advance_forced(phase, token, start)
        elif start is not None and self._grammar:
            self._phase = self._grammar_phase(self._grammar_after(start))
        else:
            self._phase = self._free_phase()

    def _thinking_or_grammar(self, phase: ThinkingOrGrammar) -> Constraint:
        """Returns the phase after a token of the first phase."""
        if phase.remaining:
            return phase
        if phase.remaining is None or not self._channels.thinking:
            return self._grammar_phase(phase.grammar or (self._grammar and self._grammar.after(b"")))
        return self._free_phase()

    def _advance_forced(self, phase: Forced, token: int, start: GrammarStart | None) -> None:
        """Changes the phase by a forced token.

        The grammar follows the tokens that are forced after the end of thinking, as far as it takes them.
        """
        if self._grammar_begun:
            self._forced_grammar = _after_token(self._forced_grammar, token)
        elif start is not None and self._grammar:
            self._grammar_begun, self._forced_grammar = True, self._grammar_after(start)
        if phase.remaining:
            return
        if self._grammar_begun and self._grammar:
            self._phase = self._grammar_phase(self._forced_grammar or self._grammar.after(b""))
            return
        if self._budget and self._channels.thinking:
            self._budget.give_up()
        self._phase = self._free_phase()

    # -- where the grammar begins ----------------------------------------------------------------------

    def _thinking_opener(self) -> bytes:
        """Returns the bytes with which the model begins to think; none if thinking has no budget."""
        reading = self._outline.reading
        if self._budget is None or reading.dialect.thinking is None:
            return b""
        written = marked(reading.dialect.thinking.open.strip(), reading.specials)
        return written.removeprefix(reading.begun)

    def _feed(self, channels: Channels, piece: bytes) -> GrammarStart | None:
        """Feeds `channels` and returns where a grammar begins in the piece; None if it does not."""
        if self._outline.triggered:
            read = channels.feed(piece)
            if channels.place != "call" or channels.calls is None:
                return None
            return GrammarStart(
                self._spelling(channels.calls), b"".join(data for channel, data in read if channel == "call")
            )
        before = channels.fork() if self._grammar else None
        channels.feed(piece)
        if before is None or channels.thinking:
            return None
        at = 0
        while before.thinking:
            before.feed(piece[at : at + 1])
            at += 1
        return GrammarStart(None, piece[at:])

    def _spelling(self, calls: Calls) -> int | None:
        dialect = self._outline.reading.dialect
        return None if calls == dialect.calls else dialect.also.index(calls)

    def _completing_tokens(self) -> Iterator[tuple[int, GrammarStart]]:
        """Yields the tokens that would complete a marker and continue, each with the start of its grammar."""
        held = self._channels.held
        for marker in self._marker_ends if self._scanning else ():
            for text, tokens in marker.candidates(held):
                fork = self._channels.fork()
                start = self._feed(fork, text) if text else None
                together = start is not None and not start.rest
                if text and not together and not fork.held:
                    continue  # no marker ends here
                for token in tokens:
                    if token in self.marked:
                        continue
                    piece = self._token_table.pieces[token]
                    found = (
                        GrammarStart(start.spelling, piece[len(text) :])
                        if start is not None and together
                        else self._feed(self._channels.fork(), piece)
                    )
                    if found and found.rest:
                        yield token, found

    def _is_allowed(self, token: int) -> bool:
        """Returns whether a plain token begins no call, or one that its grammar takes."""
        if token in self.marked:
            return True
        start = self._feed(self._channels.fork(), self._token_table.pieces[token])
        return start is None or self._can_begin(start)

    def _can_begin(self, start: GrammarStart) -> bool:
        """Returns whether a grammar may begin so."""
        if (known := self._beginnings.get(start)) is None:
            first = GrammarStart(start.spelling, start.rest[:1])
            known = first == start or self._can_begin(first)
            self._beginnings[start] = known = known and self._grammar_after(start) is not None
        return known

    def _grammar_after(self, start: GrammarStart) -> Grammar | None:
        """Returns the grammar advanced by the bytes of a start; None if it refuses them."""
        if start.spelling is not None and start.spelling not in self._grammars:
            self._grammars[start.spelling] = self._build(start.spelling)
        grammar = self._grammars[start.spelling]
        return grammar.after(start.rest) if grammar else None

    def _build(self, spelling: int) -> Grammar | None:
        try:
            return self._other_grammar(spelling)
        except ConstraintError:
            return None


def _marker_ends(outline: Outline, token_table: TokenTable) -> tuple[_MarkerEnd, ...]:
    """Returns the ends of the markers after which a grammar may begin; one for several that end alike."""
    dialect = outline.reading.dialect
    if outline.triggered:
        literals = ["\n".join(call_head(calls)) for calls in spellings(dialect)]
    else:
        literals = [dialect.thinking.close] if dialect.thinking else []
    markers = [_MarkerEnd(literal, outline.reading.specials, token_table) for literal in literals]
    return tuple({(marker.end, marker.alone): marker for marker in markers}.values())


class _MarkerEnd:
    """The end of a marker after which the grammar begins, as far as plain tokens write it."""

    def __init__(self, literal: str, specials: abc.Sequence[str], token_table: TokenTable) -> None:
        words = marked(literal, specials).split()
        end = words[-1] if words else b""
        for special in specials:
            end = end.rpartition(MARK + special.encode())[2]
        self.end: Final = end
        self.alone: Final = words == [end]
        self._tokens = token_table.completing(end) if end else None

    def candidates(self, held: bytes) -> Iterator[tuple[bytes, tuple[int, ...]]]:
        """Yields tokens that may complete it after `held` and continue, by the bytes of it they begin with.

        The bytes are b"" for tokens that contain it after their beginning.
        """
        if self._tokens is None or not (held or self.alone):
            return
        end = self.end
        for size, tokens in enumerate(self._tokens.by_rest, start=1):
            if tokens and (size == len(end) or (held and held.endswith(end[:-size]))):
                yield end[-size:], tokens
        if self.alone and self._tokens.inside:
            yield b"", self._tokens.inside


def _after_token(grammar: Grammar | None, token: int) -> Grammar | None:
    """Returns the grammar advanced by a token; None if it refuses it."""
    if grammar is None or not grammar.allows(np.array([token], np.int32))[0]:
        return None
    grammar.accept(token)
    return grammar
