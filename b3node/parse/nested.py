"""Reads arguments that are elements with their names, to any depth; the schema gives each its type.

An element with elements in it is an object or an array; one with text is a bare value, as between tags.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from b3node.contract.strict_json import MAX_LEVELS
from b3node.dialects.dialect import NestedArguments
from b3node.dialects.kinds import Kinds, element, kinds, member
from b3node.dialects.outline import MARK
from b3node.parse.call import OpenCall, escaped
from b3node.parse.markers import MarkerSet, spelled
from b3node.parse.source import MAX_NAME_BYTES, Mismatch, ReadSteps, Source
from b3node.parse.tagged import BareValue, texts

_ENTER, _LEAVE = MARK + b"enter", MARK + b"leave"
_EMPTY: Final = (("null", "null"), ("string", '""'), ("object", "{}"), ("array", "[]"))
"""JSON of an empty element: the first type that its schema allows. Templates write null as nothing."""


class Elements(NamedTuple):
    """The tags of a dialect. `turn` matches the beginning of an argument (True) or the end of all (False)."""

    turn: MarkerSet[bool]
    inner: MarkerSet[bytes]
    name: MarkerSet[bool]
    item: str


@lru_cache(64)
def elements(form: NestedArguments, close: str, specials: tuple[str, ...]) -> Elements:
    """Returns the tags of `form`; `close` ends the arguments."""
    enter, leave = spelled(form.lead + "<", specials), spelled(form.lead + "</", specials)
    return Elements(
        MarkerSet([(enter, True), (spelled(close, specials), False)]),
        MarkerSet([(enter, _ENTER), (leave, _LEAVE), *texts(specials)]),
        MarkerSet([(spelled(">", ()), True)]),
        form.item,
    )


def nested_arguments(source: Source, call: OpenCall, how: Elements, *, closed: bool) -> ReadSteps[None]:
    """Reads all arguments and their end; with `closed`, that end is required."""
    root = call.tool.parameters if call.tool else None
    reader = _NestedReader(source, call, how, root)
    before = "{"
    while found := (yield from source.take(how.turn)):
        name = yield from reader.name()
        call.write(f'{before}"{escaped(name)}":')
        before = ","
        yield from reader.content(name, member(root, root, name), 1)
    if found is None and closed:
        raise Mismatch
    call.write("{}" if before == "{" else "}")


class _NestedReader:
    def __init__(self, source: Source, call: OpenCall, how: Elements, root: object) -> None:
        self._source, self._call, self._how, self._root = source, call, how, root

    def name(self) -> ReadSteps[str]:
        said = yield from self._source.until(self._how.name, MAX_NAME_BYTES)
        return said.decode(errors="replace").strip()

    def content(self, name: str, schema: object, depth: int) -> ReadSteps[None]:
        """Reads the content of an element and its closing tag."""
        possible = kinds(schema, self._root)
        guess = BareValue(self._call, possible)
        found = yield from self._source.text(self._how.inner, guess.feed)
        if found == _ENTER:
            if not guess.blank or depth == MAX_LEVELS:
                raise Mismatch
            yield from self._children(schema, possible, depth)
        elif guess.blank:
            self._call.write(next((text for kind, text in _EMPTY if kind in possible), '""'))
        else:
            guess.end()
        if (yield from self.name()) != name:
            raise Mismatch

    def _children(self, schema: object, possible: Kinds, depth: int) -> ReadSteps[None]:
        """Reads the elements of an element, up to the beginning of its closing tag."""
        name = yield from self.name()
        array = name == self._how.item and self._lists(schema, possible)
        before = "[" if array else "{"
        while True:
            self._call.write(before if array else f'{before}"{escaped(name)}":')
            before = ","
            inner = element(schema, self._root) if array else member(schema, self._root, name)
            yield from self.content(name, inner, depth + 1)
            found = yield from self._source.take(self._how.inner)
            if found == _LEAVE:
                break
            if found != _ENTER:
                raise Mismatch
            name = yield from self.name()
            if array and name != self._how.item:
                raise Mismatch
        self._call.write("]" if array else "}")

    def _lists(self, schema: object, possible: Kinds) -> bool:
        """Returns whether item elements are those of an array, not an object's member of that name."""
        if "object" not in possible or "array" not in possible:
            return "array" in possible
        return member(schema, self._root, self._how.item) is True
