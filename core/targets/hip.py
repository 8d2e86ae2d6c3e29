"""HIP for AMD's GPUs: C++ by the compiler's own attributes and builtins, so that it needs no header, and no option but an architecture.

Sines, and the double precision exponentials and logarithms, are those of AMD's device library, which every HIP compiler links by itself.
"""

from __future__ import annotations

from core.device import DeviceOptions
from core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from core.fragments import layouts_of
from core.ir.op import Op
from core.linear.listing import Listing
from core.passes.machine import Machine
from core.render import c_family
from core.render.dialect import Dialect, Helper, NarrowWords, Preamble, VectorWords
from core.targets.defaults import AMD, GRID, gpu
from core.targets.target import Target

_BUILTIN = {
    (Op.EXP2, FLOAT32): "__builtin_exp2f", (Op.LOG2, FLOAT32): "__builtin_log2f", (Op.SQRT, FLOAT32): "__builtin_sqrtf",
    (Op.SQRT, FLOAT64): "__builtin_sqrt",
}  # fmt: skip
_LIBRARY = {
    (Op.SIN, FLOAT32): "__ocml_sin_f32", (Op.SIN, FLOAT64): "__ocml_sin_f64", (Op.EXP2, FLOAT64): "__ocml_exp2_f64",
    (Op.LOG2, FLOAT64): "__ocml_log2_f64",
}  # fmt: skip
_QUICK = {
    Op.EXP2: "__builtin_amdgcn_exp2f", Op.LOG2: "__builtin_amdgcn_logf", Op.SIN: "__builtin_sinf", Op.SQRT: "__builtin_amdgcn_sqrtf",
    Op.RECIP: "__builtin_amdgcn_rcpf", Op.MAX: "__builtin_fmaxf",
}  # fmt: skip
_SCALARS = {
    "char": "signed char", "uchar": "unsigned char", "short": "short", "ushort": "unsigned short", "int": "int", "uint": "unsigned int",
    "long": "long long", "ulong": "unsigned long long", "half": "_Float16", "float": "float", "double": "double",
}  # fmt: skip
_GROUP, _LOCAL = "__builtin_amdgcn_workgroup_id_{l}()", "__builtin_amdgcn_workitem_id_{l}()"
_DEVICE = "static __attribute__((device)) inline"


def _vector(base: str, lanes: int) -> Preamble:
    """A vector type and what makes one of a value a lane; neither has a name that HIP's own headers know."""
    name, word = f"{base}x{lanes}", _SCALARS[base]
    return Preamble(
        (name,),
        rf"\b(make_)?{name}\b",
        f"typedef {word} {name} __attribute__((ext_vector_type({lanes})));\n"
        f"template <class... T> {_DEVICE} {name} make_{name}(T... x) {{ return {name}{{({word})x...}}; }}",
    )


def _declared(key: tuple[Op, object], name: str) -> Preamble:
    word = "float" if key[1] is FLOAT32 else "double"
    return Preamble((name,), rf"\b{name}\b", f'extern "C" __attribute__((device, const)) {word} {name}({word});')


def _as(word: str, operand: str) -> str:
    return f"__builtin_bit_cast({word}, {operand})"


_MFMA = {"float16": ("16x16x16f16", "halfx4"), "bfloat16": ("16x16x16bf16_1k", "shortx4"), "float32": ("16x16x4f32", "float")}


def _mfma(operand: str) -> Helper:
    """CDNA's instruction. Operands of 16 bits come as they lie, as floats or as integers."""
    instruction, word = _MFMA[operand]
    return Helper(
        f"template <class A, class B> {_DEVICE} floatx4 mfma_{instruction}(A a, B b, floatx4 c) {{\n"
        f"  return __builtin_amdgcn_mfma_f32_{instruction}({_as(word, 'a')}, {_as(word, 'b')}, c, 0, 0, 0);\n}}"
    )


_WMMA = {
    "float32": Helper(
        f"template <class A, class B> {_DEVICE} floatx8 wmma_f32(A a, B b, floatx8 c) {{\n"
        f"  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32({_as('halfx16', 'a')}, {_as('halfx16', 'b')}, c);\n}}"
    ),
    # Its result fills every other half of the registers, which are as many as for float32.
    "float16": Helper(
        f"template <class A, class B, class C> {_DEVICE} C wmma_f16(A a, B b, C c) {{\n"
        f"  halfx8 x = {_as('halfx8', 'c')};\n"
        "  halfx16 d = __builtin_shufflevector(x, x, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);\n"
        f"  d = __builtin_amdgcn_wmma_f16_16x16x16_f16_w32({_as('halfx16', 'a')}, {_as('halfx16', 'b')}, d, false);\n"
        "  x = __builtin_shufflevector(d, d, 0, 2, 4, 6, 8, 10, 12, 14);\n"
        f"  return {_as('C', 'x')};\n}}"
    ),
}

_MATRIX: dict[object, str] = {
    **{layout.name: f"wmma_f{layout.core.accumulator[-2:]}" for layout in layouts_of("hip", "gfx1100", False)},
    **{layout.name: f"mfma_{_MFMA[layout.core.operand][0]}" for layout in layouts_of("hip", "gfx942", False)},
}

