// The dense pattern on the GPU: a thread reads each row of the source once, and adds it to those
// results of four columns that it has a part in.
#pragma once

#include "core/axes_cuda.h"

namespace cvcli {

// What results of four columns are so far: those that have come to an end in a step first, then
// those that rows still to come have a part in.
template <class Shape, class Filter, class V>
struct TapColumns {
    static constexpr int RX = Shape::kRadiusX, RY = Shape::kRadiusY, C = Shape::kChannels;
    static constexpr int kSide = (RX * C + 3) / 4, kNear = 2 * kSide + 1, kKept = 2 * RY;
    using Room = Middle<V, Shape::kRows, Shape::kColumns, kSide>;
    V sums[kKept + Shape::kRows][4] = {};
    V own[RY + Shape::kRows][4] = {};  // the image's samples, from the row in the middle on
    const FourOf<V>* from[2][kNear];   // of an even row and of an odd one

    CVCLI_FN TapColumns(const Room& middle) {
#pragma unroll
        for (int k = 0; k < 2 * kNear; ++k) {
            const int column = own_column<Shape>();
            const int chunk = column + k % kNear - kSide;
            from[k / kNear][k % kNear] = kept_place(middle.four + Room::place(k / kNear, chunk));
        }
    }
    CVCLI_FN void take(const Filter& filter, int) {
#pragma unroll
        for (int r = 0; r < Shape::kRows; ++r) {
            V v[4 * kNear];
#pragma unroll
            for (int k = 0; k < kNear; ++k) {
                const FourOf<V> four = from[r % 2][k][r / 2 * 2 * Room::kPitch];
#pragma unroll
                for (int i = 0; i < 4; ++i) v[4 * k + i] = four.v[i];
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) own[RY + r][i] = v[4 * kSide + i];
#pragma unroll
            for (int dy = 0; dy <= 2 * RY; ++dy) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    filter.add(sums[kKept + r - dy][i], dy,
                               [&](int dx) { return v[4 * kSide + i + (dx - RX) * C]; });
                }
            }
        }
    }
    template <class At, int H, int N>
    CVCLI_FN void make(const Filter& filter, const At& at,
                       Words<N> (&results)[H][Shape::kRows]) const {
#pragma unroll
        for (int r = 0; r < Shape::kRows; ++r) {
            Words<N> words[H];
            filter.finish(sums[r], own[r], at.row + r, words);
#pragma unroll
            for (int h = 0; h < H; ++h) results[h][r] = words[h];
        }
    }
    CVCLI_FN void move() {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int k = 0; k < kKept; ++k) sums[k][i] = sums[k + Shape::kRows][i];
#pragma unroll
            for (int k = 0; k < RY; ++k) own[k][i] = own[k + Shape::kRows][i];
        }
    }
};

// The taps that `Mask` has a bit for. With Whole they are whole numbers, and sums too: two of 16
// bits a word, with kBias added so that none is negative.
template <class Shape, int Mask, bool Blends, bool Whole>
struct Taps {
    using T = typename Shape::Sample;
    using Value = typename Either<Whole, uint32_t, float>::type;
    using Columns = TapColumns<Shape, Taps, Value>;
    static constexpr int RX = Shape::kRadiusX, RY = Shape::kRadiusY, C = Shape::kChannels;
    static constexpr int kWide = 2 * RX + 1, kTaps = kWide * (2 * RY + 1);
    static constexpr int kLine = line_samples<Shape>();
    static constexpr int kReach = 0, kSide = Columns::kSide;
    static constexpr bool kOwn = false;
    static constexpr uint32_t kBias = Blends ? 0 : 0x40004000u;
    static constexpr uint32_t kBig = 0x4b000000u;  // 2^23, at whose end whole numbers are put
    static_assert(Whole == (Shape::kHalves == 2) && (!Whole || sizeof(T) == 1), "pairs of bytes");

    Value weights[kTaps];
    float amount;
    bool edge[4];  // whether a column is one of the image's edge
    float share;
    int32_t top;     // the strip's first row
    int32_t bottom;  // the image's last row

