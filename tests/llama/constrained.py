"""Goes on with texts and tokens under a grammar of llama.cpp, and tells what may come next."""

from __future__ import annotations

import numpy as np

from b3node.llama.grammar import LlamaGrammar

STRING = r'root ::= "\"" [ !#-\[\]-\uD7FF\uE000-\U0010FFFF]* "\""' + "\n"


def allowed(constraint: LlamaGrammar) -> set[int]:
    """All that may come next."""
    everything = np.arange(len(constraint._tokens.pieces), dtype=np.int32)
    return set(np.flatnonzero(constraint.allows(everything)).tolist())


def write(constraint: LlamaGrammar, text: str | bytes) -> LlamaGrammar:
    """Goes on with the bytes of a text, one token each."""
    for byte in text.encode() if isinstance(text, str) else text:
        assert constraint.allows(np.array([byte], np.int32)).all(), bytes([byte])
        constraint.accept(byte)
    return constraint


def takes(constraint: LlamaGrammar, *tokens: int) -> bool:
    """Whether the text may go on with each of the tokens, one after the other; accepts all but the last."""
    for token in tokens[:-1]:
        if not constraint.allows(np.array([token], np.int32))[0]:
            return False
        constraint.accept(token)
    return bool(constraint.allows(np.array([tokens[-1]], np.int32))[0])
