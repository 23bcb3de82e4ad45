"""Whether a client's schema is a schema at all, by the metaschema of the draft that it names.

The compiler reads drafts as they occur in the wild and forgives much; a client is better served by being told
that `minimum` is no string. References are not followed and patterns not run: this looks at the form alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from b3node.errors import Refusal
from b3node.grammar.inexact import Inexact, child
from b3node.grammar.schema.limits import LIMITS, SchemaLimits, check_size, refusal
from b3node.grammar.schema.well_formed import is_sound

_DRAFTS: Final = {
    "http://json-schema.org/draft-04/schema": 4,
    "http://json-schema.org/draft-06/schema": 6,
    "http://json-schema.org/draft-07/schema": 7,
    "https://json-schema.org/draft/2019-09/schema": 2019,
    "https://json-schema.org/draft/2020-12/schema": 2020,
}
"""The number or year of each draft (see `forms`)."""
_VALIDATORS: Final = {
    4: "Draft4Validator",
    6: "Draft6Validator",
    7: "Draft7Validator",
    2019: "Draft201909Validator",
    2020: "Draft202012Validator",
}
LIBRARY: Final = "jsonschema"
"""Imported when it is first asked, which few schemas make necessary, so that nobody's start waits for it; who would not
wait then either imports it before."""


def draft_of(schema: dict[str, object]) -> Any:
    """The validator class of the draft that a schema names; of 2020-12 when it names none that is known."""
    return getattr(import_module(LIBRARY), _VALIDATORS[_year(schema)])


def _year(schema: dict[str, object]) -> int:
    dialect = schema.get("$schema")
    return _DRAFTS.get(dialect.rstrip("#") if isinstance(dialect, str) else "", 2020)


def check_schema(
    schema: object, *, param: str | None = "text.format.schema", limits: SchemaLimits = LIMITS
) -> None:
    """Nothing, when `schema` is a schema of the draft that its `$schema` names (2020-12 when it names none we know).

    Raises:
        Refusal: `invalid_request` with the place of the first fault, or of a bound that is passed.
    """
    try:
        check_size(schema, limits)
    except Inexact as error:
        raise refusal(error, param) from None
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise Refusal("invalid_request", "The schema is no JSON Schema: it must be an object.", param=param)
    if is_sound(schema, _year(schema)):
        return
    validator = draft_of(schema)
    found = next(validator(validator.META_SCHEMA).iter_errors(schema), None)
    if found is not None:
        place = "#" + child("", *found.absolute_path)
        message = f"The schema is no JSON Schema at {place}: the value of this keyword has the wrong form."
        raise Refusal("invalid_request", message, param=param)
