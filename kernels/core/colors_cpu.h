// Red, green and blue bytes as vectors of floats, without a detour through planes.
#pragma once

#include "core/channels_cpu.h"
#include "core/floats_cpu.h"

namespace cvcli {

// Steps from colours to colours that are a few sums and products say so: colors(in, out) does
// them on vectors, before what is made is rounded and cut off.
template <class Step, class = void>
struct OnFloats {
    static constexpr bool value = false;
};
template <class Step>
struct OnFloats<Step, typename Void<decltype(&Step::colors)>::type> {
    static constexpr bool value = CVCLI_SIMD > 0;
};

#if CVCLI_SIMD > 0

#if CVCLI_SIMD == 2

using Words = __m512i;
inline Words load_threes(const uint8_t* from) {
    return _mm512_maskz_loadu_epi8(0xffffffffffff, from);
}
inline void store_threes(uint8_t* to, Words bytes) {
    _mm512_mask_storeu_epi8(to, 0xffffffffffff, bytes);
}
inline Words move_bytes(Words bytes, const uint8_t* at) {
    const Words order = load_vector(at);
    return _mm512_maskz_permutexvar_epi8(~_mm512_movepi8_mask(order), order, bytes);
}
inline Words words_of(Floats a) {
    const __m512 within =
        _mm512_min_ps(_mm512_max_ps(a.v, _mm512_setzero_ps()), _mm512_set1_ps(255.0f));
    return _mm512_cvtps_epi32(within);
}
inline Words joined(Words red, Words green, Words blue) {
    const Words both = _mm512_or_si512(red, _mm512_slli_epi32(green, 8));
    return _mm512_or_si512(both, _mm512_slli_epi32(blue, 16));
}
inline Floats floats_of(Words words) {
    return {_mm512_cvtepi32_ps(words)};
}
// Where pixel i begins among the bytes loaded.
constexpr int three_at(int i) {
    return 3 * i;
}
constexpr int kThreesSlack = 0;

#else

// Four pixels in each half, so that no byte has to cross over.
using Words = __m256i;
inline Words load_threes(const uint8_t* from) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_vector(from)),
                                   load_vector(from + 12), 1);
}
inline void store_threes(uint8_t* to, Words bytes) {
    store_vector(to, _mm256_castsi256_si128(bytes));
    store_vector(to + 12, _mm256_extracti128_si256(bytes, 1));
}
inline Words move_bytes(Words bytes, const uint8_t* at) {
    return _mm256_shuffle_epi8(bytes, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
}
inline Words words_of(Floats a) {
    const __m256 within =
        _mm256_min_ps(_mm256_max_ps(a.v, _mm256_setzero_ps()), _mm256_set1_ps(255.0f));
    return _mm256_cvtps_epi32(within);
}
inline Words joined(Words red, Words green, Words blue) {
    const Words both = _mm256_or_si256(red, _mm256_slli_epi32(green, 8));
    return _mm256_or_si256(both, _mm256_slli_epi32(blue, 16));
}
inline Floats floats_of(Words words) {
    return {_mm256_cvtepi32_ps(words)};
}
constexpr int three_at(int i) {
    return 3 * (i % 4);
}
constexpr int kThreesSlack = 2;

#endif

// Which byte goes to byte j of the words of a channel, and of packed pixels; 0x80 and up: none.
struct ThreeOrder {
    alignas(64) uint8_t split[3][sizeof(Words)];
    alignas(64) uint8_t join[sizeof(Words)];
    constexpr ThreeOrder() : split(), join() {
        for (int j = 0; j < int(sizeof(Words)); ++j) {
            for (int c = 0; c < 3; ++c) {
                split[c][j] = static_cast<uint8_t>(j % 4 ? 0x80 : three_at(j / 4) + c);
            }
            const int pixel = CVCLI_SIMD == 2 ? j / 3 : j % 16 / 3;
            const int most = CVCLI_SIMD == 2 ? 16 : 4;
            const int channel = (CVCLI_SIMD == 2 ? j : j % 16) % 3;
            join[j] = static_cast<uint8_t>(pixel < most ? pixel * 4 + channel : 0x80);
        }
    }
};

// All pixels but a few at the end of the row, which a vector might pass; returns how many.
template <class Step>
int64_t step_colors(const Step step, const uint8_t* from, uint8_t* to, int64_t width) {
    static constexpr ThreeOrder order;
    constexpr int pixels = Floats::kCount;
    int64_t x = 0;
    for (; x + pixels + kThreesSlack <= width; x += pixels) {
        const Words bytes = load_threes(from + 3 * x);
        Floats in[3], out[3];
        for (int c = 0; c < 3; ++c) in[c] = floats_of(move_bytes(bytes, order.split[c]));
        step.colors(in, out);
        const Words made = joined(words_of(out[0]), words_of(out[1]), words_of(out[2]));
        store_threes(to + 3 * x, move_bytes(made, order.join));
    }
    return x;
}

#else

template <class Step>
int64_t step_colors(const Step&, const uint8_t*, uint8_t*, int64_t) {
    return 0;
}

#endif

}  // namespace cvcli
