"""Every template writes every conversation, and a client's text steers none of them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from b3node.contract.request import FunctionTool
from b3node.errors import Refusal
from b3node.prompt.probe.capabilities import probe
from b3node.prompt.template.adapt import adapt
from b3node.prompt.template.capabilities import TemplateCapabilities
from b3node.prompt.template.chat_template import ChatTemplate
from b3node.prompt.template.conversation import normalise
from b3node.prompt.template.reasoning_variables import reasoning_variables
from b3node.prompt.template.render import render
from b3node.prompt.tokens.provenance import plain
from tests.prompt.corpus import ALL, compiled, sent_by_clients, source
from tests.prompt.histories import request, user
from tests.prompt.probe.test_capabilities import LOOP

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
LIMIT = 1_000_000


def written(name, asked) -> str:
    template, capabilities = compiled(name)
    return render(
        normalise(asked), template, capabilities, reasoning_variables(asked.effort, source(name)), NOW, LIMIT
    )


@pytest.mark.parametrize("name", ALL)
def test_every_template_writes_clients_requests(name) -> None:
    """Real requests, an eighth of them for each template, so that each is written by several."""
    for asked in sent_by_clients()[len(name) % 8 :: 8]:
        assert len(written(name, asked)) < LIMIT


def test_a_template_that_fails_is_asked_for_less() -> None:
    """If functions fail, their description may work, and alternating turns do."""
    picky = (
        "{% for t in tools or [] %}{% if t.function.parameters.oneOf %}{{ raise_exception('') }}{% endif %}"
    )
    template = ChatTemplate(picky + "{{ t | tojson }}{% endfor %}" + LOOP)
    tool = FunctionTool("f", "d", {"oneOf": [{"type": "object"}]})
    asked = normalise(request(user("u"), tools=(tool,)))

    got = plain(render(asked, template, probe(template), {}, NOW, LIMIT))
    assert got.startswith("systemYou can call the functions described here")

    strict = ChatTemplate(
        "{% if messages | length > 2 %}{% for m in messages %}"
        "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('') }}{% endif %}"
        "{% endfor %}{% endif %}" + LOOP
    )
    asked = normalise(request(user("one"), user("two"), user("three")))
    assert plain(render(asked, strict, probe(strict), {}, NOW, LIMIT)) == "userone\n\ntwo\n\nthree"


def test_a_conversation_that_no_rung_writes_is_a_refusal() -> None:
    """If not even alternating turns can be written, the request is refused."""
    picky = ChatTemplate("{% if messages | length == 1 %}{{ messages[1].content.x }}{% endif %}" + LOOP)
    with pytest.raises(Refusal, match="cannot write this conversation"):
        render(normalise(request(user("u"))), picky, TemplateCapabilities(), {}, NOW, LIMIT)


def test_the_least_able_are_asked_as_they_want_to_be() -> None:
    """A template that needs a list of functions gets an empty one, on every rung."""
    lists = ChatTemplate("{% for t in tools %}{% endfor %}" + LOOP)
    capabilities = probe(lists)
    conversation = normalise(request(user("u")))

    assert plain(render(conversation, lists, capabilities, {}, NOW, LIMIT)) == "useru"
    assert adapt(conversation, TemplateCapabilities(no_tools="empty")) == conversation
