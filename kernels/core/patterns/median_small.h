// The median of 3x3 or 5x5 samples around each; outside the image the edge goes on.
#pragma once

#include "core/median_net.h"
#include "core/pattern.h"
#if !CVCLI_CUDA
#include "core/pack_cpu.h"
#endif

namespace cvcli {

struct MedianSmallParams {
    Frame frame;
    int32_t size;
    int32_t reserved;
};

#if CVCLI_CUDA

// Two keys of 16 bits: of a row and of another one half a tile further down.
struct KeyPair {
    uint32_t keys;
};
CVCLI_FN KeyPair lower(KeyPair a, KeyPair b) {
    return {__vminu2(a.keys, b.keys)};
}
CVCLI_FN KeyPair higher(KeyPair a, KeyPair b) {
    return {__vmaxu2(a.keys, b.keys)};
}

// How a tile's keys lie in words: two a word, or one where a key fills it.
template <class T>
struct KeyPacking {
    using Word = KeyPair;
    static constexpr int kHalves = 2;
    CVCLI_FN static Word pack(T first, T second) {
        return {uint32_t{order_key(first)} | uint32_t{order_key(second)} << 16};
    }
    CVCLI_FN static T sample(Word word, int half) {
        return static_cast<T>(word.keys >> (16 * half) & 0xffffu);
    }
};
template <>
struct KeyPacking<float> {
    using Word = uint32_t;
    static constexpr int kHalves = 1;
    CVCLI_FN static Word pack(float first, float) { return order_key(first); }
    CVCLI_FN static float sample(Word word, int) { return key_sample(word, 0.0f); }
};

// A block makes `width` pixels of kHalves * `rows` rows: each thread sorts columns into shared
// memory, then takes medians of sorted columns.
template <int size, int width, int rows, class W>
CVCLI_FN void median_small(const W& work, const Each<MedianSmallParams>& each) {
    using In = typename W::In;
    using T = typename In::Sample;
    using P = KeyPacking<T>;
    using Word = typename P::Word;
    constexpr int C = In::kChannels;
    constexpr int R = size / 2;
    constexpr int kAcross = (width + 2 * R) * C;
    constexpr int kTileRows = rows * P::kHalves;
    __shared__ Word sorted[rows][size][kAcross];
    for_each_tile(
        work.args, kTileRows, work.args.dst, [&](int32_t index, int32_t tile_x, int32_t tile_y) {
            const Image src = work.src(index);
            const Image dst = work.dst(index);
            const Frame& frame = work.params(each, index).frame;
            const int32_t left = tile_x * width, top = tile_y * kTileRows;
            if (left >= dst.width) return;
            for (int s = threadIdx.x; s < kAcross; s += blockDim.x) {
                const int32_t x = smaller(larger(frame.x0 + left + s / C - R, 0), frame.width - 1);
                const T* from = row_at<const T>(src, 0) + int64_t{x} * C + s % C;
                const auto at = [&](int row) {
                    const int32_t y =
                        smaller(larger(frame.y0 + top + row - R, 0), frame.height - 1);
                    return read_only(reinterpret_cast<const T*>(
                        reinterpret_cast<const uint8_t*>(from) + y * src.row_pitch));
                };
                Word column[rows + 2 * R];
#pragma unroll
                for (int i = 0; i < rows + 2 * R; ++i) {
                    column[i] = P::pack(at(i), P::kHalves > 1 ? at(i + rows) : T(0));
                }
#pragma unroll
                for (int row = 0; row < rows; ++row) {
                    Word v[size];
#pragma unroll
                    for (int i = 0; i < size; ++i) v[i] = column[row + i];
                    sort_column(v);
#pragma unroll
                    for (int i = 0; i < size; ++i) sorted[row][i][s] = v[i];
                }
            }
            __syncthreads();
            constexpr int kOut = width * C;
            for (int i = threadIdx.x; i < rows * kOut; i += blockDim.x) {
                const int row = i / kOut, s = i % kOut;
                const int32_t x = left + s / C;
                if (x >= dst.width) continue;
                Word v[size][size];
#pragma unroll
                for (int j = 0; j < size; ++j) {
#pragma unroll
                    for (int k = 0; k < size; ++k) v[j][k] = sorted[row][k][s + j * C];
                }
                const Word median = median_of_columns(v);
#pragma unroll
                for (int half = 0; half < P::kHalves; ++half) {
                    const int32_t y = top + row + half * rows;
                    if (y < dst.height) {
                        row_at<T>(dst, y)[int64_t{x} * C + s % C] = P::sample(median, half);
                    }
                }
            }
            __syncthreads();
        });
}

#else

// A row of keys with the edge pixels repeated on both sides.
template <class T, int C>
void padded_keys(const T* row, int32_t first, int32_t count, int32_t width, Key<T>* out) {
    for (int32_t i = 0; i < count; ++i) {
        const int32_t x = smaller(larger(first + i, 0), width - 1);
        if (x == first + i) {
            // The part inside the row in one go.
            const int32_t inside = smaller(count - i, width - x);
            const T* from = row + int64_t{x} * C;
            Key<T>* to = out + int64_t{i} * C;
            for (int64_t k = 0; k < int64_t{inside} * C; ++k) to[k] = order_key(from[k]);
            i += inside - 1;
            continue;
        }
        for (int c = 0; c < C; ++c) out[int64_t{i} * C + c] = order_key(row[int64_t{x} * C + c]);
    }
}

template <int size, class V, class K>
void sort_columns_at(const K* const* rows, K* const* sorted, int64_t i) {
    V v[size];
    for (int k = 0; k < size; ++k) v[k] = load_pack<V>(rows[k] + i);
    sort_column(v);
    for (int k = 0; k < size; ++k) store_pack(sorted[k] + i, v[k]);
}

// The rows have room for a vector past their end.
template <int size, class K>
void sort_columns(const K* const* rows, K* const* sorted, int64_t count) {
    for (int64_t i = 0; i < count; i += kPackCount<K>) {
        sort_columns_at<size, Pack<K>>(rows, sorted, i);
    }
}

template <int size, int C, class V, class K>
V median_at(const K* const* sorted, int64_t i) {
    V v[size][size];
    for (int j = 0; j < size; ++j) {
        for (int k = 0; k < size; ++k) v[j][k] = load_pack<V>(sorted[k] + i + j * C);
    }
    return median_of_columns(v);
}

template <int size, int C, class K>
void medians_of_columns(const K* const* sorted, K* out, int64_t count) {
    int64_t i = 0;
    for (; i + kPackCount<K> <= count; i += kPackCount<K>) {
        store_pack(out + i, median_at<size, C, Pack<K>>(sorted, i));
    }
    for (; i < count; ++i) out[i] = median_at<size, C, K>(sorted, i);
}

// Keys of floats become floats where they lie.
template <class T>
void samples_of(T* row, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        Key<T> key;
        std::memcpy(&key, row + i, sizeof key);
        row[i] = key_sample(key, T{});
    }
}

