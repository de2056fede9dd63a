// The box pattern on the GPU. Small windows of bytes are summed two a word, as 15 x 15 of them fit
// 16 bits; of uint16 in floats, which hold every whole number up to 2^24, so both may be kept up by
// adding and taking away.
#pragma once

#include "core/axes_cuda.h"

namespace cvcli {

template <class Shape>
struct Sums {
    using T = typename Shape::Sample;
    static constexpr bool kPairs = Shape::kHalves == 2;
    using Value = typename Either<kPairs, uint32_t, float>::type;
    static constexpr int RX = Shape::kRadiusX, RY = Shape::kRadiusY, C = Shape::kChannels;
    using Columns = FourColumns<Shape, Value>;
    static constexpr int kLine = line_samples<Shape>();
    static constexpr int kReach = RX * C, kSide = 0;
    static constexpr bool kOwn = false;
    static_assert(sizeof(T) < 4 && RX <= 7 && RY <= 7, "sums are whole numbers up to 2^24");
    static_assert(kPairs == (sizeof(T) == 1), "sums of bytes fit 16 bits");
    const BoxParams& params;

    CVCLI_FN Sums(const BoxParams& given, const StripPlace&) : params(given) {}
    template <int H, int N>
    CVCLI_FN static Value value(const uint32_t (&words)[H][N], int i) {
        if constexpr (kPairs) {
            return pair_at<T>(words[0][i / 4], words[1][i / 4], i % 4);
        } else {
            return float_at<T>(words[0][i / 2], i % 2);
        }
    }
    template <int N, int G>
    CVCLI_FN void line(const Value (&v)[N], Value (&sums)[G]) const {
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
    CVCLI_FN void column(const Value (&v)[N], Value (&values)[R]) const {
        values[0] = v[0];
#pragma unroll
        for (int k = 1; k <= 2 * RY; ++k) values[0] += v[k];
#pragma unroll
        for (int r = 1; r < R; ++r) values[r] = values[r - 1] + (v[r + 2 * RY] - v[r - 1]);
    }
    template <class Own, int H, int N>
    CVCLI_FN void finish(const Value (&four)[4], const Own&, Words<N> (&words)[H]) const {
        uint32_t bits[H][4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if constexpr (kPairs) {
                bits[0][i] = mean_bits(__byte_perm(four[i], kBig, 0x7610));
                bits[1][i] = mean_bits(__byte_perm(four[i], kBig, 0x7632));
            } else {
                bits[0][i] = mean_sample<T>(params, static_cast<uint32_t>(four[i]));
            }
        }
#pragma unroll
        for (int h = 0; h < H; ++h) words[h] = packed<T>(bits[h]);
    }

  private:
    static constexpr uint32_t kBig = 0x4b000000u;  // of 2^23, at the end of whose mantissa a sum is
    static constexpr int32_t kArea = (2 * RX + 1) * (2 * RY + 1);
    static constexpr int32_t kShare = ((1 << 23) + kArea / 2) / kArea;
    static constexpr int32_t kError =
        larger(kShare * kArea - (1 << 23), (1 << 23) - kShare * kArea);
    // The mean, in the lowest byte, of a sum. A share that is a multiple of 2^-23 takes the 2^23
    // away in the one rounding; a sum's mean is then off by at most 255 * kError * 2^-23, which
    // must be less than 1 / (2 kArea), how far from halfway a mean is at least.
    CVCLI_FN uint32_t mean_bits(uint32_t sum) const {
        if constexpr (2 * 255 * kError * kArea < 1 << 23) {
            const float share = static_cast<float>(kShare) * (1.0f / 8388608.0f);
            return bits_of(fmaf(float_of(sum), share, 12582912.0f - static_cast<float>(kShare)));
        } else {
            return mean_of_bytes(float_of(sum) - 8388608.0f, params.share);
        }
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
template <int RX, int RY, int Halves, int Height, int Rows, class W>
CVCLI_FN void box(const W& work, const Each<BoxParams>& each) {
    using In = typename W::In;
    using T = typename In::Sample;
    if constexpr (RX < 0) {
        filter_long_axes<LongSums<T>>(work, each);
    } else {
        using Shape = Strip<T, In::kChannels, RX, RY, Halves, Height, Rows>;
        filter_strips<Shape, Sums<Shape>>(work, each);
    }
}

}  // namespace cvcli
