"""A script: what a scripted model says, as a table from the last token or two to the next.

`compile_script` turns pieces into a `Script`; `scripted` turns that into weights. A script knows nothing of
weights, and predicts a model's greedy output without one (`Script.follow`).

Every piece of bytes is a token of its own, so the last token alone says where in the script the model is
(order 1). A base token (`S`) has one id however often it is said; where it is followed by different things,
the token before it must tell (order 2).

The words used here: a *position* is one place of the script; a *state* is (token before, last token), where
None before means "whatever was before"; a state without an entry is what a prompt ends with, and leads to
the script's beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from tests.zoo.spelling import Spelling
from tests.zoo.vocabulary import EOG, EOS, N_BASE, Token, Vocabulary, base


@dataclass(frozen=True, slots=True)
class S:
    """A base token by its text, said with its real id: a special (`S("</think>")`), a merge or a byte."""

    text: str


Piece: TypeAlias = "bytes | S | Sequence[tuple[Sequence[Piece], float]]"
"""Bytes said as one new token, a base token, or alternatives with their probabilities."""
Routes: TypeAlias = "Mapping[str | tuple[str, str], Sequence[Piece]]"
"""What is said instead of the script if the prompt ends with this base token (or, order 2, these two)."""
Next: TypeAlias = "dict[int, float]"
"""Probabilities of the next token."""
State: TypeAlias = "tuple[int | None, int]"


@dataclass(frozen=True)
class Script:
    """`start` is what follows a prompt, `states` what follows a state; together they are the whole model."""

    vocabulary: Vocabulary
    start: Next
    states: Mapping[State, Next]

    def after(self, before: int | None, last: int) -> Next:
        """The next token's probabilities, given the last two tokens."""
        return self.states.get((before, last)) or self.states.get((None, last)) or self.start

    def follow(self, prompt: Sequence[int], n: int) -> list[int]:
        """The greedy continuation of `prompt`: at most `n` ids, the last an end of generation or the nth."""
        tokens = list(prompt)
        while len(tokens) < len(prompt) + n:
            before = tokens[-2] if len(tokens) > 1 else tokens[-1]
            options = self.after(before, tokens[-1])
            tokens.append(max(options, key=lambda token: options[token]))
            if tokens[-1] in EOG:
                break
        return tokens[len(prompt) :]

    @property
    def pieces(self) -> list[bytes]:
        """The bytes of each greedy token after an ordinary prompt, up to the end or the first new token
        again.
        """
        said: list[int] = []
        for token in self.follow([0, 0], len(self.vocabulary)):
            if token in EOG or (token >= N_BASE and token in said):
                break
            said.append(token)
        return [self.vocabulary.tokens[token].piece for token in said]

    @property
    def text(self) -> bytes:
        """`pieces` joined."""
        return b"".join(self.pieces)


def compile_script(
    pieces: Sequence[Piece],
    *,
    end: int | S | None = None,
    routes: Routes | None = None,
    order: int = 1,
    strict: bool = False,
) -> Script:
    """The script that says `pieces`.

    `end` None ends with eos, a token with that one, an index never ends: it goes back to that piece.
    Routes always end with eos. `order` is how many tokens the model may look at (1 or 2). `strict`
    selects the vocabulary.

    Raises ValueError if a token is followed by different things and `order` tokens cannot tell them apart,
    if probabilities do not add up to 1, if a piece is empty; KeyError for an unknown special or route.
    """
    if order not in {1, 2}:
        raise ValueError("a script looks at one or two tokens")
    plan = _Plan(base(strict=strict))
    start = plan.main(pieces, end)
    entries = {_key(plan.vocabulary, key): plan.route(said) for key, said in (routes or {}).items()}
    if order == 1 and any(before is not None for before, _ in entries):
        raise ValueError("a route on two tokens needs order=2")
    states = _states(plan, start, entries, order)
    script = Script(plan.vocabulary.extended(plan.tokens), plan.next(start), states)
    _check_start(script, plan, start, entries)
    return script


def _key(vocabulary: Vocabulary, key: str | tuple[str, str]) -> State:
    if isinstance(key, str):
        return None, vocabulary.id(key)
    return vocabulary.id(key[0]), vocabulary.id(key[1])


@dataclass(slots=True)
class _Part:
    """A stretch of the script: where it may begin, with what probability, and where it may end."""

    entry: dict[int, float]
    exits: list[int]


