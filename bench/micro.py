"""What the parts around the model cost by themselves, in microseconds: `make bench-micro`.

No model and no server: the scheduler runs as if a model said the same token again and again, rows are made
up, steps travel through a real socket. The smallest of many measurements is what a part costs on an
undisturbed machine, the median what it cost here and now.
"""

from __future__ import annotations

import itertools
import socket
import subprocess
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from statistics import median
from typing import Final, ParamSpec, TypeVar

import msgspec
import numpy as np

from b3node import embedded
from b3node.contract.decode import decode_request
from b3node.contract.encode import sse_frame
from b3node.contract.request import FunctionTool, Request
from b3node.dialects.dialect import GENERIC, Calls, Dialect, NamedBody, ObjectBody, Span, TaggedArguments
from b3node.dialects.outline import Outline, Reading, Thinking
from b3node.engine.backend import Rows
from b3node.engine.cache.host_cache import HostCache
from b3node.engine.cache.prefix_cache import PrefixCache
from b3node.engine.guidance.guide import Guide
from b3node.engine.guidance.token_table import TokenTable
from b3node.engine.limits import EngineLimits
from b3node.engine.loop import Loop
from b3node.engine.messages import FromEngine, Sampling, Step, Submit, Token
from b3node.engine.plan import Plan
from b3node.engine.sampling.constraint import ForcedText, Mask, TokenIds
from b3node.engine.sampling.sampler import LogitRow, Places, greedy, sample
from b3node.engine.schedule.scheduler import Scheduler
from b3node.engine.schedule.token_budget import TokenBudget
from b3node.events.composer import Composer
from b3node.events.initial_response import begin
from b3node.ids import new_call_id, new_response_id
from b3node.llama.context import Batch
from b3node.llama.vocab import Vocabulary
from b3node.parse.parser import TextParser
from b3node.parse.reader import parser_of
from b3node.prompt.prepare import Preparer
from b3node.spans import TextSpan
from b3node.workers.child_channel import ChildChannel
from b3node.workers.frames import FrameReader, frame
from b3node.workers.messages import ToEngineProcess

