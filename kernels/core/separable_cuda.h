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

// Bytes count 2^-149 each as the lowest bits of floats, so that they need no conversion; weights of
// rows make them 2^-22 times what they are, and those of columns the rest. Powers of two change no
// rounding.
template <class T>
constexpr float kRowScale = sizeof(T) == 1 ? 170141183460469231731687303715884105728.0f : 1.0f;
template <class T>
constexpr float kColumnScale = sizeof(T) == 1 ? 4194304.0f : 1.0f;

template <class Shape, bool Sharpens>
struct Weights {
    using T = typename Shape::Sample;
    using Value = float;
    static constexpr int RX = Shape::kRadiusX, RY = Shape::kRadiusY, C = Shape::kChannels;
    using Columns = FourColumns<Shape, Value>;
    static constexpr int kLine = line_samples<Shape>();
    static constexpr int kReach = RX * C, kSide = 0;
    static constexpr bool kOwn = Sharpens;
    float half_x[RX + 1];
    float half_y[RY + 1];
    float amount;

    CVCLI_FN Weights(const SeparableParams& params, const StripPlace&) : amount(params.amount) {
#pragma unroll
        for (int k = 0; k <= RX; ++k) half_x[k] = few(read_only(params.half_x + k) * kRowScale<T>);
#pragma unroll
        for (int k = 0; k <= RY; ++k) {
            half_y[k] = few(read_only(params.half_y + k) * kColumnScale<T>);
        }
    }
    // Many weights would take too many registers.
    CVCLI_FN static float few(float weight) { return RX + RY > 4 ? weight : kept(weight); }
    template <int N>
    CVCLI_FN static float value(const uint32_t (&words)[1][N], int i) {
        constexpr int each = 4 / int(sizeof(T));
        if constexpr (sizeof(T) == 1)
            return float_of(__byte_perm(words[0][i / 4], 0, 0x4440 | i % 4));
        return float_at<T>(words[0][i / each], i % each);
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
    template <class Own, int N>
    CVCLI_FN void finish(const float (&four)[4], const Own& own, Words<N> (&words)[1]) const {
        constexpr int each = 4 / int(sizeof(T));
        uint32_t bits[4];
        Words<N> samples = {};
        if constexpr (Sharpens) samples = own();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if constexpr (Sharpens) {
                const float sample = float_at<T>(samples.v[i / each], i % each);
                bits[i] = sample_bits(to_sample<T>(unsharp(sample, four[i], amount)));
            } else {
                bits[i] = bounded_bits<T>(four[i]);
            }
        }
        words[0] = packed<T>(bits);
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
template <int RX, int RY, int Halves, int Height, int Rows, int Sharpens, class W>
CVCLI_FN void separable(const W& work, const Each<SeparableParams>& each) {
    using In = typename W::In;
    using T = typename In::Sample;
    if constexpr (RX < 0) {
        filter_long_axes<LongWeights<T>>(work, each);
    } else {
        using Shape = Strip<T, In::kChannels, RX, RY, Halves, Height, Rows>;
        filter_strips<Shape, Weights<Shape, Sharpens != 0>>(work, each);
    }
}

}  // namespace cvcli
