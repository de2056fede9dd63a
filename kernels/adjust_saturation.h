// A blend of the image with its gray, as in torchvision, rounded once at the end.
#pragma once

#include "core/arith.h"

namespace cvcli {

struct AdjustSaturation {
    float factor;
    float white;
    template <class T, int C>
    static constexpr bool takes() {
        return kColored<C>;
    }
    template <class T, int C>
    CVCLI_FN Pixel<T, C> operator()(const Pixel<T, C>& in) const {
        const Pixel<float, C> sums = unrounded<T>(floats_of(in));
        Pixel<T, C> out = in;
        for (int c = 0; c < 3; ++c) out.v[c] = cut<T>(sums.v[c]);
        return out;
    }
    static constexpr bool kRounds = true;
    template <class T, int C>
    CVCLI_FN Pixel<float, C> unrounded(Pixel<float, C> v) const {
        const float sum = (0.2989f * v.v[0] + 0.587f * v.v[1]) + 0.114f * v.v[2];
        const float gray = sum * (1.0f - factor);
        for (int c = 0; c < 3; ++c) v.v[c] = factor * v.v[c] + gray;
        return v;
    }

  private:
    // Floats are cut to 0 to 1 too; a NaN stays one.
    template <class T>
    CVCLI_FN T cut(float v) const {
        if (sizeof(T) < 4) return to_sample<T>(v);
        const float low = v < 0.0f ? 0.0f : v;
        return to_sample<T>(low > white ? white : low);
    }
};

}  // namespace cvcli

CVCLI_PIXELWISE(adjust_saturation, AdjustSaturation)
