"""What must hold of a listing before anybody prints it. Always on; its cost grows with the listing.

Every value is computed before it is used, in a scope around its use; scopes nest and close; a register stands outside the loops that carry
it, is assigned once a turn and not read after that within the turn; no barrier or matrix instruction where work-items may part; shared
memory is read behind a barrier; operands have the types `core.ir.verify` asks for, indices the bits of theirs; nothing is computed for
nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from core.dtypes import VOID
from core.errors import CompilerBug
from core.fragments import layout_named
from core.ir.op import Op
from core.ir.parts import access
from core.ir.text import show_values
from core.ir.value import Value
from core.ir.verify import IllFormed, verify_values
from core.ir.walk import ordered
from core.linear.listing import Listing

STAGE = "listing"
FROM_THE_START = frozenset((Op.CONST, Op.PARAM, Op.VARIABLE, Op.SHARED))
LARGEST_SHOWN = 2_000  # values of a listing a failure carries


def verify(listing: Listing) -> None:
    """Raises CompilerBug with the first value that breaks a rule, the rule, and the listing's text."""
    try:
        verify_values(listing.body, "machine")
        _verify_once(listing.body)
        _Walk(listing).run()
        _verify_used(listing.body)
    except IllFormed as error:
        text = show_values(listing.body) if len(listing.body) <= LARGEST_SHOWN else None
        raise CompilerBug(STAGE, str(error), text) from None


def _verify_once(body: tuple[Value, ...]) -> None:
    if len(set(body)) < len(body):
        raise IllFormed(next(v for at, v in enumerate(body) if v in body[:at]), "stands in the listing twice")


def _verify_used(body: tuple[Value, ...]) -> None:
    needed: set[Value] = set().union(*[v.src for v in body])
    for v in body:
        if v not in needed and v.dtype is not VOID and v.op is not Op.RANGE:
            raise IllFormed(v, "is computed for nobody")


class _Scope:
    """A region being walked. opener: None for the whole, at: its place in the body. finished: updates whose last turn ends with it."""

    __slots__ = ("at", "finished", "opener", "shared")

    def __init__(self, opener: Value | None, at: int) -> None:
        self.opener, self.at = opener, at
        self.finished: list[Value] = []
        self.shared = _Touched()


def _always_runs(opener: Value) -> bool:
    return opener.op is Op.RANGE and opener.src[0].lo is not None and opener.src[0].lo >= 1


class _Touched:
    """Shared arrays accessed in a scope: before its first barrier, and since its last."""

    __slots__ = ("first_loads", "first_stores", "loads", "parted", "stores")

    def __init__(self) -> None:
        self.parted = False  # there was a barrier
        self.first_loads: set[Value] = set()
        self.first_stores: set[Value] = set()
        self.loads: set[Value] = set()
        self.stores: set[Value] = set()

    def touch(self, array: Value, store: bool) -> None:
        (self.stores if store else self.loads).add(array)
        if not self.parted:
            (self.first_stores if store else self.first_loads).add(array)

    def barrier(self) -> None:
        self.parted = True
        self.loads.clear()
        self.stores.clear()

    def follow(self, inner: _Touched) -> None:
        """A scope within this one has ended."""
        if not self.parted:
            self.first_loads |= inner.first_loads
            self.first_stores |= inner.first_stores
        self.parted = self.parted or inner.parted
        self.loads |= inner.loads
        self.stores |= inner.stores


