"""Keeps one answer to its outline: a free thought within its bound, free text, and a grammar from where it holds.

It is the constraint of its sequence and stands, like every constraint, behind the last token that was drawn. Where a
thought ends and a call begins is decided by the scanner that the front reads the answer with (`parse.channels`), fed
with the same bytes; so what the grammar is kept to is what will be read as the call or the answer.

Phases, in this order, any of the first three may be missing:

* Opening: a grammar holds from the beginning, but the model may begin a thought by itself instead.
* Free: a thought, or text before a call, or all of an answer without a grammar. Everything may be written but the
  control tokens that the dialect does not need, and the end, in a thought that must have an answer behind it.
* Forced: a thought has used its tokens up or goes round in circles; what closes it is put into the model's mouth.
* Held: the grammar, to the end.

A token may complete the marker behind which the grammar holds, and have bytes behind it. It is allowed only where
the grammar allows those bytes, and the grammar then goes on behind them; nothing is ever accepted unchecked. Such
tokens are looked up by the marker's last bytes, and tried only while a marker is being written, so a free token costs
its scan and one look at a table. Each spelling of calls that a family has goes on with a grammar of its own.

A bare call has no marker but what its body begins with, and that is white space and common words. As long as an answer
may begin with one, the tokens that could complete it are tried as they are drawn (`phases.Trying`).

What was not done: to ask the grammar about free text with a rule that takes anything (llama.cpp's "lazy" grammars):
it would be asked about every token, and could not know code, thoughts and special tokens as the scanner does.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from b3node.dialects.dialect import Calls
from b3node.dialects.outline import MARK, Outline
from b3node.engine.guidance.phases import Forced, Free, NothingAllowed, ThinkingOrGrammar, Trying
from b3node.engine.guidance.thinking_budget import ThinkingBudget
from b3node.engine.guidance.token_table import TokenTable
from b3node.engine.sampling.constraint import Constraint, ConstraintError, ForcedText, Grammar, Mask, TokenIds
from b3node.engine.sampling.sampler import Places
from b3node.parse.channels import Channels
from b3node.parse.markers import marked
from b3node.parse.views import call_head, spellings

_OWN: Final = -1
"""The spelling of calls that a model is made to write; others are told by their places in `Dialect.also`."""
_QUOTE: Final = b'"'
"""What a bare call begins with ends so."""


class GrammarStart(NamedTuple):
    """Where a grammar begins: which one, and what was written of its text already."""

    which: int
    rest: bytes


def _no_other(which: int) -> Grammar:
    """Raises `ConstraintError`."""
    raise ConstraintError(f"nothing is known of the spelling {which} of calls")


class Guide:
    """Implements `engine.sampling.constraint.Constraint`.

    Args:
        outline: what it keeps to.
        lexicon: the vocabulary's.
        grammar: at its beginning, for this guide alone; None where there is none.
        other: the grammar of a call that was begun in the spelling `Dialect.also[k]`, made when it is first needed;
            where it raises `ConstraintError` such a call cannot go on.

    Raises:
        ConstraintError: the outline cannot be kept with this vocabulary.
    """

    def __init__(
        self,
        outline: Outline,
        token_table: TokenTable,
        grammar: Grammar | None,
        other: Callable[[int], Grammar] = _no_other,
    ) -> None:
        if not token_table.marked.keys() >= set(outline.specials):
            raise ConstraintError("an outline names a token that is not special")
        self.marked: Final = {token: token_table.marked[token] for token in outline.specials}
        """What is told of the special tokens that may be written."""
        self._specials = frozenset(outline.specials)
        self._outline = outline
        self._token_table = token_table
        self._grammar = grammar
        self._grammars: dict[int, Grammar | None] = {_OWN: grammar}
        self._other = other
        self._channels = Channels(outline.reading)
        self._budget = ThinkingBudget(outline.thinking, len(token_table.pieces)) if outline.thinking else None
        self._reads = grammar is not None or self._budget is not None or outline.must
        self._grammar_begun = (
            False  # the place where the grammar begins is behind, but tokens are still forced
        )
        self._forced_grammar: Grammar | None = None  # where the grammar stands then, if it takes them
        self._beginnings: dict[
            GrammarStart, bool
        ] = {}  # whether a grammar may begin so, as far as it was asked
        self._marker_ends = _marker_ends(outline, token_table) if grammar else ()
        bare = outline.triggered and any(calls.bare for calls in spellings(outline.reading.dialect))
        self._quoting = token_table.containing(_QUOTE) if bare and grammar else None
        self._phase: Constraint = NothingAllowed()
        self._phase = self._first_phase()

    # -- the constraint --------------------------------------------------------------------------------

    def allows(self, tokens: TokenIds) -> Mask:
        """For each token, whether it may come next; see `engine.sampling.constraint.Constraint.allows`."""
        return self._phase.allows(tokens)

    def narrow(self) -> TokenIds | None:
        """Tokens among which all allowed ones are, where they are few."""
        return self._phase.narrow()

    def refused(self) -> Places | None:
        """All tokens that are not allowed, where they are few."""
        return self._phase.refused()

    def forced(self, max_bytes: int) -> ForcedText:
        """What comes next whatever is drawn: where the grammar holds, what it forces."""
        return self._phase.forced(max_bytes)

    def accept(self, token: int) -> None:
        """Goes on with a token that was allowed. Raises `ValueError` for any other."""
        self._phase.accept(token)
        if self._reads and token not in self._token_table.eog:
            self._advance(token)

    # -- phases ----------------------------------------------------------------------------------------

    def _first_phase(self) -> Constraint:
        """The phase that the answer begins with."""
        grammar = self._grammar
        if grammar is None or self._outline.triggered or self._channels.thinking:
            return self._free_phase()
        opening = self._opening()
        copy = grammar.after(b"")
        if opening and copy:
            return ThinkingOrGrammar(opening, self._token_table, self.marked, copy)
        return self._grammar_phase(grammar)

    def _free_phase(self) -> Constraint:
        """The phase of what comes next, as long as no grammar holds."""
        if self._budget and self._channels.thinking and self._budget.reached:
            return Forced(self._budget.close())
        silent = self._outline.must and self._channels.thinking
        free = self._token_table.free(self._specials, ends=not silent)
        refusing = [token for token, start in self._completing_tokens() if not self._may_begin(start)]
        if self._quoting is not None and self._channels.beginning:
            return Trying(free, refusing, self._quoting, self._may_come)
        phase = self._phase
        if not refusing and type(phase) is Free and phase.free is free and not phase.refusing.size:
            return phase
        return Free(free, refusing)

    def _grammar_phase(self, grammar: Grammar | None) -> Constraint:
        """The last phase: the grammar, from where it stands. Without one there is nothing that may follow."""
        self._reads = False
        return grammar or NothingAllowed()

    def _advance(self, token: int) -> None:
        """Moves on with an accepted token."""
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
            self._force(phase, token, start)
        elif start is not None and self._grammar:
            self._phase = self._grammar_phase(self._grammar_after(start))
        else:
            self._phase = self._free_phase()

    def _thinking_or_grammar(self, phase: ThinkingOrGrammar) -> Constraint:
        """The phase behind a token of an opening."""
        if phase.remaining:
            return phase
        if phase.remaining is None or not self._channels.thinking:
            return self._grammar_phase(phase.grammar or (self._grammar and self._grammar.after(b"")))
        return self._free_phase()

    def _force(self, phase: Forced, token: int, start: GrammarStart | None) -> None:
        """Moves on with a forced token. A grammar follows what is forced behind the thought, as far as it takes it."""
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

    def _opening(self) -> bytes:
        """What the model writes to begin a thought by itself; b"" if there is nothing or a thought has no bound."""
        reading = self._outline.reading
        if self._budget is None or reading.dialect.thought is None:
            return b""
        written = marked(reading.dialect.thought.open.strip(), reading.specials)
        return written.removeprefix(reading.begun)

    def _feed(self, channels: Channels, piece: bytes) -> GrammarStart | None:
        """Feeds `channels`; where a grammar begins in the piece, None if it does not."""
        if self._outline.triggered:
            read = channels.feed(piece)
            if channels.place != "call" or channels.calls is None:
                return None
            return GrammarStart(
                self._which(channels.calls), b"".join(data for channel, data in read if channel == "call")
            )
        before = channels.fork() if self._grammar else None
        channels.feed(piece)
        if before is None or channels.thinking:
            return None
        at = 0
        while before.thinking:
            before.feed(piece[at : at + 1])
            at += 1
        return GrammarStart(_OWN, piece[at:])

    def _which(self, calls: Calls) -> int:
        dialect = self._outline.reading.dialect
        return _OWN if calls == dialect.calls else dialect.also.index(calls)

    def _completing_tokens(self) -> Iterator[tuple[int, GrammarStart]]:
        """The tokens that would come to that place and have bytes behind it, with where the grammar would stand."""
        held = self._channels.held
        for marker in self._marker_ends if self._reads else ():
            for text, tokens in marker.candidates(held):
                fork = self._channels.fork()
                start = self._feed(fork, text) if text else None
                together = start is not None and not start.rest
                if text and not together and not fork.held:
                    continue  # it is no marker here
                for token in tokens:
                    if token in self.marked:
                        continue
                    piece = self._token_table.pieces[token]
                    found = (
                        GrammarStart(start.which, piece[len(text) :])
                        if start is not None and together
                        else self._feed(self._channels.fork(), piece)
                    )
                    if found and found.rest:
                        yield token, found

    def _may_come(self, token: int) -> bool:
        """Whether a plain token begins no call, or one that its grammar takes."""
        if token in self.marked:
            return True
        start = self._feed(self._channels.fork(), self._token_table.pieces[token])
        return start is None or self._may_begin(start)

    def _may_begin(self, start: GrammarStart) -> bool:
        """Whether a grammar may begin so."""
        if (known := self._beginnings.get(start)) is None:
            first = GrammarStart(start.which, start.rest[:1])
            known = first == start or self._may_begin(first)
            self._beginnings[start] = known = known and self._grammar_after(start) is not None
        return known

    def _grammar_after(self, start: GrammarStart) -> Grammar | None:
        """The grammar behind a start; None where it does not begin so."""
        if start.which not in self._grammars:
            self._grammars[start.which] = self._build(start.which)
        grammar = self._grammars[start.which]
        return grammar.after(start.rest) if grammar else None

    def _build(self, which: int) -> Grammar | None:
        try:
            return self._other(which)
        except ConstraintError:
            return None


def _marker_ends(outline: Outline, token_table: TokenTable) -> tuple[_MarkerEnd, ...]:
    """The markers behind which a grammar may begin; once where several end alike."""
    dialect = outline.reading.dialect
    if outline.triggered:
        literals = ["\n".join(call_head(calls)) for calls in spellings(dialect)]
    else:
        literals = [dialect.thought.close] if dialect.thought else []
    markers = [_MarkerEnd(literal, outline.reading.specials, token_table) for literal in literals]
    return tuple({(marker.end, marker.alone): marker for marker in markers}.values())


class _MarkerEnd:
    """The end of the marker behind which the grammar begins, as far as plain tokens write it."""

    def __init__(self, literal: str, specials: abc.Sequence[str], token_table: TokenTable) -> None:
        words = marked(literal, specials).split()
        end = words[-1] if words else b""
        for special in specials:
            end = end.rpartition(MARK + special.encode())[2]
        self.end: Final = end
        self.alone: Final = words == [end]
        self._tokens = token_table.completing(end) if end else None

    def candidates(self, held: bytes) -> Iterator[tuple[bytes, tuple[int, ...]]]:
        """Tokens that may complete it and go on, behind `held`; those that begin with the same bytes of it together.

        The bytes are b"" for tokens that have it in their middle.
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
    """The grammar behind a token; None where it refuses it."""
    if grammar is None or not grammar.allows(np.array([token], np.int32))[0]:
        return None
    grammar.accept(token)
    return grammar
