"""Schedule options are read by the table of their ops; a member too many or too few is refused with its place."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import Pointer, WireError
from core.schedule.option import MEMBERS, ScheduleOption, read_option
from core.schedule.options import OPTIONS

AT = Pointer("/optimize/2")

REFUSED: dict[str, tuple[object, str, str]] = {
    "a text": ("UPCAST", "/optimize/2", "an object"),
    "null": (None, "/optimize/2", "an object"),
    "no op": ({"axis": 0, "amount": 4}, "/optimize/2/op", "one of UPCAST"),
    "an unknown op": ({"op": "SWAP", "axis": 0, "amount": 1}, "/optimize/2/op", "one of UPCAST"),
    "an op in lower case": ({"op": "upcast", "axis": 0, "amount": 4}, "/optimize/2/op", "one of UPCAST"),
    "an op that is a list": ({"op": ["UPCAST"]}, "/optimize/2/op", "one of UPCAST"),
    "an unknown member": ({"op": "UPCAST", "axis": 0, "amount": 4, "amt": 4}, "/optimize/2/amt", "no such member"),
    "NOLOCALS with axis": ({"op": "NOLOCALS", "axis": 0}, "/optimize/2/axis", "NOLOCALS has none"),
    "NOLOCALS with amount": ({"op": "NOLOCALS", "amount": 0}, "/optimize/2/amount", "NOLOCALS has none"),
    "NOLOCALS with axis null": ({"op": "NOLOCALS", "axis": None}, "/optimize/2/axis", "NOLOCALS has none"),
    "UPCASTMID by 8": ({"op": "UPCASTMID", "axis": 0, "amount": 8}, "/optimize/2/amount", "4, the channels"),
    "UPCASTMID by 0": ({"op": "UPCASTMID", "axis": 0, "amount": 0}, "/optimize/2/amount", "4, the channels"),
    "TC level 3": ({"op": "TC", "axis": 0, "amount": 3}, "/optimize/2/amount", "0, 1 or 2"),
    "TC level true": ({"op": "TC", "axis": 0, "amount": True}, "/optimize/2/amount", "0, 1 or 2"),
    "TC triple -1": ({"op": "TC", "axis": -1, "amount": 0}, "/optimize/2/axis", "an integer from 0"),
    "PADTO -32": ({"op": "PADTO", "axis": 0, "amount": -32}, "/optimize/2/amount", "a multiple"),
}


@pytest.mark.parametrize(("value", "pointer", "expected"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_option_is_refused_with_its_place(value: object, pointer: str, expected: str) -> None:
    with pytest.raises(WireError) as refusal:
        read_option(value, AT)

    assert pointer == refusal.value.facts()["pointer"]
    assert expected in str(refusal.value.facts()["expected"])


WITH_BOTH = [op for op, (axis, amount) in MEMBERS.items() if axis and amount]
CUTS = ["UPCAST", "UNROLL", "LOCAL", "GROUP", "GROUPTOP", "LOOP"]


@pytest.mark.parametrize("op", WITH_BOTH)
@pytest.mark.parametrize(("member", "values"), [("axis", ("0", None, True, 0.0, -1)), ("amount", ("4", None, True, 4.0, -4))])
def test_axis_and_amount_are_integers_in_range(op: str, member: str, values: tuple[object, ...]) -> None:
    for value in values:
        with pytest.raises(WireError) as refusal:
            read_option({"op": op, "axis": 0, "amount": 4, member: value}, AT)

        assert f"/optimize/2/{member}" == refusal.value.facts()["pointer"]


@pytest.mark.parametrize("op", WITH_BOTH)
@pytest.mark.parametrize("member", ["axis", "amount"])
def test_axis_and_amount_are_required(op: str, member: str) -> None:
    option: dict[str, Any] = {"op": op, "axis": 0, "amount": 4}
    del option[member]
    with pytest.raises(WireError) as refusal:
        read_option(option, AT)

    assert f"/optimize/2/{member}" == refusal.value.facts()["pointer"]
    assert "requires it" in str(refusal.value.facts()["expected"])


@pytest.mark.parametrize("op", CUTS)
def test_a_cut_by_1_is_none(op: str) -> None:
    with pytest.raises(WireError) as refusal:
        read_option({"op": op, "axis": 0, "amount": 1}, AT)

    assert ("/optimize/2/amount", "1") == (refusal.value.facts()["pointer"], refusal.value.facts()["got"])


@pytest.mark.parametrize(
    "value",
    [
        *({"op": op, "axis": 3, "amount": amount} for op in CUTS for amount in (0, 2, 32)),
        {"op": "NOLOCALS"},
        {"op": "PADTO", "axis": 0, "amount": 32},
        {"op": "UPCASTMID", "axis": 1, "amount": 4},
        {"op": "TC", "axis": 2, "amount": 1},
    ],
)
def test_an_option_is_written_as_it_was_read(value: dict[str, Any]) -> None:
    option = read_option(value, AT)

    assert ScheduleOption(value["op"], value.get("axis"), value.get("amount")) == option
    assert value == option.to_json()


def test_every_option_that_can_be_applied_can_be_read() -> None:
    assert set(OPTIONS) <= set(MEMBERS)
