// HIP by the words of launch.h: the builtins of AMD's targets, and its device library's functions.
#pragma once
#include "launch.h"
#include "fragments.h"

#define __builtin_amdgcn_workgroup_id_x() blockIdx.x
#define __builtin_amdgcn_workgroup_id_y() blockIdx.y
#define __builtin_amdgcn_workgroup_id_z() blockIdx.z
#define __builtin_amdgcn_workitem_id_x() threadIdx.x
#define __builtin_amdgcn_workitem_id_y() threadIdx.y
#define __builtin_amdgcn_workitem_id_z() threadIdx.z
#define __builtin_amdgcn_workgroup_size_x() ((unsigned short)blockDim.x)
#define __builtin_amdgcn_workgroup_size_y() ((unsigned short)blockDim.y)
#define __builtin_amdgcn_workgroup_size_z() ((unsigned short)blockDim.z)
#define amdgpu_flat_work_group_size(least, most) unused
#define __builtin_amdgcn_fence(order, scope) ((void)0)
#define __builtin_amdgcn_s_barrier() wait_at(__LINE__)
#define __builtin_amdgcn_exp2f exp2f
#define __builtin_amdgcn_logf log2f
#define __builtin_amdgcn_sqrtf sqrtf
#define __builtin_amdgcn_rcpf(x) (1.0f / (x))
extern "C" {
float __ocml_sin_f32(float x) { return sinf(x); }
double __ocml_sin_f64(double x) { return sin(x); }
double __ocml_exp2_f64(double x) { return exp2(x); }
double __ocml_log2_f64(double x) { return log2(x); }
}

template <class T, int N> using Lanes = T __attribute__((ext_vector_type(N)));

static inline float element(_Float16 x) { return x; }
static inline float element(short x) { return same_bits<float>((unsigned int)(unsigned short)x << 16); }
static inline float element(float x) { return x; }
template <class T> static inline auto lane(const T& x, int k) { return x[k]; }
static inline float lane(float x, int k) { return x; }

// `every`: C and the result have an element of the instruction in each so many of theirs.
template <class Shape, class In, class Out> static Out product(In a, In b, Out c, int every, int place) {
    float x[16], y[16], z[8];
    double out[8];
    for (int k = 0; k < Shape::A; k++) x[k] = element(lane(a, k)), y[k] = element(lane(b, k));
    const int held = Shape::M * Shape::N / Shape::LANES;
    for (int k = 0; k < held; k++) z[k] = c[k * every];
    product<Shape>(x, y, z, out, place);
    for (int k = 0; k < held; k++) c[k * every] = out[k];
    return c;
}
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c) (product<Rdna3, Lanes<_Float16, 16>, Lanes<float, 8>>(a, b, c, 1, __LINE__))
#define __builtin_amdgcn_wmma_f16_16x16x16_f16_w32(a, b, c, high) \
    (product<Rdna3, Lanes<_Float16, 16>, Lanes<_Float16, 16>>(a, b, c, high ? 0 : 2, __LINE__))
#define __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, x, y, z) \
    (product<Cdna16, Lanes<_Float16, 4>, Lanes<float, 4>>(a, b, c, 1, __LINE__))
#define __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, c, x, y, z) \
    (product<Cdna16, Lanes<short, 4>, Lanes<float, 4>>(a, b, c, 1, __LINE__))
#define __builtin_amdgcn_mfma_f32_16x16x4f32(a, b, c, x, y, z) (product<Cdna4, float, Lanes<float, 4>>(a, b, c, 1, __LINE__))
