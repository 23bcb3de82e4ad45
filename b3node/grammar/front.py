"""The front door: a schema in, a grammar out, or a refusal with the place and a sentence that helps."""

from __future__ import annotations

import time
from b3node.grammar.compiler import Compiler
from b3node.grammar.document import Document
from b3node.grammar.obligations import Obligations
from b3node.grammar.regular import Algebra


def schema_to_gbnf(schema: object) -> str:
    document = Document(schema)
    algebra = Algebra(200_000)
    obligations = Obligations(document, algebra, lambda: None)
    return Compiler(obligations, max_rules=20_000, max_states=4_000).grammar()
