"""Jumping over what is forced: it is said whole and at once, computed in one step, and changes nothing
else.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import partial
from pathlib import Path

import jsonschema
import msgspec
import numpy as np
import pytest

from b3node.dialects.outline import MARK
from b3node.engine.guidance.jump_forward import MAX_JUMP, JumpForward
from b3node.engine.messages import Cancel, Sampling
from b3node.engine.sampling.constraint import ForcedText
from b3node.engine.schedule.chunking import CHECKPOINT_TOKENS
from b3node.grammar import schema_to_gbnf
from b3node.llama.grammar import Grammars
from b3node.llama.model import Model
from b3node.llama.vocab import Vocabulary
from b3node.workers.engine_process import _token_table
from tests.engine.fake_backend import EOG, continuation, dictated
from tests.engine.fake_constraint import FakeConstraint
from tests.engine.fake_grammar import TextGrammar, new, token_table
from tests.engine.real import Engine, random_prompts, submit as ask
from tests.engine.rig import Rig, said, submit
from tests.llama.loaded import TOLERANCE, ids, loaded
from tests.llama.sentencepiece import sentencepiece_model
from tests.zoo import reference
from tests.zoo.architectures import ARCHITECTURES, Arch
from tests.zoo.vocabulary import END_TOOL_CALL, ENDOFTEXT, IM_END
from tests.zoo.zoo import Zoo

ENDS = {IM_END, ENDOFTEXT}
FAVOURED = {'"': 3.0, "}": 3.0, ",": 2.0}
ALL = pytest.mark.parametrize("arch", ARCHITECTURES)


# ------------------------------------------------------------------------------------------- which tokens


def test_what_is_forced_is_written() -> None:
    """Each token is accepted by the constraint."""
    lex = token_table("kind", '"!')
    tokens = {'kind"!': new(lex, "kind", '"!')}
    grammar = TextGrammar(lex, [b'kind"! 1', b'kind"!2'])

    assert JumpForward(tokens.__getitem__, lex).advance(grammar) == grammar.accepted == tokens['kind"!']


def test_what_a_longer_token_could_span_is_left_to_the_model() -> None:
    """Where some token begins within the text and goes on behind its end as it may, the text ends before
    that.
    """
    texts = [b"qzcde", b"qzcdxf"]
    for more, written in (("zcdx", 0), ("cdx", 1), ("cde", 1), ("dx", 2), ("zcd", 3), ("zcdy", 3)):
        lex = token_table("qz", more)
        tokens = {"qzcd": [*new(lex, "qz"), *b"cd"]}

        assert (
            JumpForward(tokens.__getitem__, lex).advance(TextGrammar(lex, texts)) == tokens["qzcd"][:written]
        )
        assert (JumpForward(tokens.__getitem__, lex).tokens(b"qzcd", None) == tuple(tokens["qzcd"])) == (
            more == "zcd"
        )


def test_an_end_and_a_special_token_are_written_where_nothing_else_may_come() -> None:
    """Whatever the text before could be the beginning of; what comes behind the special token is looked at
    anew.
    """
    lex = token_table("ab}")
    close = MARK + b"</tool_call>"

    def advance(*texts: bytes) -> list[int]:
        return JumpForward(lambda text: list(text.encode()), lex).advance(TextGrammar(lex, texts))

    end = min(lex.eog)
    assert advance(b"ab") == [*b"ab", end]
    assert advance(b"ab", b"ab}") == []
    assert advance(b"ab" + close + b"cd") == [*b"ab", END_TOOL_CALL, *b"cd", end]
    assert advance(b"ab" + close + b"c", b"ab" + close + b"d") == [*b"ab", END_TOOL_CALL]
    assert advance(b"ab" + close, b"ab") == [*b"ab"]


@pytest.mark.parametrize("texts", [[b"a", b"b"], [b"\xc3\xa9x", b"\xc3\xa8"], []])
def test_nothing_is_written_where_nothing_whole_is_forced(texts) -> None:
    """A choice, half a character, or nothing: no token."""
    lex = token_table()

    assert JumpForward(lambda text: list(text.encode()), lex).advance(TextGrammar(lex, texts)) == []


def test_tokens_that_say_something_else_are_not_written() -> None:
    """A tokenizer that does not give back the very bytes is not believed."""
    lex = token_table()

    assert (
        JumpForward(lambda text: list(text.upper().encode()), lex).advance(TextGrammar(lex, [b"abc"])) == []
    )
    assert JumpForward(lambda text: [*text.encode(), 32], lex).advance(TextGrammar(lex, [b"abc"])) == []


def test_a_token_that_the_constraint_refuses_is_not_written() -> None:
    """The constraint has the last word on every token, also on those of forced text."""

    class Wrong(FakeConstraint):
        def forced(self, most: int) -> ForcedText:
            return ForcedText(b"abcd"[:most])

    constraint = Wrong([97], [98], [120], [100])

    assert JumpForward(lambda text: list(text.encode()), token_table()).advance(constraint) == [97, 98]
    assert constraint.accepted == [97, 98]


@pytest.mark.parametrize("kind", ["bytes", "sentencepiece"])
def test_forced_text_has_the_tokens_that_the_whole_text_has(zoo, tmp_path, kind) -> None:
    """Whatever follows a forced text, the text as a whole begins with the tokens that were written for it."""
    path = sentencepiece_model(tmp_path / "model.gguf") if kind == "sentencepiece" else zoo.random("llama")
    vocabulary, source = Vocabulary.load(str(path)), random.Random(1)
    tokenize = partial(vocabulary.tokenize, continues=True)
    jump = JumpForward(tokenize, _token_table(vocabulary))
    written = 0
    for _ in range(500):
        text = "".join(source.choices(["hell", "he", "l", "o x", "\n", "the", " ", "é", '"', "ab"], k=6))
        cut = source.randrange(1, len(text))
        following = source.choice([None, frozenset(text[cut:].encode()[:1])])
        tokens = jump.tokens(text[:cut].encode(), following)
        assert list(tokens) == tokenize(text)[: len(tokens)]
        written += len(tokens)
    assert written > 1000


# ------------------------------------------------------------------------------------------ in the scheduler


def answered(grammar: str, count: int) -> list[list[int]]:
    """Prompts whose answers of 40 tokens have no end in them."""
    prompts = ([i, i + 1] for i in range(80))
    return [prompt for prompt in prompts if EOG not in continuation(prompt, 40, grammar)][:count]


def test_forced_text_costs_one_step() -> None:
    """Of one token in four that is drawn each brings what follows it: a quarter of the steps, every token
    told.
    """
    rig = Rig(dictating=True)
    (prompt,) = answered("1 6", 1)
    steps = 0

    rig.step(submit(1, prompt, max_tokens=35, grammar="1 6"))
    while not rig.scheduler.idle:
        rig.step()
        steps += 1

    assert rig.text[1] == said(prompt, 35, "1 6")
    assert rig.finished[1].output_tokens == 35
    assert (
        rig.backend.computed == 2 + 28
    )  # the last seven come with the last draw, and nothing after them is asked
    assert steps == 4


def test_what_an_answer_must_begin_with_is_not_drawn() -> None:
    """The prompt's own step brings it."""
    rig = Rig(dictating=True)
    rig.step(submit(1, [1, 2], max_tokens=20, grammar="0 9"))

    assert rig.text[1] == said([1, 2], 20, "0 9")


