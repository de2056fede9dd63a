// The negative: top - v.
#pragma once

#include "core/pointwise.h"

namespace cvcli {

template <class R>
struct Invert {
    R top;
    CVCLI_FN R operator()(R v) const { return top - v; }
};

}  // namespace cvcli

CVCLI_POINTWISE(invert, Invert)
