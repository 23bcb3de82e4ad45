"""Validation of a client's schema against the metaschema of the draft that it names.

The compiler reads drafts as they occur in the wild and ignores many faults, but a client needs an error if,
say, its `minimum` is a string. Only the form is checked: no reference is followed and no pattern run.
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
"""The number or year of each draft (see `well_formed`)."""
_VALIDATORS: Final = {
    4: "Draft4Validator",
    6: "Draft6Validator",
    7: "Draft7Validator",
    2019: "Draft201909Validator",
    2020: "Draft202012Validator",
}
LIBRARY: Final = "jsonschema"
"""Imported at first use, because few schemas need it and the import would delay the start. A process that
must not wait at that point imports it earlier."""


def draft_of(schema: dict[str, object]) -> Any:
    """Returns the validator class of the draft that a schema names; of 2020-12 if it names no known one."""
    return getattr(import_module(LIBRARY), _VALIDATORS[_year(schema)])


def _year(schema: dict[str, object]) -> int:
    dialect = schema.get("$schema")
    return _DRAFTS.get(dialect.rstrip("#") if isinstance(dialect, str) else "", 2020)


def check_schema(
    schema: object, *, param: str | None = "text.format.schema", limits: SchemaLimits = LIMITS
) -> None:
    """Checks that `schema` is valid in the draft that its `$schema` names (2020-12 if it names no known one).

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
