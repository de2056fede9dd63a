// Gray, alpha and the order of red, green and blue.
#pragma once

#include "core/arith.h"

namespace cvcli {

// Red and blue exchanged, which takes OpenCV's order to ours and back.
struct Swapped {
    float unused;
    template <class T, int C>
    static constexpr bool takes() {
        return kColored<C>;
    }
    CVCLI_FN static constexpr int channel_of(int n) { return n < 3 ? 2 - n : n; }
    template <class T, int C>
    CVCLI_FN Pixel<T, C> operator()(const Pixel<T, C>& in) const {
        Pixel<T, C> out = in;
        out.v[0] = in.v[2];
        out.v[2] = in.v[0];
        return out;
    }
};

struct WithoutAlpha {
    float unused;
    template <class T, int C>
    static constexpr bool takes() {
        return C == 4;
    }
    CVCLI_FN static constexpr int channel_of(int n) { return n; }
    template <class T>
    CVCLI_FN Pixel<T, 3> operator()(const Pixel<T, 4>& in) const {
        return {{in.v[0], in.v[1], in.v[2]}};
    }
};

template <class T>
CVCLI_FN T opaque() {
    return static_cast<T>(kWhite<T>);
}

struct WithAlpha {
    float unused;
    template <class T, int C>
    static constexpr bool takes() {
        return C == 3;
    }
    CVCLI_FN static constexpr int channel_of(int n) { return n < 3 ? n : -1; }
    template <class T>
    CVCLI_FN Pixel<T, 4> operator()(const Pixel<T, 3>& in) const {
        return {{in.v[0], in.v[1], in.v[2], opaque<T>()}};
    }
};

// ITU-R BT.601 luma in fixed point, 15 bits.
template <class T>
CVCLI_FN T gray_of(T r, T g, T b) {
    return static_cast<T>((r * 9798u + g * 19235u + b * 3735u + 16384u) >> 15);
}

CVCLI_FN float gray_of(float r, float g, float b) {
    return canonical((r * 0.299f + g * 0.587f) + b * 0.114f);
}

// Alpha, if there is one, comes second.
struct ToGray {
    float unused;
    template <class T, int C>
    static constexpr bool takes() {
        return kColored<C>;
    }
    template <class T, int C>
    CVCLI_FN Pixel<T, C - 2> operator()(const Pixel<T, C>& in) const {
        Pixel<T, C - 2> out;
        out.v[C - 3] = in.v[C - 1];
        out.v[0] = gray_of(in.v[0], in.v[1], in.v[2]);
        return out;
    }
#if CVCLI_CUDA
    // Twice the sum of bytes, whose weights have two bytes each.
    CVCLI_FN static uint32_t mixed(uint32_t pixel) {
        return __dp4a(pixel, 0x001d964cu, 0u) * 256u + __dp4a(pixel, 0x002e468cu, 32768u);
    }
#endif
};

struct FromGray {
    float unused;
    template <class T, int C>
    static constexpr bool takes() {
        return C < 3;
    }
    CVCLI_FN static constexpr int channel_of(int n) { return n / 3; }
    template <class T, int C>
    CVCLI_FN Pixel<T, C + 2> operator()(const Pixel<T, C>& in) const {
        Pixel<T, C + 2> out;
        for (int c = 0; c < 3; ++c) out.v[c] = in.v[0];
        if (C == 2) out.v[C + 1] = in.v[C - 1];
        return out;
    }
};

}  // namespace cvcli
