// The small medians on the CPU: columns are put in order as rows pass, a vector at a time.
#pragma once

#include "core/median_net.h"
#include "core/pack_cpu.h"
#include "core/rows_cpu.h"

namespace cvcli {

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

}  // namespace cvcli
