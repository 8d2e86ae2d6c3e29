"""A schedule option as the wire has it: which, on which axis, by how much.

What an option does and when it may be applied is its own file's affair; here is its form, and for each op which members it has.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import Pointer, Said, WireError


@dataclass(frozen=True, slots=True)
class ScheduleOption:
    """axis, amount: None where the op has none. amount 0: the whole axis."""

    op: str
    axis: int | None = None
    amount: int | None = None

    def to_json(self) -> dict[str, object]:
        """As on the wire: members that the op does not have are absent."""
        members: dict[str, object] = {"op": self.op}
        if self.axis is not None:
            members["axis"] = self.axis
        if self.amount is not None:
            members["amount"] = self.amount
        return members


@dataclass(frozen=True, slots=True)
class Member:
    """A required integer: what it means, and which are of the format."""

    meaning: str
    least: int = 0
    greatest: int | None = None
    never: int | None = None

    def read(self, value: object, at: Pointer) -> int:
        if type(value) is int and self.least <= value and (self.greatest is None or value <= self.greatest) and value != self.never:
            return value
        raise WireError(at, expected=self.meaning, got=value)


_AXIS = Member("an axis number: an integer from 0")
_AMOUNT = Member("an amount: an integer, 2 or more, or 0 for the whole axis", never=1)

# op → its axis and amount, None where it has none. A further option has its row here: reader and `/targets` walk this table.
MEMBERS: dict[str, tuple[Member | None, Member | None]] = {
    "UPCAST": (_AXIS, _AMOUNT),
    "UNROLL": (_AXIS, _AMOUNT),
    "LOCAL": (_AXIS, _AMOUNT),
    "GROUP": (_AXIS, _AMOUNT),
    "GROUPTOP": (_AXIS, _AMOUNT),
    "LOOP": (_AXIS, _AMOUNT),
    "PADTO": (_AXIS, Member("a multiple to round up to: an integer from 0")),
    "UPCASTMID": (_AXIS, Member("4, the channels of a texel", least=4, greatest=4)),
    "TC": (Member("which of the axis triples: an integer from 0"), Member("a level: 0, 1 or 2", greatest=2)),
    "NOLOCALS": (None, None),
}


def read_option(value: object, at: Pointer) -> ScheduleOption:
    """One option. Raises WireError for what is not its form; whether it can be applied is not asked here."""
    if type(value) is not dict:
        raise WireError(at, expected="an object with op, axis and amount", got=value)
    for name in value:
        if name not in ("op", "axis", "amount"):
            raise WireError(at / name, expected="no such member: an option has op, axis and amount", got=value[name])
    op = value.get("op")
    if type(op) is not str or op not in MEMBERS:
        raise WireError(at / "op", expected=f"one of {', '.join(MEMBERS)}", got=op if "op" in value else Said("nothing"))
    found: list[int | None] = []
    for name, member in zip(("axis", "amount"), MEMBERS[op], strict=True):
        if member is None:
            if name in value:
                raise WireError(at / name, expected=f"no {name}: {op} has none", got=value[name])
            found.append(None)
        elif name not in value:
            raise WireError(at / name, expected=f"{member.meaning}: {op} requires it", got=Said("nothing"))
        else:
            found.append(member.read(value[name], at / name))
    return ScheduleOption(op, *found)
