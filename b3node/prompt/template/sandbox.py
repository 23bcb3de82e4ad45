"""The Jinja environment that chat templates are written for, as a sandbox.

Templates come from the operator's model file and expect the environment of Hugging Face's transformers:
blocks trimmed, `break` and `continue`, `{% generation %}`, `raise_exception`, `strftime_now`, and a `tojson`
that writes plain JSON where Jinja's own escapes for HTML. The sandbox is Jinja's immutable one with one
exception: a template may change a list, because some build queues with `append` and `pop`; every value it
can reach is made anew for each rendering. Time and memory are bounded by the process that renders, output by
the caller.

A template that looks for a single character in a text (`'<' in value`) decides whether to quote it, so it
finds a client's too. One that looks for a word would be steered by it, and finds none (see `provenance`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from b3node.prompt.tokens.provenance import client, client_value, plain

_BEYOND_ASCII: Final = re.compile("[\x7f-\U000fffff\U00100080-\U0010ffff]")
_LIST_CHANGES: Final = frozenset({"append", "extend", "insert", "pop"})


class RaisedError(TemplateError):
    """A template called `raise_exception`: it does not take this conversation."""


class _GenerationTag(Extension):
    """Jinja tag `{% generation %}...{% endgeneration %}`, which marks text for training; no effect here."""

    tags = {"generation"}  # noqa: RUF012 - declared as an instance attribute by Jinja

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class Sandbox(ImmutableSandboxedEnvironment):
    """An environment for one chat template; see the module's essay."""

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _GenerationTag]
        )
        self.filters |= {
            "tojson": to_json,
            "from_json": from_json,
            "dictsort": sorted_items,
            "safe": str,
            "holds": holds,
        }
        self.globals = {
            "range": self.globals["range"],
            "namespace": self.globals["namespace"],
            "dict": _new_dict,
            "joiner": self.globals["joiner"],
            "cycler": self.globals["cycler"],
            "raise_exception": raise_exception,
        }

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """Returns the template's tree, in which looking for a single character is a call of `holds`."""
        tree = super()._parse(source, name, filename)
        for compare in tree.find_all(nodes.Compare):
            needle = compare.expr
            if isinstance(needle, nodes.Const) and isinstance(needle.value, str) and len(needle.value) == 1:
                compare.ops = [_holding(needle.value, operand) for operand in compare.ops]
        return tree

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Returns Jinja's attribute, by a shorter way for those that were put into a namespace.

        Each of Jinja's own checks asks for the namespace's class, which costs a call in Python: half a second
        in a template that looks back from each of 340 messages.
        """
        if type(obj) is not Namespace or attribute.startswith("_"):
            return super().getattr(obj, attribute)
        try:
            return getattr(obj, attribute)
        except AttributeError:
            return self.undefined(obj=obj, name=attribute)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Allows everything that Jinja allows, and changes to lists."""
        if isinstance(obj, list) and attr in _LIST_CHANGES:
            return True
        return super().is_safe_attribute(obj, attr, value)


def holds(value: object, char: str) -> object:
    """Returns the container to search for `char`: `value`, or its plain text if it is text without `char`."""
    return plain(value) if isinstance(value, str) and char not in value else value


def to_json(
    value: object,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    *,
    ensure_ascii: bool = False,
    sort_keys: bool = False,
) -> str:
    """Returns JSON text as Python's `json.dumps` spaces it, beyond ASCII as it is unless `ensure_ascii`."""
    if sort_keys:
        value = _sorted(value)
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators, default=list)
    return _BEYOND_ASCII.sub(_escaped, text) if ensure_ascii else text


def from_json(text: str) -> object:
    """Returns the value of JSON text, as a client's if any of the text is.

    Raises:
        ValueError: it is no JSON.
    """
    value = json.loads(plain(text))
    return value if plain(text) == text else client_value(value)


def sorted_items(
    value: Mapping[str, Any],
    case_sensitive: bool = False,  # noqa: FBT001, FBT002 - Jinja's own signature, which templates call
    by: str = "key",
    reverse: bool = False,  # noqa: FBT001, FBT002 - the same
) -> list[tuple[str, Any]]:
    """Returns the items as Jinja's `dictsort` does, a client's names in the order of their plain text."""
    position = {"key": 0, "value": 1}[by]

    def rank(item: tuple[str, Any]) -> Any:
        ranked = item[position]
        if not isinstance(ranked, str):
            return ranked
        return plain(ranked) if case_sensitive else plain(ranked).lower()

    return sorted(value.items(), key=rank, reverse=reverse)


def raise_exception(message: object = "") -> str:
    """Raises `RaisedError`, always: templates call it to refuse a conversation."""
    raise RaisedError(str(message))


def _holding(char: str, operand: nodes.Operand) -> nodes.Operand:
    if not operand.op.endswith("in"):  # only `in` and its negation end so
        return operand
    seen = nodes.Filter(operand.expr, "holds", [nodes.Const(char)], [], None, None)
    return nodes.Operand(operand.op, seen, lineno=operand.lineno)


def _new_dict(*pairs: Any, **members: Any) -> dict[str, Any]:
    return dict(*pairs, **members)


def _escaped(match: re.Match[str]) -> str:
    """Returns the escape of one character, still the client's if the character was."""
    written = json.dumps(plain(match[0]))[1:-1]
    return client(written) if match[0] >= "\U00100000" else written


def _sorted(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _sorted(member) for name, member in sorted_items(value, case_sensitive=True)}
    if isinstance(value, list | tuple):
        return [_sorted(element) for element in value]
    return value
