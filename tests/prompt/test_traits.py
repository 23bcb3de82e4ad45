"""The traits of a model, from its template's output."""

from __future__ import annotations

import pytest

from b3node.dialects.dialect import GENERIC
from b3node.prompt.probe.capabilities import probe
from b3node.prompt.probe.dialect import learn, traits_of
from b3node.prompt.template.chat_template import ChatTemplate
from b3node.prompt.traits import Traits
from tests.prompt.corpus import source
from tests.zoo.templates import CHATML


def traits(source: str, *, template: bool = True) -> Traits:
    written = ChatTemplate(source, bos="<s>", eos="</s>")
    capabilities = probe(written)
    return traits_of(capabilities, learn(written, capabilities), template=template)


def test_a_template_of_turns_alone_says_so() -> None:
    """Functions are described in the text, and nothing shows thinking."""
    assert traits(CHATML, template=False) == Traits(False, "turn", "text", not GENERIC.alone, False, "none")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("zoo-tools", Traits(True, "turn", "template", True, True, "switch")),
        ("Qwen-Qwen3-0.6B", Traits(True, "turn", "template", True, True, "switch")),
        ("openai-gpt-oss-120b", Traits(True, "turn", "template", False, True, "always")),
        (
            "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
            Traits(True, "turn", "text", not GENERIC.alone, True, "always"),
        ),
        ("LFM2.5-Instruct", Traits(True, "turn", "template", True, True, "none")),
        ("google-gemma-2-2b-it", Traits(True, "user", "text", not GENERIC.alone, False, "none")),
        ("meta-llama-Llama-3.1-8B-Instruct", Traits(True, "turn", "template", False, False, "none")),
    ],
)
def test_traits_of_real_models_are_known(name, expected) -> None:
    """Those that think when asked, always, when they like, and never; with many calls, one, and none of their
    own.
    """
    try:
        found = source(name)
    except FileNotFoundError:
        pytest.skip("the shared templates are not here")

    assert traits(found) == expected
