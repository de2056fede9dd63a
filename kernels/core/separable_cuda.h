// The separable pattern on the GPU.
#pragma once

#include "core/axes_cuda.h"

namespace cvcli {

// The bits of a result that is `scale` times as large. Those of a blur lie between the least and
// the largest sample, so they need no saturation.
template <class T>
CVCLI_FN uint32_t bounded_bits(float value, float scale) {
    if constexpr (sizeof(T) == 4) return bits_of(to_sample<T>(value));
    return bits_of(value + 12582912.0f * scale);
}

// Bytes count 2^-149 each as the lowest bits of floats, so that they need no conversion; weights of
// rows make them 2^-22 times what they are, and those of columns the rest. Powers of two change no
// rounding.
template <class T>
constexpr float kRowScale = sizeof(T) == 1 ? 170141183460469231731687303715884105728.0f : 1.0f;
template <class T>
constexpr float kColumnScale = sizeof(T) == 1 ? 4194304.0f : 1.0f;

// Every C-th byte from byte `first` of some words on, four a word; beyond them are zeros.
template <int C, int N>
CVCLI_FN uint32_t every_byte(const uint32_t (&words)[N], int first) {
    const int word = (first + 64) / 4 - 16, lead = (first + 64) % 4;
    const auto at = [&](int i) { return word + i >= 0 && word + i < N ? words[word + i] : 0u; };
    uint32_t picks[3] = {0, 0x3210u, 0x3210u};  // from each word but the first, and what there is
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const int from = lead + k * C, pick = smaller(larger(from / 4 - 1, 0), 2);
        const uint32_t way = static_cast<uint32_t>(pick ? 4 + from % 4 : from);
        picks[pick] = (picks[pick] & ~(15u << 4 * k)) | way << 4 * k;
    }
    uint32_t bytes = __byte_perm(at(0), at(1), picks[0]);
    if (picks[1] != 0x3210u) bytes = __byte_perm(bytes, at(2), picks[1]);
    if (picks[2] != 0x3210u) bytes = __byte_perm(bytes, at(3), picks[2]);
    return bytes;
}

// So many times 2^-149: a float of the same bits, which compilers store four at once.
CVCLI_FN float counted(uint32_t count) {
#if defined(CVCLI_EMULATED)
    return float_of(count);
#else
    float value;
    asm("mov.b32 %0, %1;" : "=f"(value) : "r"(count));
    return value;
#endif
}

// Whole: bytes of a row are weighed four at once, by whole weights of 16 bits; the sum counts
// 2^-149 each as well, and results are a 64th of what they would be, or no weight could make them.
template <class Shape, bool Sharpens, bool Whole>
struct Weights {
    using T = typename Shape::Sample;
    using Value = float;
    static constexpr int RX = Shape::kRadiusX, RY = Shape::kRadiusY, C = Shape::kChannels;
    using Columns = FourColumns<Shape, Value>;
    static constexpr int kLine = line_samples<Shape>();
    static constexpr int kReach = RX * C, kSide = 0;
    static constexpr bool kOwn = Sharpens;
    static constexpr int kTaps = (2 * RX + 1 + 3) / 4;  // words of them
    static constexpr float kAfter = Whole ? 64.0f : 1.0f;
    static constexpr float kColumns = Whole ? kRowScale<T> : kColumnScale<T>;
    float half_x[RX + 1];
    uint32_t high_x[kTaps];
    uint32_t low_x[kTaps];
    float half_y[RY + 1];
    float amount;

    CVCLI_FN Weights(const SeparableParams& params, const StripPlace&) : amount(params.amount) {
#pragma unroll
        for (int k = 0; k <= RX; ++k) half_x[k] = few(read_only(params.half_x + k) * kRowScale<T>);
#pragma unroll
        for (int k = 0; k <= RY; ++k) {
            half_y[k] = few(read_only(params.half_y + k) * kColumns);
        }
        if constexpr (Whole) take_whole(params.half_x);
    }
    CVCLI_FN void take_whole(const float* half) {
#pragma unroll
        for (int i = 0; i < kTaps; ++i) {
            uint32_t high = 0, low = 0;
#pragma unroll
            for (int k = 4 * i; k < smaller(4 * i + 4, 2 * RX + 1); ++k) {
                const float weight = read_only(half + (k < RX ? RX - k : k - RX));
                const uint32_t whole = static_cast<uint32_t>(weight * 65536.0f);
                high |= (whole >> 8) << 8 * (k % 4);
                low |= (whole & 255u) << 8 * (k % 4);
            }
            high_x[i] = kept(high), low_x[i] = kept(low);
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
    // The samples of each channel side by side, and then four by four through their weights.
    template <int N, int G>
    CVCLI_FN void whole_line(const uint32_t (&words)[N], float (&sums)[G]) const {
        constexpr int unit = C % 4 == 0 ? 1 : C % 2 == 0 ? 2 : 4;
        constexpr int before = (RX + unit - 1) / unit * unit;  // pixels, of whole words
        constexpr int planes = ((G - 1) / C + before - RX + 4 * kTaps + 3) / 4;
        uint32_t plane[C][planes + 1] = {};
#pragma unroll
        for (int c = 0; c < C; ++c) {
#pragma unroll
            for (int i = 0; i < planes; ++i) {
                plane[c][i] = every_byte<C>(words, Shape::kPad + (4 * i - before) * C + c);
            }
        }
#pragma unroll
        for (int g = 0; g < G; ++g) {
            const uint32_t (&own)[planes + 1] = plane[g % C];
            uint32_t taps[kTaps], sum = 0;
#pragma unroll
            for (int i = 0; i < kTaps; ++i) {
                const int at = g / C + before - RX + 4 * i;
                taps[i] = __funnelshift_r(own[at / 4], own[at / 4 + 1], at % 4 * 8);
                sum = __dp4a(taps[i], high_x[i], sum);
            }
            sum <<= 8;
#pragma unroll
            for (int i = 0; i < kTaps; ++i) sum = __dp4a(taps[i], low_x[i], sum);
            sums[g] = counted(sum);
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
                const float blurred = four[i] * kAfter;
                bits[i] = sample_bits(to_sample<T>(unsharp(sample, blurred, amount)));
            } else {
                bits[i] = bounded_bits<T>(four[i], 1.0f / kAfter);
            }
        }
        words[0] = packed<T>(bits);
    }
};

template <class Shape, bool Sharpens, int N, int G>
CVCLI_FN void make_line(const Weights<Shape, Sharpens, true>& filter, const uint32_t (&words)[1][N],
                        float (&sums)[G]) {
    filter.whole_line(words[0], sums);
}

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
template <int RX, int RY, int Halves, int Height, int Rows, int Sharpens, int Whole, class W>
CVCLI_FN void separable(const W& work, const Each<SeparableParams>& each) {
    using In = typename W::In;
    using T = typename In::Sample;
    if constexpr (RX < 0) {
        filter_long_axes<LongWeights<T>>(work, each);
    } else {
        using Shape = Strip<T, In::kChannels, RX, RY, Halves, Height, Rows>;
        filter_strips<Shape, Weights<Shape, Sharpens != 0, Whole != 0>>(work, each);
    }
}

}  // namespace cvcli
