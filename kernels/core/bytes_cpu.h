// Vectors of bytes that work within groups of 16, so that one source serves every width: one
// group without SIMD or with SSE2, two with AVX2, four with AVX-512. All of it is exact.
#pragma once

#include "core/simd_cpu.h"

#if CVCLI_SIMD == 0 && (defined(__SSE2__) || defined(_M_X64))
#include <emmintrin.h>
#define CVCLI_SSE2 1
#else
#define CVCLI_SSE2 0
#endif

namespace cvcli {

#if CVCLI_SIMD == 2

using Bytes = __m512i;
#define CVCLI_BYTES(name) _mm512_##name
inline Bytes load_bytes(const uint8_t* from) {
    return _mm512_loadu_si512(from);
}
inline void store_bytes(uint8_t* to, Bytes a) {
    _mm512_storeu_si512(to, a);
}
inline Bytes no_bytes() {
    return _mm512_setzero_si512();
}
inline Bytes load_groups(const uint8_t* const* rows, int64_t at) {
    Bytes out = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i*)(rows[0] + at)));
    out = _mm512_inserti32x4(out, _mm_loadu_si128((const __m128i*)(rows[16] + at)), 1);
    out = _mm512_inserti32x4(out, _mm_loadu_si128((const __m128i*)(rows[32] + at)), 2);
    return _mm512_inserti32x4(out, _mm_loadu_si128((const __m128i*)(rows[48] + at)), 3);
}
inline void store_groups(uint8_t* const* rows, int64_t at, Bytes a) {
    _mm_storeu_si128((__m128i*)(rows[0] + at), _mm512_castsi512_si128(a));
    _mm_storeu_si128((__m128i*)(rows[16] + at), _mm512_extracti32x4_epi32(a, 1));
    _mm_storeu_si128((__m128i*)(rows[32] + at), _mm512_extracti32x4_epi32(a, 2));
    _mm_storeu_si128((__m128i*)(rows[48] + at), _mm512_extracti32x4_epi32(a, 3));
}

#elif CVCLI_SIMD == 1

using Bytes = __m256i;
#define CVCLI_BYTES(name) _mm256_##name
inline Bytes load_bytes(const uint8_t* from) {
    return _mm256_loadu_si256((const __m256i*)from);
}
inline void store_bytes(uint8_t* to, Bytes a) {
    _mm256_storeu_si256((__m256i*)to, a);
}
inline Bytes no_bytes() {
    return _mm256_setzero_si256();
}
inline Bytes load_groups(const uint8_t* const* rows, int64_t at) {
    const __m128i low = _mm_loadu_si128((const __m128i*)(rows[0] + at));
    const __m128i high = _mm_loadu_si128((const __m128i*)(rows[16] + at));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}
inline void store_groups(uint8_t* const* rows, int64_t at, Bytes a) {
    _mm_storeu_si128((__m128i*)(rows[0] + at), _mm256_castsi256_si128(a));
    _mm_storeu_si128((__m128i*)(rows[16] + at), _mm256_extracti128_si256(a, 1));
}

#elif CVCLI_SSE2

using Bytes = __m128i;
#define CVCLI_BYTES(name) _mm_##name
inline Bytes load_bytes(const uint8_t* from) {
    return _mm_loadu_si128((const __m128i*)from);
}
inline void store_bytes(uint8_t* to, Bytes a) {
    _mm_storeu_si128((__m128i*)to, a);
}
inline Bytes no_bytes() {
    return _mm_setzero_si128();
}

#endif

#if defined(CVCLI_BYTES)

inline Bytes low_bytes(Bytes a, Bytes b) {
    return CVCLI_BYTES(unpacklo_epi8)(a, b);
}
inline Bytes high_bytes(Bytes a, Bytes b) {
    return CVCLI_BYTES(unpackhi_epi8)(a, b);
}
inline Bytes same_pair(int32_t pair) {
    return CVCLI_BYTES(set1_epi32)(pair);
}
inline Bytes add_pairs(Bytes sum, Bytes samples, Bytes weights) {
    return CVCLI_BYTES(add_epi32)(sum, CVCLI_BYTES(madd_epi16)(samples, weights));
}
inline Bytes join_sums(Bytes high, Bytes low, int shift) {
    return CVCLI_BYTES(add_epi32)(CVCLI_BYTES(slli_epi32)(high, shift), low);
}
inline Bytes sums_to_words(Bytes a, Bytes b, int shift) {
    return CVCLI_BYTES(packs_epi32)(CVCLI_BYTES(srai_epi32)(a, shift),
                                    CVCLI_BYTES(srai_epi32)(b, shift));
}
inline Bytes words_to_bytes(Bytes a, Bytes b) {
    return CVCLI_BYTES(packus_epi16)(a, b);
}
inline Bytes average_bytes(Bytes a, Bytes b) {
    return CVCLI_BYTES(avg_epu8)(a, b);
}

