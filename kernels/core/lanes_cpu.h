// A block of pixels with each channel in an array of its own, so that loops over pixels become
// vector instructions. Splitting and joining bytes of three channels is by shuffles.
#pragma once

#include "core/pixels.h"
#include "core/simd_cpu.h"

namespace cvcli {

// Pixels a block: whole vectors of any sample on every build.
constexpr int kLanes = 128;

template <class T, int C>
struct Lanes {
    alignas(64) T v[C][kLanes];
};

// A row of pixels to rows of their channels, which lie elsewhere, and back. The lists of rows are
// copied, for a byte that is written may be anything, also a part of such a list.
template <class T, int C>
CVCLI_ONCE void split_lanes(const T* __restrict from, T* const* to, int count) {
    if constexpr (C == 1) {
        std::memcpy(to[0], from, static_cast<size_t>(count) * sizeof(T));
        return;
    }
    T* planes[C];
    for (int c = 0; c < C; ++c) planes[c] = to[c];
    for (int i = 0; i < count; ++i) {
        for (int c = 0; c < C; ++c) planes[c][i] = from[i * C + c];
    }
}

template <class T, int C>
inline void join_some(const T* const (&planes)[C], T* __restrict to, int count) {
    for (int i = 0; i < count; ++i) {
        for (int c = 0; c < C; ++c) to[i * C + c] = planes[c][i];
    }
}

template <class T, int C>
CVCLI_ONCE void join_lanes(const T* const* from, T* __restrict to, int count) {
    if constexpr (C == 1) {
        std::memcpy(to, from[0], static_cast<size_t>(count) * sizeof(T));
        return;
    }
    const T* planes[C];
    for (int c = 0; c < C; ++c) planes[c] = from[c];
    if (count == kLanes) return join_some<T, C>(planes, to, kLanes);
    join_some<T, C>(planes, to, count);
}

#if CVCLI_SIMD == 1

constexpr int kThreesStep = 16;

// Which byte of the k-th of three vectors goes to byte j of the plane c, and back; 0x80 is none.
struct Threes {
    alignas(16) uint8_t split[3][3][16];
    alignas(16) uint8_t join[3][3][16];
    constexpr Threes() : split(), join() {
        for (int k = 0; k < 3; ++k) {
            for (int c = 0; c < 3; ++c) {
                for (int j = 0; j < 16; ++j) split[k][c][j] = join[k][c][j] = 0x80;
            }
        }
        for (int at = 0; at < 48; ++at) {
            split[at / 16][at % 3][at / 3] = static_cast<uint8_t>(at % 16);
            join[at / 16][at % 3][at % 16] = static_cast<uint8_t>(at / 3);
        }
    }
};

inline Vector picked(const uint8_t* from_a, const uint8_t* from_b, const uint8_t* from_c, Vector a,
                     Vector b, Vector c) {
    const Vector ab =
        _mm_or_si128(permute(a, load_vector(from_a)), permute(b, load_vector(from_b)));
    return _mm_or_si128(ab, permute(c, load_vector(from_c)));
}

inline void split_threes(const uint8_t* from, uint8_t* const* to, int at) {
    static constexpr Threes order;
    const Vector a = load_vector(from), b = load_vector(from + 16), c = load_vector(from + 32);
    for (int n = 0; n < 3; ++n) {
        const auto& o = order.split;
        store_vector(to[n] + at, picked(o[0][n], o[1][n], o[2][n], a, b, c));
    }
}

inline void join_threes(const uint8_t* const* from, uint8_t* to, int at) {
    static constexpr Threes order;
    const Vector a = load_vector(from[0] + at), b = load_vector(from[1] + at);
    const Vector c = load_vector(from[2] + at);
    for (int k = 0; k < 3; ++k) {
        const auto& o = order.join[k];
        store_vector(to + 16 * k, picked(o[0], o[1], o[2], a, b, c));
    }
}

#elif CVCLI_SIMD == 2

constexpr int kThreesStep = 64;

// Each vector of the result comes from two vectors by one permutation and, where a bit of `third`
// is set, from the third by another.
struct Threes {
    alignas(64) uint8_t split[3][64];
    alignas(64) uint8_t join[3][64];
    uint64_t third_split[3];
    uint64_t third_join[3];
    constexpr Threes() : split(), join(), third_split(), third_join() {
        for (int at = 0; at < 192; ++at) {
            const int plane = at % 3, pixel = at / 3, part = at / 64, byte = at % 64;
            split[plane][pixel] = static_cast<uint8_t>(at % 128);
            if (part == 2) third_split[plane] |= uint64_t{1} << pixel;
            join[part][byte] = static_cast<uint8_t>(pixel + (plane == 1 ? 64 : 0));
            if (plane == 2) third_join[part] |= uint64_t{1} << byte;
        }
    }
};

inline Vector picked(const uint8_t* order, uint64_t third, Vector a, Vector b, Vector c) {
    const Vector at = load_vector(order);
    return _mm512_mask_permutexvar_epi8(_mm512_permutex2var_epi8(a, at, b), third, at, c);
}

inline void split_threes(const uint8_t* from, uint8_t* const* to, int at) {
    static constexpr Threes order;
    const Vector a = load_vector(from), b = load_vector(from + 64), c = load_vector(from + 128);
    for (int n = 0; n < 3; ++n) {
        store_vector(to[n] + at, picked(order.split[n], order.third_split[n], a, b, c));
    }
}

inline void join_threes(const uint8_t* const* from, uint8_t* to, int at) {
    static constexpr Threes order;
    const Vector a = load_vector(from[0] + at), b = load_vector(from[1] + at);
    const Vector c = load_vector(from[2] + at);
    for (int k = 0; k < 3; ++k) {
        store_vector(to + 64 * k, picked(order.join[k], order.third_join[k], a, b, c));
    }
}

#endif

#if CVCLI_SIMD > 0

template <>
inline void split_lanes<uint8_t, 3>(const uint8_t* __restrict from, uint8_t* const* to, int count) {
    uint8_t* planes[3] = {to[0], to[1], to[2]};
    int i = 0;
    for (; i + kThreesStep <= count; i += kThreesStep) split_threes(from + i * 3, planes, i);
    for (; i < count; ++i) {
        for (int c = 0; c < 3; ++c) planes[c][i] = from[i * 3 + c];
    }
}

template <>
inline void join_lanes<uint8_t, 3>(const uint8_t* const* from, uint8_t* __restrict to, int count) {
    const uint8_t* planes[3] = {from[0], from[1], from[2]};
    int i = 0;
    for (; i + kThreesStep <= count; i += kThreesStep) join_threes(planes, to + i * 3, i);
    for (; i < count; ++i) {
        for (int c = 0; c < 3; ++c) to[i * 3 + c] = planes[c][i];
    }
}

#endif

}  // namespace cvcli
