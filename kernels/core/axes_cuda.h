// Filters along rows, then columns, on the GPU.
#pragma once

#include "core/strip_steps_cuda.h"

namespace cvcli {

// Four columns of a strip: as many rows as a thread needs beside the new ones, then those. The last
// step's are read again if all of them are needed, others kept.
template <class Shape, class V>
struct FourColumns {
    static constexpr int kBeside = 2 * Shape::kRadiusY;
    static constexpr bool kAgain = kBeside >= Shape::kRows;
    static constexpr int kKept = kBeside - (kAgain ? Shape::kRows : 0);
    using Room = Middle<V, Shape::kRows, Shape::kColumns, 0, kAgain ? 2 : 1>;
    V v[4][kBeside + Shape::kRows] = {};
    const FourOf<V>* from[2];  // of an even row and of an odd one

    CVCLI_FN FourColumns(const Room& middle) {
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
            from[odd] = kept_place(middle.four + Room::place(odd, own_column<Shape>()));
        }
    }
    template <class Filter>
    CVCLI_FN void take(const Filter&, int step) {
        if constexpr (kAgain) read(Room::first(step + 1), kKept);
        read(Room::first(step), kBeside);
    }
    // Through filter.column(values, results), and four of a row through filter.finish(values,
    // own, words): own() has the image's samples.
    template <class Filter, class At, int H, int N>
    CVCLI_FN void make(const Filter& filter, const At& at,
                       Words<N> (&results)[H][Shape::kRows]) const {
        V values[4][Shape::kRows];
#pragma unroll
        for (int i = 0; i < 4; ++i) filter.column(v[i], values[i]);
#pragma unroll
        for (int r = 0; r < Shape::kRows; ++r) {
            const V four[4] = {values[0][r], values[1][r], values[2][r], values[3][r]};
            Words<N> words[H];
            filter.finish(four, [&] { return at.own(r); }, words);
#pragma unroll
            for (int h = 0; h < H; ++h) results[h][r] = words[h];
        }
    }
    CVCLI_FN void move() {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int k = 0; k < kKept; ++k) v[i][k] = v[i][k + Shape::kRows];
        }
    }

  private:
    CVCLI_FN void read(int first, int to) {
#pragma unroll
        for (int r = 0; r < Shape::kRows; ++r) {
            const FourOf<V> four = from[r % 2][first + r / 2 * 2 * Room::kPitch];
#pragma unroll
            for (int i = 0; i < 4; ++i) v[i][to + r] = four.v[i];
        }
    }
};

// The same for any radius, a thread a pixel: rows are read where they lie. Filter gives
// start(value), add(sum, k, low + high) for k = 1 to radius, along x and y, and finish(sum, own).
constexpr int kLongWidth = 16;
constexpr int kLongHeight = 32;
constexpr int kLongRadius = 63;
constexpr int kLongThreads = 256;

template <class W>
CVCLI_FN typename W::In bordered_at(const typename W::Read& reader, const Frame& frame,
                                    const Edges& edges, int32_t y, int32_t x) {
    using In = typename W::In;
    y = border_index(y, frame.height, edges.border);
    x = border_index(x, frame.width, edges.border);
    if (y >= 0 && x >= 0) return reader.at(y, x);
    In pixel;
#pragma unroll
    for (int c = 0; c < In::kChannels; ++c) {
        pixel.v[c] = static_cast<typename In::Sample>(edges.value[c]);
    }
    return pixel;
}

template <class W, class Filter, class Params>
CVCLI_FN void long_line(const typename W::Read& reader, const Filter& filter, const Params& params,
                        int32_t y, int32_t x, typename Filter::Sum* sums) {
    constexpr int C = W::In::kChannels;
    const auto at = [&](int32_t column) {
        return bordered_at<W>(reader, params.frame, params.edges, y, column);
    };
    const auto own = at(x);
#pragma unroll
    for (int c = 0; c < C; ++c) sums[c] = filter.start_x(own.v[c]);
#pragma unroll 1
    for (int32_t k = 1; k <= params.radius_x; ++k) {
        const auto low = at(x - k), high = at(x + k);
#pragma unroll
        for (int c = 0; c < C; ++c) sums[c] = filter.add_x(sums[c], k, low.v[c], high.v[c]);
    }
}

template <class Filter, class W, class Params>
CVCLI_FN void filter_long_axes(const W& work, const Each<Params>& each) {
    using In = typename W::In;
    using Sum = typename Filter::Sum;
    constexpr int C = In::kChannels, row_sums = kLongWidth * C;
    __shared__ Sum middle[(kLongHeight + 2 * kLongRadius) * row_sums];
    for_each_tile(
        work.args, kLongHeight, work.args.dst, [&](int32_t index, int32_t tile_x, int32_t tile_y) {
            const Image src = work.src(index), dst = work.dst(index);
            const Params& params = work.params(each, index);
            const auto reader = work.reader(src, index);
            const Filter filter(params);
            const int32_t x0 = tile_x * kLongWidth, y0 = tile_y * kLongHeight;
            if (x0 >= dst.width) return;
            const int32_t wanted = smaller(kLongHeight, dst.height - y0) + 2 * params.radius_y;
            const int32_t source_y = y0 + params.frame.y0 - params.radius_y;
            const int32_t source_x = x0 + params.frame.x0;
            for (int i = threadIdx.x; i < wanted * kLongWidth; i += kLongThreads) {
                const int32_t y = source_y + i / kLongWidth, x = source_x + i % kLongWidth;
                long_line<W>(reader, filter, params, y, x, middle + i * C);
            }
            __syncthreads();
            for (int i = threadIdx.x; i < kLongHeight * kLongWidth; i += kLongThreads) {
                const int32_t y = y0 + i / kLongWidth, x = x0 + i % kLongWidth;
                if (y >= dst.height || x >= dst.width) continue;
                const Sum* own = middle + i * C + params.radius_y * row_sums;
                const auto source = bordered_at<W>(reader, params.frame, params.edges,
                                                   y + params.frame.y0, x + params.frame.x0);
                In pixel;
#pragma unroll
                for (int c = 0; c < C; ++c) {
                    Sum sum = filter.start_y(own[c]);
                    for (int32_t k = 1; k <= params.radius_y; ++k) {
                        sum = filter.add_y(sum, k, own[c - k * row_sums], own[c + k * row_sums]);
                    }
                    pixel.v[c] = filter.finish(sum, source.v[c]);
                }
                work.write(dst, y, x, pixel);
            }
            __syncthreads();
        });
}

}  // namespace cvcli
