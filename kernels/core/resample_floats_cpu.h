// The taps of a row of float samples, laid out so that a vector of sums is made at once.
#pragma once

#include "core/floats_cpu.h"
#include "core/rows_cpu.h"

namespace cvcli {

#if CVCLI_SIMD == 2

constexpr int32_t kReach = 32;
inline Floats near_floats(const float* from, const int32_t* places) {
    return {_mm512_permutex2var_ps(_mm512_loadu_ps(from), _mm512_loadu_si512(places),
                                   _mm512_loadu_ps(from + 16))};
}
inline Floats far_floats(const float* from, const int32_t* places) {
    return {_mm512_i32gather_ps(_mm512_loadu_si512(places), from, 4)};
}
inline Floats four_floats(const float* from, const int32_t* places) {
    const __m256 low = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + places[0])),
                                            _mm_loadu_ps(from + places[4]), 1);
    const __m256 high = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + places[8])),
                                             _mm_loadu_ps(from + places[12]), 1);
    return {_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1)};
}
inline Floats without_fourths(Floats a) {
    return {_mm512_maskz_compress_ps(0x7777, a.v)};
}

#elif CVCLI_SIMD == 1

constexpr int32_t kReach = 16;
inline __m256i places_of(const int32_t* places) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(places));
}
inline Floats near_floats(const float* from, const int32_t* places) {
    const __m256i at = places_of(places);
    const __m256 high = _mm256_castsi256_ps(_mm256_slli_epi32(at, 28));
    return {_mm256_blendv_ps(_mm256_permutevar8x32_ps(_mm256_loadu_ps(from), at),
                             _mm256_permutevar8x32_ps(_mm256_loadu_ps(from + 8), at), high)};
}
inline Floats far_floats(const float* from, const int32_t* places) {
    return {_mm256_i32gather_ps(from, places_of(places), 4)};
}
inline Floats four_floats(const float* from, const int32_t* places) {
    return {_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + places[0])),
                                 _mm_loadu_ps(from + places[4]), 1)};
}
inline Floats without_fourths(Floats a) {
    return {_mm256_permutevar8x32_ps(a.v, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 6, 6))};
}

#else

constexpr int32_t kReach = 1 << 30;
inline Floats far_floats(const float* from, const int32_t* places) {
    Floats a;
    for (int i = 0; i < Floats::kCount; ++i) a.v[i] = from[places[i]];
    return a;
}
inline Floats near_floats(const float* from, const int32_t* places) {
    return far_floats(from, places);
}
inline Floats four_floats(const float* from, const int32_t* places) {
    return load_floats(from + places[0]);
}
inline Floats without_fourths(Floats a) {
    return a;
}

#endif

// One pixel of a row of sums.
template <int C>
void sum_pixel(float* out, const float* row, const ResampleAxis& axis, int32_t index) {
    const int32_t* span = axis.spans + 2 * int64_t{index};
    const float* weights = static_cast<const float*>(axis.weights) + int64_t{index} * axis.most;
    const float* from = row + int64_t{span[0]} * C;
    float sums[C];
    for (int c = 0; c < C; ++c) sums[c] = weights[0] * from[c];
    for (int32_t k = 1; k < span[1]; ++k) {
        for (int c = 0; c < C; ++c) sums[c] += weights[k] * from[int64_t{k} * C + c];
    }
    std::memcpy(out, sums, sizeof sums);
}

// Rows of sums, a vector of whole pixels at a time; a pixel of three samples takes the place of
// four. Pixels with other numbers of taps than their neighbours go one by one.
template <int C>
class FloatSums {
  public:
    FloatSums(const ResampleAxis& axis, int32_t x0, int32_t width, int32_t row_width,
              Scratch& scratch)
        : axis_(axis), x0_(x0), width_(width), row_(int64_t{row_width} * C) {
        const int64_t vectors = width / kPixels;
        if (vectors == 0 || vectors * axis.most > kMostVectors) return;
        groups_ = scratch.take<Group>(vectors);
        weights_ = scratch.take<float>(vectors * axis.most * kCount);
        if (!groups_ || !weights_) return;
        for (; count_ < vectors; ++count_) spread(count_);
    }

