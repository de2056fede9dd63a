// Results of a strip on their way from registers to the destination, some rows at a time.
#pragma once

#include "core/strip_cuda.h"

namespace cvcli {

// N words in a row.
template <int N>
struct Words {
    uint32_t v[N];
};

template <int N>
CVCLI_FN void store_words(uint8_t* to, const Words<N>& words) {
    static_assert(N == 1 || N == 2 || N == 4, "as wide as a store");
    if constexpr (N == 4) {
        *reinterpret_cast<uint4*>(to) = {words.v[0], words.v[1], words.v[2], words.v[3]};
    } else if constexpr (N == 2) {
        *reinterpret_cast<uint2*>(to) = {words.v[0], words.v[1]};
    } else {
        *reinterpret_cast<uint32_t*>(to) = words.v[0];
    }
}

// Takes results of one half of a strip, All rows of it at a time: of each thread N words of `Rows`
// rows, `column` words into the strip's row and `row` rows down.
template <class Shape, int N, int Rows, int All, class W>
class Sink {
    using B = Bits<typename Shape::Sample>;
    static constexpr bool kPlain = W::kPlainOut;

  public:
    CVCLI_FN Sink(const W& work, const Image& dst, const StripPlace& place, int half, int column,
                  int row)
        : work_(work),
          dst_(dst),
          x_(place.x),
          y_(place.y + half * Shape::kHeight),
          at_(row * Shape::kRow + column * 4),
          rows_(smaller(dst.height - y_, Shape::kHeight)),
          left_((int64_t{dst.width} - x_) * Shape::kPixel) {
        const bool aligned = ((address(dst.data) | dst.row_pitch) & (4 * N - 1)) == 0;
        const bool near = dst.row_pitch >= 0 && dst.row_pitch < 1ll << 28;
        direct_ = kept(kPlain && aligned && near && left_ >= Shape::kRow ? 1 : 0);
        mine_ = column < Shape::kRow / 4;
        to_ = kept(begin(y_ + row) + column * 4);
    }

    // All threads come here together. `room` takes all rows, unless they are stored as they are.
    CVCLI_FN void put(const Words<N> (&results)[Rows], uint8_t* room) {
        if (direct_ && rows_ >= All) {
            const uint32_t pitch = static_cast<uint32_t>(dst_.row_pitch);
            if (mine_) {
#pragma unroll
                for (int r = 0; r < Rows; ++r) {
                    store_words<N>(in_global(to_) + uint64_t{pitch} * r, results[r]);
                }
            }
        } else {
            __syncthreads();
#pragma unroll
            for (int r = 0; r < Rows; ++r) {
                if (mine_) store_words<N>(room + at_ + r * Shape::kRow, results[r]);
            }
            __syncthreads();
            if constexpr (kPlain) {
                put_shifted(room);
            } else {
                put_pixels(room);
            }
        }
        to_ += All * dst_.row_pitch;
        y_ += All;
        rows_ -= All;
    }

  private:
    CVCLI_FN uint8_t* begin(int32_t y) const {
        return row_at<uint8_t>(dst_, y) + int64_t{x_} * Shape::kPixel;
    }
    // Rows of any alignment: from shared memory by aligned words, their ends by samples.
    CVCLI_FN void put_shifted(const uint8_t* room) const {
        constexpr int words = Shape::kRow / 4 + 1;
        const int bytes = static_cast<int>(smaller(left_, int64_t{Shape::kRow}));
#pragma unroll 1
        for (int i = threadIdx.x; i < smaller(rows_, All) * words; i += Shape::kThreads) {
            const int r = i / words;
            uint8_t* to = begin(y_ + r);
            const uint8_t* from = room + r * Shape::kRow;
            const int lead = static_cast<int>(address(to) & 3), at = i % words * 4 - lead;
            if (at >= 0 && at + 4 <= bytes) {
                const uint32_t* pair = reinterpret_cast<const uint32_t*>(from + (at & ~3));
                const uint32_t next = at & 3 ? pair[1] : 0;
                *reinterpret_cast<uint32_t*>(to + at) =
                    __funnelshift_r(pair[0], next, (at & 3) * 8);
                continue;
            }
#pragma unroll 1
            for (int k = at; k < at + 4; k += int(sizeof(B))) {
                if (k < 0 || k >= bytes) continue;
                store_sample(to + k, *reinterpret_cast<const B*>(from + k));
            }
        }
    }
    // Pixels through the steps after, and to planes.
    CVCLI_FN void put_pixels(const uint8_t* room) const {
        using T = typename Shape::Sample;
        constexpr int C = Shape::kChannels, wide = Shape::kWidth;
#pragma unroll 1
        for (int i = threadIdx.x; i < smaller(rows_, All) * wide; i += Shape::kThreads) {
            const int r = i / wide, x = i % wide;
            if (x_ + x >= dst_.width) continue;
            const T* from = reinterpret_cast<const T*>(room + r * Shape::kRow) + x * C;
            Pixel<T, C> pixel;
#pragma unroll
            for (int c = 0; c < C; ++c) pixel.v[c] = from[c];
            work_.write(dst_, y_ + r, x_ + x, pixel);
        }
    }

    const W& work_;
    const Image& dst_;
    int32_t x_;
    int32_t y_;
    int at_;        // of this thread's results, in the room
    int32_t rows_;  // that are left
    int64_t left_;  // of a row, in bytes
    int direct_ = 0;
    bool mine_ = true;  // whether the thread has results
    uint8_t* to_ = nullptr;
};

}  // namespace cvcli
