// Contrast about a centre, then brightness, then a shift.
#pragma once

#include "core/pointwise.h"

namespace cvcli {

template <class R>
struct BrightnessContrast {
    R brightness;
    R contrast;
    R shift;
    R centre;
    CVCLI_FN R operator()(R v) const {
        return shift + brightness * (centre + contrast * (v - centre));
    }
};

}  // namespace cvcli

CVCLI_POINTWISE(brightness_contrast, BrightnessContrast)
