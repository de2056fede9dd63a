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

// A straight piece of a table: ((v & keep) ^ turn) + add, of slope 0, 1 or -1.
struct Piece {
    uint16_t keep;
    uint16_t turn;
    uint16_t add;
};

// A table of 65536 entries that is one piece below `cut` and another from there on.
struct Pieces {
    Piece low;
    Piece high;
    uint16_t cut;
    bool found;
};

// The first entry from `at` on that does not go on by `slope`.
inline int32_t straight_until(const uint16_t* table, int32_t at, uint16_t slope) {
    constexpr int32_t block = 256;
    const auto bends = [&](int32_t i) { return uint16_t(table[i + 1] - table[i] - slope); };
    while (at % block && at < 65535 && !bends(at)) ++at;
    for (; at % block == 0 && at + block < 65536; at += block) {
        uint16_t bend = 0;
        for (int32_t i = 0; i < block; ++i) bend |= bends(at + i);
        if (bend) break;
    }
    while (at < 65535 && !bends(at)) ++at;
    return at + 1;
}

// The piece that begins with entry `at`; `end` becomes where it ends, 0 if there is none.
inline Piece piece_from(const uint16_t* table, int32_t at, int32_t& end) {
    const uint16_t slope = at < 65535 ? uint16_t(table[at + 1] - table[at]) : uint16_t(0);
    end = slope == 0 || slope == 1 || slope == 65535 ? straight_until(table, at, slope) : 0;
    const uint16_t keep = slope ? 65535 : 0, turn = slope == 65535 ? 65535 : 0;
    return {keep, turn, uint16_t(table[at] - ((at & keep) ^ turn))};
}

// Thresholds, inversions and the like need no table.
CVCLI_ONCE inline Pieces pieces_of(const uint16_t* table) {
    Pieces pieces = {};
    int32_t end = 0;
    pieces.low = pieces.high = piece_from(table, 0, end);
    pieces.cut = static_cast<uint16_t>(smaller(end, 65535));
    if (end > 0 && end < 65536) pieces.high = piece_from(table, end, end);
    pieces.found = end == 65536;
    return pieces;
}

// The same as lookup_row, by the pieces of the table.
template <int C>
CVCLI_ONCE void piece_row(uint16_t* dst, const uint16_t* src, int64_t width, const uint16_t* table,
                          const Pieces& pieces) {
    constexpr int block = 64;
    const Piece low = pieces.low, high = pieces.high;
    const uint16_t cut = pieces.cut;
    const int64_t count = width * C;
    int64_t at = 0;
    for (; at + block <= count; at += block) {
        uint16_t made[block];
        for (int i = 0; i < block; ++i) {
            const uint16_t v = src[at + i];
            const uint16_t below = uint16_t(((v & low.keep) ^ low.turn) + low.add);
            const uint16_t above = uint16_t(((v & high.keep) ^ high.turn) + high.add);
            const uint16_t value = v < cut ? below : above;
            made[i] = is_alpha<C>(static_cast<uint32_t>(i)) ? v : value;
        }
        std::memcpy(dst + at, made, sizeof made);
    }
    lookup_scalar<uint16_t, C>(dst + at, src + at, count - at, table);
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
