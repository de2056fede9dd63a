// The steps in which a block goes down a strip: rows come in, go through a filter into shared
// memory, and a thread makes results of four columns of what lies there.
#pragma once

#include "core/bytes_cuda.h"
#include "core/strip_store_cuda.h"

namespace cvcli {

template <bool First, class A, class B>
struct Either {
    using type = A;
};
template <class A, class B>
struct Either<false, A, B> {
    using type = B;
};

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

// The extremes of two halves of a word each.
template <bool Largest>
CVCLI_FN uint32_t pick_halves(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && !defined(CVCLI_EMULATED)
    uint32_t picked;
    if constexpr (Largest) {
        asm("max.u16x2 %0, %1, %2;" : "=r"(picked) : "r"(a), "r"(b));
    } else {
        asm("min.u16x2 %0, %1, %2;" : "=r"(picked) : "r"(a), "r"(b));
    }
    return picked;
#else
    return Largest ? __vmaxu2(a, b) : __vminu2(a, b);
#endif
}

// Four values of a row in shared memory are a chunk.
template <class Value>
struct alignas(16) FourOf {
    Value v[4];
};

// Values of `Rows` rows of `Chunks` in shared memory, and of `Side` chunks to the left and right of
// each, which come last. Where a chunk is keeps those that neighbouring threads write, some chunks
// apart or in the next row, in different banks. There are as many Buffers of them.
template <class V, int Rows, int Chunks, int Side, int Buffers = 1>
struct Middle {
    using Value = V;
    static constexpr int kSide = Side;
    static constexpr int kChunks = Chunks;
    static constexpr int kWhole = (Chunks + 7) / 8 * 8;
    static constexpr int kPitch = kWhole + (2 * Side + 7) / 8 * 8;
    CVCLI_FN static int place(int row, int chunk) {
        const int within = chunk ^ (chunk >> 3 & 7) ^ row % 2 * 4;
        const bool beside = Side && (chunk < 0 || chunk >= Chunks);
        return row * kPitch + (beside ? side_place(chunk) : within);
    }
    static constexpr int kCount = Rows * kPitch;
    // Neighbours differ in the lowest bits of their addresses.
    __align__(128) FourOf<V> four[Buffers * kCount];
    // Where those of a step begin.
    CVCLI_FN static int first(int step) { return step % Buffers * kCount; }

