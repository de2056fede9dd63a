// The small medians on the GPU: a thread goes down one column of samples, puts the few of each row
// that lie around it in order, and shares what it makes of rows between results.
#pragma once

#include "core/median_net.h"
#include "core/strip_steps_cuda.h"

namespace cvcli {

constexpr int kStepRows = 8;

// Two keys of 16 bits: of a row and of another one half a strip further down.
struct KeyPair {
    uint32_t keys;
};
CVCLI_FN KeyPair lower(KeyPair a, KeyPair b) {
    return {pick_halves<false>(a.keys, b.keys)};
}
CVCLI_FN KeyPair higher(KeyPair a, KeyPair b) {
    return {pick_halves<true>(a.keys, b.keys)};
}

// How keys lie in words: two a word, or one where a key fills it.
template <class T>
struct KeyWords {
    using Word = KeyPair;
    static constexpr int kHalves = 2;
    template <int N>
    CVCLI_FN static Word word(const uint32_t (&words)[2][N], int i) {
        constexpr int each = 4 / int(sizeof(T));
        return {pair_at<T>(words[0][i / each], words[1][i / each], i % each)};
    }
    CVCLI_FN static void finish(const Word (&v)[4], Words<sizeof(T)> (&words)[2]) {
        const uint32_t keys[4] = {v[0].keys, v[1].keys, v[2].keys, v[3].keys};
        unpair<T>(keys, words);
    }
};
template <>
struct KeyWords<float> {
    using Word = uint32_t;
    static constexpr int kHalves = 1;
    template <int N>
    CVCLI_FN static Word word(const uint32_t (&words)[1][N], int i) {
        return order_key(float_of(words[0][i]));
    }
    CVCLI_FN static void finish(const Word (&v)[4], Words<4> (&words)[1]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) words[0].v[i] = bits_of(key_sample(v[i], 0.0f));
    }
};

// Rows of one column, each of the samples around it in order: what results of a step need of those
// before, and how they are made.
template <int size, class Word>
struct SortedRows;

template <class Word>
struct SortedRows<3, Word> {
    Word kept[2][3];
    template <class Row, class Emit>
    CVCLI_FN void step(const Row& row, const Emit& emit) {
        Word rows[kStepRows + 2][3];
#pragma unroll
        for (int i = 0; i < 3; ++i) rows[0][i] = kept[0][i], rows[1][i] = kept[1][i];
#pragma unroll
        for (int r = 0; r < kStepRows; ++r) {
            row(r, rows[r + 2]);
            const Word three[3][3] = {{rows[r][0], rows[r][1], rows[r][2]},
                                      {rows[r + 1][0], rows[r + 1][1], rows[r + 1][2]},
                                      {rows[r + 2][0], rows[r + 2][1], rows[r + 2][2]}};
            emit(r, median_of_columns(three));
        }
#pragma unroll
        for (int i = 0; i < 3; ++i) {
            kept[0][i] = rows[kStepRows][i];
            kept[1][i] = rows[kStepRows + 1][i];
        }
    }
};

// Four rows that two results have in common are two pairs, and each pair is in two such fours.
template <class Word>
struct SortedRows<5, Word> {
    Word outer[5];  // the row above the last pair
    Word below[5];  // the pair's lower row
    Word pair[10];
    Word last[5];  // the row below the pair
    template <class Row, class Emit>
    CVCLI_FN void step(const Row& row, const Emit& emit) {
#pragma unroll
        for (int r = 0; r < kStepRows; r += 2) {
            Word next[5], after[5], more[10], six[6];
            row(r, next);
            row(r + 1, after);
            merge(last, next, more);
            middle_six(pair, more, six);
            emit(r, sixth(six, outer));
            emit(r + 1, sixth(six, after));
            // The lower row of the pair is the one above the next.
#pragma unroll
            for (int i = 0; i < 5; ++i) outer[i] = below[i], below[i] = next[i], last[i] = after[i];
#pragma unroll
            for (int i = 0; i < 10; ++i) pair[i] = more[i];
        }
    }
};

// Keys of the rows of a step, and of as many samples beside them as a window may reach.
template <class Shape>
struct KeyRoom {
    using P = KeyWords<typename Shape::Sample>;
    static constexpr int kBeside = 8, kPitch = Shape::kSamples + 2 * kBeside;
    static constexpr int kGroups = kPitch / 8;
    static_assert(kGroups * kStepRows == Shape::kThreads, "a thread has eight samples of a row");
    typename P::Word keys[kStepRows * kPitch];
    typename P::Word made[kStepRows * Shape::kSamples];

