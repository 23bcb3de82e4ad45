from __future__ import annotations

import pytest

from b3node.api.host_check import Access
from b3node.errors import Refusal
from tests.api.serving import ask, get, post, serving
from tests.service.fakes import FakeModel


def is_let_in(access: Access, host: str | None, origin: str | None = None) -> bool:
    headers = [(b"host", host.encode())] if host is not None else []
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    try:
        access.check(headers)
    except Refusal as refusal:
        return refusal.code != "forbidden"
    return True


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]", "[::1]:8080", "my.box:8080"]
)
def test_loopback_and_configured_names_are_let_in(host: str) -> None:
    """The node's own names count in any case and with any port."""
    assert is_let_in(Access.on_loopback(["My.Box"]), host)


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "evil.example:8080",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "127.0.0.1@evil.example",
        "127.0.0.1:x",
        "localhost:80:80",
        "127.1",
        "0.0.0.0",
        "[::2]",
        "[::ffff:127.0.0.1]",
    ],
)
def test_other_names_are_not(host: str | None) -> None:
    """A name that was rebound to loopback still says who it is."""
    assert not is_let_in(Access.on_loopback(), host)


def test_a_node_on_a_network_has_any_name() -> None:
    """Without a list of names, every name is let in."""
    assert is_let_in(Access(hosts=None), "node.example:443")


@pytest.mark.parametrize(
    ("origin", "welcome"),
    [
        (None, True),
        ("http://localhost:3000", True),
        ("http://localhost:3001", False),
        ("http://localhost:3000.evil.example", False),
        ("https://evil.example", False),
        ("null", False),
        ("", False),
    ],
)
def test_only_listed_pages_are_let_in(origin: str | None, *, welcome: bool) -> None:
    """Any `Origin` that is not on the list, letter for letter, is refused; no `Origin` is no page."""
    access = Access.on_loopback(origins=["http://localhost:3000"])

    assert is_let_in(access, "localhost", origin) is welcome


def test_a_page_gets_no_work_done_and_no_permission() -> None:
    """A cross-origin request is refused before its body is read, on every path, without CORS headers."""
    model = FakeModel()
    with serving(model) as node:
        answers = [
            ask(node, post(b"", "Origin: https://evil.example", "Content-Type: text/plain", length=9)),
            ask(node, get("/v1/models", "Origin: https://evil.example")),
            ask(node, get("/healthz").replace(b"localhost", b"evil.example:8080")),
            ask(node, get("/nope", "Origin: https://evil.example")),
        ]

    assert {(answer.status, answer.code) for answer in answers} == {(403, "forbidden")}
    assert all(answer.json["error"]["type"] == "permission_error" for answer in answers)
    assert all(answer.headers["x-request-id"].startswith("req_") for answer in answers)
    assert not any("access-control" in name for answer in answers for name in answer.headers)
    assert model.requests == []
