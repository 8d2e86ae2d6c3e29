// Matrix instructions: each lane puts down its own elements of A and B, and takes what its own elements of C need. Where elements lie is
// written down from NVIDIA's PTX ISA ("Matrix Fragments for mma.m16n8k8", "... mma.m16n8k16"), AMD's RDNA3 and CDNA2 instruction sets, and
// as observed of Apple's, by formulas of their own: a table of the compiler's is not asked.
#pragma once
#include "launch.h"

struct Place { int lane, element; };  // the lane that holds an element, and the number it has there

struct Nvidia {
    static const int LANES = 32, COPIES = 1, M = 16, N = 8;
    static Place c(int row, int column) { return {row % 8 * 4 + column / 2, column % 2 + row / 8 * 2}; }
};
struct M16N8K16 : Nvidia {
    static const int K = 16, A = 8, B = 4;
    static Place a(int row, int k) { return {row % 8 * 4 + k % 8 / 2, k % 2 + row / 8 * 2 + k / 8 * 4}; }
    static Place b(int k, int column) { return {column * 4 + k % 8 / 2, k % 2 + k / 8 * 2}; }
};
struct M16N8K8 : Nvidia {
    static const int K = 8, A = 4, B = 2;
    static Place a(int row, int k) { return {row % 8 * 4 + k / 2, k % 2 + row / 8 * 2}; }
    static Place b(int k, int column) { return {column * 4 + k / 2, k % 2}; }
};
struct M16N8K8TF32 : Nvidia {
    static const int K = 8, A = 4, B = 2;
    static Place a(int row, int k) { return {row % 8 * 4 + k % 4, row / 8 + k / 4 * 2}; }
    static Place b(int k, int column) { return {column * 4 + k % 4, k / 4}; }
};
struct Rdna3 {  // lanes 16 to 31 hold what lanes 0 to 15 do
    static const int LANES = 32, COPIES = 2, M = 16, N = 16, K = 16, A = 16, B = 16;
    static Place a(int row, int k) { return {row, k}; }
    static Place b(int k, int column) { return {column, k}; }
    static Place c(int row, int column) { return {column + row % 2 * 16, row / 2}; }
};
struct Cdna {
    static const int LANES = 64, COPIES = 1, M = 16, N = 16;
    static Place c(int row, int column) { return {column + row / 4 * 16, row % 4}; }
};
struct Cdna16 : Cdna {
    static const int K = 16, A = 4, B = 4;
    static Place a(int row, int k) { return {row + k / 4 * 16, k % 4}; }
    static Place b(int k, int column) { return {column + k / 4 * 16, k % 4}; }
};
struct Cdna4 : Cdna {
    static const int K = 4, A = 1, B = 1;
    static Place a(int row, int k) { return {row + k * 16, 0}; }
    static Place b(int k, int column) { return {column + k * 16, 0}; }
};
struct Apple {
    static const int LANES = 32, COPIES = 1, M = 8, N = 8, K = 8, A = 2, B = 2;
    static Place c(int row, int column) { return {column / 2 % 2 + row % 4 * 2 + column / 4 * 8 + row / 4 * 16, column % 2}; }
    static Place a(int row, int k) { return c(row, k); }
    static Place b(int k, int column) { return c(k, column); }
};

// An element, NaN where lanes that must hold the same do not.
template <class Shape> static float held_by(unsigned int first, Place at, int slot, float (Fragments::*side)[2][16]) {
    float x = (threads[first + at.lane].held.*side)[slot][at.element];
    for (int copy = 1; copy < Shape::COPIES; copy++) {
        float y = (threads[first + at.lane + copy * (Shape::LANES / Shape::COPIES)].held.*side)[slot][at.element];
        if (memcmp(&x, &y, sizeof x)) return NAN;
    }
    return x;
}

// This lane's elements of A·B + C.
template <class Shape> static void product(const float* a, const float* b, const float* c, double* out, int place) {
    Thread& mine = threads[current];
    unsigned int first = current / Shape::LANES * Shape::LANES;
    int slot = mine.turn++ & 1;
    for (int k = 0; k < Shape::A; k++) mine.held.a[slot][k] = a[k];
    for (int k = 0; k < Shape::B; k++) mine.held.b[slot][k] = b[k];
    wait_at(place);  // until every lane has put down its own
    for (int row = 0; row < Shape::M; row++)
        for (int column = 0; column < Shape::N; column++) {
            Place at = Shape::c(row, column);
            if (first + at.lane != current) continue;
            double total = c[at.element];
            for (int k = 0; k < Shape::K; k++)
                total += (double)held_by<Shape>(first, Shape::a(row, k), slot, &Fragments::a) *
                         held_by<Shape>(first, Shape::b(k, column), slot, &Fragments::b);
            out[at.element] = total;
        }
}
