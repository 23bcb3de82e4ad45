"""Schema documents: subschemas by number, and the resolution of references.

Subschemas are interned by content, so that the thousand `{"type": "string"}` of a large schema are one
subschema. Annotations are not content. Number 0 is the schema `true`. References resolve within the document
only: by pointer, by anchor, or by the `$id` of an embedded resource. Nothing is ever fetched.

Drafts 4 to 2020-12 are read as they occur in the wild. With a `$schema` of draft 7 or older, siblings of
`$ref` are ignored, as those drafts say; everything else has the same meaning in all drafts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote, urldefrag, urljoin

import msgspec

from b3node.grammar.inexact import Inexact, child

JsonSchema = bool | dict[str, object]

ANNOTATIONS: Final = frozenset({
    "$comment", "$schema", "default", "deprecated", "description", "example", "examples", "readOnly", "title",
    "writeOnly",
})  # fmt: skip
"""Keywords that constrain nothing."""
MAPS: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
"""Keywords with subschemas by name."""
ONES: Final = (
    "additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames",
    "then", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
"""Keywords with one subschema."""
LISTS: Final = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
"""Keywords with a list of subschemas."""
_MAX_RANK_DEPTH: Final = 40
"""Levels down to which names of members are ranked."""
_MAPS, _LISTS = frozenset(MAPS), frozenset(LISTS)
_APPLICATORS: Final = frozenset({*MAPS, *ONES, *LISTS})
_IDENTIFIERS: Final = frozenset({"$anchor", "$dynamicAnchor", "$id", "id"})
"""Keywords that give a subschema an identifier."""
_LEGACY_DRAFT: Final = re.compile(r"draft-0?[34567]\b")


class Subschema(msgspec.Struct, frozen=True):
    """A subschema with its place in the document."""

    value: JsonSchema
    """The subschema itself, as parsed JSON."""
    pointer: str
    """JSON pointer to the place where it was found first."""
    base: str
    """URI of the resource around it, to which its references are relative."""
    scope: tuple[str, ...]
    """Dynamic scope: the resources around it, outermost first; empty unless dynamic anchors need it."""


class Document:
    """Subschemas and references of one schema.

    Args:
        root: the schema, as parsed JSON.

    Raises:
        Inexact: the root is no schema.
    """

    def __init__(self, root: object) -> None:
        self._nodes: list[Subschema] = [Subschema(True, "", "", ())]
        self._by_key: dict[object, int] = {}
        self._fingerprints: dict[object, int] = {}
        self._fingerprint_of: dict[int, tuple[int, object]] = {}
        self._resources: dict[str, tuple[object, str]] = {"": (root, "")}
        self._anchors: dict[tuple[str, str], tuple[object, str]] = {}
        self._dynamic: set[tuple[str, str]] = set()
        self._refs: dict[tuple[str, str, tuple[str, ...]], int] = {}
        self.keywords: set[str] = set()
        self.rank: dict[str, int] = {}
        schema = schema_at(root, "")
        dialect = schema.get("$schema") if isinstance(schema, dict) else None
        self.legacy: Final = isinstance(dialect, str) and _LEGACY_DRAFT.search(dialect) is not None
        self._root = schema
        if self._scan_keywords():
            self._scan(schema, "", "")
        else:
            self._name(schema, "", "")
        names = [name for _, name in self._dynamic]
        self._scoped = len(names) > len(set(names))
        self.root: Final = self.intern(schema, "", "")
        if isinstance(schema, dict):
            self._rank_names(schema, _MAX_RANK_DEPTH)

    # -------------------------------------------------------------------------------- resources
    def _scan_keywords(self) -> bool:
        """Collects the keywords of the document; returns whether a subschema has an identifier."""
        todo: list[object] = [self._root]
        named = 0
        while todo:
            value = todo.pop()
            if isinstance(value, dict):
                self.keywords.update(value)
                named += not _IDENTIFIERS.isdisjoint(value)
                todo += subschemas(value)
        return named > (isinstance(self._root, dict) and not _IDENTIFIERS.isdisjoint(self._root))

    def _scan(self, value: object, pointer: str, base: str) -> None:
        """Registers every `$id` and anchor of the document, at the places where schemas stand."""
        if isinstance(value, dict):
            base = self._name(value, pointer, base)
            for each, where in located_subschemas(value, pointer):
                self._scan(each, where, base)

    def _name(self, value: object, pointer: str, base: str) -> str:
        """Registers the identifiers of a subschema; returns the resource around its own subschemas."""
        if not isinstance(value, dict):
            return base
        base = self._enter_resource(value, pointer, base)
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(name := value.get(key), str):
                self._anchors[base, name] = (value, pointer)
                if key == "$dynamicAnchor":
                    self._dynamic.add((base, name))
        return base

    def _rank_names(self, value: dict[str, object] | list[object], depth: int) -> None:
        """Ranks member names by the order in which the document declares them."""
        if isinstance(value, dict) and isinstance(table := value.get("properties"), dict):
            for name in table:
                self.rank.setdefault(name, len(self.rank))
        below = value.values() if isinstance(value, dict) else value
        for each in below if depth > 1 else ():
            if isinstance(each, dict | list):
                self._rank_names(each, depth - 1)

    def _enter_resource(self, value: dict[str, object], pointer: str, base: str) -> str:
        """Registers the `$id` of a subschema, if it has one; returns the resource that it is in."""
        name = value.get("$id", value.get("id"))
        if not isinstance(name, str) or (self.legacy and "$ref" in value):
            return base
        url, fragment = urldefrag(_join(base, name))
        if fragment and (not name.partition("#")[0] or url == base):
            self._anchors[base, fragment] = (value, pointer)
            return base
        self._resources.setdefault(url, (value, pointer))
        return url

    def _base_within(self, value: object, base: str) -> str:
        """Returns the resource of a value: its own, if its `$id` is registered, else `base`."""
        if not isinstance(value, dict) or ("$id" not in value and "id" not in value):
            return base
        name = value.get("$id", value.get("id"))
        if not isinstance(name, str) or (self.legacy and "$ref" in value):
            return base
        url = urldefrag(_join(base, name))[0]
        return url if url in self._resources else base

    # ------------------------------------------------------------------------------------ nodes
    def __getitem__(self, number: int) -> Subschema:
        """Returns the subschema with a number."""
        return self._nodes[number]

    def intern(self, value: JsonSchema, pointer: str, base: str, scope: tuple[str, ...] = ()) -> int:
        """Returns the number of a subschema, the same for equal ones; that of `true` is 0.

        Args:
            value: the subschema.
            pointer: its place.
            base: the resource around it; its own `$id` is taken into account here.
            scope: the dynamic scope around it.
        """
        if value is True:
            return 0
        base, scope = self._around(value, base, scope)
        key = (self._fingerprint(value), base, scope)
        number = self._by_key.get(key)
        if number is None:
            number = self._by_key[key] = len(self._nodes)
            self._nodes.append(Subschema(value, pointer, base, scope))
        return number

    def _around(self, value: JsonSchema, base: str, scope: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Returns the resource and the scope of a subschema, which may have its own `$id`."""
        base = self._base_within(value, base)
        return base, (*scope, base) if self._scoped and base not in scope else scope

    def below(self, parent: int, value: object, *path: str | int) -> int:
        """Returns the number of a subschema at `path` below the subschema `parent`.

        Raises:
            Inexact: the value there is no schema.
        """
        node = self._nodes[parent]
        if isinstance(value, bool | dict):
            base, scope = self._around(value, node.base, node.scope)
            number = 0 if value is True else self._by_key.get((self._fingerprint(value), base, scope))
            if number is not None:  # most are known, and a lookup is cheaper than a pointer
                return number
        pointer = child(node.pointer, *path)
        return self.intern(schema_at(value, pointer), pointer, node.base, node.scope)

    def _fingerprint(self, value: object) -> int:
        """Returns a number that is the same for equal contents; annotations are ignored."""
        found = self._fingerprint_of.get(id(value))
        if found is not None:
            return found[0]
        key: object
        if isinstance(value, dict):
            key = tuple(
                (
                    k,
                    msgspec.json.encode(v)
                    if k in {"const", "enum"} and not isinstance(v, bool)
                    else self._fingerprint(v),
                )
                for k, v in value.items()
                if not (k in ANNOTATIONS and not isinstance(v, dict | bool))
            )
        elif isinstance(value, list):
            key = ("", *map(self._fingerprint, value))
        else:
            key = (type(value).__name__, value)
        number = self._fingerprints.setdefault(key, len(self._fingerprints))
        if isinstance(value, dict | list):
            self._fingerprint_of[id(value)] = number, value  # kept, so that no other value gets its identity
        return number

    # ------------------------------------------------------------------------------- references
    def resolve(self, number: int, reference: object, *, dynamic: bool = False) -> int:
        """Returns the number of the target of a `$ref` (or `$dynamicRef`) of the subschema `number`.

        Raises:
            Inexact: the reference leaves the document or points to nothing.
        """
        node = self._nodes[number]
        pointer = child(node.pointer, "$dynamicRef" if dynamic else "$ref")
        if not isinstance(reference, str):
            raise Inexact(pointer, "a reference is a string")
        key = (node.base, reference + "!" * dynamic, node.scope)
        if key not in self._refs:
            url, fragment = urldefrag(_join(node.base, reference))
            base = self._dynamic_base(node, url, fragment) if dynamic else url
            value, where, inner = self._find(base, unquote(fragment), pointer)
            self._refs[key] = self.intern(schema_at(value, where), where, inner, node.scope)
        return self._refs[key]

    def _dynamic_base(self, node: Subschema, url: str, anchor: str) -> str:
        """Returns the outermost resource of the dynamic scope with a dynamic anchor; else `url`."""
        if (url, anchor) in self._dynamic:
            for base in node.scope:
                if (base, anchor) in self._dynamic:
                    return base
        return url

    def _find(self, url: str, fragment: str, pointer: str) -> tuple[object, str, str]:
        if (url, fragment) in self._anchors:
            value, where = self._anchors[url, fragment]
            return value, where, url
        if url not in self._resources:
            raise Inexact(pointer, "the reference leaves the document, and nothing is fetched")
        starts = [(*self._resources[url], url), (self._root, "", "")]
        if fragment and not fragment.startswith("/"):
            raise Inexact(pointer, "the reference points to nothing")
        for value, where, base in starts:
            found = self._walk(value, where, base, fragment)
            if found is not None:
                return found
        raise Inexact(pointer, "the reference points to nothing")

    def _walk(self, value: object, where: str, base: str, fragment: str) -> tuple[object, str, str] | None:
        for part in fragment.split("/")[1:]:
            base = self._base_within(value, base)
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and name in value:
                value = value[name]
            elif isinstance(value, list) and name.isdigit() and len(name) < 9 and int(name) < len(value):
                value = value[int(name)]
            else:
                return None
            where = child(where, name)
        return value, where, base


