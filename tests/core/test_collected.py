"""What a compile makes goes as soon as it is done: nothing waits for the garbage collector because it refers to itself."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from weakref import ref

import pytest

from core.dtypes import INT32
from core.errors import Pointer
from core.index import less, number
from core.index.given import Given
from core.ir.value import constant
from core.kernel.leaves import axis_value
from core.render.page import Page
from core.targets.opencl import DIALECT
from core.targets.resolve import resolve_device


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_assumptions_go_with_their_last_user() -> None:
    i = axis_value(0, 8)
    given = Given((less(i, number(3)),))
    held = ref(given)
    assert (0, 2) == given.bounds(i)

    del given

    assert held() is None


@pytest.mark.usefixtures("no_collector")
def test_a_page_goes_when_its_program_is_written() -> None:
    page = Page(DIALECT, resolve_device({"target": "opencl"}, Pointer("/device")), "f")
    held = ref(page)
    assert "3" == page.text(constant(3, INT32)).words

    del page

    assert held() is None
