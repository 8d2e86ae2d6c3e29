"""Operations on data in PTX. 8-bit integers are brought back to their range after whatever may leave it: their registers have 16 bits."""

from __future__ import annotations

from core.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, DType
from core.fragments import layout_named
from core.ir.op import Op
from core.ir.parts import integer
from core.ir.value import Value
from core.render.ptx_convert import normalized
from core.render.ptx_page import Page, class_of, type_of

_WORDS = {Op.ADD: "add", Op.MUL: "mul", Op.IDIV: "div", Op.REM: "rem", Op.MAX: "max"}
_BITWISE = {Op.AND: "and", Op.OR: "or", Op.XOR: "xor"}
_LEAVES = frozenset((Op.ADD, Op.MUL, Op.SHL, Op.NEG, Op.NOT))  # results that may leave an 8-bit type
_MAX_OF_NAN = 80  # the first architecture whose maximum of a NaN can be one
_FUNCTIONS = {Op.EXP2: "ex2.approx", Op.LOG2: "lg2.approx", Op.SIN: "sin.approx", Op.SQRT: "sqrt.rn", Op.RECIP: "rcp.rn"}
_QUICK = {Op.SQRT: "sqrt.approx", Op.RECIP: "rcp.approx"}  # of float32


def binary(page: Page, value: Value) -> str:
    """ADD MUL IDIV REM AND OR XOR SHL SHR of numbers; AND OR XOR of bools; MAX of integers."""
    op, dtype = value.op, value.dtype
    if op is Op.ADD and dtype.is_float:
        return _sum_of_floats(page, value)
    if op in _BITWISE:
        return _written(page, value, f"{_BITWISE[op]}.{class_of(dtype)}", *(page.operand(s) for s in value.src))
    x = page.operand(value.src[0])
    if op is Op.SHL:
        return _written(page, value, f"shl.b{max(dtype.bits, 16)}", x, _amount(page, value.src[1]))
    if op is Op.SHR:
        return _written(page, value, f"shr.{type_of(dtype)}", page.in_register(x, class_of(dtype)), _amount(page, value.src[1]))
    if dtype.is_float:
        return _written(page, value, f"{_WORDS[op]}.rn.{type_of(dtype)}", *(_float(page, s) for s in value.src))
    x, y = (page.operand(s) for s in value.src)
    low = ".lo" if op is Op.MUL else ""
    return _written(page, value, f"{_WORDS[op]}{low}.{type_of(dtype)}", x, y)


def _written(page: Page, value: Value, instruction: str, *operands: str) -> str:
    """One instruction, and what brings an 8-bit result back to its range."""
    register = page.result(value)
    if value.dtype.bits == 8 and value.dtype is not BOOL and value.op in _LEAVES:
        return normalized(page, page.computed(instruction, "b16", *operands), value.dtype, register)
    page.emit(f"{instruction} {', '.join((register, *operands))}")
    return register


def _float(page: Page, value: Value) -> str:
    """A float operand: there are no immediates of 16 bits."""
    return page.held_operand(value) if value.dtype is FLOAT16 else page.operand(value)


def _sum_of_floats(page: Page, value: Value) -> str:
    x, y = value.src
    kind = type_of(value.dtype)
    for part, other in ((x, y), (y, x)):
        if part in page.flow.fused:
            if part.op is Op.NEG:
                return _written(page, value, f"sub.rn.{kind}", _float(page, other), _float(page, part.src[0]))
            a, b = (_float(page, s) for s in part.src)
            return _written(page, value, f"fma.rn.{kind}", a, b, _float(page, other))
    return _written(page, value, f"add.rn.{kind}", _float(page, x), _float(page, y))


def _amount(page: Page, by: Value) -> str:
    """How far to shift, as the 32-bit unsigned integer that shifts take. Beyond the width they give what the width gives."""
    x = page.operand(by)
    if by.is_const or by.dtype.bits == 32:
        return x
    return page.computed(f"cvt.u32.u{max(by.dtype.bits, 16)}", "b32", x)


def comparison(page: Page, value: Value) -> str:
    """CMPLT, false of a NaN, and CMPNE, true of one."""
    dtype = value.src[0].dtype
    how = "lt" if value.op is Op.CMPLT else "neu" if dtype.is_float else "ne"
    return _written(page, value, f"setp.{how}.{type_of(dtype)}", *(_float(page, s) for s in value.src))


