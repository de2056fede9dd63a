// map on the CPU, row by row: runs are copied or reversed whole, the rest goes pixel by pixel.
#pragma once

#include "core/finish_cpu.h"
#include "core/gather.h"
#include "core/reverse_cpu.h"

namespace cvcli {

// One image's share of a launch: destination rows [begin, end).
struct Band {
    Image src;
    Image dst;
    const Move& move;
    int32_t begin;
    int32_t end;
};

// Pixels between two looks for a long run.
constexpr int32_t kLongRun = 64;

// A few one by one, then copies doubled until they fill: a constant row costs what a copy does.
template <int P>
void fill_pixels(uint8_t* dst, const uint8_t* pixel, int64_t count) {
    const int64_t few = smaller(count, int64_t{32});
    for (int64_t x = 0; x < few; ++x) std::memcpy(dst + x * P, pixel, P);
    for (int64_t done = few; done < count; done *= 2) {
        std::memcpy(dst + done * P, dst, smaller(done, count - done) * P);
    }
}

// How many pixels from x on have one source: borders of one value or of the edge pixel are long.
inline int32_t same_source(const int32_t* map, int32_t x, int32_t end) {
    int32_t next = x + 1;
    while (next < end && map[next] == map[x]) ++next;
    return next - x;
}

// Pixels from x on of a source row, up to `end` or to one that is a constant; returns where it
// stopped. Three samples are moved as four, but for the last pixel of either row.
template <int P>
int32_t pick_pixels(uint8_t* dst, const uint8_t* row, int32_t width, const int32_t* map, int32_t x,
                    int32_t end) {
    constexpr int wide = P % 3 ? P : P / 3 * 4;
    const uint32_t inner = static_cast<uint32_t>(width - (wide > P));
    const int32_t stop = end - (wide > P);
    for (; x < end && map[x] >= 0; ++x) {
        for (; x < stop && static_cast<uint32_t>(map[x]) < inner; ++x) {
            std::memcpy(dst + int64_t{x} * P, row + int64_t{map[x]} * P, wide);
        }
        if (x == end || map[x] < 0) break;
        std::memcpy(dst + int64_t{x} * P, row + int64_t{map[x]} * P, P);
    }
    return x;
}

// Pixels outside the run, each of P bytes.
template <int P>
CVCLI_ONCE void gather_pixels(const Band& band, int32_t at_y, uint8_t* dst, Part part) {
    const int32_t* map = band.move.x.map;
    for (int32_t x = part.begin; x < part.end;) {
        const int32_t count = same_source(map, x, part.end);
        if (at_y < 0 || map[x] < 0 || count >= kLongRun) {
            const uint8_t* from = pixel_at<uint8_t, P>(band.src, band.move, at_y, map[x]);
            fill_pixels<P>(dst + int64_t{x} * P, from, count);
            x += count;
        } else {
            const int32_t end = smaller(part.end - x, kLongRun) + x;
            x = pick_pixels<P>(dst, row_at<uint8_t>(band.src, at_y), band.src.width, map, x, end);
        }
    }
}

// The run of a row: constant, in source order or reversed.
template <int P>
CVCLI_ONCE void copy_run(const Band& band, int32_t at_y, uint8_t* dst, Part run) {
    const int64_t count = run.end - run.begin;
    if (at_y < 0) {
        const uint8_t* pixel = constant_at<uint8_t, P>(band.move, ~at_y);
        return fill_pixels<P>(dst, pixel, count);
    }
    const bool forward = band.move.x.run_step > 0;
    const int32_t first = axis_at(band.move.x, forward ? run.begin : run.end - 1);
    const uint8_t* src = row_at<const uint8_t>(band.src, at_y) + int64_t{first} * P;
    if (!forward) return reverse_pixels<P>(dst, src, count);
    std::memcpy(dst, src, count * P);
}

// A whole row in source order can be finished while it is copied.
template <class T, int C>
bool finish_whole_row(const Band& band, int32_t at_y, uint8_t* dst, Part run,
                      const Finish& finish) {
    const bool whole = run.begin == 0 && run.end == band.dst.width && run.end > 0;
    if (!whole || at_y < 0 || band.move.x.run_step < 0) return false;
    const T* src = row_at<const T>(band.src, at_y) + int64_t{axis_at(band.move.x, 0)} * C;
    return finish_while_copying<T, C>(finish, dst, reinterpret_cast<const uint8_t*>(src),
                                      band.dst.width);
}

// Puts constants back that the finish of their row went over.
template <int P>
CVCLI_ONCE void restore_constants(const Band& band, int32_t at_y, uint8_t* dst, Part part) {
    for (int32_t x = part.begin; x < part.end; ++x) {
        const int32_t constant = constant_number(at_y, axis_at(band.move.x, x));
        if (constant < 0) continue;
        std::memcpy(dst + int64_t{x} * P, constant_at<uint8_t, P>(band.move, constant), P);
    }
}

template <class T, int C>
void map_row(const Band& band, int32_t row, const Finish& finish) {
    constexpr int P = sizeof(T) * C;
    uint8_t* dst = row_at<uint8_t>(band.dst, row);
    const int32_t at_y = axis_at(band.move.y, row);
    const Part run = run_part(band.move.x, 0, band.dst.width);
    if (finish_whole_row<T, C>(band, at_y, dst, run, finish)) return;
    gather_pixels<P>(band, at_y, dst, {0, run.begin});
    if (run.begin < run.end) copy_run<P>(band, at_y, dst + int64_t{run.begin} * P, run);
    gather_pixels<P>(band, at_y, dst, {run.end, band.dst.width});
    if (at_y < 0) return;
    finish_in_place<T, C>(finish, dst, band.dst.width);
    if (!band.move.constants || !finish.changes()) return;
    restore_constants<P>(band, at_y, dst, {0, run.begin});
    restore_constants<P>(band, at_y, dst, {run.end, band.dst.width});
}

template <class T, int C>
void map_band_rows(const Band& band, const Finish& finish) {
    for (int32_t row = band.begin; row < band.end; ++row) {
        if (row > band.begin && axis_at(band.move.y, row) == axis_at(band.move.y, row - 1)) {
            const uint8_t* above = row_at<const uint8_t>(band.dst, row - 1);
            std::memcpy(row_at<uint8_t>(band.dst, row), above,
                        sizeof(T) * C * static_cast<size_t>(band.dst.width));
        } else {
            map_row<T, C>(band, row, finish);
        }
    }
}

}  // namespace cvcli
