// Words put together from bytes and from floats, by as few instructions as there are for it.
#pragma once

#include "core/pixels.h"

namespace cvcli {

// The bytes at four ascending places of words; all are known when this is compiled.
CVCLI_FN uint32_t bytes_at(const uint32_t* words, int a, int b, int c, int d) {
    const int first = a / 4, last = d / 4;
    if (last - first > 2) {
        const uint32_t left = __byte_perm(words[a / 4], words[b / 4], a % 4 | (4 + b % 4) << 4);
        const uint32_t right = __byte_perm(words[c / 4], words[d / 4], c % 4 | (4 + d % 4) << 4);
        return __byte_perm(left, right, 0x5410);
    }
    const int places[4] = {a - first * 4, b - first * 4, c - first * 4, d - first * 4};
    uint32_t near = 0, far = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const bool here = places[i] < 8;
        near |= (here ? places[i] : 0) << 4 * i;
        far |= (here ? i : places[i] - 4) << 4 * i;
    }
    const uint32_t bytes = __byte_perm(words[first], words[smaller(first + 1, last)], near);
    return last - first < 2 ? bytes : __byte_perm(bytes, words[last], far);
}

// Four pixels of C bytes, each in a word of its own: byte n of it is the one that the n-th four
// bits of `picks` name.
template <int C>
CVCLI_FN void pixel_words(const uint32_t* in, uint32_t picks, uint32_t (&pixel)[4]) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const int word = k * C / 4, within = k * C % 4;
        pixel[k] = __byte_perm(in[word], in[smaller(word + 1, C - 1)], picks + 0x1111u * within);
    }
}

// The reverse: of each word N bytes from byte `At` on.
template <int N, int At = 0>
CVCLI_FN void pack_pixels(const uint32_t (&pixel)[4], uint32_t* out) {
    constexpr uint32_t on = 0x1111u * At;
    if constexpr (N == 1) {
        const uint32_t left = __byte_perm(pixel[0], pixel[1], 0x0040 + on);
        out[0] = __byte_perm(left, __byte_perm(pixel[2], pixel[3], 0x0040 + on), 0x5410);
    } else if constexpr (N == 2) {
        out[0] = __byte_perm(pixel[0], pixel[1], 0x5410 + on);
        out[1] = __byte_perm(pixel[2], pixel[3], 0x5410 + on);
    } else if constexpr (N == 3) {
        out[0] = __byte_perm(pixel[0], pixel[1], 0x4210 + on);
        out[1] = __byte_perm(pixel[1], pixel[2], 0x5421 + on);
        out[2] = __byte_perm(pixel[2], pixel[3], 0x6542 + on);
    } else {
#pragma unroll
        for (int k = 0; k < 4; ++k) out[k] = pixel[k];
    }
}

// A byte or a half of a word as a float, at full rate: it becomes the end of 2^23's mantissa.
template <class T>
CVCLI_FN float float_at(uint32_t word, int sample) {
    constexpr uint32_t big = 0x4b000000u;
    if constexpr (sizeof(T) == 1) {
        return float_of(__byte_perm(word, big, 0x7440 | sample)) - 8388608.0f;
    } else if constexpr (sizeof(T) == 2) {
        return float_of(__byte_perm(word, big, sample ? 0x7432 : 0x7410)) - 8388608.0f;
    } else {
        return float_of(word);
    }
}

// Floats as the samples of a word, rounded and saturated as by to_sample; the hardware does two at
// a time.
template <class T>
CVCLI_FN uint32_t rounded_word(const float* v) {
    static_assert(sizeof(T) < 4, "of integers");
#if defined(CVCLI_EMULATED)
    uint32_t word = 0;
    for (int i = 0; i < 4 / int(sizeof(T)); ++i) {
        word |= uint32_t{to_sample<T>(v[i])} << 8 * int(sizeof(T)) * i;
    }
    return word;
#else
    int32_t whole[4 / sizeof(T)];
#pragma unroll
    for (int i = 0; i < 4 / int(sizeof(T)); ++i) whole[i] = __float2int_rn(v[i]);
    uint32_t word;
    if constexpr (sizeof(T) == 1) {
        asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(word) : "r"(whole[3]), "r"(whole[2]));
        asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %0;" : "+r"(word) : "r"(whole[1]), "r"(whole[0]));
    } else {
        asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(word) : "r"(whole[1]), "r"(whole[0]));
    }
    return word;
#endif
}

}  // namespace cvcli
