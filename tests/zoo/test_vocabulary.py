"""The zoo's vocabulary, held against llama.cpp's own reading of it."""

from __future__ import annotations

import llama_cpp.llama_cpp as L  # noqa: N812 - the C library, as its users write it
import pytest
from hypothesis import given, settings, strategies as st

from tests.zoo.reference import opened
from tests.zoo.vocabulary import (
    ENDOFTEXT,
    EOG,
    EOS,
    IM_END,
    IM_START,
    MERGES,
    N_BASE,
    SPECIALS,
    TOOL_CALL,
    Token,
    TokenType,
    Vocabulary,
    base,
)
from tests.zoo.zoo import Zoo

STRICT = pytest.mark.parametrize("strict", [False, True])


def test_it_has_281_tokens_in_the_documented_order() -> None:
    """Bytes come first in byte order, then 18 merges, then the seven specials."""
    vocabulary = base()
    assert len(vocabulary) == N_BASE == 281
    assert [token.piece for token in vocabulary.tokens[:256]] == [bytes([byte]) for byte in range(256)]
    assert len(MERGES) == 18
    assert vocabulary.id("\n\n") == 256
    assert [vocabulary.id(text) for text in SPECIALS] == list(range(274, 281))


@STRICT
def test_llama_cpp_reads_every_token_as_we_do(zoo: Zoo, strict: bool) -> None:
    """Pieces, ends of generation and token types are the same; control tokens are empty when not asked
    for.
    """
    attributes = {TokenType.NORMAL: 4, TokenType.CONTROL: 8, TokenType.USER_DEFINED: 16}
    with opened(zoo.random(strict=strict), vocab_only=True) as model:
        assert model.n_vocab == N_BASE
        assert L.llama_vocab_eos(model.vocab) == EOS == IM_END
        assert {token for token in range(N_BASE) if model.ends(token)} == EOG
        assert not L.llama_vocab_get_add_bos(model.vocab)
        for number, token in enumerate(base(strict=strict).tokens):
            hidden = token.type is TokenType.CONTROL
            assert model.piece(number) == token.piece
            assert model.piece(number, special=False) == (b"" if hidden else token.piece)
            assert L.llama_vocab_get_attr(model.vocab, number) & attributes[token.type]


@STRICT
@pytest.mark.parametrize("text", SPECIALS)
def test_specials_parse_as_their_type_says(zoo: Zoo, strict: bool, text: str) -> None:
    """parse_special finds all of them; without it USER_DEFINED ones are still found, CONTROL ones are
    bytes.
    """
    number = base(strict=strict).id(text)
    with opened(zoo.random(strict=strict), vocab_only=True) as model:
        assert model.tokenize(f"a{text}b", special=True) == [97, number, 98]
        plain = model.tokenize(f"a{text}b", special=False)
        assert (number in plain) is (not strict and not text.startswith("<|"))
        assert base(strict=strict).join(plain) == f"a{text}b".encode()


def test_merges_and_turns_tokenize_as_in_a_real_model(zoo: Zoo) -> None:
    """Two line feeds are one token, a word with its space is one, a turn has its markers."""
    with opened(zoo.random(), vocab_only=True) as model:
        assert model.tokenize("\n\n") == [256]
        assert model.tokenize("a the") == [97, base().id(" the")]
        turn = model.tokenize("<|im_start|>user\nhi<|im_end|>", special=True)
        assert turn == [IM_START, base().id("user"), 10, 104, 105, IM_END]


@settings(deadline=None, max_examples=20)
@given(texts=st.lists(st.text(), min_size=20, max_size=60))
def test_any_text_comes_back_from_its_pieces(zoo: Zoo, texts: list[str]) -> None:
    """Controls, NUL, combining marks, right-to-left and astral characters survive tokenizing."""
    with opened(zoo.random(strict=True), vocab_only=True) as model:
        for text in texts:
            ids = model.tokenize(text)
            assert b"".join(model.piece(token) for token in ids) == base().join(ids) == text.encode()


def test_a_stored_text_cannot_occur_twice() -> None:
    """llama.cpp would abort the process, so the vocabulary refuses first."""
    token = Token(b"new", TokenType.NORMAL, b"new")
    assert len(base().extended([token])) == N_BASE + 1
    with pytest.raises(ValueError, match="same stored text"):
        base().extended([token, token])
    with pytest.raises(ValueError, match="same stored text"):
        Vocabulary(()).extended([*base().tokens, base().tokens[TOOL_CALL]])


def test_ids_are_found_by_text() -> None:
    """A special, a merge and a byte have an id; any other text has none."""
    assert (base().id("<|endoftext|>"), base().id("a")) == (ENDOFTEXT, 97)
    with pytest.raises(KeyError):
        base().id("no token")
