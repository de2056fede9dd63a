// Powers of floats that are to be rounded to floats: in plain doubles, to 40 digits, which nearly
// always tell the float next to the exact power; the rest is left to pow.h.
#pragma once

#include "core/arith.h"

namespace cvcli {

// A positive normal float as a double, by its bits: conversions are slow.
CVCLI_FN double widened(float v) {
    const uint32_t bits = bits_of(v);
    const uint32_t high = (bits >> 3) + 0x38000000u;
    return double_of(static_cast<int64_t>(uint64_t{high} << 32 | bits << 29));
}

// log2(m) for m in [sqrt(1/2), sqrt(2)), within 2^-44: 2 atanh(s) / ln 2, s = (m - 1) / (m + 1), by
// a minimax fit.
CVCLI_FN double near_log2(float m) {
    const double wide = widened(m), below = wide + 1.0;
    // The quotient by a reciprocal of 22 digits, and its error.
    const double r = widened(near_reciprocal(m + 1.0f));
    const double q = (wide - 1.0) * r;
    const double s = fused(q, fused(-below, r, 1.0), q);
    const double z = s * s;
    double sum = 0x1.21ad2d776d25ap-2;
    sum = fused(sum, z, 0x1.47959c992a71fp-2);
    sum = fused(sum, z, 0x1.a61a2cf9f9e38p-2);
    sum = fused(sum, z, 0x1.2776c295ae0c7p-1);
    sum = fused(sum, z, 0x1.ec709dc53a1cap-1);
    return s * fused(sum, z, 0x1.71547652b8252p+1);
}

// 2^f for |f| <= 1/2, within 2^-45, by a minimax fit.
CVCLI_FN double near_exp2(double f) {
    double sum = 0x1.b6573d402f8e6p-24;
    sum = fused(sum, f, 0x1.63efb5b9d763fp-20);
    sum = fused(sum, f, 0x1.ffcb765d2594fp-17);
    sum = fused(sum, f, 0x1.43088e0a4284dp-13);
    sum = fused(sum, f, 0x1.5d87fe9096e32p-10);
    sum = fused(sum, f, 0x1.3b2ab72b25f6ep-7);
    sum = fused(sum, f, 0x1.c6b08d70440f2p-5);
    sum = fused(sum, f, 0x1.ebfbdff814956p-3);
    sum = fused(sum, f, 0x1.62e42fefa39f7p-1);
    return fused(sum, f, 0x1.000000000003dp+0);
}

// factor * x^y as a float, if it can be told: x is a float of any kind, 0 < y <= 16, factor > 0.
CVCLI_FN bool near_power(float x, double y, double factor, float& result) {
    const uint32_t bits = bits_of(x);
    const int32_t exponent = static_cast<int32_t>(bits - 0x3f3504f3u) >> 23;
    const double log = near_log2(float_of(bits - (static_cast<uint32_t>(exponent) << 23)));
    // 1.5 * 2^52 and so many, which is in the low bits.
    const double magic = 6755399441055744.0;
    const int64_t shifted = 0x4338000000000000 + exponent;
    const double power = y * ((double_of(shifted) - magic) + log);
    const double whole = power + magic;
    const double part = near_exp2(power - (whole - magic)) * factor;
    const uint64_t turns = static_cast<uint64_t>(bits_of(whole)) << 52;
    const uint64_t value = static_cast<uint64_t>(bits_of(part)) + turns;
    result = static_cast<float>(double_of(static_cast<int64_t>(value)));
    // Normal numbers only, and none that 2^-38 more or less would round to another float.
    const uint32_t high = static_cast<uint32_t>(value >> 32);
    const uint32_t digits = static_cast<uint32_t>(value) & 0x1fffffffu;
    return bits - 0x00800000u < 0x7f000000u && high - 0x38200000u < 0x0fb00000u &&
           digits - (0x10000000u - 0x8000u) > 0x10000u;
}

}  // namespace cvcli
