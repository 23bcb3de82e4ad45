"""Scripted models, held against llama.cpp's greedy decoding after very different prompts."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any

import llama_cpp.llama_cpp as L  # noqa: N812 - the C library, as its users write it
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.zoo.architectures import ARCHITECTURES, Arch
from tests.zoo.reference import greedy, logits, opened, tokenize
from tests.zoo.script import Piece, S, Script, compile_script
from tests.zoo.scripted import scripted
from tests.zoo.vocabulary import EOS, IM_START, N_BASE, THINK, TOOL_CALL, base
from tests.zoo.zoo import Zoo

EMOJI = "😀".encode()
CUTS: list[Piece] = [
    b"Se",
    b"\xc3",
    b"\xb1or ",
    b"<tool",
    b"_call>",
    b'"a\\',
    b"u00",
    b'e9"',
    b"\\",
    b"n",
    EMOJI[:2],
]
CUTS += [
    EMOJI[2:3],
    EMOJI[3:],
    b"</th",
    b"ink>",
    *[b" ha"] * 3,
    *[b"ha"] * 2,
    *[b"a"] * 6,
    b"</think>",
    b"\x00",
]
TWO_CALLS: list[Piece] = [
    *(S("<tool_call>"), b'\n{"a":1}', S("</tool_call>"), b"\n"),
    *(S("<tool_call>"), b'\n{"b":2}', S("</tool_call>")),
]
THOUGHT: dict[str | tuple[str, str], list[Piece]] = {
    ("<think>", "\n"): [b"thought", S("</think>"), b"\n", b"ok"]
}


def _prompts(script: Script) -> list[list[int]]:
    """One token, random ones, all special ones, the script's own text, one of its kind many times."""
    drawn = np.random.default_rng(3).integers(0, N_BASE, 700)
    own = [*script.text][:700] or [1]
    markers = [*range(N_BASE - 7, N_BASE)] * 3
    return [[5], [int(token) for token in drawn], markers, own, [TOOL_CALL] * 40, [IM_START, 97, 10]]


def _exact(path: Path, script: Script, n: int) -> None:
    for prompt in _prompts(script):
        assert greedy(path, prompt, n) == script.follow(prompt, n)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_model_says_its_script_after_any_prompt(zoo: Zoo, arch: Arch) -> None:
    """Every family says the very pieces, cut inside characters and markers, then eos."""
    script = compile_script(CUTS)
    assert script.pieces == CUTS
    path = zoo.scripted(CUTS, arch=arch)
    _exact(path, script, len(CUTS) + 1)
    ids = greedy(path, [5], len(CUTS) + 5)
    assert ids == [*range(N_BASE, N_BASE + len(CUTS)), EOS]
    with opened(path, vocab_only=True) as model:
        assert [model.piece(token) for token in ids[:-1]] == CUTS


@settings(deadline=None, max_examples=25)
@given(
    pieces=st.lists(
        st.one_of(st.binary(min_size=1, max_size=4), st.sampled_from([b"a", b"\xc3"])), max_size=40
    )
)
def test_any_bytes_can_be_said_in_any_cut(pieces: list[bytes], zoo: Zoo) -> None:
    """Whatever bytes, however often, llama.cpp reads each token as the piece that it stands for."""
    path = zoo.scripted(pieces)
    ids = greedy(path, [7], len(pieces) + 1)
    assert ids[-1] == EOS
    with opened(path, vocab_only=True) as model:
        assert [model.piece(token) for token in ids[:-1]] == pieces


def test_one_byte_has_thousands_of_tokens(zoo: Zoo) -> None:
    """When overlong spellings are used up, byte tokens go on."""
    pieces = [b"\n"] * 300
    assert len({token.text for token in compile_script(pieces).vocabulary.tokens}) == N_BASE + 300
    with opened(zoo.scripted(pieces), vocab_only=True) as model:
        assert {model.piece(token) for token in range(N_BASE, N_BASE + 300)} == {b"\n"}


@pytest.mark.parametrize("special", [False, True])
def test_prompts_never_tokenize_to_script_tokens(zoo: Zoo, special: bool) -> None:
    """Random splices of the script's own text come out as base tokens only."""
    path, text = zoo.scripted(CUTS), compile_script(CUTS).text
    rng = np.random.default_rng(11)
    with opened(path, vocab_only=True) as model:
        for _ in range(500):
            cut = sorted(int(at) for at in rng.integers(0, len(text), 4))
            spliced = text[cut[0] : cut[2]] + text[cut[1] : cut[3]]
            assert max(model.tokenize(spliced, special=special), default=0) < N_BASE


def test_special_tokens_are_said_with_their_real_ids(zoo: Zoo) -> None:
    """`S` names any base token: a special, a merge, a byte."""
    pieces: list[Piece] = [S("<think>"), b"hm", S("</think>"), S("\n\n"), S(" the"), b"end"]
    assert greedy(zoo.scripted(pieces), [5], 9) == [277, 281, 278, 256, base().id(" the"), 282, EOS]


