"""Drafts the next tokens of a sequence, so that they are computed before they are drawn.

Drafted tokens are computed after the known ones in one step. Each is kept if the sequence's own draw, from
the row before it, is that very token (`engine.loop`). So a draft changes no distribution and no seed's
answer; a wrong token costs its place in the step. The price is the cost of such a place as a share of a step:
on a CPU a third to a half, so that only good guesses pay, on a GPU next to nothing. For a given price, the
drafts depend on no clock.

Two sources are asked, and the more likely guess is taken: the sequence itself (`prompt_lookup`), and the
frequent phrases of its organization's answers (`ngram_table`). Both learn from every token, drafted or not,
how often they are right.

Accepting a draft by drawing follows Y. Leviathan et al., "Fast Inference from Transformers via Speculative
Decoding" (2023), for a draft that is certain of its token.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Container, Hashable, Iterator
from typing import Final

from b3node.engine.speculation.ngram_table import CONTEXT_TOKENS, NgramTable
from b3node.engine.speculation.prompt_lookup import DraftToken, PromptLookup

MAX_DRAFT_TOKENS: Final = 16
"""Length of a draft, at most."""
_MAX_TABLES: Final = 64
"""Kinds of sequences whose n-grams are kept; the least recently used ones are evicted."""
_MIN_SPEEDUP: Final = 1.1
"""Tokens that a draft must promise for the time of a step without one. Chances and costs are learnt from few
and noisy steps, so a draft that seems to gain a little mostly gains nothing."""
_MIN_CHANCE: Final = 0.1
"""Chance of a whole draft below which it is not extended."""

Cost = Callable[[int], float]
"""Returns the time that so many more tokens add to a step, as a multiple of the step without them."""


class DrafterFactory:
    """Makes the drafters of an engine's sequences; `make` mutates it."""

    def __init__(self) -> None:
        self._ngrams: OrderedDict[Hashable, NgramTable] = OrderedDict()

    def make(self, kind: Hashable, known: array[int]) -> Drafter:
        """Returns a drafter for a new sequence with these tokens, which grow.

        Sequences of one `kind` are of one organization, and all greedy or all sampled: sampled ones repeat
        phrases less, so chances learnt from the others would make their drafts too long.
        """
        if (ngrams := self._ngrams.get(kind)) is None:
            ngrams = self._ngrams[kind] = NgramTable()
        self._ngrams.move_to_end(kind)
        if len(self._ngrams) > _MAX_TABLES:
            self._ngrams.popitem(last=False)
        return Drafter(known, ngrams)


class Drafter:
    """Drafts for one sequence; `feed` mutates it.

    Args:
        known: the sequence's tokens; grows, and is never changed here.
        ngrams: its namespace's, which learn from it.
    """

    def __init__(self, known: array[int], ngrams: NgramTable) -> None:
        self._known = known
        self._lookup = PromptLookup(known)
        self._ngrams = ngrams
        self._fed = len(known)

    def feed(self) -> None:
        """Takes in the tokens appended to the known ones since the last call."""
        for place in range(self._fed, len(self._known)):
            alone = not self._lookup.has_guess
            self._lookup.feed(place)
            self._ngrams.learn(self._known[max(place - CONTEXT_TOKENS, 0) : place + 1], judge=alone)
        self._fed = len(self._known)

    def draft(self, max_tokens: int, cost: Cost, ends: Container[int]) -> array[int]:
        """Returns the tokens guessed to come next, as many as pay; changes nothing.

        Of all lengths, the one is taken that brings most tokens for a step's time, by the chances of the
        guesses.

        Args:
            max_tokens: length of the draft, at most.
            cost: of more tokens in this step.
            ends: tokens that are never drafted.
        """
        tokens: array[int] = array("i")
        chance = gain = 1.0
        taken, rate = 0, _MIN_SPEEDUP
        for token, odds in self._candidates(tokens):
            chance *= odds
            if len(tokens) >= min(max_tokens, MAX_DRAFT_TOKENS) or chance < _MIN_CHANCE or token in ends:
                break
            tokens.append(token)
            gain += chance
            if gain > rate * (steps := 1.0 + cost(len(tokens))):
                taken, rate = len(tokens), gain / steps
        return tokens[:taken]

    def _candidates(self, draft: array[int]) -> Iterator[DraftToken]:
        """Yields guesses for the token after the known ones and `draft`, which grows by each guess."""
        context = self._known[-CONTEXT_TOKENS:]
        quoted = self._lookup.guess(draft)
        while (best := _more_likely(quoted, self._ngrams.guess(context))) is not None:
            yield best
            context.append(best.token)
            quoting = quoted is not None and quoted.token == best.token
            quoted = self._lookup.guess(draft) if quoting else None


def _more_likely(one: DraftToken | None, other: DraftToken | None) -> DraftToken | None:
    if one is None or other is None:
        return one or other
    return one if one.chance >= other.chance else other
