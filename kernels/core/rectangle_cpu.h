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
};
template <>
struct Keys<float> {
    using type = int32_t;
    type operator()(float sample) const { return key_of(sample); }
};

template <class Op, class S>
void pick_rows(const S* a, const S* b, S* __restrict to, int64_t count) {
    for (int64_t i = 0; i < count; ++i) to[i] = Op()(a[i], b[i]);
}

// The extremes of N rows.
template <class Op, int N, class S>
void pick_many(const S* const* rows, S* __restrict to, int64_t count) {
    const S* at[N];
    for (int k = 0; k < N; ++k) at[k] = rows[k];
    for (int64_t i = 0; i < count; ++i) {
        S best = at[0][i];
        for (int k = 1; k < N; ++k) best = Op()(best, at[k][i]);
        to[i] = best;
    }
}

// The extremes of any number of rows, by blocks that stay close.
template <class Op, class S>
void pick_any(const S* const* rows, int32_t length, S* to, int64_t count) {
    for (int64_t at = 0; at < count; at += kBlock) {
        S best[kBlock], next[kBlock];
        const int64_t part = smaller(count - at, int64_t{kBlock});
        std::memcpy(best, rows[0] + at, part * sizeof(S));
        int32_t k = 1;
        for (; k + 4 <= length; k += 4) {
            const S* five[5] = {best, rows[k] + at, rows[k + 1] + at, rows[k + 2] + at,
                                rows[k + 3] + at};
            pick_many<Op, 5>(five, next, part);
            std::memcpy(best, next, part * sizeof(S));
        }
        for (; k < length; ++k) {
            const S* two[2] = {best, rows[k] + at};
            pick_many<Op, 2>(two, next, part);
            std::memcpy(best, next, part * sizeof(S));
        }
        std::memcpy(to + at, best, part * sizeof(S));
    }
}

template <class Op, class S>
CVCLI_ONCE void pick_of(const S* const* rows, int32_t length, S* to, int64_t count) {
    if (length == 3) return pick_many<Op, 3>(rows, to, count);
    if (length == 5) return pick_many<Op, 5>(rows, to, count);
    pick_any<Op>(rows, length, to, count);
}

// to[i] = the extreme of `length` samples from i on, `step` apart; both rooms are changed.
template <class Op, class S>
CVCLI_ONCE void pick_line(S* room, S* other, S* to, int64_t count, int32_t length, int64_t step) {
    if (length <= 5) {
        const S* taps[5];
        for (int32_t k = 0; k < length; ++k) taps[k] = room + k * step;
        return pick_of<Op, S>(taps, length, to, count);
    }
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
    S* made = sizeof(T) == sizeof(float) ? scratch.take<S>(count) : nullptr;
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
            T* out = writer.begin(row);
            if constexpr (sizeof(T) == sizeof(float)) {
                pick_of<Op, S>(rows, 2 * ry + 1, made, count);
                for (int64_t i = 0; i < count; ++i) out[i] = value_of(made[i]);
            } else {
                pick_of<Op, S>(rows, 2 * ry + 1, out, count);
            }
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
