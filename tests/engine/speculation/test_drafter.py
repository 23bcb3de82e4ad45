from __future__ import annotations

from array import array

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from b3node.engine.speculation import prompt_lookup
from b3node.engine.speculation.drafter import MAX_DRAFT_TOKENS, Cost, Drafter, DrafterFactory
from b3node.engine.speculation.ngram_table import NgramTable

SONG = [7, 3, 9, 4, 1, 8, 2]
tokens = st.lists(st.integers(0, 5), min_size=1, max_size=60)


def linear(first: float, further: float) -> Cost:
    """The first token more costs so much of a step, each further one so much."""
    return lambda more: first + further * (more - 1)


def say(drafter: Drafter, said: list[int]) -> Drafter:
    for token in said:
        drafter._known.append(token)
        drafter.feed()
    return drafter


def fed(*said: int, prompt: int = 1, ngrams: NgramTable | None = None) -> Drafter:
    """Guesses for a sequence of which all but the prompt was said token by token."""
    return say(Drafter(array("i", said[:prompt]), ngrams or NgramTable()), list(said[prompt:]))


def test_what_was_said_before_is_guessed_to_come_again() -> None:
    assert list(fed(*SONG, 30, *SONG[:3], prompt=8).draft(2, linear(0.1, 0.1), ())) == SONG[3:5]


def test_a_refrain_shorter_than_a_draft_is_guessed_over_and_over() -> None:
    draft = fed(*[1, 2, 3] * 40).draft(10, linear(0.1, 0.1), ())
    assert list(draft) == [1, 2, 3, 1, 2, 3, 1, 2, 3, 1]


def test_nothing_is_guessed_of_a_text_that_never_repeats() -> None:
    assert not fed(*range(100)).draft(10, linear(0.0, 0.0), ())


def test_the_place_that_agrees_longest_is_followed() -> None:
    """`1 2` stood in two places of a prompt, but only one had the 5 before it."""
    prompt = [5, 1, 2, 40, 41, 42, 6, 1, 2, 50, 51, 52, 30, 31]
    assert list(fed(*prompt, 5, 1, 2, prompt=len(prompt)).draft(2, linear(0.0, 0.0), ())) == [40, 41]
    assert list(fed(*prompt, 6, 1, 2, prompt=len(prompt)).draft(2, linear(0.0, 0.0), ())) == [50, 51]


def test_what_other_answers_of_an_organization_say_often_is_guessed() -> None:
    drafts = DrafterFactory()
    for _ in range(3):
        say(drafts.make("one", array("i", [0])), SONG)

    assert (
        list(say(drafts.make("one", array("i", [99])), SONG[:3]).draft(3, linear(0.1, 0.1), ())) == SONG[3:6]
    )
    assert not say(drafts.make("another", array("i", [99])), SONG[:3]).draft(3, linear(0.0, 0.0), ())


def test_a_text_that_repeats_itself_makes_its_table_no_surer() -> None:
    """In a refrain every guess is right, but there the own text is asked; odds are of other places."""
    ngrams = NgramTable()
    fed(*SONG * 9, ngrams=ngrams)
    before = ngrams.guess(SONG[:3])
    fed(*SONG * 60, ngrams=ngrams)
    after = ngrams.guess(SONG[:3])

    assert before is not None
    assert after is not None
    assert before.chance <= after.chance < before.chance + 0.05


def test_a_phrase_that_changes_is_learnt_anew() -> None:
    ngrams = NgramTable()
    for end in [50] * 20 + [60] * 20:
        fed(7, 1, 2, 3, end, ngrams=ngrams)
    assert list(fed(8, 1, 2, 3, ngrams=ngrams).draft(1, linear(0.0, 0.0), ())) == [60]


def test_phrases_of_tokens_with_large_numbers_are_told_apart() -> None:
    """Contexts that differ in one token only, wherever, are different ones: up to the largest
    vocabularies.
    """
    ngrams, base = NgramTable(), [262_143, 262_142, 262_141]
    contexts = [base, [1, *base[1:]], [base[0], 1, base[2]], [*base[:2], 1]]
    for number, context in enumerate(contexts):
        fed(0, *context, 100 + number, ngrams=ngrams)
    for number, context in enumerate(contexts):
        assert next(iter(fed(9, *context, ngrams=ngrams).draft(1, linear(0.0, 0.0), ()))) == 100 + number


