// Samples at or above the threshold are inverted.
#pragma once

#include "core/pointwise.h"

namespace cvcli {

template <class R>
struct Solarize {
    R threshold;
    R top;
    CVCLI_FN R operator()(R v) const { return v >= threshold ? top - v : v; }
};

}  // namespace cvcli

CVCLI_POINTWISE(solarize, Solarize)
