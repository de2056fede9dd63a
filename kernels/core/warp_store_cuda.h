// Stores of a warp's 32 neighbouring pixels.
#pragma once

#include "core/warp_map_cuda.h"

namespace cvcli {

CVCLI_FN uint32_t packed_bytes(const Pixel<uint8_t, 3>& pixel) {
    return __byte_perm(pixel.v[0] | uint32_t{pixel.v[1]} << 8, pixel.v[2], 0x5410);
}

// Pixels of three bytes: three lanes of four store a word each, of their own and the next lane's.
CVCLI_FN void store_words(uint8_t* to, const Pixel<uint8_t, 3>& pixel) {
    const uint32_t own = packed_bytes(pixel);
    const uint32_t next = __shfl_down_sync(~0u, own, 1);
    const int part = lane() % 4;
    const uint32_t word = own >> part * 8 | next << (24 - part * 8);
    if (part < 3) reinterpret_cast<uint32_t*>(to)[lane() / 4 * 3 + part] = word;
}

CVCLI_FN void store_words(uint8_t* to, const Pixel<uint8_t, 1>& pixel) {
    uint32_t word = pixel.v[0];
    word |= __shfl_down_sync(~0u, word, 1) << 8;
    word |= __shfl_down_sync(~0u, word, 2) << 16;
    if (lane() % 4 == 0) reinterpret_cast<uint32_t*>(to)[lane() / 4] = word;
}

template <class P>
constexpr bool kStoresWords = false;
template <>
constexpr bool kStoresWords<Pixel<uint8_t, 3>> = true;
template <>
constexpr bool kStoresWords<Pixel<uint8_t, 1>> = true;

// The type of a pixel as one store, if there is one.
template <int Bytes>
struct OneStore {
    using type = void;
};
template <>
struct OneStore<2> {
    using type = uint16_t;
};
template <>
struct OneStore<4> {
    using type = uint32_t;
};
template <>
struct OneStore<8> {
    using type = uint2;
};
template <>
struct OneStore<16> {
    using type = uint4;
};

template <class P>
CVCLI_FN void store_whole(const Image& dst, int32_t y, int32_t x, const P& pixel) {
    using Unit = typename OneStore<sizeof(P)>::type;
    uint8_t* to = row_at<uint8_t>(dst, y) + int64_t{x} * sizeof(P);
    if (reinterpret_cast<uint64_t>(to) % sizeof(Unit) == 0) {
        union {
            P pixel;
            Unit unit;
        } both = {pixel};
        *reinterpret_cast<Unit*>(to) = both.unit;
    } else {
        store_pixel<false>(dst, y, x, pixel);
    }
}

// Each lane's pixel of one row, `x` being the first lane's column; those past the row are dropped.
template <class W, class P>
CVCLI_FN void store_lanes(const W& work, const Image& dst, int32_t y, int32_t x, const P& pixel) {
    const auto out = work.after(pixel);
    using Out = decltype(work.after(pixel));
    if constexpr (!W::kPlanarOut && kStoresWords<Pixel<typename Out::Sample, Out::kChannels>>) {
        uint8_t* to = row_at<uint8_t>(dst, y) + int64_t{x} * sizeof(out);
        if (x + kWarp <= dst.width && reinterpret_cast<uint64_t>(to) % 4 == 0) {
            return store_words(to, out);
        }
    }
    if (x + lane() >= dst.width) return;
    if constexpr (!W::kPlanarOut && (sizeof(Out) & (sizeof(Out) - 1)) == 0 && sizeof(Out) > 1) {
        store_whole(dst, y, x + lane(), out);
    } else {
        store_pixel<W::kPlanarOut>(dst, y, x + lane(), out);
    }
}

}  // namespace cvcli