  private:
    CVCLI_FN static int side_place(int chunk) {
        return chunk < 0 ? kWhole + Side + chunk : kWhole + Side + chunk - Chunks;
    }
};

// How many samples of a row a thread takes at once: bytes so many that all threads have some.
template <class Shape>
constexpr int line_samples() {
    return sizeof(typename Shape::Sample) == 1 ? 4 * Shape::kRows : 16;
}

// How the threads of a block share the rows of a step: G samples of one row each, and so on as many
// rows further down as they make together.
template <class Shape, class Room, int G>
struct LineShare {
    static constexpr int kGroups = Shape::kSamples / G;
    static constexpr int kTogether = Shape::kColumns / kGroups;
    static_assert(kGroups * G == Shape::kSamples && kTogether * kGroups == Shape::kColumns &&
                      Shape::kRows % kTogether == 0 && kTogether % 2 == 0,
                  "rows are shared evenly");
    const uint8_t* from;
    FourOf<typename Room::Value>* to;
    bool mine;
    CVCLI_FN LineShare(const uint8_t* rooms, Room& middle) {
        const int row = threadIdx.x / kGroups, group = threadIdx.x % kGroups;
        constexpr int bytes = G * sizeof(typename Shape::Sample);
        from = kept_place(rooms + row * Shape::kPitch + group * bytes);
        to = kept_place(middle.four + Room::place(row, group * (G / 4)));
        mine = kept(threadIdx.x < Shape::kColumns ? 1 : 0);
    }
};

// Of a line's words, from kPad bytes left of the results on, the results of a row: values one by
// one. A filter may have another way.
template <class Shape, class Filter, int H, int N, int G>
CVCLI_FN void make_line(const Filter& filter, const uint32_t (&words)[H][N],
                        typename Filter::Value (&sums)[G]) {
    constexpr int reach = Filter::kReach, pad = Shape::kPad / int(sizeof(typename Shape::Sample));
    typename Filter::Value v[G + 2 * reach];
#pragma unroll
    for (int k = 0; k < G + 2 * reach; ++k) v[k] = filter.value(words, pad - reach + k);
    filter.line(v, sums);
}

// Rows that have come in, `place` bytes into the rooms, through filter.line(values, results) and to
// the middle, from chunk `first` of it on.
template <class Shape, class Room, class Filter, class Line>
CVCLI_FN void filter_lines(const Filter& filter, const Line& line, int place, int first) {
    using Value = typename Filter::Value;
    constexpr int G = Filter::kLine, size = sizeof(typename Shape::Sample);
    if (!line.mine) return;
#pragma unroll 1
    for (int row = 0; row < Shape::kRows; row += Line::kTogether) {
        uint32_t words[Shape::kHalves][(2 * Shape::kPad + G * size) / 4];
#pragma unroll
        for (int h = 0; h < Shape::kHalves; ++h) {
            read_words(line.from + place + (h * Shape::kRows + row) * Shape::kPitch, words[h]);
        }
        Value sums[G];
        make_line<Shape>(filter, words, sums);
#pragma unroll
        for (int q = 0; q < G / 4; ++q) {
            *other_place(line.to + first + row * Room::kPitch, q * 16) = {
                sums[4 * q], sums[4 * q + 1], sums[4 * q + 2], sums[4 * q + 3]};
        }
    }
}

// The chunks beside those rows, as they are.
template <class Shape, class Filter, class Room>
CVCLI_FN void copy_sides(const Filter& filter, const uint8_t* room, Room& middle) {
    constexpr int each = 2 * Room::kSide, size = sizeof(typename Shape::Sample);
    if constexpr (each > 0) {
        if (threadIdx.x >= Shape::kRows * each) return;
        const int row = threadIdx.x / each, j = threadIdx.x % each;
        const int chunk = j < Room::kSide ? j - Room::kSide : Room::kChunks - Room::kSide + j;
        uint32_t words[Shape::kHalves][size];
#pragma unroll
        for (int h = 0; h < Shape::kHalves; ++h) {
            const uint8_t* from =
                room + (h * Shape::kRows + row) * Shape::kPitch + Shape::kPad + chunk * 4 * size;
#pragma unroll
            for (int k = 0; k < size; ++k) words[h][k] = reinterpret_cast<const uint32_t*>(from)[k];
        }
        middle.four[Room::place(row, chunk)] = {filter.value(words, 0), filter.value(words, 1),
                                                filter.value(words, 2), filter.value(words, 3)};
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

// The same of pairs, one in each half of a word: results of both halves of a strip.
template <class T>
CVCLI_FN void unpair(const uint32_t (&v)[4], Words<sizeof(T)> (&words)[2]) {
    if constexpr (sizeof(T) == 1) {
        const uint32_t left = __byte_perm(v[0], v[1], 0x6240);
        const uint32_t right = __byte_perm(v[2], v[3], 0x6240);
        words[0] = {{__byte_perm(left, right, 0x5410)}};
        words[1] = {{__byte_perm(left, right, 0x7632)}};
    } else {
        words[0] = {{__byte_perm(v[0], v[1], 0x5410), __byte_perm(v[2], v[3], 0x5410)}};
        words[1] = {{__byte_perm(v[0], v[1], 0x7632), __byte_perm(v[2], v[3], 0x7632)}};
    }
}

template <class T>
CVCLI_FN uint32_t sample_bits(T sample) {
    if constexpr (sizeof(T) == 4) return bits_of(sample);
    return static_cast<uint32_t>(sample);
}

// The rows of a strip that are in shared memory: of a step and the next, and of the last if filters
// want to see what they have made results of.
template <class Shape, bool Keeps>
struct StepRooms {
    static constexpr int kCount = Keeps ? 3 : 2;
    uint8_t* memory;
    CVCLI_FN static int place(int step) { return step % kCount * Shape::kBytes; }
    // The image's own samples that this thread makes results of, in row r of a step.
    CVCLI_FN Words<sizeof(typename Shape::Sample)> own(int step, int r) const {
        constexpr int size = sizeof(typename Shape::Sample);
        const int row = r - Shape::kRadiusY;
        const uint8_t* from = memory + place(row < 0 ? step + kCount - 1 : step);
        from += (row < 0 ? row + Shape::kRows : row) * Shape::kPitch + Shape::kPad;
        Words<size> words;
#pragma unroll
        for (int i = 0; i < size; ++i) {
            words.v[i] = reinterpret_cast<const uint32_t*>(from)[own_column<Shape>() * size + i];
        }
        return words;
    }
};

// Of what results are made: a step's first row of them, counted from the strip's, and what there
// is of the image itself.
template <class Rooms>
struct StepAt {
    const Rooms& rooms;
    int step;
    int32_t row;
    CVCLI_FN auto own(int r) const { return rooms.own(step, r); }
};

// One strip, by all of its block's threads. Filter::Columns keeps what a thread needs of the steps
// before: take(filter, step) gets new rows, make(filter, at, results) gives as many of results,
// move() ends the step.
template <class Shape, class Filter, class W>
struct StripOfSteps {
    static constexpr int kWords = sizeof(typename Shape::Sample);
    using From = Source<Shape, typename W::Read>;
    using To = Sink<Shape, kWords, Shape::kRows, Shape::kRows, W>;
    using Room = typename Filter::Columns::Room;
    using Rooms = StepRooms<Shape, Filter::kOwn>;
    // Steps before the first that has results.
    static constexpr int kFirst = (2 * Shape::kRadiusY + Shape::kRows - 1) / Shape::kRows;
    const Filter& filter;
    Rooms rooms;
    Room& middle;

    // Rows of a step come in while those of the one before are worked on.
    CVCLI_FN void run(From& source, To& upper, To& lower, int32_t rows) const {
        typename Filter::Columns columns(middle);
        const LineShare<Shape, Room, Filter::kLine> line(rooms.memory, middle);
        rows = kept(rows + kFirst * Shape::kRows);
        source.begin(0);
#pragma unroll 1
        for (int step = 0; rows > 0; ++step) {
            copies_done();
            __syncthreads();
            rows -= Shape::kRows;
            if (rows > 0) source.begin(Rooms::place(step + 1));
            filter_lines<Shape, Room>(filter, line, Rooms::place(step), Room::first(step));
            copy_sides<Shape>(filter, rooms.memory + Rooms::place(step), middle);
            __syncthreads();
            columns.take(filter, step);
            if (step >= kFirst) make(columns, step, upper, lower);
            columns.move();
        }
    }

  private:
    CVCLI_FN void make(const typename Filter::Columns& columns, int step, To& upper,
                       To& lower) const {
        Words<kWords> results[Shape::kHalves][Shape::kRows];
        columns.make(filter, StepAt<Rooms>{rooms, step, (step - kFirst) * Shape::kRows}, results);
        // What the next step needs stays.
        uint8_t* staged = reinterpret_cast<uint8_t*>(middle.four + Room::first(step + 1));
        upper.put(results[0], staged);
        if constexpr (Shape::kHalves > 1) lower.put(results[Shape::kHalves - 1], staged);
    }
};

// A whole launch: Filter(params, place) is made for each strip.
template <class Shape, class Filter, class W, class Params>
CVCLI_FN void filter_strips(const W& work, const Each<Params>& each) {
    using Strips = StripOfSteps<Shape, Filter, W>;
    __shared__ __align__(16) uint8_t room[Strips::Rooms::kCount * Shape::kBytes];
    __shared__ typename Strips::Room middle;
    for_each_strip<Shape>(
        work, each,
        [&](int32_t index, const Image& dst, const Params& params, const StripPlace& place) {
            const Image src = work.src(index);
            const auto reader = work.reader(src, index);
            const Filter filter(params, place);
            const int32_t y = place.source_y + Shape::kRadiusY - Strips::kFirst * Shape::kRows;
            typename Strips::From source(reader, params.frame, params.edges, y, place.source_x,
                                         dst.width - place.x, room);
            const int column = threadIdx.x * Strips::kWords;
            typename Strips::To upper(work, dst, place, 0, column, 0);
            typename Strips::To lower(work, dst, place, Shape::kHalves - 1, column, 0);
            const Strips strip = {filter, {room}, middle};
            strip.run(source, upper, lower, smaller(dst.height - place.y, Shape::kHeight));
        });
}

}  // namespace cvcli
