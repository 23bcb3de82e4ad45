"""The order to render a request's prompt, as the model would get it (see `render_prompt_handler`)."""

from __future__ import annotations

import msgspec

from b3node.config import Budgets
from b3node.contract.request import Request
from b3node.prompt.prepared import Prepared
from b3node.prompt.traits import Traits
from b3node.workers.messages import PrepareFailed, RequestRefused
from b3node.workers.one_shot import ask


class RenderOrder(msgspec.Struct, frozen=True, tag="render"):
    """A request and the model whose template renders it."""

    path: str
    """The model's file."""
    n_ctx: int
    """Tokens of the context."""
    thinking: Budgets
    """The budgets of thinking that are configured."""
    request: Request
    """The request."""
    now: float
    """The time that the template sees, in seconds since 1970."""


class RenderedToken(msgspec.Struct, frozen=True):
    """A token of a prompt."""

    id: int
    """Its id."""
    piece: bytes
    """Its bytes."""
    special: bool = False
    """Whether the vocabulary matches it as a whole."""

    @property
    def text(self) -> str:
        """Its bytes as text, invalid ones escaped."""
        return self.piece.decode(errors="backslashreplace")


class RenderedPrompt(msgspec.Struct, frozen=True, tag="rendered"):
    """A request as it would be submitted, and the model's traits."""

    tokens: tuple[RenderedToken, ...]
    """The prompt's tokens."""
    text: str
    """The prompt's text."""
    prepared: Prepared
    """The request as the engine would get it."""
    traits: Traits
    """The model's traits, found by probing its template."""


RenderAnswer = RenderedPrompt | RequestRefused | PrepareFailed


def render_prompt(order: RenderOrder) -> RenderAnswer:
    """Returns the prompt, or the reason why there is none. Raises as `ask` does."""
    answer: RenderAnswer = ask(order, RenderAnswer)  # type: ignore[arg-type]  # a union
    return answer
