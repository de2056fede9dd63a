// Warps on the CPU: a row of the result in blocks of columns, first the places, then the pixels.
#pragma once

#include "core/simd_cpu.h"
#include "core/warp.h"

namespace cvcli {

// What a share reads: the rows of the source where they lie, or made once for the share.
template <class T, int C>
struct WarpSource {
    const WarpParams& params;
    const uint8_t* base;
    int64_t pitch;
    int32_t height;
    int32_t width;

    const T* at(int32_t y, int32_t x) const {
        return reinterpret_cast<const T*>(base + y * pitch) + int64_t{x} * C;
    }
    // A tap anywhere; what the border makes of it.
    Pixel<T, C> tap(int32_t y, int32_t x) const {
        const int32_t from_y = border_index(y, height, params.border);
        const int32_t from_x = border_index(x, width, params.border);
        if (from_y < 0 || from_x < 0) return border_pixel<T, C>(params);
        Pixel<T, C> pixel;
        std::memcpy(&pixel, at(from_y, from_x), sizeof pixel);
        return pixel;
    }
};

// The places of up to kAnchor columns of a row, and the least and greatest of them.
struct Places {
    int32_t x[kAnchor];
    int32_t y[kAnchor];
    uint32_t fx[kAnchor];
    uint32_t fy[kAnchor];
    int32_t count;
    int32_t low_x, high_x, low_y, high_y;

    Place operator[](int32_t i) const { return {x[i], y[i], fx[i], fy[i]}; }
    void bound() {
        low_x = high_x = x[0];
        low_y = high_y = y[0];
        for (int32_t i = 0; i < count; ++i) {
            low_x = smaller(low_x, x[i]);
            high_x = larger(high_x, x[i]);
            low_y = smaller(low_y, y[i]);
            high_y = larger(high_y, y[i]);
        }
    }
};

// One axis of an affine map over a block, and its extremes, which are at the ends.
template <int Filter>
void affine_axis(int64_t first, int64_t step, int32_t count, int32_t* whole, uint32_t* fraction,
                 int32_t& low, int32_t& high) {
    for (int32_t i = 0; i < count; ++i) whole[i] = static_cast<int32_t>((first + step * i) >> 32);
    if constexpr (Filter != kNearest) {
        for (int32_t i = 0; i < count; ++i) {
            fraction[i] = (static_cast<uint32_t>(first) + static_cast<uint32_t>(step) * i) >> 8;
        }
    }
    low = smaller(whole[0], whole[count - 1]);
    high = larger(whole[0], whole[count - 1]);
}

template <int Filter>
CVCLI_ONCE void affine_places(const WarpParams& params, int32_t column, int32_t row,
                              Places& places) {
    const int64_t* m = params.fixed;
    const int64_t x = m[0] * column + m[1] * row + m[2] + kHalf<Filter>;
    const int64_t y = m[3] * column + m[4] * row + m[5] + kHalf<Filter>;
    affine_axis<Filter>(x, m[0], places.count, places.x, places.fx, places.low_x, places.high_x);
    affine_axis<Filter>(y, m[3], places.count, places.y, places.fy, places.low_y, places.high_y);
}

// One axis of a perspective map over a block whose places are near.
template <int Filter>
void near_axis(const float* at, int32_t count, int32_t* whole, uint32_t* fraction) {
    for (int32_t i = 0; i < count; ++i) {
        split_units<Filter>(near_units(at[i]), whole[i], fraction[i]);
    }
}

template <int Filter>
CVCLI_ONCE void perspective_places(const WarpParams& params, int32_t column, int32_t row,
                                   Places& places) {
    const int32_t anchor = column - column % kAnchor;
    const Homogeneous origin = origin_at(params, anchor, row);
    const Homogeneous by = step_by(params, 1);
    const int32_t count = places.count, skip = column - anchor;
    float x[kAnchor], y[kAnchor];
    int32_t far = 0;
    for (int32_t i = 0; i < count; ++i) {
        const float right = static_cast<float>(skip + i);
        homogeneous_place(origin, {by.x * right, by.y * right, by.w * right}, x[i], y[i]);
    }
    for (int32_t i = 0; i < count; ++i) far |= !is_near(x[i]) | !is_near(y[i]);
    if (!far) {
        near_axis<Filter>(x, places.count, places.x, places.fx);
        near_axis<Filter>(y, places.count, places.y, places.fy);
    } else {
        for (int32_t i = 0; i < places.count; ++i) {
            split_place<Filter>(bounded(x[i]), places.x[i], places.fx[i]);
            split_place<Filter>(bounded(y[i]), places.y[i], places.fy[i]);
        }
    }
    places.bound();
}

// A pixel from its taps, tap(dy, dx) giving those around its place.
template <int Filter, class T, int C, class Tap>
Pixel<T, C> filtered(const Place& place, const Tap& tap) {
    if constexpr (Filter == kNearest) return tap(0, 0);
    Pixel<T, C> out;
    if constexpr (Filter == kLinear) {
        const Pixel<T, C> p[4] = {tap(0, 0), tap(0, 1), tap(1, 0), tap(1, 1)};
        if constexpr (sizeof(T) == 1) {
            const FixedWeights f = fixed_weights(place);
            for (int c = 0; c < C; ++c) {
                const uint32_t sum = p[0].v[c] * f.w[0][0] + p[1].v[c] * f.w[0][1] +
                                     p[2].v[c] * f.w[1][0] + p[3].v[c] * f.w[1][1];
                out.v[c] = static_cast<T>((sum + 8191 + (sum >> 14 & 1)) >> 14);
            }
        } else {
            const LinearWeights f = linear_weights(place);
            for (int c = 0; c < C; ++c) {
                out.v[c] = to_sample<T>(linear_sum(p[0].v[c], p[1].v[c], p[2].v[c], p[3].v[c], f));
            }
        }
    } else {
        const CubicWeights across = cubic_weights(place.fx);
        const CubicWeights down = cubic_weights(place.fy);
        float rows[4][C];
        for (int j = 0; j < 4; ++j) {
            const Pixel<T, C> p[4] = {tap(j - 1, -1), tap(j - 1, 0), tap(j - 1, 1), tap(j - 1, 2)};
            for (int c = 0; c < C; ++c) {
                rows[j][c] = cubic_sum(p[0].v[c], p[1].v[c], p[2].v[c], p[3].v[c], across);
            }
        }
        for (int c = 0; c < C; ++c) {
            out.v[c] =
                to_sample<T>(cubic_sum(rows[0][c], rows[1][c], rows[2][c], rows[3][c], down));
        }
    }
    return out;
}

template <int Filter, class T, int C>
Pixel<T, C> inner_pixel(const WarpSource<T, C>& source, const Place& place) {
    const T* from = source.at(place.y, place.x);
    return filtered<Filter, T, C>(place, [&](int dy, int dx) {
        Pixel<T, C> pixel;
        const uint8_t* row = reinterpret_cast<const uint8_t*>(from) + dy * source.pitch;
        std::memcpy(&pixel, reinterpret_cast<const T*>(row) + dx * C, sizeof pixel);
        return pixel;
    });
}

template <int Filter, class T, int C>
Pixel<T, C> outer_pixel(const WarpSource<T, C>& source, const Place& place) {
    return filtered<Filter, T, C>(
        place, [&](int dy, int dx) { return source.tap(place.y + dy, place.x + dx); });
}

template <class T, int C>
void put_pixel(T* to, const Pixel<T, C>& pixel) {
    std::memcpy(to, &pixel, sizeof pixel);
}

}  // namespace cvcli

#include "core/warp_rows_cpu.h"
