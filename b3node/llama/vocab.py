"""A model's vocabulary, read once into Python.

Pieces, special tokens, and the tokenizer with bounds on its input.

It comes from a file whose weights are not loaded (`Vocabulary.load`) or from a loaded model
(`Vocabulary.of`), and implements the vocabulary of `prompt.tokens.vocabulary`. Everything but `tokenize` is a
table, so no id of a client or a model is ever passed to llama.cpp, which aborts the process on an id out of
range.

`tokenize` keeps two promises that llama.cpp does not:

* Some pre-tokenizers are `std::regex`, which recurses once a character and overruns the stack on a run of
  some 25,400 characters of one class; longer ones are cut (`MAX_RUN_CHARACTERS`). Untrusted text is tokenized
  on a thread with a large stack as well.
* Vocabularies with a space prefix begin every text with a space. A text that continues another must not get
  one, so it is tokenized after a line feed, whose tokens are dropped again.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from b3node.llama import library
from b3node.llama.library import last_words, lib
from b3node.prompt.tokens.vocabulary import Special

MAX_RUN_CHARACTERS: Final = 8192
"""Length of a run of white space, or of other characters, that is tokenized at once."""

MAX_TEXT_CHARACTERS: Final = 1 << 28
"""Length of a text that `tokenize` takes, far above any context: keeps every length within an int32."""

_UNKNOWN, _CONTROL, _USER_DEFINED = 1 << 0, 1 << 3, 1 << 4
_LSTRIP, _RSTRIP = 1 << 7, 1 << 8
"""llama_token_attr (llama.h)."""
_SPECIAL: Final = _UNKNOWN | _CONTROL | _USER_DEFINED
_KINDS: Final[tuple[tuple[int, Literal["control", "user_defined", "unknown"]], ...]] = (
    (_CONTROL, "control"),
    (_UNKNOWN, "unknown"),
    (_USER_DEFINED, "user_defined"),
)
_RUNS: Final = re.compile(r"\S+|\s+")
_LEAD: Final = "\n"


class VocabularyError(Exception):
    """Raised if the vocabulary cannot be used; the message is for the operator."""


class Vocabulary:
    """A vocabulary; `load` and `of` make it. Not thread-safe. Ids are token ids, lengths bytes.

    Attributes:
        n_vocab: tokens; ids are 0 to n_vocab - 1.
        pieces: each token's bytes; empty for CONTROL and UNKNOWN tokens.
        specials: the tokens that are matched as a whole, by id.
        eog: the tokens that end a generation.
        bos, eos: the tokens around a prompt, or None.
        add_bos: whether a prompt begins with `bos` even if its template does not say so.
        longest: length of the longest token, special texts included.
        chat_template, tool_template: the file's templates, for all requests and for those with functions.
        name, architecture: the model's, as the file states them, or "".
        n_ctx_train: tokens that the model was trained for, or 0.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._vocab = lib.llama_model_get_vocab(model)
        self.n_vocab = size(model)
        self.pieces = tuple(_pieces(self._vocab, self.n_vocab))
        self.specials = tuple(_specials(self._vocab, self.n_vocab))
        is_eog = _unchecked(lib.llama_vocab_is_eog)
        vocab = ctypes.c_void_p(self._vocab)
        self.eog = frozenset(token for token in range(self.n_vocab) if is_eog(vocab, token))
        self.bos = self._known(lib.llama_vocab_bos(self._vocab))
        self.eos = self._known(lib.llama_vocab_eos(self._vocab))
        self.add_bos = bool(lib.llama_vocab_get_add_bos(self._vocab)) and self.bos is not None
        texts = (special.text.encode() for special in self.specials)
        self.longest = max(1, *map(len, self.pieces), *map(len, texts))
        self.chat_template = metadata(self._model, "tokenizer.chat_template") or None
        self.tool_template = metadata(self._model, "tokenizer.chat_template.tool_use") or None
        self.name = metadata(self._model, "general.name")
        self.architecture = metadata(self._model, "general.architecture")
        trained = metadata(self._model, f"{self.architecture}.context_length")
        self.n_ctx_train = int(trained) if trained.isdecimal() else 0
        self._room: ctypes.Array[ctypes.c_int32] = (ctypes.c_int32 * 4096)()
        self._lead_tokens = self._call(_LEAD)
        self._adds_space = self._read(self._call("a")) != b"a"

    @classmethod
    def load(cls, path: str) -> Vocabulary:
        """Reads the vocabulary of a GGUF file; its weights are not loaded.

        Raises:
            VocabularyError: there is no such file, or llama.cpp cannot read it.
        """
        if not Path(path).is_file():
            raise VocabularyError(f"there is no file {path}")
        library.begin()
        params = lib.llama_model_default_params()
        params.vocab_only = True
        model = lib.llama_model_load_from_file(path.encode(), params)
        if not model:
            raise VocabularyError(f"{path} is not a model that this build can load: {last_words()}")
        return cls(model)

    @property
    def native(self) -> Any:
        """The llama_vocab pointer, for this room alone."""
        return self._vocab

    @classmethod
    def of(cls, model: Any) -> Vocabulary:
        """Reads the vocabulary of a loaded model, by its pointer, which must outlive it."""
        return cls(model)

    def tokenize(self, text: str, *, continues: bool = False, parse_special: bool = False) -> list[int]:
        """Returns the tokens of `text`, without any that mark its beginning or end.

        Args:
            text: without lone surrogates, at most `MAX_TEXT_CHARACTERS` long.
            continues: the text continues another one, so it gets no space prefix.
            parse_special: match CONTROL tokens too; never for text that contains a client's.

        Raises:
            ValueError: the text is too long.
        """
        if len(text) > MAX_TEXT_CHARACTERS:
            raise ValueError(f"a text of {len(text)} characters is too long to be tokenized")
        tokens: list[int] = []
        for index, stretch in enumerate(_stretches(text)):
            tokens += self._stretch(stretch, continues=continues or index > 0, parse_special=parse_special)
        return tokens

    def _stretch(self, text: str, *, continues: bool, parse_special: bool) -> list[int]:
        if not (continues and self._adds_space):
            return self._call(text, parse_special=parse_special)
        lead = len(self._lead_tokens)
        tokens = self._call(_LEAD + text, parse_special=parse_special)
        return (
            tokens[lead:]
            if tokens[:lead] == self._lead_tokens
            else self._call(text, parse_special=parse_special)
        )

    def _call(self, text: str, *, parse_special: bool = False) -> list[int]:
        encoded = text.encode()
        count = self._native_tokenize(encoded, len(encoded) + 8, parse_special=parse_special)
        if count < 0:
            count = self._native_tokenize(encoded, -count, parse_special=parse_special)
        return list(self._room[:count])

    def _native_tokenize(self, text: bytes, most: int, *, parse_special: bool) -> int:
        """Writes the tokens into `_room`; returns their number, negated if it is above `most`."""
        if most > len(self._room):
            self._room = (ctypes.c_int32 * (2 * most))()
        room = len(self._room)
        return int(lib.llama_tokenize(self._vocab, text, len(text), self._room, room, False, parse_special))

    def _read(self, tokens: list[int]) -> bytes:
        return b"".join(self.pieces[token] for token in tokens)

    def _known(self, token: int) -> int | None:
        return token if 0 <= token < self.n_vocab else None