@pytest.mark.parametrize("most", range(1, 15))
def test_the_limit_cuts_within_forced_text(most) -> None:
    """No token is told or counted beyond `max_tokens`, or beyond the context."""
    rig, short = Rig(dictating=True), Rig(dictating=True, n_ctx=2 + most)
    (prompt,) = answered("1 6", 1)

    rig.step(submit(1, prompt, max_tokens=most, grammar="1 6"))
    rig.drain()
    short.step(submit(1, prompt, max_tokens=40, grammar="1 6"))
    short.drain()

    for each in (rig, short):
        assert each.text[1] == said(prompt, most, "1 6")
        assert each.finished[1].reason == "length"
        assert each.finished[1].output_tokens == most


def test_an_end_that_is_forced_is_not_computed_for() -> None:
    """An answer that is complete ends with its last token's step, as `stop`; the end is counted, not told."""
    rig = Rig(dictating=True)

    rig.step(submit(1, [1, 2], max_tokens=20, grammar="0 9 9"))
    rig.drain()

    assert rig.text[1] == said([1, 2], 9, "0 9")
    assert rig.finished[1].reason == "stop"
    assert rig.finished[1].output_tokens == 10
    assert rig.backend.computed == 2


def test_others_go_on_while_forced_text_is_computed() -> None:
    """A long stretch does not keep a stream from its token, nor a prompt from half of the step."""
    rig = Rig(dictating=True, batch=12, n_ctx=400, cells=1024)
    stream, forced = answered("40 0", 1)[0], answered("1 40", 1)[0]
    rig.step(submit(1, stream, max_tokens=40), submit(2, forced, max_tokens=60, grammar="1 40"))
    while len(rig.text.get(2, b"")) < 30:
        rig.step()
    before = len(rig.text[1])
    rig.step(submit(3, [i % 90 for i in range(300)], max_tokens=1))
    computed = rig.scheduler.running[rig_slot(rig, 3)].computed

    for _ in range(3):
        rig.step()

    assert len(rig.text[1]) == before + 4
    assert rig.scheduler.running[rig_slot(rig, 3)].computed - computed >= 3 * 5
    assert rig.scheduler.running[rig_slot(rig, 2)].pending > 1


