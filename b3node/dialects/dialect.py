"""What a model family writes besides plain text: where a thought stands, where the answer, and how a call is spelled.

A `Dialect` is data, and three things are made from the same data: the parser of what a model writes (`parse`), the
grammar that it is kept to while it calls (`grammar`), and what a template must have written for it to be that
dialect (`prompt`). Nothing here knows a model's name.

Literals are texts as a template writes them, special tokens by their text. White space at their edges matters to
the grammar alone: a parser takes whatever stands between two markers.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Span(msgspec.Struct, frozen=True):
    """What stands between two markers; either may be "", for a beginning or an end that nothing marks."""

    open: str
    close: str


class Hole(msgspec.Struct, frozen=True, tag="hole"):
    """What a model fills in and nobody needs: a call's id, or its index in the turn, from `first` on."""

    kind: Literal["id", "index"]
    first: int = 0


Pattern = tuple[str | Hole, ...]
"""Literals with holes between them; no two holes meet."""


class JsonArguments(msgspec.Struct, frozen=True, tag="json"):
    """Arguments that are one JSON object."""


class TaggedArguments(msgspec.Struct, frozen=True, tag="tagged"):
    """Arguments one by one: `open` NAME `named` VALUE `close`, nothing between two of them that means something.

    A value that is a string stands there bare; everything else is JSON, or Python's spelling of it (`python`).
    With `kind`, the value's kind stands behind `named` and is followed by `kind_close`: "flag" writes true for
    strings and false for the rest, "type" writes the JSON type's name.
    """

    open: str
    named: str
    close: str
    kind: Literal["", "flag", "type"] = ""
    kind_close: str = ""
    python: bool = False


class KeywordArguments(msgspec.Struct, frozen=True, tag="keyword"):
    """Arguments as Python writes a call's: `(NAME=VALUE, NAME=VALUE)`, values as Python literals."""


class QuotedArguments(msgspec.Struct, frozen=True, tag="quoted"):
    """Arguments like a JSON object without quotes around names; strings stand bare between two `quote`s."""

    quote: str


class NestedArguments(msgspec.Struct, frozen=True, tag="nested"):
    """Arguments as elements named after them, to any depth: `lead`<NAME>VALUE`lead`</NAME>; list elements are `item`s."""

    lead: str
    item: str


Arguments = JsonArguments | TaggedArguments | KeywordArguments | QuotedArguments | NestedArguments


class ObjectBody(msgspec.Struct, frozen=True, tag="object"):
    """A call as a JSON object that has the function's name and its arguments as members.

    With `before` or `after` it has a member of that name with an id in front of the two or behind them, of which
    nothing is kept.
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
    """How the calls of a turn are spelled.

    `section.open`, then `open` BODY `close` for each with `between` in the middle, then `section.close`. `open` and
    `section.open` are not both empty, unless `bare`.

    `bare` calls have no marker: an answer that begins with a call's body is a call. With `alone`, a turn has one
    call at most.
    """

    body: Body
    section: Span = Span("", "")
    open: Pattern = ()
    close: str = ""
    between: str = ""
    bare: bool = False
    alone: bool = False


class Dialect(msgspec.Struct, frozen=True):
    """All of it.

    `text` is where the answer's text stands, None where nothing marks it; `skipped` are markers that stand between the
    parts of a turn and belong to none of them (`<|start|>assistant`).

    `also` are other spellings of calls that the family writes: they are read like `calls`. A model is made to write
    `calls` alone; when it has begun a call in another spelling by itself, it goes on in that one.
    """

    thought: Span | None = None
    text: Span | None = None
    calls: Calls | None = None
    also: tuple[Calls, ...] = ()
    skipped: tuple[str, ...] = ()


PLAIN = Dialect()
"""All that the model writes is its answer."""

GENERIC = Calls(ObjectBody(), open=("<tool_call>\n",), close="\n</tool_call>", between="\n", alone=True)
"""How a model calls whose template knows no functions: it is told so, and kept to it.

One call at a time: such models were not trained to call, and a small one repeats its call as long as it may.
"""
