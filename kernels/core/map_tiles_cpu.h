// map on the CPU for transposed moves: a tile is read along source rows, turned in a buffer that
// stays in the first-level cache, and written along destination rows.
#pragma once

#include "core/map_rows_cpu.h"
#include "core/turn_cpu.h"

namespace cvcli {

// The buffer's rows have room for a vector that begins on their last pixel.
template <int P>
struct TileRoom {
    static constexpr int kPixels = P <= 4 ? 64 : 32;
    static constexpr int kPitch = kPixels * P + 16;
    alignas(64) uint8_t bytes[kPixels * kPitch];
};

struct TilePlace {
    Part x;
    Part y;
};

// Destination pixels `part` of a column that comes from source row at_x, or from a constant.
template <int P>
void gather_column(const Band& band, int32_t at_x, Part part, uint8_t* to) {
    for (int32_t y = part.begin; y < part.end; ++y, to += TileRoom<P>::kPitch) {
        std::memcpy(to, pixel_at<uint8_t, P>(band.src, band.move, axis_at(band.move.y, y), at_x),
                    P);
    }
}

template <int P>
const uint8_t* run_start(const Band& band, int32_t at_x, int32_t y) {
    return row_at<const uint8_t>(band.src, at_x) + int64_t{axis_at(band.move.y, y)} * P;
}

template <int P>
void copy_column(const Band& band, int32_t at_x, Part run, uint8_t* to) {
    if (run.begin == run.end) return;
    const uint8_t* from = run_start<P>(band, at_x, run.begin);
    const int64_t step = int64_t{band.move.y.run_step} * P;
    const int32_t count = run.end - run.begin;
    for (int32_t i = 0; i < count; ++i)
        std::memcpy(to + i * TileRoom<P>::kPitch, from + i * step, P);
}

// One column of a tile, except the first `done` pixels of its run.
template <int P>
void load_column(const Band& band, int32_t x, Part tile_y, int32_t done, uint8_t* to) {
    constexpr int pitch = TileRoom<P>::kPitch;
    const int32_t at_x = axis_at(band.move.x, x);
    if (at_x < 0) return gather_column<P>(band, at_x, tile_y, to);
    const Part run = run_part(band.move.y, tile_y.begin, tile_y.end);
    const Part rest = {run.begin + done, run.end};
    gather_column<P>(band, at_x, {tile_y.begin, run.begin}, to);
    copy_column<P>(band, at_x, rest, to + (rest.begin - tile_y.begin) * pitch);
    gather_column<P>(band, at_x, {run.end, tile_y.end}, to + (run.end - tile_y.begin) * pitch);
}

// The start of the run of four columns at once; returns how many pixels of each are done.
template <int P>
int32_t turn_columns(const Band& band, int32_t x, Part tile_y, uint8_t* to) {
    const Part run = run_part(band.move.y, tile_y.begin, tile_y.end);
    if (run.begin == run.end) return 0;
    const int64_t before = int64_t{axis_at(band.move.y, run.begin)} * P;
    Rows4 rows = {{}, before, int64_t{band.src.width} * P - before};
    for (int k = 0; k < 4; ++k) {
        const int32_t at_x = axis_at(band.move.x, x + k);
        if (at_x < 0) return 0;
        rows.at[k] = row_at<const uint8_t>(band.src, at_x) + before;
    }
    to += (run.begin - tile_y.begin) * TileRoom<P>::kPitch;
    return turn_rows<P>(to, TileRoom<P>::kPitch, rows, run.end - run.begin, band.move.y.run_step);
}

template <int P>
CVCLI_ONCE void load_tile(const Band& band, const TilePlace& place, uint8_t* to) {
    for (int32_t x = place.x.begin; x < place.x.end;) {
        const bool four = x + 4 <= place.x.end;
        const int32_t done = four ? turn_columns<P>(band, x, place.y, to) : 0;
        for (int k = four ? 4 : 1; k > 0; --k, ++x, to += P) {
            load_column<P>(band, x, place.y, done, to);
        }
    }
}

template <class T, int C>
void map_tile(const Band& band, const TilePlace& place, const Finish& finish) {
    constexpr int P = sizeof(T) * C;
    TileRoom<P> room;
    load_tile<P>(band, place, room.bytes);
    const int64_t width = place.x.end - place.x.begin;
    for (int32_t y = place.y.begin; y < place.y.end; ++y) {
        uint8_t* dst = row_at<uint8_t>(band.dst, y) + int64_t{place.x.begin} * P;
        std::memcpy(dst, room.bytes + (y - place.y.begin) * TileRoom<P>::kPitch, width * P);
        const int32_t at_y = axis_at(band.move.y, y);
        if (at_y < 0) continue;
        finish_in_place<T, C>(finish, dst, width);
        if (!band.move.constants || !finish.changes()) continue;
        restore_constants<P>(band, at_y, row_at<uint8_t>(band.dst, y), place.x);
    }
}

template <class T, int C>
void map_band_tiles(const Band& band, const Finish& finish) {
    constexpr int N = TileRoom<int(sizeof(T)) * C>::kPixels;
    for (int32_t y = band.begin; y < band.end; y += smaller(N, band.end - y)) {
        for (int32_t x = 0; x < band.dst.width; x += smaller(N, band.dst.width - x)) {
            const Part across = {x, x + smaller(N, band.dst.width - x)};
            const Part down = {y, y + smaller(N, band.end - y)};
            map_tile<T, C>(band, {across, down}, finish);
        }
    }
}

}  // namespace cvcli