@dataclass
class _Plan:
    """Positions of the script: `ids[p]` is position p's token, `followers[p]` the positions after it."""

    vocabulary: Vocabulary
    tokens: list[Token] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    followers: list[dict[int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._spelling = Spelling(self.vocabulary)

    def main(self, pieces: Sequence[Piece], end: int | S | None) -> dict[int, float]:
        """Lays the script out; where it begins."""
        parts = self._chain(pieces)
        if isinstance(end, int):
            if not -len(parts) <= end < len(parts):
                raise ValueError("the script goes back to a piece that it does not have")
            self._join(parts[-1], parts[end])
            return parts[0].entry
        return self._ended(parts, EOS if end is None else self.vocabulary.id(end.text))

    def route(self, pieces: Sequence[Piece]) -> dict[int, float]:
        return self._ended(self._chain(pieces), EOS)

    def next(self, entry: Mapping[int, float]) -> Next:
        """Positions as tokens. Raises ValueError if two positions of one choice have the same token."""
        if len({self.ids[position] for position in entry}) != len(entry):
            raise ValueError("alternatives must begin with different tokens")
        return {self.ids[position]: share for position, share in entry.items()}

    def continued(self) -> list[int]:
        """The positions that something follows."""
        return [position for position, followers in enumerate(self.followers) if followers]

    def _ended(self, parts: list[_Part], end: int) -> dict[int, float]:
        last = self._position(end)
        if parts:
            self._join(parts[-1], last)
        return (parts or [last])[0].entry

    def _chain(self, pieces: Sequence[Piece]) -> list[_Part]:
        parts = [self._part(piece) for piece in pieces]
        for one, other in pairwise(parts):
            self._join(one, other)
        return parts

    def _join(self, one: _Part, other: _Part) -> None:
        for position in one.exits:
            self.followers[position] = other.entry

    def _part(self, piece: Piece) -> _Part:
        match piece:
            case bytes():
                self.tokens.append(self._spelling.token(piece))
                return self._position(N_BASE + len(self.tokens) - 1)
            case S(text):
                return self._position(self.vocabulary.id(text))
            case _:
                return self._choice(piece)

    def _choice(self, alternatives: Sequence[tuple[Sequence[Piece], float]]) -> _Part:
        if abs(sum(share for _, share in alternatives) - 1) > 1e-6:
            raise ValueError("the probabilities of alternatives add up to 1")
        choice = _Part({}, [])
        for pieces, share in alternatives:
            if not pieces or share <= 0:
                raise ValueError("an alternative says something, and sometimes")
            parts = self._chain(pieces)
            choice.entry |= {position: share * part for position, part in parts[0].entry.items()}
            choice.exits += parts[-1].exits
        return choice

    def _position(self, token: int) -> _Part:
        self.ids.append(token)
        self.followers.append({})
        return _Part({len(self.ids) - 1: 1.0}, [len(self.ids) - 1])


def _states(
    plan: _Plan, start: dict[int, float], routes: Mapping[State, dict[int, float]], order: int
) -> dict[State, Next]:
    """The table. Raises ValueError where one state would have two continuations."""
    states: dict[State, Next] = {}
    claims = [(state, plan.next(entry)) for state, entry in routes.items()]
    for state, following in [*claims, *_claims(plan, start, routes, order)]:
        if states.setdefault(state, following) != following:
            text = plan.vocabulary.tokens[state[1]].piece.decode()
            remedy = "; order=2 may tell them apart" if order == 1 else ", and so has the token before it"
            raise ValueError(f"{text!r} has two different continuations{remedy}")
    return states


def _claims(
    plan: _Plan, start: dict[int, float], routes: Mapping[State, dict[int, float]], order: int
) -> Iterator[tuple[State, Next]]:
    """What each position says of the states in which the model may be there.

    A position without followers says nothing: it is an end, and what comes after is a new beginning.
    """
    before = _tokens_before(plan, start, routes)
    continuations: dict[int, list[Next]] = {}
    for (_, last), entry in routes.items():
        continuations.setdefault(last, []).append(plan.next(entry))
    for position in plan.continued():
        continuations.setdefault(plan.ids[position], []).append(plan.next(plan.followers[position]))
    for position in plan.continued():
        last = plan.ids[position]
        certain = order == 1 or all(following == continuations[last][0] for following in continuations[last])
        for token in {None} if certain else before[position]:
            yield (token, last), plan.next(plan.followers[position])


def _tokens_before(
    plan: _Plan, start: dict[int, float], routes: Mapping[State, dict[int, float]]
) -> dict[int, set[int | None]]:
    """The tokens that may stand before each position; None is any end of a prompt."""
    before: dict[int, set[int | None]] = {position: {None} for position in start}
    for (_, last), entry in routes.items():
        for position in entry:
            before.setdefault(position, set()).add(last)
    for position, followers in enumerate(plan.followers):
        for follower in followers:
            before.setdefault(follower, set()).add(plan.ids[position])
    return before


def _check_start(
    script: Script, plan: _Plan, start: dict[int, float], routes: Mapping[State, dict[int, float]]
) -> None:
    """A prompt may end with only the second token of a route on two: its first token must not mislead."""
    for position in start:
        for before, last in routes:
            if before is None:
                continue
            expected = plan.next(plan.followers[position]) if plan.followers[position] else script.start
            if script.after(last, plan.ids[position]) != expected:
                raise ValueError("the script's beginning cannot be told from a route's")
