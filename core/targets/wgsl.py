"""WGSL, WebGPU's language: what its specification promises of every device, and nothing of any one.

Functions whose accuracy it leaves open are ours, in 32-bit integers and floats; so are the conversions of 16-bit floats, whose rounding it
leaves open too.
"""

from __future__ import annotations

from core.device import DeviceOptions
from core.dtypes import BFLOAT16, DTYPES, FLOAT16, FLOAT32
from core.errors import TargetError
from core.ir.op import Op
from core.linear.listing import Listing
from core.passes.machine import Machine
from core.render import wgsl
from core.render.dialect import Dialect, NarrowWords, Preamble, VectorWords
from core.targets.defaults import gpu
from core.targets.target import Target
from core.targets.wgsl_words import HELPERS, RESERVED

# Per shader stage, of a device that is asked for no more than every device has (WebGPU, section 3.6.2, "Limits").
MAX_STORAGE_BUFFERS = 8
MAX_UNIFORM_BUFFERS = 12

DIALECT = Dialect(
    name="WGSL",
    comment="/* {x} */",
    types={
        "bool": "bool", "int8": "i32", "uint8": "u32", "int16": "i32", "uint16": "u32", "int32": "i32", "uint32": "u32", "float16": "f16",
        "float32": "f32", "index": "i32",
    },
    memory={"float16": "u32", "bfloat16": "u32"},
    suffixes={},
    constants={"true": "true", "false": "false"},
    head="",
    sized_head="@compute @workgroup_size({x}, {y}, {z})\nfn {name}({params}) {{",
    no_params="",
    param="@group(0) @binding({k}) var<storage, {const}> {name}: array<{t}>;",
    const="",
    variable="@group(0) @binding({k}) var<uniform> {name}: i32;",
    special={"group": "i32(group.{l})", "local": "i32(lane.{l})", "global": "i32(item.{l})"},
    shared="var<workgroup> {name}: array<{t}, {n}>;",
    aligned="",
    barrier="workgroupBarrier();",
    barrier_of_buffers="storageBarrier(); workgroupBarrier();",
    space={},
    functions={
        (Op.EXP2, FLOAT32): "precise_exp2", (Op.LOG2, FLOAT32): "precise_log2", (Op.SIN, FLOAT32): "precise_sin",
        (Op.SQRT, FLOAT32): "sqrt",
    },
    fast_functions={(Op.EXP2, FLOAT32): "exp2", (Op.LOG2, FLOAT32): "log2", (Op.SIN, FLOAT32): "sin"},
    saturate="",
    reinterpret="",
    reinterpreters={},
    narrow={
        FLOAT16: NarrowWords(bits="half_bits", value="half_value", rounded="round_half"),
        BFLOAT16: NarrowWords(bits="bfloat_bits", value="bfloat_value", rounded="round_bfloat"),
    },
    helpers=HELPERS,
    preamble=(),
    half_preamble=(Preamble(("f16", "h"), r"\bf16\b|\b[0-9][0-9.e+-]*h\b", "enable f16;"),),
    reserved=RESERVED | wgsl.MEMBERS,
    extra_reserved=r"(read|write)\d*_d\d+|(vec[234]|mat[234]x[234])[fhiu]?|(texture|atomic|subgroup|quad)\w*",
    vectors=VectorWords(type="vec{n}<{t}>", make="{t}({x})", computes=False),
    declare="let {name} = {x};",
    register="var {name} = {x};",
    loop="for (var {name} = 0; {name} < {end}; {name}++) {{",
)  # fmt: skip

_LACKS = frozenset(("int64", "uint64", "float64"))
MACHINE = Machine(
    target="wgsl",
    vectors=True,
    images=False,
    saturates=True,
    computes_vectors=False,
    total=True,
    lacks=frozenset(DTYPES[name] for name in _LACKS),
)


def render(listing: Listing, device: DeviceOptions) -> str:
    """A module of WGSL with one entry point. Raises TargetError for more arguments than a device must take."""
    counts = (len(listing.params), MAX_STORAGE_BUFFERS, "buffers"), (len(listing.variables), MAX_UNIFORM_BUFFERS, "variables")
    for count, most, what in counts:
        if count > most:
            raise TargetError("/ast", target="wgsl", feature=f"room for {count} {what}: a device need take no more than {most}")
    return wgsl.render(listing, device, DIALECT)


_NAN = (
    "NaN and infinities: WGSL lets a device assume that arithmetic meets neither. CMPLT, CMPNE, MAX, EXP2, LOG2, SIN and conversions go "
    "by bits and keep their rules everywhere; ADD, MUL, RECIP and SQRT keep them as far as the device's own arithmetic does."
)
_ROUNDING = (
    "Rounding: WGSL fixes no mode. ADD, MUL and conversions of integers to float32 round once, as the device rounds; RECIP is within "
    "2.5 ulp while its operand is from 2**-126 to 2**126 in size, SQRT within 4.5 ulp. Where float16 is true, this holds of float16 too."
)
_SUBNORMALS = "Subnormals: where float16 is true, a device may take those of float16 for zeros."
_BINDINGS = (
    "Bindings: argument k is binding k of group 0, buffers as storage buffers (at most 8), variables as uniform buffers (at most 12). A "
    "buffer's size is rounded up to a multiple of 4 bytes, and to 16 bytes where it would be less."
)

_DEFAULTS = gpu("wgsl", None, (65535, 65535, 65535), (256, 256, 64), 256, 16384, alignment=16, float16=False, float64=False)
WGSL = Target(
    name="wgsl", file_suffix="wgsl", defaults=_DEFAULTS, machine=MACHINE, render=render, called=False, index64=False,
    sized=True, gpu_only=True, lacks=_LACKS, binaries=("spirv",), promises=(_NAN, _ROUNDING, _SUBNORMALS, _BINDINGS),
)  # fmt: skip
