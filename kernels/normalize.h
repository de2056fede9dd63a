// Samples less their channel's mean, times its scale, in a dtype of choice.
#pragma once

#include "core/arith.h"

namespace cvcli {

template <class To>
struct Normalize {
    float mean[4];
    float scale[4];  // the global scale included
    float shift[4];
    template <class T, int C>
    static constexpr bool takes() {
        return true;
    }
    template <class T, int C>
    CVCLI_FN Pixel<To, C> operator()(const Pixel<T, C>& in) const {
        Pixel<To, C> out;
        for (int c = 0; c < C; ++c) {
            out.v[c] = to_sample<To>((to_float(in.v[c]) - mean[c]) * scale[c] + shift[c]);
        }
        return out;
    }
};

using NormalizeUint8 = Normalize<uint8_t>;
using NormalizeUint16 = Normalize<uint16_t>;
using NormalizeFloat32 = Normalize<float>;

}  // namespace cvcli

CVCLI_PIXELWISE(normalize_NormalizeUint8, NormalizeUint8)
CVCLI_PIXELWISE(normalize_NormalizeUint16, NormalizeUint16)
CVCLI_PIXELWISE(normalize_NormalizeFloat32, NormalizeFloat32)
