// The two passes of resampling over rows of 8-bit samples, and over rows of floats.
#pragma once

#include "core/bytes_cpu.h"
#include "core/floats_cpu.h"
#include "core/rows_cpu.h"

namespace cvcli {

// Rows that lie `pitch` samples apart, the first one anywhere in a ring of `count` rows.
template <class M>
struct RingRows {
    const M* base;
    int64_t pitch;
    int32_t first;
    int32_t count;
    const M* at(int32_t row) const {
        const int32_t slot = first + row;
        return base + (slot < count ? slot : slot - count) * pitch;
    }
};

template <class M>
struct PlainRows {
    const M* base;
    int64_t pitch;
    const M* at(int32_t row) const { return base + row * pitch; }
};

// The sums of 16 neighbouring bytes a group, 4 a vector; of the low halves of weights, if they
// have any, apart from those of the high ones, for products of 16 bits are the fast ones.
template <bool HasLow>
struct ByteSums {
    Bytes high[4] = {no_bytes(), no_bytes(), no_bytes(), no_bytes()};
    Bytes low[4];
    ByteSums() {
        for (Bytes& sum : low) sum = same_pair(1 << (kWeightBits - 1));
    }
    void add(Bytes a, Bytes b, const WeightPair& pair) {
        const Bytes high_pair = same_pair(pair.high);
        const Bytes low_pair = same_pair(pair.low);
        const Bytes ab[2] = {low_bytes(a, b), high_bytes(a, b)};
        for (int q = 0; q < 4; ++q) {
            const Bytes half = ab[q / 2];
            const Bytes words = q % 2 ? high_bytes(half, no_bytes()) : low_bytes(half, no_bytes());
            high[q] = add_pairs(high[q], words, high_pair);
            if (HasLow) low[q] = add_pairs(low[q], words, low_pair);
        }
    }
    Bytes rounded() const {
        Bytes sums[4];
        for (int q = 0; q < 4; ++q) sums[q] = join_sums(high[q], low[q], kLowBits);
        return words_to_bytes(sums_to_words(sums[0], sums[1], kWeightBits),
                              sums_to_words(sums[2], sums[3], kWeightBits));
    }
};

template <bool HasLow, class Rows>
Bytes blend_vector(const Rows& rows, int64_t at, const WeightPair* pairs, int32_t count) {
    ByteSums<HasLow> sums;
    for (int32_t k = 0; k < count; k += 2) {
        const Bytes a = load_bytes(rows.at(k) + at);
        const Bytes b = load_bytes(rows.at(smaller(k + 1, count - 1)) + at);
        sums.add(a, b, pairs[k / 2]);
    }
    return sums.rounded();
}

// Calls put(at, vector) for each vector of `width` bytes; the last may reach past the end.
template <class Rows, class Put>
void blend_bytes(Rows rows, const ResampleAxis& axis, int32_t index, int64_t width, Put put) {
    const WeightPair* pairs =
        static_cast<const WeightPair*>(axis.weights) + index * int64_t{axis.most};
    const int32_t count = axis.spans[2 * index + 1];
    const bool halves = axis.halves;
    int32_t low = 0;
    for (int32_t k = 0; k < count; k += 2) low |= pairs[k / 2].low;
    for (int64_t at = 0; at < width; at += kBytes) {
        if (halves) {
            put(at, average_bytes(load_bytes(rows.at(0) + at), load_bytes(rows.at(1) + at)));
        } else if (low) {
            put(at, blend_vector<true>(rows, at, pairs, count));
        } else {
            put(at, blend_vector<false>(rows, at, pairs, count));
        }
    }
}

template <class Rows>
CVCLI_ONCE void blend_row(uint8_t* out, Rows rows, const ResampleAxis& axis, int32_t index,
                          int64_t width) {
    blend_bytes(rows, axis, index, width, [out, width](int64_t at, Bytes bytes) {
        if (at + kBytes <= width) return store_bytes(out + at, bytes);
        uint8_t rest[kBytes];
        store_bytes(rest, bytes);
        std::memcpy(out + at, rest, static_cast<size_t>(width - at));
    });
}

// Bytes [begin, end) of a group of rows, turned: out holds a vector for each byte of a row.
CVCLI_ONCE inline void turn_in(uint8_t* out, const uint8_t* const* rows, int64_t row_bytes,
                               int64_t begin, int64_t end) {
    Bytes m[16];
    uint8_t tails[kBytes][16];
    const uint8_t* tail_rows[kBytes];
    for (int64_t at = begin; at < end; at += 16, out += 16 * kBytes) {
        const bool whole = at + 16 <= row_bytes;
        for (int r = 0; r < kBytes && !whole; ++r) {
            std::memcpy(tails[r], rows[r] + at, static_cast<size_t>(row_bytes - at));
            tail_rows[r] = tails[r];
        }
        for (int i = 0; i < 16; ++i) {
            m[i] = whole ? load_groups(rows + i, at) : load_groups(tail_rows + i, 0);
        }
        turn_groups(m);
        for (int i = 0; i < 16; ++i) store_bytes(out + i * kBytes, m[i]);
    }
}

// The reverse, for `count` bytes a row from `at` on; up to 15 more are written.
CVCLI_ONCE inline void turn_out(uint8_t* const* rows, int64_t at, const uint8_t* turned,
                                int64_t count) {
    Bytes m[16];
    for (int64_t done = 0; done < count; done += 16, turned += 16 * kBytes) {
        for (int i = 0; i < 16; ++i) m[i] = load_bytes(turned + i * kBytes);
        turn_groups(m);
        for (int i = 0; i < 16; ++i) store_groups(rows + i, at + done, m[i]);
    }
}

// A few rows, each found once.
struct FewRows {
    static constexpr int32_t kMost = 16;
    const float* rows[kMost];
    const float* at(int32_t row) const { return rows[row]; }
};

constexpr int kBlend = 4 * Floats::kCount;

// Sums of kBlend floats in the order of the taps.
template <class Rows>
inline void blend_floats(float* sums, const Rows& rows, int64_t at, const float* weights,
                         int32_t count) {
    Floats acc[4];
    const Floats weight = all_floats(weights[0]);
    CVCLI_UNROLL
    for (int i = 0; i < 4; ++i) {
        acc[i] = weight * load_floats(rows.at(0) + at + i * Floats::kCount);
    }
    for (int32_t k = 1; k < count; ++k) {
        const float* row = rows.at(k) + at;
        const Floats next = all_floats(weights[k]);
        CVCLI_UNROLL
        for (int i = 0; i < 4; ++i) {
            acc[i] = acc[i] + next * load_floats(row + i * Floats::kCount);
        }
    }
    CVCLI_UNROLL
    for (int i = 0; i < 4; ++i) store_floats(sums + i * Floats::kCount, acc[i]);
}

template <class T, class Rows>
void blend_all(T* out, const Rows& rows, const float* weights, int32_t count, int64_t width) {
    for (int64_t at = 0; at < width; at += kBlend) {
        float sums[kBlend];
        blend_floats(sums, rows, at, weights, count);
        if (at + kBlend <= width) {
            for (int i = 0; i < kBlend; ++i) out[at + i] = to_sample<T>(sums[i]);
        } else {
            for (int i = 0; i < width - at; ++i) out[at + i] = to_sample<T>(sums[i]);
        }
    }
}

template <class T, class Rows>
CVCLI_ONCE void blend_row(T* out, Rows rows, const ResampleAxis& axis, int32_t index,
                          int64_t width) {
    const float* weights = static_cast<const float*>(axis.weights) + index * int64_t{axis.most};
    const int32_t count = axis.spans[2 * index + 1];
    if (count > FewRows::kMost) return blend_all(out, rows, weights, count, width);
    FewRows few;
    for (int32_t k = 0; k < count; ++k) few.rows[k] = rows.at(k);
    blend_all(out, few, weights, count, width);
}

}  // namespace cvcli
