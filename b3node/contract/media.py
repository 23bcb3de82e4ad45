"""Checks the body's declared media type: the one check that runs before any of the body is read."""

from __future__ import annotations

from typing import Final

from b3node.errors import Refusal

_CHARSETS: Final = ("utf-8", '"utf-8"')


def check_media_type(content_type: str | None, content_encoding: str | None) -> None:
    """Raises `unsupported_media_type` unless the headers announce plain JSON.

    `application/json` may carry `charset=utf-8` and no other parameter; names are case-insensitive (RFC 9110,
    section 8.3). A body with any content coding is refused. This also keeps web pages out: no browser sends
    this type to another origin without asking first.

    Args:
        content_type: value of the header as it came; None if absent.
        content_encoding: the same.
    """
    if content_encoding is not None and content_encoding.strip():
        raise Refusal("unsupported_media_type", "Send the body as it is, without Content-Encoding.")
    if not _is_json(content_type or ""):
        raise Refusal("unsupported_media_type", "Send the body with Content-Type: application/json.")


def _is_json(content_type: str) -> bool:
    media_type, *parameters = (piece.strip() for piece in content_type.lower().split(";"))
    return media_type == "application/json" and all(map(_is_harmless, parameters))


def _is_harmless(parameter: str) -> bool:
    """Returns whether a parameter is empty (RFC 9110 allows that) or says UTF-8."""
    name, _, value = parameter.partition("=")
    return not parameter or (name == "charset" and value in _CHARSETS)
