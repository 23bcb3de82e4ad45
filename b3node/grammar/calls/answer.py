"""Grammar of an answer without calls, with the markers that its dialect puts around the text."""

from __future__ import annotations

from collections.abc import Iterator

from b3node.dialects.dialect import Dialect
from b3node.grammar.calls.grammar import TextAnswer
from b3node.grammar.gbnf.rename import renamed
from b3node.grammar.gbnf.rules import Symbols
from b3node.grammar.gbnf.special_tokens import SpecialTokens

_BLANK = r"[\n]{0,2}"


def answer_gbnf(dialect: Dialect, answer: TextAnswer, marks: SpecialTokens) -> str:
    """Returns the GBNF of an answer with a grammar, from the end of the prompt or of the thinking on.

    Raises:
        ValueError: the answer has no grammar.
    """
    if answer.grammar is None:
        raise ValueError("free text has no grammar")
    row = " ".join(_parts(dialect, answer, marks))
    rules = {"root": row, **renamed(answer.grammar, "answer")} if row != "answer" else None
    return "".join(f"{name} ::= {body}\n" for name, body in rules.items()) if rules else answer.grammar


def _parts(dialect: Dialect, answer: TextAnswer, marks: SpecialTokens) -> Iterator[str]:
    """Yields the symbols of the answer.

    The closing marker is optional, because an end of generation serves as well.
    """
    text = dialect.text
    if answer.thinking:
        yield _BLANK
    if text and not answer.inside:
        skipped = (marker for marker in dialect.skipped if not answer.begun or answer.thinking)
        yield from (_maybe(marks.row(marker)) for marker in skipped)
        begun = answer.begun if text.open.startswith(answer.begun) else ""
        if begun and answer.thinking:
            yield _maybe(marks.row(begun))
        yield from map(str, marks.row(text.open[len(begun) :]))
    yield "answer"
    if text and text.close:
        yield _maybe(marks.row(text.close))


def _maybe(row: Symbols) -> str:
    """Returns a row as an optional group."""
    return f"({' '.join(map(str, row))})?" if row else '""'
