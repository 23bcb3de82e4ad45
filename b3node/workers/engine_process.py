"""The engine child: loads the model of its order, then runs the engine's loop until the front is gone."""

from __future__ import annotations

import sys
import time
from functools import partial

from b3node.config import EngineOptions
from b3node.engine.guidance.jump_forward import JumpForward
from b3node.engine.guidance.token_table import TokenTable
from b3node.engine.limits import EngineLimits
from b3node.engine.loop import Loop
from b3node.engine.messages import LoadFailed, Loading, Ready, ToEngine
from b3node.engine.schedule.scheduler import Scheduler
from b3node.engine.schedule.token_budget import TokenBudget
from b3node.llama.grammar import Grammars
from b3node.llama.model import LoadError, Model
from b3node.llama.vocab import Vocabulary
from b3node.workers.child_channel import ChildChannel
from b3node.workers.messages import EngineOrder, ToEngineProcess
from b3node.workers.spawn import inherit
from b3node.workers.startup import freeze

GAP_SECONDS_CPU, GAP_SECONDS_GPU = 0.150, 0.050
"""Seconds that a running stream may pause for a prompt, if `token_gap` is not configured."""


class _Tables:
    """Tables of a vocabulary for the loop; complete once `read` has returned."""

    grammars: Grammars
    token_table: TokenTable
    jump: JumpForward

    def read(self, vocabulary: Vocabulary) -> None:
        """Makes all tables."""
        self.grammars, self.token_table = Grammars(vocabulary), _token_table(vocabulary)
        self.jump = JumpForward(partial(vocabulary.tokenize, continues=True), self.token_table)


def main() -> None:
    """Runs the process's whole life. Exits with 1 if the model cannot be loaded."""
    channel: ChildChannel[EngineOrder | ToEngine] = ChildChannel(inherit(sys.argv), ToEngineProcess)  # type: ignore[arg-type]  # a union
    order = channel.next()
    if not isinstance(order, EngineOrder):
        return
    config = order.model
    began, tables = time.monotonic(), _Tables()
    try:
        model = Model.load(config.path, config, lambda share: channel.send(Loading(share)), tables.read)
    except LoadError as error:
        channel.send(LoadFailed(str(error)))
        sys.exit(1)
    loop = Loop(
        _scheduler(model, config),
        model.backend,
        channel,
        time.monotonic,
        tables.grammars.constrain,
        tables.token_table,
        tables.jump,
    )
    freeze()
    channel.send(_ready(model, time.monotonic() - began))
    loop.run()


def _ready(model: Model, seconds: float) -> Ready:
    return Ready(
        n_ctx=model.n_ctx,
        n_parallel=model.fit.parallel,
        n_vocab=model.vocabulary.n_vocab,
        n_ctx_train=model.n_ctx_train,
        device=model.device,
        description=model.description,
        load_seconds=seconds,
    )


def _token_table(vocabulary: Vocabulary) -> TokenTable:
    """Returns the vocabulary's tables for guides."""
    texts = {special.id: special.text for special in vocabulary.specials}
    controls = [special.id for special in vocabulary.specials if special.kind != "user_defined"]
    return TokenTable(vocabulary.pieces, texts, controls, vocabulary.eog)


def _scheduler(model: Model, options: EngineOptions) -> Scheduler:
    gap = options.token_gap or (GAP_SECONDS_GPU if model.offloaded else GAP_SECONDS_CPU)
    limits = EngineLimits(
        n_ctx=model.n_ctx,
        cells=model.cells,
        parallel=model.fit.parallel,
        slots=model.fit.slots,
        waiting=options.queue,
        batch=model.fit.batch,
        drafts=options.drafts and not model.stateful,
        stateful=model.stateful,
        window=model.window,
        kept_cells=model.kept_cells,
        host_cache_bytes=model.fit.host_cache_bytes,
        token_bytes=model.token_bytes,
        state_bytes=model.state_bytes,
    )
    return Scheduler(
        limits,
        eog=model.vocabulary.eog,
        pieces=model.vocabulary.pieces,
        token_budget=TokenBudget(gap=gap, largest=model.fit.batch),
    )


if __name__ == "__main__":
    main()
