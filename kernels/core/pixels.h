// Whole pixels, and the steps that take one to the next.
#pragma once

#include "core/image.h"
#include "core/pixel.h"

namespace cvcli {

template <class T, int C>
struct Pixel {
    using Sample = T;
    static constexpr int kChannels = C;
    T v[C];
};

// A step is a struct with a call operator from one Pixel to another, of the same kind or not. Its
// member `takes<T, C>()` says which pixels it is made for; its own data are its parameters.

// Steps that only move channels say so: channel_of(n) is the source of channel n of the result,
// or -1 for white.
template <class>
struct Void {
    using type = void;
};
template <class Step, class = void>
struct MovesChannels {
    static constexpr bool value = false;
};
template <class Step>
struct MovesChannels<Step, typename Void<decltype(&Step::channel_of)>::type> {
    static constexpr bool value = true;
};

// Steps that mix the bytes of a pixel may do so in a word: the third byte of mixed(word) is the
// first of the result, which has alpha if the pixel has.
template <class Step, class = void>
struct MixesBytes {
    static constexpr bool value = false;
};
template <class Step>
struct MixesBytes<Step, typename Void<decltype(&Step::mixed)>::type> {
    static constexpr bool value = true;
};

// Steps whose integer results are rounded floats may say so: `unrounded<T>(pixel)` takes samples as
// floats, and what it gives rounds to the result, which has the same dtype and channels.
template <class Step, class = void>
struct RoundsFloats {
    static constexpr bool value = false;
};
template <class Step>
struct RoundsFloats<Step, typename Void<decltype(Step::kRounds)>::type> {
    static constexpr bool value = Step::kRounds;
};

// A lookup of every sample but alpha, in a table over all values of the sample's dtype.
struct Lookups {
    const void* entries;
    template <class T, int C>
    static constexpr bool takes() {
        return sizeof(T) < 4;
    }
    template <class T, int C>
    CVCLI_FN Pixel<T, C> operator()(Pixel<T, C> pixel) const {
        for (int c = 0; c < C; ++c) {
            if (!is_alpha<C>(c)) {
                pixel.v[c] = read_only(static_cast<const T*>(entries) + pixel.v[c]);
            }
        }
        return pixel;
    }
};

// A pointwise operator on every float sample but alpha.
template <class Operator>
struct Samples {
    Operator op;
    template <int C>
    CVCLI_FN Pixel<float, C> operator()(Pixel<float, C> pixel) const {
        for (int c = 0; c < C; ++c) {
            if (!is_alpha<C>(c)) pixel.v[c] = canonical(op(pixel.v[c]));
        }
        return pixel;
    }
};

// Steps in order; none is the identity.
template <class... Step>
struct Steps;

template <>
struct Steps<> {
    static constexpr bool kNone = true;
    template <class P>
    CVCLI_FN P operator()(P pixel) const {
        return pixel;
    }
};

template <class First, class... Rest>
struct Steps<First, Rest...> {
    static constexpr bool kNone = false;
    First first;
    Steps<Rest...> rest;
    template <class P>
    CVCLI_FN auto operator()(P pixel) const {
        return rest(first(pixel));
    }
};

CVCLI_FN Steps<> steps() {
    return {};
}

template <class First, class... Rest>
CVCLI_FN Steps<First, Rest...> steps(const First& first, const Rest&... rest) {
    return {first, steps(rest...)};
}

// A float result in its dtype: half to even, then saturated, NaN 0; floats keep their value.
template <class T>
CVCLI_FN T to_sample(float value) {
    const float top = static_cast<float>((1u << 8 * sizeof(T)) - 1);
#if CVCLI_CUDA
#if !defined(CVCLI_EMULATED)
    if constexpr (sizeof(T) == 1) {
        uint32_t sample;
        asm("cvt.rni.sat.u8.f32 %0, %1;" : "=r"(sample) : "f"(value));
        return static_cast<T>(sample);
    }
#endif
    const float within = fminf(fmaxf(value, 0.0f), top);
#else
    // Floats that are not negative are ordered as their bits, which compilers have a minimum for.
    const uint32_t low = bits_of(value > 0.0f ? value : 0.0f);
    const float within = float_of(smaller<int32_t>(low, bits_of(top)));
#endif
    // 1.5 * 2^23: adding it leaves no room for a fraction, and the number in the low bits.
    return static_cast<T>(bits_of(within + 12582912.0f));
}

template <>
CVCLI_FN float to_sample<float>(float value) {
    return canonical(value);
}

// The value of white.
template <class T>
constexpr float kWhite = static_cast<float>((1u << 8 * (sizeof(T) < 4 ? sizeof(T) : 1)) - 1);
template <>
constexpr float kWhite<float> = 1.0f;

// The parameters of an image: `first` for all of a uniform batch, else list[i].
template <class Params>
struct Each {
    Params first;
    const Params* list;
};

// The first of each pattern's parameters: the size of what the pattern reads, after the gather;
// where in the whole result the destination's first pixel lies; the image's rows of work.
struct Frame {
    int32_t height;
    int32_t width;
    int32_t y0;
    int32_t x0;
    int32_t rows;
    int32_t reserved;
};

static_assert(sizeof(Frame) == 24, "Frame is packed by Python");

// The address of a sample of a planar image whose planes lie one after the other.
template <class T>
CVCLI_FN T* plane_row_at(const Image& image, int32_t channel, int32_t row) {
    const int64_t line = int64_t{channel} * image.height + row;
    return reinterpret_cast<T*>(static_cast<uint8_t*>(image.data) + line * image.row_pitch);
}

}  // namespace cvcli

#if CVCLI_CUDA
#define CVCLI_PIXELWISE(name, Step)
#else
#include "core/pixels_cpu.h"
#endif
