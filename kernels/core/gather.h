// Which source pixel a destination pixel takes: the meaning of a Move, for both devices.
#pragma once

#include "core/image.h"

namespace cvcli {

CVCLI_FN int32_t run_at(const Axis& axis, int32_t index) {
    return axis.run_source + (index - axis.run_begin) * axis.run_step;
}

CVCLI_FN int32_t axis_at(const Axis& axis, int32_t index) {
    if (index < axis.run_begin || index >= axis.run_end) return read_only(axis.map + index);
    return run_at(axis, index);
}

// Of several negative values the largest number wins. ~v is negative for a source index, so one
// maximum answers both "is it a constant?" and "which one?".
CVCLI_FN int32_t constant_number(int32_t at_y, int32_t at_x) {
    return larger(~at_y, ~at_x);
}

template <class T, int C>
CVCLI_FN const T* constant_at(const Move& move, int32_t number) {
    return static_cast<const T*>(move.constants) + int64_t{number} * C;
}

template <class T, int C>
CVCLI_FN const T* pixel_at(const Image& src, const Move& move, int32_t at_y, int32_t at_x) {
    const int32_t constant = constant_number(at_y, at_x);
    if (constant >= 0) return constant_at<T, C>(move, constant);
    const int32_t row = move.transpose ? at_x : at_y;
    const int32_t column = move.transpose ? at_y : at_x;
    return row_at<const T>(src, row) + int64_t{column} * C;
}

// The part of [begin, end) that an axis's run covers; empty parts have begin == end.
struct Part {
    int32_t begin;
    int32_t end;
};

CVCLI_FN Part run_part(const Axis& axis, int32_t begin, int32_t end) {
    const int32_t low = smaller(larger(axis.run_begin, begin), end);
    return {low, larger(smaller(axis.run_end, end), low)};
}

}  // namespace cvcli
