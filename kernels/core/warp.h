// Warps: each pixel of the result is taken from a place of the source that a matrix gives. The
// arithmetic that both devices share: places, borders, weights, sums.
#pragma once

#include "core/border.h"
#include "core/pattern.h"

namespace cvcli {

// `map` takes a pixel of the whole result to its place in the source, row by row; `fixed` is the
// same for affine maps, in units of 2^-32. `bank` is for the schedule only.
struct WarpParams {
    Frame frame;
    double map[9];
    int64_t fixed[6];
    float value[4];
    int32_t kind;
    int32_t filter;
    int32_t border;
    int32_t bank;
};

enum Kind : int { kAffine, kPerspective };
enum Interp : int { kNearest, kLinear, kCubic };

// The taps of a filter: from `kFirst` to `kLast`, counted from the pixel at or before a place.
template <int Filter>
struct Reach {
    static constexpr int kFirst = Filter == kCubic ? -1 : 0;
    static constexpr int kLast = Filter == kCubic ? 2 : Filter == kLinear ? 1 : 0;
};

// A pixel, and how far beyond it in units of 2^-24; for nearest, the nearest pixel.
struct Place {
    int32_t x;
    int32_t y;
    uint32_t fx;
    uint32_t fy;
};

// Half a pixel where a filter is to round.
template <int Filter>
constexpr int64_t kHalf = Filter == kNearest ? int64_t{1} << 31 : 0;

CVCLI_FN Place affine_place(int64_t x, int64_t y) {
    return {static_cast<int32_t>(x >> 32), static_cast<int32_t>(y >> 32),
            static_cast<uint32_t>(x) >> 8, static_cast<uint32_t>(y) >> 8};
}

// Perspective places are worked out in float32 from the last column that divides by kAnchor, where
// they are rounded from float64; so they don't depend on which part of the result is made.
constexpr int kAnchor = 64;

struct Homogeneous {
    float x;
    float y;
    float w;
};

CVCLI_FN float origin_of(const double* row, int32_t x, int32_t y) {
    return static_cast<float>(row[0] * x + (row[1] * y + row[2]));
}

CVCLI_FN Homogeneous origin_at(const WarpParams& params, int32_t x, int32_t y) {
    return {origin_of(params.map, x, y), origin_of(params.map + 3, x, y),
            origin_of(params.map + 6, x, y)};
}

CVCLI_FN Homogeneous step_by(const WarpParams& params, int32_t columns) {
    const float by = static_cast<float>(columns);
    return {static_cast<float>(params.map[0]) * by, static_cast<float>(params.map[3]) * by,
            static_cast<float>(params.map[6]) * by};
}

// Far places are all the same, and so is what is no number.
CVCLI_FN float bounded(float value) {
    const float most = 1073741824.0f;
    if (!(value > -most)) return -most;
    return value < most ? value : most;
}

// A place in units of 2^-16, rounded down, where it fits into 32 bits.
constexpr float kNear = 32768.0f;

CVCLI_FN bool is_near(float at) {
    return at >= -kNear && at < kNear;
}

CVCLI_FN int32_t near_units(float at) {
    return static_cast<int32_t>(floor_of(at * 65536.0f));
}

template <int Filter>
CVCLI_FN void split_units(int32_t units, int32_t& whole, uint32_t& fraction) {
    whole = (units >> 16) + (Filter == kNearest ? units >> 15 & 1 : 0);
    fraction = static_cast<uint32_t>(units & 65535) << 8;
}

template <int Filter>
CVCLI_FN void split_place(float at, int32_t& whole, uint32_t& fraction) {
    if (is_near(at)) return split_units<Filter>(near_units(at), whole, fraction);
    const float below = floor_of(at);
    split_units<Filter>(static_cast<int32_t>((at - below) * 65536.0f), whole, fraction);
    whole += static_cast<int32_t>(below);
}

// Where w is 0 the place is the first pixel.
template <bool Near = false>
CVCLI_FN void homogeneous_place(const Homogeneous& origin, const Homogeneous& step, float& x,
                                float& y) {
    const float w = origin.w + step.w;
    const float scale = Near || w != 0.0f ? 1.0f / w : 0.0f;
    x = (origin.x + step.x) * scale;
    y = (origin.y + step.y) * scale;
}

// Where all places are known to be near, there is less to do.
template <int Filter, bool Near>
CVCLI_FN Place perspective_place(const Homogeneous& origin, const Homogeneous& step) {
    Place place;
    float x, y;
    homogeneous_place<Near>(origin, step, x, y);
    if constexpr (Near) {
        split_units<Filter>(near_units(x), place.x, place.fx);
        split_units<Filter>(near_units(y), place.y, place.fy);
    } else {
        split_place<Filter>(bounded(x), place.x, place.fx);
        split_place<Filter>(bounded(y), place.y, place.fy);
    }
    return place;
}

// The weights of four neighbours in units of 2^-14; their sum is 2^14.
struct FixedWeights {
    uint32_t w[2][2];
};

CVCLI_FN FixedWeights fixed_weights(const Place& place) {
    const uint32_t x = place.fx >> 10;
    const uint32_t y = place.fy >> 10;
    const uint32_t both = (x * y + 8192) >> 14;
    return {{{16384 - x - y + both, x - both}, {y - both, both}}};
}

CVCLI_FN float fraction_of(uint32_t units) {
    return static_cast<float>(static_cast<int32_t>(units)) * (1.0f / 16777216.0f);
}

struct LinearWeights {
    float w[2][2];
};

CVCLI_FN LinearWeights linear_weights(const Place& place) {
    const float x = fraction_of(place.fx);
    const float y = fraction_of(place.fy);
    const float left = 1.0f - x;
    const float above = 1.0f - y;
    return {{{above * left, above * x}, {y * left, y * x}}};
}

CVCLI_FN float linear_sum(float a, float b, float c, float d, const LinearWeights& weights) {
    return (a * weights.w[0][0] + b * weights.w[0][1]) +
           (c * weights.w[1][0] + d * weights.w[1][1]);
}

// Keys' cubic with a = -0.75, which OpenCV has; the third weight is what is missing from 1.
struct CubicWeights {
    float w[4];
};

CVCLI_FN CubicWeights cubic_weights(uint32_t units) {
    const float a = -0.75f;
    const float x = fraction_of(units);
    const float rest = 1.0f - x;
    const float first = (a * x) * (rest * rest);
    const float last = (a * rest) * (x * x);
    const float second = ((a + 2.0f) * x - (a + 3.0f)) * (x * x) + 1.0f;
    return {{first, second, ((1.0f - first) - second) - last, last}};
}

CVCLI_FN float cubic_sum(float a, float b, float c, float d, const CubicWeights& weights) {
    return (a * weights.w[0] + b * weights.w[1]) + (c * weights.w[2] + d * weights.w[3]);
}

// The constant border as a pixel.
template <class T, int C>
CVCLI_FN Pixel<T, C> border_pixel(const WarpParams& params) {
    Pixel<T, C> pixel;
    for (int c = 0; c < C; ++c) pixel.v[c] = static_cast<T>(params.value[c]);
    return pixel;
}

static_assert(sizeof(WarpParams) == 176, "WarpParams is packed by Python");

}  // namespace cvcli