    CVCLI_FN void take(const uint8_t* room) {
        constexpr int size = sizeof(typename Shape::Sample);
        const int row = threadIdx.x / kGroups, group = threadIdx.x % kGroups;
        const int at = Shape::kPad + (group - 1) * 8 * size;
        uint32_t words[P::kHalves][2 * size] = {};
#pragma unroll
        for (int h = 0; h < P::kHalves; ++h) {
            const uint8_t* from = room + (h * kStepRows + row) * Shape::kPitch + at;
#pragma unroll
            for (int k = 0; k < size; ++k) {
                // Lines are at least as wide as windows reach.
                if (at + 8 * k < 0 || at + 8 * k >= Shape::kPitch) continue;
                const uint2 two = reinterpret_cast<const uint2*>(from)[k];
                words[h][2 * k] = two.x, words[h][2 * k + 1] = two.y;
            }
        }
#pragma unroll
        for (int k = 0; k < 8; ++k) keys[row * kPitch + group * 8 + k] = P::word(words, k);
    }
    template <class To>
    CVCLI_FN void store(To& upper, To& lower) {
        constexpr int rows = 2, N = sizeof(typename Shape::Sample);
        Words<N> results[P::kHalves][rows];
#pragma unroll
        for (int r = 0; r < rows; ++r) {
            const int row =
                smaller<int>(threadIdx.x / Shape::kColumns * rows, kStepRows - rows) + r;
            const auto* from = made + row * Shape::kSamples + threadIdx.x % Shape::kColumns * 4;
            const typename P::Word four[4] = {from[0], from[1], from[2], from[3]};
            Words<N> words[P::kHalves];
            P::finish(four, words);
#pragma unroll
            for (int h = 0; h < P::kHalves; ++h) results[h][r] = words[h];
        }
        uint8_t* staged = reinterpret_cast<uint8_t*>(keys);
        upper.put(results[0], staged);
        if constexpr (P::kHalves > 1) lower.put(results[1], staged);
    }
};

// One strip; `y` is the row of the source that the first row of results has in its middle.
template <int size, class Shape, class From, class To>
CVCLI_FN void median_strip(uint8_t* rooms, KeyRoom<Shape>& keys, From& source, To& upper, To& lower,
                           int32_t rows) {
    using Word = typename KeyRoom<Shape>::P::Word;
    constexpr int C = Shape::kChannels, R = size / 2, pitch = KeyRoom<Shape>::kPitch;
    SortedRows<size, Word> sorted = {};
    const int column = smaller<int>(threadIdx.x, Shape::kSamples - 1);
    rows += kStepRows;
    source.begin(0);
#pragma unroll 1
    for (int step = 0; rows > 0; ++step) {
        copies_done();
        __syncthreads();
        rows -= kStepRows;
        if (rows > 0) source.begin((step + 1) % 2 * Shape::kBytes);
        keys.take(rooms + step % 2 * Shape::kBytes);
        __syncthreads();
        sorted.step(
            [&](int r, Word(&row)[size]) {
                const Word* from = keys.keys + r * pitch + KeyRoom<Shape>::kBeside + column;
#pragma unroll
                for (int k = 0; k < size; ++k) row[k] = from[(k - R) * C];
                sort_column(row);
            },
            [&](int r, Word median) {
                if (threadIdx.x < Shape::kSamples) {
                    keys.made[r * Shape::kSamples + threadIdx.x] = median;
                }
            });
        __syncthreads();
        if (step > 0) keys.store(upper, lower);
    }
}

template <int size, int Halves, int Height, int Rows, class W>
CVCLI_FN void median_small(const W& work, const Each<MedianSmallParams>& each) {
    using In = typename W::In;
    using T = typename In::Sample;
    constexpr int R = size / 2;
    static_assert(Rows == kStepRows, "steps are of as many rows");
    using Shape = Strip<T, In::kChannels, R, R, Halves, Height, Rows, 240, 256>;
    using From = Source<Shape, typename W::Read>;
    using To = Sink<Shape, sizeof(T), 2, kStepRows, W>;
    __shared__ __align__(16) uint8_t rooms[2 * Shape::kBytes];
    __shared__ __align__(16) KeyRoom<Shape> keys;
    for_each_strip<Shape>(
        work, each,
        [&](int32_t index, const Image& dst, const MedianSmallParams& params,
            const StripPlace& place) {
            const Image src = work.src(index);
            const auto reader = work.reader(src, index);
            const Edges edges = {kReplicate, 0, {}};
            From source(reader, params.frame, edges, place.source_y + R - kStepRows, place.source_x,
                        dst.width - place.x, rooms);
            const int group = threadIdx.x / Shape::kColumns;
            const int column = threadIdx.x % Shape::kColumns + group / 4 * Shape::kColumns;
            To upper(work, dst, place, 0, column * int(sizeof(T)), group % 4 * 2);
            To lower(work, dst, place, Halves - 1, column * int(sizeof(T)), group % 4 * 2);
            median_strip<size>(rooms, keys, source, upper, lower,
                               smaller(dst.height - place.y, Shape::kHeight));
        });
}

}  // namespace cvcli
