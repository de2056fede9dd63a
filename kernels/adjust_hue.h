// The hue turned, saturation and value as they are.
#pragma once

#include "core/color/hue.h"

namespace cvcli {

// The formulas of hue.h with all hues multiplied by the spread, so that nothing is divided.
struct AdjustHue {
    float shift[3];  // 5, 3 and 1 sixths of a turn plus the angle, each in [1, 7)
    float unused;
    template <class T, int C>
    static constexpr bool takes() {
        return kColored<C>;
    }
    template <class T, int C>
    CVCLI_FN Pixel<T, C> operator()(const Pixel<T, C>& in) const {
        const Hue hue = hue_of(in.v[0], in.v[1], in.v[2]);
        Pixel<T, C> out = in;
        for (int c = 0; c < 3; ++c) out.v[c] = stored<T>(turned<T>(hue, shift[c]));
        return out;
    }
    static constexpr bool kRounds = true;
    template <class T, int C>
    CVCLI_FN Pixel<float, C> unrounded(Pixel<float, C> v) const {
        const Hue hue = whole_hue(v.v[0], v.v[1], v.v[2]);
        for (int c = 0; c < 3; ++c) v.v[c] = turned<T>(hue, shift[c]);
        return v;
    }

  private:
    // Integers are no NaN, and what they become lies between the smallest and the largest.
    template <class T>
    CVCLI_FN static float least(float a, float b) {
        return sizeof(T) < 4 ? lesser_of(a, b) : (a < b ? a : b);
    }
    template <class T>
    CVCLI_FN static float most(float a, float b) {
        return sizeof(T) < 4 ? greater_of(a, b) : (a > b ? a : b);
    }
    template <class T>
    CVCLI_FN static T stored(float v) {
        if constexpr (sizeof(T) < 4) return whole_sample<T>(v);
        return to_sample<T>(v);
    }
    template <class T>
    CVCLI_FN static float turned(const Hue& hue, float by) {
        const float all = 6.0f * hue.spread;
        const float k = hue.turn() + by * hue.spread;  // from 0 to twice `all`
        const float within = k - (k >= all ? all : 0.0f);
        const float ramp = least<T>(within, 4.0f * hue.spread - within);
        return hue.high - most<T>(least<T>(ramp, hue.spread), 0.0f);
    }
};

}  // namespace cvcli

CVCLI_PIXELWISE(adjust_hue, AdjustHue)