_HELPERS = {
    "half_bits": Helper(f"{_DEVICE} unsigned short half_bits(float x) {{ return {_as('unsigned short', '(_Float16)x')}; }}"),
    "half_value": Helper(f"{_DEVICE} float half_value(unsigned short x) {{ return (float){_as('_Float16', 'x')}; }}"),
    "round_half": Helper(f"{_DEVICE} float round_half(float x) {{ return (float)(_Float16)x; }}"),
    "bfloat_bits": Helper(
        f"{_DEVICE} unsigned short bfloat_bits(float x) {{\n"
        f"  unsigned int u = {_as('unsigned int', 'x')};\n"
        "  return (unsigned short)((x != x ? u | 0x400000u : u + 0x7fffu + (u >> 16 & 1u)) >> 16);\n"
        "}"
    ),
    "bfloat_value": Helper(
        f"{_DEVICE} float bfloat_value(unsigned short x) {{ return {_as('float', '(unsigned int)x << 16')}; }}",
    ),
    "round_bfloat": Helper(
        f"{_DEVICE} float round_bfloat(float x) {{ return bfloat_value(bfloat_bits(x)); }}", ("bfloat_bits", "bfloat_value")
    ),
    **{f"wmma_f{accumulator[-2:]}": helper for accumulator, helper in _WMMA.items()},
    **{f"mfma_{instruction}": _mfma(operand) for operand, (instruction, _) in _MFMA.items()},
}

DIALECT = Dialect(
    name="HIP",
    comment="/* {x} */",
    types={
        "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short", "int32": "int",
        "uint32": "unsigned int", "int64": "long long", "uint64": "unsigned long long", "float16": "_Float16", "float32": "float",
        "float64": "double", "index": "int", "index64": "long long",
    },
    memory={"bool": "unsigned char", "float16": "unsigned short", "bfloat16": "unsigned short"},
    suffixes={"uint32": "u", "int64": "LL", "uint64": "ull"},
    constants={"true": "true", "false": "false", "inf": "__builtin_inff()", "nan": '__builtin_nanf("")'},
    head='extern "C" __attribute__((global)) void {name}({params}) {{',
    sized_head='extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, {lanes}))) void {name}({params}) {{',
    no_params="",
    param="{const}{t}* __restrict__ {name}",
    const="const ",
    variable="const int {name}",
    special={
        "group": _GROUP,
        "local": _LOCAL,
        "global": f"(long long){_GROUP}*__builtin_amdgcn_workgroup_size_{{l}}() + {_LOCAL}",
    },
    shared="__attribute__((shared{align})) {t} {name}[{n}];",
    aligned=", aligned({a})",
    barrier="barrier();",
    barrier_of_buffers="barrier();",
    space={Op.PARAM: "", Op.SHARED: ""},
    functions=_BUILTIN | _LIBRARY,
    fast_functions={(op, FLOAT32): word for op, word in _QUICK.items()} | {(Op.MAX, FLOAT64): "__builtin_fmax"},
    saturate="",
    reinterpret="__builtin_bit_cast({t}, {x})",
    reinterpreters={},
    narrow={
        FLOAT16: NarrowWords(bits="half_bits", value="half_value", rounded="round_half"),
        BFLOAT16: NarrowWords(bits="bfloat_bits", value="bfloat_value", rounded="round_bfloat"),
    },
    helpers=_HELPERS,
    preamble=(
        *(_declared(key, name) for key, name in _LIBRARY.items()),
        Preamble(
            ("barrier",),
            r"\bbarrier\(\)",
            "#define barrier() __builtin_amdgcn_fence(__ATOMIC_RELEASE, \"workgroup\"), __builtin_amdgcn_s_barrier(), "
            "__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, \"workgroup\")",
        ),
        *(_vector(base, lanes) for base in _SCALARS for lanes in (2, 4, 8, 16)),
    ),
    half_preamble=(),
    reserved=frozenset(
        (
            "asm", "barrier", "bitand", "bitor", "compl", "concept", "const_cast", "consteval", "constinit", "decltype", "dynamic_cast",
            "explicit", "export", "mutable", "noexcept", "reinterpret_cast", "requires", "static_cast", "typeid", "and_eq", "not_eq",
            "or_eq", "xor_eq", "co_await", "co_return", "co_yield", "blockIdx", "blockDim", "threadIdx", "gridDim", "warpSize",
        )
    ),
    extra_reserved=r"(u?(char|short|int|long|longlong)|float|double|half)(x?\d+)?|(make|mfma|wmma|hip)_?\w*",
    vectors=VectorWords(
        type="{t}x{n}", make="make_{t}({x})", computes=False, names={word: base for base, word in _SCALARS.items() if base != word},
    ),
    matrix=_MATRIX,
)  # fmt: skip

MACHINE = Machine(target="hip", vectors=True, images=False, saturates=False, computes_vectors=False)


def render(listing: Listing, device: DeviceOptions) -> str:
    """A kernel of HIP C++."""
    return c_family.render(listing, device, DIALECT)


_DEFAULTS = gpu("hip", "gfx1100", GRID, (1024, 1024, 1024), 1024, 65536, alignment=16, float16=True, float64=True)
HIP = Target(
    name="hip", file_suffix="hip", defaults=_DEFAULTS, machine=MACHINE, render=render, called=False, gpu_only=True,
    arches=AMD, binaries=("hsaco",),
)  # fmt: skip
