// Filters along rows, then columns, on the GPU. A block goes down a strip eight rows at a time:
// rows go through the filter into shared memory, and a thread, which has four columns of samples,
// keeps as many of their rows in registers as the filter reaches.
#pragma once

#include "core/strip_store_cuda.h"

namespace cvcli {

constexpr int kStepRows = 8;

template <bool First, class A, class B>
struct Either {
    using type = A;
};
template <class A, class B>
struct Either<false, A, B> {
    using type = B;
};

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

// Two samples of 16 bits a word: of a row and of the one as far down in the other half of a strip.
// Bytes have zeros above them.
template <class T>
CVCLI_FN uint32_t pair_at(uint32_t upper, uint32_t lower, int sample) {
    const bool high = sizeof(T) == 1 ? sample >= 2 : sample;
    const uint32_t both = __byte_perm(upper, lower, high ? 0x7632 : 0x5410);
    if constexpr (sizeof(T) == 2) return both;
    return sample % 2 ? __byte_perm(both, 0, 0x4341) : both & 0x00ff00ffu;
}

// Four values of a row in shared memory are a chunk. Which one keeps those that neighbouring
// threads write, some chunks apart or in the next row, in different banks.
CVCLI_FN int chunk_place(int row, int chunk) {
    return row * (kStripSamples / 4) + (chunk ^ (chunk >> 3 & 7) ^ row % 2 * 4);
}

template <class Value>
struct alignas(16) FourOf {
    Value v[4];
};

// How the threads of a block share the rows of a step: G samples of one row each, and so on as many
// rows further down as they make together.
template <class Shape, int G>
struct LineShare {
    static constexpr int kGroups = kStripSamples / G;
    static constexpr int kTogether = kStripThreads / kGroups;
    static_assert(kStepRows % kTogether == 0 && kTogether % 2 == 0, "no thread is left over");
    int from;  // in the source's rows, in bytes
    int to;    // in the middle, in chunks
    CVCLI_FN LineShare() {
        const int row = threadIdx.x / kGroups, group = threadIdx.x % kGroups;
        from = kept(row * Shape::kPitch + group * G * int(sizeof(typename Shape::Sample)));
        to = kept(chunk_place(row, group * (G / 4)));
    }
};

// Rows that have come in through filter.line(values, results).
template <class Shape, class Filter, class Line>
CVCLI_FN void filter_lines(const Filter& filter, const Line& line, const uint8_t* room,
                           typename Filter::Value* middle) {
    using Value = typename Filter::Value;
    constexpr int G = Filter::kLine, size = sizeof(typename Shape::Sample);
    constexpr int reach = Shape::kRadiusX * Shape::kChannels;
#pragma unroll 1
    for (int row = 0; row < kStepRows; row += Line::kTogether) {
        uint32_t words[Shape::kHalves][(2 * Shape::kPad + G * size) / 4];
#pragma unroll
        for (int h = 0; h < Shape::kHalves; ++h) {
            read_words(room + line.from + (h * kStepRows + row) * Shape::kPitch, words[h]);
        }
        Value v[G + 2 * reach], sums[G];
#pragma unroll
        for (int k = 0; k < G + 2 * reach; ++k) {
            v[k] = filter.value(words, Shape::kPad / size - reach + k);
        }
        filter.line(v, sums);
        FourOf<Value>* to = reinterpret_cast<FourOf<Value>*>(middle) + row * (kStripSamples / 4);
#pragma unroll
        for (int q = 0; q < G / 4; ++q) {
            to[line.to ^ q] = {sums[4 * q], sums[4 * q + 1], sums[4 * q + 2], sums[4 * q + 3]};
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

// Four columns of a strip and what a thread keeps of them: as many rows as it needs beside eight
// new ones, those of the last step first.
template <class Shape, class Filter>
struct FourColumns {
    using T = typename Shape::Sample;
    using Value = typename Filter::Value;
    using Results = Words<sizeof(T)>[Shape::kHalves][kStepRows];
    static constexpr int kKept = 2 * Shape::kRadiusY;
    Value v[4][kKept + kStepRows] = {};
    int place[2] = {kept(chunk_place(0, threadIdx.x)), kept(chunk_place(1, threadIdx.x))};

    CVCLI_FN void take(const Value* middle) {
        const FourOf<Value>* from = reinterpret_cast<const FourOf<Value>*>(middle);
#pragma unroll
        for (int r = 0; r < kStepRows; ++r) {
            const FourOf<Value> four = from[place[r % 2] + r / 2 * 2 * (kStripSamples / 4)];
#pragma unroll
            for (int i = 0; i < 4; ++i) v[i][kKept + r] = four.v[i];
        }
    }
    // Through filter.column(values, results), and four of a row through filter.finish(values,
    // the image's own samples, words), in whose place there is own(row, i).
    template <class Own>
    CVCLI_FN void make(const Filter& filter, const Own& own, Results& results) const {
        Value values[4][kStepRows];
#pragma unroll
        for (int i = 0; i < 4; ++i) filter.column(v[i], values[i]);
#pragma unroll
        for (int r = 0; r < kStepRows; ++r) {
            const Value four[4] = {values[0][r], values[1][r], values[2][r], values[3][r]};
            Words<sizeof(T)> words[Shape::kHalves];
            filter.finish(four, [&](int i) { return own(r, i); }, words);
#pragma unroll
            for (int h = 0; h < Shape::kHalves; ++h) results[h][r] = words[h];
        }
    }
    CVCLI_FN void move() {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int k = 0; k < kKept; ++k) v[i][k] = v[i][k + kStepRows];
        }
    }
};

// The rows of a strip that are in shared memory: of the last step too, if filters want to see what
// they have made results of.
template <class Shape, bool Keeps>
struct StepRooms {
    static constexpr int kCount = Keeps ? 3 : 1;
    uint8_t* memory;
    CVCLI_FN uint8_t* of(int step) const { return memory + step % kCount * Shape::kBytes; }
    // The image's own samples that results of row r of a step are made of, from a column on.
    CVCLI_FN float own(int step, int r, int column) const {
        const int row = r - Shape::kRadiusY;
        const uint8_t* from = of(row < 0 ? step + kCount - 1 : step);
        from += (row & (kStepRows - 1)) * Shape::kPitch + Shape::kPad;
        return static_cast<float>(reinterpret_cast<const typename Shape::Sample*>(from)[column]);
    }
};

// One strip, by all of its block's threads.
template <class Shape, class Filter, class W>
struct StripOfAxes {
    using Value = typename Filter::Value;
    using From = Source<Shape, typename W::Read>;
    using To = Sink<Shape, sizeof(typename Shape::Sample), kStepRows, kStepRows, W>;
    using Line = LineShare<Shape, Filter::kLine>;
    // Steps before the first that has results.
    static constexpr int kFirst = (2 * Shape::kRadiusY + kStepRows - 1) / kStepRows;
    const Filter& filter;
    const StepRooms<Shape, Filter::kOwn>& rooms;
    Value* middle;

    // Rows of a step come in while those of the one before are worked on.
    CVCLI_FN void run(From& source, To& upper, To& lower, int32_t rows) const {
        FourColumns<Shape, Filter> columns;
        const Line line;
        typename From::Fetched fetched;
        rows = kept(rows + kFirst * kStepRows);
        source.fetch(fetched);
        source.keep(fetched, rooms.of(0));
        __syncthreads();
#pragma unroll 1
        for (int step = 0; rows > 0; ++step) {
            filter_lines<Shape>(filter, line, rooms.of(step), middle);
            __syncthreads();
            rows -= kStepRows;
            if (rows > 0) source.fetch(fetched);
            columns.take(middle);
            if (step >= kFirst) make(columns, step, upper, lower);
            columns.move();
            if (rows > 0) source.keep(fetched, rooms.of(step + 1));
            __syncthreads();
        }
    }

  private:
    CVCLI_FN void make(const FourColumns<Shape, Filter>& columns, int step, To& upper,
                       To& lower) const {
        typename FourColumns<Shape, Filter>::Results results;
        const auto own = [&](int r, int i) { return rooms.own(step, r, 4 * threadIdx.x + i); };
        columns.make(filter, own, results);
        uint8_t* staged = reinterpret_cast<uint8_t*>(middle);
        upper.put(results[0], staged);
        if constexpr (Shape::kHalves > 1) lower.put(results[Shape::kHalves - 1], staged);
    }
};

// A whole launch: Filter(params) is made for each strip.
template <class Shape, class Filter, class W, class Params>
CVCLI_FN void filter_axes(const W& work, const Each<Params>& each) {
    using Strips = StripOfAxes<Shape, Filter, W>;
    using Rooms = StepRooms<Shape, Filter::kOwn>;
    static_assert(Shape::kRows == kStepRows, "a step takes as many rows as it makes");
    __shared__ __align__(16) uint8_t room[Rooms::kCount * Shape::kBytes];
    __shared__ __align__(16) typename Filter::Value middle[kStepRows * kStripSamples];
    for_each_strip<Shape>(
        work, each,
        [&](int32_t index, const Image& dst, const Params& params, const StripPlace& place) {
            const Image src = work.src(index);
            const auto reader = work.reader(src, index);
            const Filter filter(params);
            const int32_t y = place.source_y + Shape::kRadiusY - Strips::kFirst * kStepRows;
            typename Strips::From source(reader, params.frame, params.edges, y, place.source_x,
                                         dst.width - place.x);
            const int column = threadIdx.x * int(sizeof(typename Shape::Sample));
            typename Strips::To upper(work, dst, place, 0, column, 0);
            typename Strips::To lower(work, dst, place, Shape::kHalves - 1, column, 0);
            const Rooms rooms = {room};
            const Strips strip = {filter, rooms, middle};
            strip.run(source, upper, lower, smaller(dst.height - place.y, Shape::kHeight));
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
