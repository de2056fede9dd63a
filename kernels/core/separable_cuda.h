// The separable pattern on the GPU.
#pragma once

#include "core/axes_cuda.h"

namespace cvcli {

// The bits of a result. Those of a blur lie between the least and the largest sample, so they need
// no saturation.
template <class T>
CVCLI_FN uint32_t bounded_bits(float value) {
    if constexpr (sizeof(T) == 4) return bits_of(to_sample<T>(value));
    return bits_of(value + 12582912.0f);
}

template <class Shape, bool Sharpens>
struct Weights {
    using T = typename Shape::Sample;
    static constexpr int RX = Shape::kRadiusX, RY = Shape::kRadiusY, C = Shape::kChannels;
    float half_x[RX + 1];
    float half_y[RY + 1];
    float amount;

    CVCLI_FN explicit Weights(const SeparableParams& params) : amount(params.amount) {
#pragma unroll
        for (int k = 0; k <= RX; ++k) half_x[k] = read_only(params.half_x + k);
#pragma unroll
        for (int k = 0; k <= RY; ++k) half_y[k] = read_only(params.half_y + k);
    }
    template <int N, int G>
    CVCLI_FN void line(const float (&v)[N], float (&sums)[G]) const {
#pragma unroll
        for (int i = 0; i < G; ++i) {
            sums[i] = weigh<T, RX>(half_x, [&](int k) { return v[i + (RX + k) * C]; });
        }
    }
    template <int N, int R>
    CVCLI_FN void column(const float (&v)[N], float (&values)[R]) const {
#pragma unroll
        for (int r = 0; r < R; ++r) {
            values[r] = weigh<T, RY>(half_y, [&](int k) { return v[r + RY + k]; });
        }
    }
    template <class Own>
    CVCLI_FN uint32_t sample(float value, const Own& own) const {
        if constexpr (Sharpens) return sample_bits(to_sample<T>(unsharp(own(), value, amount)));
        return bounded_bits<T>(value);
    }
};

template <class T>
struct LongWeights {
    using Sum = float;
    const SeparableParams& params;

    CVCLI_FN explicit LongWeights(const SeparableParams& given) : params(given) {}
    CVCLI_FN float start_x(T own) const { return read_only(params.half_x) * float(own); }
    CVCLI_FN float add_x(float sum, int32_t k, T low, T high) const {
        return add_weighted<T>(sum, read_only(params.half_x + k), float(low) + float(high));
    }
    CVCLI_FN float start_y(float own) const { return read_only(params.half_y) * own; }
    CVCLI_FN float add_y(float sum, int32_t k, float low, float high) const {
        return add_weighted<T>(sum, read_only(params.half_y + k), low + high);
    }
    CVCLI_FN T finish(float sum, T own) const {
        if (params.sharpens) sum = unsharp(float(own), sum, params.amount);
        return to_sample<T>(sum);
    }
};

// RX < 0: any radius.
template <int RX, int RY, int TW, int TH, int Turns, int Sharpens, class W>
CVCLI_FN void separable(const W& work, const Each<SeparableParams>& each) {
    using In = typename W::In;
    using T = typename In::Sample;
    if constexpr (RX < 0) {
        filter_long_axes<LongWeights<T>>(work, each);
    } else {
        using Shape = Tile<T, In::kChannels, RX, RY, TW, TH, Turns>;
        filter_axes<Shape, Weights<Shape, Sharpens != 0>>(work, each);
    }
}

}  // namespace cvcli