    CVCLI_FN Taps(const DenseParams& params, const StripPlace& place)
        : amount(params.amount),
          share(params.share),
          top(place.source_y),
          bottom(params.frame.height - 1) {
        int count = 0;
#pragma unroll
        for (int k = 0; k < kTaps; ++k) {
            if (!(Mask >> k & 1)) continue;
            if constexpr (Whole) {
                weights[k] = static_cast<uint32_t>(read_only(&params.taps[count++].whole));
            } else {
                weights[k] = read_only(&params.taps[count++].weight);
            }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int32_t x = place.source_x + (4 * static_cast<int>(threadIdx.x) + i) / C;
            edge[i] = x == 0 || x == params.frame.width - 1;
        }
    }
    template <int H, int N>
    CVCLI_FN static Value value(const uint32_t (&words)[H][N], int i) {
        constexpr int each = 4 / int(sizeof(T));
        if constexpr (Whole) {
            return pair_at<T>(words[0][i / 4], words[1][i / 4], i % 4);
        } else {
            return float_at<T>(words[0][i / each], i % each);
        }
    }
    template <int G>
    CVCLI_FN void line(const Value (&v)[G], Value (&same)[G]) const {
#pragma unroll
        for (int i = 0; i < G; ++i) same[i] = v[i];
    }
    // Adds a row's products to a sum; the very first begins it.
    template <class At>
    CVCLI_FN void add(Value& sum, int dy, const At& at) const {
#pragma unroll
        for (int dx = 0; dx < kWide; ++dx) {
            const int k = dy * kWide + dx;
            if (!(Mask >> k & 1)) continue;
            const Value product = weights[k] * at(dx);
            if (Mask & ((1 << k) - 1)) {
                sum += product;
            } else if constexpr (Whole) {
                sum = product + kBias;
            } else {
                sum = product;
            }
        }
    }
    template <int H, int N>
    CVCLI_FN void finish(const Value (&sums)[4], const Value (&own)[4], int32_t row,
                         Words<N> (&words)[H]) const {
        if constexpr (Whole && !Blends) {
            uint32_t v[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const uint32_t sum = Mask ? sums[i] : kBias;
                v[i] = pick_halves<false>(pick_halves<true>(sum, kBias), kBias + 0x00ff00ffu);
            }
            unpair<T>(v, words);
        } else {
#pragma unroll
            for (int h = 0; h < H; ++h) {
                const int32_t y = top + row + h * Shape::kHeight;
                const bool first_or_last = y == 0 || y == bottom;
                uint32_t bits[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const bool keeps = first_or_last || edge[i];
                    bits[i] = sample_bits(to_sample<T>(result(sums[i], own[i], h, keeps)));
                }
                words[h] = packed<T>(bits);
            }
        }
    }

  private:
    CVCLI_FN float result(Value sum, Value own, int half, bool keeps) const {
        if constexpr (Whole) {
            // A share that is a multiple of 2^-23 takes the 2^23 away in the one rounding.
            const int places = half ? 0x7632 : 0x7610;
            const float whole = float_of(__byte_perm(sum, kBig, places));
            const float smooth = fmaf(whole, share, 12582912.0f - share * 8388608.0f);
            const float sample = float_of(__byte_perm(own, kBig, places));
            const float some = keeps ? 0.0f : amount;
            return (sample - 8388608.0f) + some * ((smooth - sample) - 4194304.0f);
        } else if constexpr (Blends) {
            return keeps ? own : blended<T>(own, sum, amount);
        } else {
            return Mask ? sum : 0.0f;
        }
    }
};

// Any taps, a thread a pixel: samples are read where they lie.
constexpr int kAnyWidth = 32;
constexpr int kAnyHeight = 8;

template <class W>
CVCLI_FN typename W::In filtered_pixel(const typename W::Read& reader, const DenseParams& params,
                                       int32_t y, int32_t x) {
    using In = typename W::In;
    using T = typename In::Sample;
    float sums[In::kChannels] = {};
#pragma unroll 1
    for (int32_t k = 0; k < params.count; ++k) {
        const Tap tap = params.taps[k];
        const In pixel = bordered_at<W>(reader, params.frame, params.edges, y + tap.dy, x + tap.dx);
#pragma unroll
        for (int c = 0; c < In::kChannels; ++c) {
            const float product = tap.weight * static_cast<float>(pixel.v[c]);
            sums[c] = k ? sums[c] + product : product;
        }
    }
    In made;
#pragma unroll
    for (int c = 0; c < In::kChannels; ++c) made.v[c] = to_sample<T>(sums[c]);
    return made;
}

template <class W>
CVCLI_FN void filter_pixels(const W& work, const Each<DenseParams>& each) {
    for_each_tile(
        work.args, kAnyHeight, work.args.dst, [&](int32_t index, int32_t tile_x, int32_t tile_y) {
            const Image src = work.src(index), dst = work.dst(index);
            const DenseParams& params = work.params(each, index);
            const auto reader = work.reader(src, index);
            const int32_t x = tile_x * kAnyWidth + threadIdx.x % kAnyWidth;
            const int32_t y = tile_y * kAnyHeight + threadIdx.x / kAnyWidth;
            if (x >= dst.width || y >= dst.height) return;
            work.write(dst, y, x,
                       filtered_pixel<W>(reader, params, y + params.frame.y0, x + params.frame.x0));
        });
}

// RX < 0: any taps.
template <int RX, int RY, int Halves, int Height, int Rows, int Mask, int Blends, int Whole,
          class W>
CVCLI_FN void dense(const W& work, const Each<DenseParams>& each) {
    using In = typename W::In;
    if constexpr (RX < 0) {
        static_assert(Blends == 0, "blends are of small filters");
        filter_pixels(work, each);
    } else {
        using Shape = Strip<typename In::Sample, In::kChannels, RX, RY, Halves, Height, Rows>;
        filter_strips<Shape, Taps<Shape, Mask, Blends != 0, Whole != 0>>(work, each);
    }
}

}  // namespace cvcli
