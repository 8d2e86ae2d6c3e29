"""Proofs of lowered kernels: what is proved holds at every point, what is refuted is a bug, what stays open is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.compiler import compile_kernel
from core.dtypes import FLOAT32, INDEX, INT32, VOID
from core.errors import CompilerBug
from core.index import TRUE, add, all_of, less, number, scale
from core.index.enumerate import atoms_of, box_points
from core.index.unknown import Unknown
from core.ir import parts
from core.ir.op import Op
from core.ir.value import Value, alu, constant, make, sink
from core.ir.walk import Graph, ordered
from core.kernel.leaves import Leaves
from core.kernel.places import touched_sizes
from core.linear.prove import Proofs, prove
from core.lower.lower import Lowered
from core.request import Request
from tests.core.index.plain import condition, conditions, variable
from tests.kernels import Json, add_kernel, every_form, kernel, load, node, request, store
from tests.kernels import variable as declared

Sizes = dict[int, Value]


def lowered(ast: Json, **more: Any) -> tuple[Lowered, Sizes]:
    asked = Request.from_json(request(ast, **more))
    stages: dict[str, object] = {}
    compile_kernel(asked, watch=stages.__setitem__)
    graph = stages["lower"]
    assert isinstance(graph, Lowered)
    return graph, touched_sizes(asked.kernel, Leaves(asked.kernel))


def proofs_of(ast: Json, **more: Any) -> dict[str, Any]:
    return dict(compile_kernel(Request.from_json(request(ast, **more))).proofs)


# ---- whole kernels -----------------------------------------------------------------------------------------------------------

PADDED = kernel(load(1, [8, 10], strides=[8, 1], offset=-1, mask=[[0, 8], [1, 9]]), store(0, [8, 10]))
STACKED = kernel(
    {"op": "LOAD", "buffer": 1, "dtype": "float32", "views": [
        {"shape": [12, 12], "strides": [10, 1], "offset": -11, "mask": [[1, 11], [1, 11]]},
        {"shape": [3, 4, 12], "strides": [48, 1, 4]},
    ]},
    store(0, [3, 4, 12]),
)  # fmt: skip
SYMBOLIC = kernel(load(1, ["n", 16], strides=[16, 1]), node("REDUCE_SUM", 0, axes=[0]), store(1, [1, 16]), variables=[declared("n", 1, 40)])
START = kernel(
    {
        "op": "LOAD", "buffer": 1, "dtype": "float32", "shape": ["n", 4], "index": "(start + axis0)*4 + axis1",
        "valid": ["axis0 + start < 32"],
    },
    {"op": "STORE", "buffer": 0, "dtype": "float32", "shape": ["n", 4], "index": "axis0*4 + axis1 + start*4", "src": [0]},
    variables=[declared("n", 1, 12), declared("start", 0, 9)],
)  # fmt: skip
RING = kernel(
    load(1, [4, 8]),
    {"op": "STORE", "buffer": 0, "dtype": "float32", "shape": [4, 8], "index": "(start + axis0*8 + axis1)%64*3", "src": [0]},
    variables=[declared("start", 0, 50)],
)
DIGITS = kernel(
    {"op": "LOAD", "buffer": 1, "dtype": "float32", "shape": [8, 30], "index": "(axis0*30 + axis1)//4*8 + (axis0*30 + axis1)%4"},
    store(0, [8, 30]),
)
UPCAST = [{"op": "UPCAST", "axis": 0, "amount": 2}]

KERNELS: dict[str, tuple[Json, dict[str, Any]]] = {
    "add": (add_kernel([6, 8]), {}),
    "add upcast": (add_kernel([6, 8]), {"optimize": UPCAST}),
    "add in C": (add_kernel([6, 8]), {"device": {"target": "c"}}),
    "narrow grid": (add_kernel([7, 11]), {"device": {"target": "opencl", "global_max": [9, 9, 9]}}),
    "padded": (PADDED, {}),
    "padded upcast": (PADDED, {"optimize": UPCAST}),
    "stacked": (STACKED, {}),
    "symbolic": (SYMBOLIC, {}),
    "symbolic in C": (SYMBOLIC, {"device": {"target": "c"}}),
    "start": (START, {}),
    "ring": (RING, {}),
    "digits": (DIGITS, {}),
    "every form": (every_form(), {}),
}


@pytest.mark.parametrize("name", KERNELS)
def test_an_ordinary_kernel_is_proved(name: str) -> None:
    """Acceptance 275."""
    ast, more = KERNELS[name]

    assert {"bounds": "proved", "writes": "proved", "barriers": "proved", "open": []} == proofs_of(ast, **more)


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "every form"])
def test_an_access_called_proved_never_leaves_its_buffer(name: str) -> None:
    """Acceptance 247: every address at every point of the launch, for every value of the variables."""
    ast, more = KERNELS[name]
    graph, sizes = lowered(ast, **more)
    for v in ordered(graph.root):
        if v.op is Op.LOAD or v.op is Op.STORE:
            access = parts.access(v)
            gate = all_of((graph.guard, access.gate if access.gate is not None else TRUE))
            lanes = v.lanes if access.stored is None else access.stored.lanes
            size = sizes[parts.param(access.array).number]
            box = box_points(atoms_of(access.addresses[0], gate, size))
            assert box is not None
            held = box.full(box.holds(gate) & box.within_extents())
            assert held.any()
            addresses = box.full(box.value(access.addresses[0]))[held]
            assert (addresses >= 0).all()
            assert (addresses + lanes <= box.full(box.value(size))[held]).all()


def test_proofs_are_the_same_each_time() -> None:
    """Acceptance 247."""
    assert proofs_of(every_form()) == proofs_of(every_form())


def gather(*valid: str, dtype: str = "int32", index: str = "src0*64 + axis1") -> Json:
    ids: Json = {"op": "LOAD", "buffer": 2, "dtype": dtype, "shape": [6, 1], "index": "axis0"}
    row: Json = {
        "op": "LOAD", "buffer": 1, "dtype": "float32", "src": [0], "shape": [6, 64], "index": index, "valid": list(valid)
    }  # fmt: skip
    return kernel(ids, row, store(1, [6, 64]))


def test_a_bounded_gather_is_proved() -> None:
    """Acceptance 268."""
    assert [] == proofs_of(gather("src0 >= 0", "src0 < 100"))["open"]


@pytest.mark.parametrize("valid", [(), ("src0 >= 0",), ("src0 < 100",)])
def test_a_gather_that_nothing_bounds_names_argument_and_node(valid: tuple[str, ...]) -> None:
    """Acceptance 269."""
    found = proofs_of(gather(*valid))

    assert ("unknown", "proved", "proved") == (found["bounds"], found["writes"], found["barriers"])
    (entry,) = found["open"]
    assert {"of": "bounds", "argument": 1, "node": 1} == {k: entry[k] for k in ("of", "argument", "node")}
    assert "`valid`" in entry["why"]


def test_a_gather_beyond_the_one_element_it_counts_as_is_no_bug() -> None:
    """Whatever the values are, it reads outside of the size stated: it is the client who knows the buffer."""
    for dtype in ("uint8", "int32"):
        assert 1 == len(proofs_of(gather(dtype=dtype, index="src0 + 5"))["open"])


def test_an_upcast_gather_names_its_node_once() -> None:
    assert 1 == len(proofs_of(gather(), optimize=[{"op": "UPCAST", "axis": 1, "amount": 4}])["open"])


def test_what_was_open_before_stays_open() -> None:
    noted = Unknown("bounds", 1, 0, "nobody knows")
    graph, sizes = lowered(add_kernel([6, 8]))

    assert (noted,) == prove(Graph.of(graph.root), sizes, graph.guard, graph.provenance, (noted,)).open


# ---- graphs by hand ----------------------------------------------------------------------------------------------------------

OUT = make(Op.PARAM, FLOAT32, (), (0, "write", None, 4))
IN = make(Op.PARAM, FLOAT32, (), (1, "read", None, 4))


def launch(dimension: int, extent: int | Value, kind: str = "group") -> Value:
    size = number(extent) if isinstance(extent, int) else extent
    return make(Op.SPECIAL, INDEX, (size,), (kind, dimension), 1, (0, (size.hi or 0) - 1))


def loop(number_: int, extent: int | Value, role: str = "reduce") -> Value:
    size = number(extent) if isinstance(extent, int) else extent
    return make(Op.RANGE, INDEX, (size,), (number_, role), 1, (0, max((size.hi or 0) - 1, 0)))


def loaded(address: Value, gate: Value | None = None, array: Value = IN, lanes: int = 1) -> Value:
    gated = () if gate is None else (gate, constant(0, FLOAT32, lanes))
    return make(Op.LOAD, FLOAT32, (array, address, *gated), (1, bool(gated)), lanes)


def stored(address: Value, value: Value | None = None, gate: Value | None = None, array: Value = OUT) -> Value:
    return make(Op.STORE, VOID, (array, address, value or constant(1, FLOAT32), *(() if gate is None else (gate,))), (1, gate is not None))


def by_hand(*stores: Value, sizes: dict[int, int] | None = None, guard: Value = TRUE) -> Proofs:
    return prove(Graph.of(sink(stores)), {n: number(s) for n, s in (sizes or {0: 8, 1: 8}).items()}, guard)


def test_an_access_beyond_its_buffer_is_a_bug() -> None:
    g = launch(0, 8)
    for address in (add(g, number(1)), add(g, number(-1)), scale(g, 2)):
        with pytest.raises(CompilerBug, match="leaves its buffer"):
            by_hand(stored(g, loaded(address)))


def test_a_vector_access_counts_all_its_lanes() -> None:
    g = launch(0, 2)
    address = scale(g, 4)

    assert () == by_hand(stored(g, make(Op.EXTRACT, FLOAT32, (loaded(address, lanes=4),), 0))).open
    with pytest.raises(CompilerBug, match="leaves its buffer"):
        by_hand(stored(g, make(Op.EXTRACT, FLOAT32, (loaded(address, lanes=4),), 0)), sizes={0: 8, 1: 7})


def test_a_gate_or_the_guard_of_the_launch_keeps_it_inside() -> None:
    g = launch(0, 16)
    below = less(g, number(8))

    assert () == by_hand(stored(g, loaded(g, below), below)).open
    assert () == by_hand(stored(g, loaded(g)), guard=below).open
    with pytest.raises(CompilerBug):
        by_hand(stored(g, loaded(g, less(g, number(9))), below))


def test_accesses_a_constant_apart_under_one_gate_are_each_judged() -> None:
    g = launch(0, 16)
    below = less(g, number(8))
    taken = loaded(g, below)
    for k in range(1, 4):
        taken = alu(Op.ADD, taken, loaded(add(g, number(k)), below))

    assert () == by_hand(stored(g, taken, below), sizes={0: 8, 1: 11}).open
    with pytest.raises(CompilerBug, match="leaves its buffer"):
        by_hand(stored(g, taken, below), sizes={0: 8, 1: 10})


def test_bounds_that_only_trying_shows() -> None:
    g = launch(0, 24)
    address = add(scale(g, -1), add(scale(add(g, number(0)), 1), number(3)))

    assert address is number(3)
    x = all_terms(g)
    exact = max(int(n) for n in np.asarray(box(g).value(x)))
    assert exact < (x.hi or 0)
    assert () == by_hand(stored(g, loaded(x)), sizes={0: 24, 1: exact + 1}).open
    with pytest.raises(CompilerBug):
        by_hand(stored(g, loaded(x)), sizes={0: 24, 1: exact})


def all_terms(g: Value) -> Value:
    from tests.core.index.plain import value

    return value("3 - g + 4*(g%6) + 12*(g//12%2) + g//6%2 + 30", g=g)


def box(*atoms: Value) -> Any:
    return box_points(atoms)


def test_a_symbolic_launch_is_judged_against_a_symbolic_size() -> None:
    n = variable("n", 1, 1000)
    g, r = launch(0, n), loop(0, n)
    sizes = {0: n, 1: scale(n, 8)}
    accumulated = make(Op.ACC, FLOAT32, (constant(0, FLOAT32), r), 0)
    inside = loaded(add(scale(g, 4), scale(r, 4)))

    total = make(Op.UPDATE, FLOAT32, (accumulated, inside))
    assert () == prove(Graph.of(sink((stored(g, total),))), sizes).open
    with pytest.raises(CompilerBug):
        prove(Graph.of(sink((stored(g, total),))), {**sizes, 1: scale(n, 4)})


def test_a_load_that_runs_where_its_loop_is_empty_is_open() -> None:
    """Whether it is hoisted out of the loop is not known here."""
    n = variable("n", 0, 9)
    r = loop(0, n)
    accumulated = make(Op.ACC, FLOAT32, (constant(0, FLOAT32), r), 0)
    total = make(Op.UPDATE, FLOAT32, (accumulated, loaded(add(n, number(-1)))))

    (unknown,) = prove(Graph.of(sink((stored(number(0), total),))), {0: number(1), 1: n}).open
    assert "empty" in unknown.why


def test_a_value_of_data_is_bounded_by_its_gate_alone() -> None:
    g = launch(0, 8)
    data = make(Op.LOAD, INT32, (make(Op.PARAM, INT32, (), (2, "read", None, 4)), g), (1, False))
    i = make(Op.INDEX_OF, INDEX, (data,), None, 1, (-(2**31), 2**31 - 1))
    sizes = {0: 8, 1: 8, 2: 8}

    assert () == by_hand(stored(g, loaded(i, conditions("i >= 0", "i < 8", i=i))), sizes=sizes).open
    (unknown,) = by_hand(stored(g, loaded(i, condition("i < 8", i=i))), sizes=sizes).open
    assert ("bounds", 1) == (unknown.of, unknown.argument)


def test_two_work_items_at_one_element_are_a_bug() -> None:
    g, other = launch(0, 4), launch(1, 4)
    for store_ in (stored(g), stored(add(g, other)), stored(number(3), None, less(g, number(2)))):
        with pytest.raises(CompilerBug, match="store to one element"):
            by_hand(store_, stored(add(scale(g, 4), other)), sizes={0: 16})


def test_turns_of_an_output_loop_count_as_work_items() -> None:
    """Acceptance 275."""
    g, o = launch(0, 4), loop(0, 2, "output")

    assert () == by_hand(stored(add(scale(g, 2), o))).open
    with pytest.raises(CompilerBug, match="store to one element"):
        by_hand(make(Op.STORE, VOID, (OUT, g, constant(1, FLOAT32), o), (1, False)))


def test_a_lane_that_alone_stores_is_one_work_item() -> None:
    g, lane = launch(0, 4), launch(0, 8, "local")

    assert () == by_hand(stored(g, loaded(lane), less(lane, number(1)))).open


def test_an_image_is_inside_its_height_and_width() -> None:
    image = make(Op.PARAM, FLOAT32, (), (1, "read", (4, 8, 4), 4))
    x, y = launch(0, 8), launch(1, 4)

    def texel(x: Value, y: Value) -> Value:
        return make(Op.EXTRACT, FLOAT32, (make(Op.LOAD, FLOAT32, (image, x, y), (2, False), 4),), 0)

    assert () == by_hand(stored(add(scale(y, 8), x), texel(x, y)), sizes={0: 32, 1: 128}).open
    with pytest.raises(CompilerBug):
        by_hand(stored(add(scale(y, 8), x), texel(y, x)), sizes={0: 32, 1: 128})


SHARED = make(Op.SHARED, FLOAT32, (), (0, 8))


def shared_sum(g: Value, lane: Value, address: Value, gate: Value | None = None) -> Value:
    """Each lane leaves a number in shared memory; after the barrier the first one reads them."""
    before = stored(lane, None, None, SHARED)
    barrier = make(Op.BARRIER, VOID, (before,))
    after = make(Op.LOAD, FLOAT32, (SHARED, address, barrier), (1, False))
    return stored(g, after, gate if gate is not None else less(lane, number(1)))


def test_shared_memory_has_bounds_too() -> None:
    g, lane, r = launch(0, 4), launch(0, 8, "local"), loop(0, 8)

    assert () == by_hand(shared_sum(g, lane, r)).open
    with pytest.raises(CompilerBug, match="leaves its buffer"):
        by_hand(shared_sum(g, lane, add(r, number(1))))


def test_a_barrier_under_a_guard_of_lanes_is_open() -> None:
    g, lane, r = launch(0, 4), launch(0, 8, "local"), loop(0, 8)

    assert "proved" == by_hand(shared_sum(g, lane, r), guard=less(g, number(3))).verdict("barriers")
    assert "unknown" == by_hand(shared_sum(g, lane, r), guard=less(lane, number(3))).verdict("barriers")
    assert "unknown" == by_hand(shared_sum(g, lane, loop(0, add(lane, number(1))))).verdict("barriers")


def test_where_nothing_runs_everything_is_proved() -> None:
    """Acceptance 20."""
    ast = kernel(load(1, [0, 4]), store(0, [0, 4]))

    assert [] == proofs_of(ast, optimize="none")["open"]
    assert [] == proofs_of(ast, optimize="none", device={"target": "c"})["open"]


def test_a_lookup_whose_value_turns_out_constant_is_open_where_nothing_bounds_it_and_no_defect() -> None:
    """Found by random kernels: the value folds to 0, and the one element the table counts as is no size to hold the address against."""
    for dtype, verdict in (("int8", "unknown"), ("bool", "proved")):
        masked = {"shape": [4, 7], "strides": [0, 1], "mask": [[1, 1], [0, 7]]}
        ast = {
            "version": 1,
            "variables": [],
            "nodes": [
                {"op": "LOAD", "buffer": 1, "dtype": dtype, "views": [masked]},
                {"op": "LOAD", "buffer": 2, "dtype": "float32", "shape": [4, 7], "index": "src0*3 + axis1", "src": [0]},
                {"op": "STORE", "buffer": 0, "dtype": "float32", "views": [{"shape": [4, 7], "strides": [7, 1]}], "src": [1]},
            ],
            "outputs": [2],
        }
        program = compile_kernel(Request.from_json({"ast": ast, "device": {"target": "c"}, "optimize": "none"}))

        assert verdict == program.proofs["bounds"]
        assert {"int8": 1, "bool": 10}[dtype] == program.to_json()["arguments"][2]["size"]  # type: ignore[index]
