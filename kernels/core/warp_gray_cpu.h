// Bilinear warps of gray images on the CPU: eight pixels of a block at once.
#pragma once

#include "core/warp_cpu.h"

#if CVCLI_SIMD > 0

namespace cvcli {

constexpr int32_t kEight = 8;

inline __m256i load_eight(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

// Where in a block's rows the first taps of eight places lie.
struct GrayTaps {
    const uint8_t* above;
    const uint8_t* below;
    __m256i at;

    template <class T>
    GrayTaps(const WarpSource<T, 1>& source, const Places& places, int32_t i)
        : above(source.base + places.low_y * source.pitch), below(above + source.pitch) {
        const __m256i rows =
            _mm256_sub_epi32(load_eight(places.y + i), _mm256_set1_epi32(places.low_y));
        const __m256i columns =
            _mm256_mullo_epi32(load_eight(places.x + i), _mm256_set1_epi32(sizeof(T)));
        const __m256i pitch = _mm256_set1_epi32(static_cast<int32_t>(source.pitch));
        at = _mm256_add_epi32(_mm256_mullo_epi32(rows, pitch), columns);
    }
    // Four bytes from each tap on; the spare columns hold them.
    __m256i words(const uint8_t* base) const {
        return _mm256_i32gather_epi32(reinterpret_cast<const int*>(base), at, 1);
    }
    __m256 floats(const uint8_t* base) const {
        return _mm256_i32gather_ps(reinterpret_cast<const float*>(base), at, 1);
    }
};

// Whether all of a block is within 31 bits of its first row.
template <class T>
bool is_near(const WarpSource<T, 1>& source, const Places& places) {
    const int64_t rows = int64_t{places.high_y} - places.low_y + 2;
    return rows * source.pitch + source.width * int64_t{sizeof(T)} < 1 << 30;
}

// Two neighbouring bytes as halves of a word.
inline __m256i byte_pairs(__m256i words) {
    const __m256i second = _mm256_and_si256(words, _mm256_set1_epi32(0xff00));
    const __m256i first = _mm256_and_si256(words, _mm256_set1_epi32(0xff));
    return _mm256_or_si256(first, _mm256_slli_epi32(second, 8));
}

inline void gray_eight(const GrayTaps& taps, const Places& places, int32_t i, uint8_t* to) {
    const __m256i x = _mm256_srli_epi32(load_eight(places.fx + i), 10);
    const __m256i y = _mm256_srli_epi32(load_eight(places.fy + i), 10);
    const __m256i product = _mm256_add_epi32(_mm256_mullo_epi32(x, y), _mm256_set1_epi32(8192));
    const __m256i both = _mm256_srli_epi32(product, 14);
    const __m256i right = _mm256_sub_epi32(x, both), left = _mm256_sub_epi32(y, both);
    const __m256i first = _mm256_sub_epi32(_mm256_sub_epi32(_mm256_set1_epi32(16384), x), left);
    const __m256i above = _mm256_or_si256(first, _mm256_slli_epi32(right, 16));
    const __m256i below = _mm256_or_si256(left, _mm256_slli_epi32(both, 16));
    const __m256i sums =
        _mm256_add_epi32(_mm256_madd_epi16(byte_pairs(taps.words(taps.above)), above),
                         _mm256_madd_epi16(byte_pairs(taps.words(taps.below)), below));
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(sums, 14), _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(8191));
    const __m256i made = _mm256_srli_epi32(_mm256_add_epi32(sums, half), 14);
    const __m128i halves =
        _mm_packs_epi32(_mm256_castsi256_si128(made), _mm256_extracti128_si256(made, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(halves, halves));
}

inline __m256 fractions(const uint32_t* units) {
    return _mm256_mul_ps(_mm256_cvtepi32_ps(load_eight(units)), _mm256_set1_ps(1.0f / 16777216.0f));
}

// The two taps of each place in a row, as floats.
template <class T>
void gray_pair(const GrayTaps& taps, const uint8_t* base, __m256& first, __m256& second) {
    if constexpr (sizeof(T) == 2) {
        const __m256i words = taps.words(base);
        first = _mm256_cvtepi32_ps(_mm256_and_si256(words, _mm256_set1_epi32(0xffff)));
        second = _mm256_cvtepi32_ps(_mm256_srli_epi32(words, 16));
    } else {
        first = taps.floats(base);
        second = taps.floats(base + sizeof(T));
    }
}

template <class T>
void gray_eight(const GrayTaps& taps, const Places& places, int32_t i, T* to) {
    const __m256 one = _mm256_set1_ps(1.0f);
    const __m256 x = fractions(places.fx + i), y = fractions(places.fy + i);
    const __m256 left = _mm256_sub_ps(one, x), above = _mm256_sub_ps(one, y);
    __m256 a, b, c, d;
    gray_pair<T>(taps, taps.above, a, b);
    gray_pair<T>(taps, taps.below, c, d);
    const __m256 upper = _mm256_add_ps(_mm256_mul_ps(a, _mm256_mul_ps(above, left)),
                                       _mm256_mul_ps(b, _mm256_mul_ps(above, x)));
    const __m256 lower = _mm256_add_ps(_mm256_mul_ps(c, _mm256_mul_ps(y, left)),
                                       _mm256_mul_ps(d, _mm256_mul_ps(y, x)));
    float sums[kEight];
    _mm256_storeu_ps(sums, _mm256_add_ps(upper, lower));
    for (int32_t k = 0; k < kEight; ++k) to[k] = to_sample<T>(sums[k]);
}

// Whole groups of eight pixels of a block; returns how many pixels it made.
template <class T>
int32_t gray_groups(const WarpSource<T, 1>& source, const Places& places, T* to) {
    int32_t i = 0;
    if (!is_near(source, places)) return i;
    for (; i + kEight <= places.count; i += kEight) {
        gray_eight(GrayTaps(source, places, i), places, i, to + i);
    }
    return i;
}

}  // namespace cvcli

#endif
