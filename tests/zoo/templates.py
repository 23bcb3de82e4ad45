"""Chat templates for the zoo, in the ChatML family that its special tokens belong to.

`CHATML` knows nothing but turns. `TOOLS` adds what a tool-calling reasoning model's template does: a list
of tools in the system turn, past calls between `<tool_call>` markers, results in `<tool_response>` of a
user turn, past reasoning between `<think>` markers, and `enable_thinking`, which opens or skips a thought
in the generation prompt. `THINKING` is the same but for the generation prompt of the Qwen 3 family: a thought
is skipped unless it is asked for, and opened by the model itself.
"""

from __future__ import annotations

from typing import Final

CHATML: Final = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)

TOOLS: Final = """\
{%- set first = messages[0] if messages else none -%}
{%- set system = first.content if first and first.role == 'system' else '' -%}
{%- if system or tools -%}
{{- '<|im_start|>system\\n' + system -}}
{%- if tools -%}
{{- '\\n\\n' if system else '' -}}
{{- 'Functions you may call, one JSON object a line:\\n' -}}
{%- for tool in tools %}{{- tool | tojson + '\\n' -}}{% endfor -%}
{{- 'Call one with <tool_call>\\n{"name": ..., "arguments": {...}}\\n</tool_call>' -}}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'system' -%}
{%- if not loop.first -%}{{- raise_exception('The system message must come first') -}}{%- endif -%}
{%- elif message.role == 'tool' -%}
{%- if loop.previtem is not defined or loop.previtem.role != 'tool' -%}{{- '<|im_start|>user' -}}{%- endif -%}
{{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' -}}
{%- if loop.last or loop.nextitem.role != 'tool' -%}{{- '<|im_end|>\\n' -}}{%- endif -%}
{%- elif message.role == 'assistant' -%}
{{- '<|im_start|>assistant\\n' -}}
{%- if message.reasoning_content -%}
{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' -}}
{%- endif -%}
{{- message.content or '' -}}
{%- for call in message.tool_calls or [] -%}
{{- '\\n' if message.content or not loop.first else '' -}}
{{- '<tool_call>\\n' + {'name': call.function.name, 'arguments': call.function.arguments} | tojson -}}
{{- '\\n</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- else -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- if enable_thinking is defined -%}
{{- '<think>\\n' if enable_thinking else '<think>\\n\\n</think>\\n\\n' -}}
{%- endif -%}
{%- endif -%}
"""

THINKING: Final = TOOLS.replace(
    """'<think>\\n' if enable_thinking else '<think>\\n\\n</think>\\n\\n'""",
    """'' if enable_thinking else '<think>\\n\\n</think>\\n\\n'""",
)
