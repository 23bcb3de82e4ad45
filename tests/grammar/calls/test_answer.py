"""Answers within the markers that a dialect puts around its text."""

from __future__ import annotations

import pytest

from b3node.dialects.dialect import PLAIN, Dialect, Span
from b3node.grammar import SpecialTokens, TextAnswer
from b3node.grammar.calls.answer import answer_gbnf

HARMONY = Dialect(text=Span("<|c|>final<|m|>", "<|e|>"), skipped=("<|s|>assistant",))
JSON = 'root ::= "1" r1\nr1 ::= "2"\n'
MARKS = SpecialTokens({"<|c|>": 4, "<|m|>": 5, "<|e|>": 6, "<|s|>": 7})
NONE = SpecialTokens({})


@pytest.mark.parametrize(
    ("dialect", "answer", "marks", "root"),
    [
        (PLAIN, TextAnswer(JSON), NONE, '"1" r1'),
        (PLAIN, TextAnswer(JSON, thinking=True), NONE, r"[\n]{0,2} answer"),
        (HARMONY, TextAnswer(JSON, inside=True), NONE, 'answer ("<|e|>")?'),
        (HARMONY, TextAnswer(JSON, begun="<|s|>assistant"), MARKS, '<[4]> "final" <[5]> answer (<[6]>)?'),
        (
            HARMONY,
            TextAnswer(JSON, thinking=True),
            MARKS,
            r'[\n]{0,2} (<[7]> "assistant")? <[4]> "final" <[5]> answer (<[6]>)?',
        ),
        (Dialect(text=Span(">>>all\n", "")), TextAnswer(JSON, begun=">>>"), NONE, '"all\\x0A" answer'),
    ],
)
def test_an_answer_stands_within_its_markers(dialect, answer, marks, root) -> None:
    """Text that the prompt already wrote is left out; line ends and heads may come after thinking."""
    assert answer_gbnf(dialect, answer, marks).splitlines()[0] == f"root ::= {root}"


def test_free_text_has_no_frame() -> None:
    """Free text has no grammar."""
    with pytest.raises(ValueError, match="no grammar"):
        answer_gbnf(PLAIN, TextAnswer(), NONE)
