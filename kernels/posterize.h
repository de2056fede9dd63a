// Fewer levels: floor(v * scale) as a level number from 0 to last, times step.
#pragma once

#include "core/pointwise.h"

namespace cvcli {

template <class R>
struct Posterize {
    R scale;
    R last;
    R step;
    CVCLI_FN R operator()(R v) const {
        R level = floor_of(v * scale);
        // Comparisons that are false for NaN, so that it stays NaN.
        if (level < R(0)) level = R(0);
        if (level > last) level = last;
        return level * step;
    }
};

}  // namespace cvcli

CVCLI_POINTWISE(posterize, Posterize)
