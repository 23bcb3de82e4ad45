"""The initial response, before any output: the request's echo (contract decisions, "Response object")."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET

from b3node.contract.request import FunctionTool, Request, TextFormat, ToolChoice
from b3node.contract.response import (
    FunctionToolChoice,
    FunctionToolEcho,
    JsonObjectFormat,
    JsonSchemaFormat,
    PlainFormat,
    ReasoningEcho,
    Response,
    TextEcho,
)


def begin(request: Request, *, response_id: str, created_at: int) -> Response:
    """Returns the snapshot that a response starts from.

    Sampling values are the ones in effect (1.0 when unset), all others are the request's; `service_tier` is
    always "default", since there is one.

    Args:
        request: the decoded request.
        response_id: `resp_` and a ULID.
        created_at: seconds since 1970.
    """
    return Response(
        id=response_id,
        created_at=created_at,
        status="in_progress",
        instructions=request.instructions,
        max_output_tokens=request.max_output_tokens,
        model=request.model,
        parallel_tool_calls=request.parallel_tool_calls,
        prompt_cache_key=request.prompt_cache_key,
        reasoning=ReasoningEcho(effort=request.effort, summary=request.summary),
        safety_identifier=request.safety_identifier,
        temperature=1.0 if request.temperature is None else request.temperature,
        text=TextEcho(format=_format(request.text_format), verbosity=request.verbosity or "medium"),
        tool_choice=_tool_choice(request.tool_choice),
        tools=tuple(map(_tool, request.tools)),
        top_p=1.0 if request.top_p is None else request.top_p,
        user=request.user,
        metadata=request.metadata,
    )


def _format(asked: TextFormat) -> PlainFormat | JsonObjectFormat | JsonSchemaFormat:
    match asked.type:
        case "text":
            return PlainFormat()
        case "json_object":
            return JsonObjectFormat()
        case "json_schema":
            return JsonSchemaFormat(
                name=asked.name or "",
                schema=asked.schema or {},
                strict=bool(asked.strict),
                description=UNSET if asked.description is None else asked.description,
            )


def _tool_choice(choice: ToolChoice) -> Literal["none", "auto", "required"] | FunctionToolChoice:
    return FunctionToolChoice(choice.name or "") if choice.mode == "function" else choice.mode


def _tool(tool: FunctionTool) -> FunctionToolEcho:
    return FunctionToolEcho(tool.name, tool.description, tool.parameters, tool.strict)
