// Rows of bytes of which few are wanted: the taps of each pixel are read where they lie.
#pragma once

#include "core/resample_rows_cpu.h"

namespace cvcli {

#if CVCLI_SIMD == 2

// Groups of 16 bytes, the g-th from at[4 * g] on.
inline Bytes load_places(const uint8_t* row, const int64_t* at) {
    Bytes out = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i*)(row + at[0])));
    out = _mm512_inserti32x4(out, _mm_loadu_si128((const __m128i*)(row + at[4])), 1);
    out = _mm512_inserti32x4(out, _mm_loadu_si128((const __m128i*)(row + at[8])), 2);
    return _mm512_inserti32x4(out, _mm_loadu_si128((const __m128i*)(row + at[12])), 3);
}
inline Bytes each_group(const uint8_t* order) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i*)order));
}

#elif CVCLI_SIMD == 1

inline Bytes load_places(const uint8_t* row, const int64_t* at) {
    const __m128i low = _mm_loadu_si128((const __m128i*)(row + at[0]));
    const __m128i high = _mm_loadu_si128((const __m128i*)(row + at[4]));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}
inline Bytes each_group(const uint8_t* order) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)order));
}

#endif

#if CVCLI_SIMD > 0

// Sums of four pixels a group of 16 bytes: the j-th of them in the j-th of four vectors, with a
// word of 32 bits a channel, so that packing puts them in order.
template <int C>
class SparseSums {
  public:
    // Nothing is made for a width of 0.
    SparseSums(const ResampleAxis& axis, int32_t x0, int32_t width, int64_t row_bytes,
               Scratch& scratch)
        : pairs_(axis.most), row_bytes_(row_bytes), count_((width + kPixels - 1) / kPixels) {
        if (count_ == 0) return;
        places_ = scratch.take<int64_t>(int64_t{count_} * kPixels);
        weights_ = scratch.take<uint8_t>(count_ * stride());
        if (!places_ || !weights_) return;
        for (int32_t i = 0; i < count_ * kPixels; ++i) spread(axis, x0, smaller(i, width - 1), i);
        const int64_t reach = (pairs_ - 1) * int64_t{2 * C} + 16;
        while (whole_ < count_ && places_[(whole_ + 1) * kPixels - 1] + reach <= row_bytes)
            ++whole_;
        if (whole_ == count_) return;
        const int64_t rest = row_bytes - places_[whole_ * kPixels];
        rest_ = scratch.take<uint8_t>(rest + reach);
        if (rest_) std::memset(rest_ + rest, 0, static_cast<size_t>(reach));
    }

    // `out` has room for a vector more than the row.
    CVCLI_ONCE void sum(uint8_t* out, const uint8_t* row) const {
        sum_groups(out, row, 0, whole_);
        if (whole_ == count_) return;
        const int64_t first = places_[whole_ * kPixels];
        std::memcpy(rest_, row + first, static_cast<size_t>(row_bytes_ - first));
        sum_groups(out, rest_ - first, whole_, count_);
    }

  private:
    static constexpr int kPixels = kBytes / 4;

    // Bytes of the weights of a group of pixels: two vectors for each of the pairs of four.
    int64_t stride() const { return int64_t{pairs_} * 8 * kBytes; }

    // Pixel x of the result is pixel i of the groups, or fills up the last of them.
    void spread(const ResampleAxis& axis, int32_t x0, int32_t x, int32_t i) {
        const int64_t index = int64_t{x0} + x;
        const auto* pairs = static_cast<const WeightPair*>(axis.weights) + index * axis.most;
        const int32_t used = (axis.spans[2 * index + 1] + 1) / 2;
        places_[i] = axis.spans[2 * index] * int64_t{C};
        const int lane = i % kPixels / 4 * 4;
        uint8_t* to = weights_ + i / kPixels * stride() + i % 4 * pairs_ * 2 * kBytes;
        for (int32_t p = 0; p < pairs_; ++p, to += 2 * kBytes) {
            const WeightPair pair = p < used ? pairs[p] : WeightPair{0, 0};
            for (int c = 0; c < 4; ++c) {
                std::memcpy(to + (lane + c) * 4, &pair.high, 4);
                std::memcpy(to + kBytes + (lane + c) * 4, &pair.low, 4);
            }
        }
    }

