// Arithmetic that whole-pixel operators share, chosen so that each device has a fast way to the
// same bits.
#pragma once

#include "core/pixels.h"

namespace cvcli {

// Added and taken away again, it rounds a float below 2^22 to a whole number, half to even; after
// the addition the low bits of the float are that number.
constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23

#if CVCLI_CUDA

// Conversions run at a fraction of the speed of additions: 2^23 + v has v for its low bits.
CVCLI_FN float to_float(uint8_t v) {
    return float_of(0x4b000000u | v) - 8388608.0f;
}
CVCLI_FN float to_float(uint16_t v) {
    return float_of(0x4b000000u | v) - 8388608.0f;
}
// Of numbers that are no NaN.
CVCLI_FN float greater_of(float a, float b) {
    return fmaxf(a, b);
}
CVCLI_FN float lesser_of(float a, float b) {
    return fminf(a, b);
}
// a * b + c where a * b is exact, so that it makes no difference whether it is rounded.
CVCLI_FN float exactly_fused(float a, float b, float c) {
    return fmaf(a, b, c);
}
// About 1 / x, within 2 units in the last place, for results that do not depend on those.
CVCLI_FN float near_reciprocal(float x) {
#if defined(CVCLI_EMULATED)
    return 1.0f / x;
#else
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
#endif
}
// a / b, correctly rounded where the quotient is within 1 / (2 b) of a whole number and a half.
CVCLI_FN float near_quotient(float a, float b) {
    const float r = near_reciprocal(b);
    const float q = a * r;
    return fmaf(fmaf(-q, b, a), r, q);
}

#else

inline float to_float(uint8_t v) {
    return static_cast<float>(static_cast<int32_t>(v));
}
inline float to_float(uint16_t v) {
    return static_cast<float>(static_cast<int32_t>(v));
}
inline float greater_of(float a, float b) {
    return a > b ? a : b;
}
inline float lesser_of(float a, float b) {
    return a < b ? a : b;
}
inline float exactly_fused(float a, float b, float c) {
    return a * b + c;
}
inline float near_reciprocal(float x) {
    return 1.0f / x;
}
inline float near_quotient(float a, float b) {
    return a / b;
}

#endif

CVCLI_FN float to_float(float v) {
    return v;
}

template <class T, int C>
CVCLI_FN Pixel<float, C> floats_of(const Pixel<T, C>& pixel) {
    Pixel<float, C> out;
    for (int c = 0; c < C; ++c) out.v[c] = to_float(pixel.v[c]);
    return out;
}

// To a whole number, half to even; |v| < 2^22.
CVCLI_FN float rounded(float v) {
    return (v + kMagic) - kMagic;
}

// What rounds to the whole number next to a / b, half up; a and b are whole, |a| < 2^18 and the
// quotient is below 2^10. With a quarter added a quotient keeps 1 / (4 b) away from every half,
// which is much more than the error of the reciprocal.
CVCLI_FN float whole_ratio(float a, float b) {
    return (a + 0.25f) * near_reciprocal(b);
}

// The sample next to a number from 0 to the dtype's largest.
template <class T>
CVCLI_FN T whole_sample(float v) {
    return static_cast<T>(bits_of(v + kMagic));
}

// An integer sample from a sum in fixed point: the bits below `shift` round half up.
template <class T>
CVCLI_FN T descaled(int32_t sum, int shift) {
    const int32_t v = (sum + (1 << (shift - 1))) >> shift;
    const int32_t top = (1 << 8 * sizeof(T)) - 1;
    return static_cast<T>(smaller(larger(v, 0), top));
}

// A pixel with other colours and the alpha of the one it came from, if that has one.
template <class T, int C, class Colors>
CVCLI_FN Pixel<T, C> with_colors(Pixel<T, C> pixel, const Colors& colors) {
    for (int c = 0; c < 3; ++c) pixel.v[c] = colors.v[c];
    return pixel;
}

// Whether pixels are red, green and blue, with alpha or without.
template <int C>
constexpr bool kColored = C >= 3;

}  // namespace cvcli
