"""Whole programs, as people read them."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from textwrap import dedent

from core.dtypes import BFLOAT16, FLOAT16, FLOAT32, INDEX, INT32, UINT8, VOID
from core.index import add, all_of, floordiv, less, mod, number, scale, total
from core.ir.op import Op
from core.ir.value import Value, alu, constant, make
from core.targets import Target
from tests.core.render.building import (
    OPENCL,
    C,
    as_type,
    below,
    lane,
    load,
    loop,
    param,
    point,
    program,
    register,
    store,
    updated,
    variable,
    vector,
)  # fmt: skip

D0, D1, D2 = param(0, FLOAT32, "write"), param(1, FLOAT32, "read"), param(2, FLOAT32, "read")


def _is(text: str) -> str:
    return dedent(text).lstrip("\n")


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def _launched(kind: str, dimension: int, extent: int) -> Value:
    return make(Op.SPECIAL, INDEX, (number(extent),), (kind, dimension), 1, (0, extent - 1))


def _masked_sum(target: Target) -> str:
    i, r = point(target, 8), loop(3)
    acc = register(FLOAT32, 0, r)
    x = load(D1, add(i, r), gate=below(add(i, r), 6))
    return program(target, (store(D0, i, updated(acc, alu(Op.ADD, x, acc))),), (D0, D1), "r_8_3").source


def test_a_masked_sum_in_opencl() -> None:
    expected = """
        __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void r_8_3(__global float* restrict d0, __global const float* restrict d1) {
          int g0 = get_group_id(0);
          float a0 = 0.0f;
          for (int r0 = 0; r0 < 3; r0++) {
            a0 = ((g0 + r0 < 6) ? d1[g0 + r0] : 0.0f) + a0;
          }
          d0[g0] = a0;
        }
        """

    assert _is(expected) == _masked_sum(OPENCL)


def test_a_masked_sum_in_c() -> None:
    expected = """
        void r_8_3(float* restrict d0, const float* restrict d1) {
          for (int r0 = 0; r0 < 8; r0++) {
            float a0 = 0.0f;
            for (int r1 = 0; r1 < 3; r1++) {
              a0 = ((r0 + r1 < 6) ? d1[r0 + r1] : 0.0f) + a0;
            }
            d0[r0] = a0;
          }
        }
        """

    assert _is(expected) == _masked_sum(C)


def test_conditions_are_turned_so_that_nothing_is_subtracted() -> None:
    i = point(OPENCL, 8)
    gate = all_of((below(i, 7), less(number(1), i)))
    text = program(OPENCL, (store(D0, i, load(D1, add(i, number(-2)), gate=gate)),), (D0, D1)).source

    assert "  d0[g0] = (g0 > 1 && g0 < 7) ? d1[g0 - 2] : 0.0f;\n" in text


def test_a_register_tiled_product() -> None:
    g1, g0, r = _launched("group", 0, 4), _launched("group", 1, 4), loop(16)
    x = [load(D1, total((scale(g0, 32), r, number(16 * row)))) for row in range(2)]
    y = load(D2, total((scale(r, 8), scale(g1, 2))), lanes=2)
    sums = []
    for row in range(2):
        for column in range(2):
            acc = register(FLOAT32, 0, r, number_=2 * row + column)
            sums.append(updated(acc, alu(Op.ADD, alu(Op.MUL, x[row], lane(y, column)), acc)))
    stores = [store(D0, total((scale(g0, 16), scale(g1, 2), number(8 * row))), vector(*sums[2 * row : 2 * row + 2])) for row in range(2)]
    text = program(OPENCL, tuple(stores), (D0, D1, D2), "r_4_4_16_2_2").source

    expected = """
          for (int r0 = 0; r0 < 16; r0++) {
            float v0 = d1[g0*32 + r0];
            float2 v1 = *((__global const float2*)(d2 + (r0*8 + g1*2)));
            a0 = v0*v1.x + a0;
            a1 = v0*v1.y + a1;
            float v2 = d1[g0*32 + r0 + 16];
            a2 = v1.x*v2 + a2;
            a3 = v1.y*v2 + a3;
          }
          *((__global float2*)(d0 + (g0*16 + g1*2))) = (float2)(a0, a1);
          *((__global float2*)(d0 + (g0*16 + g1*2 + 8))) = (float2)(a2, a3);
        }
        """
    assert _lines(expected) == _lines(text)[7:]


def test_a_maximum_names_its_operands() -> None:
    i, r = point(C, 3), loop(13)
    acc = register(FLOAT32, -math.inf, r)
    text = program(C, (store(D0, i, updated(acc, alu(Op.MAX, load(D1, add(scale(i, 13), r)), acc))),), (D0, D1), "r_3_13").source

    expected = """
        #include <math.h>

        void r_3_13(float* restrict d0, const float* restrict d1) {
          for (int r0 = 0; r0 < 3; r0++) {
            float a0 = -INFINITY;
            for (int r1 = 0; r1 < 13; r1++) {
              float v0 = d1[r0*13 + r1];
              a0 = (v0 > a0 || v0 != v0) ? v0 : a0;
            }
            d0[r0] = a0;
          }
        }
        """
    assert _is(expected) == text


def test_a_gather_computes_its_address_so_that_it_may_wrap() -> None:
    ids, table = param(1, INT32, "read"), D2
    g1, g0 = _launched("group", 0, 16), _launched("group", 1, 6)
    index = make(Op.INDEX_OF, INDEX, (load(ids, g0),), None, 1, (-(2**31), 2**31 - 1))
    gate = all_of((less(number(-1), index), below(index, 100)))
    x = load(table, total((scale(index, 64), scale(g1, 4))), lanes=4, gate=gate)
    text = program(OPENCL, (store(D0, total((scale(g0, 64), scale(g1, 4))), x),), (D0, ids, table), "C_6_16_4").source

    assert "  float4 v1 = (float4)(0.0f);\n" in text
    assert ") v1 = *((__global const float4*)(d2 + (int)((uint)v0*64 + " in text
    assert "v0 >= 0" in text


def test_a_quotient_and_its_remainder_stand_in_the_address() -> None:
    i = point(OPENCL, 120)
    text = program(
        OPENCL, (store(D0, scale(i, 2), load(D1, total((scale(floordiv(i, 2), 8), scale(mod(i, 2), 2))), lanes=2)),), (D0, D1)
    ).source

    assert "  *((__global float2*)(d0 + g0*2)) = *((__global const float2*)(d1 + (g0/2*8 + g0%2*2)));\n" in text


def test_an_image_is_read_and_written_by_texels() -> None:
    out, image = param(0, FLOAT32, "write", (4, 8, 4)), param(1, FLOAT32, "read", (4, 8, 4))
    i = point(OPENCL, 32)
    x = load(image, mod(i, 8), floordiv(i, 8), lanes=4)
    doubled = vector(*(alu(Op.MUL, lane(x, k), constant(2.0, FLOAT32)) for k in range(4)))
    text = program(OPENCL, (store(out, mod(i, 8), floordiv(i, 8), doubled),), (out, image), "E_32_4").source

    expected = """
        __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void E_32_4(write_only image2d_t d0, read_only image2d_t d1) {
          const sampler_t smp = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
          int g0 = get_group_id(0);
          int i0 = g0%8;
          int i1 = g0/8;
          float4 v0 = read_imagef(d1, smp, (int2)(i0, i1));
          write_imagef(d0, (int2)(i0, i1), (float4)(v0.x*2.0f, v0.y*2.0f, v0.z*2.0f, v0.w*2.0f));
        }
        """
    assert _is(expected) == text


def test_a_grouped_sum_shares_its_parts() -> None:
    group, member, r, t = _launched("group", 0, 5), _launched("local", 0, 4), loop(2), loop(4, 1)
    partial = register(FLOAT32, 0, r)
    part = updated(partial, alu(Op.ADD, load(D1, total((scale(group, 8), scale(r, 4), member))), partial))
    shared = make(Op.SHARED, FLOAT32, (), (0, 4))
    barrier = make(Op.BARRIER, VOID, (store(shared, member, part),))
    whole = register(FLOAT32, 0, t, number_=1)
    read = make(Op.LOAD, FLOAT32, (shared, t, barrier), (1, False))
    stores = (store(D0, group, updated(whole, alu(Op.ADD, read, whole)), gate=below(member, 1)),)
    text = program(OPENCL, stores, (D0, D1), "r_5_4_2", local_size=(4, 1, 1)).source

    expected = """
        HEAD {
          __local float s0[4];
          int g0 = get_group_id(0);
          int l0 = get_local_id(0);
          float a0 = 0.0f;
          for (int r0 = 0; r0 < 2; r0++) {
            a0 = d1[g0*8 + r0*4 + l0] + a0;
          }
          s0[l0] = a0;
          barrier(CLK_LOCAL_MEM_FENCE);
          float a1 = 0.0f;
          for (int r1 = 0; r1 < 4; r1++) {
            a1 = s0[r1] + a1;
          }
          if (l0 < 1) d0[g0] = a1;
        }
        """
    head = "__kernel __attribute__((reqd_work_group_size(4, 1, 1))) void r_5_4_2"
    args = "(__global float* restrict d0, __global const float* restrict d1)"
    assert _is(expected).replace("HEAD", head + args) == text


def test_a_variable_keeps_its_name_where_that_means_nothing() -> None:
    n, taken = variable("n", 1, 64), variable("int", 0, 9)
    i = point(C, 4)
    r = make(Op.RANGE, INDEX, (n,), (0, "reduce"), 1, (0, 63))
    acc = register(FLOAT32, 0, r)
    where = make(Op.PRODUCT, INDEX, (i, n), None, 1, (0, 192))
    value = updated(acc, alu(Op.ADD, load(D1, total((where, r, taken))), acc))
    text = program(C, (store(D0, i, value),), (D0, D1), "r_4_n", variables=(("int", 0, 9), ("n", 1, 64))).source

    assert "void r_4_n(float* restrict d0, const float* restrict d1, const int arg_int, const int n) {" in text
    assert "for (int r1 = 0; r1 < n; r1++) {" in text
    assert "arg_int" in text.splitlines()[4]


def test_halves_are_converted_where_they_are_read_and_written() -> None:
    d0, d1 = param(0, FLOAT16, "write"), param(1, FLOAT16, "read")
    i = point(OPENCL, 8)
    x = load(d1, i)
    text = program(OPENCL, (store(d0, i, alu(Op.MUL, alu(Op.ADD, x, x), x)),), (d0, d1), "E_8").source

    assert "void E_8(__global half* restrict d0, __global const half* restrict d1) {" in text
    assert "  float v0 = vload_half(g0, d1);\n  vstore_half_rte(v0*round_half(v0 + v0), g0, d0);\n" in text


def test_halves_the_device_has_need_their_extension() -> None:
    d0, d1 = param(0, FLOAT16, "write"), param(1, FLOAT16, "read")
    i = point(OPENCL, 8)
    x = load(d1, i)
    text = program(OPENCL, (store(d0, i, alu(Op.SIN, alu(Op.ADD, x, constant(1.5, FLOAT16)))),), (d0, d1), "E_8", float16=True).source

    assert text.startswith("#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n")
    assert "  d0[g0] = (half)sin((float)(half)(d1[g0] + (half)1.5f));\n" in text


def test_what_is_only_moved_is_not_converted() -> None:
    d0, d1 = param(0, BFLOAT16, "write"), param(1, BFLOAT16, "read")
    i = point(C, 8)
    text = program(C, (store(d0, i, load(d1, add(number(7), scale(i, -1)))),), (d0, d1), "C_8").source

    assert "    d0[r0] = d1[7 - r0];\n" in text
    assert "bfloat" not in text


def test_small_integers_are_cast_back() -> None:
    d0, d1 = param(0, UINT8, "write"), param(1, UINT8, "read")
    i = point(C, 8)
    total_ = alu(Op.ADD, load(d1, i), constant(250, UINT8))
    text = program(C, (store(d0, i, alu(Op.IDIV, total_, constant(3, UINT8))),), (d0, d1)).source

    assert "    d0[r0] = (uint8_t)((uint8_t)(d1[r0] + 250)/3);\n" in text


def test_signed_sums_are_taken_unsigned_and_brought_back_once() -> None:
    d0, d1 = param(0, INT32, "write"), param(1, INT32, "read")
    i = point(C, 8)
    x = load(d1, i)
    value = alu(Op.ADD, alu(Op.MUL, x, constant(3, INT32)), alu(Op.NEG, alu(Op.ADD, x, constant(5, INT32))))
    text = program(C, (store(d0, i, value),), (d0, d1)).source

    assert "    d0[r0] = (int32_t)((uint32_t)v0*3 - ((uint32_t)v0 + 5));\n" in text


def test_a_quotient_of_unknown_numbers_has_a_safe_divisor() -> None:
    d0, d1, d2 = (param(n, INT32, how) for n, how in enumerate(("write", "read", "read")))
    i = point(C, 8)
    text = program(C, (store(d0, i, alu(Op.IDIV, load(d1, i), load(d2, i))),), (d0, d1, d2)).source

    expected = """
            int32_t v0 = d2[r0];
            int32_t v1 = (v0 != 0) ? v0 : 1;
            _Bool c0 = v1 != -1;
            int32_t v2 = d1[r0];
            d0[r0] = c0 ? v2/(c0 ? v1 : 1) : (int32_t)(-(uint32_t)v2);
        """
    assert _lines(expected) == _lines(text)[4:9]


def test_a_float_becomes_an_integer_only_where_one_is_near() -> None:
    d0, d1 = param(0, INT32, "write"), param(1, FLOAT32, "read")
    i = point(C, 8)
    text = program(C, (store(d0, i, as_type(Op.CAST, load(d1, i), INT32)),), (d0, d1)).source

    chosen = re.search(r"\(int32_t\)\(\((.*) && (.*)\) \? v0 : 0\.0f\);", text)
    assert chosen is not None
    assert {"v0 > -2147483904.0f", "v0 < 2147483648.0f"} == set(chosen.groups())


def test_comments_tell_the_nodes_a_line_stems_from() -> None:
    i = point(OPENCL, 8)
    x, y = load(D1, i), load(D2, i)
    product = alu(Op.MUL, x, y)
    twice = alu(Op.ADD, product, product)
    stored = store(D0, i, twice)
    built = program(OPENCL, (stored,), (D0, D1, D2), "E_8")
    by_op = {v.op: v for v in built.listing.body}
    nodes = {by_op[Op.MUL]: (2,), by_op[Op.ADD]: (3, 7), by_op[Op.STORE]: (4,)}
    nodes |= {v: (0 if v.src[0] is D1 else 1,) for v in built.listing.body if v.op is Op.LOAD}
    noted = OPENCL.render(replace(built.listing, provenance=nodes), OPENCL.defaults)

    assert re.search(r"  float v0 = d\d\[g0\]\*d\d\[g0\]; /\* 0 1 2 \*/\n  d0\[g0\] = v0 \+ v0; /\* 3 4 7 \*/\n", noted)
    assert built.source == "\n".join(line.split(" /*")[0] for line in noted.split("\n"))


def test_fast_math_takes_the_native_functions() -> None:
    i = point(OPENCL, 8)
    x = load(D1, i)
    value = alu(Op.MAX, alu(Op.SIN, x), alu(Op.RECIP, alu(Op.EXP2, x)))
    text = program(OPENCL, (store(D0, i, value),), (D0, D1), fast_math=True).source

    assert "native_sin(v0)" in text
    assert "native_recip(native_exp2(v0))" in text
    assert "fmax(" in text


def test_a_group_size_the_runtime_chooses_is_not_said() -> None:
    i = make(Op.SPECIAL, INDEX, (number(8),), ("global", 0), 1, (0, 7))
    built = program(OPENCL, (store(D0, i, load(D1, i)),), (D0, D1), "C_8")
    text = OPENCL.render(replace(built.listing, local_size=None), OPENCL.defaults)

    assert text.startswith("__kernel void C_8(__global float* restrict d0, ")
    assert "  int g0 = get_global_id(0);\n" in text


def test_lanes_at_any_address_go_through_a_packed_type() -> None:
    out, a = param(0, FLOAT32, "write", alignment=4), param(1, FLOAT32, "read", alignment=4)
    i = scale(point(OPENCL, 4), 4)
    text = program(OPENCL, (store(out, add(i, number(1)), load(a, i, lanes=4)),), (out, a)).source

    assert "struct __attribute__((packed)) any_float4 { float4 v; };\n" in text
    assert "  ((__global struct any_float4*)(d0 + (g0*4 + 1)))->v = ((__global const struct any_float4*)(d1 + g0*4))->v;\n" in text


def test_a_kernel_without_stores_is_still_a_kernel() -> None:
    assert "void k(float* restrict d0) {\n}\n" == program(C, (), (D0,)).source


def test_wide_indices_are_wide_from_the_start() -> None:
    i = point(OPENCL, 2**31 - 1)
    text = program(OPENCL, (store(D0, scale(i, 3), load(D1, i)),), (D0, D1)).source

    assert "  d0[(long)g0*3] = d1[g0];\n" in text
