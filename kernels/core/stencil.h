// Neighbourhoods: where borders are read, and the arithmetic of filters, the same on both devices.
#pragma once

#include "core/border.h"
#include "core/pixels.h"

namespace cvcli {

// What lies outside an image: a rule, and the samples of a constant as exact floats.
struct Edges {
    int32_t border;
    int32_t reserved;
    float value[4];
};

static_assert(sizeof(Edges) == 24, "Edges is packed by Python");

// acc + weight * value, rounded once for uint8 and twice for other dtypes. The weights of uint8
// filters are multiples of 2^-16 below 2, so the exact sum has at most 44 bits: where there is no
// fused instruction double arithmetic gives the same.
template <class T>
CVCLI_FN float add_weighted(float acc, float weight, float value) {
    if constexpr (sizeof(T) == 1) {
#if CVCLI_CUDA
        return fmaf(weight, value, acc);
#elif defined(CVCLI_SIMD) && CVCLI_SIMD > 0
        return std::fma(weight, value, acc);
#else
        return static_cast<float>(static_cast<double>(weight) * value + acc);
#endif
    } else {
        return acc + weight * value;
    }
}

// A symmetric filter of radius R: taps that lie equally far meet before they are weighed.
// `half` holds the weights from the middle on, at(k) gives tap k of -R to R.
template <class T, int R, class At>
CVCLI_FN float weigh(const float* half, const At& at) {
    float acc = half[0] * at(0);
#if CVCLI_CUDA
#pragma unroll
#endif
    for (int k = 1; k <= R; ++k) acc = add_weighted<T>(acc, half[k], at(-k) + at(k));
    return acc;
}

// The same sample made sharper by what its blurred version lacks.
CVCLI_FN float unsharp(float value, float blurred, float amount) {
    return value + amount * (value - blurred);
}

// Floats as integers in the same order, so that extremes are the same whichever way they are found.
// -0 lies below 0; a NaN is the largest.
CVCLI_FN int32_t key_of(float value) {
    const int32_t bits = static_cast<int32_t>(bits_of(canonical(value)));
    return bits ^ (bits >> 31 & 0x7fffffff);
}

CVCLI_FN float value_of(int32_t key) {
    return float_of(static_cast<uint32_t>(key ^ (key >> 31 & 0x7fffffff)));
}

// One tap of a dense filter: its place from the middle on, and its weight, also as a whole number
// where all of them are some.
struct Tap {
    int32_t dy;
    int32_t dx;
    float weight;
    int32_t whole;
};

static_assert(sizeof(Tap) == 16, "Tap is packed by Python");

// The sum of a window as its mean, half to even: n is odd, so no mean is halfway. The one of bytes,
// of whose result the lowest byte counts, is exact for sums of up to 127^2 values of uint8: it is
// off by at most 255 * 2^-23, and a mean lies at least 1 / (2n) away from where it would round the
// other way.
CVCLI_FN uint32_t mean_of_bytes(float sum, float share) {
    const float magic = 12582912.0f;
    return bits_of(sum * share + magic);
}

// floor((sum + n / 2) / n) by a product: factor is 2^(31 + shift) / n, rounded up, where
// n <= 2^shift, and what is divided is below 2^31.
CVCLI_FN uint32_t mean_of_words(uint32_t sum, uint32_t half, uint32_t factor, int32_t shift) {
    return static_cast<uint32_t>(static_cast<uint64_t>(sum + half) * factor >> (31 + shift));
}

}  // namespace cvcli