template <int size, class T, int C>
int32_t median_network_rows(const Share<MedianSmallParams>& share) {
    constexpr int R = size / 2;
    const Frame& frame = share.params.frame;
    const int32_t padded = share.dst.width + 2 * R;
    Scratch scratch;
    const Reader<T, C> reader(share, scratch);
    const Writer<T, C> writer(share, scratch);
    T* room = scratch.take<T>(int64_t{frame.width} * C);
    Key<T>* ring[size];
    Key<T>* sorted[size];
    for (int k = 0; k < size; ++k) ring[k] = scratch.take<Key<T>>(int64_t{padded} * C);
    for (int k = 0; k < size; ++k) sorted[k] = scratch.take<Key<T>>(int64_t{padded} * C);
    if (scratch.failed()) return kNoMemory;
    int32_t next = share.begin + frame.y0 - R;
    for (int32_t row = share.begin; row < share.end; ++row) {
        for (; next <= row + frame.y0 + R; ++next) {
            const int32_t y = smaller(larger(next, 0), frame.height - 1);
            padded_keys<T, C>(reader.row(y, room), frame.x0 - R, padded, frame.width,
                              ring[(next + size * 2) % size]);
        }
        const Key<T>* rows[size];
        for (int k = 0; k < size; ++k) rows[k] = ring[(row + frame.y0 - R + k + size * 2) % size];
        sort_columns<size>(rows, sorted, int64_t{padded} * C);
        T* out = writer.begin(row);
        const int64_t count = int64_t{share.dst.width} * C;
        medians_of_columns<size, C>(sorted, reinterpret_cast<Key<T>*>(out), count);
        if (sizeof(T) == sizeof(float)) samples_of(out, count);
        writer.end(row);
    }
    return 0;
}

template <class T, int C>
int32_t median_small_rows(const Share<MedianSmallParams>& share) {
    if (share.params.size == 3) return median_network_rows<3, T, C>(share);
    return median_network_rows<5, T, C>(share);
}

#endif

}  // namespace cvcli

CVCLI_PATTERN(median_small, MedianSmallParams)
