from __future__ import annotations

import asyncio

import pytest

from bench.load import LoadError, Stream, clients, quantile
from tests.bench.endpoint import endpoint, three_tokens
from tests.bench.wire import answer, chunks, completed, delta


def test_clients_send_their_bodies_one_after_the_other() -> None:
    """Every client works through its own list, all clients at once, and all answers are counted."""
    heard = []

    async def reply(body, writer):
        heard.append(body["input"])
        await three_tokens(body, writer)

    async def main():
        async with endpoint(reply) as url:
            return await clients(url, [[{"input": "1a"}, {"input": "1b"}], [{"input": "2a"}]])

    load = asyncio.run(main())

    assert sorted(heard) == ["1a", "1b", "2a"]
    assert heard.index("1a") < heard.index("1b")
    assert (load.tokens, len(load.answers), len(load.gaps)) == (9, 3, 6)
    assert load.cached_share == pytest.approx(2 / 7)
    assert load.seconds >= max(a.total for a in load.answers)
    assert load.tokens_s == pytest.approx(9 / load.seconds)


def test_every_request_asks_for_a_stream() -> None:
    """Whatever the body says, the answer is streamed."""
    asked = []

    async def reply(body, writer):
        asked.append(body["stream"])
        await three_tokens(body, writer)

    async def main():
        async with endpoint(reply) as url:
            await clients(url, [[{"stream": False}]])

    asyncio.run(main())

    assert asked == [True]


def test_a_stream_says_when_it_has_begun() -> None:
    """`begun` is set by the first token, long before the end."""

    async def reply(body, writer):
        writer.write(answer(b"", chunk=1)[:-5] + chunks(delta("a"), 1000)[:-5])
        await writer.drain()
        await asyncio.wait_for(may_end.wait(), 5)
        writer.write(chunks(completed(), 1000))

    async def main():
        async with endpoint(reply) as url:
            stream = Stream(url, {})
            task = asyncio.create_task(stream.run())
            await asyncio.wait_for(stream.begun.wait(), 5)
            assert not task.done()
            may_end.set()
            return await task

    may_end = asyncio.Event()

    assert asyncio.run(main()).text == "a"


def test_a_failed_answer_fails_the_load() -> None:
    """A refusal is no measurement; the error says how many failed, and what was said."""

    async def reply(body, writer):
        writer.write(answer(b"busy", status=503))

    async def main():
        async with endpoint(reply) as url:
            await clients(url, [[{}], [{}]])

    with pytest.raises(LoadError, match="2 of 2 clients failed: 503: busy"):
        asyncio.run(main())


def test_a_server_that_is_not_there_fails_the_load() -> None:
    """No connection is a failure like any other."""
    with pytest.raises(LoadError, match="1 of 1"):
        asyncio.run(clients("http://127.0.0.1:9/v1", [[{}]]))


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.25, 1), (0.5, 2), (0.51, 3), (0.95, 4), (1.0, 4)])
def test_quantiles_are_values_that_occurred(share, value) -> None:
    """The smallest value that at least that share of all values does not exceed."""
    assert quantile([4, 1, 3, 2], share) == value
