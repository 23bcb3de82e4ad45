"""A tiny SentencePiece vocabulary as a file: a space before every text, and pieces that merge into
markers.
"""

from __future__ import annotations

from pathlib import Path

from gguf import GGUFWriter, TokenType

SPACE = "▁"
_CONTROL = ("<s>", "</s>", "<|user|>", "<|endoftext|>")
_USER_DEFINED = ("<tool_call>",)
_PIECES = (SPACE, *"abcdehlostx<>/_|", "</", "s>", "he", "ll", "hell", f"{SPACE}x", f"{SPACE}h")


def sentencepiece_model(path: Path, *, model_name: str = "tiny") -> Path:
    """Writes the vocabulary to `path`. A name with `phi-3` makes its special tokens swallow what follows."""
    texts = ["<unk>", *_CONTROL, *_USER_DEFINED, *(f"<0x{byte:02X}>" for byte in range(256)), *_PIECES]
    types = [
        TokenType.UNKNOWN,
        *[TokenType.CONTROL] * len(_CONTROL),
        *[TokenType.USER_DEFINED] * len(_USER_DEFINED),
    ]
    types += [TokenType.BYTE] * 256 + [TokenType.NORMAL] * len(_PIECES)
    writer = GGUFWriter(path, "llama")
    writer.add_name(model_name)
    writer.add_context_length(2048)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(texts)
    writer.add_token_scores([-float(index) for index in range(len(texts))])
    writer.add_token_types([int(kind) for kind in types])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
