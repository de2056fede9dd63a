// Samples: their raw bits, the alpha rule, the one rounding and the one NaN.
#pragma once

#include "core/platform.h"

namespace cvcli {

template <class T>
struct BitsOf;
template <>
struct BitsOf<uint8_t> {
    using type = uint8_t;
};
template <>
struct BitsOf<uint16_t> {
    using type = uint16_t;
};
template <>
struct BitsOf<float> {
    using type = uint32_t;
};

// Unsigned integers as wide as a sample: moving them keeps every bit, signalling NaNs included.
template <class T>
using Bits = typename BitsOf<T>::type;

template <int C>
constexpr bool kHasAlpha = C == 2 || C == 4;

template <int C>
CVCLI_FN constexpr bool is_alpha(uint32_t sample) {
    return kHasAlpha<C> && sample % C == C - 1;
}

// The two devices make NaNs with different bits, so every computed NaN becomes this one.
CVCLI_FN float canonical(float value) {
    return value == value ? value : float_of(0x7fc00000u);
}

// Half to even, then saturate; NaN is 0. Clamping first gives the same and leaves a range in
// which adding and taking away 1.5 * 2^52 rounds to a whole number.
CVCLI_FN double round_sample(double value, double top) {
    if (!(value > 0.0)) return 0.0;
    if (value > top) return top;
    const double magic = 6755399441055744.0;
    return (value + magic) - magic;
}

}  // namespace cvcli
