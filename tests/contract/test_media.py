"""The body's declared type is judged before the body is read."""

from __future__ import annotations

import pytest

from b3node.contract.media import check_media_type
from b3node.errors import Refusal


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        " application/json ",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        'application/json; Charset="utf-8"',
        "application/json;",
    ],
)
@pytest.mark.parametrize("encoding", [None, "", " "])
def test_json_is_taken(content_type: str, encoding: str | None) -> None:
    """`application/json`, with UTF-8 or no charset at all, passes in any case of letters."""
    check_media_type(content_type, encoding)


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "text/plain",
        "text/json",
        "application/jsonp",
        "application/json5",
        "application/problem+json",
        "application/json, text/plain",
        "application/json; charset=utf-16",
        "application/json; charset=latin1",
        "application/json; charset=",
        "application/json; boundary=x",
        "application/json; charset=utf-8; q=1",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
        "text/plain; a=application/json",
        ";application/json",
    ],
)
def test_any_other_type_is_refused(content_type: str | None) -> None:
    """Everything else, nothing included, is `unsupported_media_type` without a param."""
    with pytest.raises(Refusal) as caught:
        check_media_type(content_type, None)
    assert (caught.value.code, caught.value.status, caught.value.param) == (
        "unsupported_media_type",
        415,
        None,
    )


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "zstd", "identity", "gzip, br"])
def test_an_encoded_body_is_refused(encoding: str) -> None:
    """A body is taken as it is or not at all."""
    with pytest.raises(Refusal) as caught:
        check_media_type("application/json", encoding)
    assert caught.value.code == "unsupported_media_type"
