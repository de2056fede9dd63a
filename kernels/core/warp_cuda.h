// Warps on the GPU: a block makes a tile of the result. The part of the source that the tile needs
// is put into shared memory first, a word or more a pixel, with borders resolved on the way; where
// that does not fit, each tap is read from the image.
#pragma once

#include "core/warp.h"
#include "core/warp_map_cuda.h"
#include "core/warp_room_cuda.h"
#include "core/warp_store_cuda.h"

namespace cvcli {

// The exact sum of four bytes by weights in units of 2^-14, in the low bits of a float of 2^23;
// adding 1.5 * 2^23 then leaves the whole number next to it, half to even, in the lowest byte.
CVCLI_FN uint32_t rounded_sum(uint32_t sum) {
    return bits_of(fmaf(float_of(sum), 1.0f / 16384.0f, 12582912.0f - 512.0f));
}

constexpr uint32_t kWholeFloat = 0x4b000000u;

// Bilinear for bytes: each of two words of weights takes pairs of neighbours in turn.
template <int C, class Tap>
CVCLI_FN Pixel<uint8_t, C> linear_bytes(const Place& place, const Tap& tap) {
    const FixedWeights f = fixed_weights(place);
    const uint32_t above = f.w[0][0] | f.w[0][1] << 16;
    const uint32_t below = f.w[1][0] | f.w[1][1] << 16;
    const uint32_t a = tap(0, 0).w[0], b = tap(0, 1).w[0];
    const uint32_t c = tap(1, 0).w[0], d = tap(1, 1).w[0];
    uint32_t sums[4];
    const uint32_t ab = __byte_perm(a, b, 0x5140);
    const uint32_t cd = __byte_perm(c, d, 0x5140);
    sums[0] = __dp2a_lo(below, cd, __dp2a_lo(above, ab, kWholeFloat));
    sums[1] = __dp2a_hi(below, cd, __dp2a_hi(above, ab, kWholeFloat));
    if constexpr (C > 2) {
        const uint32_t high_ab = __byte_perm(a, b, 0x7362);
        const uint32_t high_cd = __byte_perm(c, d, 0x7362);
        sums[2] = __dp2a_lo(below, high_cd, __dp2a_lo(above, high_ab, kWholeFloat));
        sums[3] = __dp2a_hi(below, high_cd, __dp2a_hi(above, high_ab, kWholeFloat));
    }
    Pixel<uint8_t, C> out;
#pragma unroll
    for (int i = 0; i < C; ++i) out.v[i] = static_cast<uint8_t>(rounded_sum(sums[i]));
    return out;
}

template <class T, int C, class Tap>
CVCLI_FN Pixel<T, C> linear_floats(const Place& place, const Tap& tap) {
    const LinearWeights f = linear_weights(place);
    const Cell<T, C> a = tap(0, 0), b = tap(0, 1), c = tap(1, 0), d = tap(1, 1);
    Pixel<T, C> out;
#pragma unroll
    for (int i = 0; i < C; ++i) {
        out.v[i] = to_sample<T>(linear_sum(a.real(i), b.real(i), c.real(i), d.real(i), f));
    }
    return out;
}

template <class T, int C, class Tap>
CVCLI_FN Pixel<T, C> cubic_floats(const Place& place, const Tap& tap) {
    const CubicWeights across = cubic_weights(place.fx);
    const CubicWeights down = cubic_weights(place.fy);
    float rows[4][C];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const Cell<T, C> a = tap(j - 1, -1), b = tap(j - 1, 0);
        const Cell<T, C> c = tap(j - 1, 1), d = tap(j - 1, 2);
#pragma unroll
        for (int i = 0; i < C; ++i) {
            rows[j][i] = cubic_sum(a.real(i), b.real(i), c.real(i), d.real(i), across);
        }
    }
    Pixel<T, C> out;
#pragma unroll
    for (int i = 0; i < C; ++i) {
        out.v[i] = to_sample<T>(cubic_sum(rows[0][i], rows[1][i], rows[2][i], rows[3][i], down));
    }
    return out;
}

