// The rectangle pattern on the GPU: two rows of integers a word, extremes of pairs shared by
// neighbours.
#pragma once

#include "core/axes_cuda.h"

namespace cvcli {

CVCLI_FN uint32_t key_word(uint32_t word) {
    return static_cast<uint32_t>(key_of(float_of(word)));
}

// Values are pairs of rows, a byte as the upper one of a half: it decides whatever lies below it.
// Those of floats are keys.
template <class Shape, bool Largest>
struct Extremes {
    using T = typename Shape::Sample;
    using Value = uint32_t;
    static constexpr int C = Shape::kChannels;
    using Columns = FourColumns<Shape, Value>;
    static constexpr int kLine = line_samples<Shape>();
    static constexpr int kReach = Shape::kRadiusX * C, kSide = 0;
    static constexpr bool kOwn = false;

    CVCLI_FN Extremes(const RectangleParams&, const StripPlace&) {}
    template <int H, int N>
    CVCLI_FN static Value value(const uint32_t (&words)[H][N], int i) {
        static_assert(H == (sizeof(T) == 4 ? 1 : 2), "integers come in pairs");
        if constexpr (sizeof(T) == 1) {
            return __byte_perm(words[0][i / 4], words[1][i / 4], (i % 4) * 0x1111 + 0x4400);
        } else if constexpr (sizeof(T) == 2) {
            return pair_at<T>(words[0][i / 2], words[1][i / 2], i % 2);
        } else {
            return key_word(words[0][i]);
        }
    }
    template <int N, int G>
    CVCLI_FN void line(const Value (&v)[N], Value (&picked)[G]) const {
        pick_runs<2 * Shape::kRadiusX + 1, C, C>(v, picked);
    }
    template <int N, int R>
    CVCLI_FN void column(const Value (&v)[N], Value (&picked)[R]) const {
        pick_runs<2 * Shape::kRadiusY + 1, 1, 1>(v, picked);
    }
    template <class Own, int H, int N>
    CVCLI_FN void finish(const Value (&v)[4], const Own&, Words<N> (&words)[H]) const {
        if constexpr (sizeof(T) == 4) {
            uint32_t bits[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) bits[i] = bits_of(value_of(static_cast<int32_t>(v[i])));
            words[0] = packed<T>(bits);
        } else if constexpr (sizeof(T) == 2) {
            unpair<T>(v, words);
        } else {
            const uint32_t left = __byte_perm(v[0], v[1], 0x7351);
            const uint32_t right = __byte_perm(v[2], v[3], 0x7351);
            words[0] = {{__byte_perm(left, right, 0x5410)}};
            words[1] = {{__byte_perm(left, right, 0x7632)}};
        }
    }

  private:
    CVCLI_FN static Value pick(Value a, Value b) {
        if constexpr (sizeof(T) < 4) return pick_halves<Largest>(a, b);
        const int32_t x = static_cast<int32_t>(a), y = static_cast<int32_t>(b);
        return static_cast<uint32_t>(Largest ? larger(x, y) : smaller(x, y));
    }
    // picked[i] becomes the extreme of `Length` values from v[i] on that lie Step apart, for those
    // i whose rest by Step is below Width. Of an odd number of them, two neighbours share all but
    // one.
    template <int Length, int Step, int Width, int N, int M>
    CVCLI_FN static void pick_runs(const Value (&v)[N], Value (&picked)[M]) {
        constexpr int reach = (Length - 1) * Step;
        Value some[N] = {}, shared[N] = {};
        if constexpr (Length > 2 && Length % 2 == 1) {
#pragma unroll
            for (int i = 0; i + 2 * Step < N; ++i) some[i] = pick(v[i + Step], v[i + 2 * Step]);
            pick_runs<Length / 2, 2 * Step, Width>(some, shared);
        } else if constexpr (Length > 2) {
            pick_runs<Length / 2, Step, Width>(v, some);
        }
#pragma unroll
        for (int i = 0; i < M && i + reach < N; ++i) {
            if (i % Step >= Width) continue;
            const bool second = i / Step % 2 == 1;
            if constexpr (Length == 1) {
                picked[i] = v[i];
            } else if constexpr (Length == 2) {
                picked[i] = pick(v[i], v[i + Step]);
            } else if constexpr (Length % 2 == 0) {
                picked[i] = pick(some[i], some[i + Length / 2 * Step]);
            } else {
                picked[i] = second ? pick(shared[i - Step], v[i + reach]) : pick(v[i], shared[i]);
            }
        }
    }
};

template <int RX, int RY, int Halves, int Height, int Rows, int Largest, class W>
CVCLI_FN void rectangle(const W& work, const Each<RectangleParams>& each) {
    using In = typename W::In;
    using Shape = Strip<typename In::Sample, In::kChannels, RX, RY, Halves, Height, Rows>;
    filter_strips<Shape, Extremes<Shape, Largest != 0>>(work, each);
}

}  // namespace cvcli
