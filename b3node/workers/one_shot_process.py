"""The child behind `showing`: one order, one answer."""

from __future__ import annotations

import socket
import sys
import threading
from datetime import UTC, datetime

from b3node.errors import Refusal
from b3node.llama.grammar import Grammars
from b3node.llama.vocab import Vocabulary, VocabularyError
from b3node.prompt.prepare import Preparer
from b3node.prompt.template.chat_template import BrokenTemplateError
from b3node.prompt.tokens.tokenize import Prompt
from b3node.workers.child_channel import Line
from b3node.workers.messages import PrepareFailed, Refused
from b3node.workers.one_shot import FromShow, Shown, ShownToken, ShowOrder
from b3node.workers.prepare_process import STACK
from b3node.workers.spawn import inherit


def main() -> None:
    """The process's whole life."""
    threading.stack_size(STACK)
    worker = threading.Thread(target=_serve, args=(inherit(sys.argv),), name="show")
    worker.start()
    worker.join()


def _serve(sock: socket.socket) -> None:
    line: Line[ShowOrder] = Line(sock, ShowOrder)
    order = line.next()
    if order is not None:
        line.send(_shown(order))
        line.next()  # whoever asked has read the answer when it closes the line


def _shown(order: ShowOrder) -> FromShow:
    try:
        vocabulary = Vocabulary.load(order.path)
        runs = Grammars(vocabulary).runs
        preparer = Preparer(vocabulary, n_ctx=order.n_ctx, runs=runs, budgets=order.thinking)
    except (VocabularyError, BrokenTemplateError) as error:
        return PrepareFailed(str(error))
    now = datetime.fromtimestamp(order.now, UTC)
    try:
        prepared = preparer.prepare(order.request, now)
        prompt = preparer.compose(order.request, now)
    except Refusal as refusal:
        return Refused(refusal.code, refusal.message, refusal.param)
    return Shown(_tokens(prompt, vocabulary), prompt.text, prepared, preparer.traits)


def _tokens(prompt: Prompt, vocabulary: Vocabulary) -> tuple[ShownToken, ...]:
    """The prompt's tokens; a special one by its text."""
    specials = {special.id: special.text for special in vocabulary.specials}
    return tuple(
        ShownToken(token, specials[token].encode(), special=True)
        if token in specials
        else ShownToken(token, vocabulary.pieces[token])
        for token in prompt.tokens
    )


if __name__ == "__main__":
    main()
