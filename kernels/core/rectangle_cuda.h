// The rectangle pattern on the GPU: whole words of samples are compared, extremes of 1, 2, 4, ...
// samples made from one another in registers.
#pragma once

#include "core/axes_cuda.h"

namespace cvcli {

// The extremes of two halves of a word each.
template <bool Largest>
CVCLI_FN uint32_t pick_halves(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && !defined(CVCLI_EMULATED)
    uint32_t picked;
    if constexpr (Largest) {
        asm("max.u16x2 %0, %1, %2;" : "=r"(picked) : "r"(a), "r"(b));
    } else {
        asm("min.u16x2 %0, %1, %2;" : "=r"(picked) : "r"(a), "r"(b));
    }
    return picked;
#else
    return Largest ? __vmaxu2(a, b) : __vminu2(a, b);
#endif
}

// The extremes of the samples of a word each; floats are keys by now.
template <class T, bool Largest>
CVCLI_FN uint32_t pick_word(uint32_t a, uint32_t b) {
    if constexpr (sizeof(T) == 1) {
        // A half's upper byte decides whatever the lower one is.
        const uint32_t odd = pick_halves<Largest>(a, b);
        const uint32_t even = pick_halves<Largest>(a << 8, b << 8);
        return __byte_perm(even, odd, 0x7351);
    } else if constexpr (sizeof(T) == 2) {
        return pick_halves<Largest>(a, b);
    } else {
        const int32_t x = static_cast<int32_t>(a), y = static_cast<int32_t>(b);
        return static_cast<uint32_t>(Largest ? larger(x, y) : smaller(x, y));
    }
}

// The word that lies `bytes` after word i.
template <int N>
CVCLI_FN uint32_t word_after(const uint32_t (&words)[N], int i, int bytes) {
    const int whole = i + bytes / 4;
    const uint32_t low = words[smaller(whole, N - 1)], high = words[smaller(whole + 1, N - 1)];
    return bytes % 4 == 0 ? low : __funnelshift_r(low, high, bytes % 4 * 8);
}

// words[i] becomes the extreme of `Length` samples that lie `Step` bytes apart, the first in it.
// Words near the end lack what comes after them.
template <class T, bool Largest, int Length, int Step, int N>
CVCLI_FN void pick_run(uint32_t (&words)[N]) {
    constexpr int last = Length >= 8 ? 8 : Length >= 4 ? 4 : Length >= 2 ? 2 : 1;
#pragma unroll
    for (int size = 1; size < last; size *= 2) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            words[i] = pick_word<T, Largest>(words[i], word_after(words, i, size * Step));
        }
    }
    // Two that overlap cover what is left.
    if constexpr (Length > last) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            words[i] =
                pick_word<T, Largest>(words[i], word_after(words, i, (Length - last) * Step));
        }
    }
}

CVCLI_FN uint32_t key_word(uint32_t word) {
    return static_cast<uint32_t>(key_of(float_of(word)));
}

// The tile's rows, 16 bytes of results a thread and turn.
template <class Shape, bool Largest>
CVCLI_FN void pick_lines(const uint8_t* room, uint8_t* middle) {
    using T = typename Shape::Sample;
    constexpr int groups = Shape::kRow / kChunk, words = (2 * Shape::kPad + kChunk) / 4;
    constexpr int lead = Shape::kPad - Shape::kRadiusX * Shape::kPixel;
    constexpr int count = words - lead / 4;
#pragma unroll 1
    for (int i = threadIdx.x; i < groups * Shape::kRows; i += Shape::kThreads) {
        const int row = i / groups, group = i % groups;
        uint32_t all[words], own[count];
        read_words(room + row * Shape::kPitch + group * kChunk, all);
#pragma unroll
        for (int k = 0; k < count; ++k) own[k] = word_after(all, k, lead);
        if constexpr (sizeof(T) == 4) {
#pragma unroll
            for (int k = 0; k < count; ++k) own[k] = key_word(own[k]);
        }
        pick_run<T, Largest, 2 * Shape::kRadiusX + 1, Shape::kPixel>(own);
        *reinterpret_cast<uint4*>(middle + row * Shape::kRow + group * kChunk) = {own[0], own[1],
                                                                                  own[2], own[3]};
    }
}

// The tile's columns, a word wide.
template <class Shape, bool Largest>
CVCLI_FN void pick_columns(const uint8_t* middle, Words<1> (&results)[Columns<Shape, 1>::kRounds]) {
    using T = typename Shape::Sample;
    using Own = Columns<Shape, 1>;
    constexpr int reach = Own::kRounds + 2 * Shape::kRadiusY;
    uint32_t words[reach];
#pragma unroll
    for (int k = 0; k < reach; ++k) {
        const int row = Own::row() + k;
        words[k] = reinterpret_cast<const uint32_t*>(middle + row * Shape::kRow)[Own::column()];
    }
    pick_run<T, Largest, 2 * Shape::kRadiusY + 1, 4>(words);
#pragma unroll
    for (int r = 0; r < Own::kRounds; ++r) {
        results[r].v[0] = words[r];
        if constexpr (sizeof(T) == 4) {
            results[r].v[0] = bits_of(value_of(static_cast<int32_t>(words[r])));
        }
    }
}

template <int RX, int RY, int TW, int TH, int Turns, int Largest, class W>
CVCLI_FN void rectangle(const W& work, const Each<RectangleParams>& each) {
    using In = typename W::In;
    using Shape = Tile<typename In::Sample, In::kChannels, RX, RY, TW, TH, Turns>;
    __shared__ __align__(16) uint8_t room[Shape::kBytes];
    __shared__ __align__(16) uint8_t middle[Shape::kRows * Shape::kRow];
    for_each_place<Shape>(work, each,
                          [&](int32_t index, const Image& dst, const RectangleParams& params,
                              const TilePlace& place) {
                              const Image src = work.src(index);
                              load_tile<Shape>(work.reader(src, index), room, place, params.frame,
                                               params.edges);
                              __syncthreads();
                              pick_lines<Shape, Largest != 0>(room, middle);
                              __syncthreads();
                              Words<1> results[Columns<Shape, 1>::kRounds];
                              pick_columns<Shape, Largest != 0>(middle, results);
                              store_results<Shape, 1>(work, dst, place, room, results);
                          });
}

}  // namespace cvcli