def test_tokens_of_any_number_are_learnt() -> None:
    far = [2**31 - 1, 2**30, 2**29 + 7]
    assert list(fed(0, *far, 5, 0, *far).draft(1, linear(0.0, 0.0), ())) == [5]


def test_only_the_organizations_that_asked_last_are_remembered() -> None:
    drafts = DrafterFactory()
    for number in range(1000):
        drafts.make(str(number), array("i", [1]))
    assert len(drafts._ngrams) <= 64
    assert "999" in drafts._ngrams


def test_an_end_is_never_guessed() -> None:
    assert list(fed(*SONG, *SONG[:2]).draft(9, linear(0.0, 0.0), {SONG[4]})) == SONG[2:4]


def test_one_guess_may_not_pay_where_several_do() -> None:
    """Leaving the way of single tokens is dear, and then each further one is cheap: all or nothing."""
    assert len(fed(*SONG * 9).draft(9, linear(1.2, 0.1), ())) == 9
    assert not fed(*SONG * 9).draft(1, linear(1.2, 0.1), ())


@pytest.mark.parametrize("price", [1.0, 2.0])
def test_who_pays_for_each_guess_what_a_step_costs_makes_none(price: float) -> None:
    assert not fed(*SONG * 9).draft(9, linear(price, price), ())


def test_guesses_that_prove_wrong_become_rare() -> None:
    """A text in which what follows a pair changes each time is soon left alone, and one that holds is not."""
    rng = np.random.default_rng(1)
    fickle = fed(*(token for _ in range(60) for token in (1, 2, int(rng.integers(10, 1000)))))
    wrong = 0
    for _ in range(30):
        say(fickle, [1, 2])
        wrong += len(fickle.draft(9, linear(0.3, 0.3), ()))
        say(fickle, [int(rng.integers(10, 1000))])
    assert wrong <= 6
    assert len(fed(*SONG * 20).draft(9, linear(0.3, 0.3), ())) == 9


@settings(max_examples=300, deadline=None)
@given(tokens, tokens, st.integers(-1, 30), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_draft_is_bounded_and_continues_what_was_said(prompt, said, most, first, further) -> None:
    """Whatever is said: no more than asked for, fewer where they are dearer, and always what stood somewhere
    before.
    """
    drafter = fed(*prompt, *said, prompt=len(prompt))
    known = list(drafter._known)

    draft = list(drafter.draft(most, linear(first, further), {3}))

    assert len(draft) <= min(max(most, 0), MAX_DRAFT_TOKENS)
    assert 3 not in draft
    assert list(drafter._known) == known == [*prompt, *said]
    assert set(draft) <= set(known)
    assert draft == list(drafter.draft(most, linear(first, further), {3}))
    dearer = list(drafter.draft(most, linear(first + 0.2, further), {3}))
    assert not dearer or dearer[: len(draft)] == draft
    if draft:
        whole = [*known, draft[0]]
        assert any(whole[i : i + 3] == whole[-3:] for i in range(len(whole) - 3))


@settings(max_examples=300, deadline=None)
@given(tokens, tokens, st.lists(st.integers(1, 9), max_size=20))
def test_it_does_not_matter_how_many_tokens_are_fed_at_once(prompt, said, cuts) -> None:
    """A step may bring several, and they are learnt from when the front was told: as if one by one."""
    one_by_one, at_once = fed(*prompt, *said, prompt=len(prompt)), fed(*prompt, prompt=len(prompt))
    left = list(said)
    for cut in [*cuts, len(said)]:
        at_once._known.extend(left[:cut])
        at_once.feed()
        del left[:cut]
    assert at_once.draft(16, linear(0.0, 0.0), ()) == one_by_one.draft(16, linear(0.0, 0.0), ())


@settings(max_examples=300, deadline=None)
@given(tokens, tokens, st.integers(3, 40))
def test_places_are_those_that_a_look_through_all_tokens_finds(prompt, said, window) -> None:
    """The four latest behind the same two tokens, among the last of a prompt and all that came since."""
    known = array("i", prompt)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prompt_lookup, "_WINDOW_TOKENS", window)
        pairs = prompt_lookup._Pairs(known)
    for place, token in enumerate(said, len(prompt)):
        known.append(token)
        pairs.add(place)
    begin, last = max(len(prompt) - window, 0), len(known) - 1
    same = [
        at
        for at in range(begin + 2, last + 1)
        if list(known[at - 2 : at]) == list(known[last - 1 : last + 1])
    ]
    assert list(pairs.places_after(last)) == (same[::-1][:4] if last > begin else [])
