from __future__ import annotations

import pytest

from b3node.api.host_check import HostCheck
from b3node.errors import Refusal
from tests.api.serving import ask, get, post, serving
from tests.service.fakes import FakeModel


def is_let_in(host_check: HostCheck, host: str | None, origin: str | None = None) -> bool:
    headers = [(b"host", host.encode())] if host is not None else []
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    try:
        host_check.check(headers)
    except Refusal as refusal:
        return refusal.code != "forbidden"
    return True


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]", "[::1]:8080", "my.box:8080"]
)
def test_loopback_and_configured_names_are_let_in(host: str) -> None:
    """The node's own names count in any case and with any port."""
    assert is_let_in(HostCheck.on_loopback(["My.Box"]), host)


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
    assert not is_let_in(HostCheck.on_loopback(), host)


def test_a_node_on_a_network_has_any_name() -> None:
    """Without a list of names, every name is let in."""
    assert is_let_in(HostCheck(hosts=None), "node.example:443")


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
    host_check = HostCheck.on_loopback(origins=["http://localhost:3000"])

    assert is_let_in(host_check, "localhost", origin) is welcome


LOOPBACK = HostCheck.on_loopback(["my.box"])
ANY_NAME = HostCheck(hosts=None)


@pytest.mark.parametrize("host_check", [LOOPBACK, ANY_NAME])
@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("localhost:8080", "http://localhost:8080"),
        ("localhost:8080", "https://localhost:8080"),
        ("LocalHost:8080", "http://localhost:8080"),
        ("localhost:8080", "HTTP://LOCALHOST:8080"),
        ("localhost", "http://localhost"),
        ("localhost", "https://localhost"),
        ("localhost:80", "http://localhost"),
        ("localhost", "http://localhost:80"),
        ("localhost:443", "https://localhost"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("[::1]", "http://[::1]"),
    ],
)
def test_the_nodes_own_pages_are_let_in(host_check: HostCheck, host: str, origin: str) -> None:
    """A page whose origin has the name and the port of the request's `Host` was served by the node."""
    assert is_let_in(host_check, host, origin)


@pytest.mark.parametrize("host_check", [LOOPBACK, ANY_NAME])
@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8081"),
        ("127.0.0.1:8080", "http://127.0.0.1"),
        ("127.0.0.1", "http://127.0.0.1:8080"),
        ("localhost:80", "https://localhost"),
        ("localhost:443", "http://localhost"),
        ("127.0.0.1:8080", "http://localhost:8080"),
        ("[::1]:8080", "http://[::2]:8080"),
        ("[::1]:8080", "http://::1:8080"),
        ("localhost:8080", "ws://localhost:8080"),
        ("localhost:8080", "chrome-extension://localhost:8080"),
        ("localhost:8080", "localhost:8080"),
        ("localhost:8080", "//localhost:8080"),
        ("localhost:8080", "http://localhost:8080/"),
        ("localhost:8080", "http://localhost:8080.evil.example"),
        ("localhost:8080", "http://localhost:8080@evil.example"),
        ("localhost:8080", "http://evil.example@localhost:8080"),
        ("localhost:8080", "null"),
        ("localhost:8080", ""),
        ("null", "null"),
        (None, "http://localhost:8080"),
        (None, "http://"),
        ("", "http://"),
        ("evil.example", "http://evil.example"),
        ("evil.example:8080", "http://evil.example:8080"),
        ("evil.example:8080", "http://localhost:8080"),
        ("127.0.0.1.evil.example:8080", "http://127.0.0.1.evil.example:8080"),
        ("[::1].evil.example", "http://[::1].evil.example"),
    ],
)
def test_pages_from_elsewhere_are_not(host_check: HostCheck, host: str | None, origin: str) -> None:
    """Another port, name or scheme is another origin, and a name that was rebound is none of the node's."""
    assert not is_let_in(host_check, host, origin)


def test_a_configured_name_has_pages_of_its_own() -> None:
    """A name that the operator gave the node counts like loopback's own."""
    assert is_let_in(LOOPBACK, "my.box:8080", "http://my.box:8080")
    assert not is_let_in(ANY_NAME, "my.box:8080", "http://my.box:8080")


@pytest.mark.parametrize("host", ["192.168.1.5:8080", "[fd00::5]:8080"])
def test_the_address_of_a_node_on_a_network_cannot_be_rebound(host: str) -> None:
    """Without a list of names, the node's own pages are those that were asked for by an address."""
    assert is_let_in(ANY_NAME, host, f"http://{host}")
    assert not is_let_in(LOOPBACK, host, f"http://{host}")


def test_every_origin_of_a_request_counts() -> None:
    """A second `Origin` cannot hide the first one."""
    headers = [
        (b"origin", b"https://evil.example"),
        (b"host", b"localhost"),
        (b"origin", b"http://localhost"),
    ]
    with pytest.raises(Refusal):
        LOOPBACK.check(headers)


def test_a_page_of_the_node_may_ask_it() -> None:
    """The request of a page that the node served itself is answered, wherever its port lies."""
    with serving(FakeModel()) as node:
        host = f"127.0.0.1:{node.port}"
        data = post({}, f"Origin: http://{host}", "Content-Type: application/json")
        own = ask(node, data.replace(b"Host: localhost", f"Host: {host}".encode()))
        other = ask(node, data)

    assert (own.status, other.status) == (200, 403)


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
