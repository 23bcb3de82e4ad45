"""The clients, where they are installed, and the flows that each can play."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

JS: Final = Path(__file__).parent / "js"
PROGRAMS: Final = Path(__file__).parent / "programs"
_ENVIRONMENTS: Final = Path(__file__).parent.parent.parent / ".venv-clients"
OPENAI3: Final = _ENVIRONMENTS / "openai3"
OPENAI2: Final = _ENVIRONMENTS / "openai2"
"""Some clients need the OpenAI client's major version 2, others 3."""

FLOWS: Final = {
    "text": "a plain answer, and another after its history",
    "stream": "a streamed answer",
    "structured": "an answer by a JSON Schema",
    "tools": "two functions, one after the other, then an answer",
    "parallel": "two functions in one turn, then an answer",
    "final": "two functions, then an answer by a JSON Schema",
    "reasoning": "thoughts are told apart from answers and calls; what a client sends back of them is taken",
    "forced": "a named function, any function, none",
    "handoff": "two functions, another agent, an answer by a JSON Schema",
    "embedded": "forced calls of the embedded model, whose template knows no functions",
}
"""What a flow is, by name; the columns of the table."""


_AGENTS = (*(flow for flow in FLOWS if flow != "handoff"),)


@dataclass(frozen=True)
class Client:
    """`package` is the name by which its version is asked for, `home` the folder of its environment."""

    name: str
    package: str
    home: Path
    program: str
    flows: tuple[str, ...] = _AGENTS

    @property
    def command(self) -> list[str]:
        if self.home == JS:
            return ["node", str(JS / self.program)]
        return [str(self.home / "bin" / "python"), str(PROGRAMS / self.program)]

    @property
    def environment(self) -> Mapping[str, str]:
        """What the program sees: nothing that points to another service, no telemetry."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return kept | {
            "OPENAI_API_KEY": "none",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "HAYSTACK_TELEMETRY_ENABLED": "False",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }

    @property
    def version(self) -> str:
        """The installed one. Raises `OSError` or `StopIteration` where there is none."""
        if self.home == JS:
            package = (JS / "node_modules" / self.package / "package.json").read_text(encoding="utf-8")
            return str(json.loads(package)["version"])
        (site,) = self.home.glob("lib/python*/site-packages")
        return next(iter(metadata.distributions(name=self.package, path=[str(site)]))).version


CLIENTS: Final = (
    Client("OpenAI, Python", "openai", OPENAI3, "openai_sdk.py"),
    Client("OpenAI, JavaScript", "openai", JS, "openai.mjs"),
    Client("Agents SDK, Python", "openai-agents", OPENAI3, "agents_sdk.py", tuple(FLOWS)),
    Client("Agents SDK, JavaScript", "@openai/agents", JS, "agents.mjs", tuple(FLOWS)),
    Client("LangChain", "langchain-openai", OPENAI3, "langchain_openai_.py"),
    Client("pydantic-ai", "pydantic-ai-slim", OPENAI3, "pydantic_ai_.py"),
    Client("LiteLLM", "litellm", OPENAI2, "litellm_.py"),
    Client("LlamaIndex", "llama-index-llms-openai", OPENAI2, "llama_index_.py"),
    Client("instructor", "instructor", OPENAI2, "instructor_.py", ("stream", "forced", "embedded")),
    Client("haystack", "haystack-ai", OPENAI3, "haystack_.py"),
    Client("AI SDK, OpenAI provider", "@ai-sdk/openai", JS, "ai_openai.mjs"),
    Client("AI SDK, Open Responses provider", "@ai-sdk/open-responses", JS, "ai_open_responses.mjs"),
)