def test_the_end_can_be_another_token_or_never_come(zoo: Zoo) -> None:
    """An index goes back to that piece for ever, a token ends the answer in eos's place."""
    endless = zoo.scripted([b"start: ", b"la", b" la"], end=1)
    assert greedy(endless, [5], 1000) == [281, *[282, 283] * 500][:1000]
    assert greedy(zoo.scripted([b"x"], end=S("<|endoftext|>")), [5], 9) == [281, 274]
    assert greedy(zoo.scripted([]), [5], 9) == [EOS]


def test_routes_depend_on_how_the_prompt_ends(zoo: Zoo) -> None:
    """A prompt that ends with the named token gets the route, any other the script."""
    routes: dict[str | tuple[str, str], list[Piece]] = {
        "<think>": [b"thoughts", S("</think>"), b"done"],
        "\n\n": [b"no-think"],
    }
    path = zoo.scripted([b"plain"], routes=routes)
    script = compile_script([b"plain"], routes=routes)
    for ending, text in (("x", b"plain"), ("<think>", b"thoughts</think>done"), ("\n\n", b"no-think")):
        ids = greedy(path, tokenize(path, f"say{ending}", special=True), 9)
        assert script.vocabulary.join(ids[:-1]) == text
    _exact(path, script, 9)


@pytest.mark.parametrize("arch", ["llama", "qwen35", "gemma3", "gemma4"])
def test_branches_have_their_probabilities(zoo: Zoo, arch: Arch) -> None:
    """At temperature 1 the alternatives are as likely as written, and all of them meet again."""
    choice: Piece = [([b"yes"], 0.5), ([b"no", b"!"], 0.3), ([b"maybe", b" so"], 0.2)]
    path = zoo.scripted([b"I say ", choice, b" end"], arch=arch)
    row = logits(path, [5, 281]).astype(np.float64)
    chances = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
    assert chances[[282, 283, 285]] == pytest.approx([0.5, 0.3, 0.2], abs=1e-5)
    for last in (282, 284, 286):
        assert int(logits(path, [5, last]).argmax()) == 287


@pytest.mark.parametrize("length", [1, 2, 100, 3000])
@pytest.mark.parametrize("exact", [True, False])
def test_order_2_says_a_special_token_twice(zoo: Zoo, length: int, exact: bool) -> None:
    """Two calls, or a thought, however long the prompt, with and without flash attention."""
    script = compile_script(TWO_CALLS, order=2, routes=THOUGHT)
    assert script.text == b'<tool_call>\n{"a":1}</tool_call>\n<tool_call>\n{"b":2}</tool_call>'
    drawn = [int(token) for token in np.random.default_rng(length).integers(0, N_BASE, length)]
    markers = ([TOOL_CALL, THINK, 10] * length)[:length]
    with opened(zoo.scripted(TWO_CALLS, order=2, routes=THOUGHT, n_layer=2)) as model:
        for prompt in (drawn, markers, [*drawn, THINK, 10]):
            with model.context(length + 20, exact=exact) as context:
                assert context.greedy(prompt, 12) == script.follow(prompt, 12)


def test_order_2_tells_routes_and_the_script_apart(zoo: Zoo) -> None:
    """The same special begins the script and two routes, and each goes on in its own way."""
    routes: dict[str | tuple[str, str], list[Piece]] = {"a": [S("<think>"), b"A"], "b": [S("<think>"), b"B"]}
    pieces: list[Piece] = [S("<think>"), b"main", S("</think>"), b"x", S("<think>"), b"again", S("</think>")]
    script = compile_script(pieces, order=2, routes=routes)
    path = zoo.scripted(pieces, order=2, routes=routes)
    _exact(path, script, 10)
    for ending, text in (("c", script.text), ("a", b"<think>A"), ("b", b"<think>B")):
        prompt = [5, ord(ending)]
        said = greedy(path, prompt, 10)
        assert said == script.follow(prompt, 10)
        assert script.vocabulary.join(said[:-1]) == text


@settings(deadline=None, max_examples=40)
@given(
    pieces=st.lists(st.sampled_from([b"a", b"b", S("<think>"), S("</think>"), S("<tool_call>")]), max_size=9),
    route=st.lists(st.sampled_from([b"c", S("<think>"), S("</think>")]), max_size=4),
    key=st.sampled_from(["<think>", "\n", ("<think>", "\n"), ("\n", "<think>")]),
    prompt=st.lists(st.sampled_from([5, 10, THINK, TOOL_CALL]), min_size=1, max_size=6),
)
def test_order_2_is_exact_or_refused(
    zoo: Zoo, pieces: list[Piece], route: list[Piece], key: str | tuple[str, str], prompt: list[int]
) -> None:
    """Whatever specials a script repeats, a model that is written at all says what the script predicts."""
    try:
        script = compile_script(pieces, order=2, routes={key: route})
        path = zoo.scripted(pieces, order=2, routes={key: route})
    except ValueError:
        return
    assert greedy(path, prompt, 12) == script.follow(prompt, 12)


