"""Items become turns."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, strategies as st

from b3node.contract.request import FunctionCallOutput, ImagePart, Message, Reasoning, RefusalPart, TextPart
from b3node.prompt.template.conversation import (
    NO_RESULT,
    AssistantTurn,
    ToolCall,
    ToolTurn,
    UserTurn,
    normalise,
)
from tests.prompt.histories import HISTORIES, assistant, call, developer, output, request, system, user


def turns(*items):
    return normalise(request(*items)).turns


def said(text: str) -> UserTurn:
    return UserTurn((TextPart(text),))


def test_system_texts_follow_the_instructions_wherever_they_stand() -> None:
    """Instructions, system and developer texts make one system text, in the order of the request."""
    conversation = normalise(
        request(system("A"), user("Hi"), developer("B", "b"), system(""), assistant("x"), instructions="I")
    )

    assert conversation.system == "I\n\nA\n\nB\nb"
    assert conversation.turns == (said("Hi"), AssistantTurn("x"))


def test_assistant_side_items_fold_into_one_turn() -> None:
    """Reasoning, messages and calls that follow each other are one turn, then come the results."""
    got = turns(
        user("Hi"),
        Reasoning("Think."),
        assistant("Look."),
        Reasoning("Again."),
        call("a", "f", '{"x": 1}'),
        assistant("So."),
        output("a", "r"),
        assistant("Done."),
    )

    assert got == (
        said("Hi"),
        AssistantTurn("Look.\n\nSo.", "Think.\n\nAgain.", (ToolCall("call00004", "f", {"x": 1}),)),
        ToolTurn("call00004", "f", "r"),
        AssistantTurn("Done."),
    )


def test_a_system_message_does_not_split_a_turn() -> None:
    """System items are taken out before anything is folded."""
    assert turns(assistant("a"), system("S"), assistant("b")) == (AssistantTurn("a\n\nb"),)


def test_results_stand_after_their_calls_in_the_order_of_the_calls() -> None:
    """Outputs stand with the turn that called, for any order and place."""
    got = turns(user("Hi"), call("a", "f"), call("b", "g"), user("Wait"), output("b", "2"), output("a", "1"))

    assert [type(turn) for turn in got] == [UserTurn, AssistantTurn, ToolTurn, ToolTurn, UserTurn]
    assert [turn.text for turn in got if isinstance(turn, ToolTurn)] == ["1", "2"]


def test_a_repeated_id_pairs_with_the_latest_earlier_call() -> None:
    """Each round's output answers that round's call."""
    got = turns(user("x"), call("a"), output("a", "1"), call("a"), output("a", "2"))

    assert [turn.text for turn in got if isinstance(turn, ToolTurn)] == ["1", "2"]
    assert len({turn.call_id for turn in got if isinstance(turn, ToolTurn)}) == 2


def test_an_unanswered_call_has_no_result() -> None:
    """A call without an output is followed by a result that says so."""
    assert turns(call("a", "f"), user("Stop"))[1:] == (ToolTurn("call00000", "f", NO_RESULT), said("Stop"))


def test_empty_reasoning_adds_nothing() -> None:
    """Empty reasoning makes no turn and no text."""
    assert turns(user("a"), Reasoning(""), user("b")) == (said("a"), said("b"))
    assert turns(Reasoning(""), assistant("x")) == (AssistantTurn("x"),)


def test_an_empty_answer_is_a_turn() -> None:
    """A message item with empty text is an empty answer, so it is kept."""
    assert turns(user("a"), assistant(""), user("b"))[1] == AssistantTurn()


def test_refusals_are_the_assistants_text() -> None:
    """A refusal part is text of the turn."""
    assert turns(Message("assistant", (TextPart("a"), RefusalPart("no")))) == (AssistantTurn("a\nno"),)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {}),
        (" \n", {}),
        ("{}", {}),
        ('{"a": [1, null, "ü"]}', {"a": [1, None, "ü"]}),
        ('["Oslo"]', '["Oslo"]'),
        ('"text"', '"text"'),
        ("12", "12"),
        ('{"a": ', '{"a": '),
        ("city=Oslo", "city=Oslo"),
        ('{"a":' * 5000, '{"a":' * 5000),
        ('{"a":' * 65 + "1" + "}" * 65, '{"a":' * 65 + "1" + "}" * 65),
    ],
)
def test_arguments_are_a_mapping_or_the_clients_text(arguments, expected) -> None:
    """A JSON object is parsed, nothing is an empty one, anything else stays text."""
    turn = turns(call("a", "f", arguments))[0]

    assert isinstance(turn, AssistantTurn)
    assert turn.calls[0].arguments == expected


def test_images_in_outputs_follow_the_results_as_a_user_turn() -> None:
    """All images of a round stand after all its results; the texts next to them are the result."""
    first = ImagePart("https://x/1.png")
    got = turns(
        call("a", "f"),
        call("b", "f"),
        FunctionCallOutput("a", (TextPart("see"), first, TextPart("this"))),
        output("b", "ok"),
    )

    assert got[1:] == (
        ToolTurn("call00000", "f", "see\nthis"),
        ToolTurn("call00001", "f", "ok"),
        UserTurn((first,)),
    )


def test_a_users_parts_keep_their_order() -> None:
    """Texts that follow each other are one; an image stands where it stood."""
    image = ImagePart("https://x/1.png")
    item = Message("user", (TextPart("a"), TextPart("b"), image, TextPart("c")))

    assert turns(item, user()) == (UserTurn((TextPart("a\nb"), image, TextPart("c"))), said(""))


ITEMS = st.lists(
    st.one_of(
        st.builds(user, st.text(max_size=3)),
        st.builds(assistant, st.text(max_size=3)),
        st.builds(system, st.text(max_size=3)),
        st.builds(Reasoning, st.text(max_size=3)),
        st.builds(call, st.sampled_from("abc")),
        st.builds(output, st.sampled_from("abc"), st.text(max_size=3)),
    ),
    max_size=20,
)


@given(ITEMS)
def test_any_history_has_the_shape_that_templates_expect(items) -> None:
    """No two assistant turns meet, every call has exactly one result right after its turn, ids are unique."""
    rest = list(turns(*items))
    ids = [one.id for turn in rest if isinstance(turn, AssistantTurn) for one in turn.calls]

    assert len(set(ids)) == len(ids) == sum(item.__class__.__name__ == "FunctionCall" for item in items)
    assert all(len(one) == 9 and one.isalnum() for one in ids)
    while rest:
        turn = rest.pop(0)
        assert not isinstance(turn, ToolTurn)
        if isinstance(turn, AssistantTurn):
            results = [rest.pop(0) for _ in turn.calls]
            assert [one.call_id for one in results] == [one.id for one in turn.calls]
            assert not (rest and isinstance(rest[0], AssistantTurn) and not results)


@given(ITEMS)
def test_nothing_that_a_user_said_is_lost(items) -> None:
    """Every user message is a turn, in order, with its text."""
    users = [item.content for item in items if isinstance(item, Message) and item.role == "user"]

    assert [turn.content for turn in turns(*items) if isinstance(turn, UserTurn)] == users


@pytest.mark.parametrize("name", HISTORIES)
def test_a_conversation_is_a_plain_value(name) -> None:
    """Conversations survive a trip through msgpack, so nothing in them is a library's object."""
    conversation = normalise(HISTORIES[name])

    assert json.dumps(msgspec.to_builtins(conversation))
