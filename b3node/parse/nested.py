"""Arguments as elements that are named after them, to any depth; what an element is, its schema says.

An element with elements in it is an object or an array, one with text is a bare value as between tags.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from b3node.dialects.dialect import NestedArguments
from b3node.dialects.kinds import Kinds, element, kinds, member
from b3node.dialects.outline import MARK
from b3node.parse.call import DEEPEST, Call, escaped
from b3node.parse.markers import Markers, spelled
from b3node.parse.source import Source, Step, Unlike
from b3node.parse.tagged import Guess, texts

_ENTER, _LEAVE = MARK + b"enter", MARK + b"leave"
_MOST_NAME: Final = 256
"""Bytes of an element's name."""
_EMPTY: Final = (("null", "null"), ("string", '""'), ("object", "{}"), ("array", "[]"))
"""What an element with nothing in it is, the first that its schema takes: templates write null as nothing."""


class Elements(NamedTuple):
    """The tags of a dialect. `turn` is what an argument begins with (True) or the end of them (False)."""

    turn: Markers[bool]
    inner: Markers[bytes]
    name: Markers[bool]
    item: str


@lru_cache(64)
def elements(form: NestedArguments, close: str, specials: tuple[str, ...]) -> Elements:
    """The tags of `form`; `close` is what ends the arguments."""
    enter, leave = spelled(form.lead + "<", specials), spelled(form.lead + "</", specials)
    return Elements(
        Markers([(enter, True), (spelled(close, specials), False)]),
        Markers([(enter, _ENTER), (leave, _LEAVE), *texts(specials)]),
        Markers([(spelled(">", ()), True)]),
        form.item,
    )


def nested_arguments(source: Source, call: Call, how: Elements, *, closed: bool) -> Step[None]:
    """All arguments, and what ends them; with `closed` nothing else may."""
    root = call.tool.parameters if call.tool else None
    reader = _Nested(source, call, how, root)
    before = "{"
    while found := (yield from source.take(how.turn)):
        name = yield from reader.name()
        call.write(f'{before}"{escaped(name)}":')
        before = ","
        yield from reader.content(name, member(root, root, name), 1)
    if found is None and closed:
        raise Unlike
    call.write("{}" if before == "{" else "}")


class _Nested:
    def __init__(self, source: Source, call: Call, how: Elements, root: object) -> None:
        self._source, self._call, self._how, self._root = source, call, how, root

    def name(self) -> Step[str]:
        said = yield from self._source.until(self._how.name, _MOST_NAME)
        return said.decode(errors="replace").strip()

    def content(self, name: str, schema: object, depth: int) -> Step[None]:
        """What an element has in it, and its closing tag."""
        if depth == DEEPEST:
            raise Unlike
        possible = kinds(schema, self._root)
        guess = Guess(self._call, possible)
        found = yield from self._source.text(self._how.inner, guess.feed)
        if found == _ENTER:
            if not guess.blank:
                raise Unlike
            yield from self._children(schema, possible, depth)
        elif guess.blank:
            self._call.write(next((text for kind, text in _EMPTY if kind in possible), '""'))
        else:
            guess.end()
        if (yield from self.name()) != name:
            raise Unlike

    def _children(self, schema: object, possible: Kinds, depth: int) -> Step[None]:
        """The elements in an element, up to the beginning of its closing tag."""
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
                raise Unlike
            name = yield from self.name()
            if array and name != self._how.item:
                raise Unlike
        self._call.write("]" if array else "}")

    def _lists(self, schema: object, possible: Kinds) -> bool:
        """Whether items are an array's elements, and not an object's member of that name."""
        if "object" not in possible or "array" not in possible:
            return "array" in possible
        return member(schema, self._root, self._how.item) is True