#else

// Plain loops over one group; the compiler vectorises them for other processors.
struct Bytes {
    uint8_t at[16];
};
inline Bytes load_bytes(const uint8_t* from) {
    Bytes a;
    std::memcpy(&a, from, 16);
    return a;
}
inline void store_bytes(uint8_t* to, Bytes a) {
    std::memcpy(to, &a, 16);
}
inline Bytes no_bytes() {
    return {};
}
template <class T>
struct Lanes {
    T at[16 / sizeof(T)];
};
template <class T>
Lanes<T> lanes(Bytes a) {
    return same_bits<Lanes<T>>(a);
}
inline Bytes low_bytes(Bytes a, Bytes b) {
    Bytes out;
    for (int i = 0; i < 16; ++i) out.at[i] = i % 2 ? b.at[i / 2] : a.at[i / 2];
    return out;
}
inline Bytes high_bytes(Bytes a, Bytes b) {
    Bytes out;
    for (int i = 0; i < 16; ++i) out.at[i] = i % 2 ? b.at[8 + i / 2] : a.at[8 + i / 2];
    return out;
}
inline Bytes same_pair(int32_t pair) {
    return same_bits<Bytes>(Lanes<int32_t>{{pair, pair, pair, pair}});
}
inline Bytes add_pairs(Bytes sum, Bytes samples, Bytes weights) {
    auto out = lanes<uint32_t>(sum);
    const auto s = lanes<int16_t>(samples);
    const auto w = lanes<int16_t>(weights);
    for (int i = 0; i < 4; ++i) {
        out.at[i] += static_cast<uint32_t>(s.at[2 * i] * w.at[2 * i]);
        out.at[i] += static_cast<uint32_t>(s.at[2 * i + 1] * w.at[2 * i + 1]);
    }
    return same_bits<Bytes>(out);
}
inline Bytes join_sums(Bytes high, Bytes low, int shift) {
    auto out = lanes<uint32_t>(high);
    const auto b = lanes<uint32_t>(low);
    for (int i = 0; i < 4; ++i) out.at[i] = (out.at[i] << shift) + b.at[i];
    return same_bits<Bytes>(out);
}
inline Bytes sums_to_words(Bytes a, Bytes b, int shift) {
    Lanes<int16_t> out;
    for (int i = 0; i < 8; ++i) {
        const int32_t value = lanes<int32_t>(i < 4 ? a : b).at[i % 4] >> shift;
        out.at[i] = static_cast<int16_t>(larger(-32768, smaller(32767, value)));
    }
    return same_bits<Bytes>(out);
}
inline Bytes words_to_bytes(Bytes a, Bytes b) {
    Bytes out;
    for (int i = 0; i < 16; ++i) {
        const int value = lanes<int16_t>(i < 8 ? a : b).at[i % 8];
        out.at[i] = static_cast<uint8_t>(larger(0, smaller(255, value)));
    }
    return out;
}
inline Bytes average_bytes(Bytes a, Bytes b) {
    for (int i = 0; i < 16; ++i) a.at[i] = static_cast<uint8_t>((a.at[i] + b.at[i] + 1) / 2);
    return a;
}

#endif

#if !defined(CVCLI_BYTES) || CVCLI_SSE2
inline Bytes load_groups(const uint8_t* const* rows, int64_t at) {
    return load_bytes(rows[0] + at);
}
inline void store_groups(uint8_t* const* rows, int64_t at, Bytes a) {
    store_bytes(rows[0] + at, a);
}
#endif

constexpr int kBytes = sizeof(Bytes);

// Four rounds of interleaving i with i + 8 turn a 16 by 16 matrix of bytes in every group: each
// round rotates the eight bits of (row, column) by one.
inline void turn_groups(Bytes (&m)[16]) {
    Bytes n[16];
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < 8; ++i) {
            n[2 * i] = low_bytes(m[i], m[i + 8]);
            n[2 * i + 1] = high_bytes(m[i], m[i + 8]);
        }
        for (int i = 0; i < 8; ++i) {
            m[2 * i] = low_bytes(n[i], n[i + 8]);
            m[2 * i + 1] = high_bytes(n[i], n[i + 8]);
        }
    }
}

}  // namespace cvcli
