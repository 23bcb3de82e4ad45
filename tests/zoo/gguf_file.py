"""Writes a model file: the same arguments give the same bytes, and a reader never sees half a file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from gguf import GGUFWriter
from numpy.typing import NDArray

from tests.zoo.vocabulary import ENDOFTEXT, EOS, MERGES, Vocabulary

Value = bool | int | float | str | Sequence[int] | Sequence[bool]
Tensor = NDArray[np.float32]


@dataclass
class Weights:
    """A model's body: metadata keys without the architecture's prefix, and tensors in numpy's axis order."""

    arch: str
    keys: dict[str, Value] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)


def write(path: Path, weights: Weights, vocabulary: Vocabulary, template: str | None) -> None:
    """Write the file under a temporary name beside `path`, then rename it.

    Overwriting a file that a process has mapped kills that process (SIGBUS), renaming over it does not.
    `template` None writes no chat template, as base models have none.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=".zoo-") as folder:
        draft = Path(folder) / "model.gguf"
        writer = GGUFWriter(draft, weights.arch)
        _add_keys(writer, weights.arch, weights.keys)
        _add_vocabulary(writer, vocabulary, template)
        for name, tensor in weights.tensors.items():
            writer.add_tensor(name, np.ascontiguousarray(tensor, dtype=np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        os.replace(draft, path)  # noqa: PTH105 - the call that the rule names


def _add_keys(writer: GGUFWriter, arch: str, keys: Mapping[str, Value]) -> None:
    writer.add_name(f"zoo {arch}")
    for name, value in keys.items():
        key = f"{arch}.{name}"
        match value:
            case bool():
                writer.add_bool(key, value)
            case int():
                writer.add_uint32(key, value)
            case float():
                writer.add_float32(key, value)
            case str():
                writer.add_string(key, value)
            case _:
                writer.add_array(key, list(value))


def _add_vocabulary(writer: GGUFWriter, vocabulary: Vocabulary, template: str | None) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([token.text for token in vocabulary.tokens])
    writer.add_token_types([int(token.type) for token in vocabulary.tokens])
    writer.add_token_merges(list(MERGES))
    writer.add_bos_token_id(ENDOFTEXT)
    writer.add_eos_token_id(EOS)
    writer.add_pad_token_id(ENDOFTEXT)
    writer.add_add_bos_token(False)
    if template is not None:
        writer.add_chat_template(template)
