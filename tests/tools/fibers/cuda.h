// CUDA C++ by the words of launch.h; halves and bfloat16 are rounded here, bit by bit.
#pragma once
#include "launch.h"
#include "fragments.h"

#define __global__
#define __device__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __align__(n) __attribute__((aligned(n)))
#define __syncthreads() wait_at(__LINE__)

#define VECTORS(base, type) \
    struct __align__(sizeof(type) * 2 < 16 ? sizeof(type) * 2 : 16) base##2 { type x, y; }; \
    struct __align__(sizeof(type) * 4 < 16 ? sizeof(type) * 4 : 16) base##4 { type x, y, z, w; }; \
    static inline base##2 make_##base##2(type x, type y) { return {x, y}; } \
    static inline base##4 make_##base##4(type x, type y, type z, type w) { return {x, y, z, w}; }
VECTORS(char, signed char)
VECTORS(uchar, unsigned char)
VECTORS(short, short)
VECTORS(ushort, unsigned short)
VECTORS(int, int)
VECTORS(uint, unsigned int)
VECTORS(longlong, long long)
VECTORS(ulonglong, unsigned long long)
VECTORS(float, float)
VECTORS(double, double)

static inline unsigned int __float_as_uint(float x) { return same_bits<unsigned int>(x); }
static inline float __uint_as_float(unsigned int x) { return same_bits<float>(x); }
static inline float __int_as_float(int x) { return same_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return same_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return same_bits<double>(x); }
#define __log2f log2f
#define __sinf sinf

// A number rounded once to `digits` binary digits, exponents from `least` to `greatest`: the bits of that type, the sign aside.
static inline unsigned int rounded_bits(long double x, int digits, int least, int greatest) {
    int exponent;
    x = fabsl(x);
    if (x == 0) return 0;
    frexpl(x, &exponent);
    int ulp = exponent - digits;
    if (ulp < least - digits + 1) ulp = least - digits + 1;
    long long n = llrintl(ldexpl(x, -ulp));  // to nearest even
    if (n == 1LL << digits) n >>= 1, ulp++;
    int top = ulp + digits - 1;
    if (top > greatest) return (unsigned int)(greatest - least + 2) << (digits - 1);
    return n < 1LL << (digits - 1) ? (unsigned int)n : ((unsigned int)(top - least + 1) << (digits - 1)) | (unsigned int)(n & ((1LL << (digits - 1)) - 1));
}

struct half {
    unsigned short bits;
    half() = default;
    template <class T> half(T x) {
        long double wide = (long double)x;
        bool negative = std::signbit(wide);
        unsigned int magnitude = std::isnan(wide) ? 0x7fff : std::isinf(wide) ? 0x7c00 : rounded_bits(wide, 11, -14, 15);
        bits = (unsigned short)(magnitude | (negative ? 0x8000 : 0));
    }
    operator float() const {
        int exponent = bits >> 10 & 31, fraction = bits & 1023;
        float magnitude = exponent == 31 ? (fraction ? NAN : INFINITY) : exponent ? ldexpf(1024 + fraction, exponent - 25) : ldexpf(fraction, -24);
        return bits & 0x8000 ? -magnitude : magnitude;
    }
};
static inline half operator-(half x) { half y = x; y.bits ^= 0x8000; return y; }
static inline half operator+(half x, half y) { return half((float)x + (float)y); }
static inline half operator-(half x, half y) { return half((float)x - (float)y); }
static inline half operator*(half x, half y) { return half((float)x * (float)y); }
static inline half operator/(half x, half y) { return half((float)x / (float)y); }
static inline bool operator<(half x, half y) { return (float)x < (float)y; }
static inline bool operator>(half x, half y) { return (float)x > (float)y; }
static inline bool operator==(half x, half y) { return (float)x == (float)y; }
static inline bool operator!=(half x, half y) { return (float)x != (float)y; }
struct __align__(4) half2 { half x, y; };
static inline half2 make_half2(half x, half y) { return {x, y}; }
static inline unsigned short __half_as_ushort(half x) { return x.bits; }
static inline half __ushort_as_half(unsigned short x) { half y; y.bits = x; return y; }
static inline half __float2half_rn(float x) { return half(x); }
static inline float __half2float(half x) { return x; }

struct __nv_bfloat16 { unsigned short bits; };
static inline float __bfloat162float(__nv_bfloat16 x) { return __uint_as_float((unsigned int)x.bits << 16); }
static inline __nv_bfloat16 __float2bfloat16_rn(float x) {
    unsigned int magnitude = std::isnan(x) ? 0x7fff : std::isinf(x) ? 0x7f80 : rounded_bits(x, 8, -126, 127);
    return {(unsigned short)(magnitude | (std::signbit(x) ? 0x8000 : 0))};
}
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }

// ---- matrix instructions ---------------------------------------------------------------------------------------------------

static inline float element(half x) { return x; }
static inline float element(unsigned short x) { return __uint_as_float((unsigned int)x << 16); }
static inline float element(float x) { return x; }

// Fragments come as structs of elements, halves perhaps as their bits.
template <class Shape, class Element, class A, class B> static float4 product(const A& a, const B& b, float4 c, int place) {
    Element words[16];
    float x[16], y[16], z[4] = {c.x, c.y, c.z, c.w};
    double out[4];
    memcpy(words, &a, sizeof a);
    for (size_t k = 0; k < sizeof(A) / sizeof(Element); k++) x[k] = element(words[k]);
    memcpy(words, &b, sizeof b);
    for (size_t k = 0; k < sizeof(B) / sizeof(Element); k++) y[k] = element(words[k]);
    product<Shape>(x, y, z, out, place);
    return {(float)out[0], (float)out[1], (float)out[2], (float)out[3]};
}
#define mma_m16n8k16_f16(a, b, c) (product<M16N8K16, half>(a, b, c, __LINE__))
#define mma_m16n8k16_bf16(a, b, c) (product<M16N8K16, unsigned short>(a, b, c, __LINE__))
#define mma_m16n8k8_f16(a, b, c) (product<M16N8K8, half>(a, b, c, __LINE__))
// What it shows of tf32 is where elements lie: their significands stay whole.
#define mma_m16n8k8_tf32(a, b, c) (product<M16N8K8TF32, float>(a, b, c, __LINE__))
