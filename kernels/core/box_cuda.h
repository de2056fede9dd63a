// The box pattern on the GPU. Small windows are summed in floats, which hold every whole number up
// to 2^24: 15 x 15 samples of uint16 stay below, so sums may be kept up by adding and taking away.
#pragma once

#include "core/axes_cuda.h"

namespace cvcli {

template <class Shape>
struct Sums {
    using T = typename Shape::Sample;
    static constexpr int RX = Shape::kRadiusX, RY = Shape::kRadiusY, C = Shape::kChannels;
    static_assert(sizeof(T) < 4 && RX <= 7 && RY <= 7, "sums are whole numbers up to 2^24");
    const BoxParams& params;

    CVCLI_FN explicit Sums(const BoxParams& given) : params(given) {}
    template <int N, int G>
    CVCLI_FN void line(const float (&v)[N], float (&sums)[G]) const {
#pragma unroll
        for (int i = 0; i < G; ++i) {
            if (i >= C) {
                sums[i] = sums[i - C] + (v[i + 2 * RX * C] - v[i - C]);
                continue;
            }
            sums[i] = v[i];
#pragma unroll
            for (int k = 1; k <= 2 * RX; ++k) sums[i] += v[i + k * C];
        }
    }
    template <int N, int R>
    CVCLI_FN void column(const float (&v)[N], float (&values)[R]) const {
        values[0] = v[0];
#pragma unroll
        for (int k = 1; k <= 2 * RY; ++k) values[0] += v[k];
#pragma unroll
        for (int r = 1; r < R; ++r) values[r] = values[r - 1] + (v[r + 2 * RY] - v[r - 1]);
    }
    template <class Own>
    CVCLI_FN uint32_t sample(float value, const Own&) const {
        if constexpr (sizeof(T) == 1) return mean_of_bytes(value, params.share);
        return mean_sample<T>(params, static_cast<uint32_t>(value));
    }
};

template <class T>
struct LongSums {
    using Sum = uint32_t;
    const BoxParams& params;

    CVCLI_FN explicit LongSums(const BoxParams& given) : params(given) {}
    CVCLI_FN uint32_t start_x(T own) const { return own; }
    CVCLI_FN uint32_t add_x(uint32_t sum, int32_t, T low, T high) const { return sum + low + high; }
    CVCLI_FN uint32_t start_y(uint32_t own) const { return own; }
    CVCLI_FN uint32_t add_y(uint32_t sum, int32_t, uint32_t low, uint32_t high) const {
        return sum + low + high;
    }
    CVCLI_FN T finish(uint32_t sum, T) const { return mean_sample<T>(params, sum); }
};

// RX < 0: any radius.
template <int RX, int RY, int TW, int TH, int Turns, class W>
CVCLI_FN void box(const W& work, const Each<BoxParams>& each) {
    using In = typename W::In;
    using T = typename In::Sample;
    if constexpr (RX < 0) {
        filter_long_axes<LongSums<T>>(work, each);
    } else {
        using Shape = Tile<T, In::kChannels, RX, RY, TW, TH, Turns>;
        filter_axes<Shape, Sums<Shape>>(work, each);
    }
}

}  // namespace cvcli
