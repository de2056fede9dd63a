// The median of 3x3 or 5x5 samples around each; outside the image the edge goes on.
#pragma once

#include "core/median_net.h"
#include "core/pattern.h"

namespace cvcli {

struct MedianSmallParams {
    Frame frame;
    int32_t size;
    int32_t reserved;
};

}  // namespace cvcli

#if CVCLI_CUDA
#include "core/median_small_cuda.h"
#else
#include "core/median_small_cpu.h"
#endif

CVCLI_PATTERN(median_small, MedianSmallParams)
