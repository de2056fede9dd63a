// A filter of any taps: the sum of weighed samples, or a blend with what it makes.
#pragma once

#include "core/pattern.h"
#include "core/stencil.h"

namespace cvcli {

// Taps come in the order in which they are added; those of weight 0 are left out. With `blends`
// the result is the sample with `amount` of the way to the filter's rounded result, and pixels on
// the edge of the image stay as they are. `share` is one over what whole weights are parts of.
struct DenseParams {
    Frame frame;
    Edges edges;
    int32_t radius_x;
    int32_t radius_y;
    int32_t count;
    int32_t blends;
    const Tap* taps;
    float amount;
    float share;
};

static_assert(sizeof(DenseParams) == 80, "DenseParams is packed by Python");

// A sample on the way to its filtered and rounded self.
template <class T>
CVCLI_FN float blended(float sample, float filtered, float amount) {
    return sample + amount * (static_cast<float>(to_sample<T>(filtered)) - sample);
}

}  // namespace cvcli

#if CVCLI_CUDA
#include "core/dense_cuda.h"
#else
#include "core/dense_cpu.h"
#endif

CVCLI_PATTERN(dense, DenseParams)