SECONDS: Final = 0.3
"""How long each case is repeated."""
COUNTS: Final = (1, 16)
VOCABULARIES: Final = (49_152, 151_936)
TOKEN, PIECE, STEP_SECONDS = 7, b" word", 0.01
CONVERSATION: Final = 60_000
"""Tokens of a long conversation, about."""
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_TEMPLATE: Final = (
    "{% if tools %}<tools>{% for t in tools %}{{ t | tojson }}{% endfor %}</tools>{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}{% for c in m.tool_calls or [] %}"
    "<tool_call>\n{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}\n</tool_call>"
    "{% endfor %}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
KEPT, LONG = 32, 8192
"""Prefixes in the tree, and tokens of each."""

P = ParamSpec("P")
T = TypeVar("T")
Case = tuple[str, list[float]]
"""What was measured, and what each time cost in microseconds."""


def main() -> None:
    print(f"{'microseconds':<64} {'smallest':>10} {'median':>10}")
    for cases in (scheduling, whole_steps, sampling, prefixes, frames, prompts, parsing, streaming):
        for title, costs in cases():
            print(f"{title:<64} {min(costs):>10.1f} {median(costs):>10.1f}", flush=True)


def scheduling() -> Iterator[Case]:
    """Deciding a step of running sequences, writing it into a batch, and taking it in."""
    for count in COUNTS:
        scheduler, batch = _running(count, VOCABULARIES[0]), Batch(512)
        plans: list[float] = []
        fills: list[float] = []
        applies: list[float] = []
        deadline = time.monotonic() + 3 * SECONDS
        while time.monotonic() < deadline:
            plan = _timed(plans, scheduler.plan, 0.0)
            _timed(fills, batch.fill, plan.chunks)
            _timed(applies, _apply, scheduler, plan)
        yield f"plan a step of {count}", plans
        yield f"fill the batch with {count}", fills
        yield f"apply a step of {count}", applies


def whole_steps() -> Iterator[Case]:
    """Everything between two decodes: hear the front, plan, draw greedily, apply, tell the front."""
    for count in COUNTS:
        with _line() as line:
            scheduler = _running(count, VOCABULARIES[0])
            loop = Loop(scheduler, _NoModel(count, VOCABULARIES[0]), line, time.monotonic)
            yield f"whole step of {count} but for the decode", _repeated(_turn, loop)


def sampling() -> Iterator[Case]:
    """One draw from one row: peaked as a model mostly is, and nearly flat."""
    draw = np.random.default_rng(0)
    for size in VOCABULARIES:
        peaked: LogitRow = draw.normal(0.0, 2.0, size).astype(np.float32)
        peaked[: size // 5000] += 12.0
        flat: LogitRow = draw.normal(0.0, 0.5, size).astype(np.float32)
        yield f"greedy, vocabulary {size}", _repeated(greedy, peaked)
        for shape, row in (("peaked", peaked), ("flat", flat)):
            for top_p in (1.0, 0.95):
                title = f"temperature 0.8, top_p {top_p}, vocabulary {size}, {shape}"
                yield title, _repeated(_drawn, row, top_p)


def guides() -> Iterator[Case]:
    """What an outline costs a token while its text is free: the row's masking, and reading what was drawn."""
    size = VOCABULARIES[-1]
    pieces = [bytes([97 + i // 676 % 26, 97 + i // 26 % 26, 97 + i % 26]) for i in range(size)]
    token_table = TokenTable(pieces, {i: f"<|{i}|>" for i in range(300)}, range(1, 300), {0})
    dialect = Dialect(thinking=Span("<think>", "</think>"), calls=GENERIC)
    bound = Thinking(1 << 30, array("i", [size - 1]).tobytes())
    row: LogitRow = np.zeros(size, np.float32)
    for thinking in (True, False):
        reading = Reading(dialect, thinking=thinking, calls=True)
        guide = Guide(Outline(reading, triggered=True, thinking=bound), token_table, _NoGrammar())
        tokens = itertools.cycle(range(300, 40_000))

        def one(guide: Guide = guide, tokens: Iterator[int] = tokens) -> None:
            refused = guide.refused()
            if refused is not None:
                kept, row[refused] = row[refused], -np.inf
                row[refused] = kept
            guide.accept(next(tokens))

        yield f"guide a token of a free {'thought' if thinking else 'text before a call'}", _repeated(one)


class _NoGrammar:
    """`engine.sampling.constraint.Grammar` that allows nothing: free text never asks it."""

    def allows(self, tokens: TokenIds) -> Mask:
        return np.zeros(len(tokens), bool)

    def narrow(self) -> TokenIds | None:
        return None

    def refused(self) -> Places | None:
        return None

    def forced(self, most: int) -> ForcedText:
        del most
        return ForcedText()

    def accept(self, token: int) -> None:
        raise ValueError(token)

    def after(self, text: bytes) -> None:
        del text


def prefixes() -> Iterator[Case]:
    """Finding what a prompt can read among kept prefixes, and opening and closing a slot that reads it."""
    draw = np.random.default_rng(0)
    ids = draw.integers(0, VOCABULARIES[0], (KEPT, LONG), dtype=np.int32)
    ids[:, :64] = ids[0, :64]  # one system prompt
    cells = PrefixCache(2 * KEPT * LONG, HostCache(budget=0, token_bytes=1, state_bytes=0), stateful=False)
    for slot, tokens in enumerate(ids):
        match = cells.match("org", tokens)
        cells.enter(slot, "org", match)
        cells.extend(slot, array("i", tokens[match.length :].tobytes()))
        cells.keep(slot)
    known = ids[KEPT // 2].copy()
    known[-16:] = 1
    what = f"a prompt of {LONG} among {KEPT} prefixes of {LONG}"
    yield f"match {what}", _repeated(cells.match, "org", known)
    found = cells.match("org", known)

    def enter() -> None:
        cells.enter(KEPT, "org", found)
        cells.release(KEPT, save=False)
        cells.take_moves()

    yield f"enter and leave with {what}", _repeated(enter)


def frames() -> Iterator[Case]:
    """A step's message to the front: written, and read."""
    encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(FromEngine).decode
    for count in COUNTS:
        tokens = tuple(Token(i, PIECE) for i in range(count))
        step = Step((), tokens, (), running=count, waiting=0, seconds=STEP_SECONDS)
        data, reader = frame(encode(step)), FrameReader()
        yield f"encode a step of {count}", _repeated(_framed, encode, step)
        yield f"decode a step of {count}", _repeated(_heard, decode, reader, data)


def prompts() -> Iterator[Case]:
    """Returns the prompt of a long agent's conversation with functions, calls and results."""
    vocabulary = Vocabulary.load(str(embedded.find()))
    request = _conversation()
    for title, template in (
        ("the embedded model's template", None),
        ("a template with functions", _TEMPLATE),
    ):
        vocabulary.chat_template = template or vocabulary.chat_template
        preparer = Preparer(vocabulary, n_ctx=4 * CONVERSATION)
        tokens = len(preparer.compose(request, NOW).tokens)
        yield f"a prompt of {tokens} tokens by {title}", _repeated(preparer.compose, request, NOW)


def _conversation() -> Request:
    """A question, a call, its result and an answer, over and over."""
    prose = "The river runs past the old mill and into the fjord, where boats wait for the tide. "
    told = msgspec.json.encode([{"line": n, "text": prose} for n in range(10)]).decode()
    items: list[dict[str, object]] = []
    for n in range(CONVERSATION // 720):
        items += [
            {"role": "user", "content": f"Question {n}: {prose * 12}"},
            {
                "type": "function_call",
                "call_id": f"c{n}",
                "name": "look_up",
                "arguments": f'{{"what": "{prose}"}}',
            },
            {"type": "function_call_output", "call_id": f"c{n}", "output": told},
            {"role": "assistant", "content": f"Answer {n}: {prose * 4}"},
        ]
    tool = {
        "type": "function",
        "name": "look_up",
        "parameters": {"type": "object", "properties": {"what": {}}},
    }
    return decode_request(msgspec.json.encode({"model": "m", "input": items, "tools": [tool]}))


def parsing() -> Iterator[Case]:
    """Reading a token of each kind of text; a token is four bytes, wherever that cuts."""
    prose = b"It's said that the fox, 13 in all, jumps.\n\nIf x < y, then so does `x`. " * 50
    code = b"def f(a, b):\n    return a < b and {'x': [1, 2]}\n\n" * 50
    thought, json_call = (
        Span("<think>", "</think>"),
        Calls(ObjectBody(), open=("<tool_call>",), close="</tool_call>"),
    )
    tags = TaggedArguments("<parameter=", ">\n", "\n</parameter>\n")
    tagged_call = Calls(NamedBody((">\n",), tags), open=("<function=",), close="</function>")
    told = b'<tool_call>{"name":"f","arguments":{"text":' + msgspec.json.encode(code.decode()) + b"}}"
    bare = b"<function=f>\n<parameter=text>\n" + code + b"\n</parameter>\n</function>"
    for title, calls, thinking, text in (
        ("plain text", json_call, False, prose),
        ("a thought", json_call, True, prose),
        ("arguments that are JSON", json_call, False, told),
        ("arguments between tags", tagged_call, False, bare),
    ):
        reading = Reading(Dialect(thought, calls=calls), thinking=thinking, calls=True)
        yield f"parse a token of {title}", _repeated(_reader(reading, text))


def _reader(reading: Reading, text: bytes) -> Callable[[], object]:
    """Reads one more token of `text` at each call, over and over."""
    schema: dict[str, object] = {"type": "object", "properties": {"text": {"type": "string"}}}
    tools, size = (FunctionTool("f", parameters=schema),), 4

    def tokens() -> Iterator[object]:
        while True:
            parser = parser_of(reading, tools, lambda _name, _arguments: True)
            for at in range(0, len(text), size):
                yield parser.feed(text[at : at + size])

    return tokens().__next__


def streaming() -> Iterator[Case]:
    """What the front does with one token of a stream, sockets aside."""
    request = decode_request(b'{"model":"m","input":"Hello"}')
    composer = Composer(begin(request, response_id=new_response_id(), created_at=0), call_id=new_call_id)
    parser = TextParser()
    composer.open()

    def one() -> None:
        for delta in parser.feed(PIECE):
            for event in composer.feed(delta):
                sse_frame(event)

    yield "parse, compose and encode a streamed token", _repeated(one)


class _NoModel:
    """A backend that computes nothing: `engine.backend.Backend` with rows of one token's logits."""

    overlaps = False

    def __init__(self, rows: int, n_vocab: int) -> None:
        self._rows: Rows = np.zeros((rows, n_vocab), np.float32)
        self._rows[:, TOKEN] = 1.0
        self._count = 0

    def start(self, plan: Plan) -> None:
        self._count = sum(chunk.rows for chunk in plan.chunks)

    def rows(self) -> Rows:
        return self._rows[: self._count]

    def on_idle(self) -> None:
        """Part of `Backend`."""


def _running(count: int, n_vocab: int) -> Scheduler:
    """A scheduler with so many sequences that all stream."""
    size = 1 << 20
    limits = EngineLimits(
        n_ctx=size,
        cells=2 * size,
        parallel=COUNTS[-1],
        slots=2 * COUNTS[-1],
        waiting=32,
        batch=512,
        drafts=False,
        stateful=False,
        window=0,
        kept_cells=1000,
        host_cache_bytes=0,
        token_bytes=1,
        state_bytes=0,
    )
    pieces = [PIECE] * n_vocab
    scheduler = Scheduler(
        limits, eog=frozenset({0}), pieces=pieces, token_budget=TokenBudget(gap=0.15, largest=512)
    )
    for request in range(count):
        tokens = array("i", range(request + 1, request + 40)).tobytes()
        scheduler.submit(
            Submit(
                request,
                "org",
                (TextSpan(tokens),),
                size,
                size // 16,
                Sampling(0.0, 1.0, 0),
                queue_timeout=1e9,
            ),
            0.0,
        )
    while any(s.pending > 1 for s in scheduler.running.values()) or scheduler.waiting:
        _apply(scheduler, scheduler.plan(0.0))
    return scheduler


def _apply(scheduler: Scheduler, plan: Plan) -> Step:
    drawn = {chunk.slot: [TOKEN] for _, chunk in scheduler.draws(plan)}
    return scheduler.apply(plan, drawn, seconds=STEP_SECONDS)


def _turn(loop: Loop) -> None:
    loop.receive()
    loop.step()


def _framed(encode: Callable[[Step], bytes], step: Step) -> bytes:
    return frame(encode(step))


def _heard(decode: Callable[[bytes], object], reader: FrameReader, data: bytes) -> list[object]:
    return [decode(payload) for payload in reader.feed(data)]


def _drawn(row: LogitRow, top_p: float) -> int:
    return sample(row, Sampling(0.8, top_p, seed=0), 0.5)


@contextmanager
def _line() -> Iterator[ChildChannel[object]]:
    """A line whose other end is read by another process and thrown away."""
    ours, theirs = socket.socketpair()
    with subprocess.Popen(["cat"], stdin=theirs.fileno(), stdout=subprocess.DEVNULL), theirs, ours:
        yield ChildChannel(ours, ToEngineProcess)  # type: ignore[arg-type]  # a union is a type to msgspec


def _timed(costs: list[float], work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    began = time.perf_counter_ns()
    result = work(*args, **kwargs)
    costs.append((time.perf_counter_ns() - began) / 1000)
    return result


def _repeated(work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> list[float]:
    """What each of many calls cost, in microseconds; the first ones, which warm caches up, aside."""
    costs: list[float] = []
    for _ in range(3):
        work(*args, **kwargs)
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline or len(costs) < 10:
        _timed(costs, work, *args, **kwargs)
    return costs


if __name__ == "__main__":
    main()
