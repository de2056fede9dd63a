// map on the GPU, tile by tile, for transposed moves: reads run along source rows, writes along
// destination rows, and the tile turns in shared memory between the two.
#pragma once

#include "core/gather.h"
#include "core/map_rows_cuda.h"
#include "core/turn_squares_cuda.h"

namespace cvcli {

template <class T, int C>
struct TurnTile {
    static constexpr int kPixels = tile_pixels(sizeof(T) * C);
    static constexpr int kPitch = tile_pitch(sizeof(T) * C);
    int32_t x;
    int32_t y;
    int32_t width;
    int32_t height;
    uint8_t* room;
};

template <class T, int C>
CVCLI_FN constexpr int room_bytes() {
    return larger(TurnTile<T, C>::kPixels * TurnTile<T, C>::kPitch + kChunk,
                  larger(TurnRoom<T, C>::kBytes, SquareRoom<T, C>::kBytes));
}

template <class T, int C>
CVCLI_FN TurnTile<T, C> tile_at(const Image& dst, int32_t down, uint8_t* room) {
    constexpr int N = TurnTile<T, C>::kPixels;
    const int32_t x = static_cast<int32_t>(blockIdx.x) * N;
    const int32_t y = down * N;
    return {x, y, smaller(N, dst.width - x), smaller(N, dst.height - y), room};
}

// Lanes go down a tile's column, which is along the source row of a transposed move. Samples are
// finished on the way in: a constant, which is not, can't be told from others later.
template <class T, int C, class U, class F>
CVCLI_FN void load_tile(const Image& src, const Move& move, const TurnTile<T, C>& tile,
                        const F& f) {
    constexpr int units = int(sizeof(T)) * C / int(sizeof(U));
    constexpr int samples = int(sizeof(U) / sizeof(T));
    for (int down = lane(); down < tile.height; down += kWarp) {
        const int32_t at_y = axis_at(move.y, tile.y + down);
#pragma unroll 8
        for (int right = threadIdx.x / kWarp; right < tile.width; right += kBlockWarps) {
            const int32_t at_x = axis_at(move.x, tile.x + right);
            const bool fixed = constant_number(at_y, at_x) >= 0;
            const U* from = reinterpret_cast<const U*>(pixel_at<T, C>(src, move, at_y, at_x));
            U* to = reinterpret_cast<U*>(tile.room + down * tile.kPitch) + right * units;
#pragma unroll
            for (int i = 0; i < units; ++i) {
                const U unit = __ldg(from + i);
                to[i] = fixed ? unit : map_word<Bits<T>, C>(f, unit, i * samples);
            }
        }
    }
}

template <class T, int C>
CVCLI_FN void store_tile(const Image& dst, const TurnTile<T, C>& tile) {
    constexpr int P = sizeof(T) * C;
#pragma unroll 1
    for (int down = threadIdx.x / kWarp; down < tile.height; down += kBlockWarps) {
        uint8_t* to = row_at<uint8_t>(dst, tile.y + down) + int64_t{tile.x} * P;
        emit_forward<Bits<T>, C>(to, tile.room + down * tile.kPitch, tile.width * P,
                                 static_cast<uint32_t>(tile.x) * C, Identity{});
    }
}

template <class T, int C, class F>
CVCLI_FN void map_tile(const Image& src, const Image& dst, const Move& move,
                       const TurnTile<T, C>& tile, const F& f) {
    using Unit = typename UnitOf<widest_unit(sizeof(T) * C)>::type;
    const uint64_t places = address(src.data) | src.row_pitch | address(move.constants);
    f.ready();
    __syncwarp();
    // Without constants among them, and in step with words if they are whole ones.
    const bool in_step = sizeof(T) * C % 4 != 0 || (address(src.data) | src.row_pitch) % 4 == 0;
    const TurnPart part = {tile.x, tile.y, tile.width, tile.height};
    if (in_step && turn_part<T, C>(tile.room, src, dst, move, part, f)) return;
    if (places % sizeof(Unit) == 0) {
        load_tile<T, C, Unit>(src, move, tile, f);
    } else {
        load_tile<T, C, Bits<T>>(src, move, tile, f);
    }
    __syncthreads();
    store_tile<T, C>(dst, tile);
    __syncthreads();
}

// Calls each(src, dst, move, tile) for the block's tiles of all images.
template <bool Uniform, class T, int C, class Each>
CVCLI_FN void for_each_turn_tile(const MapArgs& args, uint8_t* room, const Each& each) {
    constexpr int N = TurnTile<T, C>::kPixels;
#pragma unroll 1
    for (int32_t index = blockIdx.z; index < args.count; index += gridDim.z) {
        const Image dst = image_of<Uniform>(args.dst, index);
        if (static_cast<int32_t>(blockIdx.x) * N >= dst.width) continue;
        const Image src = image_of<Uniform>(args.src, index);
        const Move& move = move_of<Uniform>(args, index);
#pragma unroll 1
        for (int32_t down = blockIdx.y; down * N < dst.height; down += gridDim.y) {
            each(src, dst, move, tile_at<T, C>(dst, down, room));
        }
    }
}

// Tiles that don't turn by squares: a call, for inlined they would take registers from those that
// do.
template <bool Uniform, class T, int C, class F>
CVCLI_CALL void map_other_tiles(const MapArgs& args, F functor, uint8_t* room) {
    const auto f = bind(functor, args);
    for_each_turn_tile<Uniform, T, C>(
        args, room,
        [&](const Image& src, const Image& dst, const Move& move, const TurnTile<T, C>& tile) {
            const TurnPart part = {tile.x, tile.y, tile.width, tile.height};
            if (square_source<T, C>(src, dst, move, part).from) return;
            map_tile<T, C>(src, dst, move, tile, f);
        });
}

template <bool Uniform, class T, int C, class F>
CVCLI_FN void map_tiles(const MapArgs& args, const F& functor) {
    __shared__ __align__(16) uint8_t room[room_bytes<T, C>()];
    const auto f = bind(functor, args);
    bool others = false;
    for_each_turn_tile<Uniform, T, C>(
        args, room,
        [&](const Image& src, const Image& dst, const Move& move, const TurnTile<T, C>& tile) {
            const TurnPart part = {tile.x, tile.y, tile.width, tile.height};
            const SquareSource source = square_source<T, C>(src, dst, move, part);
            if (source.from) {
                turn_by_squares<T, C>(room, source, dst, part, f);
            } else {
                others = true;
            }
        });
    if (others) map_other_tiles<Uniform, T, C>(args, functor, room);
}

}  // namespace cvcli
