// Channels picked by number, one struct a number of them.
#pragma once

#include "core/pixels.h"

namespace cvcli {

template <int N>
struct Reorder {
    float order[4];
    template <class T, int C>
    static constexpr bool takes() {
        return true;
    }
    CVCLI_FN int channel_of(int n) const { return static_cast<int>(order[n]); }
    template <class T, int C>
    CVCLI_FN Pixel<T, N> operator()(const Pixel<T, C>& pixel) const {
        Pixel<T, N> out;
        for (int n = 0; n < N; ++n) {
            out.v[n] = pixel.v[0];
            for (int c = 1; c < C; ++c) {
                if (channel_of(n) == c) out.v[n] = pixel.v[c];
            }
        }
        return out;
    }
};

using Reorder1 = Reorder<1>;
using Reorder2 = Reorder<2>;
using Reorder3 = Reorder<3>;
using Reorder4 = Reorder<4>;

}  // namespace cvcli

CVCLI_PIXELWISE(channelreorder_Reorder1, Reorder1)
CVCLI_PIXELWISE(channelreorder_Reorder2, Reorder2)
CVCLI_PIXELWISE(channelreorder_Reorder3, Reorder3)
CVCLI_PIXELWISE(channelreorder_Reorder4, Reorder4)
