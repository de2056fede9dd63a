// Every two pixels of a row to one, rounded up at half: what weights of a half come to.
#pragma once

#include "core/bytes_cpu.h"

namespace cvcli {

#if CVCLI_SIMD == 0

constexpr bool kHalvesRows = false;
template <int C>
void halve_row(uint8_t*, const uint8_t*, int64_t, int64_t) {}

#else

constexpr bool kHalvesRows = true;

#if CVCLI_SIMD == 1

// Places in two vectors of 16 bytes: a shuffle of either gives 0 for what is in the other.
template <int C, int Odd>
struct HalfOrder {
    alignas(16) uint8_t low[16] = {};
    alignas(16) uint8_t high[16] = {};
    HalfOrder() {
        for (int i = 0; i < 16; ++i) {
            const int from = (2 * (i / C) + Odd) * C + i % C;
            low[i] = static_cast<uint8_t>(from < 16 ? from : 128);
            high[i] = static_cast<uint8_t>(from < 16 || from > 31 ? 128 : from - 16);
        }
    }
    Vector pick(Vector a, Vector b) const {
        return _mm_or_si128(permute(a, load_vector(low)), permute(b, load_vector(high)));
    }
};
inline Vector average(Vector a, Vector b) {
    return _mm_avg_epu8(a, b);
}

#else

template <int C, int Odd>
struct HalfOrder {
    alignas(64) uint8_t places[64];
    HalfOrder() {
        for (int i = 0; i < 64; ++i) {
            places[i] = static_cast<uint8_t>(((2 * (i / C) + Odd) * C + i % C) % 128);
        }
    }
    Vector pick(Vector a, Vector b) const {
        return _mm512_permutex2var_epi8(a, load_vector(places), b);
    }
};
inline Vector average(Vector a, Vector b) {
    return _mm512_avg_epu8(a, b);
}

#endif

// The first `count` bytes of the result of a row of `row_bytes`; up to a vector more is written.
template <int C>
void halve_row(uint8_t* out, const uint8_t* row, int64_t row_bytes, int64_t count) {
    constexpr int step = kVectorBytes / C * C;
    const HalfOrder<C, 0> even;
    const HalfOrder<C, 1> odd;
    const auto halved = [&](const uint8_t* from) {
        const Vector a = load_vector(from);
        const Vector b = load_vector(from + kVectorBytes);
        return average(even.pick(a, b), odd.pick(a, b));
    };
    int64_t at = 0;
    for (; at < count && 2 * at + 2 * kVectorBytes <= row_bytes; at += step) {
        store_vector(out + at, halved(row + 2 * at));
    }
    uint8_t rest[2 * kVectorBytes] = {};
    for (; at < count; at += step) {
        const int64_t left = smaller(row_bytes - 2 * at, int64_t{2} * kVectorBytes);
        std::memcpy(rest, row + 2 * at, static_cast<size_t>(left));
        store_vector(out + at, halved(rest));
    }
}

#endif

}  // namespace cvcli
