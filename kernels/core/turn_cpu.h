// Four source rows at a time turned into destination columns, for pixels of 1 to 4 bytes.
#pragma once

#include "core/simd_cpu.h"

namespace cvcli {

// Four source rows, each at the first pixel to take; `low` and `high` are how many bytes of the
// row lie before and after that place.
struct Rows4 {
    const uint8_t* at[4];
    int64_t low;
    int64_t high;
};

#if CVCLI_SIMD == 0

template <int P>
int32_t turn_rows(uint8_t*, int64_t, const Rows4&, int32_t, int32_t) {
    return 0;
}

#else

// Byte shuffles that put the pixels of a load in destination order, those of 3 bytes one a 32-bit
// lane, and that pack such lanes again.
template <int P>
struct TurnOrder {
    alignas(16) uint8_t forward[16];
    alignas(16) uint8_t backward[16];
    alignas(16) uint8_t pack[16];
    constexpr TurnOrder() : forward(), backward(), pack() {
        constexpr int slot = P == 3 ? 4 : P;
        for (int j = 0; j < 16; ++j) {
            const int pixel = j / slot;
            const int byte = smaller(j % slot, P - 1);
            forward[j] = static_cast<uint8_t>(pixel * P + byte);
            backward[j] = static_cast<uint8_t>(16 - P - pixel * P + byte);
            pack[j] = static_cast<uint8_t>(j < 4 * P ? j / P * 4 + j % P : 0);
        }
    }
};

struct Block4 {
    __m128i row[4];
};

inline Block4 transposed(const Block4& block) {
    const __m128i a = _mm_unpacklo_epi32(block.row[0], block.row[1]);
    const __m128i b = _mm_unpackhi_epi32(block.row[0], block.row[1]);
    const __m128i c = _mm_unpacklo_epi32(block.row[2], block.row[3]);
    const __m128i d = _mm_unpackhi_epi32(block.row[2], block.row[3]);
    return {{_mm_unpacklo_epi64(a, c), _mm_unpackhi_epi64(a, c), _mm_unpacklo_epi64(b, d),
             _mm_unpackhi_epi64(b, d)}};
}

// Each load is 16 bytes: onwards from the first pixel, or back from the end of it.
inline Block4 load_block(const Rows4& rows, int64_t at, __m128i order) {
    Block4 block;
    for (int k = 0; k < 4; ++k) {
        const auto* from = reinterpret_cast<const __m128i*>(rows.at[k] + at);
        block.row[k] = _mm_shuffle_epi8(_mm_loadu_si128(from), order);
    }
    return block;
}

inline void store_word(uint8_t* to, int word) {
    std::memcpy(to, &word, 4);
}

// The four pixels of each destination row, for one-byte pixels: 16 rows of 4 bytes.
inline void store_block(uint8_t* to, int64_t pitch, const Block4& block, const TurnOrder<1>&) {
    const __m128i a = _mm_unpacklo_epi8(block.row[0], block.row[1]);
    const __m128i b = _mm_unpackhi_epi8(block.row[0], block.row[1]);
    const __m128i c = _mm_unpacklo_epi8(block.row[2], block.row[3]);
    const __m128i d = _mm_unpackhi_epi8(block.row[2], block.row[3]);
    const __m128i quads[4] = {_mm_unpacklo_epi16(a, c), _mm_unpackhi_epi16(a, c),
                              _mm_unpacklo_epi16(b, d), _mm_unpackhi_epi16(b, d)};
    for (const __m128i quad : quads) {
        store_word(to, _mm_extract_epi32(quad, 0));
        store_word(to + pitch, _mm_extract_epi32(quad, 1));
        store_word(to + 2 * pitch, _mm_extract_epi32(quad, 2));
        store_word(to + 3 * pitch, _mm_extract_epi32(quad, 3));
        to += 4 * pitch;
    }
}

// For two-byte pixels: 8 rows of 8 bytes.
inline void store_block(uint8_t* to, int64_t pitch, const Block4& block, const TurnOrder<2>&) {
    const __m128i a = _mm_unpacklo_epi16(block.row[0], block.row[1]);
    const __m128i b = _mm_unpackhi_epi16(block.row[0], block.row[1]);
    const __m128i c = _mm_unpacklo_epi16(block.row[2], block.row[3]);
    const __m128i d = _mm_unpackhi_epi16(block.row[2], block.row[3]);
    const __m128i pairs[4] = {_mm_unpacklo_epi32(a, c), _mm_unpackhi_epi32(a, c),
                              _mm_unpacklo_epi32(b, d), _mm_unpackhi_epi32(b, d)};
    for (const __m128i pair : pairs) {
        _mm_storel_epi64(reinterpret_cast<__m128i*>(to), pair);
        _mm_storel_epi64(reinterpret_cast<__m128i*>(to + pitch), _mm_unpackhi_epi64(pair, pair));
        to += 2 * pitch;
    }
}

// For 3 and 4 bytes: 4 rows, 16 bytes written to each, of which 4 * P count. What comes next on
// the row must be written later.
template <int P>
void store_block(uint8_t* to, int64_t pitch, const Block4& block, const TurnOrder<P>& orders) {
    const __m128i pack = _mm_load_si128(reinterpret_cast<const __m128i*>(orders.pack));
    const Block4 turned = transposed(block);
    for (int k = 0; k < 4; ++k) {
        auto* at = reinterpret_cast<__m128i*>(to + k * pitch);
        _mm_storeu_si128(at, P == 4 ? turned.row[k] : _mm_shuffle_epi8(turned.row[k], pack));
    }
}

// Returns how many of the `count` pixels of each row it has turned; reads stay within the rows.
template <int P>
int32_t turn_rows(uint8_t* to, int64_t pitch, const Rows4& rows, int32_t count, int32_t step) {
    if constexpr (P <= 4) {
        static constexpr TurnOrder<P> orders;
        constexpr int pixels = P == 3 ? 4 : 16 / P;
        const uint8_t* order = step > 0 ? orders.forward : orders.backward;
        const __m128i spread = _mm_load_si128(reinterpret_cast<const __m128i*>(order));
        int32_t done = 0;
        for (; done + pixels <= count; done += pixels, to += pixels * pitch) {
            const int64_t at = step > 0 ? int64_t{done} * P : P - 16 - int64_t{done} * P;
            if (at < -rows.low || at + 16 > rows.high) break;
            store_block(to, pitch, load_block(rows, at, spread), orders);
        }
        return done;
    }
    return 0;
}

#endif

}  // namespace cvcli
