// Powers in float32 for colours, the same bits on every device, within about 1e-6 of the value.
// (pow.h is exact to the last bit and much slower.) Polynomials are minimax fits of the functions
// they are named for; only +, - and * are used.
#pragma once

#include "core/arith.h"

namespace cvcli {

// log2(1 + f) / f for 1 + f in [sqrt(1/2), sqrt(2)), within 2^-26.
CVCLI_FN float log2_ratio(float f) {
    float sum = 0x1.00df9cp-3f;
    sum = sum * f - 0x1.aeac2ap-3f;
    sum = sum * f + 0x1.bd2a6ap-3f;
    sum = sum * f - 0x1.e87dd6p-3f;
    sum = sum * f + 0x1.269002p-2f;
    sum = sum * f - 0x1.7160e2p-2f;
    sum = sum * f + 0x1.ec76eep-2f;
    sum = sum * f - 0x1.71546ap-1f;
    return sum * f + 0x1.715474p+0f;
}

// 2^f for |f| <= 1/2, within 2^-23.
CVCLI_FN float exp2_part(float f) {
    float sum = 0x1.5f456ap-10f;
    sum = sum * f + 0x1.3b2dbcp-7f;
    sum = sum * f + 0x1.c6aed4p-5f;
    sum = sum * f + 0x1.ebfbdap-3f;
    sum = sum * f + 0x1.62e430p-1f;
    return sum * f + 1.0f;
}

// x^p for normal x > 0 where the result is normal too.
CVCLI_FN float power_of(float x, float p) {
    const uint32_t bits = bits_of(x);
    // Subtracting sqrt(1/2)'s bits makes the exponent field change there, not at 1.
    const int32_t exponent = static_cast<int32_t>(bits - 0x3f3504f3u) >> 23;
    const float f = float_of(bits - (static_cast<uint32_t>(exponent) << 23)) - 1.0f;
    const float log = static_cast<float>(exponent) + f * log2_ratio(f);
    const float power = log * p + kMagic;
    const float part = exp2_part(log * p - (power - kMagic));
    return float_of(bits_of(part) + (bits_of(power) << 23));
}

// About 1 / cbrt(x) for normal x > 0, within 3.5 %: a third of the exponent by its bits.
CVCLI_FN float near_inverse_root(float x) {
    return float_of(0x54a20000u - bits_of(x) / 3u);
}

// cbrt(x) within 1e-5, for bytes: one step from the guess, by a fit of (1 - e)^(-2/3).
CVCLI_FN float coarse_cube_root(float x) {
    const float r = near_inverse_root(x);
    const float y = x * (r * r);
    const float e = 1.0f - y * r;
    return y + y * (((e * 0.49903848f + 0.55949872f) * e + 0.66665206f) * e);
}

// cbrt(x) for floats: two steps of third order on 1 / cbrt(x).
CVCLI_FN float cube_root(float x) {
    float r = near_inverse_root(x);
    for (int step = 0; step < 2; ++step) {
        const float e = 1.0f - (x * r) * (r * r);
        r = r + r * ((e * (2.0f / 9.0f) + 1.0f / 3.0f) * e);
    }
    return x * (r * r);
}

// From 0 to 1; NaN is 0.
CVCLI_FN float clipped(float v) {
    const float low = v > 0.0f ? v : 0.0f;
    return low < 1.0f ? low : 1.0f;
}

// The transfer function of sRGB (IEC 61966-2-1) to linear light and back, for 0 to 1.
CVCLI_FN float linear_of(float v) {
    const float curved = power_of((larger(v, 0.04f) + 0.055f) * (1.0f / 1.055f), 2.4f);
    return v <= 0.04045f ? v * (1.0f / 12.92f) : curved;
}

CVCLI_FN float srgb_of(float v) {
    const float curved = 1.055f * power_of(larger(v, 0.003f), 1.0f / 2.4f) - 0.055f;
    return v <= 0.0031308f ? v * 12.92f : curved;
}

}  // namespace cvcli
