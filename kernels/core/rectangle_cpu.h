// The rectangle pattern on the CPU: extremes of 1, 2, 4, ... samples along rows, then of rows.
#pragma once

#include "core/stencil_cpu.h"

namespace cvcli {

struct Smallest {
    template <class S>
    S operator()(S a, S b) const {
        return b < a ? b : a;
    }
};

struct Largest {
    template <class S>
    S operator()(S a, S b) const {
        return a < b ? b : a;
    }
};

// Samples as they are compared: integers as they are, floats as keys.
template <class T>
struct Keys {
    using type = T;
    type operator()(T sample) const { return sample; }
    static void put(const type* from, T* to, int64_t count) {
        std::memcpy(to, from, count * sizeof(T));
    }
};
template <>
struct Keys<float> {
    using type = int32_t;
    type operator()(float sample) const { return key_of(sample); }
    static void put(const type* from, float* to, int64_t count) {
        for (int64_t i = 0; i < count; ++i) to[i] = value_of(from[i]);
    }
};

template <class Op, class S>
void pick_rows(const S* a, const S* b, S* __restrict to, int64_t count) {
    for (int64_t i = 0; i < count; ++i) to[i] = Op()(a[i], b[i]);
}

// to[i] = the extreme of `length` samples from i on, `step` apart; both rooms are changed.
template <class Op, class S>
void pick_line(S* room, S* other, S* to, int64_t count, int32_t length, int64_t step) {
    int32_t size = 1;
    int64_t whole = count + (length - 1) * step;
    for (; 2 * size <= length; size *= 2) {
        whole -= size * step;
        pick_rows<Op>(room, room + size * step, other, whole);
        S* made = other;
        other = room;
        room = made;
    }
    // Two that overlap cover what is left; an extreme may meet a sample twice.
    pick_rows<Op>(room, room + (length - size) * step, to, count);
}

// The extremes of columns. Up to 64 bytes more than `count` samples are read and written.
template <class Op, class S>
void pick_columns(const S* const* rows, int32_t length, S* to, int64_t count) {
    constexpr int lanes = 64 / sizeof(S);
    for (int64_t at = 0; at < count; at += lanes) {
        S best[lanes];
        std::memcpy(best, rows[0] + at, sizeof best);
        for (int32_t k = 1; k < length; ++k) {
            const S* row = rows[k] + at;
            for (int i = 0; i < lanes; ++i) best[i] = Op()(best[i], row[i]);
        }
        std::memcpy(to + at, best, sizeof best);
    }
}

template <class Op, class T, int C>
int32_t pick_rectangles(const Share<RectangleParams>& share) {
    using S = typename Keys<T>::type;
    const int32_t rx = share.params.radius_x, ry = share.params.radius_y;
    const int64_t count = int64_t{share.dst.width} * C;
    Scratch scratch;
    const Padded<T, C, S> padded(share, scratch, rx);
    const Writer<T, C> writer(share, scratch);
    S* wide = scratch.take<S>(int64_t{padded.count()} * C);
    S* other = scratch.take<S>(int64_t{padded.count()} * C);
    S* made = scratch.take<S>(count);
    S* ring = scratch.take<S>((2 * ry + 1) * count);
    S** slots = scratch.take<S*>(2 * ry + 1);
    if (scratch.failed()) return kNoMemory;
    slide(
        share, ry, 1, ring, count, slots,
        [&](int32_t y, S* slot) {
            padded.fill(y, wide, Keys<T>());
            pick_line<Op>(wide, other, slot, count, 2 * rx + 1, C);
        },
        [&](int32_t row, S** rows, int32_t) {
            pick_columns<Op>(rows, 2 * ry + 1, made, count);
            Keys<T>::put(made, writer.begin(row), count);
            writer.end(row);
        });
    return 0;
}

template <class T, int C>
int32_t rectangle_rows(const Share<RectangleParams>& share) {
    if (share.params.largest) return pick_rectangles<Largest, T, C>(share);
    return pick_rectangles<Smallest, T, C>(share);
}

}  // namespace cvcli
