// The hue turned, saturation and value as they are.
#pragma once

#include "core/color/hue.h"

namespace cvcli {

// The formulas of hue.h with all hues multiplied by the spread, so that nothing is divided.
struct AdjustHue {
    float shift[3];  // 5, 3 and 1 sixths of a turn plus the angle, each in [0, 6)
    float unused;
    template <class T, int C>
    static constexpr bool takes() {
        return kColored<C>;
    }
    template <class T, int C>
    CVCLI_FN Pixel<T, C> operator()(const Pixel<T, C>& in) const {
        const Hue hue = hue_of(in.v[0], in.v[1], in.v[2]);
        Pixel<T, C> out = in;
        for (int c = 0; c < 3; ++c) out.v[c] = to_sample<T>(turned(hue, shift[c]));
        return out;
    }

  private:
    CVCLI_FN static float turned(const Hue& hue, float by) {
        const float all = 6.0f * hue.spread;
        const float k = hue.turn + by * hue.spread;
        const float within = k >= all ? k - all : k;
        const float positive = within < 0.0f ? within + all : within;
        const float rest = 4.0f * hue.spread - positive;
        const float ramp = positive < rest ? positive : rest;
        const float part = ramp < hue.spread ? ramp : hue.spread;
        return hue.high - (part > 0.0f ? part : 0.0f);
    }
};

}  // namespace cvcli

CVCLI_PIXELWISE(adjust_hue, AdjustHue)