def schema_at(value: object, pointer: str) -> JsonSchema:
    """Returns `value` if it is a schema; raises `Inexact` otherwise."""
    if isinstance(value, bool | dict):
        return value
    raise Inexact(pointer, "a schema is an object or a boolean")


def subschemas(value: dict[str, object]) -> list[object]:
    """Returns the direct subschemas of a schema."""
    out = list[object]()
    for key, each in value.items():
        if key in _APPLICATORS:
            if isinstance(each, dict):
                out += each.values() if key in _MAPS else (each,)
            elif isinstance(each, list) and key in _LISTS:
                out += each
    return out


def located_subschemas(value: dict[str, object], pointer: str) -> Iterator[tuple[object, str]]:
    """Yields the direct subschemas of a schema, each with its pointer."""
    for key in MAPS:
        if isinstance(table := value.get(key), dict):
            for name, below in table.items():
                yield below, child(pointer, key, name)
    for key in ONES:
        if isinstance(value.get(key), dict):
            yield value[key], child(pointer, key)
    for key in LISTS:
        if isinstance(row := value.get(key), list):
            for i, below in enumerate(row):
                yield below, child(pointer, key, i)


def _join(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference) if not reference.startswith("#") else urldefrag(base)[0] + reference
    except ValueError:
        return "invalid:" + reference
