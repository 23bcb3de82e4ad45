"""All models of the node with their processes: the served models of `service`."""

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
from b3node.workers.served_model import EngineLoad, ModelFacts, ModelState
from b3node.workers.timeouts import Timeouts


class FleetModel:
    """Implements `served_model.ServedModel` with an engine and a pool of prepare workers."""

    def __init__(
        self,
        name: str,
        config: ModelConfig,
        progress: Callable[[str, float], None],
        timeouts: Timeouts,
    ) -> None:
        self._name = name
        self._config = config
        self._created = _made(Path(config.path))
        order = PrepareOrder(config.path, config.thinking)
        self._pool = PreparePool(name, order, size=config.prepare_workers, timeouts=timeouts)
        self._pool_counts = False
        self.engine = EngineClient(
            name,
            EngineOrder(config),
            progress=progress,
            timeouts=timeouts,
        )

    @property
    def id(self) -> str:
        """Name that requests use."""
        return self._name

    @property
    def state(self) -> ModelState:
        """State of its engine, or `failed` if no prompt can be prepared for it."""
        return "failed" if self._has_no_prompts() else self.engine.state

    @property
    def facts(self) -> ModelFacts | None:
        """Facts of the last time that the engine became ready; None before the first."""
        return self.engine.facts

    @property
    def load(self) -> EngineLoad | None:
        """The engine's load at its last step; None before the first one since its start."""
        return self.engine.load

    @property
    def traits(self) -> Traits | None:
        """Traits that its template shows; None before a prepare worker has been ready."""
        return self._pool.traits

    @property
    def max_request_bytes(self) -> int:
        """Bytes of the largest request body that this model takes."""
        return self._config.max_request_bytes

    @property
    def created(self) -> int:
        """Time of the model file, in seconds since 1970."""
        return self._created

    def require_ready(self) -> None:
        """Raises `Refusal` `infer_backend_unavailable` with `Retry-After` unless requests can be served."""
        if self._has_no_prompts():
            raise down(self._name)
        self.engine.require_ready()

    async def prepare(self, request: Request) -> Prepared:
        """Returns the request's prompt as tokens, made by a prepare worker. Raises `Refusal`."""
        self.require_ready()
        return await self._counting_pool().prepare(request, self._n_ctx)

    def submit(
        self, prepared: Prepared, *, sampling: Sampling, max_tokens: int | None, namespace: str
    ) -> Mailbox:
        """Submits a prompt to the engine. Raises `Refusal`."""
        return self.engine.submit(prepared, sampling=sampling, max_tokens=max_tokens, namespace=namespace)

    async def prepares(self, within: float) -> bool:
        """Returns whether its workers prepare prompts; see `PreparePool.probe`."""
        return not self._has_no_prompts() and await self._counting_pool().probe(within, self._n_ctx)

    async def probe(self, within: float) -> bool:
        """Returns whether the engine decodes; see `EngineClient.probe`."""
        return await self.engine.probe(within)

    async def settle(self) -> None:
        """Waits until the model's first start is over, whether it is ready or failed."""
        await self.engine.settled.wait()
        if self.engine.state == "ready":
            await self._counting_pool().settle()

    def start(self) -> None:
        """Starts the engine and the prepare workers."""
        self.engine.start()
        self._pool.start()

    async def stop(self) -> None:
        """Ends every process of this model."""
        await asyncio.gather(self.engine.stop(), self._pool.stop())

    def _counting_pool(self) -> PreparePool:
        """Returns the pool and lets its failure count from now on: the engine is up.

        Workers that failed before are started again, because the engine may have been restarted until its
        file was there.
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
        timeouts: bounds of the waits for its processes.
    """

    def __init__(
        self,
        config: Config,
        progress: Callable[[str, float], None],
        timeouts: Timeouts = Timeouts(),  # noqa: B008 - frozen
    ) -> None:
        self.models = {
            name: FleetModel(name, model, progress, timeouts) for name, model in config.models.items()
        }

    def start(self) -> None:
        """Starts every model's processes; needs a running event loop."""
        for model in self.models.values():
            model.start()

    async def settle(self) -> None:
        """Waits until every model's first start is over, whether it succeeded or not."""
        await asyncio.gather(*(model.settle() for model in self.models.values()))

    async def stop(self) -> None:
        """Ends every process."""
        await asyncio.gather(*(model.stop() for model in self.models.values()))


def _made(path: Path) -> int:
    """Returns when a file was last written, in seconds since 1970; 0 if it is gone."""
    try:
        return int(path.stat().st_mtime)
    except OSError:
        return 0
