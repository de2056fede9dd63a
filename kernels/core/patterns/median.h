// The median of a square of samples around each, of any odd size; outside the image the edge goes
// on. uint8 by a histogram a column of the window, kept up from row to row (Perreault and Hebert,
// "Median filtering in constant time", 2007); other dtypes by the order of all samples of a tile.
#pragma once

#include "core/median_net.h"
#include "core/pattern.h"

namespace cvcli {

struct MedianParams {
    Frame frame;
    int32_t size;
    int32_t reserved;
};

constexpr int kCoarse = 16;  // levels of a histogram's coarse part, and values in each

}  // namespace cvcli

#if CVCLI_CUDA
#include "core/median_cuda.h"
#else
#include "core/median_cpu.h"
#endif

CVCLI_PATTERN(median, MedianParams)
