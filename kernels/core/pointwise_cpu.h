// Host loops over one operator: its table for integer samples, its pass over a float row.
#pragma once

#include "core/pixel.h"

namespace cvcli {

template <class Operator>
Operator operator_from(const void* params) {
    Operator made;
    std::memcpy(&made, params, sizeof made);
    return made;
}

template <class T, class Operator>
void fill_levels(const Operator& op, int32_t levels, T* out) {
    const double top = levels - 1;
    for (int32_t v = 0; v < levels; ++v) {
        out[v] = static_cast<T>(static_cast<int32_t>(round_sample(op(double(v)), top)));
    }
}

template <class Operator>
void fill_table(const double* params, int32_t levels, void* out) {
    const Operator op = operator_from<Operator>(params);
    if (levels == 256) fill_levels(op, levels, static_cast<uint8_t*>(out));
    if (levels == 65536) fill_levels(op, levels, static_cast<uint16_t*>(out));
}

template <class Operator, int C>
void apply_pixels(const Operator& op, float* row, int64_t width) {
    constexpr int colours = kHasAlpha<C> ? C - 1 : C;
    for (int64_t x = 0; x < width; ++x, row += C) {
        for (int c = 0; c < colours; ++c) row[c] = canonical(op(row[c]));
    }
}

template <class Operator>
void apply_row(const void* params, float* row, int64_t width, int32_t channels) {
    const Operator op = operator_from<Operator>(params);
    if (channels == 2) return apply_pixels<Operator, 2>(op, row, width);
    if (channels == 4) return apply_pixels<Operator, 4>(op, row, width);
    apply_pixels<Operator, 1>(op, row, width * channels);
}

}  // namespace cvcli