def metadata(model: Any, key: str) -> str:
    """Returns a text of a loaded model's file; "" if there is none."""
    length = lib.llama_model_meta_val_str(model, key.encode(), None, 0)
    if length < 0:
        return ""
    buffer = ctypes.create_string_buffer(length + 1)
    lib.llama_model_meta_val_str(model, key.encode(), buffer, len(buffer))
    return buffer.value.decode("utf-8", "replace")


def size(model: Any) -> int:
    """Returns how many tokens a loaded model has. Raises `VocabularyError` if it has no vocabulary."""
    vocab = lib.llama_model_get_vocab(model)
    count = int(lib.llama_vocab_n_tokens(vocab))
    if lib.llama_vocab_type(vocab) == lib.LLAMA_VOCAB_TYPE_NONE or count <= 0:
        raise VocabularyError("the model file has no vocabulary")
    return count


def _unchecked(function: Any) -> Any:
    """Returns a function of the library without ctypes' checks of its arguments.

    The checks cost more than most calls. Pointers must be given as ctypes' own values, and numbers as
    integers that fit. Only for tables: data from outside goes through the checks.
    """
    bare = type(function)(ctypes.cast(function, ctypes.c_void_p).value)
    bare.restype = function.restype
    return bare


def _pieces(vocab: int, count: int) -> Iterator[bytes]:
    """Yields every token's bytes, in the order of the ids."""
    to_piece, pointer = _unchecked(lib.llama_token_to_piece), ctypes.c_void_p(vocab)
    room = 256
    buffer = ctypes.create_string_buffer(room)
    view = memoryview(buffer)
    for token in range(count):
        size = to_piece(pointer, token, buffer, room, 0, 0)
        if size < 0:
            room = -size
            buffer = ctypes.create_string_buffer(room)
            view = memoryview(buffer)
            size = to_piece(pointer, token, buffer, room, 0, 0)
        yield view[:size].tobytes()


def _specials(vocab: int, count: int) -> Iterator[Special]:
    """Yields every token that is matched by its text, except those whose text is no UTF-8."""
    attributes_of, pointer = _unchecked(lib.llama_vocab_get_attr), ctypes.c_void_p(vocab)
    for token in range(count):
        attributes = attributes_of(pointer, token)
        if not attributes & _SPECIAL:
            continue
        with suppress(UnicodeDecodeError):
            text = (lib.llama_vocab_get_text(vocab, token) or b"").decode()
            kind = next(kind for bit, kind in _KINDS if attributes & bit)
            if text:
                yield Special(token, text, kind, bool(attributes & _LSTRIP), bool(attributes & _RSTRIP))


def _stretches(text: str) -> Iterator[str]:
    """Yields the text in pieces without a run longer than `MAX_RUN_CHARACTERS`; as it is if it has none."""
    start = 0
    if len(text) > MAX_RUN_CHARACTERS:
        for run in _RUNS.finditer(text):
            for cut in range(run.start() + MAX_RUN_CHARACTERS, run.end(), MAX_RUN_CHARACTERS):
                yield text[start:cut]
                start = cut
    yield text[start:]
