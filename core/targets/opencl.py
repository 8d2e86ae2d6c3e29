"""OpenCL C: words of the 1.2 language, which every later compiler takes."""

from __future__ import annotations

from core.device import DeviceOptions
from core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from core.ir.op import Op
from core.linear.listing import Listing
from core.passes.machine import Machine
from core.render import c_family
from core.render.dialect import Dialect, Helper, ImageWords, NarrowWords, Preamble, VectorWords
from core.targets.defaults import gpu
from core.targets.target import Target

_MATH = {Op.EXP2: "exp2", Op.LOG2: "log2", Op.SIN: "sin", Op.SQRT: "sqrt"}
_QUICK = {
    Op.EXP2: "native_exp2",
    Op.LOG2: "native_log2",
    Op.SIN: "native_sin",
    Op.SQRT: "native_sqrt",
    Op.RECIP: "native_recip",
    Op.MAX: "fmax",
}

# By bits, not by vload_half and vstore_half of a private variable: behind a barrier PoCL 3.0 reads that variable before it is written.
# Subnormal: aligned by adding 0.5, whose last bit weighs 2**-24 as a half's does. Normal: the exponent's bias goes from 127 to 15.
_HELPERS = {
    # Vectors at any element: by a packed type, which PoCL 3.0 reads and writes three times as fast as by vload and vstore.
    **{
        f"any_{t}": Helper(f"struct __attribute__((packed)) any_{t}{{n}} {{ {t}{{n}} v; }};")
        for t in ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "double")
    },
    "half_bits": Helper(
        "ushort{n} half_bits{n}(float{n} x) {\n"
        "  uint{n} s = as_uint{n}(x) >> 16 & 0x8000u, u = as_uint{n}(x) & 0x7fffffffu;\n"
        "  uint{n} normal = (u - 0x38000000u + 0xfffu + (u >> 13 & 1u)) >> 13, small = as_uint{n}(as_float{n}(u) + 0.5f) - 0x3f000000u;\n"
        "  uint{n} large = u > 0x7f800000u ? 0x7e00u | (u >> 13 & 0x3ffu) : (uint{n})(0x7c00u);\n"
        "  return convert_ushort{n}(s | (u >= 0x47800000u ? large : u < 0x38800000u ? small : normal));\n"
        "}"
    ),
    "half_value": Helper(
        "float{n} half_value{n}(ushort{n} x) {\n"
        "  uint{n} s = (convert_uint{n}(x) & 0x8000u) << 16, u = (convert_uint{n}(x) & 0x7fffu) << 13;\n"
        "  uint{n} small = as_uint{n}(as_float{n}(u + 0x38800000u) - 0x1p-14f);\n"
        "  return as_float{n}(s | (u >= 0x0f800000u ? u + 0x70000000u : u >= 0x00800000u ? u + 0x38000000u : small));\n"
        "}"
    ),
    "round_half": Helper("float{n} round_half{n}(float{n} x) { return half_value{n}(half_bits{n}(x)); }", ("half_bits", "half_value")),
    "bfloat_bits": Helper(
        "ushort{n} bfloat_bits{n}(float{n} x) {\n"
        "  uint{n} u = as_uint{n}(x);\n"
        "  return convert_ushort{n}((x != x ? u | 0x400000u : u + 0x7fffu + (u >> 16 & 1u)) >> 16);\n"
        "}"
    ),
    "bfloat_value": Helper("float{n} bfloat_value{n}(ushort{n} x) { return as_float{n}(convert_uint{n}(x) << 16); }"),
    "round_bfloat": Helper(
        "float{n} round_bfloat{n}(float{n} x) { return bfloat_value{n}(bfloat_bits{n}(x)); }", ("bfloat_bits", "bfloat_value")
    ),
}

