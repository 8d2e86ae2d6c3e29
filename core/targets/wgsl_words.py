"""What WGSL reserves, and functions of ours in it.

Errors where the device rounds correctly, measured over 2**21 arguments of each range, in units in the last place: precise_exp2 1.3,
precise_log2 1.3, precise_sin 2.7. Polynomials are minimax fits of relative error below 2**-27. What may be an infinity or a NaN comes out
of `float_of`: calls of functions are not evaluated before the program runs.
"""

from __future__ import annotations

from core.render.dialect import Helper

# Keywords and reserved words (WGSL, sections 15.1 and 15.2), predeclared types, and the functions that texts call.
_WORDS = """
alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if let loop override requires
return struct switch true var while

NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become cast catch class co_await co_return
co_yield coherent column_major common compile compile_fragment concept const_cast consteval constexpr constinit crate debugger decltype
delete demote demote_to_helper do dynamic_cast enum explicit export extends extern external fallthrough filter final finally friend from
fxgroup get goto groupshared highp impl implements import inline instanceof interface layout lowp macro macro_rules match mediump meta
mod module move mut mutable namespace new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null nullptr of
operator package packoffset partial pass patch pixelfragment precise precision premerge priv protected pub public readonly ref
regardless register reinterpret_cast require resource restrict self set shared sizeof smooth snorm static static_assert static_cast std
subroutine super target template this thread_local throw trait try type typedef typeid typename typeof union unless unorm unsafe unsized
use using varying virtual volatile wgsl where with writeonly yield

array atomic bool f16 f32 i32 u32 ptr sampler sampler_comparison

abs bitcast countLeadingZeros exp2 extractBits log2 max min pack2x16float round select sin sqrt storageBarrier unpack2x16float
workgroupBarrier
"""
RESERVED = frozenset(_WORDS.split())

