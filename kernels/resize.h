// Colour times alpha before resampling, and back: what is transparent must not bleed.
#pragma once

#include "core/arith.h"
#include "core/pixels.h"

namespace cvcli {

// Four bytes as one word, which compilers keep in vectors.
CVCLI_FN uint32_t word_of(const Pixel<uint8_t, 4>& pixel) {
#if CVCLI_CUDA
    return pixel.v[0] | pixel.v[1] << 8 | pixel.v[2] << 16 | uint32_t{pixel.v[3]} << 24;
#else
    return same_bits<uint32_t>(pixel);
#endif
}

CVCLI_FN Pixel<uint8_t, 4> pixel_of(uint32_t word) {
#if CVCLI_CUDA
    return {{static_cast<uint8_t>(word), static_cast<uint8_t>(word >> 8),
             static_cast<uint8_t>(word >> 16), static_cast<uint8_t>(word >> 24)}};
#else
    return same_bits<Pixel<uint8_t, 4>>(word);
#endif
}

// For 8 bits c * a / 255, rounded; else the product in float32, without a division.
struct Premultiply {
    float unused;
    static constexpr bool kOnWords = true;
    template <class T, int C>
    static constexpr bool takes() {
        return kHasAlpha<C>;
    }
    template <int C>
    CVCLI_FN Pixel<uint8_t, C> operator()(Pixel<uint8_t, C> pixel) const {
        for (int c = 0; c < C - 1; ++c) {
            const uint32_t product = uint32_t{pixel.v[c]} * pixel.v[C - 1] + 128;
            pixel.v[c] = static_cast<uint8_t>((product + (product >> 8)) >> 8);
        }
        return pixel;
    }
    // The same, two colours in one word where they fit.
    CVCLI_FN Pixel<uint8_t, 4> operator()(const Pixel<uint8_t, 4>& pixel) const {
        const uint32_t word = word_of(pixel);
        const uint32_t alpha = word >> 24;
        const uint32_t outer = (word & 0xff00ffu) * alpha + 0x800080u;
        const uint32_t inner = (word >> 8 & 0xffu) * alpha + 0x80u;
        const uint32_t colors = ((outer + (outer >> 8 & 0xff00ffu)) >> 8 & 0xff00ffu) |
                                ((inner + (inner >> 8)) & 0xff00u);
        return pixel_of(colors | (word & 0xff000000u));
    }
    template <class T, int C>
    CVCLI_FN Pixel<float, C> operator()(const Pixel<T, C>& pixel) const {
        Pixel<float, C> out;
        const float alpha = static_cast<float>(pixel.v[C - 1]);
        for (int c = 0; c < C - 1; ++c) {
            out.v[c] = canonical(static_cast<float>(pixel.v[c]) * alpha);
        }
        out.v[C - 1] = canonical(alpha);
        return out;
    }
};

// For 8 bits 255 * c / a cut off and saturated, c itself where alpha is 0. The quotient in float32
// has the same whole part: it is either whole or further from a whole number than its error, and
// so has one that may miss by its last bit where it is not whole.
// For floats c / a, 0 where alpha is not positive.
template <class To>
struct Unpremultiply {
    float unused;
    template <class T, int C>
    static constexpr bool takes() {
        return kHasAlpha<C> && (sizeof(T) == 1) == (sizeof(To) == 1) && sizeof(T) != 2;
    }
    template <int C>
    CVCLI_FN Pixel<uint8_t, C> operator()(Pixel<uint8_t, C> pixel) const {
        const float alpha = to_float(pixel.v[C - 1]);
        for (int c = 0; c < C - 1; ++c) {
            const float color = to_float(pixel.v[c]);
            const float quotient =
                smaller(near_quotient(255.0f * color, larger(alpha, 1.0f)), 255.0f);
            pixel.v[c] = static_cast<uint8_t>(static_cast<int32_t>(alpha > 0 ? quotient : color));
        }
        return pixel;
    }
    template <int C>
    CVCLI_FN Pixel<To, C> operator()(const Pixel<float, C>& pixel) const {
        Pixel<To, C> out;
        const float alpha = pixel.v[C - 1];
        for (int c = 0; c < C - 1; ++c) {
            out.v[c] = to_sample<To>(alpha <= 0.0f ? 0.0f : pixel.v[c] / alpha);
        }
        out.v[C - 1] = to_sample<To>(alpha);
        return out;
    }
};

// Whole float32 numbers for 16-bit samples, and back.
struct Widen {
    float unused;
    template <class T, int C>
    static constexpr bool takes() {
        return sizeof(T) == 2;
    }
    template <int C>
    CVCLI_FN Pixel<float, C> operator()(const Pixel<uint16_t, C>& pixel) const {
        Pixel<float, C> out;
        for (int c = 0; c < C; ++c) out.v[c] = static_cast<float>(pixel.v[c]);
        return out;
    }
};

struct Narrow {
    float unused;
    template <class T, int C>
    static constexpr bool takes() {
        return sizeof(T) == 4;
    }
    template <int C>
    CVCLI_FN Pixel<uint16_t, C> operator()(const Pixel<float, C>& pixel) const {
        Pixel<uint16_t, C> out;
        for (int c = 0; c < C; ++c) out.v[c] = to_sample<uint16_t>(pixel.v[c]);
        return out;
    }
};

using Unpremultiply8 = Unpremultiply<uint8_t>;
using Unpremultiply16 = Unpremultiply<uint16_t>;
using Unpremultiply32 = Unpremultiply<float>;

}  // namespace cvcli

CVCLI_PIXELWISE(resize_Widen, Widen)
CVCLI_PIXELWISE(resize_Narrow, Narrow)
CVCLI_PIXELWISE(resize_Premultiply, Premultiply)
CVCLI_PIXELWISE(resize_Unpremultiply8, Unpremultiply8)
CVCLI_PIXELWISE(resize_Unpremultiply16, Unpremultiply16)
CVCLI_PIXELWISE(resize_Unpremultiply32, Unpremultiply32)
