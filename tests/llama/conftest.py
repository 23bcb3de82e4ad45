"""Grammars over a vocabulary of the zoo."""

from __future__ import annotations

import pytest

from b3node.llama.grammar import Grammars
from b3node.llama.vocab import Vocabulary


@pytest.fixture(scope="module", params=["real", "strict"])
def vocabulary(zoo, request) -> Vocabulary:
    """Special tokens as converters make them, and all of them CONTROL."""
    return Vocabulary.load(str(zoo.random("llama", strict=request.param == "strict")))


@pytest.fixture(scope="module")
def grammars(vocabulary) -> Grammars:
    return Grammars(vocabulary)
