// Warps on the GPU: a block makes a tile of the result. The part of the source that the tile needs
// is put into shared memory first, a word or more a pixel, with borders resolved on the way; where
// that does not fit, each tap is read from the image.
#pragma once

#include "core/warp.h"
#include "core/warp_map_cuda.h"
#include "core/warp_room_cuda.h"
#include "core/warp_store_cuda.h"

namespace cvcli {

// The exact sum of four bytes by weights in units of 2^-14, in the low bits of a float of 2^23.
// Of 1.5 * 2^37 the last digit is one of 2^14, so adding that instead of the 2^23 leaves the whole
// number next to the sum, half to even, in the lowest byte.
CVCLI_FN uint32_t rounded_sum(uint32_t sum) {
    return bits_of(float_of(sum) + (206158430208.0f - 8388608.0f));
}

constexpr uint32_t kWholeFloat = 0x4b000000u;

// Bilinear for bytes: each of two words of weights takes pairs of neighbours in turn.
template <int C, class Tap>
CVCLI_FN Cell<uint8_t, C> linear_bytes(const Place& place, const Tap& tap) {
    // The pairs of fixed_weights, (y - both, both) and (2^14 - x - y + both, x - both), at once.
    const uint32_t x = place.fx >> 10, y = place.fy >> 10;
    const uint32_t below = y + ((x * y + 8192) >> 14) * 65535;
    const uint32_t above = x * 65535 + 16384 - below;
    const uint32_t a = tap(0, 0).w[0], b = tap(0, 1).w[0];
    const uint32_t c = tap(1, 0).w[0], d = tap(1, 1).w[0];
    const uint32_t ab = __byte_perm(a, b, 0x5140);
    const uint32_t cd = __byte_perm(c, d, 0x5140);
    uint32_t out = rounded_sum(__dp2a_lo(below, cd, __dp2a_lo(above, ab, kWholeFloat)));
    if constexpr (C == 1) return {{out & 0xff}};
    const uint32_t second = __dp2a_hi(below, cd, __dp2a_hi(above, ab, kWholeFloat));
    out = __byte_perm(out, rounded_sum(second), 0x5540);
    if constexpr (C > 2) {
        const uint32_t high_ab = __byte_perm(a, b, 0x7362);
        const uint32_t high_cd = __byte_perm(c, d, 0x7362);
        const uint32_t third = __dp2a_lo(below, high_cd, __dp2a_lo(above, high_ab, kWholeFloat));
        uint32_t high = rounded_sum(third);
        if constexpr (C == 4) {
            const uint32_t last = __dp2a_hi(below, high_cd, __dp2a_hi(above, high_ab, kWholeFloat));
            high = __byte_perm(high, rounded_sum(last), 0x5540);
        }
        out = __byte_perm(out, high, 0x5410);
    }
    return {{out}};
}

template <class T, int C, class Tap>
CVCLI_FN Cell<T, C> linear_floats(const Place& place, const Tap& tap) {
    const LinearWeights f = linear_weights(place);
    const Cell<T, C> a = tap(0, 0), b = tap(0, 1), c = tap(1, 0), d = tap(1, 1);
    Pixel<T, C> out;
#pragma unroll
    for (int i = 0; i < C; ++i) {
        out.v[i] = to_sample<T>(linear_sum(a.real(i), b.real(i), c.real(i), d.real(i), f));
    }
    return Cell<T, C>::of(out);
}

template <class T, int C, class Tap>
CVCLI_FN Cell<T, C> cubic_floats(const Place& place, const Tap& tap) {
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
    return Cell<T, C>::of(out);
}

// A pixel from its taps, tap(dy, dx) giving those around its place.
template <int Filter, class T, int C, class Tap>
CVCLI_FN Cell<T, C> filtered(const Place& place, const Tap& tap) {
    if constexpr (Filter == kNearest) {
        return tap(0, 0);
    } else if constexpr (Filter == kCubic) {
        return cubic_floats<T, C>(place, tap);
    } else if constexpr (sizeof(T) == 1) {
        return linear_bytes<C>(place, tap);
    } else {
        return linear_floats<T, C>(place, tap);
    }
}

// A warp's rows of columns from `left` on, 32 of them or a multiple: each pixel by make(place).
template <int Columns, bool Fast, int Unroll, class W, class Map, class L, class Make,
          class... InBox>
CVCLI_FN void warp_columns(const W& work, const Image& dst, const Map& map, const WarpTile& tile,
                           int left, L lanes, const Make& make, const InBox&... box) {
    const int first = static_cast<int>(threadIdx.x) / kWarp;
    typename Map::At at[Columns];
#pragma unroll
    for (int i = 0; i < Columns; ++i) {
        at[i] = map.at(first, smaller(left + i * kWarp + lane(), tile.width - 1), box...);
    }
    const auto next = map.rows(kBlockWarps);
#pragma unroll Unroll
    for (int down = first; down < tile.height; down += kBlockWarps) {
#pragma unroll
        for (int i = 0; i < Columns; ++i) {
            const auto cell = finished(work, make(at[i]));
            at[i].move(next);
            if constexpr (Fast) {
                lanes.put(cell.w, i);
            } else if constexpr (!W::kPlanarOut && sizeof(cell.pixel()) == 3) {
                uint8_t* row = row_at<uint8_t>(dst, tile.y + down) + int64_t{tile.x + left} * 3;
                put_anywhere(row, 3 * smaller(kWarp, tile.width - left), cell.w[0]);
            } else if (left + lane() < tile.width) {
                store_pixel<W::kPlanarOut>(dst, tile.y + down, tile.x + left + lane(),
                                           cell.pixel());
            }
        }
        lanes.next();
    }
}

// Every pixel of the tile, warps taking rows in turn and lanes columns.
template <int Wide, int Unroll, class W, class Map, class Make, class... InBox>
CVCLI_FN void warp_tile(const W& work, const Image& dst, const Map& map, const WarpTile& tile,
                        const Make& make, const InBox&... box) {
    using Out = decltype(finished(work, make(typename Map::At())).pixel());
    const int first = static_cast<int>(threadIdx.x) / kWarp;
    const Lanes<Out> lanes(dst, tile.y + first, tile.x, Wide, kBlockWarps);
    if (!W::kPlanarOut && lanes.fast && tile.width == Wide) {
        return warp_columns<Wide / kWarp, true, Unroll>(work, dst, map, tile, 0, lanes, make,
                                                        box...);
    }
#pragma unroll 1
    for (int left = 0; left < tile.width; left += kWarp) {
        warp_columns<1, false, 1>(work, dst, map, tile, left, lanes, make, box...);
    }
}

// Among constants integers stay what they are; the float sum of weights may miss 1 by a little.
template <int Filter, class T>
constexpr bool kKeepsConstants = sizeof(T) < 4 || Filter == kNearest;

// So many digits of a place count.
template <int Filter, class T>
constexpr int kDigits = Filter == kNearest || (Filter == kLinear && sizeof(T) == 1) ? 14 : 16;

// A part of a tile, from the room if its source fits there. A whole tile whose source does not is
// left alone, and false returned.
template <int Filter, int Wide, class W, class Map, class Room>
CVCLI_FN bool warp_part(const W& work, const Image& dst, const typename W::Read& reader,
                        const WarpParams& params, const Map& map, const WarpTile& tile, bool whole,
                        typename Room::Memory& memory) {
    using In = typename W::In;
    using T = typename In::Sample;
    constexpr int C = In::kChannels;
    constexpr int digits = kDigits<Filter, T>;
    const Box box = map.template box<Filter>();
    if (kKeepsConstants<Filter, T> && params.border == kConstant && box.misses(params.frame)) {
        const auto cell = Cell<T, C>::of(border_pixel<T, C>(params));
        warp_tile<Wide, 1>(work, dst, map, tile, [&](const auto&) { return cell; });
        return true;
    }
    const Room room(memory, box, params);
    if (!room.fits(Map::template kWidest<digits>)) {
        if (whole && box.known) return false;
        // A copy for the call, so that elsewhere the image stays in registers.
        const Image src = reader.src;
        const typename W::Read far = {src, reader.move, reader.before};
        warp_tile<Wide, 1>(work, dst, map, tile, [&](const auto& at) {
            const Place place = map.template far_place<Filter>(at);
            return filtered<Filter, T, C>(place, [&](int dy, int dx) {
                return far_cell<T, C>(far, params, place.y + dy, place.x + dx);
            });
        });
        return true;
    }
    room.fill(reader, Spans::of<Filter>(map.outline(box), box.width));
    __syncthreads();
    const uint8_t* start = room.start(Map::template kExcess<digits>);
    const auto near = [&](const auto& at) {
        const Place place = map.template near_place<Filter, digits>(at, box);
        const uint8_t* from = room.at(start, place);
        return filtered<Filter, T, C>(place,
                                      [&](int dy, int dx) { return room.cell(from, dy, dx); });
    };
    warp_tile<Wide, 2>(work, dst, map, tile, near, box);
    return true;
}

template <int Shape, int Filter, int Wide, int High, class W>
CVCLI_FN void warp(const W& work, const Each<WarpParams>& each) {
    using In = typename W::In;
    using Room = WarpRoom<typename In::Sample, In::kChannels>;
    using Map = WarpMap<Shape, Wide, High>;
    constexpr int kParts = 4;
    __shared__ typename Room::Memory memory;
    __shared__ typename Map::Memory origins;
    for_each_tile(work.args, High, work.args.dst, [&](int32_t index, int32_t across, int32_t down) {
        const Image dst = work.dst(index);
        const int32_t x = across * Wide, y = down * High;
        if (x >= dst.width || y >= dst.height) return;
        const WarpParams& params = work.params(each, index);
        const Image src = work.src(index);
        const auto reader = work.reader(src, index);
        const int32_t bottom = smaller(y + High, dst.height);
        int32_t high = High;
#pragma unroll 1
        for (int32_t top = y; top < bottom; top += high) {
            const WarpTile tile = {x, top, smaller(Wide, dst.width - x),
                                   smaller(high, bottom - top)};
            const Map map(params, tile, kHalf<Filter>, origins);
            const bool whole = high == High;
            if (!warp_part<Filter, Wide, W, Map, Room>(work, dst, reader, params, map, tile, whole,
                                                       memory)) {
                high = High / kParts;
                top -= high;
            }
            __syncthreads();
        }
    });
}

}  // namespace cvcli
