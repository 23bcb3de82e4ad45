"""The strings in which a pattern matches, as a language.

A `pattern` keyword searches: a string conforms if the expression matches anywhere in it. The syntax tree
becomes a language of whole strings by continuations: each element is translated together with the language
of the rest of the string, up to its end. So `$` is an intersection of the rest with the empty string, and a
lookahead an intersection of the rest with another language. An assertion inside an unbounded repetition has
no such translation and is refused.
"""

from __future__ import annotations

from typing import Final

from b3node.grammar.languages import charset
from b3node.grammar.languages.algebra import ALL, EMPTY, VOID, Algebra, Lang
from b3node.grammar.languages.pattern import (
    Assertion,
    Chars,
    Choice,
    Concatenation,
    Lookahead,
    PatternError,
    Repeat,
    Tree,
    parse,
)

MAX_UNROLLED_REPEATS: Final = 12
"""Times that a group with an assertion may repeat."""


def language(algebra: Algebra, source: str) -> Lang:
    """Returns the strings in which the pattern `source` matches somewhere.

    Raises:
        PatternError: the pattern is malformed or has no regular language.
    """
    return _search(algebra, parse(source))


def _search(algebra: Algebra, tree: Tree) -> Lang:
    """Returns the strings with a match at the start or further on."""
    at_start = _followed_by(algebra, tree, ALL, start=True)
    if _needs_start(tree):
        return at_start
    inside = _followed_by(algebra, tree, ALL, start=False)
    if inside == at_start or not _has_start_anchor(tree):
        return algebra.cat(ALL, inside)
    some = algebra.repeat(algebra.chars(charset.ANY), 1)
    return algebra.either([at_start, algebra.cat(some, inside)])


def _needs_start(tree: Tree) -> bool:
    """Returns whether every match begins with `^`."""
    match tree:
        case Assertion(start):
            return start
        case Concatenation(parts):
            return bool(parts) and _needs_start(parts[0])
        case Choice(options):
            return all(_needs_start(option) for option in options)
        case _:
            return False


def _has_start_anchor(tree: Tree) -> bool:
    match tree:
        case Assertion(start):
            return start
        case Concatenation(parts) | Choice(parts):
            return any(_has_start_anchor(part) for part in parts)
        case Repeat(inner, _, _) | Lookahead(inner, _):
            return _has_start_anchor(inner)
        case _:
            return False


def _followed_by(algebra: Algebra, tree: Tree, rest: Lang, *, start: bool) -> Lang:
    """Returns the rests of the string in which `tree` matches first and a string of `rest` follows.

    Args:
        algebra: makes the languages.
        tree: the element that matches here.
        rest: the strings that may follow the element, up to the end of the whole string.
        start: whether this is the beginning of the string.
    """
    match tree:
        case Assertion(is_start):
            if is_start:
                return rest if start else VOID
            return algebra.both([rest, EMPTY])
        case Lookahead(inner, wanted):
            ahead = _followed_by(algebra, inner, ALL, start=start)
            return algebra.both([rest, ahead if wanted else algebra.negate(ahead)])
        case Choice(options):
            return algebra.either(_followed_by(algebra, option, rest, start=start) for option in options)
        case Concatenation(parts):
            return _sequence_followed_by(algebra, parts, rest, start=start)
        case Repeat(inner, low, high) if not _is_assertion_free(inner):
            return _repeat_followed_by(algebra, tree, rest, (low, high), start=start)
        case _:
            return algebra.cat(_plain_language(algebra, tree), rest)


def _sequence_followed_by(algebra: Algebra, parts: tuple[Tree, ...], rest: Lang, *, start: bool) -> Lang:
    starts = []
    for part in parts:
        starts.append(start)
        start = start and _zero_width(part)
    for i in range(len(parts) - 1, -1, -1):
        late = i > 0 and starts[0] and not starts[i] and _has_start_anchor(parts[i])
        if late and all(_may_be_empty(part) for part in parts[:i]):
            raise PatternError("a ^ stands after something that may be empty")
        rest = _followed_by(algebra, parts[i], rest, start=starts[i])
    return rest


def _repeat_followed_by(
    algebra: Algebra, tree: Repeat, rest: Lang, bounds: tuple[int, int | None], *, start: bool
) -> Lang:
    low, high = bounds
    if high is None or high > MAX_UNROLLED_REPEATS or (start and high > 1 and _has_start_anchor(tree.inner)):
        raise PatternError("an assertion stands inside a repetition")
    out = rest
    for left in range(high):
        once = _followed_by(algebra, tree.inner, out, start=start)
        out = once if high - left <= low else algebra.either([once, rest])
    return out


def _is_assertion_free(tree: Tree) -> bool:
    """Returns whether the tree holds no assertion, so that it is a language by itself."""
    match tree:
        case Chars():
            return True
        case Concatenation(parts) | Choice(parts):
            return all(_is_assertion_free(part) for part in parts)
        case Repeat(inner, _, _):
            return _is_assertion_free(inner)
        case _:
            return False


def _zero_width(tree: Tree) -> bool:
    match tree:
        case Assertion() | Lookahead():
            return True
        case Concatenation(parts) | Choice(parts):
            return all(_zero_width(part) for part in parts)
        case _:
            return False


def _may_be_empty(tree: Tree) -> bool:
    match tree:
        case Chars():
            return False
        case Concatenation(parts):
            return all(_may_be_empty(part) for part in parts)
        case Choice(options):
            return any(_may_be_empty(option) for option in options)
        case Repeat(inner, low, _):
            return low == 0 or _may_be_empty(inner)
        case _:
            return True


def _plain_language(algebra: Algebra, tree: Tree) -> Lang:
    match tree:
        case Chars(chars):
            return algebra.chars(chars)
        case Concatenation(parts):
            return algebra.cat(EMPTY, *(_plain_language(algebra, part) for part in parts))
        case Choice(options):
            return algebra.either(_plain_language(algebra, option) for option in options)
        case Repeat(inner, low, high):
            return algebra.repeat(_plain_language(algebra, inner), low, high)
        case _:
            raise PatternError("an assertion stands inside a repetition")
