// The five fixed thresholds of OpenCV, by kind: binary, binary_inv, trunc, tozero, tozero_inv.
#pragma once

#include "core/pointwise.h"

namespace cvcli {

template <class R>
struct Threshold {
    R thresh;
    R maxval;
    R kind;
    CVCLI_FN R operator()(R v) const {
        const bool above = v > thresh;
        if (kind == R(0)) return above ? maxval : R(0);
        if (kind == R(1)) return above ? R(0) : maxval;
        if (kind == R(2)) return above ? thresh : v;
        if (kind == R(3)) return above ? v : R(0);
        return above ? R(0) : v;
    }
};

}  // namespace cvcli

CVCLI_POINTWISE(threshold, Threshold)
