"""A value for every option, made from its type: in a file, on the command line, and in the configuration."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import inspect

from b3node.cli.options import SECTIONS, Option, options

OPTIONS = [option for struct in SECTIONS.values() for option in options(struct)]


class Example(NamedTuple):
    """A value that is not the default: as the file has it, and as the command line has it."""

    value: object
    arguments: list[str]


def example(option: Option) -> Example:
    """Returns a value that the option's type allows and that differs from its default."""
    flag = option.flag
    match option.kind:
        case inspect.BoolType():
            value = option.default == "off"
            return Example(value, [flag if value else f"--no-{flag[2:]}"])
        case inspect.LiteralType(values=values):
            other = next(str(one) for one in values if str(one) != option.default)
            return Example(other, [flag, other])
        case inspect.IntType(ge=least):
            return Example((least or 0) + 1, [flag, str((least or 0) + 1)])
        case inspect.FloatType():
            return Example(0.5, [flag, "0.5"])
        case inspect.VarTupleType():
            return Example(["a", "b"], [flag, "a", flag, "b"])
        case inspect.StructType(fields=fields):
            first, last = fields[0].encode_name, fields[-1].encode_name
            return Example({first: 7, last: "unlimited"}, [flag, f"{first}=7", flag, f"{last}=unlimited"])
    return Example("localhost", [flag, "localhost"])