class _Walk:
    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.scopes = [_Scope(None, 0)]
        self.there: set[Value] = set()  # in reach: computed in a scope still open, or there from the start
        self.opened: set[Value] = set()
        self.register_depth: dict[Value, int] = {}  # of an ACC: how many scopes are around it
        self.assigned: set[Value] = set()  # registers
        self.differs: dict[Value, bool] = {}  # of a loop's end or a region's condition: between the work-items of a group
        self.params = frozenset(listing.params)
        self.declared = frozenset(name for name, _, _ in listing.variables)

    def run(self) -> None:
        there = self.there
        for at, value in enumerate(self.listing.body):
            if not there.issuperset(value.src):
                for s in value.src:
                    if s not in there:
                        self._absent(value, s, at)
            step = _STEPS.get(value.op)
            if step is None:
                there.add(value)
            else:
                step(self, value, at)
        if len(self.scopes) > 1:
            raise IllFormed(self.scopes[-1].opener or self.listing.body[0], "is never closed")

    def _absent(self, value: Value, operand: Value, at: int) -> None:
        """An operand is not in reach: right if it is there from the start, and where another rule says more."""
        if operand.op in FROM_THE_START:
            self._from_the_start(operand)
            self.there.add(operand)
        elif value.op is Op.ACC or (operand in self.assigned and value.src[0] is operand and value.op is Op.UPDATE):
            return
        elif operand in self.assigned:
            raise IllFormed(value, "reads a register after it was assigned")
        elif any(operand in scope.finished for scope in self.scopes):
            if value.op is Op.STORE and operand in access(value).tokens:
                return  # comes after it, and does not look at it
            raise IllFormed(value, "reads an update within the turn that made it")
        else:
            where = "after its scope is closed" if operand in self.listing.body[:at] else "before it is computed"
            raise IllFormed(value, f"uses {operand!r} {where}")

    def _from_the_start(self, value: Value) -> None:
        if value.op is Op.PARAM and value not in self.params:
            raise IllFormed(value, "is none of the listing's arguments")
        if value.op is Op.VARIABLE and value.arg[0] not in self.declared:  # type: ignore[index]  # (name, least, greatest)
            raise IllFormed(value, "is none of the listing's variables")

    def _open(self, value: Value, at: int) -> None:
        self.scopes.append(_Scope(value, at))
        self.opened.add(value)
        self.there.add(value)

    def _close(self, value: Value, at: int) -> None:
        scope = self.scopes.pop()
        if scope.opener is not value.src[0]:
            raise IllFormed(value, f"closes {value.src[0]!r} while {scope.opener!r} is open")
        self.there.difference_update(self.listing.body[scope.at : at])
        self.there.update(scope.finished)  # seen from around its loops an update is what the register holds in the end
        if value.src[0].op is Op.RANGE:
            self._next_turn(value, scope)
        self.scopes[-1].shared.follow(scope.shared)

    def _next_turn(self, value: Value, scope: _Scope) -> None:
        """What a loop's end leaves open meets what its next turn begins with."""
        shared = scope.shared
        if shared.first_loads & shared.stores or shared.first_stores & shared.loads:
            raise IllFormed(value, "the next turn touches shared memory with no barrier behind this one's accesses")

    def _register(self, value: Value, at: int) -> None:
        if not self.opened.isdisjoint(value.src):
            raise IllFormed(value, "stands in or after a loop that carries it")
        self.register_depth[value] = len(self.scopes)
        self.there.add(value)

    def _update(self, value: Value, at: int) -> None:
        register = value.src[0]
        if register in self.assigned:
            raise IllFormed(value, "a register is assigned once a turn, in one place")
        carrying = self.scopes[self.register_depth[register] :]
        if {s.opener for s in carrying} != set(register.src[1:]):
            raise IllFormed(value, "is assigned in other loops than those that carry its register")
        self.assigned.add(register)
        self.there.discard(register)
        if carrying:
            carrying[0].finished.append(value)
        else:
            self.there.add(value)

    def _barrier(self, value: Value, at: int) -> None:
        if self._may_part():
            raise IllFormed(value, "a barrier where the work-items of a group may part")
        if not any(s.shared.stores or s.shared.loads for s in self.scopes):
            raise IllFormed(value, "a barrier and no access to shared memory since the last")
        for s in reversed(self.scopes):
            s.shared.barrier()
            if s.opener is not None and not _always_runs(s.opener):
                break  # what lies around may not meet this barrier at all
        self.there.add(value)

    def _together(self, value: Value, at: int) -> None:
        """A matrix instruction: all lanes of it go the same way, and there are whole sets of them."""
        if self._may_part():
            raise IllFormed(value, "a matrix instruction where the work-items of a group may part")
        lanes = layout_named(value.arg).lanes
        if self.listing.local_size is None or prod(self.listing.local_size) % lanes:
            raise IllFormed(value, f"a matrix instruction of {lanes} lanes in a work-group of {self.listing.local_size}")
        self.there.add(value)

    def _may_part(self) -> bool:
        """Whether the work-items of a group may not all be here."""
        return any(self._parts(s.opener.src[0]) for s in self.scopes if s.opener is not None)

    def _parts(self, decides: Value) -> bool:
        """Whether the work-items of a group may go different ways by this loop end or condition."""
        if decides not in self.differs:
            self.differs[decides] = any(
                v.op is Op.ACC or (v.op is Op.SPECIAL and v.arg[0] != "group")  # type: ignore[index]  # (kind, dimension)
                for v in ordered(decides)
            )
        return self.differs[decides]

    def _access(self, value: Value, at: int) -> None:
        array = value.src[0]
        if array.op is Op.SHARED:
            for scope in self.scopes:
                shared = scope.shared
                if array in (shared.loads if value.op is Op.STORE else shared.stores):
                    raise IllFormed(value, "touches shared memory with no barrier behind the accesses it may meet")
            self.scopes[-1].shared.touch(array, value.op is Op.STORE)
        self.there.add(value)

    def _misplaced(self, value: Value, at: int) -> None:
        raise IllFormed(value, "a listing has no sink" if value.op is Op.SINK else "is there from the start")


_STEPS: dict[Op, Callable[[_Walk, Value, int], None]] = {  # operations that do more than to be there
    Op.RANGE: _Walk._open,
    Op.IF: _Walk._open,
    Op.END: _Walk._close,
    Op.ACC: _Walk._register,
    Op.UPDATE: _Walk._update,
    Op.BARRIER: _Walk._barrier,
    Op.MMA: _Walk._together,
    Op.LOAD: _Walk._access,
    Op.STORE: _Walk._access,
    **dict.fromkeys((Op.SINK, *FROM_THE_START), _Walk._misplaced),
}
