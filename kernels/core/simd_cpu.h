// The few vector operations the map schedule uses. CVCLI_SIMD is set by the build: 0 none,
// 1 AVX2, 2 AVX-512 with VBMI. Bytes are only moved and looked up, so every level gives the same.
#pragma once

#include "core/platform.h"

#if !defined(CVCLI_SIMD)
#define CVCLI_SIMD 0
#endif

#if CVCLI_SIMD > 0
#include <immintrin.h>
#endif

namespace cvcli {

#if CVCLI_SIMD == 1

// Any byte of 16 to any place is one instruction on AVX2; across 32 bytes it is not.
using Vector = __m128i;
constexpr int kVectorBytes = 16;

inline Vector load_vector(const uint8_t* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
inline void store_vector(uint8_t* to, Vector bytes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
}
inline Vector permute(Vector bytes, Vector at) {
    return _mm_shuffle_epi8(bytes, at);
}
inline Vector merged(Vector bytes, Vector keep, Vector fill) {
    return _mm_or_si128(_mm_and_si128(bytes, keep), fill);
}

#elif CVCLI_SIMD == 2

using Vector = __m512i;
constexpr int kVectorBytes = 64;

inline Vector load_vector(const uint8_t* from) {
    return _mm512_loadu_si512(from);
}
inline void store_vector(uint8_t* to, Vector bytes) {
    _mm512_storeu_si512(to, bytes);
}
inline Vector permute(Vector bytes, Vector at) {
    return _mm512_permutexvar_epi8(at, bytes);
}
inline Vector merged(Vector bytes, Vector keep, Vector fill) {
    return _mm512_or_si512(_mm512_and_si512(bytes, keep), fill);
}

#endif

}  // namespace cvcli
