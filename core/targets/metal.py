"""Metal's shading language, the parts that every version since 2.3 has: matrices of a SIMD group among them."""

from __future__ import annotations

from core.device import DeviceOptions
from core.dtypes import BFLOAT16, FLOAT16, FLOAT32
from core.errors import TargetError
from core.fragments import layouts_of
from core.ir.op import Op
from core.linear.listing import Listing
from core.passes.machine import Machine
from core.render import c_family
from core.render.dialect import Dialect, Helper, NarrowWords, Preamble, VectorWords
from core.targets.defaults import gpu
from core.targets.target import Target

MAX_ARGUMENTS = 31  # entries of a function's buffer argument table (Metal feature set tables)

_FINITE = (
    "NaN and infinities: compilers of Metal 3.2 and later read in the text that arithmetic is not to be taken for finite; earlier ones "
    "must be told so by the option that disables fast math (MTLCompileOptions.fastMathEnabled = NO, or -fno-fast-math)"
)
_MATH = {Op.EXP2: "exp2", Op.LOG2: "log2", Op.SIN: "sin", Op.SQRT: "sqrt"}
_QUICK = {op: f"fast::{word}" for op, word in _MATH.items()} | {Op.MAX: "fast::fmax"}
_WORDS = {"float16": "half", "float32": "float"}


def _matrix(operand: str, accumulator: str) -> Helper:
    """A product of 8×8 matrices, of each of which a lane holds two elements; halves come as they lie, as floats or as integers."""
    x, c = _WORDS[operand], _WORDS[accumulator]
    return Helper(
        f"template <typename A, typename B, typename C> C mma_{x}_{c}(A a, B b, C c) {{\n"
        f"  simdgroup_{x}8x8 x, y;\n"
        f"  simdgroup_{c}8x8 z;\n"
        f"  x.thread_elements() = as_type<{x}2>(a);\n"
        f"  y.thread_elements() = as_type<{x}2>(b);\n"
        f"  z.thread_elements() = as_type<{c}2>(c);\n"
        "  simdgroup_multiply_accumulate(z, x, y, z);\n"
        f"  {c}2 d = z.thread_elements();\n"
        "  return as_type<C>(d);\n"
        "}"
    )


_LAYOUTS = layouts_of("metal", None, False)
_MATRIX: dict[object, str] = {layout.name: f"mma_{_WORDS[layout.core.operand]}_{_WORDS[layout.core.accumulator]}" for layout in _LAYOUTS}

_HELPERS = {
    "half_bits": Helper("static inline ushort half_bits(float x) { return as_type<ushort>((half)x); }"),
    "half_value": Helper("static inline float half_value(ushort x) { return (float)as_type<half>(x); }"),
    "round_half": Helper("static inline float round_half(float x) { return (float)(half)x; }"),
    "bfloat_bits": Helper(
        "static inline ushort bfloat_bits(float x) {\n"
        "  uint u = as_type<uint>(x);\n"
        "  return (ushort)(((u & 0x7fffffffu) > 0x7f800000u ? u | 0x400000u : u + 0x7fffu + (u >> 16 & 1u)) >> 16);\n"
        "}"
    ),
    "bfloat_value": Helper("static inline float bfloat_value(ushort x) { return as_type<float>((uint)x << 16); }"),
    "round_bfloat": Helper(
        "static inline float round_bfloat(float x) { return bfloat_value(bfloat_bits(x)); }", ("bfloat_bits", "bfloat_value")
    ),
    **{_MATRIX[layout.name]: _matrix(layout.core.operand, layout.core.accumulator) for layout in _LAYOUTS},
}

