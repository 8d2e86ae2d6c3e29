"""Who holds which element: each row against the formulas its makers give, and as a product of random integers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from core.fragments import LAYOUTS, Dim, Fragment, Layout, layout_named, layouts_of

Place = Callable[[int, int], tuple[int, int]]  # lane and element → coordinates


def bit(n: int, at: int) -> int:
    return n >> at & 1


def apple(w: int, e: int) -> tuple[int, int]:
    return bit(w, 1) + 2 * bit(w, 2) + 4 * bit(w, 4), e + 2 * bit(w, 0) + 4 * bit(w, 3)


NVIDIA_C: Place = lambda w, e: (w // 4 + 8 * bit(e, 1), bit(e, 0) + 2 * (w % 4))  # noqa: E731
CDNA_C: Place = lambda w, e: (4 * (w // 16) + e, w % 16)  # noqa: E731

# (family, dims, operand) → (m, k) of A, (k, n) of B, (m, n) of C; lanes and elements of each
FORMULAS: dict[tuple[str, tuple[int, int, int], str], tuple[Place, Place, Place, int, tuple[int, int, int]]] = {
    **{
        ("nvidia", (16, 8, 16), operand): (
            lambda w, e: (w // 4 + 8 * bit(e, 1), bit(e, 0) + 2 * (w % 4) + 8 * bit(e, 2)),
            lambda w, e: (bit(e, 0) + 2 * (w % 4) + 8 * bit(e, 1), w // 4),
            NVIDIA_C, 32, (8, 4, 4),
        )
        for operand in ("float16", "bfloat16")
    },
    ("nvidia", (16, 8, 8), "float16"): (
        lambda w, e: (w // 4 + 8 * bit(e, 1), bit(e, 0) + 2 * (w % 4)), lambda w, e: (e + 2 * (w % 4), w // 4), NVIDIA_C, 32, (4, 2, 4),
    ),
    ("nvidia", (16, 8, 8), "float32"): (
        lambda w, e: (w // 4 + 8 * bit(e, 0), w % 4 + 4 * bit(e, 1)), lambda w, e: (w % 4 + 4 * e, w // 4), NVIDIA_C, 32, (4, 2, 4),
    ),
    ("rdna3", (16, 16, 16), "float16"): (
        lambda w, e: (w % 16, e), lambda w, e: (e, w % 16), lambda w, e: (w // 16 + 2 * e, w % 16), 32, (16, 16, 8),
    ),
    **{
        ("cdna", (16, 16, 16), operand): (
            lambda w, e: (w % 16, 4 * (w // 16) + e), lambda w, e: (4 * (w // 16) + e, w % 16), CDNA_C, 64, (4, 4, 4),
        )
        for operand in ("float16", "bfloat16")
    },
    ("cdna", (16, 16, 4), "float32"): (lambda w, e: (w % 16, w // 16), lambda w, e: (w // 16, w % 16), CDNA_C, 64, (1, 1, 4)),
    **{("apple", (8, 8, 8), operand): (apple, apple, apple, 32, (2, 2, 2)) for operand in ("float32", "float16")},
}  # fmt: skip

each = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout.family} {layout}")


def held(layout: Layout, fragment: Fragment) -> list[tuple[int, ...]]:
    """Coordinates of every element of every lane."""
    return [tuple(fragment.place(w, e).values()) for w in range(layout.lanes) for e in range(fragment.elements)]


@each
def test_lanes_and_elements_hold_what_the_makers_say(layout: Layout) -> None:
    a, b, c, lanes, counts = FORMULAS[layout.family, layout.core.dims, layout.core.operand]

    assert (lanes, counts) == (layout.lanes, (layout.a.elements, layout.b.elements, layout.c.elements))
    for fragment, place in ((layout.a, a), (layout.b, b), (layout.c, c)):
        assert [place(w, e) for w in range(lanes) for e in range(fragment.elements)] == held(layout, fragment)


@each
def test_the_result_lies_in_one_place_each_and_the_operands_everywhere(layout: Layout) -> None:
    m, n, k = layout.core.dims

    assert sorted((i, j) for i in range(m) for j in range(n)) == sorted(held(layout, layout.c))
    assert {(i, d) for i in range(m) for d in range(k)} == set(held(layout, layout.a))
    assert {(d, j) for d in range(k) for j in range(n)} == set(held(layout, layout.b))


@each
def test_a_product_taken_by_fragments_is_the_product(layout: Layout) -> None:
    m, n, k = layout.core.dims
    random = Random(str(layout))
    a = [[random.randrange(-9, 10) for _ in range(k)] for _ in range(m)]
    b = [[random.randrange(-9, 10) for _ in range(n)] for _ in range(k)]
    left = {(at["m"], at["k"]): a[at["m"]][at["k"]] for at in places(layout, layout.a)}
    right = {(at["k"], at["n"]): b[at["k"]][at["n"]] for at in places(layout, layout.b)}

    result = {(at["m"], at["n"]): sum(left[at["m"], d] * right[d, at["n"]] for d in range(k)) for at in places(layout, layout.c)}

    assert {(i, j): sum(a[i][d] * b[d][j] for d in range(k)) for i in range(m) for j in range(n)} == result


def places(layout: Layout, fragment: Fragment) -> list[dict[Dim, int]]:
    return [fragment.place(w, e) for w in range(layout.lanes) for e in range(fragment.elements)]


def test_every_layout_has_a_name_of_its_own() -> None:
    assert len(LAYOUTS) == len({layout.name for layout in LAYOUTS})
    assert all(layout is layout_named(layout.name) for layout in LAYOUTS)


def test_an_architecture_has_what_its_generation_has() -> None:
    assert () == layouts_of("cuda", "sm_70", True)
    assert ["16x8x8 of float16 into float32"] == [str(layout) for layout in layouts_of("cuda", "sm_75", True)]
    assert ["float16", "bfloat16", "float16"] == [layout.core.operand for layout in layouts_of("cuda", "sm_120", False)]
    assert "float32" == layouts_of("cuda", "sm_80", True)[-1].core.operand
    assert () == layouts_of("opencl", "sm_80", True)
