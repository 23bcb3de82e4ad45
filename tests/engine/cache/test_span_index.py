from __future__ import annotations

from array import array

from b3node.engine.cache import span_index
from b3node.engine.cache.span_index import SpanIndex
from b3node.spans import ImageSpan, TextSpan

CAT, DOG = ImageSpan(b"cat", 2, 3), ImageSpan(b"dog", 2, 3)


def text(*tokens: int) -> TextSpan:
    return TextSpan(array("i", tokens).tobytes())


def test_tokens_are_their_own_ids_and_images_have_one_each() -> None:
    index = SpanIndex()

    ids = index.ids((text(5, 6), CAT, text(7), DOG, CAT))

    assert ids == array("i", [5, 6, -1, -1, -1, 7, -2, -2, -2, -1, -1, -1])
    assert index.ids((DOG,)) == array("i", [-2] * 3)


def test_an_image_that_was_prepared_otherwise_is_another_one() -> None:
    index = SpanIndex()

    assert index.ids((CAT, ImageSpan(b"cat", 2, 2))) == array("i", [-1, -1, -1, -2, -2])


def test_a_forgotten_image_gets_an_id_that_nothing_else_had(monkeypatch) -> None:
    monkeypatch.setattr(span_index, "MAX_IMAGES", 2)
    index = SpanIndex()
    images = [ImageSpan(bytes([n]), 1, 1) for n in range(3)]

    ids = index.ids(images)

    assert index.ids(images[1:]) == ids[1:]
    assert index.ids(images[:1])[0] not in ids
