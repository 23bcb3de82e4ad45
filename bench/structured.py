"""Measures cost and conformance of structured output: `python -m bench.structured [speed] [draw] [conform]`.

speed    tokens a second of constrained answers beside free ones, the same server, the same prompt, the same
number
         of tokens: three schemas that go on for as long as the answer may, one client and eight. One of each
         is asked for in turn, many times, and what counts is the ratio within such a pair, so that a machine
         that drifts or has other work slows both; median and quartiles of the ratios, and the servers' CPU
         time a token.
draw     microseconds of one constrained draw on rows of 151,936 logits, beside the free draw on the same row:
a
         document of many shapes is written token by token; the model is sure of the right one (`kept to`), or
         what it wants is unlike the grammar every third time (`off`). CPU time of the thread, so that
         neighbours do not count; warm caches, which behind a step of a model are cold: there all of it takes
         some three times as long.
conform  answers of the embedded model to the schemas of a file (JSON lines with `name` and `schema`, maybe
.xz):
         each answer that ends by itself must be JSON and match; those that were cut are counted. With a log,
         a run that was stopped is taken up where it was.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import lzma
import math
import random
import statistics
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import gguf
import jsonschema
import numpy as np

from b3node import embedded
from b3node.embedded import MODEL_ID
from b3node.engine.messages import Sampling
from b3node.engine.sampling.constrained import draw
from b3node.engine.sampling.sampler import LogitRow
from b3node.errors import Refusal
from b3node.grammar import check_schema, schema_to_gbnf
from b3node.llama.grammar import Grammars
from b3node.llama.vocab import Vocabulary
from bench.load import Body, Load, LoadError, ask, clients
from bench.servers import Running, b3node, serve

Schema = dict[str, Any]
TOKENS: Final = 96
"""Tokens of each answer that is timed."""
LEAST: Final = 32
"""Tokens for which all answers of a pair must run together: free ones end when they like."""
TRIES: Final = 10
CUT: Final = 160
"""Tokens after which an answer of `conform` is cut."""
N_VOCAB: Final = 151_936
SHORT: Final = 1_500
"""Characters of a schema that the model is asked to follow: more than a few are beyond one of its size."""


def record(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


WORD: Final[Schema] = {"type": "string", "minLength": 3, "maxLength": 12}
ENDLESS: Final[dict[str, Schema]] = {
    "records": {
        "type": "array",
        "minItems": 60,
        "items": record(
            name=WORD, age={"type": "integer", "minimum": 1, "maximum": 99}, kind={"enum": ["cat", "dog"]}
        ),
    },
    "prose": record(title=WORD, text={"type": "string", "minLength": 1500}),
    "numbers": {
        "type": "array",
        "minItems": 200,
        "items": {"type": "number", "minimum": -100, "maximum": 100},
    },
}
"""Schemas whose answers are longer than any that is asked for."""


def body(content: str, schema: Schema | None, **more: Any) -> Body:
    described = {"type": "text"} if schema is None else {"type": "json_schema", "name": "a", "schema": schema}
    return {"model": MODEL_ID, "input": content, "text": {"format": described}, **more}


# -------------------------------------------------------------------------------------------------------
# speed


class Pace(NamedTuple):
    """Tokens a second while all answers came, and the server's CPU milliseconds a token."""

    tokens_s: float
    cpu_ms: float


def speed(repeats: int) -> None:
    with serve(b3node(embedded.find()), Path(tempfile.mkdtemp()) / "log") as server:
        for name, schema in ENDLESS.items():
            for count in (1, 8):
                _pair(server, schema, count, held_first=False)  # fills caches
                pairs = [
                    _pair(server, schema, count, held_first=bool(number % 2)) for number in range(repeats)
                ]
                print(f"{name:8} {count} clients: {_told(pairs)}", flush=True)


def _told(pairs: list[tuple[Pace, Pace]]) -> str:
    """Free answers beside constrained ones, and the quartiles of the ratios within the pairs."""
    free, held = (
        Pace(*map(statistics.median, zip(*paces, strict=True))) for paces in zip(*pairs, strict=True)
    )
    ratios = [held.tokens_s / free.tokens_s for free, held in pairs]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return (
        f"free {free.tokens_s:6.1f} tokens/s, constrained {held.tokens_s:6.1f}, ratio {middle:.3f} "
        f"({low:.3f} to {high:.3f}, {len(pairs)} pairs), CPU {free.cpu_ms:.2f} and {held.cpu_ms:.2f} ms a token"
    )


