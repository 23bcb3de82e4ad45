"""Writes the keyword table of grammars/README.md out of a run of the schema benchmark.

usage: grammar_coverage.py SCHEMAS.jsonl.xz RESULTS.json

SCHEMAS has a JSON object a line (name, schema, tests); RESULTS is what the benchmark's harness saved for this
compiler (rows with group, valid, kind). A schema counts for a keyword when the keyword occurs anywhere in it;
it is right when every instance was judged rightly, over or under when an invalid one was accepted or a valid
one refused by its grammar, refused when it has no grammar.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final

README: Final = Path(__file__).parents[1] / "grammars" / "README.md"
START: Final = "<!-- table: begin -->\n"
END: Final = "<!-- table: end -->\n"

HANDLED: Final = {
    "type": "splits every constraint by type; `integer` has one spelling, without a fraction",
    "enum": "filtered by all other keywords, then one minimal automaton (strings) or literals",
    "const": "as `enum`",
    "properties": "slots of the object automaton, in order",
    "required": "slots that cannot be skipped; undeclared names follow the declared ones",
    "additionalProperties": "names in the complement of all declared names and patterns",
    "patternProperties": "other names cut into the classes that the patterns make; each class has all its schemas",
    "propertyNames": "name classes cut by the language of the schema",
    "minProperties": "counted in the automaton; up to 8 undeclared members are made to differ (any 2, most 3, more in order)",
    "maxProperties": "counted in the automaton",
    "dependentRequired": "one bit each",
    "dependentSchemas": "absent, or present and the schema",
    "dependencies": "as the two above",
    "items": "constraint on all later items; list-valued as `prefixItems`",
    "prefixItems": "constraints by index",
    "additionalItems": "as `items` after a list",
    "minItems": "counted repetition, in blocks above 512",
    "maxItems": "counted repetition, in blocks above 512",
    "contains": "a bit, or a counter with `minContains` and `maxContains`",
    "uniqueItems": "sets of used values, for at most 10 values; else refused",
    "minLength": "counted repetition, or product with the pattern",
    "maxLength": "counted repetition, or product with the pattern; narrowed where the product is too large",
    "pattern": "ECMA-262, searching; lookahead by intersection; no back-references, lookbehind, word boundaries",
    "format": "19 formats as automata (formats.gbnf), some narrowed; unknown ones are not enforced",
    "minimum": "decimal automaton",
    "maximum": "decimal automaton",
    "exclusiveMinimum": "decimal automaton; boolean form as well",
    "exclusiveMaximum": "decimal automaton; boolean form as well",
    "multipleOf": "remainder automaton up to 4,096 (times any power of ten)",
    "allOf": "constraints together",
    "anyOf": "alternatives, or one clause",
    "oneOf": "each branch without those others that could hold with it",
    "not": "complement",
    "if": "the condition and `then`, or its complement and `else`",
    "$ref": "within the document: pointers, anchors, embedded `$id`; recursion is recursion of rules",
    "$dynamicRef": "resolved by the dynamic scope",
    "unevaluatedProperties": "names and items evaluated on each way to conform are tracked",
    "unevaluatedItems": "as above, with `contains`",
}


def main() -> None:
    """Rewrites the table."""
    with lzma.open(sys.argv[1], "rt", encoding="utf-8") as lines:
        schemas = [json.loads(line) for line in lines]
    rows = json.loads(Path(sys.argv[2]).read_text())["rows"]
    verdicts = _verdicts(rows)
    table = _table(schemas, verdicts)
    text = README.read_text(encoding="utf-8")
    head, tail = text.split(START)[0], text.split(END)[1]
    README.write_text(head + START + table + END + tail, encoding="utf-8")


def _verdicts(rows: list[dict[str, Any]]) -> dict[str, str]:
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        kinds[row["group"]].add(row["kind"])
    return {name: _verdict(found) for name, found in kinds.items()}


def _verdict(kinds: set[str]) -> str:
    if kinds & {"err_valid", "err_invalid", "timeout", "crash", "schema_err"}:
        return "refused"
    return "over" if "over" in kinds else "under" if "under" in kinds else "right"


def _table(schemas: list[dict[str, Any]], verdicts: dict[str, str]) -> str:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for each in schemas:
        for keyword in _keys(each["schema"]):
            counts[keyword][verdicts[each["name"]]] += 1
    lines = ["| keyword | how | schemas | right | over | under | refused |", "|---|---|---|---|---|---|---|"]
    for keyword, how in HANDLED.items():
        found = counts[keyword]
        share = 100 * found.total() / len(schemas)
        numbers = " | ".join(str(found[kind]) for kind in ("right", "over", "under", "refused"))
        lines.append(f"| `{keyword}` | {how} | {share:.1f} % | {numbers} |")
    total = Counter(verdicts.values())
    numbers = " | ".join(f"**{total[kind]}**" for kind in ("right", "over", "under", "refused"))
    lines.append(f"| **all {len(schemas)} schemas** | | | {numbers} |")
    return "\n".join(lines) + "\n"


def _keys(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*(_keys(below) for below in value.values()))
    return set().union(*(_keys(below) for below in value)) if isinstance(value, list) else set()


if __name__ == "__main__":
    main()
