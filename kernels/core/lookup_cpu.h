// dst[i] = table[src[i]] for a row of samples, alpha passed through. dst may be src.
#pragma once

#include "core/pixel.h"
#include "core/simd_cpu.h"

namespace cvcli {

// Starts at a pixel; without alpha it may end within one.
template <class T, int C>
void lookup_scalar(T* dst, const T* src, int64_t count, const T* table) {
    constexpr int step = kHasAlpha<C> ? C : 1;
    for (int64_t i = 0; i < count; i += step) {
        for (int c = 0; c < step; ++c) {
            dst[i + c] = is_alpha<C>(static_cast<uint32_t>(c)) ? src[i + c] : table[src[i + c]];
        }
    }
}

template <int C>
CVCLI_ONCE void lookup_row(uint16_t* dst, const uint16_t* src, int64_t width,
                           const uint16_t* table) {
    lookup_scalar<uint16_t, C>(dst, src, width * C, table);
}

#if CVCLI_SIMD == 0

// Eight samples through one register (little-endian): one load and one store for all.
template <int C>
uint64_t lookup_eight(uint64_t index, const uint8_t* table) {
    uint64_t out = 0;
    for (int i = 0; i < 8; ++i) {
        const uint8_t byte = static_cast<uint8_t>(index >> (8 * i));
        out |= uint64_t{is_alpha<C>(i) ? byte : table[byte]} << (8 * i);
    }
    return out;
}

template <int C>
CVCLI_ONCE void lookup_row(uint8_t* dst, const uint8_t* src, int64_t width, const uint8_t* table) {
    const int64_t count = width * C;
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        uint64_t eight;
        std::memcpy(&eight, src + i, 8);
        eight = lookup_eight<C>(eight, table);
        std::memcpy(dst + i, &eight, 8);
    }
    lookup_scalar<uint8_t, C>(dst + i, src + i, count - i, table);
}

#elif CVCLI_SIMD == 1

// A table is kept as 16 slices of 16, each but the first of a half XORed with the slice before.
// A byte shuffle gives 0 for a negative index, so taking 16 off the index slice after slice and
// XORing all that comes leaves exactly the slice that the index points into.
struct Slices {
    __m256i half[2][8];
};

inline Slices make_slices(const uint8_t* table) {
    Slices slices;
    for (int i = 0; i < 16; ++i) {
        __m128i part = load_vector(table + 16 * i);
        if (i % 8) part = _mm_xor_si128(part, load_vector(table + 16 * i - 16));
        slices.half[i / 8][i % 8] = _mm256_broadcastsi128_si256(part);
    }
    return slices;
}

inline __m256i lookup_half(const __m256i* slices, __m256i index) {
    const __m256i sixteen = _mm256_set1_epi8(16);
    __m256i out = _mm256_shuffle_epi8(slices[0], index);
    for (int i = 1; i < 8; ++i) {
        index = _mm256_subs_epi8(index, sixteen);
        out = _mm256_xor_si256(out, _mm256_shuffle_epi8(slices[i], index));
    }
    return out;
}

template <int C>
__m256i lookup_vector(const Slices& slices, __m256i index) {
    const __m256i high = _mm256_xor_si256(index, _mm256_set1_epi8(-128));
    const __m256i out =
        _mm256_xor_si256(lookup_half(slices.half[0], index), lookup_half(slices.half[1], high));
    if (!kHasAlpha<C>) return out;
    const __m256i alpha = C == 2 ? _mm256_set1_epi16(-256) : _mm256_set1_epi32(-16777216);
    return _mm256_blendv_epi8(out, index, alpha);
}

template <int C>
CVCLI_ONCE void lookup_row(uint8_t* dst, const uint8_t* src, int64_t width, const uint8_t* table) {
    const int64_t count = width * C;
    const Slices slices = make_slices(table);
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
        const __m256i index = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src + i));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + i), lookup_vector<C>(slices, index));
    }
    lookup_scalar<uint8_t, C>(dst + i, src + i, count - i, table);
}

#else

struct Quarters {
    __m512i at[4];
};

template <int C>
__m512i lookup_vector(const Quarters& table, __m512i index) {
    const __m512i low = _mm512_permutex2var_epi8(table.at[0], index, table.at[1]);
    const __m512i high = _mm512_permutex2var_epi8(table.at[2], index, table.at[3]);
    const __m512i out = _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
    if (!kHasAlpha<C>) return out;
    return _mm512_mask_blend_epi8(C == 2 ? 0xaaaaaaaaaaaaaaaa : 0x8888888888888888, out, index);
}

template <int C>
CVCLI_ONCE void lookup_row(uint8_t* dst, const uint8_t* src, int64_t width, const uint8_t* table) {
    const int64_t count = width * C;
    Quarters quarters;
    for (int i = 0; i < 4; ++i) quarters.at[i] = load_vector(table + 64 * i);
    int64_t i = 0;
    for (; i + 64 <= count; i += 64) {
        store_vector(dst + i, lookup_vector<C>(quarters, load_vector(src + i)));
    }
    if (i == count) return;
    const __mmask64 rest = (uint64_t{1} << (count - i)) - 1;
    const __m512i index = _mm512_maskz_loadu_epi8(rest, src + i);
    _mm512_mask_storeu_epi8(dst + i, rest, lookup_vector<C>(quarters, index));
}

#endif

}  // namespace cvcli
