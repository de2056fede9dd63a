// Rows read through a gather, from pixels or from planes, and rows put to planes.
#pragma once

#include "core/lanes_cpu.h"
#include "core/map_rows_cpu.h"
#include "core/pixels.h"

namespace cvcli {

// Columns of a row outside the run, one by one; what is constant is left to be put in later if
// the move has no constants. A pixel is P bytes.
template <int P>
void gather_columns(const Image& src, const Move& move, int32_t at_y, uint8_t* out, Part part) {
    for (int32_t x = part.begin; x < part.end; ++x) {
        const int32_t at_x = axis_at(move.x, x);
        uint8_t* to = out + int64_t{x} * P;
        if (constant_number(at_y, at_x) >= 0 && !move.constants) {
            std::memset(to, 0, P);
        } else {
            std::memcpy(to, pixel_at<uint8_t, P>(src, move, at_y, at_x), P);
        }
    }
}

// Row `row` of what a gather that does not turn makes of an image.
template <int P>
void gather_row(const Image& src, const Move& move, int32_t row, int32_t width, void* out) {
    uint8_t* to = static_cast<uint8_t*>(out);
    const int32_t at_y = axis_at(move.y, row);
    const Part run = at_y < 0 ? Part{width, width} : run_part(move.x, 0, width);
    gather_columns<P>(src, move, at_y, to, {0, run.begin});
    if (run.begin < run.end) {
        const Band band = {src, src, move, row, row + 1};
        copy_run<P>(band, at_y, to + int64_t{run.begin} * P, run);
    }
    gather_columns<P>(src, move, at_y, to, {run.end, width});
}

// Columns of planes, one by one, as gather_columns does them.
template <class T, int C>
void planes_columns(const Image& src, const Move& move, int32_t at_y, T* out, Part part) {
    for (int32_t x = part.begin; x < part.end; ++x) {
        const int32_t at_x = axis_at(move.x, x);
        const int32_t number = constant_number(at_y, at_x);
        for (int c = 0; c < C; ++c) {
            T* to = out + int64_t{x} * C + c;
            if (number < 0) {
                *to = plane_row_at<const T>(src, c, at_y)[at_x];
            } else {
                *to = move.constants ? constant_at<T, C>(move, number)[c] : T(0);
            }
        }
    }
}

// The same where each channel of the image is a plane of its own.
template <class T, int C>
void planes_row(const Image& src, const Move& move, int32_t row, int32_t width, void* out) {
    T* to = static_cast<T*>(out);
    const int32_t at_y = axis_at(move.y, row);
    const bool forward = at_y >= 0 && move.x.run_step > 0;
    const Part run = forward ? run_part(move.x, 0, width) : Part{width, width};
    planes_columns<T, C>(src, move, at_y, to, {0, run.begin});
    if (run.begin < run.end) {
        const T* planes[C];
        for (int c = 0; c < C; ++c) {
            planes[c] = plane_row_at<const T>(src, c, at_y) + run_at(move.x, run.begin);
        }
        join_lanes<T, C>(planes, to + int64_t{run.begin} * C, run.end - run.begin);
    }
    planes_columns<T, C>(src, move, at_y, to, {run.end, width});
}

template <class S, int C>
void split_row(const Image& dst, int32_t row, const void* pixels) {
    S* planes[C];
    for (int c = 0; c < C; ++c) planes[c] = plane_row_at<S>(dst, c, row);
    split_lanes<S, C>(static_cast<const S*>(pixels), planes, dst.width);
}

template <class S>
void split_planes(const Image& dst, int32_t row, const void* pixels, int32_t channels) {
    if (channels == 1) return split_row<S, 1>(dst, row, pixels);
    if (channels == 2) return split_row<S, 2>(dst, row, pixels);
    if (channels == 3) return split_row<S, 3>(dst, row, pixels);
    split_row<S, 4>(dst, row, pixels);
}

inline void put_samples(const Image& dst, int32_t row, const void* pixels, int32_t bytes,
                        int32_t channels) {
    if (bytes == 1) return split_planes<uint8_t>(dst, row, pixels, channels);
    if (bytes == 2) return split_planes<uint16_t>(dst, row, pixels, channels);
    split_planes<uint32_t>(dst, row, pixels, channels);
}

}  // namespace cvcli
