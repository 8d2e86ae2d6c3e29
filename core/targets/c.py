"""ISO C11 with nothing but <math.h>, <stdint.h> and <string.h>: a plain function, right without any option of its compiler."""

from __future__ import annotations

from core.device import DeviceOptions
from core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, UINT16, UINT32, UINT64
from core.ir.op import Op
from core.linear.listing import Listing
from core.passes.machine import Machine
from core.render import c_family
from core.render.dialect import Dialect, Helper, NarrowWords, Preamble
from core.targets.defaults import cpu
from core.targets.target import Target

_MATH = {Op.EXP2: "exp2", Op.LOG2: "log2", Op.SIN: "sin", Op.SQRT: "sqrt"}


def _copied(name: str, to: str, of: str) -> Helper:
    """The bits of one type as another; a pointer of the wrong type would break the aliasing rules (ISO C11 6.5)."""
    return Helper(f"static inline {to} {name}({of} x) {{ {to} y; memcpy(&y, &x, sizeof y); return y; }}")


_HELPERS = {
    "float_bits": _copied("float_bits", "uint32_t", "float"),
    "bits_float": _copied("bits_float", "float", "uint32_t"),
    "double_bits": _copied("double_bits", "uint64_t", "double"),
    "bits_double": _copied("bits_double", "double", "uint64_t"),
    "native_bits": _copied("native_bits", "uint16_t", "_Float16"),
    "bits_native": _copied("bits_native", "_Float16", "uint16_t"),
    # subnormal: aligned by adding 0.5, whose last bit weighs 2**-24 as a half's does. Normal: the exponent's bias goes from 127 to 15.
    "half_bits": Helper(
        "static inline uint16_t half_bits(float x) {\n"
        "  uint32_t u = float_bits(x) & 0x7fffffffu, sign = float_bits(x) >> 16 & 0x8000u, h;\n"
        "  if (u > 0x7f800000u) h = 0x7e00u | (u >> 13 & 0x3ffu);\n"
        "  else if (u >= 0x47800000u) h = 0x7c00u;\n"
        "  else if (u < 0x38800000u) h = float_bits(bits_float(u) + 0.5f) - 0x3f000000u;\n"
        "  else h = (u - 0x38000000u + 0xfffu + (u >> 13 & 1u)) >> 13;\n"
        "  return (uint16_t)(sign | h);\n"
        "}",
        ("float_bits", "bits_float"),
    ),
    "half_value": Helper(
        "static inline float half_value(uint16_t x) {\n"
        "  uint32_t sign = (uint32_t)(x & 0x8000u) << 16, u = (uint32_t)(x & 0x7fffu) << 13;\n"
        "  if (u >= 0x0f800000u) u += 0x70000000u;\n"
        "  else if (u >= 0x00800000u) u += 0x38000000u;\n"
        "  else u = float_bits(bits_float(u + 0x38800000u) - bits_float(0x38800000u));\n"
        "  return bits_float(sign | u);\n"
        "}",
        ("float_bits", "bits_float"),
    ),
    "round_half": Helper("static inline float round_half(float x) { return half_value(half_bits(x)); }", ("half_bits", "half_value")),
    "bfloat_bits": Helper(
        "static inline uint16_t bfloat_bits(float x) {\n"
        "  uint32_t u = float_bits(x);\n"
        "  return (uint16_t)((x != x ? u | 0x400000u : u + 0x7fffu + (u >> 16 & 1u)) >> 16);\n"
        "}",
        ("float_bits",),
    ),
    "bfloat_value": Helper("static inline float bfloat_value(uint16_t x) { return bits_float((uint32_t)x << 16); }", ("bits_float",)),
    "round_bfloat": Helper(
        "static inline float round_bfloat(float x) { return bfloat_value(bfloat_bits(x)); }", ("bfloat_bits", "bfloat_value")
    ),
}

DIALECT = Dialect(
    name="C",
    comment="/* {x} */",
    types={
        "bool": "_Bool", "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "uint16": "uint16_t", "int32": "int32_t",
        "uint32": "uint32_t", "int64": "int64_t", "uint64": "uint64_t", "float16": "_Float16", "float32": "float", "float64": "double",
        "index": "int", "index64": "int64_t",
    },
    memory={"bool": "uint8_t", "float16": "uint16_t", "bfloat16": "uint16_t"},
    suffixes={"uint32": "u", "int64": "LL", "uint64": "ull"},
    constants={"true": "1", "false": "0", "inf": "INFINITY", "nan": "NAN"},
    head="void {name}({params}) {{",
    sized_head="",
    no_params="void",
    param="{const}{t}* restrict {name}",
    const="const ",
    variable="const int {name}",
    special={},
    shared="{t} {name}[{n}]{align};",
    aligned="",
    barrier="",
    barrier_of_buffers="",
    space={Op.PARAM: "", Op.SHARED: ""},
    functions={(op, FLOAT32): word + "f" for op, word in _MATH.items()} | {(op, FLOAT64): word for op, word in _MATH.items()},
    fast_functions={},
    saturate="",
    reinterpret="",
    reinterpreters={
        (FLOAT32, UINT32): "float_bits", (UINT32, FLOAT32): "bits_float",
        (FLOAT64, UINT64): "double_bits", (UINT64, FLOAT64): "bits_double",
        (FLOAT16, UINT16): "native_bits", (UINT16, FLOAT16): "bits_native",
    },
    narrow={
        FLOAT16: NarrowWords(bits="half_bits", value="half_value", rounded="round_half"),
        BFLOAT16: NarrowWords(bits="bfloat_bits", value="bfloat_value", rounded="round_bfloat"),
    },
    helpers=_HELPERS,
    preamble=(
        Preamble((*_MATH.values(), "INFINITY", "NAN"), r"\b(exp2f?|log2f?|sinf?|sqrtf?|INFINITY|NAN)\b", "#include <math.h>"),
        Preamble(("_t",), r"\bu?int(8|16|32|64)_t\b", "#include <stdint.h>"),
        Preamble(("memcpy",), r"\bmemcpy\b", "#include <string.h>"),
    ),
    half_preamble=(),
    reserved=frozenset(("memcpy", *_MATH.values(), *(word + "f" for word in _MATH.values()))),
)  # fmt: skip

MACHINE = Machine(target="c", vectors=False, images=False, saturates=False)


def render(listing: Listing, device: DeviceOptions) -> str:
    """One function of C."""
    return c_family.render(listing, device, DIALECT)


C = Target(
    name="c", file_suffix="c", defaults=cpu("c", float16=False), machine=MACHINE, render=render, called=True, vectors=False,
    binaries=("so",),
)  # fmt: skip
