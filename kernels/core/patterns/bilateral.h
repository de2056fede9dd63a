// A mean weighed by how far pixels lie from the middle, and how much their colours differ.
#pragma once

#include "core/pattern.h"
#include "core/stencil.h"

namespace cvcli {

// Taps are those around the middle one, weighed by distance. `colours` is a table of `entries`
// weights by the sum of the channels' differences: one for each sum for uint8; for other dtypes
// the sum is multiplied by `scale` first, and what lies between entries is interpolated.
struct BilateralParams {
    Frame frame;
    Edges edges;
    int32_t radius;
    int32_t count;
    const Tap* taps;
    const float* colours;
    int32_t entries;
    float scale;
};

static_assert(sizeof(BilateralParams) == 80, "BilateralParams is packed by Python");

// Channels that are colours.
template <int C>
constexpr int kColours = kHasAlpha<C> ? C - 1 : C;

CVCLI_FN float magnitude(float value) {
    return value < 0.0f ? -value : value;
}

// The weight of a difference, 0 where it is too large or no number.
template <class T>
CVCLI_FN float colour_weight(const float* colours, float scale, int32_t entries, float difference) {
    if constexpr (sizeof(T) == 1) {
        return colours[static_cast<int32_t>(difference)];
    } else {
        const float place = difference * scale;
        const bool inside = place < static_cast<float>(entries - 1);
        const float within = inside ? place : 0.0f;
        const int32_t index = static_cast<int32_t>(within);
        const float low = colours[index], high = colours[index + 1];
        const float weight = low + (within - static_cast<float>(index)) * (high - low);
        return inside ? weight : 0.0f;
    }
}

}  // namespace cvcli

#if CVCLI_CUDA
#include "core/bilateral_cuda.h"
#else
#include "core/bilateral_cpu.h"
#endif

CVCLI_PATTERN(bilateral, BilateralParams)
