"""What a graph looks like once it is fit for a target, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, UINT8, UINT16, DType
from core.errors import TargetError
from core.ir.op import Op
from core.ir.value import Value, alu, constant, sink
from core.ir.walk import Graph, ordered
from core.targets import TARGETS, Target
from tests.core.render.building import EACH, OPENCL, C, as_type, load, loop, param, point, register, store, updated

NARROW = (FLOAT16, BFLOAT16)


def _legal(target: Target, *stores: Value, **options: object) -> Value:
    return target.legalize(Graph.of(sink(stores)), replace(target.defaults, **options), None).root  # type: ignore[arg-type]


def _ops(root: Value, *ops: Op) -> list[Value]:
    return [v for v in ordered(root) if v.op in ops]


def _binary(target: Target, op: Op, dtype: DType, right: Value | None = None, **options: object) -> Value:
    i = point(target, 8)
    x, y = load(param(1, dtype, "read"), i), load(param(2, dtype, "read"), i)
    value = alu(op, x, y if right is None else right)
    return _legal(target, store(param(0, value.dtype, "write"), i, value), **options)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_no_arithmetic_is_left_in_a_narrow_float(dtype: DType) -> None:
    i = point(C, 8)
    x = load(param(1, dtype, "read"), i)
    value = alu(Op.MUL, alu(Op.ADD, x, x), alu(Op.EXP2, x))
    root = _legal(C, store(param(0, dtype, "write"), i, value))

    assert {FLOAT32} == {v.dtype for v in _ops(root, Op.ADD, Op.MUL, Op.EXP2, Op.LOAD)}
    assert 2 == len(_ops(root, Op.ROUND))  # of the sum and the power; storing rounds the product


def test_a_half_the_device_has_is_computed_in() -> None:
    root = _binary(C, Op.ADD, FLOAT16, float16=True)

    assert {FLOAT16} == {v.dtype for v in _ops(root, Op.ADD)}
    assert not _ops(root, Op.ROUND, Op.CAST)


def test_functions_of_a_half_go_through_float() -> None:
    i = point(OPENCL, 8)
    x = load(param(1, FLOAT16, "read"), i)
    root = _legal(OPENCL, store(param(0, FLOAT16, "write"), i, alu(Op.SIN, x)), float16=True)

    assert [FLOAT32] == [v.dtype for v in _ops(root, Op.SIN)]


@pytest.mark.parametrize("op", [Op.MAX, Op.NEG])
def test_what_picks_or_flips_needs_no_rounding(op: Op) -> None:
    i = point(C, 8)
    x, y = load(param(1, FLOAT16, "read"), i), load(param(2, FLOAT16, "read"), i)
    value = alu(op, x) if op is Op.NEG else alu(op, x, y)
    root = _legal(C, store(param(0, FLOAT16, "write"), i, alu(Op.ADD, value, value)))

    assert not _ops(root, Op.ROUND)


def test_a_sum_over_a_loop_is_rounded_once_after_it() -> None:
    i, r = point(C, 8), loop(9)
    acc = register(FLOAT16, 0, r)
    x = load(param(1, FLOAT16, "read"), r)
    total = updated(acc, alu(Op.ADD, x, alu(Op.ADD, x, acc)))
    root = _legal(C, store(param(0, FLOAT16, "write"), i, alu(Op.NEG, total)))

    assert [Op.UPDATE] == [v.src[0].op for v in _ops(root, Op.ROUND)]


def test_a_maximum_over_a_loop_is_not_rounded() -> None:
    i, r = point(C, 8), loop(9)
    acc = register(FLOAT16, FLOAT16.least, r)
    total = updated(acc, alu(Op.MAX, load(param(1, FLOAT16, "read"), r), acc))
    root = _legal(C, store(param(0, FLOAT16, "write"), i, alu(Op.NEG, total)))

    assert not _ops(root, Op.ROUND)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_moved_bits_keep_their_type(dtype: DType) -> None:
    i = point(C, 8)
    x = load(param(1, dtype, "read"), i)
    root = _legal(C, store(param(0, dtype, "write"), i, x), store(param(2, UINT16, "write"), i, as_type(Op.BITCAST, x, UINT16)))

    assert [dtype] == [v.dtype for v in _ops(root, Op.LOAD)]
    assert not _ops(root, Op.CAST, Op.ROUND)


def test_one_array_is_read_in_one_way() -> None:
    """Moved here and computed with there: one load of bits, and a conversion."""
    i = point(C, 8)
    x = load(param(1, FLOAT16, "read"), i)
    root = _legal(C, store(param(0, FLOAT16, "write"), i, x), store(param(2, FLOAT16, "write"), i, alu(Op.ADD, x, x)))

    assert [FLOAT16] == [v.dtype for v in _ops(root, Op.LOAD)]
    assert [FLOAT32] == [v.dtype for v in _ops(root, Op.CAST)]


@pytest.mark.parametrize(
    ("op", "becomes"), [(Op.ADD, {Op.OR}), (Op.MAX, {Op.OR}), (Op.MUL, {Op.AND}), (Op.CMPNE, {Op.XOR}), (Op.CMPLT, {Op.NOT, Op.AND})]
)
def test_bools_have_logic_alone(op: Op, becomes: set[Op]) -> None:
    assert becomes == {v.op for v in ordered(_binary(C, op, BOOL)) if v.dtype is BOOL} - {Op.LOAD, Op.PARAM}


def test_a_divisor_known_not_to_be_zero_stands_as_it_is() -> None:
    root = _binary(C, Op.IDIV, INT32, constant(7, INT32))

    assert not _ops(root, Op.WHERE, Op.CMPNE)


def test_a_divisor_of_minus_one_negates() -> None:
    root = _binary(C, Op.IDIV, INT32, constant(-1, INT32))

    assert not _ops(root, Op.IDIV)
    assert _ops(root, Op.NEG)


def test_an_unsigned_divisor_is_only_kept_from_zero() -> None:
    assert 1 == len(_ops(_binary(C, Op.REM, UINT8), Op.WHERE))


def test_an_amount_within_the_width_is_not_masked() -> None:
    assert not _ops(_binary(C, Op.SHL, INT32, constant(31, INT32)), Op.AND)
    assert _ops(_binary(C, Op.SHL, INT32), Op.AND)


def test_casts_that_saturate_are_left_to_the_language() -> None:
    def cast_of(target: Target) -> Value:
        i = point(target, 8)
        return _legal(target, store(param(0, INT32, "write"), i, as_type(Op.CAST, load(param(1, FLOAT32, "read"), i), INT32)))

    assert not _ops(cast_of(OPENCL), Op.WHERE)
    assert _ops(cast_of(C), Op.WHERE)


def test_vectors_are_taken_apart_where_there_are_none() -> None:
    i = point(C, 8)
    x = load(param(1, FLOAT32, "read"), i, lanes=4)
    root = _legal(C, store(param(0, FLOAT32, "write"), i, alu(Op.ADD, x, x)))

    assert {1} == {v.lanes for v in ordered(root)}
    assert 4 == len(_ops(root, Op.STORE))


@pytest.mark.parametrize("target", EACH, ids=lambda t: t.name)
def test_float64_is_refused_where_the_device_has_none(target: Target) -> None:
    with pytest.raises(TargetError) as refused:
        _binary(target, Op.ADD, FLOAT64, float64=False)

    facts = refused.value.facts()
    assert "/device/float64" == facts["pointer"]
    assert target.name == facts["target"]
    assert "float64" == facts["feature"]


def test_c_has_no_images() -> None:
    image = param(1, FLOAT32, "read", (4, 8, 4))
    i = point(C, 8)
    with pytest.raises(TargetError) as refused:
        _legal(C, store(param(0, FLOAT32, "write"), i, alu(Op.NEG, load(image, i, i, lanes=4))))

    assert "images" == refused.value.facts()["feature"]


def test_what_lacks_nothing_stays_the_graph_it_is() -> None:
    i = point(OPENCL, 8)
    x = load(param(1, FLOAT32, "read"), i)
    graph = Graph.of(sink((store(param(0, FLOAT32, "write"), i, alu(Op.ADD, x, alu(Op.MUL, x, x))),)))

    assert graph is OPENCL.legalize(graph, OPENCL.defaults, None)


def test_a_watcher_is_told_what_became_of_each_value() -> None:
    i = point(C, 8)
    x = load(param(1, FLOAT16, "read"), i)
    value = alu(Op.ADD, x, x)
    seen: dict[Value, Value] = {}
    C.legalize(Graph.of(sink((store(param(0, FLOAT16, "write"), i, alu(Op.MUL, value, x)),))), C.defaults, seen.__setitem__)

    assert Op.ROUND is seen[value].op
    assert FLOAT32 is seen[x].dtype


def test_a_long_chain_is_no_deeper_than_a_short_one() -> None:
    i = point(C, 8)
    value = load(param(1, FLOAT16, "read"), i)
    for _ in range(20_000):
        value = alu(Op.ADD, value, value)

    assert 20_000 == len(_ops(_legal(C, store(param(0, FLOAT16, "write"), i, value)), Op.ADD))


def test_every_target_is_known_by_its_name() -> None:
    assert all(name == target.name for name, target in TARGETS.items())
