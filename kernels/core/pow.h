// x to the power y, the same bits on every device.
//
// x = 2^k * m with m in [sqrt(1/2), sqrt(2)); log(m) = 2 atanh(s), s = (m - 1) / (m + 1), by its
// Taylor series (Abramowitz & Stegun 4.1.27) with the leading terms kept as a sum of two doubles;
// y * log2(x) = n + r with a whole n; 2^r = e^(r ln 2) by the Taylor series of e.
// Only +, -, *, / and fma are used, all of which IEEE 754 rounds in one way.
#pragma once

#include "core/platform.h"

namespace cvcli {

// The unevaluated sum high + low, |low| at most half an ulp of high.
struct Pair {
    double high;
    double low;
};

CVCLI_FN Pair pair_sum(double large, double small) {
    const double high = large + small;
    return {high, small - (high - large)};
}

CVCLI_FN Pair pair_product(Pair a, Pair b) {
    const double high = a.high * b.high;
    const double low = fused(a.high, b.high, -high);
    return pair_sum(high, fused(a.high, b.low, fused(a.low, b.high, low)));
}

// (m - 1) / (m + 1); m - 1 is exact here, and so are both parts of m + 1.
CVCLI_FN Pair pair_ratio(double m) {
    const double above = m - 1.0;
    const double below = m + 1.0;
    const double lost = m - (below - 1.0);
    const double high = above / below;
    const double rest = fused(-high, lost, fused(-high, below, above));
    return pair_sum(high, rest / below);
}

// 1/5 + z/7 + z^2/9 + ..., z <= 0.0295: the first dropped term is below 2^-70 of the logarithm.
CVCLI_FN double atanh_tail(double z) {
    double sum = 1.0 / 31.0;
    for (int odd = 29; odd >= 5; odd -= 2) sum = fused(sum, z, 1.0 / odd);
    return sum;
}

// log2(m) of a mantissa in [sqrt(1/2), sqrt(2)).
CVCLI_FN Pair pair_log2(double m) {
    const Pair third = {0x1.5555555555555p-2, 0x1.5555555555555p-56};
    const Pair two_over_ln2 = {0x1.71547652b82fep+1, 0x1.777d0ffda0d24p-55};
    const Pair s = pair_ratio(m);
    const Pair z = pair_product(s, s);
    const Pair cubic = pair_product(z, third);
    const double tail = z.high * z.high * atanh_tail(z.high);
    const Pair series = pair_sum(cubic.high, cubic.low + tail);
    const Pair factor = pair_sum(1.0, series.high);
    return pair_product(pair_product(s, {factor.high, factor.low + series.low}), two_over_ln2);
}

CVCLI_FN Pair pair_log2_of(double x) {
    const bool tiny = x < 0x1p-1022;
    int64_t bits = bits_of(tiny ? x * 0x1p54 : x);
    // Subtracting sqrt(1/2)'s bits makes the exponent field change at sqrt(1/2), not at 1.
    const int64_t low_bits = 0x3fe6a09e667f3bcd;
    const int64_t exponent = (bits - low_bits) >> 52;
    bits -= static_cast<int64_t>(static_cast<uint64_t>(exponent) << 52);
    const Pair part = pair_log2(double_of(bits));
    const double whole = static_cast<double>(exponent - (tiny ? 54 : 0));
    if (whole == 0.0) return part;
    const Pair sum = pair_sum(whole, part.high);
    return pair_sum(sum.high, sum.low + part.low);
}

CVCLI_FN double power_of_two(int32_t exponent) {
    return double_of(int64_t{exponent + 1023} << 52);
}

// e^t - 1 - t for |t| <= 0.35: small enough that its own rounding hardly counts.
CVCLI_FN double exp_rest(double t) {
    double sum = 1.0;
    for (int n = 16; n >= 3; --n) sum = fused(sum, t * (1.0 / n), 1.0);
    return 0.5 * t * t * sum;
}

// 2^(power.high + power.low) for |power| <= 1100; scaling in two steps reaches the subnormals.
CVCLI_FN double pair_exp2(Pair power) {
    const double magic = 6755399441055744.0;
    const double whole = (power.high + magic) - magic;
    const Pair part = pair_sum(power.high - whole, power.low);
    const Pair ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
    const Pair t = pair_product(part, ln2);
    const Pair line = pair_sum(1.0, t.high);
    const double rest = fused(t.low, line.high, exp_rest(t.high));
    const double mantissa = line.high + (line.low + rest);
    const int32_t n = static_cast<int32_t>(whole);
    const int32_t half = n / 2;
    return mantissa * power_of_two(half) * power_of_two(n - half);
}

// What pow gives where the logarithm does not apply: x is 0, 1, infinite, negative or NaN, or y
// is 0, infinite or NaN.
CVCLI_FN double special_pow(double x, double y) {
    const double infinity = double_of(0x7ff0000000000000);
    if (y == 0.0 || x == 1.0) return 1.0;
    if (!(x >= 0.0) || y != y) return double_of(0x7ff8000000000000);
    return (x > 1.0) == (y > 0.0) ? infinity : 0.0;
}

CVCLI_CALL double shared_pow(double x, double y) {
    const double infinity = double_of(0x7ff0000000000000);
    const bool plain_x = x > 0.0 && x < infinity && x != 1.0;
    const bool plain_y = y == y && y != 0.0 && y < infinity && y > -infinity;
    if (!plain_x || !plain_y) return special_pow(x, y);
    const Pair log = pair_log2_of(x);
    const double high = log.high * y;
    if (!(high < 1100.0)) return infinity;
    if (!(high > -1100.0)) return 0.0;
    const double low = fused(log.high, y, -high);
    return pair_exp2(pair_sum(high, fused(log.low, y, low)));
}

}  // namespace cvcli