    void sum_groups(uint8_t* out, const uint8_t* row, int32_t begin, int32_t end) const {
        if (pairs_ == 1) return sum_pairs<1>(out, row, begin, end);
        if (pairs_ == 2) return sum_pairs<2>(out, row, begin, end);
        sum_pairs<0>(out, row, begin, end);
    }

    template <int N>
    void sum_pairs(uint8_t* out, const uint8_t* row, int32_t begin, int32_t end) const {
        uint8_t words[16], joined[16];
        for (int i = 0; i < 16; ++i) {
            const bool taken = i % 2 == 0 && i / 4 < C;
            words[i] = static_cast<uint8_t>(taken ? i / 4 + (i % 4 ? C : 0) : 0x80);
            joined[i] = static_cast<uint8_t>(i < 4 * C ? i / C * 4 + i % C : 0x80);
        }
        const Bytes pairs = each_group(words), order = each_group(joined);
        for (int32_t g = begin; g < end; ++g) {
            const int64_t* at = places_ + int64_t{g} * kPixels;
            const uint8_t* weights = weights_ + g * stride();
            Bytes sums[4];
            CVCLI_UNROLL
            for (int j = 0; j < 4; ++j) {
                Bytes high = no_bytes(), low = same_pair(1 << (kWeightBits - 1));
                for (int32_t p = 0; p < (N ? N : pairs_); ++p, weights += 2 * kBytes) {
                    const Bytes bytes = load_places(row + p * 2 * C, at + j);
                    const Bytes samples = CVCLI_BYTES(shuffle_epi8)(bytes, pairs);
                    high = add_pairs(high, samples, load_bytes(weights));
                    low = add_pairs(low, samples, load_bytes(weights + kBytes));
                }
                sums[j] = join_sums(high, low, kLowBits);
            }
            const Bytes made = words_to_bytes(sums_to_words(sums[0], sums[1], kWeightBits),
                                              sums_to_words(sums[2], sums[3], kWeightBits));
            uint8_t bytes[kBytes];
            store_bytes(bytes, CVCLI_BYTES(shuffle_epi8)(made, order));
            uint8_t* to = out + int64_t{g} * kPixels * C;
            for (int k = 0; k < kBytes / 16; ++k) std::memcpy(to + k * 4 * C, bytes + k * 16, 16);
        }
    }

    int32_t pairs_;
    int64_t row_bytes_;
    int32_t count_;
    int32_t whole_ = 0;
    int64_t* places_ = nullptr;
    uint8_t* weights_ = nullptr;
    uint8_t* rest_ = nullptr;
};

#else

// One sample after the other.
template <int C>
class SparseSums {
  public:
    SparseSums(const ResampleAxis& axis, int32_t x0, int32_t width, int64_t, Scratch&)
        : axis_(axis), x0_(x0), width_(width) {}
    CVCLI_ONCE void sum(uint8_t* out, const uint8_t* row) const {
        for (int32_t x = 0; x < width_; ++x, out += C) {
            const int64_t index = int64_t{x0_} + x;
            const auto* pairs = static_cast<const WeightPair*>(axis_.weights) + index * axis_.most;
            const int32_t* span = axis_.spans + 2 * index;
            for (int c = 0; c < C; ++c) {
                out[c] = sum_sample(row + span[0] * int64_t{C} + c, pairs, span[1]);
            }
        }
    }

  private:
    // A pair's weight of its first tap is in the lower half of its words.
    static uint8_t sum_sample(const uint8_t* from, const WeightPair* pairs, int32_t count) {
        uint32_t sum = 1u << (kWeightBits - 1);
        for (int32_t k = 0; k < count; ++k) {
            const int shift = k % 2 * 16;
            const int32_t high = static_cast<int16_t>(pairs[k / 2].high >> shift);
            const int32_t low = static_cast<int16_t>(pairs[k / 2].low >> shift);
            sum += static_cast<uint32_t>(high * (1 << kLowBits) + low) * from[int64_t{k} * C];
        }
        const int32_t value = static_cast<int32_t>(sum) >> kWeightBits;
        return static_cast<uint8_t>(larger(0, smaller(255, value)));
    }
    const ResampleAxis& axis_;
    int32_t x0_;
    int32_t width_;
};

#endif

}  // namespace cvcli