DIALECT = Dialect(
    name="OpenCL",
    comment="/* {x} */",
    types={
        "bool": "bool", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int", "uint32": "uint",
        "int64": "long", "uint64": "ulong", "float16": "half", "float32": "float", "float64": "double", "index": "int", "index64": "long",
    },
    memory={"bool": "uchar", "float16": "ushort", "bfloat16": "ushort"},
    suffixes={"uint32": "u", "int64": "L", "uint64": "ul"},
    constants={"true": "true", "false": "false", "inf": "INFINITY", "nan": "NAN"},
    head="__kernel void {name}({params}) {{",
    sized_head="__kernel __attribute__((reqd_work_group_size({x}, {y}, {z}))) void {name}({params}) {{",
    no_params="",
    param="__global {const}{t}* restrict {name}",
    const="const ",
    variable="const int {name}",
    special={"group": "get_group_id({d})", "local": "get_local_id({d})", "global": "get_global_id({d})"},
    shared="__local {t} {name}[{n}]{align};",
    aligned=" __attribute__((aligned({a})))",
    barrier="barrier(CLK_LOCAL_MEM_FENCE);",
    barrier_of_buffers="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    space={Op.PARAM: "__global ", Op.SHARED: "__local "},
    functions={(op, dtype): word for op, word in _MATH.items() for dtype in (FLOAT32, FLOAT64)},
    fast_functions={(op, FLOAT32): word for op, word in _QUICK.items()} | {(Op.MAX, FLOAT64): "fmax"},
    saturate="convert_{t}_sat({x})",
    reinterpret="as_{t}({x})",
    reinterpreters={},
    narrow={
        FLOAT16: NarrowWords(
            bits="half_bits", value="half_value", rounded="round_half", element="half",
            load="vload_half({i}, {p})", store="vstore_half_rte({x}, {i}, {p});",
            vector_load="vload_half{n}(0, {p} + {i})", vector_store="vstore_half{n}_rte({x}, 0, {p} + {i});",
        ),
        BFLOAT16: NarrowWords(bits="bfloat_bits", value="bfloat_value", rounded="round_bfloat"),
    },
    helpers=_HELPERS,
    preamble=(Preamble(("double",), r"\bdouble\d*\b", "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"),),
    half_preamble=(Preamble(("half",), r"\bhalf\d*\b", "#pragma OPENCL EXTENSION cl_khr_fp16 : enable"),),
    reserved=frozenset(
        (
            "kernel", "global", "local", "constant", "read_only", "write_only", "read_write", "uniform", "pipe", "quad",
            "image2d_t", "sampler_t", "event_t", "smp", "barrier", "select", "max", "fmax",
            "get_group_id", "get_local_id", "get_global_id", "read_imagef", "write_imagef",
            *_MATH.values(), *_QUICK.values(),
        )
    ),
    extra_reserved=r"(u?(char|short|int|long)|float|double|half|bool)\d*|(as|convert|vload|vstore)_?\w*",
    vectors=VectorWords(
        type="{t}{n}", make="({t})({x})", convert="convert_{t}({x})", saturate="convert_{t}_sat({x})", choose="select({x}, {y}, {c})",
        greater="max({x}, {y})", anywhere="(({q}struct any_{t}{n}*)({p}))->v",
    ),
    images=ImageWords(
        params={"read": "read_only image2d_t {name}", "write": "write_only image2d_t {name}"},
        sampler="const sampler_t smp = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;",
        read="read_imagef({p}, smp, (int2)({x}, {y}))",
        write="write_imagef({p}, (int2)({x}, {y}), {v});",
    ),
)  # fmt: skip

MACHINE = Machine(target="opencl", vectors=True, images=True, saturates=True)


def render(listing: Listing, device: DeviceOptions) -> str:
    """A kernel of OpenCL C, which needs no build options."""
    return c_family.render(listing, device, DIALECT)


_DEFAULTS = gpu("opencl", None, None, None, 256, 32768, alignment=128, float16=False, float64=True)
OPENCL = Target(
    name="opencl", file_suffix="cl", defaults=_DEFAULTS, machine=MACHINE, render=render, called=False,
    binaries=("clbin", "spirv"),
)  # fmt: skip