def _pair(server: Running, schema: Schema, count: int, *, held_first: bool) -> tuple[Pace, Pace]:
    """Free and constrained answers, one after the other, up to where the first of all of them ends."""
    shown = f"Answer with JSON that matches this schema, and go on without end: {json.dumps(schema)}"
    bodies = {held: body(shown, schema if held else None, max_output_tokens=TOKENS) for held in (False, True)}
    for _ in range(TRIES):
        loads, cpu = {}, {}
        for held in (held_first, not held_first):
            before = server.cpu
            loads[held] = asyncio.run(clients(server.url, [[bodies[held]]] * count))
            cpu[held] = 1000 * (server.cpu - before) / loads[held].tokens
        tokens = min(answer.output_tokens for load in loads.values() for answer in load.answers)
        if tokens >= LEAST:
            return Pace(_rate(loads[False], tokens), cpu[False]), Pace(_rate(loads[True], tokens), cpu[True])
    raise LoadError(f"in {TRIES} tries the {count} answers never ran together for {LEAST} tokens")


def _rate(load: Load, tokens: int) -> float:
    """Tokens a second between the last stream's first piece and the first stream's piece with that token."""
    start = max(answer.times[0] for answer in load.answers)
    stop = min(
        answer.times[math.ceil(tokens * len(answer.times) / answer.output_tokens) - 1]
        for answer in load.answers
    )
    return sum(_tokens(load, start, stop)) / (stop - start)


def _tokens(load: Load, start: float, stop: float) -> Iterator[float]:
    """The tokens of each answer that came after `start`, up to `stop`."""
    for answer in load.answers:
        pieces = sum(start < at <= stop for at in answer.times)
        yield answer.output_tokens * pieces / len(answer.times)  # a piece may hold several tokens


# --------------------------------------------------------------------------------------------------------
# draw

SHAPES: Final = record(
    id={"type": "string", "format": "uuid"},
    name={"type": "string", "maxLength": 120},
    bio={"type": "string", "maxLength": 1000},
    role={"enum": ["admin", "editor", "viewer"]},
    created={"type": "string", "format": "date-time"},
    score={"type": "number"},
    tags={"type": "array", "items": {"type": "string"}},
    address=record(street={"type": "string"}, city={"type": "string"}),
)
DOCUMENT: Final = {
    "id": "123e4567-e89b-12d3-a456-426614174000",
    "name": "Ada Lovelace",
    "bio": "A mathematician who saw in an engine for calculation one for all symbols, and wrote down — long before "
    "there was one — what it would have to do, step by step, to work out numbers.",
    "role": "editor",
    "created": "2026-11-29T12:00:00Z",
    "score": 98.5,
    "tags": ["maths", "computing", "history"],
    "address": {"street": "12 St James's Square", "city": "London"},
}
SETTINGS: Final = ((0.0, 1.0), (1.0, 1.0), (1.0, 0.95), (0.7, 0.9))


def draws() -> None:
    vocabulary = _large_vocabulary()
    grammars = Grammars(vocabulary)
    tokens = [*vocabulary.tokenize(json.dumps(DOCUMENT, ensure_ascii=False)), min(vocabulary.eog)]
    for label, off in (("kept to", 0.0), ("off", 1 / 3)):
        rows = list(_rows(tokens, off))
        for temperature, top_p in SETTINGS:
            free, held = zip(*_drawn(grammars, tokens, rows, temperature, top_p), strict=True)
            extra = statistics.mean(held) - statistics.mean(free)
            print(
                f"{label:8} temperature {temperature} top_p {top_p}: free {statistics.mean(free):5.0f} us, constrained "
                f"{statistics.mean(held):5.0f} us (median {statistics.median(held):.0f}, longest {max(held):.0f}), "
                f"extra {extra:5.0f} us",
                flush=True,
            )


