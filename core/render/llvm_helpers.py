"""Functions of LLVM IR that programs with emulated 16-bit floats bring along: conversions by bits, of scalars and of vectors.

Any pipeline of passes inlines them. Infinities, subnormals and ties are right; a NaN stays one and quiet.
"""

from __future__ import annotations

import re

from core.render.llvm_words import lanes_of, repeated

# {f} {i} {h} {b}: float, i32, i16 and i1, or vectors of them; {n}: lanes, if several; #5: a constant of i32; ~0.5: of float.
_BFLOAT = """\
  %u = bitcast {f} %x to {i}
  %high = lshr {i} %u, #16
  %odd = and {i} %high, #1
  %half = add {i} %odd, #32767
  %up = add {i} %u, %half
  %quiet = or {i} %u, #4194304
  %isnan = fcmp uno {f} %x, %x
  %kept = select {b} %isnan, {i} %quiet, {i} %up
"""
# subnormal: aligned by adding 0.5, whose last bit weighs 2**-24 as a half's does. Normal: the exponent's bias goes from 127 to 15.
_HALF = """\
  %all = bitcast {f} %x to {i}
  %upper = lshr {i} %all, #16
  %sign = and {i} %upper, #32768
  %u = and {i} %all, #2147483647
  %cut = lshr {i} %u, #13
  %payload = and {i} %cut, #1023
  %nan = or {i} %payload, #32256
  %isnan = icmp ugt {i} %u, #2139095040
  %large = select {b} %isnan, {i} %nan, {i} #31744
  %plain = bitcast {i} %u to {f}
  %aligned = fadd {f} %plain, ~0.5
  %low = bitcast {f} %aligned to {i}
  %small = sub {i} %low, #1056964608
  %issmall = icmp ult {i} %u, #947912704
  %odd = and {i} %cut, #1
  %less = sub {i} %u, #939524096
  %half = add {i} %odd, #4095
  %up = add {i} %less, %half
  %normal = lshr {i} %up, #13
  %islarge = icmp uge {i} %u, #1199570944
  %finite = select {b} %issmall, {i} %small, {i} %normal
  %size = select {b} %islarge, {i} %large, {i} %finite
  %whole = or {i} %sign, %size
"""
_TEXTS = {
    "bfloat_bits": (
        "{h} @bfloat_bits{n}({f} %x)",
        _BFLOAT + "  %top = lshr {i} %kept, #16\n  %bits = trunc {i} %top to {h}\n  ret {h} %bits\n",
    ),
    "bfloat_value": (
        "{f} @bfloat_value{n}({h} %x)",
        "  %wide = zext {h} %x to {i}\n  %u = shl {i} %wide, #16\n  %value = bitcast {i} %u to {f}\n  ret {f} %value\n",
    ),
    "round_bfloat": (
        "{f} @round_bfloat{n}({f} %x)",
        _BFLOAT + "  %top = and {i} %kept, #-65536\n  %value = bitcast {i} %top to {f}\n  ret {f} %value\n",
    ),
    "half_bits": ("{h} @half_bits{n}({f} %x)", _HALF + "  %bits = trunc {i} %whole to {h}\n  ret {h} %bits\n"),
    "half_value": (
        "{f} @half_value{n}({h} %x)",
        """\
  %wide = zext {h} %x to {i}
  %top = and {i} %wide, #32768
  %sign = shl {i} %top, #16
  %low = and {i} %wide, #32767
  %u = shl {i} %low, #13
  %normal = add {i} %u, #939524096
  %infinite = add {i} %u, #1879048192
  %raised = add {i} %u, #947912704
  %raisedf = bitcast {i} %raised to {f}
  %small = fsub {f} %raisedf, ~0.00006103515625
  %smallbits = bitcast {f} %small to {i}
  %isinfinite = icmp uge {i} %u, #260046848
  %isnormal = icmp uge {i} %u, #8388608
  %finite = select {b} %isnormal, {i} %normal, {i} %smallbits
  %size = select {b} %isinfinite, {i} %infinite, {i} %finite
  %whole = or {i} %sign, %size
  %value = bitcast {i} %whole to {f}
  ret {f} %value
""",
    ),
    "round_half": (
        "{f} @round_half{n}({f} %x)",
        "  %bits = call {h} @half_bits{n}({f} %x)\n  %value = call {f} @half_value{n}({h} %bits)\n  ret {f} %value\n",
    ),
}
NEEDS = {"round_half": ("half_bits", "half_value")}
_CONSTANT = re.compile(r"([#~])(-?[\d.]+)")


def helper(name: str, lanes: int) -> str:
    """The definition of a helper for so many lanes."""
    head, body = _TEXTS[name]

    def constant(match: re.Match[str]) -> str:
        return repeated(match[2], "i32" if match[1] == "#" else "float", lanes)

    text = _CONSTANT.sub(constant, f"define internal {head} alwaysinline nounwind {{\n{body}}}\n")
    types = {letter: lanes_of(word, lanes) for letter, word in (("f", "float"), ("i", "i32"), ("h", "i16"), ("b", "i1"))}
    for letter, words in {**types, "n": "" if lanes == 1 else str(lanes)}.items():
        text = text.replace(f"{{{letter}}}", words)
    return text