// A pixel from its taps, tap(dy, dx) giving those around its place.
template <int Filter, class T, int C, class Tap>
CVCLI_FN Pixel<T, C> filtered(const Place& place, const Tap& tap) {
    if constexpr (Filter == kNearest) {
        return tap(0, 0).pixel();
    } else if constexpr (Filter == kCubic) {
        return cubic_floats<T, C>(place, tap);
    } else if constexpr (sizeof(T) == 1) {
        return linear_bytes<C>(place, tap);
    } else {
        return linear_floats<T, C>(place, tap);
    }
}

// Every pixel of the tile by make(place), warps taking rows in turn and lanes columns.
template <int Filter, class W, class Map, class Make>
CVCLI_FN void warp_tile(const W& work, const Image& dst, const Map& map, const Tile& tile,
                        const Make& make) {
    constexpr int step = kBlockWarps;
#pragma unroll 1
    for (int left = 0; left < tile.width; left += kWarp) {
        const int within = smaller(left + lane(), tile.width - 1);
        const auto column = map.column(within);
        int down = static_cast<int>(threadIdx.x) / kWarp;
        auto row = map.row(down);
        const auto next = map.rows(step);
#pragma unroll 2
        for (; down < tile.height; down += step) {
            const Place place = map.template place<Filter>(row, column);
            store_lanes(work, dst, tile.y + down, tile.x + left, make(place));
            row.move(next);
        }
    }
}

// Among constants integers stay what they are; the float sum of weights may miss 1 by a little.
template <int Filter, class T>
constexpr bool kKeepsConstants = sizeof(T) < 4 || Filter == kNearest;

template <int Shape, int Filter, int Wide, int High, class W>
CVCLI_FN void warp(const W& work, const Each<WarpParams>& each) {
    using In = typename W::In;
    using T = typename In::Sample;
    constexpr int C = In::kChannels;
    using Room = WarpRoom<T, C, High>;
    using Map = WarpMap<Shape, High>;
    __shared__ typename Room::Memory memory;
    __shared__ typename Map::Memory origins;
    for_each_tile(work.args, High, work.args.dst, [&](int32_t index, int32_t across, int32_t down) {
        const Image dst = work.dst(index);
        const int32_t x = across * Wide;
        const int32_t y = down * High;
        if (x >= dst.width || y >= dst.height) return;
        const Tile tile = {x, y, smaller(Wide, dst.width - x), smaller(High, dst.height - y)};
        const WarpParams& params = work.params(each, index);
        const Image src = work.src(index);
        const auto reader = work.reader(src, index);
        const Map map(params, tile, kHalf<Filter>, origins);
        const Box box = map.template box<Filter>();
        if (kKeepsConstants<Filter, T> && params.border == kConstant && box.misses(params.frame)) {
            const In pixel = border_pixel<T, C>(params);
            return warp_tile<Filter>(work, dst, map, tile, [&](const Place&) { return pixel; });
        }
        const Room room(memory, box, params);
        if (!room.fits()) {
            __syncthreads();
            warp_tile<Filter>(work, dst, map, tile, [&](const Place& place) {
                return filtered<Filter, T, C>(place, [&](int dy, int dx) {
                    return far_cell<T, C>(reader, params, place.y + dy, place.x + dx);
                });
            });
            return __syncthreads();
        }
        room.template find_spans<Filter>(map.outline(box));
        __syncthreads();
        room.fill(reader);
        __syncthreads();
        warp_tile<Filter>(work, dst, map, tile, [&](const Place& place) {
            const int at = room.index(place.y, place.x);
            return filtered<Filter, T, C>(place,
                                          [&](int dy, int dx) { return room.cell(at, dy, dx); });
        });
        __syncthreads();
    });
}

}  // namespace cvcli