HELPERS = {
    "float_of": Helper("fn float_of(bits: u32) -> f32 { return bitcast<f32>(bits); }"),
    "half_of": Helper("fn half_of(bits: u32) -> f16 { return f16(unpack2x16float(bits).x); }"),
    "half_to_bits": Helper("fn half_to_bits(x: f16) -> u32 { return pack2x16float(vec2<f32>(f32(x), 0.0f)) & 0xffffu; }"),
    "is_nan": Helper("fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }"),
    "is_less": Helper("fn is_less(x: f32, y: f32) -> bool { return x < y && !is_nan(x) && !is_nan(y); }", ("is_nan",)),
    "differ": Helper("fn differ(x: f32, y: f32) -> bool { return x != y || is_nan(x) || is_nan(y); }", ("is_nan",)),
    "greater": Helper("fn greater(x: f32, y: f32) -> f32 { return select(select(max(x, y), y, is_nan(y)), x, is_nan(x)); }", ("is_nan",)),
    "greater_half": Helper(
        "fn greater_half(x: f16, y: f16) -> f16 { return select(select(max(x, y), y, is_nan(f32(y))), x, is_nan(f32(x))); }", ("is_nan",)
    ),
    # Normal: the exponent's bias goes from 127 to 15. Below: in units of 2**-24, ties to even.
    "half_bits": Helper(
        "fn half_bits(x: f32) -> u32 {\n"
        "  let u = bitcast<u32>(x) & 0x7fffffffu;\n"
        "  let sign = (bitcast<u32>(x) >> 16u) & 0x8000u;\n"
        "  if (u > 0x7f800000u) { return sign | 0x7e00u | ((u >> 13u) & 0x3ffu); }\n"
        "  if (u >= 0x47800000u) { return sign | 0x7c00u; }\n"
        "  if (u >= 0x38800000u) { return sign | ((u - 0x38000000u + 0xfffu + ((u >> 13u) & 1u)) >> 13u); }\n"
        "  let m = (u & 0x7fffffu) | 0x800000u;\n"
        "  let shift = min(126u - (u >> 23u), 25u);\n"
        "  return sign | ((m + (1u << (shift - 1u)) - 1u + ((m >> shift) & 1u)) >> shift);\n"
        "}"
    ),
    "half_value": Helper(
        "fn half_value(x: u32) -> f32 {\n"
        "  let sign = (x & 0x8000u) << 16u;\n"
        "  let u = (x & 0x7fffu) << 13u;\n"
        "  if (u >= 0x0f800000u) { return bitcast<f32>(sign | (u + 0x70000000u)); }\n"
        "  if (u >= 0x00800000u) { return bitcast<f32>(sign | (u + 0x38000000u)); }\n"
        "  return bitcast<f32>(sign | bitcast<u32>(f32(x & 0x3ffu)*5.9604645e-08f));\n"
        "}"
    ),
    "round_half": Helper("fn round_half(x: f32) -> f32 { return half_value(half_bits(x)); }", ("half_bits", "half_value")),
    "bfloat_bits": Helper(
        "fn bfloat_bits(x: f32) -> u32 {\n"
        "  let u = bitcast<u32>(x);\n"
        "  return select(u + 0x7fffu + ((u >> 16u) & 1u), u | 0x400000u, is_nan(x)) >> 16u;\n"
        "}",
        ("is_nan",),
    ),
    "bfloat_value": Helper("fn bfloat_value(x: u32) -> f32 { return bitcast<f32>(x << 16u); }"),
    "round_bfloat": Helper("fn round_bfloat(x: f32) -> f32 { return bfloat_value(bfloat_bits(x)); }", ("bfloat_bits", "bfloat_value")),
    # 2**x = 2**n * 2**f with f in [-1/2, 1/2]; in two factors, since 2**n alone may leave the type.
    "power_of_two": Helper("fn power_of_two(n: i32) -> f32 { return bitcast<f32>(u32(n + 127) << 23u); }"),
    "precise_exp2": Helper(
        "fn precise_exp2(x: f32) -> f32 {\n"
        "  if (is_nan(x)) { return x; }\n"
        "  if (x >= 128.0f) { return float_of(0x7f800000u); }\n"
        "  if (x < -150.0f) { return 0.0f; }\n"
        "  let n = i32(round(x));\n"
        "  let f = x - f32(n);\n"
        "  var p = 0.00015476299f*f + 0.001340027f;\n"
        "  p = p*f + 0.009618004f;\n"
        "  p = p*f + 0.05550328f;\n"
        "  p = p*f + 0.2402265f;\n"
        "  p = p*f + 0.6931472f;\n"
        "  return (p*f + 1.0f)*power_of_two(n/2)*power_of_two(n - n/2);\n"
        "}",
        ("is_nan", "float_of", "power_of_two"),
    ),
    # x = 2**e * (1 + t) with 1 + t from the root of 1/2 to that of 2; a subnormal is made normal by its bits.
    "precise_log2": Helper(
        "fn precise_log2(x: f32) -> f32 {\n"
        "  var u = bitcast<u32>(x);\n"
        "  if ((u & 0x7fffffffu) == 0u) { return float_of(0xff800000u); }\n"
        "  if (u > 0x80000000u) { return float_of(0x7fc00000u); }\n"
        "  if (u >= 0x7f800000u) { return x; }\n"
        "  var e = 0;\n"
        "  if (u < 0x00800000u) {\n"
        "    let shift = countLeadingZeros(u) - 8u;\n"
        "    u = u << shift;\n"
        "    e = -i32(shift);\n"
        "  }\n"
        "  let more = i32(u - 0x3f3504f3u) >> 23u;\n"
        "  e = e + more;\n"
        "  let t = bitcast<f32>(u - (u32(more) << 23u)) - 1.0f;\n"
        "  var p = -0.10996658f*t + 0.18620199f;\n"
        "  p = p*t - 0.19106941f;\n"
        "  p = p*t + 0.2045971f;\n"
        "  p = p*t - 0.23961626f;\n"
        "  p = p*t + 0.28856754f;\n"
        "  p = p*t - 0.3606967f;\n"
        "  p = p*t + 0.48089823f;\n"
        "  p = p*t - 0.72134733f;\n"
        "  p = p*t + 0.44269505f;\n"
        "  return f32(e) + (p*t + t);\n"
        "}",
        ("float_of",),
    ),
    "high_product": Helper(
        "fn high_product(a: u32, b: u32) -> u32 {\n"
        "  let low = (a & 0xffffu)*(b & 0xffffu);\n"
        "  let left = (a >> 16u)*(b & 0xffffu) + (low >> 16u);\n"
        "  let right = (a & 0xffffu)*(b >> 16u) + (left & 0xffffu);\n"
        "  return (a >> 16u)*(b >> 16u) + (left >> 16u) + (right >> 16u);\n"
        "}"
    ),
    # Payne and Hanek, "Radian reduction for trigonometric functions", ACM SIGNUM Newsletter 18(1), 1983: |x| * 2/pi modulo 4 as an integer
    # of 96 bits, two of them before the point, from those 96 bits of 2/pi that matter for this exponent.
    "precise_sin": Helper(
        "fn precise_sin(x: f32) -> f32 {\n"
        "  let u = bitcast<u32>(x) & 0x7fffffffu;\n"
        "  if (u >= 0x7f800000u) { return float_of(0x7fc00000u); }\n"
        "  if (u < 0x39800000u) { return x; }\n"
        "  var quadrant = 0u;\n"
        "  var r = abs(x);\n"
        "  if (u > 0x3f490fdbu) {\n"
        "    var bits = array<u32, 8>(\n"
        "      0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);\n"
        "    let m = (u & 0x7fffffu) | 0x800000u;\n"
        "    let start = (u >> 23u) - 120u;\n"
        "    let word = start >> 5u;\n"
        "    let left = start & 31u;\n"
        "    let right = 31u - left;\n"
        "    let w0 = (bits[word] << left) | ((bits[word + 1u] >> 1u) >> right);\n"
        "    let w1 = (bits[word + 1u] << left) | ((bits[word + 2u] >> 1u) >> right);\n"
        "    let w2 = (bits[word + 2u] << left) | ((bits[word + 3u] >> 1u) >> right);\n"
        "    let low = m*w2;\n"
        "    let middle = m*w1 + high_product(m, w2);\n"
        "    let top = m*w0 + high_product(m, w1) + select(0u, 1u, middle < m*w1);\n"
        "    quadrant = top >> 30u;\n"
        "    var high = (top << 2u) | (middle >> 30u);\n"
        "    var rest = (middle << 2u) | (low >> 30u);\n"
        "    let above = high >= 0x80000000u;\n"
        "    if (above) {\n"
        "      quadrant = quadrant + 1u;\n"
        "      high = ~high;\n"
        "      rest = ~rest;\n"
        "    }\n"
        "    let shift = countLeadingZeros(high);\n"
        "    let n = (high << shift) | ((rest >> 1u) >> (31u - shift));\n"
        "    r = f32(n)*bitcast<f32>((95u - shift) << 23u)*1.5707964f;\n"
        "    r = select(r, -r, above);\n"
        "  }\n"
        "  let z = r*r;\n"
        "  let sine = r + r*z*((-0.00019516978f*z + 0.008332176f)*z - 0.16666655f);\n"
        "  let cosine = 1.0f + z*(((2.4390043e-05f*z - 0.001388676f)*z + 0.041666623f)*z - 0.5f);\n"
        "  let size = select(sine, cosine, (quadrant & 1u) == 1u);\n"
        "  return select(size, -size, ((quadrant >> 1u) & 1u) != (bitcast<u32>(x) >> 31u));\n"
        "}",
        ("float_of", "high_product"),
    ),
}