@pytest.mark.parametrize(
    ("pieces", "options"),
    [
        (TWO_CALLS, {}),
        ([b"a"], {"order": 3}),
        ([b"a"], {"end": 1}),
        ([], {"end": 0}),
        ([b""], {}),
        ([[([b"a"], 0.5)]], {}),
        ([[([b"a"], 1.0), ([b"b"], 0.0)]], {}),
        ([[([b"a"], 0.5), ([], 0.5)]], {}),
        ([[([S("<think>"), b"a"], 0.5), ([S("<think>"), b"b"], 0.5)]], {"order": 2}),
        ([b"a", S("<think>"), b"b"], {"routes": {"<think>": [b"c"]}}),
        ([b"a"], {"routes": {("<think>", "\n"): [b"c"]}}),
        ([S("<think>"), S("<think>"), S("<think>"), b"x"], {"order": 2}),
        ([S("<think>"), b"m"], {"order": 2, "routes": {("a", "b"): [S("<think>"), b"r"]}}),
        ([b"a"], {"n_layer": 0}),
        (TWO_CALLS, {"order": 2, "arch": "qwen35"}),
    ],
)
def test_what_cannot_be_said_is_refused(tmp_path: Path, pieces: list[Piece], options: dict[str, Any]) -> None:
    """Ambiguous and malformed scripts raise ValueError, and no file is written."""
    with pytest.raises(ValueError, match=r"\w{3}"):
        scripted(tmp_path / "x.gguf", pieces, **options)
    assert not list(tmp_path.iterdir())


def test_unknown_base_tokens_are_refused() -> None:
    """A special or a route that the vocabulary lacks raises KeyError."""
    with pytest.raises(KeyError):
        compile_script([S("<nothing>")])
    with pytest.raises(KeyError):
        compile_script([b"a"], routes={"<nothing>": [b"b"]})


def test_a_script_is_a_file(tmp_path: Path) -> None:
    """The same script gives the same bytes."""
    for name in ("a", "b"):
        scripted(tmp_path / name, CUTS, routes={"a": [b"b"]}, arch="qwen35")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_layers_slow_a_script_down_without_changing_it(zoo: Zoo) -> None:
    """64 layers say the same as one."""
    path = zoo.scripted([b"la", b"lu"], end=0, n_layer=64)
    with opened(path) as model:
        assert L.llama_model_n_layer(model.handle) == 64
    assert greedy(path, [5], 20) == [281, 282] * 10


GRAMMAR = rb"""
root ::= value
value ::= object | array | string | number | "true" | "null"
object ::= "{" (string ":" value ("," string ":" value)*)? "}"
array ::= "[" (value ("," value)*)? "]"
string ::= "\"" [^"\\\x00-\x1f]* "\""
number ::= "0" | [1-9] [0-9]*
"""


def _sampled(row: np.ndarray[Any, np.dtype[np.float32]], grammar: Any, rng: np.random.Generator) -> int:
    """A token that `grammar` allows (the others get -inf), drawn at temperature 1; 6 is the highest logit."""
    entries = (L.llama_token_data * len(row))()
    for token, logit in enumerate(row):
        entries[token] = L.llama_token_data(token, logit, 0.0)
    array = L.llama_token_data_array(data=entries, size=len(row), selected=-1, sorted=False)
    L.llama_sampler_apply(grammar, ctypes.byref(array))
    kept = [entries[at] for at in range(array.size)]
    chances = np.exp([entry.logit - 6 for entry in kept])
    return int(kept[rng.choice(len(kept), p=chances / chances.sum())].id)


def test_free_choice_follows_a_grammar(zoo: Zoo) -> None:
    """Sampled under a JSON grammar it writes short valid JSON of many kinds."""
    texts = set()
    path = zoo.free_choice()
    row = logits(path, [5])
    assert np.array_equal(row, logits(path, [*range(N_BASE)]))
    with opened(path, vocab_only=True) as model:
        for seed in range(60):
            grammar = L.llama_sampler_init_grammar(model.vocab, GRAMMAR, b"root")
            rng, said = np.random.default_rng(seed), list[int]()
            while not said or not model.ends(said[-1]):
                said.append(_sampled(row, grammar, rng))
                L.llama_sampler_accept(grammar, said[-1])
                assert len(said) < 500
            L.llama_sampler_free(grammar)
            text = base().join(said[:-1]).decode()
            json.loads(text)
            texts.add(text)
    assert len(texts) > 20


def test_free_choice_can_be_given_a_taste(zoo: Zoo) -> None:
    """`favour` adds to the logits of base tokens."""
    plain, keen = logits(zoo.free_choice(), [5]), logits(zoo.free_choice({"{": 8, "}": -1}), [5])
    assert keen[ord("{")] - plain[ord("{")] == pytest.approx(8, abs=1e-4)
    assert keen[ord("}")] - plain[ord("}")] == pytest.approx(-1, abs=1e-4)
