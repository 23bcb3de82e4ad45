"""Every model of the node with the processes behind it: what `service` knows as served models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from b3node.config import Config, ModelConfig
from b3node.contract.request import Request
from b3node.engine.messages import Sampling
from b3node.prompt.prepared import Prepared
from b3node.prompt.traits import Traits
from b3node.workers.engine_client import EngineClient, down
from b3node.workers.mailbox import Mailbox
from b3node.workers.messages import EngineOrder, PrepareOrder
from b3node.workers.prepare_pool import PreparePool
from b3node.workers.served_model import EngineLoad, ModelFacts, State
from b3node.workers.timeouts import Patience


class FleetModel:
    """Implements `served.ServedModel` with an engine and a pool of prepare workers."""

    def __init__(
        self,
        name: str,
        config: ModelConfig,
        progress: Callable[[str, float], None],
        patience: Patience,
    ) -> None:
        self._name = name
        self._config = config
        self._created = _made(Path(config.path))
        order = PrepareOrder(config.path, config.thinking)
        self._pool = PreparePool(name, order, size=config.prepare_workers, patience=patience)
        self._pool_counts = False
        self.engine = EngineClient(
            name,
            EngineOrder(config),
            progress=progress,
            patience=patience,
        )

    @property
    def id(self) -> str:
        """The name that requests use."""
        return self._name

    @property
    def state(self) -> State:
        """Where it stands now: what its engine says, unless no prompt can be prepared for it."""
        return "failed" if self._has_no_prompts() else self.engine.state

    @property
    def facts(self) -> ModelFacts | None:
        """What the engine said when it became ready last; None before the first time."""
        return self.engine.facts

    @property
    def load(self) -> EngineLoad | None:
        """The engine's load at its last step; None before the first one since its start."""
        return self.engine.load

    @property
    def traits(self) -> Traits | None:
        """What its template shows of it; None before a prepare worker has been ready."""
        return self._pool.traits

    @property
    def max_request_bytes(self) -> int:
        """The largest request body that this model takes, in bytes."""
        return self._config.max_request_bytes

    @property
    def created(self) -> int:
        """When the model file was made, in seconds since 1970."""
        return self._created

    def require_ready(self) -> None:
        """Raises `Refusal` `infer_backend_unavailable` with `Retry-After` unless requests can be served."""
        if self._has_no_prompts():
            raise down(self._name)
        self.engine.require_ready()

    async def prepare(self, request: Request) -> Prepared:
        """The request's prompt as tokens, made by a prepare worker. Raises `Refusal`."""
        self.require_ready()
        return await self._counting_pool().prepare(request, self._n_ctx)

    def submit(
        self, prepared: Prepared, *, sampling: Sampling, max_tokens: int | None, namespace: str
    ) -> Mailbox:
        """Hands a prompt to the engine. Raises `Refusal`."""
        return self.engine.submit(prepared, sampling=sampling, max_tokens=max_tokens, namespace=namespace)

    async def prepares(self, within: float) -> bool:
        """Whether its workers prepare prompts; see `PreparePool.probe`."""
        return not self._has_no_prompts() and await self._counting_pool().probe(within, self._n_ctx)

    async def probe(self, within: float) -> bool:
        """Whether the engine decodes; see `EngineClient.probe`."""
        return await self.engine.probe(within)

    async def settle(self) -> None:
        """Waits until the model's first start is over: it is ready to be asked, or something is wrong with it."""
        await self.engine.settled.wait()
        if self.engine.state == "ready":
            await self._counting_pool().settle()

    def start(self) -> None:
        """Starts the engine and the prepare workers beside it."""
        self.engine.start()
        self._pool.start()

    async def stop(self) -> None:
        """Ends every process of this model."""
        await asyncio.gather(self.engine.stop(), self._pool.stop())

    def _counting_pool(self) -> PreparePool:
        """The pool, once the engine is up.

        From then on it counts if no prompt can be prepared. What failed before gets another try: the engine may
        have been started again and again until the file was there.
        """
        if not self._pool_counts:
            self._pool_counts = True
            self._pool.retry()
        return self._pool

    @property
    def _n_ctx(self) -> int:
        return self.facts.n_ctx if self.facts is not None else 0

    def _has_no_prompts(self) -> bool:
        return self._pool_counts and self._pool.failed


class Fleet:
    """All configured models.

    Args:
        progress: called with a model's name and the share of it that is loaded, 0 to 1.
        patience: how long it waits for its processes.
    """

    def __init__(
        self,
        config: Config,
        progress: Callable[[str, float], None],
        patience: Patience = Patience(),  # noqa: B008 - frozen
    ) -> None:
        self.models = {
            name: FleetModel(name, model, progress, patience) for name, model in config.models.items()
        }

    def start(self) -> None:
        """Starts every model's processes; needs a running event loop."""
        for model in self.models.values():
            model.start()

    async def settle(self) -> None:
        """Waits until every model's first start is over, well or not."""
        await asyncio.gather(*(model.settle() for model in self.models.values()))

    async def stop(self) -> None:
        """Ends every process."""
        await asyncio.gather(*(model.stop() for model in self.models.values()))


def _made(path: Path) -> int:
    """When a file was last written, in seconds since 1970; 0 if it has gone since the configuration was read."""
    try:
        return int(path.stat().st_mtime)
    except OSError:
        return 0
