// Another dtype: v * scale + offset of every sample, alpha too.
#pragma once

#include "core/arith.h"

namespace cvcli {

template <class To>
struct Convert {
    float scale;
    float offset;
    template <class T, int C>
    static constexpr bool takes() {
        return true;
    }
    template <class T, int C>
    CVCLI_FN Pixel<To, C> operator()(const Pixel<T, C>& in) const {
        Pixel<To, C> out;
        for (int c = 0; c < C; ++c) out.v[c] = to_sample<To>(to_float(in.v[c]) * scale + offset);
        return out;
    }
};

using ToUint8 = Convert<uint8_t>;
using ToUint16 = Convert<uint16_t>;
using ToFloat32 = Convert<float>;

}  // namespace cvcli

CVCLI_PIXELWISE(convertto_ToUint8, ToUint8)
CVCLI_PIXELWISE(convertto_ToUint16, ToUint16)
CVCLI_PIXELWISE(convertto_ToFloat32, ToFloat32)
