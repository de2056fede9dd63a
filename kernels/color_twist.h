// An affine map of red, green and blue; alpha stays.
#pragma once

#include "core/arith.h"

namespace cvcli {

// Rows of a 3 x 4 matrix; the last column is added, in the units of the image.
struct ColorTwist {
    float m[12];
    template <class T, int C>
    static constexpr bool takes() {
        return kColored<C>;
    }
    template <class T, int C>
    CVCLI_FN Pixel<T, C> operator()(const Pixel<T, C>& in) const {
        const Pixel<float, C> sums = unrounded<T>(floats_of(in));
        Pixel<T, C> out = in;
        for (int c = 0; c < 3; ++c) out.v[c] = to_sample<T>(sums.v[c]);
        return out;
    }
    static constexpr bool kRounds = true;
    template <class T, int C>
    CVCLI_FN Pixel<float, C> unrounded(const Pixel<float, C>& in) const {
        Pixel<float, C> out = in;
        for (int c = 0; c < 3; ++c) {
            const float* row = m + 4 * c;
            out.v[c] = ((row[0] * in.v[0] + row[1] * in.v[1]) + row[2] * in.v[2]) + row[3];
        }
        return out;
    }
#if !CVCLI_CUDA
    void colors(const Floats* in, Floats* out) const {
        for (int c = 0; c < 3; ++c) {
            const float* row = m + 4 * c;
            const Floats sum = all_floats(row[0]) * in[0] + all_floats(row[1]) * in[1];
            out[c] = (sum + all_floats(row[2]) * in[2]) + all_floats(row[3]);
        }
    }
#endif
};

}  // namespace cvcli

CVCLI_PIXELWISE(color_twist, ColorTwist)