def rig_slot(rig: Rig, request: int) -> int:
    return next(slot for slot, sequence in rig.scheduler.running.items() if sequence.id == request)


def test_what_is_kept_is_what_was_computed() -> None:
    """A client that leaves while forced text is not computed yet: the next prompt reads no more than is
    there.
    """
    rig = Rig(dictating=True, batch=8, cells=1024)
    prompt = list(range(30))
    rig.step(submit(1, prompt, max_tokens=60, grammar="0 60"))
    while not (told := rig.text.get(1)):
        rig.step()
    rig.step(Cancel(1))
    computed = rig.backend.computed

    rig.step(submit(2, [*prompt, *told, 5], max_tokens=3))
    rig.drain()

    assert computed < len(prompt) + len(told)
    assert rig.finished[2].cached_tokens == computed
    assert rig.text[2] == said([*prompt, *told, 5], 3)


def test_a_state_is_copied_as_often_as_without_forced_text() -> None:
    """A stretch is computed up to where the state is to be copied, then on."""
    rig = Rig(dictating=True, n_ctx=900, cells=2048, stateful=True, host_cache=100_000)
    prompt = list(range(20))
    rig.step(submit(1, prompt, max_tokens=CHECKPOINT_TOKENS + 100, grammar="0 60"))
    rig.drain()
    told = [*rig.text[1]]

    rig.step(submit(2, [*prompt, *told[: CHECKPOINT_TOKENS + 9], 3, 4, 5], max_tokens=3))
    rig.drain()

    assert [dictated("0 60", place) for place in range(len(told))] == told
    assert rig.finished[2].cached_tokens == len(prompt) + CHECKPOINT_TOKENS


# -------------------------------------------------------------------------------------------- on real models

SCHEMA = {
    "type": "object",
    "properties": {
        "the name of it": {"type": "string", "maxLength": 3},
        "größe": {"enum": ["the smaller one", "the smaller two", "a large one"]},
        "there": {"type": "array", "items": {"const": "here and there"}, "minItems": 2, "maxItems": 2},
        "at last": {"type": "integer", "minimum": 1, "maximum": 999},
    },
    "required": ["the name of it", "größe", "there", "at last"],
    "additionalProperties": False,
}
GRAMMAR = schema_to_gbnf(SCHEMA)


def engine_of(model: Model) -> Engine:
    engine = Engine(model, tick=0.02)
    engine.loop._constrain = Grammars(model.vocabulary).constrain
    engine.loop._token_table = lex = _token_table(model.vocabulary)
    engine.loop._jump_forward = JumpForward(partial(model.vocabulary.tokenize, continues=True), lex)
    return engine


def constrained(request: int, prompt, **options):
    return msgspec.structs.replace(ask(request, prompt, **options), grammar=GRAMMAR)


