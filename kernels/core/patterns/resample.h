// Separable resampling: each row by the taps of x, then each column of the rows made by those of y.
//
// 8-bit samples: weights w in units of 2^-22, a sum is (2^21 + w0 * v0 + w1 * v1 + ...) >> 22 in
// 32 bits that wrap, then saturated; the same after each axis. Others: float32 sums
// w0 * v0 + w1 * v1 + ... in that order, kept as they are between the axes and rounded at the end.
#pragma once

#include "core/pattern.h"

namespace cvcli {

// The tables of one axis, for every result index i of the whole result.
struct ResampleAxis {
    const int32_t* spans;    // 2 * i: the first source index, 2 * i + 1: how many there are
    const void* weights;     // `most` a row: floats, or pairs of taps split in high and low halves
    const int32_t* records;  // 8-bit on the GPU: 4 + 4 * words a row
    int32_t most;
    int32_t words;
    int32_t copies;  // the axis keeps its length: its only weight is 1
    int32_t reach;   // 8-bit on the GPU: words of a source row a tile needs, or of a made column
                     // (where a side is doubled `words` and `reach` are the weights of even and
                     // odd results, a byte each, and `records` those of results near an edge)
    int32_t batch;   // source rows, in fours, that are in shared memory at once
    int32_t halves;  // every two samples make one, each with a weight of a half
};

struct ResampleParams {
    Frame frame;
    ResampleAxis x;
    ResampleAxis y;
};

// The weights of two taps of 8-bit images, w = high * 2^12 + low with 0 <= low < 2^12: the 16-bit
// halves of the first tap in the lower bits, those of the second in the upper ones.
struct WeightPair {
    int32_t high;
    int32_t low;
};
constexpr int kLowBits = 12;
constexpr int kWeightBits = 22;

}  // namespace cvcli

#if CVCLI_CUDA
#include "core/resample_cuda.h"
#else
#include "core/resample_cpu.h"
#endif

CVCLI_PATTERN(resample, ResampleParams)
