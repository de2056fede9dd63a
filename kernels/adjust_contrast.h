// The gray of a pixel, by torchvision's weights.
#pragma once

#include "core/pixels.h"

namespace cvcli {

struct AdjustContrast {
    float weights[3];
    template <class T, int C>
    static constexpr bool takes() {
        return C >= 3;
    }
    template <class T, int C>
    CVCLI_FN Pixel<T, 1> operator()(const Pixel<T, C>& pixel) const {
        const float red = static_cast<float>(pixel.v[0]);
        const float green = static_cast<float>(pixel.v[1]);
        const float blue = static_cast<float>(pixel.v[2]);
        return {{to_sample<T>(weights[0] * red + weights[1] * green + weights[2] * blue)}};
    }
};

}  // namespace cvcli

CVCLI_PIXELWISE(adjust_contrast, AdjustContrast)