def judge(engine: Engine, path: Path, prompt: list[int], request: int) -> None:
    """Checks that each token is the likeliest that its grammar allows in a fresh context, or that its text
    was forced.
    """
    grammar = Grammars(engine.model.vocabulary).constrain(GRAMMAR)
    said, everything = engine.said[request], np.arange(engine.model.vocabulary.n_vocab, dtype=np.int32)
    with reference.opened(path) as model, model.context(len(prompt) + len(said) + 1) as context:
        row = context.decode(prompt)
        for token in said:
            allowed = grammar.allows(everything)
            assert allowed[token]
            ahead = grammar.forced(MAX_JUMP)
            if not ahead.text and (ahead.following != frozenset() or len(ahead.specials) != 1):
                assert row[allowed].max() - row[token] < TOLERANCE
            grammar.accept(token)
            row = context.decode([token])
    heard = [engine.model.vocabulary.pieces[token] for token in said if token not in ENDS]
    assert engine.pieces[request] == heard
    assert engine.finished[request].output_tokens == len(said)


@ALL
def test_every_kind_of_model_goes_on_behind_a_jump(zoo: Zoo, arch: Arch) -> None:
    """Chunks of forced text beside streams and prompts: each drawn token is what a fresh context says."""
    path, prompts = zoo.random(arch), random_prompts(1, [3, 90, 17, 40, 200, 7])
    with loaded(path) as model:
        engine = engine_of(model)
        engine.serve(*(constrained(number, prompt, max_tokens=90) for number, prompt in prompts.items()))
        for number, prompt in prompts.items():
            judge(engine, path, prompt, number)
        assert engine.steps < sum(map(len, engine.said.values())) / 3


def test_jumps_change_no_text(zoo: Zoo) -> None:
    """A model without an opinion says the same, greedily, whether what is forced is drawn or jumped over."""
    texts, steps = [], []
    with loaded(zoo.free_choice(FAVOURED)) as model:
        engine = engine_of(model)
        jump = engine.loop._jump_forward
        for request, jumping in enumerate((None, jump)):
            engine.loop._jump_forward, begun = jumping, engine.steps
            engine.serve(constrained(request, [65, 66], max_tokens=300))
            texts.append(b"".join(engine.pieces[request]))
            steps.append(engine.steps - begun)
            assert engine.finished[request].reason == "stop"

    assert texts[0] == texts[1]
    assert steps[1] < steps[0] / 2
    jsonschema.validate(json.loads(texts[0]), SCHEMA)


def test_a_seed_repeats_an_answer_with_jumps(zoo: Zoo) -> None:
    """Alone, and in a crowd that makes its chunks smaller: the same seed says the same, another another."""
    chance, other = Sampling(1.0, 0.95, 7), Sampling(1.0, 0.95, 8)
    with loaded(zoo.free_choice(FAVOURED)) as model:
        engine = engine_of(model)
        engine.serve(constrained(0, ids(1, 40), max_tokens=300, sampling=chance))
        crowd = [constrained(10 + n, ids(n, 90), max_tokens=200, reserve=3) for n in range(5)]
        engine.serve(*crowd, constrained(1, ids(1, 40), max_tokens=300, reserve=3, sampling=chance))
        engine.serve(constrained(2, ids(1, 40), max_tokens=300, sampling=other))

    assert engine.said[0] == engine.said[1]
    assert engine.said[0] != engine.said[2]


def test_the_distribution_of_texts_is_that_without_jumps(zoo: Zoo) -> None:
    """Between two values that share a beginning, and of two lengths of one, each comes as often as it
    would.
    """
    grammar = 'root ::= "the " ("cat" | "cow" | "cows") " is" [ab] "."\n'
    counts: list[Counter[bytes]] = []
    with loaded(zoo.free_choice({"s": 1.0, "w": 0.7, "b": 0.5})) as model:
        engine = engine_of(model)
        jump = engine.loop._jump_forward
        for first, jumping in ((0, None), (1200, jump)):
            engine.loop._jump_forward = jumping
            numbers = range(first, first + 1200)
            asked = [ask(n, [65], max_tokens=30, sampling=Sampling(1.0, 1.0, n)) for n in numbers]
            for at in range(0, len(asked), 60):
                engine.serve(
                    *(msgspec.structs.replace(each, grammar=grammar) for each in asked[at : at + 60])
                )
            counts.append(Counter(b"".join(engine.pieces[n]) for n in numbers))

    assert counts[0].keys() == counts[1].keys()
    assert len(counts[0]) == 6
    one, other = (np.array([count[text] for text in counts[0]]) for count in counts)
    assert ((one - other) ** 2 / (one + other)).sum() < 20.5  # 5 degrees of freedom, p = 0.001