def _large_vocabulary() -> Vocabulary:
    """The embedded model's vocabulary, and pairs of its tokens up to a size that is common today."""
    path = embedded.find()
    small, fields = Vocabulary.load(str(path)), gguf.GGUFReader(path).fields
    texts = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    known, numbers = dict.fromkeys(texts), random.Random(0)
    while len(known) < N_VOCAB:
        known[numbers.choice(texts) + numbers.choice(texts)] = None
    large = Path(tempfile.mkdtemp()) / "large.gguf"
    writer = gguf.GGUFWriter(large, "llama")
    writer.add_context_length(2048)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(fields["tokenizer.ggml.pre"].contents())
    writer.add_token_list(list(known))
    writer.add_token_types([*types, *[gguf.TokenType.NORMAL] * (N_VOCAB - len(types))])
    writer.add_token_merges(fields["tokenizer.ggml.merges"].contents())
    writer.add_eos_token_id(small.eos or 0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return Vocabulary.load(str(large))


def _rows(tokens: list[int], off: float) -> Iterator[LogitRow]:
    """Returns rows shaped like a small model's (logit falls with log rank), the right token on top or not."""
    numbers = np.random.default_rng(0)
    ranked = (25.0 - 2.0 * np.log(np.arange(1, N_VOCAB + 1))).astype(np.float32)
    for token in tokens:
        row = ranked[numbers.permutation(N_VOCAB)]
        row[token] = 24.0 if numbers.random() < off else 27.0
        yield row


def _drawn(
    grammars: Grammars, tokens: list[int], rows: list[LogitRow], temperature: float, top_p: float
) -> Iterator[tuple[float, float]]:
    """Returns microseconds of each free and each constrained draw; the document goes on as written."""
    constraint, source = grammars.constrain(schema_to_gbnf(SHAPES)), random.Random(1)
    sampling = Sampling(temperature, top_p, seed=0)
    for number, (token, row) in enumerate(zip(tokens, rows, strict=True)):
        spent, standing = {}, constraint.clone()
        works = {
            "free": partial(draw, row, None, sampling, source),
            "held": partial(draw, row, standing, sampling, source),
        }
        for name in sorted(works, reverse=bool(number % 2)):  # who comes second finds the row in the caches
            spent[name] = _microseconds(works[name])
        yield spent["free"], spent["held"]
        if not constraint.allows(np.array([token], np.int32)).all():
            raise ValueError("the document does not match its schema")
        constraint.accept(token)


def _microseconds(work: Callable[[], int]) -> float:
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1e6


# -----------------------------------------------------------------------------------------------------
# conform


Work = list[tuple[str, int, Schema]]
"""Answers to ask for: the schema's name, which of its answers, the schema."""


def conform(path: Path, schemas: int, answers: int, at_once: int, log: Path) -> None:
    chosen = list(_compiled(path, schemas))
    print(f"{len(chosen)} schemas, {answers} answers each, into {log}", flush=True)
    log.touch()
    done = {(name, number) for name, number, _ in _logged(log)}
    work = [(name, i, schema) for name, schema in chosen for i in range(answers) if (name, i) not in done]
    if work:
        with serve(b3node(embedded.find()), Path(tempfile.mkdtemp()) / "log") as server:
            asyncio.run(_ask_all(server.url, work, at_once, log))
    outcomes = Counter(outcome for _, _, outcome in _logged(log))
    print(dict(outcomes))
    print(f"{outcomes['conforms']} of {outcomes.total() - outcomes['cut']} that ended by themselves conform")


def _logged(log: Path) -> list[tuple[str, int, str]]:
    return [tuple(json.loads(line)) for line in log.read_text(encoding="utf-8").splitlines()]


def _compiled(path: Path, count: int) -> Iterator[tuple[str, Schema]]:
    """Schemas that are served and fit into a short prompt, spread evenly over the file."""
    data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    entries = [json.loads(line) for line in data.splitlines()]
    random.Random(4).shuffle(entries)
    found = 0
    for entry in entries:
        schema = entry["schema"]
        if found < count and isinstance(schema, dict) and len(json.dumps(schema)) < SHORT:
            try:
                check_schema(schema)
                schema_to_gbnf(schema)
            except Refusal:
                continue
            found += 1
            yield entry["name"], schema


async def _ask_all(url: str, work: Work, at_once: int, log: Path) -> None:
    """Asks for all of it, and notes each outcome; where the server was busy, it asks again at the end."""
    todo = deque(work)

    async def client() -> None:
        while todo:
            name, number, schema = todo.popleft()
            outcome = await _outcome(url, schema)
            if outcome == "busy":
                todo.append((name, number, schema))
                continue
            if outcome not in ("conforms", "cut"):
                print(name, outcome, flush=True)
            if not outcome.startswith("failed"):  # what got no answer is asked for again by the next run
                with log.open("a", encoding="utf-8") as out:
                    out.write(json.dumps((name, number, outcome)) + "\n")

    await asyncio.gather(*(client() for _ in range(at_once)))


async def _outcome(url: str, schema: Schema) -> str:
    asked = body("Write one short, realistic example.", schema, max_output_tokens=CUT)
    try:
        answer = await ask(url, asked)
    except LoadError as error:
        return "busy" if "503" in str(error) else f"failed: {error}"
    if answer.output_tokens >= CUT:
        return "cut"
    try:
        value = json.loads(answer.text)
    except ValueError:
        return "is not JSON"
    validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    return "conforms" if validator(schema).is_valid(value) else "does not match"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=["speed", "draw", "conform"], default=["draw", "speed"])
    parser.add_argument("--repeats", type=int, default=15, help="pairs of answers for speed")
    parser.add_argument("--file", type=Path, help="schemas for conform")
    parser.add_argument("--schemas", type=int, default=100)
    parser.add_argument("--answers", type=int, default=10)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--log", type=Path, default=Path(tempfile.gettempdir()) / "b3node-conform.jsonl")
    given = parser.parse_args()
    if "draw" in given.parts:
        draws()
    if "speed" in given.parts:
        speed(given.repeats)
    if "conform" in given.parts:
        conform(given.file, given.schemas, given.answers, given.at_once, given.log)


if __name__ == "__main__":
    main()
