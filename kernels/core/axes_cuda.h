// Filters along rows, then columns, on the GPU: a tile's rows become floats in shared memory, and
// a thread makes several results of a row, or of four columns, from what it has read once.
#pragma once

#include "core/tile_cuda.h"

namespace cvcli {

// A byte or a word of a register as a float, at full rate: it becomes the end of 2^23's mantissa.
template <class T>
CVCLI_FN float float_at(uint32_t word, int sample) {
    constexpr uint32_t big = 0x4b000000u;
    if constexpr (sizeof(T) == 1) {
        return float_of(__byte_perm(word, big, 0x7440 | sample)) - 8388608.0f;
    } else if constexpr (sizeof(T) == 2) {
        return float_of(__byte_perm(word, big, sample ? 0x7432 : 0x7410)) - 8388608.0f;
    } else {
        return float_of(word);
    }
}

// N words that lie 16-byte aligned in shared memory.
template <int N>
CVCLI_FN void read_words(const uint8_t* from, uint32_t (&words)[N]) {
    static_assert(N % 4 == 0, "whole chunks");
#pragma unroll
    for (int i = 0; i < N; i += 4) {
        const uint4 chunk = *reinterpret_cast<const uint4*>(from + 4 * i);
        words[i] = chunk.x;
        words[i + 1] = chunk.y;
        words[i + 2] = chunk.z;
        words[i + 3] = chunk.w;
    }
}

// Samples of a row of a tile as floats: `count` of them from group g of G samples on, and those
// that the radius reaches on either side.
template <class Shape, int G>
struct LineOf {
    using T = typename Shape::Sample;
    static constexpr int kReach = Shape::kRadiusX * Shape::kChannels;
    static constexpr int kCount = G + 2 * kReach;
    static constexpr int kWords = (2 * Shape::kPad + G * int(sizeof(T))) / 4;
    float v[kCount];
    CVCLI_FN void read(const uint8_t* row, int group) {
        uint32_t words[kWords];
        read_words(row + group * G * int(sizeof(T)), words);
        constexpr int first = Shape::kPad / int(sizeof(T)) - kReach;
        constexpr int each = 4 / int(sizeof(T));
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            v[i] = float_at<T>(words[(first + i) / each], (first + i) % each);
        }
    }
};

// Four samples of a row of floats lie in one chunk. Which one keeps the chunks that neighbouring
// threads write, two, four or eight apart, in different banks; Count is how many a row has.
template <int Count>
CVCLI_FN int chunk_place(int chunk) {
    return chunk ^ (chunk >> 3 & (Count % 8 == 0 ? 7 : 3));
}

// How many results a thread makes of a row at once: the wider the filter, the more of them share
// what it has to read.
template <class Shape>
constexpr int kLineSamples = sizeof(typename Shape::Sample) == 4                           ? 8
                             : sizeof(typename Shape::Sample) == 1 && Shape::kRadiusX >= 5 ? 32
                                                                                           : 16;

// The tile's rows through filter.line(floats, results).
template <class Shape, class Filter>
CVCLI_FN void filter_lines(const Filter& filter, const uint8_t* room, float* middle) {
    constexpr int G = kLineSamples<Shape>;
    constexpr int samples = Shape::kWidth * Shape::kChannels, groups = samples / G;
    static_assert(samples % G == 0 && G % 4 == 0, "rows are whole groups");
#pragma unroll 1
    for (int i = threadIdx.x; i < groups * Shape::kRows; i += Shape::kThreads) {
        const int row = i / groups, group = i % groups;
        LineOf<Shape, G> line;
        line.read(room + row * Shape::kPitch, group);
        float sums[G];
        filter.line(line.v, sums);
#pragma unroll
        for (int q = 0; q < G / 4; ++q) {
            const int chunk = chunk_place<samples / 4>(group * (G / 4) + q);
            *reinterpret_cast<float4*>(middle + row * samples + 4 * chunk) = {
                sums[4 * q], sums[4 * q + 1], sums[4 * q + 2], sums[4 * q + 3]};
        }
    }
}

// Four results as they lie in memory; of each only as many bits as a sample has count.
template <class T>
CVCLI_FN Words<sizeof(T)> packed(const uint32_t (&v)[4]) {
    if constexpr (sizeof(T) == 1) {
        const uint32_t low = __byte_perm(v[0], v[1], 0x0040);
        return {{__byte_perm(low, __byte_perm(v[2], v[3], 0x0040), 0x5410)}};
    } else if constexpr (sizeof(T) == 2) {
        return {{__byte_perm(v[0], v[1], 0x5410), __byte_perm(v[2], v[3], 0x5410)}};
    } else {
        return {{v[0], v[1], v[2], v[3]}};
    }
}

template <class T>
CVCLI_FN uint32_t sample_bits(T sample) {
    if constexpr (sizeof(T) == 4) return bits_of(sample);
    return static_cast<uint32_t>(sample);
}

// The tile's columns through filter.column(sums, results), and each result through
// filter.sample(value, the image's own sample), which gives its bits.
template <class Shape, class Filter>
CVCLI_FN void filter_columns(
    const Filter& filter, const uint8_t* room, const float* middle,
    Words<sizeof(typename Shape::Sample)> (
        &results)[Columns<Shape, sizeof(typename Shape::Sample)>::kRounds]) {
    using T = typename Shape::Sample;
    using Own = Columns<Shape, sizeof(T)>;
    constexpr int samples = Shape::kWidth * Shape::kChannels;
    constexpr int rounds = Own::kRounds, reach = rounds + 2 * Shape::kRadiusY;
    const int column = Own::column(), first = Own::row();
    float window[4][reach];
#pragma unroll
    for (int k = 0; k < reach; ++k) {
        const int row = first + k;
        const float4 four = *reinterpret_cast<const float4*>(middle + row * samples +
                                                             4 * chunk_place<samples / 4>(column));
        window[0][k] = four.x;
        window[1][k] = four.y;
        window[2][k] = four.z;
        window[3][k] = four.w;
    }
    float values[4][rounds];
#pragma unroll
    for (int i = 0; i < 4; ++i) filter.column(window[i], values[i]);
#pragma unroll
    for (int r = 0; r < rounds; ++r) {
        uint32_t four[4];
        const int row = first + r + Shape::kRadiusY;
        const T* own = reinterpret_cast<const T*>(room + row * Shape::kPitch + Shape::kPad);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            four[i] = filter.sample(values[i][r], [&] { return float(own[4 * column + i]); });
        }
        results[r] = packed<T>(four);
    }
}

// A whole launch: Filter(params) is made for each tile.
template <class Shape, class Filter, class W, class Params>
CVCLI_FN void filter_axes(const W& work, const Each<Params>& each) {
    using T = typename Shape::Sample;
    constexpr int words = sizeof(T);
    __shared__ __align__(16) uint8_t room[Shape::kBytes];
    __shared__ __align__(16) float middle[Shape::kRows * Shape::kWidth * Shape::kChannels];
    for_each_place<Shape>(
        work, each,
        [&](int32_t index, const Image& dst, const Params& params, const TilePlace& place) {
            const Image src = work.src(index);
            const Filter filter(params);
            load_tile<Shape>(work.reader(src, index), room, place, params.frame, params.edges);
            __syncthreads();
            filter_lines<Shape>(filter, room, middle);
            __syncthreads();
            Words<words> results[Columns<Shape, words>::kRounds];
            filter_columns<Shape>(filter, room, middle, results);
            store_results<Shape, words>(work, dst, place, room, results);
        });
}

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
