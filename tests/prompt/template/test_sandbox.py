"""The sandbox of templates: allowed and forbidden operations."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from jinja2 import TemplateError
from jinja2.exceptions import SecurityError

from b3node.prompt.template.sandbox import RaisedError, Sandbox, to_json
from b3node.prompt.tokens.provenance import client, client_value, plain
from tests.prompt.tokens.test_provenance import JSON


def rendered(source: str, **values: object) -> str:
    return Sandbox().from_string(source).render(values)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "13"),
        ("{% for x in [1, 2] %}{{ x }}{% break %}{% endfor %}", "1"),
        ("a{% generation %}b{{ 1 }}{% endgeneration %}c", "ab1c"),
        ("  {% if true %}\nx\n  {% endif %}\ny", "x\ny"),
        ("{{ {'b': '<é>', 'a': [1]} | tojson }}", '{"b": "<é>", "a": [1]}'),
        ("{{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }}", '{"a": 2, "b": 1}'),
        ("{{ {'a': 1} | tojson(indent=2) }}", '{\n  "a": 1\n}'),
        ("{{ {'a': 1, 'b': 2} | tojson(separators=(',', ':')) }}", '{"a":1,"b":2}'),
        ("{{ 'é😀\x7f' | tojson(ensure_ascii=True) }}", '"\\u00e9\\ud83d\\ude00\\u007f"'),
        ("{{ [{'a': 1}] | map(attribute='a') | tojson }}", "[1]"),
        ("{{ ('{\"a\": [1]}' | from_json).a[0] + 1 }}", "2"),
        ("{% set q = [] %}{% set _ = q.append(1) %}{% set _ = q.append(2) %}{{ q.pop(0) }}{{ q }}", "1[2]"),
        ("{% set ns = namespace(a=1) %}{% set ns.a = 2 %}{{ ns.a }}", "2"),
        (
            "{% set ns = namespace(a=1) %}{{ ns.b is defined }}{{ ns.b }}{{ ns['a'] }}{{ ns._x is defined }}",
            "False1False",
        ),
        ("{{ dict(a=1).a }}{{ dict([('b', 2)]).b }}", "12"),
        ("{{ '<b>' | safe + '<c>' }}", "<b><c>"),
        ("{{ missing }}|{{ missing is defined }}", "|False"),
        ("{% set comma = joiner(',') %}{% for x in 'ab' %}{{ comma() }}{{ x }}{% endfor %}", "a,b"),
        ("{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}", "aba"),
        (
            "{{ 'a' in 'abc' }}{{ 'a' not in 'abc' }}{{ 'a' in ['ab'] }}{{ 'a' in {'a': 1} }}",
            "TrueFalseFalseTrue",
        ),
    ],
)
def test_templates_find_their_environment(source, expected) -> None:
    """Loop controls, generation tags, plain JSON, queues, namespaces, silent undefined."""
    assert rendered(source) == expected


def test_a_template_can_refuse() -> None:
    """`raise_exception` ends the rendering."""
    with pytest.raises(RaisedError):
        rendered("{{ raise_exception('no') }}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ raise_exception.__globals__ }}",
        "{{ messages.__class__ }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ dict.__base__ }}",
        "{{ ('{0.__class__}').format(1) }}",
        "{% set x = {} %}{{ x.update({'a': 1}) }}",
        "{{ messages[0].clear() }}",
        "{{ messages.clear() }}",
        "{{ range(100001) | length }}",
        "{% include 'x' %}",
        "{{ lipsum() }}",
    ],
)
def test_the_sandbox_is_closed(source) -> None:
    """Nothing leads out of the sandbox, and only lists can be changed."""
    with pytest.raises((TemplateError, SecurityError, OverflowError, TypeError)):
        rendered(source + "{{ x.y.z }}", messages=[{"role": "user"}])


def test_names_are_sorted_as_a_person_reads_them() -> None:
    """`dictsort` and `sort_keys` see the characters that a client's names stand for."""
    value = {client("b"): 1, client("A"): 2, client("a2"): 3, client("Ä"): 4, "type": 5}

    pairs = plain(rendered("{% for k, v in value | dictsort %}{{ k }}{% endfor %}", value=value))
    cased = plain(rendered("{% for k, v in value | dictsort(true) %}{{ k }}{% endfor %}", value=value))
    by_value = plain(
        rendered(
            "{% for k, v in value | dictsort(by='value', reverse=true) %}{{ v }}{% endfor %}", value=value
        )
    )

    assert (pairs, cased, by_value) == ("Aa2btypeÄ", "Aa2btypeÄ", "54321")
    assert list(json.loads(plain(to_json(value, sort_keys=True)))) == ["A", "a2", "b", "type", "Ä"]


@given(JSON)
def test_a_clients_values_are_written_as_plain_json(value) -> None:
    """JSON text of a marked value is the JSON text of the value, with escapes and without."""
    value = client_value(value)
    expected = json.loads(plain(json.dumps(value, ensure_ascii=False)))

    assert json.loads(plain(to_json(value))) == expected
    escaped = plain(to_json(value, ensure_ascii=True))
    assert escaped.isascii()
    assert json.loads(escaped) == expected


def test_escapes_keep_their_owner() -> None:
    """An escape that stands for a client's character is the client's too."""
    assert to_json(client("é"), ensure_ascii=True) == '"\\' + client("u00e9") + '"'
    assert to_json("é", ensure_ascii=True) == '"\\u00e9"'


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ("'<' in value", True),
        ("'<' not in value", False),
        ("'&' in value or '\\n' in value", False),
        ("'<b>' in value", False),
        ("'<b' ~ '>' in value", False),
        ("'x' in value", False),
        ("value in '<b>'", False),
        ("'<' in list", False),
        ("1 < 2 and '<' == '<'", True),
    ],
)
def test_a_template_sees_which_characters_a_client_used_but_no_words(looks, expected) -> None:
    """So it can quote special characters, and is steered by nothing."""
    got = rendered(f"{{{{ {looks} }}}}", value=client("a <b> c"), list=[client("<"), client("x")])

    assert got == str(expected)