def maximum(page: Page, value: Value) -> str:
    """MAX: NaN where an operand is one."""
    dtype = value.dtype
    if not dtype.is_float:
        return binary(page, value)
    kind = type_of(dtype)
    x, y = (_float(page, s) for s in value.src)
    if page.fast and dtype is not FLOAT16:
        return _written(page, value, f"max.{kind}", x, y)
    if page.capability >= _MAX_OF_NAN and dtype is not FLOAT64:
        return _written(page, value, f"max.NaN.{kind}", x, y)
    greater = page.computed(f"setp.gt.{kind}", "pred", x, y)
    is_nan = page.computed(f"setp.nan.{kind}", "pred", x, x)
    takes = page.computed("or.pred", "pred", greater, is_nan)
    return _written(page, value, f"selp.{class_of(dtype)}", x, y, takes)


def negative(page: Page, value: Value) -> str:
    """NEG."""
    dtype = value.dtype
    kind = type_of(dtype) if dtype.is_float else f"s{max(dtype.bits, 16)}"
    return _written(page, value, f"neg.{kind}", page.held_operand(value.src[0]))


def negation(page: Page, value: Value) -> str:
    """NOT."""
    return _written(page, value, f"not.{class_of(value.dtype)}", page.operand(value.src[0]))


def where(page: Page, value: Value) -> str:
    """WHERE."""
    c, x, y = (page.operand(s) for s in value.src)
    if value.dtype is not BOOL:
        return _written(page, value, f"selp.{class_of(value.dtype)}", x, y, c)
    first = page.computed("and.pred", "pred", c, x)
    second = page.computed("and.pred", "pred", page.computed("not.pred", "pred", c), y)
    return _written(page, value, "or.pred", first, second)


def function(page: Page, value: Value) -> str:
    """EXP2 LOG2 SIN SQRT RECIP. Of float16 there is none: it is one of float32, rounded."""
    op, dtype = value.op, value.dtype
    word = _QUICK[op] if page.fast and dtype is not FLOAT64 and op in _QUICK else _FUNCTIONS[op]
    x = page.held_operand(value.src[0])
    if dtype is FLOAT16:
        exact = page.computed(f"{word}.f32", "f32", page.computed("cvt.f32.f16", "f32", x))
        return _written(page, value, "cvt.rn.f16.f32", exact)
    return _written(page, value, f"{word}.{type_of(dtype)}", x)


# ---- several lanes -------------------------------------------------------------------------------------------------------------


def vector(page: Page, value: Value) -> tuple[str, ...]:
    """VECTOR: the registers of its lanes."""
    return tuple([page.alias(value, page.operand(s)) for s in value.src])


def extract(page: Page, value: Value) -> str:
    """EXTRACT."""
    return page.alias(value, page.operands(value.src[0])[integer(value)])


_OPERANDS = {"float16": "f16", "bfloat16": "bf16", "float32": "tf32"}  # as the instruction names their types


def matrix(page: Page, value: Value) -> tuple[str, ...]:
    """MMA: 16-bit elements go in pairs, tf32 ones are rounded to it first (PTX ISA 8.5, section 9.7.14.5)."""
    core = layout_named(value.arg).core
    kind = _OPERANDS[core.operand]
    factors = [_packed(page, [page.in_register(x, class_of(s.dtype)) for x in page.operands(s)], s.dtype) for s in value.src[:2]]
    sums = [page.in_register(x, "f32") for x in page.operands(value.src[2])]
    results = tuple([page.result(value, lane) for lane in range(value.lanes)])
    shape = "m{}n{}k{}".format(*core.dims)
    groups = ", ".join(f"{{{', '.join(group)}}}" for group in (results, *factors, sums))
    page.emit(f"mma.sync.aligned.{shape}.row.col.f32.{kind}.{kind}.f32 {groups}")
    return results


def _packed(page: Page, lanes: list[str], dtype: DType) -> list[str]:
    if dtype is FLOAT32:
        return [page.computed("cvt.rna.tf32.f32", "b32", x) for x in lanes]
    return [_pair(page, lanes[k], lanes[k + 1]) for k in range(0, len(lanes), 2)]


def _pair(page: Page, low: str, high: str) -> str:
    """Two 16-bit registers as one of 32 bits, put together once in a scope."""
    key = ("pair", low, high)
    if low in page.moving or high in page.moving:
        return page.computed("mov.b32", "b32", f"{{{low}, {high}}}")
    return page.known(key) or page.know(key, page.computed("mov.b32", "b32", f"{{{low}, {high}}}"))
