"""Each elementwise op on each dtype, with ordinary and special values (acceptance J 189-194, 209, I 165)."""

from __future__ import annotations

import pytest

from tests.meaning.build import Build, Term
from tests.meaning.cases import Case, each, special

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
DTYPES = ("bool", *INTEGERS, *FLOATS)
FUNCTIONS = ("EXP2", "LOG2", "SIN", "SQRT", "RECIP")
OF_ALL = ("NEG", "ADD", "MUL", "MAX", "CMPLT", "CMPNE", "WHERE", "MULACC")
BITS = ("XOR", "AND", "OR")
TRUNCATING = ("IDIV", "MOD")
SHIFTS = ("SHL", "SHR")
ARITY = {"NEG": 1, "WHERE": 3, "MULACC": 3} | dict.fromkeys(FUNCTIONS, 1)
POINTS = 96


def ops_of(dtype: str) -> tuple[str, ...]:
    if dtype in FLOATS:
        return (*OF_ALL, *FUNCTIONS)
    return (*OF_ALL, *BITS) if dtype == "bool" else (*OF_ALL, *BITS, *TRUNCATING, *SHIFTS)


def applied(k: Build, op: str, dtype: str) -> Term:
    if op == "WHERE":
        return k.load("bool", [POINTS]).where(k.load(dtype, [POINTS]), k.load(dtype, [POINTS]))
    first, *others = (k.load(dtype, [POINTS]) for _ in range(ARITY.get(op, 2)))
    return first.op(op, *others)


def alone(op: str, dtype: str) -> Case:
    k = Build()
    return special(k.store(applied(k, op, dtype)))


def together(dtype: str, ops: tuple[str, ...]) -> Case:
    """Several ops as outputs of one kernel: a compile for all of them."""
    k = Build()
    terms = [applied(k, op, dtype) for op in ops]
    for term in terms:
        k.store(term)
    return special(k, seeds=(0, 1))


@pytest.mark.parametrize(("dtype", "op"), [(dtype, op) for dtype in DTYPES for op in ops_of(dtype)])
def test_an_op_does_in_c_what_it_means(dtype: str, op: str) -> None:
    alone(op, dtype).holds("c")


GROUPS = {
    f"{dtype}-{'-'.join(group).lower()}": together(dtype, group)
    for dtype in DTYPES
    for group in (
        ops_of(dtype)[:4],
        ops_of(dtype)[4:8],
        ops_of(dtype)[8:12],
        ops_of(dtype)[12:],
    )
    if group
}


@each(GROUPS)
def test_ops_side_by_side_do_what_they_mean(case: Case, target: str) -> None:
    case.holds(target)


def converted(source: str) -> Case:
    k = Build()
    x = k.load(source, [POINTS])
    terms = [x.cast(dtype) for dtype in DTYPES if dtype != source]
    for term in terms:
        k.store(term)
    return special(k, seeds=(0, 1))


@each({f"cast-{source}-to-all": converted(source) for source in DTYPES})
def test_conversions_round_once_truncate_or_keep_low_bits(case: Case, target: str) -> None:
    """J 213 too: NaN, infinities and 1e30 to an integer disturb nothing else."""
    case.holds(target)


WIDTHS = (
    ("bool", "int8", "uint8"),
    ("int16", "uint16", "float16", "bfloat16"),
    ("int32", "uint32", "float32"),
    ("int64", "uint64", "float64"),
)


def recast(source: str, width: tuple[str, ...]) -> Case:
    k = Build()
    x = k.load(source, [POINTS])
    terms = [x.bitcast(dtype) for dtype in width if dtype != source]
    for term in terms:
        k.store(term)
    return special(k)


@each({f"bitcast-{source}": recast(source, width) for width in WIDTHS for source in width})
def test_reinterpretation_keeps_bits(case: Case, target: str) -> None:
    """M 250: of an 8-bit integer to bool it is "is not zero"."""
    case.holds(target)


def narrow(dtype: str) -> Case:
    """What would go wrong where an int takes the place of a narrower type (J 190, 209)."""
    k = Build()
    a, b, c = (k.load(dtype, [POINTS]) for _ in range(3))
    wider = "int64" if dtype.startswith("i") else "uint64"
    k.store((a + b) < c)
    k.store((a * b).op("IDIV", c))
    k.store((-a).cast(wider))
    k.store(a.op("SHL", b).op("SHR", c))
    k.store((-a).op("MOD", c))
    k.store((a + b).maximum(c).differs(a))
    return special(k, seeds=(0, 1))


@each({f"narrow-{dtype}": narrow(dtype) for dtype in INTEGERS})
def test_integers_wrap_at_every_node(case: Case, target: str) -> None:
    """J 190, 193."""
    case.holds(target)


def rounded_at_each_node(dtype: str) -> Case:
    k = Build()
    a, b, c = (k.load(dtype, [POINTS]) for _ in range(3))
    k.store((a + b) + c)
    k.store((a * b) * c)
    k.store((a + 1.0) < (b + 1.0))
    k.store((a * 0.0009765625 + 1.0).maximum(c))
    return special(k, seeds=(0, 1))


@each({f"chain-{dtype}": rounded_at_each_node(dtype) for dtype in FLOATS})
def test_floats_round_at_every_node(case: Case, target: str) -> None:
    """J 192, I 167: also those that are computed in a wider type."""
    case.holds(target)


def constants(dtype: str, values: tuple[float | str, ...]) -> Case:
    k = Build()
    x = k.load(dtype, [4])
    for value in values:
        k.store(x.op("MAX", value))
        k.store(k.const(value, dtype, [4]))
    return special(k)


NUMBERS = {
    "int8": (-128, 127, 0), "uint8": (255, 0), "int16": (-32768, 32767), "uint16": (65535,), "int32": (-(2**31), 2**31 - 1),
    "uint32": (2**32 - 1,), "int64": (-(2**63), 2**63 - 1, 2**62 + 1), "uint64": (2**64 - 1, 2**63),
    "float16": (-0.0, 5.960464477539063e-08, 65504.0, "inf", "-inf", "nan", 6.103515625e-05),
    "bfloat16": (-0.0, 1.00390625, 3.3895313892515355e38, "inf", "-inf", "nan"),
    "float32": (-0.0, 3.4028234663852886e38, 1.1754943508222875e-38, "inf", "-inf", "nan", 0.1),
    "float64": (-0.0, 1.7976931348623157e308, 2.2250738585072014e-308, "inf", "-inf", "nan", 0.1),
}  # fmt: skip


@each({f"constants-{dtype}": constants(dtype, values) for dtype, values in NUMBERS.items()})
def test_constants_at_the_ends_of_their_range_are_what_they_are(case: Case, target: str) -> None:
    """J 189, A 17."""
    case.holds(target)
