// Kernels of GPUs on a CPU, for tests: one block after another, every thread of a block a fiber that yields at barriers and matrix
// instructions. What a language calls all this is said beside it: cuda.h, hip.h, metal/metal_stdlib.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <ucontext.h>

struct uint3 { unsigned int x, y, z; };
static uint3 threadIdx, blockIdx, blockDim, gridDim;

template <class To, class From> static inline To same_bits(From x) {
    static_assert(sizeof(To) == sizeof(From), "of one size");
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}

enum Problem { FINE, DIVERGED };
static const size_t STACK = 256 << 10;

struct Fragments { float a[2][16], b[2][16]; };  // of two instructions: a lane may be one ahead of the others

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

// What stands at an address, as a kernel's parameter takes it: a pointer, or a variable by value or by reference.
struct Argument {
    void* at;
    template <class T> operator T*() const { return *(T**)at; }
    operator const int&() const { return *(const int*)at; }
};

// A launch; arguments are addresses of what is passed. together: its threads wait for each other somewhere.
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
