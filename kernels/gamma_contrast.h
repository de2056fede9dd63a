// A power curve: top * gain * (v / top)^gamma, in double whatever the samples are.
#pragma once

#include "core/pointwise.h"
#include "core/pow.h"

#if CVCLI_CUDA
#include "core/near_pow_cuda.h"
#endif

namespace cvcli {

template <class R>
CVCLI_CALL R gamma_curve(R v, R top, R gain, R gamma) {
    const double range = top;
    const double part = v <= R(0) ? 0.0 : v / range;
    return static_cast<R>(range * gain * shared_pow(part, gamma));
}

template <class R>
struct GammaContrast {
    R top;
    R gain;
    R gamma;
    CVCLI_FN R operator()(R v) const {
#if CVCLI_CUDA
        // Most floats don't need all the digits of their powers.
        float near;
        const bool plain = top == 1.0f && gain > 0.0f && gamma > 0.0f && gamma <= 16.0f;
        if (plain && near_power(v, gamma, gain, near)) {
            return near;
        }
#endif
        return gamma_curve(v, top, gain, gamma);
    }
};

}  // namespace cvcli

CVCLI_POINTWISE(gamma_contrast, GammaContrast)
