"""OpenCL written by hand for the named workloads: what somebody who knows a CPU device would write in an hour, to measure programs beside.

Each text is one kernel `k` whose arguments are the output and the inputs; `items` are its work-items, in groups of `group`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bench.workloads import WORKLOADS, Workload


@dataclass(frozen=True, slots=True)
class Written:
    source: str
    items: tuple[int, ...]
    group: tuple[int, ...]


HEAD = """
typedef struct __attribute__((packed)) { float8 v; } any8;
#define AT(p) (((const __global any8*)(p))->v)
#define PUT(p, x) ((__global any8*)(p))->v = (x)
#define SUM(v) (v.s0 + v.s1 + v.s2 + v.s3 + v.s4 + v.s5 + v.s6 + v.s7)
#define MOST(v) fmax(fmax(fmax(v.s0, v.s1), fmax(v.s2, v.s3)), fmax(fmax(v.s4, v.s5), fmax(v.s6, v.s7)))
#define EACH(i, n) _Pragma("unroll") for (int i = 0; i < n; i++)
#define OUT __global float* restrict
#define IN const __global float* restrict
"""
MATMUL = """
__kernel void k(OUT c, IN a, IN b) {
  int x = get_global_id(0)*16, y = get_global_id(1)*8;
  float8 s[8][2];
  EACH(i, 8) s[i][0] = s[i][1] = (float8)(0.0f);
  for (int j = 0; j < %(n)d; j++) {
    float8 left = AT(b + j*%(n)d + x), right = AT(b + j*%(n)d + x + 8);
    EACH(i, 8) {
      float f = a[(y + i)*%(n)d + j];
      s[i][0] = s[i][0] + f*left;
      s[i][1] = s[i][1] + f*right;
    }
  }
  EACH(i, 8) { PUT(c + (y + i)*%(n)d + x, s[i][0]); PUT(c + (y + i)*%(n)d + x + 8, s[i][1]); }
}
"""
MATVEC = """
__kernel void k(OUT y, IN a, IN x) {
  int r = get_global_id(0)*4;
  float8 s[4];
  EACH(i, 4) s[i] = (float8)(0.0f);
  for (int j = 0; j < %(m)d; j += 8) {
    float8 v = AT(x + j);
    EACH(i, 4) s[i] = s[i] + v*AT(a + (r + i)*%(m)d + j);
  }
  EACH(i, 4) y[r + i] = SUM(s[i]);
}
"""
CONVOLUTION = """
__kernel void k(OUT o, IN x, IN w) {
  int c = get_global_id(0)*4, y = get_global_id(1);
  float row[%(n)d + 2], sum[4][%(n)d];
  EACH(i, 4) for (int j = 0; j < %(n)d; j++) sum[i][j] = 0.0f;
  row[0] = row[%(n)d + 1] = 0.0f;
  for (int d = 0; d < %(c)d; d++)
    for (int u = 0; u < 3; u++) {
      if (y + u < 1 || y + u > %(n)d) continue;
      for (int j = 0; j < %(n)d; j++) row[j + 1] = x[d*%(n)d*%(n)d + (y + u - 1)*%(n)d + j];
      EACH(i, 4) {
        IN f = w + (c + i)*%(c)d*9 + d*9 + u*3;
        float f0 = f[0], f1 = f[1], f2 = f[2];
        for (int j = 0; j < %(n)d; j++) sum[i][j] += f0*row[j] + f1*row[j + 1] + f2*row[j + 2];
      }
    }
  EACH(i, 4) for (int j = 0; j < %(n)d; j++) o[(c + i)*%(n)d*%(n)d + y*%(n)d + j] = sum[i][j];
}
"""
DEPTHWISE = """
__kernel void k(OUT o, IN x, IN w) {
  int c = get_global_id(0), y = get_global_id(1);
  float row[%(n)d + 2], sum[%(n)d/2];
  for (int j = 0; j < %(n)d/2; j++) sum[j] = 0.0f;
  row[%(n)d] = row[%(n)d + 1] = 0.0f;
  for (int u = 0; u < 3 && y*2 + u < %(n)d; u++) {
    for (int j = 0; j < %(n)d; j++) row[j] = x[c*%(n)d*%(n)d + (y*2 + u)*%(n)d + j];
    float f0 = w[c*9 + u*3], f1 = w[c*9 + u*3 + 1], f2 = w[c*9 + u*3 + 2];
    for (int j = 0; j < %(n)d/2; j++) sum[j] += f0*row[2*j] + f1*row[2*j + 1] + f2*row[2*j + 2];
  }
  for (int j = 0; j < %(n)d/2; j++) o[c*%(n)d*%(n)d/4 + y*%(n)d/2 + j] = sum[j];
}
"""
ROW = """
__kernel void k(OUT o, IN x) {
  x += get_global_id(0)*%(m)d; o += get_global_id(0)*%(m)d;
  %(body)s
}
"""
MAXIMUM = "float8 m = AT(x); for (int i = 8; i < %(m)d; i += 8) m = fmax(m, AT(x + i)); float most = MOST(m); float8 s = (float8)(0.0f);"
SOFTMAX = (
    MAXIMUM
    + """
  for (int i = 0; i < %(m)d; i += 8) { float8 e = exp(AT(x + i) - most); s += e; PUT(o + i, e); }
  float part = 1.0f/SUM(s);
  for (int i = 0; i < %(m)d; i += 8) PUT(o + i, AT(o + i)*part);"""
)
LOG_SOFTMAX = (
    MAXIMUM
    + """
  for (int i = 0; i < %(m)d; i += 8) s += exp(AT(x + i) - most);
  float less = most + log(SUM(s));
  for (int i = 0; i < %(m)d; i += 8) PUT(o + i, AT(x + i) - less);"""
)
LAYERNORM = """float8 s = (float8)(0.0f); for (int i = 0; i < %(m)d; i += 8) s += AT(x + i); float mean = SUM(s)/%(m)d;
  s = (float8)(0.0f); for (int i = 0; i < %(m)d; i += 8) { float8 d = AT(x + i) - mean; s = s + d*d; }
  float f = rsqrt(SUM(s)/%(m)d + 1e-5f);
  for (int i = 0; i < %(m)d; i += 8) PUT(o + i, (AT(x + i) - mean)*f);"""
RMSNORM = """float8 s = (float8)(0.0f); for (int i = 0; i < %(m)d; i += 8) { float8 d = AT(x + i); s = s + d*d; }
  float f = rsqrt(SUM(s)/%(m)d + 1e-5f);
  for (int i = 0; i < %(m)d; i += 8) PUT(o + i, AT(x + i)*f);"""
ATTENTION = """
__kernel void k(OUT o, IN q, IN keys, IN values) {
  q += get_global_id(0)*%(d)d; o += get_global_id(0)*%(d)d;
  float score[%(n)d], most = -INFINITY, all = 0.0f;
  for (int j = 0; j < %(n)d; j++) {
    float8 s = (float8)(0.0f);
    for (int i = 0; i < %(d)d; i += 8) s = s + AT(q + i)*AT(keys + j*%(d)d + i);
    score[j] = SUM(s);
    most = fmax(most, score[j]);
  }
  float8 sum[%(d)d/8];
  EACH(i, %(d)d/8) sum[i] = (float8)(0.0f);
  for (int j = 0; j < %(n)d; j += 8) {
    float8 e = exp(vload8(0, score + j) - most);
    all += SUM(e);
    vstore8(e, 0, score + j);
  }
  for (int j = 0; j < %(n)d; j++)
    EACH(i, %(d)d/8) sum[i] = sum[i] + score[j]*AT(values + j*%(d)d + i*8);
  EACH(i, %(d)d/8) PUT(o + i*8, sum[i]/all);
}
"""
ROW_SUM = """
__kernel void k(OUT o, IN x) {
  x += get_global_id(0)*%(m)d;
  float8 a = (float8)(0.0f), b = a, c = a, d = a;
  for (int i = 0; i < %(m)d; i += 32) { a += AT(x + i); b += AT(x + i + 8); c += AT(x + i + 16); d += AT(x + i + 24); }
  a += b + c + d;
  o[get_global_id(0)] = SUM(a);
}
"""
COLUMN_SUM = """
__kernel void k(OUT o, IN x) {
  x += get_global_id(0)*64; o += get_global_id(0)*64;
  float8 s[8];
  EACH(i, 8) s[i] = (float8)(0.0f);
  for (int j = 0; j < %(n)d; j++) EACH(i, 8) s[i] += AT(x + j*%(m)d + i*8);
  EACH(i, 8) PUT(o + i*8, s[i]);
}
"""
ELEMENTWISE = """
__kernel void k(OUT o, IN x, IN y, IN z) {
  int i = get_global_id(0)*8;
  float8 v = AT(x + i);
  PUT(o + i, fmax(v*AT(y + i) + AT(z + i), (float8)(0.0f))*2.0f - v);
}
"""
TRANSPOSE = """
__kernel void k(OUT o, IN x) {
  int r = get_global_id(0)*16, c = get_global_id(1)*16;
  float t[16][16];
  EACH(i, 16) EACH(j, 16) t[i][j] = x[(r + i)*%(n)d + c + j];
  EACH(j, 16) EACH(i, 16) o[(c + j)*%(n)d + r + i] = t[i][j];
}
"""
GATHER = """
__kernel void k(OUT o, IN v, const __global int* restrict n) {
  int r = get_global_id(0), f = n[r];
  for (int i = 0; i < %(m)d; i += 8) PUT(o + r*%(m)d + i, AT(v + f*%(m)d + i));
}
"""
CUMULATIVE = "float s = 0.0f; for (int i = 0; i < %(m)d; i++) { s += x[i]; o[i] = s; }"


def handwritten(work: Workload) -> Written:
    """The text for a workload, with its sizes in it."""
    return _WRITTEN[work.name]


def _text(source: str, **sizes: int) -> str:
    return HEAD + source % sizes


def _row(body: str, work: Workload) -> Written:
    rows, columns = work.output
    return Written(HEAD + ROW % {"m": columns, "body": body % {"m": columns}}, (rows,), (1,))


def _all() -> dict[str, Written]:
    work = {re.sub(r" \d.*", "", w.name): w for w in WORKLOADS}
    n = work["matmul"].output[0]
    rows, columns = work["matvec"].inputs[0]
    channels, size, _ = work["convolution"].output
    deep, wide, _ = work["depthwise"].inputs[0]
    length, width = work["attention"].output
    square = work["transpose"].output[0]
    picked, row = work["gather"].output
    tall, broad = work["column sum"].inputs[0]
    many, long = work["row sum"].inputs[0]
    found = {
        "matmul": Written(_text(MATMUL, n=n), (n // 16, n // 8), (1, 1)),
        "matvec": Written(_text(MATVEC, m=columns), (rows // 4,), (1,)),
        "convolution": Written(_text(CONVOLUTION, c=channels, n=size), (channels // 4, size), (1, 1)),
        "depthwise": Written(_text(DEPTHWISE, n=wide), (deep, wide // 2), (1, 1)),
        "softmax": _row(SOFTMAX, work["softmax"]),
        "log softmax": _row(LOG_SOFTMAX, work["log softmax"]),
        "layernorm": _row(LAYERNORM, work["layernorm"]),
        "rmsnorm": _row(RMSNORM, work["rmsnorm"]),
        "attention": Written(_text(ATTENTION, n=length, d=width), (length,), (1,)),
        "row sum": Written(_text(ROW_SUM, m=long), (many,), (1,)),
        "column sum": Written(_text(COLUMN_SUM, n=tall, m=broad), (broad // 64,), (1,)),
        "sum": Written(_text(ROW_SUM, m=work["sum"].inputs[0][1]), (1,), (1,)),
        "elementwise": Written(HEAD + ELEMENTWISE, (work["elementwise"].output[0] // 8,), (512,)),
        "transpose": Written(_text(TRANSPOSE, n=square), (square // 16, square // 16), (1, 1)),
        "gather": Written(_text(GATHER, m=row), (picked,), (1,)),
        "cumulative sum": _row(CUMULATIVE, work["cumulative sum"]),
    }
    return {work[name].name: written for name, written in found.items()}


_WRITTEN = _all()
