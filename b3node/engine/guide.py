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
its scan and one look at a table.

What was not done: to ask the grammar about free text with a rule that takes anything (llama.cpp's "lazy" grammars):
it would be asked about every token, and could not know code, thoughts and special tokens as the scanner does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from b3node.dialects.outline import MARK, Outline
from b3node.engine.constraint import Constraint, ConstraintError, Grammar, Ids, Mask
from b3node.engine.lexicon import Lexicon
from b3node.engine.phases import Forced, Free, Nothing, Opening
from b3node.engine.sampling import Places
from b3node.engine.thought import Bound
from b3node.parse.channels import Channels
from b3node.parse.markers import marked
from b3node.parse.views import call_head


class Guide:
    """Implements `engine.constraint.Constraint`.

    Args:
        outline: what it keeps to.
        lexicon: the vocabulary's.
        grammar: at its beginning, for this guide alone; None where there is none.

    Raises:
        ConstraintError: the outline cannot be kept with this vocabulary.
    """

    def __init__(self, outline: Outline, lexicon: Lexicon, grammar: Grammar | None) -> None:
        if not lexicon.marked.keys() >= set(outline.specials):
            raise ConstraintError("an outline names a token that is not special")
        self.marked: Final = {token: lexicon.marked[token] for token in outline.specials}
        """What is told of the special tokens that may be written."""
        self._specials = frozenset(outline.specials)
        self._outline = outline
        self._lexicon = lexicon
        self._grammar = grammar
        self._channels = Channels(outline.reading)
        self._bound = Bound(outline.thinking, len(lexicon.pieces)) if outline.thinking else None
        self._reads = grammar is not None or self._bound is not None or outline.must
        self._crossed = False  # the place where the grammar begins is behind, but tokens are still forced
        self._ahead: Grammar | None = None  # where the grammar stands then, if it takes them
        self._began: dict[
            bytes, bool
        ] = {}  # whether the grammar may begin with a text, as far as it was asked
        self._marker = _Marker(outline, lexicon)
        self._now: Constraint = Nothing()
        self._now = self._first()

    # -- the constraint --------------------------------------------------------------------------------

    def allows(self, tokens: Ids) -> Mask:
        """For each token, whether it may come next; see `engine.constraint.Constraint.allows`."""
        return self._now.allows(tokens)

    def narrow(self) -> Ids | None:
        """Tokens among which all allowed ones are, where they are few."""
        return self._now.narrow()

    def refused(self) -> Places | None:
        """All tokens that are not allowed, where they are few."""
        return self._now.refused()

    def accept(self, token: int) -> None:
        """Goes on with a token that was allowed. Raises `ValueError` for any other."""
        self._now.accept(token)
        if self._reads and token not in self._lexicon.eog:
            self._read(token)

    # -- phases ----------------------------------------------------------------------------------------

    def _first(self) -> Constraint:
        """The phase that the answer begins with."""
        grammar = self._grammar
        if grammar is None or self._outline.triggered or self._channels.thinking:
            return self._next()
        opening = self._opening()
        trial = grammar.after(b"")
        if opening and trial:
            return Opening(opening, self._lexicon, self.marked, trial)
        return self._held(grammar)

    def _next(self) -> Constraint:
        """The phase of what comes next, as long as no grammar holds."""
        if self._bound and self._channels.thinking and self._bound.reached:
            return Forced(self._bound.close())
        silent = self._outline.must and self._channels.thinking
        freedom = self._lexicon.freedom(self._specials, ends=not silent)
        refusing = [token for token, rest in self._completing() if not self._may_begin(rest)]
        now = self._now
        if not refusing and isinstance(now, Free) and now.freedom is freedom and not now.refusing.size:
            return now
        return Free(freedom, refusing)

    def _held(self, grammar: Grammar | None) -> Constraint:
        """The last phase: the grammar, from where it stands. Without one there is nothing that may follow."""
        self._reads = False
        return grammar or Nothing()

    def _read(self, token: int) -> None:
        """Moves on with an accepted token."""
        piece = self.marked.get(token) or self._lexicon.pieces[token]
        if self._bound and self._channels.thinking:
            self._bound.feed(token, piece)
        now = self._now
        if isinstance(now, Opening):
            self._channels.feed(piece)
            self._now = self._opened(now)
            return
        behind = self._advance(self._channels, piece)
        if isinstance(now, Forced):
            self._force(now, token, behind)
        elif behind is not None and self._grammar:
            self._now = self._held(self._grammar.after(behind))
        else:
            self._reads = (
                self._reads and self._channels.place != "call"
            )  # a call in another spelling stays free
            self._now = self._next()

    def _opened(self, now: Opening) -> Constraint:
        """The phase behind a token of an opening."""
        if now.left:
            return now
        if now.left is None or not self._channels.thinking:
            return self._held(now.grammar or (self._grammar and self._grammar.after(b"")))
        return self._next()

    def _force(self, now: Forced, token: int, behind: bytes | None) -> None:
        """Moves on with a forced token. A grammar follows what is forced behind the thought, as far as it takes it."""
        if self._crossed:
            self._ahead = _accepted(self._ahead, token)
        elif behind is not None and self._grammar:
            self._crossed, self._ahead = True, self._grammar.after(behind)
        if now.left:
            return
        if self._crossed and self._grammar:
            self._now = self._held(self._ahead or self._grammar.after(b""))
            return
        if self._bound and self._channels.thinking:
            self._bound.give_up()
        self._now = self._next()

    # -- where the grammar begins ----------------------------------------------------------------------

    def _opening(self) -> bytes:
        """What the model writes to begin a thought by itself; b"" if there is nothing or a thought has no bound."""
        reading = self._outline.reading
        if self._bound is None or reading.dialect.thought is None:
            return b""
        written = marked(reading.dialect.thought.open.strip(), reading.specials)
        return written.removeprefix(reading.begun)

    def _advance(self, channels: Channels, piece: bytes) -> bytes | None:
        """Feeds `channels`; the bytes of the piece behind the place where the grammar begins, None if it is not there."""
        if self._outline.triggered:
            told = channels.feed(piece)
            if channels.place != "call" or channels.calls != self._outline.reading.dialect.calls:
                return None
            return b"".join(data for channel, data in told if channel == "call")
        before = channels.fork() if self._grammar else None
        channels.feed(piece)
        if before is None or channels.thinking:
            return None
        at = 0
        while before.thinking:
            before.feed(piece[at : at + 1])
            at += 1
        return piece[at:]

    def _completing(self) -> Iterator[tuple[int, bytes]]:
        """The tokens that would come to that place and have bytes behind it, with those bytes."""
        held = self._channels.held
        for text, tokens in self._marker.candidates(held) if self._reads and self._grammar else ():
            fork = self._channels.fork()
            together = bool(text) and self._advance(fork, text) == b""
            if text and not together and not fork.held:
                continue  # it is no marker here
            for token in tokens:
                piece = self._lexicon.pieces[token]
                if token in self.marked:
                    continue
                rest = piece[len(text) :] if together else self._advance(self._channels.fork(), piece)
                if rest:
                    yield token, rest

    def _may_begin(self, text: bytes) -> bool:
        """Whether the grammar may begin with `text`, which is not empty."""
        if (known := self._began.get(text)) is None:
            known = len(text) == 1 or self._may_begin(text[:1])
            known = known and self._grammar is not None and self._grammar.after(text) is not None
            self._began[text] = known
        return known


class _Marker:
    """The end of the marker behind which the grammar begins, as far as plain tokens write it."""

    def __init__(self, outline: Outline, lexicon: Lexicon) -> None:
        reading = outline.reading
        if outline.triggered:
            literal = "\n".join(call_head(reading.dialect.calls)) if reading.dialect.calls else ""
        else:
            literal = reading.dialect.thought.close if reading.dialect.thought else ""
        words = marked(literal, reading.specials).split()
        self._end = words[-1] if words else b""
        for special in reading.specials:
            self._end = self._end.rpartition(MARK + special.encode())[2]
        self._alone = words == [self._end]
        self._tokens = lexicon.completing(self._end) if self._end else None

    def candidates(self, held: bytes) -> Iterator[tuple[bytes, tuple[int, ...]]]:
        """Tokens that may complete it and go on, behind `held`; those that begin with the same bytes of it together.

        The bytes are b"" for tokens that have it in their middle.
        """
        if self._tokens is None or not (held or self._alone):
            return
        end = self._end
        for size, tokens in enumerate(self._tokens.by_rest, start=1):
            if tokens and (size == len(end) or (held and held.endswith(end[:-size]))):
                yield end[-size:], tokens
        if self._alone and self._tokens.inside:
            yield b"", self._tokens.inside


def _accepted(grammar: Grammar | None, token: int) -> Grammar | None:
    """The grammar behind a token; None where it refuses it."""
    if grammar is None or not grammar.allows(np.array([token], np.int32))[0]:
        return None
    grammar.accept(token)
    return grammar
