"""What must hold of a listing before anybody prints it. Always on; one pass, so its cost grows with the listing.

Every value is computed before it is used, in a scope around its use; scopes nest and close; a register stands outside the loops that carry
it, is assigned once a turn and not read after that within the turn; no barrier where work-items may part; shared memory is read behind a
barrier; operands have the types `core.ir.verify` asks for, indices the bits of theirs; nothing is computed for nobody.
"""

from __future__ import annotations

from core.dtypes import VOID
from core.errors import CompilerBug
from core.ir.op import Op
from core.ir.text import show_values
from core.ir.value import Value
from core.ir.verify import IllFormed, verify_values
from core.linear.listing import Listing

STAGE = "listing"
FROM_THE_START = frozenset((Op.CONST, Op.PARAM, Op.VARIABLE, Op.SHARED))
LARGEST_SHOWN = 2_000  # values of a listing a failure carries


def verify(listing: Listing) -> None:
    """Raises CompilerBug with the first value that breaks a rule, the rule, and the listing's text."""
    try:
        verify_values(listing.body, "machine")
        _Walk(listing).run()
    except IllFormed as error:
        text = show_values(listing.body) if len(listing.body) <= LARGEST_SHOWN else None
        raise CompilerBug(STAGE, str(error), text) from None


class _Scope:
    """A region being walked. opener: None for the whole. uniform: all work-items of a group go the same way in it."""

    __slots__ = ("opener", "shared", "uniform", "values")

    def __init__(self, opener: Value | None, uniform: bool) -> None:
        self.opener, self.uniform = opener, uniform
        self.values: list[Value] = []
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
        self.scopes = [_Scope(None, True)]
        self.there: set[Value] = set()  # computed, and in reach
        self.closed: set[Value] = set()
        self.varies: set[Value] = set()  # may differ between the work-items of a group
        self.register_depth: dict[Value, int] = {}  # of an ACC: how many scopes are around it
        self.assigned: dict[Value, Value] = {}  # ACC → its UPDATE
        self.fresh: dict[Value, int] = {}  # UPDATE → open scopes in which its turn still runs, 0 once its loops are done
        self.needed: set[Value] = set()
        self.params = frozenset(listing.params)
        self.declared = frozenset(name for name, _, _ in listing.variables)

    def run(self) -> None:
        body = self.listing.body
        seen: set[Value] = set()
        for value in body:
            if value in seen:
                raise IllFormed(value, "stands in the listing twice")
            seen.add(value)
            self._operands(value)
            match value.op:
                case Op.RANGE | Op.IF:
                    self._open(value)
                case Op.END:
                    self._close(value)
                case Op.ACC:
                    self._register(value)
                case Op.UPDATE:
                    self._update(value)
                case Op.BARRIER:
                    self._barrier(value)
                case Op.LOAD | Op.STORE:
                    self._access(value)
                case Op.SINK:
                    raise IllFormed(value, "a listing has no sink")
                case _ if value.op in FROM_THE_START:
                    raise IllFormed(value, "is there from the start")
                case _:
                    self._define(value)
        if len(self.scopes) > 1:
            raise IllFormed(self.scopes[-1].opener or body[0], "is never closed")
        for value in body:
            if value.dtype is not VOID and value.op is not Op.RANGE and value not in self.needed:
                raise IllFormed(value, "is computed for nobody")

    def _operands(self, value: Value) -> None:
        """Each was computed before, in a scope still open; a register only before this turn assigned it."""
        src = value.src[:1] if value.op is Op.ACC else value.src
        varies = False
        for s in src:
            self.needed.add(s)
            if s.op in FROM_THE_START:
                self._from_the_start(s)
                continue
            if s not in self.there:
                where = "after its scope is closed" if s in self.closed else "before it is computed"
                raise IllFormed(value, f"uses {s!r} {where}")
            if s.op is Op.ACC and s in self.assigned and value.op is not Op.UPDATE:
                raise IllFormed(value, "reads a register after it was assigned")
            if s.op is Op.UPDATE and self.fresh.get(s):
                raise IllFormed(value, "reads an update within the turn that made it")
            varies = varies or s in self.varies
        if varies or value.op is Op.ACC or (value.op is Op.SPECIAL and value.arg[0] != "group"):  # type: ignore[index]  # (kind, dimension)
            self.varies.add(value)

    def _from_the_start(self, value: Value) -> None:
        if value.op is Op.PARAM and value not in self.params:
            raise IllFormed(value, "is none of the listing's arguments")
        if value.op is Op.VARIABLE and value.arg[0] not in self.declared:  # type: ignore[index]  # (name, least, greatest)
            raise IllFormed(value, "is none of the listing's variables")

    def _define(self, value: Value) -> None:
        self.there.add(value)
        self.scopes[-1].values.append(value)

    def _open(self, value: Value) -> None:
        uniform = self.scopes[-1].uniform and value.src[0] not in self.varies
        self.scopes.append(_Scope(value, uniform))
        self._define(value)

    def _close(self, value: Value) -> None:
        scope = self.scopes[-1]
        if scope.opener is not value.src[0]:
            raise IllFormed(value, f"closes {value.src[0]!r} while {scope.opener!r} is open")
        self.scopes.pop()
        outside = []
        for v in scope.values:
            if v.op is Op.UPDATE:  # seen from around its loops it is what the register holds in the end
                self.fresh[v] -= 1
                outside.append(v)
            else:
                self.there.discard(v)
                self.closed.add(v)
        around = self.scopes[-1]
        around.values += outside
        if value.src[0].op is Op.RANGE:
            self._next_turn(value, scope)
        around.shared.follow(scope.shared)

    def _next_turn(self, value: Value, scope: _Scope) -> None:
        """What a loop's end leaves open meets what its next turn begins with."""
        shared = scope.shared
        if shared.first_loads & shared.stores or shared.first_stores & shared.loads:
            raise IllFormed(value, "the next turn touches shared memory with no barrier behind this one's accesses")

    def _register(self, value: Value) -> None:
        for r in value.src[1:]:
            if r in self.there or r in self.closed:
                raise IllFormed(value, "stands in or after a loop that carries it")
        self.register_depth[value] = len(self.scopes)
        self._define(value)

    def _update(self, value: Value) -> None:
        register = value.src[0]
        if register in self.assigned:
            raise IllFormed(value, "a register is assigned once a turn, in one place")
        if value.src[1].op is Op.UPDATE and self.fresh.get(value.src[1]):
            raise IllFormed(value, "assigns what another update of this turn assigns")
        carried = {s.opener for s in self.scopes[self.register_depth[register] :]}
        if carried != set(register.src[1:]):
            raise IllFormed(value, "is assigned in other loops than those that carry its register")
        self.assigned[register] = value
        self.fresh[value] = len(carried)
        self._define(value)

    def _barrier(self, value: Value) -> None:
        scope = self.scopes[-1]
        if not scope.uniform:
            raise IllFormed(value, "a barrier where the work-items of a group may part")
        if not any(s.shared.stores or s.shared.loads for s in self.scopes):
            raise IllFormed(value, "a barrier and no access to shared memory since the last")
        for s in reversed(self.scopes):
            s.shared.barrier()
            if s.opener is not None and not _always_runs(s.opener):
                break  # what lies around may not meet this barrier at all
        self._define(value)

    def _access(self, value: Value) -> None:
        array = value.src[0]
        if array.op is Op.SHARED:
            for scope in self.scopes:
                shared = scope.shared
                if array in (shared.loads if value.op is Op.STORE else shared.stores):
                    raise IllFormed(value, "touches shared memory with no barrier behind the accesses it may meet")
            self.scopes[-1].shared.touch(array, value.op is Op.STORE)
        self._define(value)
