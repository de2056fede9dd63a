// The mean of a window of integers, exact: sums along rows, then columns.
#pragma once

#include "core/pattern.h"
#include "core/stencil.h"

namespace cvcli {

struct BoxParams {
    Frame frame;
    Edges edges;
    int32_t radius_x;
    int32_t radius_y;
    float share;
    uint32_t half;
    uint32_t factor;
    int32_t shift;
};

static_assert(sizeof(BoxParams) == 72, "BoxParams is packed by Python");

template <class T>
CVCLI_FN T mean_sample(const BoxParams& params, uint32_t sum) {
    if constexpr (sizeof(T) == 1) {
        return static_cast<T>(
            mean_of_bytes(static_cast<float>(static_cast<int32_t>(sum)), params.share));
    } else {
        return static_cast<T>(mean_of_words(sum, params.half, params.factor, params.shift));
    }
}

}  // namespace cvcli

#if CVCLI_CUDA
#include "core/box_cuda.h"
#else
#include "core/box_cpu.h"
#endif

CVCLI_PATTERN(box, BoxParams)