DIALECT = Dialect(
    name="Metal",
    comment="/* {x} */",
    types={
        "bool": "bool", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int", "uint32": "uint",
        "int64": "long", "uint64": "ulong", "float16": "half", "float32": "float", "index": "int", "index64": "long",
    },
    memory={"bool": "uchar", "float16": "ushort", "bfloat16": "ushort"},
    suffixes={"uint32": "u", "int64": "L", "uint64": "ul"},
    constants={"true": "true", "false": "false", "inf": "INFINITY", "nan": "NAN"},
    head="kernel void {name}({params}) {{",
    sized_head="[[max_total_threads_per_threadgroup({lanes})]] kernel void {name}({params}) {{",
    no_params="",
    param="device {const}{t}* {name} [[buffer({k})]]",
    const="const ",
    variable="constant int& {name} [[buffer({k})]]",
    special={"group": "gid.{l}", "local": "lid.{l}", "global": "tid.{l}"},
    launch_params={
        "group": "uint3 gid [[threadgroup_position_in_grid]]",
        "local": "uint3 lid [[thread_position_in_threadgroup]]",
        "global": "uint3 tid [[thread_position_in_grid]]",
    },
    shared="{align}threadgroup {t} {name}[{n}];",
    aligned="alignas({a}) ",
    barrier="threadgroup_barrier(mem_flags::mem_threadgroup);",
    barrier_of_buffers="threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);",
    space={Op.PARAM: "device ", Op.SHARED: "threadgroup "},
    functions={(op, FLOAT32): f"precise::{word}" for op, word in _MATH.items()},
    fast_functions={(op, FLOAT32): word for op, word in _QUICK.items()},
    saturate="",
    reinterpret="as_type<{t}>({x})",
    reinterpreters={},
    narrow={
        FLOAT16: NarrowWords(bits="half_bits", value="half_value", rounded="round_half"),
        BFLOAT16: NarrowWords(bits="bfloat_bits", value="bfloat_value", rounded="round_bfloat"),
    },
    helpers=_HELPERS,
    preamble=(
        Preamble(("kernel",), "kernel", "#include <metal_stdlib>"),
        Preamble(("simdgroup_",), r"\bsimdgroup_", "#include <metal_simdgroup_matrix>"),
        Preamble(("float", "half"), r"\b(float|half)\d*\b", "#pragma METAL fp math_mode(safe)", exact=True),
        Preamble(("kernel",), "kernel", "using namespace metal;"),
    ),
    half_preamble=(),
    reserved=frozenset(
        (
            "kernel", "vertex", "fragment", "visible", "intersection", "mesh", "object", "device", "constant", "thread", "threadgroup",
            "threadgroup_imageblock", "object_data", "ray_data", "stage_in", "metal", "precise", "fast", "as_type", "vec", "matrix",
            "sampler", "array", "atomic", "mem_flags", "threadgroup_barrier", "gid", "lid", "tid", "asm", "bitand", "bitor", "compl",
            "const_cast", "decltype", "dynamic_cast", "explicit", "export", "mutable", "noexcept", "reinterpret_cast", "static_cast",
            "typeid", "and_eq", "not_eq", "or_eq", "xor_eq", "max", "min", "select", "clamp", "fmax", *_MATH.values(),
        )
    ),
    extra_reserved=r"(u?(char|short|int|long)|float|half|bfloat|bool|double)\d*(x\d)?|(packed|mma|simdgroup|simd|texture|depth)_?\w*",
    vectors=VectorWords(type="{t}{n}", make="{t}({x})", computes=False),
    matrix=_MATRIX,
)  # fmt: skip

MACHINE = Machine(target="metal", vectors=True, images=False, saturates=False, computes_vectors=False)


def render(listing: Listing, device: DeviceOptions) -> str:
    """A kernel of Metal. Raises TargetError where it has more arguments than a kernel may."""
    if len(listing.params) + len(listing.variables) > MAX_ARGUMENTS:
        raise TargetError("/ast", target="metal", feature=f"more than {MAX_ARGUMENTS} buffers and variables of a kernel")
    return c_family.render(listing, device, DIALECT)


_DEFAULTS = gpu("metal", None, None, (1024, 1024, 1024), 1024, 32768, alignment=16, float16=True, float64=False)
METAL = Target(
    name="metal", file_suffix="metal", defaults=_DEFAULTS, machine=MACHINE, render=render, called=False, gpu_only=True,
    lacks=frozenset(("float64",)), promises=(_FINITE,),
)  # fmt: skip
