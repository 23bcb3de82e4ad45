"""Images of a request: the form of an `image_url`, and the places of images.

Only the text of the URL is judged here. Egress rules decide whether a host may be asked for it, an image
decoder whether its bytes are an image.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from typing import Final

from b3node.contract.fields import invalid
from b3node.contract.path import element, member
from b3node.contract.request import FunctionCallOutput, ImagePart, Item, Message

MAX_IMAGES: Final = 16
"""Images in one request (contract decisions, "Keys, tokens, spend")."""

MAX_IMAGE_BYTES: Final = 10 * 1024 * 1024
"""Bytes of one image once its base64 is decoded (the same)."""

_DATA_URL: Final = "data:image/(png|jpeg|jpg|webp|gif);base64,"

IMAGE_URL_PATTERN: Final = f"^(https://|{_DATA_URL})"
"""Beginning of an image URL (the contract's)."""

_IMAGE_URL: Final = re.compile(IMAGE_URL_PATTERN)
_ALPHABET: Final = (string.ascii_letters + string.digits + "+/").encode()


def check_image_url(url: str, path: str) -> None:
    """Refuses the image URL at `path` unless it is `https://...` or a well-formed base64 data URL.

    The pattern is the contract's. Base64 is strict (RFC 4648, section 4): the standard alphabet, padded, no
    line breaks, not empty. Its size is computed without decoding it.
    """
    header = _IMAGE_URL.match(url)
    if not header:
        raise invalid(path, f"must be an https:// URL or a {_DATA_URL} URL.")
    if header[0] == "https://":
        return
    size = _decoded_size(url[header.end() :])
    if not size:
        raise invalid(path, "is not strict base64: padded, without line breaks, and not empty.")
    if size > MAX_IMAGE_BYTES:
        raise invalid(path, f"holds an image of {size} bytes; at most {MAX_IMAGE_BYTES} are taken.")


def _decoded_size(payload: str) -> int:
    """Returns the number of bytes that strict base64 text encodes; 0 if it is not strict base64."""
    if len(payload) % 4 or not payload.isascii():
        return 0
    padding = payload.encode().translate(None, _ALPHABET)
    if padding not in (b"", b"=", b"==") or not payload.endswith(padding.decode()):
        return 0
    return len(payload) // 4 * 3 - len(padding)


def images(items: tuple[Item, ...]) -> Iterator[tuple[str, ImagePart]]:
    """Yields every image of a request's `input` in order, with the path of its `image_url` on the wire."""
    for index, item in enumerate(items):
        if isinstance(item, Message):
            place, parts = member(element("input", index), "content"), item.content
        elif isinstance(item, FunctionCallOutput):
            place, parts = member(element("input", index), "output"), item.output
        else:
            continue
        for position, part in enumerate(parts):
            if isinstance(part, ImagePart):
                yield member(element(place, position), "image_url"), part


def check_image_count(items: tuple[Item, ...]) -> None:
    """Refuses the first image beyond `MAX_IMAGES`."""
    for count, (path, _) in enumerate(images(items), start=1):
        if count > MAX_IMAGES:
            raise invalid(path, f"is one image too many: a request may have {MAX_IMAGES}.")