    // `out` has room for a vector more than the row.
    CVCLI_ONCE void sum(float* out, const float* row) const {
        for (int32_t g = 0; g < count_; ++g) {
            const Group& group = groups_[g];
            float* to = out + int64_t{g} * kPixels * C;
            if (group.kind == kAlone) {
                sum_pixels(out, row, g * kPixels, (g + 1) * kPixels);
            } else if (group.kind == kFours) {
                const Floats sums = total<kFours>(row, group, g);
                store_floats(to, C == 3 ? without_fourths(sums) : sums);
            } else if (group.kind == kNear) {
                store_floats(to, total<kNear>(row, group, g));
            } else {
                store_floats(to, total<kFar>(row, group, g));
            }
        }
        sum_pixels(out, row, count_ * kPixels, width_);
    }

  private:
    enum Kind { kAlone, kFours, kNear, kFar };
    static constexpr int kCount = Floats::kCount;
    static constexpr int kLane = C == 3 ? 4 : C;
    static constexpr int kPixels = kCount / kLane;
    // Weights that stay in the caches; for more it would not pay.
    static constexpr int64_t kMostVectors = (1 << 20) / (kCount * int64_t{sizeof(float)});

    // The pixels of a vector: the first sample they read and, from there, that of each.
    struct Group {
        int32_t places[kCount];
        int64_t first;
        int32_t taps;
        Kind kind;
    };

    void spread(int32_t number) {
        Group& group = groups_[number];
        const int32_t index = x0_ + number * kPixels;
        const int32_t* span = axis_.spans + 2 * int64_t{index};
        float* weights = weights_ + int64_t{number} * axis_.most * kCount;
        group.first = int64_t{span[0]} * C;
        group.taps = span[1];
        bool even = true;
        for (int p = 0; p < kPixels; ++p) {
            even = even && span[2 * p + 1] == group.taps && span[2 * p] >= span[0];
            for (int c = 0; c < kLane; ++c) {
                const int lane = p * kLane + c;
                group.places[lane] = (span[2 * p] - span[0]) * C + c;
                for (int32_t k = 0; k < axis_.most; ++k) {
                    const int64_t from = int64_t{index + p} * axis_.most + k;
                    weights[k * kCount + lane] = static_cast<const float*>(axis_.weights)[from];
                }
            }
        }
        group.kind = even ? kind_of(group) : kAlone;
    }

    // How a vector is read without going past the end of the row.
    Kind kind_of(const Group& group) const {
        const int64_t last = group.first + (group.taps - 1) * int64_t{C};
        const int32_t reach = group.places[kCount - 1] + 1;
        if (kLane == 4) return last + reach <= row_ ? kFours : kAlone;
        return reach <= kReach && last + kReach <= row_ ? kNear : kFar;
    }

    template <Kind K>
    static Floats taken(const float* from, const int32_t* places) {
        if (K == kFours) return four_floats(from, places);
        return K == kNear ? near_floats(from, places) : far_floats(from, places);
    }

    template <Kind K>
    Floats total(const float* row, const Group& group, int32_t number) const {
        const float* weights = weights_ + int64_t{number} * axis_.most * kCount;
        const float* from = row + group.first;
        Floats sums = load_floats(weights) * taken<K>(from, group.places);
        for (int32_t k = 1; k < group.taps; ++k) {
            sums = sums + load_floats(weights + k * kCount) * taken<K>(from + k * C, group.places);
        }
        return sums;
    }

    void sum_pixels(float* out, const float* row, int32_t begin, int32_t end) const {
        for (int32_t x = begin; x < end; ++x) {
            sum_pixel<C>(out + int64_t{x} * C, row, axis_, x0_ + x);
        }
    }

    const ResampleAxis& axis_;
    int32_t x0_;
    int32_t width_;
    int64_t row_;
    int32_t count_ = 0;
    Group* groups_ = nullptr;
    float* weights_ = nullptr;
};

}  // namespace cvcli
