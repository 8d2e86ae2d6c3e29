// CUDA C++ on a CPU, for tests: kernels of one block after another, every thread of a block a fiber that yields at barriers and matrix
// instructions. Its fragments are written down from NVIDIA's PTX ISA ("Matrix Fragments for mma.m16n8k8", "... mma.m16n8k16") by formulas
// of their own: a table of the compiler's is not asked.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>
#include <ucontext.h>

#define __global__
#define __device__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __align__(n) __attribute__((aligned(n)))

struct uint3 { unsigned int x, y, z; };
static uint3 threadIdx, blockIdx, blockDim, gridDim;

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

template <class To, class From> static inline To same_bits(From x) {
    static_assert(sizeof(To) == sizeof(From), "of one size");
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}
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

// ---- threads ---------------------------------------------------------------------------------------------------------------

enum Problem { FINE, DIVERGED };
static const size_t STACK = 256 << 10;
static const unsigned int WARP = 32;

struct Fragments { float a[2][8], b[2][4]; };  // of two instructions: a lane may be one ahead of the others

struct Thread {
    ucontext_t context;
    std::vector<char> stack;
    uint3 index;
    int place;  // of the barrier or instruction it waits at; 0 once it has ended
    int turn;
    Fragments held;
};
static std::vector<Thread> threads;
static ucontext_t scheduler;
static unsigned int current;
static void (*body)(void**);
static void** arguments;

static void wait_at(int place) {
    Thread& mine = threads[current];
    mine.place = place;
    swapcontext(&mine.context, &scheduler);
}
#define __syncthreads() wait_at(__LINE__)

static void thread_main() {
    body(arguments);
    threads[current].place = 0;
    swapcontext(&threads[current].context, &scheduler);
}

static Problem run_block(unsigned int count) {
    for (unsigned int t = 0; t < count; t++) {
        Thread& thread = threads[t];
        getcontext(&thread.context);
        thread.stack.resize(STACK);
        thread.context.uc_stack.ss_sp = thread.stack.data();
        thread.context.uc_stack.ss_size = STACK;
        thread.context.uc_link = nullptr;
        thread.index = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
        thread.turn = 0;
        makecontext(&thread.context, thread_main, 0);
    }
    for (;;) {
        for (current = 0; current < count; current++) {
            threadIdx = threads[current].index;
            swapcontext(&scheduler, &threads[current].context);
        }
        for (unsigned int t = 0; t < count; t++)
            if (threads[t].place != threads[0].place) return DIVERGED;
        if (!threads[0].place) return FINE;
    }
}

template <class... P, size_t... I> static void called(void (*f)(P...), void** a, std::index_sequence<I...>) { f(*(P*)a[I]...); }
template <class... P> static void called(void (*f)(P...), void** a) { called(f, a, std::index_sequence_for<P...>()); }

// A launch; arguments as cuLaunchKernel takes them. together: its threads wait for each other somewhere.
static Problem launch(void (*kernel)(void**), void** a, const unsigned int* grid, const unsigned int* block, bool together) {
    unsigned int count = block[0] * block[1] * block[2];
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    body = kernel, arguments = a;
    if (together && threads.size() < count) threads.resize(count);
    for (unsigned int z = 0; z < grid[2]; z++)
        for (unsigned int y = 0; y < grid[1]; y++)
            for (unsigned int x = 0; x < grid[0]; x++) {
                blockIdx = {x, y, z};
                if (together) {
                    Problem problem = run_block(count);
                    if (problem) return problem;
                    continue;
                }
                for (unsigned int t = 0; t < count; t++) {
                    threadIdx = {t % block[0], t / block[0] % block[1], t / block[0] / block[1]};
                    kernel(a);
                }
            }
    return FINE;
}

// ---- matrix instructions ---------------------------------------------------------------------------------------------------

struct as_half { static float of(unsigned short x) { return __ushort_as_half(x); } };
struct as_bfloat { static float of(unsigned short x) { return __uint_as_float((unsigned int)x << 16); } };
struct as_float { static float of(unsigned int x) { return __uint_as_float(x); } };

// Where an element lies: the lane of a warp that holds it, and the number it has there.
struct Place { unsigned int lane, element; };
struct M16N8K16 {
    static const int K = 16;
    static Place a(int row, int k) { return {(unsigned)(row % 8 * 4 + k % 8 / 2), (unsigned)(k % 2 + row / 8 * 2 + k / 8 * 4)}; }
    static Place b(int k, int column) { return {(unsigned)(column * 4 + k % 8 / 2), (unsigned)(k % 2 + k / 8 * 2)}; }
};
struct M16N8K8 {
    static const int K = 8;
    static Place a(int row, int k) { return {(unsigned)(row % 8 * 4 + k / 2), (unsigned)(k % 2 + row / 8 * 2)}; }
    static Place b(int k, int column) { return {(unsigned)(column * 4 + k / 2), (unsigned)(k % 2)}; }
};
struct M16N8K8TF32 {
    static const int K = 8;
    static Place a(int row, int k) { return {(unsigned)(row % 8 * 4 + k % 4), (unsigned)(row / 8 + k / 4 * 2)}; }
    static Place b(int k, int column) { return {(unsigned)(column * 4 + k % 4), (unsigned)(k / 4)}; }
};

template <class Shape, class Element, class Word, class A, class B> static float4 product(const A& a, const B& b, float4 c, int place) {
    Thread& mine = threads[current];
    unsigned int me = current, first = me / WARP * WARP;
    int slot = mine.turn++ & 1;
    Word words[16];
    static_assert(sizeof(A) <= sizeof words && sizeof(B) <= sizeof words, "fragments of 16 words at most");
    memcpy(words, &a, sizeof a);
    for (size_t k = 0; k < sizeof(A) / sizeof(Word); k++) mine.held.a[slot][k] = Element::of(words[k]);
    memcpy(words, &b, sizeof b);
    for (size_t k = 0; k < sizeof(B) / sizeof(Word); k++) mine.held.b[slot][k] = Element::of(words[k]);
    wait_at(place);  // until every lane has put down its own
    float out[4] = {c.x, c.y, c.z, c.w};
    for (int i = 0; i < 4; i++) {
        int row = (me - first) / 4 + i / 2 * 8, column = (me - first) % 4 * 2 + i % 2;
        double total = out[i];
        for (int k = 0; k < Shape::K; k++) {
            Place left = Shape::a(row, k), right = Shape::b(k, column);
            total += (double)threads[first + left.lane].held.a[slot][left.element] * threads[first + right.lane].held.b[slot][right.element];
        }
        out[i] = (float)total;
    }
    return {out[0], out[1], out[2], out[3]};
}
#define mma_m16n8k16_f16(a, b, c) (product<M16N8K16, as_half, unsigned short>(a, b, c, __LINE__))
#define mma_m16n8k16_bf16(a, b, c) (product<M16N8K16, as_bfloat, unsigned short>(a, b, c, __LINE__))
#define mma_m16n8k8_f16(a, b, c) (product<M16N8K8, as_half, unsigned short>(a, b, c, __LINE__))
// What it shows of tf32 is where elements lie: their significands stay whole.
#define mma_m16n8k8_tf32(a, b, c) (product<M16N8K8TF32, as_float, unsigned int>(a, b, c, __LINE__))
