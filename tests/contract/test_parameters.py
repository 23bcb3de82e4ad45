"""The table of parameters is complete and consistent."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from b3node.api.request_schema import REQUEST_SCHEMAS
from b3node.contract.decode import decode_request
from b3node.contract.fields import Fields
from b3node.contract.parameters import BY_NAME, ITEM_COMPONENTS, PARAMETERS, READ_ORDER, Support, numbers
from b3node.contract.request import Bounds, Request
from b3node.errors import Refusal
from tests.contract.bodies import FULL, answer, encoded


def test_each_parameter_has_one_row_with_one_line_of_doc() -> None:
    """Names are unique; the doc is a short sentence; required ones are the two known."""
    assert len(BY_NAME) == len(PARAMETERS)
    for parameter in PARAMETERS:
        assert "\n" not in parameter.doc
        assert parameter.doc.endswith(".")
    assert {p.name for p in PARAMETERS if p.is_required} == {"model", "input"}


def test_values_are_judged_by_support_then_by_the_contract_page() -> None:
    """Effective parameters first, then ignored ones, then labels."""
    assert [p.name for p in READ_ORDER if p.support is not Support.REFUSED] == [
        *("model", "input", "instructions", "max_output_tokens", "temperature", "top_p"),
        *("tools", "tool_choice", "parallel_tool_calls", "text", "reasoning", "stream"),
        *("stream_options", "store", "truncation", "background", "include"),
        *("metadata", "user", "safety_identifier", "prompt_cache_key", "service_tier"),
    ]


@pytest.mark.parametrize(
    ("parameters", "param"),
    [
        ({"metadata": 1, "truncation": 1}, "truncation"),
        ({"service_tier": 1, "user": 1}, "user"),
        ({"tool_choice": "required", "parallel_tool_calls": 1}, "tool_choice"),
        ({"stream": 1, "top_p": 2}, "top_p"),
    ],
)
def test_the_first_fault_in_that_order_is_reported(parameters: dict[str, Any], param: str) -> None:
    """The order of the body's members does not matter."""
    assert answer(encoded(**parameters)) == ("invalid_request", param)


def test_every_field_of_a_request_is_read() -> None:
    """A body that uses every parameter sets every field to something else than its default."""
    request = decode_request(encoded(**FULL))
    for field in msgspec.structs.fields(Request):
        assert getattr(request, field.name) not in (field.default, None, ())


def test_the_items_that_the_table_names_are_published() -> None:
    """Each component of `input` is one of the document's."""
    assert set(ITEM_COMPONENTS) <= set(REQUEST_SCHEMAS)


class Sampled(msgspec.Struct):
    min_p: Annotated[float | None, Bounds(0, 1, "Least probability.")] = None
    min_keep: Annotated[int | None, Bounds(1, 9, "Least number of tokens.")] = None
    label: str | None = None


def test_a_number_is_defined_by_its_field_alone() -> None:
    """An annotated field makes the row that reads and publishes it; other fields make none."""
    min_p, min_keep = numbers(Sampled)
    assert (min_p.name, min_p.doc) == ("min_p", "Least probability.")
    assert min_p.schema == {"type": "number", "minimum": 0, "maximum": 1}
    assert min_p.read(Fields({"min_p": 1}), {}) == {"min_p": 1.0}
    assert min_keep.schema == {"type": "integer", "minimum": 1, "maximum": 9}
    with pytest.raises(Refusal, match="min_keep must be from 1 to 9"):
        min_keep.read(Fields({"min_keep": 10}), {})
