"""Guesses what a sequence says next, to compute it before it is drawn.

Guessed tokens are computed behind the known ones in one step, and each is kept if the sequence's own draw, from the row
before it, is that very token (`engine.loop`). So a draft changes no distribution and no seed's answer; a wrong token
costs its place in the step. What a place costs beside a step is the price: on a CPU a third to a half, so that only good
guesses pay, on a GPU next to nothing. No clock has a say in what is guessed for a given price.

Two things are asked, and the surer one is taken: the sequence itself (`lookup`), and what the answers of its
organization say often (`phrases`). Both learn how often they are right from every token, drafted or not.

Accepting a draft by drawing follows Y. Leviathan et al., "Fast Inference from Transformers via Speculative Decoding"
(2023), where the draft is certain of its token.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Container, Hashable, Iterator
from typing import Final

from b3node.engine.speculation.ngram_table import CONTEXT, NgramTable
from b3node.engine.speculation.prompt_lookup import DraftToken, PromptLookup

LONGEST: Final = 16
"""Tokens that are guessed at once, at most."""
_KINDS: Final = 64
"""Kinds of sequences whose phrases are remembered: those that asked last."""
_WORTH: Final = 1.1
"""Tokens for the time of a step without a draft that a draft must promise: chances and costs are learnt from few and noisy
steps, and what seems to gain a little mostly gains nothing."""
_FAINT: Final = 0.1
"""Chance below which a guess is not looked behind."""

Cost = Callable[[int], float]


class DrafterFactory:
    """Makes the drafters of an engine's sequences; `of` mutates it."""

    def __init__(self) -> None:
        self._phrases: OrderedDict[Hashable, NgramTable] = OrderedDict()

    def of(self, kind: Hashable, known: array[int]) -> Drafter:
        """A drafter for a new sequence with these tokens, which grow.

        Sequences of one `kind` are of one organization, and all greedy or all drawn: drawn ones repeat phrases less, so
        what is learnt of the others' chances would make their drafts too long.
        """
        if (phrases := self._phrases.get(kind)) is None:
            phrases = self._phrases[kind] = NgramTable()
        self._phrases.move_to_end(kind)
        if len(self._phrases) > _KINDS:
            self._phrases.popitem(last=False)
        return Drafter(known, phrases)


class Drafter:
    """Guesses for one sequence; `feed` mutates it.

    Args:
        known: the sequence's tokens; grows, and is never changed here.
        phrases: what its namespace says, which learns from it.
    """

    def __init__(self, known: array[int], phrases: NgramTable) -> None:
        self._known = known
        self._lookup = PromptLookup(known)
        self._phrases = phrases
        self._fed = len(known)

    def feed(self) -> None:
        """Takes in what was appended to the known tokens since the last call."""
        for place in range(self._fed, len(self._known)):
            self._lookup.feed(place)
            self._phrases.learn(self._known[max(place - CONTEXT, 0) : place + 1])
        self._fed = len(self._known)

    def draft(self, most: int, cost: Cost, ends: Container[int]) -> array[int]:
        """The tokens that are guessed to come next and worth their cost: at most `most`, none of `ends`.

        All known tokens were fed. `cost` says what so many more tokens add to a step, in steps without them. Of all
        lengths the one is taken that brings most tokens for a step's time, by the chances of the guesses. Changes
        nothing.
        """
        tokens: array[int] = array("i")
        chance = gain = 1.0
        taken, rate = 0, _WORTH
        for token, odds in self._guesses(tokens):
            chance *= odds
            if len(tokens) >= min(most, LONGEST) or chance < _FAINT or token in ends:
                break
            tokens.append(token)
            gain += chance
            if gain > rate * (steps := 1.0 + cost(len(tokens))):
                taken, rate = len(tokens), gain / steps
        return tokens[:taken]

    def _guesses(self, draft: array[int]) -> Iterator[DraftToken]:
        """What comes behind the known tokens and a draft that grows by each guess."""
        context = self._known[-CONTEXT:]
        quoted = self._lookup.guess(draft)
        while (best := _surer(quoted, self._phrases.guess(context))) is not None:
            yield best
            context.append(best.token)
            quoting = quoted is not None and quoted.token == best.token
            quoted = self._lookup.guess(draft) if quoting else None


def _surer(one: DraftToken | None, other: DraftToken | None) -> DraftToken | None:
    if one is None or other is None:
        return one or other
    return one if one.chance >= other.chance else other
