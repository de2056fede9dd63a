// A power curve: top * gain * (v / top)^gamma, in double whatever the samples are.
#pragma once

#include "core/pointwise.h"
#include "core/pow.h"

namespace cvcli {

template <class R>
struct GammaContrast {
    R top;
    R gain;
    R gamma;
    CVCLI_FN R operator()(R v) const {
        const double range = top;
        const double part = v <= R(0) ? 0.0 : v / range;
        return static_cast<R>(range * gain * shared_pow(part, gamma));
    }
};

}  // namespace cvcli

CVCLI_POINTWISE(gamma_contrast, GammaContrast)
