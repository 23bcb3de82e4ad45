"""How a model family spells thinking, the answer and calls, as data.

Three things are made from a `Dialect`: the parser of the model's output (`parse`), the grammar of its calls
(`grammar`), and the expectation of its template's output (`prompt`). Nothing here knows a model's name.

Literals are texts as a template writes them, special tokens by their text. White space at their edges matters
to the grammar alone: a parser takes anything between two markers.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Span(msgspec.Struct, frozen=True):
    """A part between two markers; either may be "", for a beginning or an end without a marker."""

    open: str
    close: str


class Hole(msgspec.Struct, frozen=True, tag="hole"):
    """A gap that the parser drops: a call's id, or its index in the turn, from `first` on."""

    kind: Literal["id", "index"]
    first: int = 0


Pattern = tuple[str | Hole, ...]
"""Literals with holes between them; no two holes meet."""


class JsonArguments(msgspec.Struct, frozen=True, tag="json"):
    """Arguments that are one JSON object."""


TypeMark = Literal["", "flag", "type"]
"""Mark of a tagged value's type: none, whether it is a string, or the name of its JSON type."""


class TaggedArguments(msgspec.Struct, frozen=True, tag="tagged"):
    """Arguments one by one: `open` NAME `named` VALUE `close`, without a meaningful separator.

    A string value is bare; every other value is JSON, or its Python spelling (`python`). With `kind`, the
    value's type follows `named` and ends with `kind_close`: "flag" writes true for strings and false for the
    rest, "type" writes the name of the JSON type.
    """

    open: str
    named: str
    close: str
    kind: TypeMark = ""
    kind_close: str = ""
    python: bool = False


class KeywordArguments(msgspec.Struct, frozen=True, tag="keyword"):
    """Arguments as Python writes a call's: `(NAME=VALUE, NAME=VALUE)`, values as Python literals."""


class QuotedArguments(msgspec.Struct, frozen=True, tag="quoted"):
    """Arguments like a JSON object with bare names; strings are bare between two `quote`s."""

    quote: str


class NestedArguments(msgspec.Struct, frozen=True, tag="nested"):
    """Arguments as elements to any depth: `lead`<NAME>VALUE`lead`</NAME>; elements of a list are `item`s."""

    lead: str
    item: str


Arguments = JsonArguments | TaggedArguments | KeywordArguments | QuotedArguments | NestedArguments


class ObjectBody(msgspec.Struct, frozen=True, tag="object"):
    """A call as a JSON object with the function's name and its arguments as members.

    With `before` or `after`, a member of that name with an id, which is dropped, precedes or follows the two.
    """

    name: str = "name"
    arguments: str = "arguments"
    before: str = ""
    after: str = ""


class KeyedBody(msgspec.Struct, frozen=True, tag="keyed"):
    """A call as a JSON object with one member: the function's name, with its arguments as value."""


class NamedBody(msgspec.Struct, frozen=True, tag="named"):
    """A call as the function's name, `between`, and its arguments."""

    between: Pattern
    arguments: Arguments


Body = ObjectBody | KeyedBody | NamedBody


class Calls(msgspec.Struct, frozen=True):
    """The spelling of a turn's calls.

    `section.open`, then `open` BODY `close` for each call, separated by `between`, then `section.close`.
    `open` and `section.open` are not both empty, unless `bare`.

    `bare` calls have no marker: an answer that begins with the body of a call is a call. With `alone`, a turn
    has at most one call.
    """

    body: Body
    section: Span = Span("", "")
    open: Pattern = ()
    close: str = ""
    between: str = ""
    bare: bool = False
    alone: bool = False


class Dialect(msgspec.Struct, frozen=True):
    """The spelling of thinking, text and calls.

    `thinking` is the span of thinking, None where the family has none. `text` is the span of the answer's
    text, None where nothing marks it; `skipped` are markers between the parts of a turn that belong to none
    of them (`<|start|>assistant`).

    `also` are other spellings of calls that the family writes, read like `calls`. A model is made to write
    `calls` only; a call that it begins in another spelling goes on in that one.
    """

    thinking: Span | None = None
    text: Span | None = None
    calls: Calls | None = None
    also: tuple[Calls, ...] = ()
    skipped: tuple[str, ...] = ()


PLAIN = Dialect()
"""The dialect of a model whose whole output is its answer."""

GENERIC = Calls(ObjectBody(), open=("<tool_call>\n",), close="\n</tool_call>", between="\n", alone=True)
"""Spelling of calls for a model whose template knows no functions; the prompt explains it.

The grammar enforces it. One call at a time: such models were not trained to call, and a small one repeats
its call as often as allowed.
"""
