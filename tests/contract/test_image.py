"""The form of image URLs, and the places of images in a request."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from b3node.contract import image
from b3node.contract.decode import decode_request
from b3node.contract.image import MAX_IMAGES, images
from tests.contract.bodies import CALL, FULL, OUTPUT, PNG, USER, answer, encoded


def picture(url: Any) -> dict[str, Any]:
    return {"type": "input_image", "image_url": url}


def asking(*parts: Any) -> bytes:
    return encoded(input=[{"role": "user", "content": list(parts)}])


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/a.png",
        "https://169.254.169.254/latest/",
        "https://",
        *(f"data:image/{kind};base64,AAAA" for kind in ("png", "jpeg", "jpg", "webp", "gif")),
        "data:image/png;base64,AAA=",
        "data:image/png;base64,+/==",
    ],
)
def test_a_url_of_the_contract_is_taken(url: str) -> None:
    """Both spellings decode; which host may be asked is not for the decoder to say."""
    assert [part.image_url for _, part in images(decode_request(asking(picture(url))).input)] == [url]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://example.org/a.png",
        "HTTPS://example.org/a.png",
        " https://example.org/a.png",
        "file:///etc/passwd",
        "ftp://example.org/a.png",
        "data:image/svg+xml;base64,AAAA",
        "data:image/bmp;base64,AAAA",
        "data:text/plain;base64,AAAA",
        "data:image/png,AAAA",
        "data:image/png;charset=utf-8;base64,AAAA",
        "DATA:image/png;base64,AAAA",
        "data:image/png;base64,",
        "data:image/png;base64,AAA",
        "data:image/png;base64,AA=A",
        "data:image/png;base64,A===",
        "data:image/png;base64,====",
        "data:image/png;base64,AAAA====",
        "data:image/png;base64,AA\nAA",
        "data:image/png;base64,AAAA\n",
        "data:image/png;base64,AA A",
        "data:image/png;base64,AA,A",
        "data:image/png;base64,AA-_",
        "data:image/png;base64,AAAé",
    ],
)
def test_any_other_url_is_named(url: str) -> None:
    """A URL off the pattern, or base64 that is not strict, is refused where it stands."""
    body = asking({"type": "input_text", "text": "?"}, picture(url))
    assert answer(body) == ("invalid_request", "input[0].content[1].image_url")


def test_an_image_has_a_largest_size() -> None:
    """A data URL is refused by the bytes it decodes to, to the byte."""
    with mock.patch.object(image, "MAX_IMAGE_BYTES", 5):
        decode_request(asking(picture("data:image/png;base64,AAAAAAA=")))
        param = answer(asking(picture("data:image/png;base64,AAAAAAAA")))[1]
    assert param == "input[0].content[0].image_url"


def test_sixteen_images_are_taken_and_the_next_is_named() -> None:
    """Images count over the whole request, tool outputs included."""
    items: list[Any] = [
        {"role": "user", "content": [picture(PNG)] * (MAX_IMAGES - 2)},
        CALL,
        {**OUTPUT, "output": [picture(PNG)] * 2},
    ]
    decode_request(encoded(input=items))
    items[2]["output"].append(picture(PNG))
    assert answer(encoded(input=items)) == ("invalid_request", "input[2].output[2].image_url")


def test_images_know_their_place_on_the_wire() -> None:
    """Every image comes in order, with the path that a refusal of it would name."""
    found = [path for path, _ in images(decode_request(encoded(**FULL)).input)]
    assert found == ["input[0].content[1].image_url", "input[5].output[1].image_url"]


def test_text_never_holds_an_image() -> None:
    """A link inside text is text: only an image part is ever an image."""
    words = f"![x](https://example.org/x.png) {PNG}"
    assert not list(images(decode_request(encoded(input=words)).input))
    assert not list(images(decode_request(encoded(input=[USER, {**USER, "content": words}])).input))
