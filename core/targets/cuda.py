"""CUDA C++, as a runtime compiler takes it: no standard headers, and only those of 16-bit floats where a program has some."""

from __future__ import annotations

from core.device import DeviceOptions
from core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, UINT16, UINT32, UINT64
from core.fragments import layouts_of
from core.ir.op import Op
from core.linear.listing import Listing
from core.passes.machine import Machine
from core.render import c_family
from core.render.dialect import Dialect, Helper, NarrowWords, Preamble, VectorWords
from core.targets.defaults import GRID, NVIDIA, gpu
from core.targets.target import Target

_MATH = {Op.EXP2: "exp2", Op.LOG2: "log2", Op.SIN: "sin", Op.SQRT: "sqrt"}
_QUICK = {Op.LOG2: "__log2f", Op.SIN: "__sinf", Op.MAX: "fmaxf"}
_TYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "tf32"}  # of operands, as the instruction names them


def _inline(text: str) -> Helper:
    return Helper(f"static __device__ __forceinline__ {text}")


def _matrix(dims: tuple[int, int, int], operand: str) -> Helper:
    """`mma.sync` on fragments: 16-bit elements go in pairs, tf32 ones are rounded to it first (PTX ISA 8.5, section 9.7.14.5)."""
    shape, kind = "m{}n{}k{}".format(*dims), _TYPES[operand]
    counts = dims[0] * dims[2] // 32, dims[2] * dims[1] // 32  # elements of A and of B
    registers = [n if kind == "tf32" else n // 2 for n in counts]
    slots = [f"%{k}" for k in range(4 + sum(registers))]
    groups = ", ".join(f"{{{', '.join(g)}}}" for g in (slots[:4], slots[4 : 4 + registers[0]], slots[4 + registers[0] :], slots[:4]))
    words = [f"{name}[{k}]" for name, n in zip("xy", registers, strict=True) for k in range(n)]
    lines = [
        f"template <class A, class B> static __device__ __forceinline__ float4 mma_{shape}_{kind}(const A& a, const B& b, float4 c) {{"
    ]
    if kind == "tf32":
        lines.append(f"  unsigned int x[{counts[0]}], y[{counts[1]}];")
        for held, name, n in (("a", "x", counts[0]), ("b", "y", counts[1])):
            lines += [f'  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"({name}[{k}]) : "f"({held}.{"xyzw"[k]}));' for k in range(n)]
    else:
        lines.append("  const unsigned int *x = (const unsigned int*)&a, *y = (const unsigned int*)&b;")
    results = ", ".join(f'"+f"(c.{lane})' for lane in "xyzw")
    operands = ", ".join(f'"r"({word})' for word in words)
    lines.append(f'  asm volatile("mma.sync.aligned.{shape}.row.col.f32.{kind}.{kind}.f32 {groups};"')
    lines.append(f"               : {results} : {operands});")
    return Helper("\n".join([*lines, "  return c;", "}"]))


def _fields(word: str, lanes: int, base: str) -> str:
    """A vector the language does not have, aligned as a whole."""
    names = "xyzw"[:lanes] if lanes <= 4 else [f"s{k:x}" for k in range(lanes)]
    size = 2 * lanes
    arguments = ", ".join(f"{word} {n}" for n in names)
    return (
        f"struct __align__({size}) {base}{lanes} {{ {word} {', '.join(names)}; }};\n"
        f"__device__ inline {base}{lanes} make_{base}{lanes}({arguments}) "  # not static: it may be used by nobody
        f"{{ {base}{lanes} v = {{{', '.join(names)}}}; return v; }}"
    )


_LAYOUTS = layouts_of("cuda", "sm_80", True)
_MATRIX: dict[object, str] = {layout.name: "mma_m{}n{}k{}_{}".format(*layout.core.dims, _TYPES[layout.core.operand]) for layout in _LAYOUTS}

_HELPERS = {
    "float_bits": _inline("unsigned int float_bits(float x) { return __float_as_uint(x); }"),
    "bits_float": _inline("float bits_float(unsigned int x) { return __uint_as_float(x); }"),
    "double_bits": _inline("unsigned long long double_bits(double x) { return __double_as_longlong(x); }"),
    "bits_double": _inline("double bits_double(unsigned long long x) { return __longlong_as_double(x); }"),
    "native_bits": _inline("unsigned short native_bits(half x) { return __half_as_ushort(x); }"),
    "bits_native": _inline("half bits_native(unsigned short x) { return __ushort_as_half(x); }"),
    "half_bits": _inline("unsigned short half_bits(float x) { return __half_as_ushort(__float2half_rn(x)); }"),
    "half_value": _inline("float half_value(unsigned short x) { return __half2float(__ushort_as_half(x)); }"),
    "round_half": _inline("float round_half(float x) { return __half2float(__float2half_rn(x)); }"),
    "bfloat_bits": _inline("unsigned short bfloat_bits(float x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }"),
    "bfloat_value": _inline("float bfloat_value(unsigned short x) { return __uint_as_float((unsigned int)x << 16); }"),
    "round_bfloat": _inline("float round_bfloat(float x) { return __bfloat162float(__float2bfloat16_rn(x)); }"),
    **{_MATRIX[layout.name]: _matrix(layout.core.dims, layout.core.operand) for layout in _LAYOUTS},
}

DIALECT = Dialect(
    name="CUDA",
    comment="/* {x} */",
    types={
        "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short", "int32": "int",
        "uint32": "unsigned int", "int64": "long long", "uint64": "unsigned long long", "float16": "half", "float32": "float",
        "float64": "double", "index": "int", "index64": "long long",
    },
    memory={"bool": "unsigned char", "float16": "unsigned short", "bfloat16": "unsigned short"},
    suffixes={"uint32": "u", "int64": "LL", "uint64": "ull"},
    constants={"true": "true", "false": "false", "inf": "INFINITY", "nan": "NAN"},
    head='extern "C" __global__ void {name}({params}) {{',
    sized_head='extern "C" __global__ void __launch_bounds__({lanes}) {name}({params}) {{',
    no_params="",
    param="{const}{t}* __restrict__ {name}",
    const="const ",
    variable="const int {name}",
    special={"group": "blockIdx.{l}", "local": "threadIdx.{l}", "global": "(long long)blockIdx.{l}*blockDim.{l} + threadIdx.{l}"},
    shared="__shared__{align} {t} {name}[{n}];",
    aligned=" __align__({a})",
    barrier="__syncthreads();",
    barrier_of_buffers="__syncthreads();",
    space={Op.PARAM: "", Op.SHARED: ""},
    functions={(op, FLOAT32): word + "f" for op, word in _MATH.items()} | {(op, FLOAT64): word for op, word in _MATH.items()},
    fast_functions={(op, FLOAT32): word for op, word in _QUICK.items()} | {(Op.MAX, FLOAT64): "fmax"},
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
        Preamble(("half",), r"\b(make_)?half\d*\b|\b__half|\b__float2half", "#include <cuda_fp16.h>"),
        Preamble(("__bfloat16",), r"\b__bfloat16", "#include <cuda_bf16.h>"),
        Preamble(("INFINITY",), r"\bINFINITY\b", "#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif"),
        Preamble(("NAN",), r"\bNAN\b", "#ifndef NAN\n#define NAN __int_as_float(0x7fffffff)\n#endif"),
        Preamble(("half4",), r"\b(make_)?half4\b", _fields("half", 4, "half")),
        Preamble(("half8",), r"\b(make_)?half8\b", _fields("half", 8, "half")),
        Preamble(("ushort8",), r"\b(make_)?ushort8\b", _fields("unsigned short", 8, "ushort")),
    ),
    half_preamble=(),
    reserved=frozenset(
        (
            "asm", "bitand", "bitor", "compl", "concept", "const_cast", "consteval", "constinit", "decltype", "dynamic_cast", "explicit",
            "export", "mutable", "noexcept", "reinterpret_cast", "requires", "static_cast", "typeid", "and_eq", "not_eq", "or_eq", "xor_eq",
            "co_await", "co_return", "co_yield", "blockIdx", "blockDim", "threadIdx", "gridDim", "warpSize", "fmax", "fmaxf",
            *_MATH.values(), *(word + "f" for word in _MATH.values()),
        )
    ),
    extra_reserved=r"(u?(char|short|int|long|longlong)|float|double|half)\d*|(make|mma|nv)_\w+",
    vectors=VectorWords(
        type="{t}{n}", make="make_{t}({x})", computes=False,
        names={
            "signed char": "char", "unsigned char": "uchar", "unsigned short": "ushort", "unsigned int": "uint", "long long": "longlong",
            "unsigned long long": "ulonglong",
        },
    ),
    matrix=_MATRIX,
)  # fmt: skip

MACHINE = Machine(target="cuda", vectors=True, images=False, saturates=False, computes_vectors=False)


def render(listing: Listing, device: DeviceOptions) -> str:
    """A kernel of CUDA C++."""
    return c_family.render(listing, device, DIALECT)


_DEFAULTS = gpu("cuda", "sm_80", GRID, (1024, 1024, 64), 1024, 49152, alignment=16, float16=True, float64=True)
CUDA = Target(
    name="cuda", file_suffix="cu", defaults=_DEFAULTS, machine=MACHINE, render=render, called=False, gpu_only=True,
    arches=NVIDIA, binaries=("cubin", "ptx"),
)  # fmt: skip
