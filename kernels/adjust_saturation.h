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
        const float r = to_float(in.v[0]), g = to_float(in.v[1]), b = to_float(in.v[2]);
        const float gray = ((0.2989f * r + 0.587f * g) + 0.114f * b) * (1.0f - factor);
        Pixel<T, C> out = in;
        out.v[0] = blended<T>(r, gray);
        out.v[1] = blended<T>(g, gray);
        out.v[2] = blended<T>(b, gray);
        return out;
    }

  private:
    // Floats are cut to 0 to 1 too; a NaN stays one.
    template <class T>
    CVCLI_FN T blended(float v, float gray) const {
        const float sum = factor * v + gray;
        if (sizeof(T) < 4) return to_sample<T>(sum);
        const float low = sum < 0.0f ? 0.0f : sum;
        return to_sample<T>(low > white ? white : low);
    }
};

}  // namespace cvcli

CVCLI_PIXELWISE(adjust_saturation, AdjustSaturation)
