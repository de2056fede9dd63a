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

// The extremes of a few rows.
template <class Op, class S>
void pick_few(const S* const* rows, int32_t length, S* to, int64_t count) {
    if (length == 1) return pick_many<Op, 1>(rows, to, count);
    if (length == 3) return pick_many<Op, 3>(rows, to, count);
    pick_many<Op, 5>(rows, to, count);
}

constexpr int32_t kFew = 5;

// Extremes of a sliding window of many rows: of 2, 4, 8, ... rows from each row on, of which a new
// row makes one of each. Two of the longest cover the window.
template <class Op, class S>
class Window {
  public:
    Window(Scratch& scratch, int32_t length, int64_t count) : length_(length), count_(count) {
        if (length <= kFew) return;
        while (2 << levels_ <= length) ++levels_;
        for (int32_t l = 1; l <= levels_; ++l) rooms_[l] = scratch.take<S>(depth(l) * count);
    }
    // The extremes of the next window, of rows[0] to rows[length - 1].
    void pick(const S* const* rows, S* to) {
        if (length_ <= kFew) return pick_few<Op>(rows, length_, to, count_);
        for (int32_t k = made_ ? length_ - 1 : 0; k < length_; ++k) add(rows + k);
        const int64_t first = made_ - length_;
        pick_rows<Op>(extremes(levels_, first), extremes(levels_, made_ - (1 << levels_)), to,
                      count_);
    }

  private:
    // How many of a level are still needed.
    int64_t depth(int32_t level) const {
        return level < levels_ ? (1 << level) + 1 : length_ - (1 << level) + 1;
    }
    // Of 2^level rows from row `at` on.
    S* extremes(int32_t level, int64_t at) const {
        return rooms_[level] + at % depth(level) * count_;
    }
    void add(const S* const* row) {
        const S* high = *row;
        ++made_;
        for (int32_t l = 1; l <= levels_ && made_ >= 1 << l; ++l) {
            const int64_t at = made_ - (1 << l);
            const S* low = l == 1 ? row[-1] : extremes(l - 1, at);
            S* made = extremes(l, at);
            pick_rows<Op>(low, high, made, count_);
            high = made;
        }
    }
    int32_t length_;
    int32_t levels_ = 0;
    int64_t count_;
    int64_t made_ = 0;
    S* rooms_[32] = {};
};

// to[i] = the extreme of `length` samples from i on, `step` apart; both rooms are changed.
template <class Op, class S>
void pick_line(S* room, S* other, S* to, int64_t count, int32_t length, int64_t step) {
    if (length <= kFew) {
        const S* taps[kFew];
        for (int32_t k = 0; k < length; ++k) taps[k] = room + k * step;
        return pick_few<Op, S>(taps, length, to, count);
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
    Window<Op, S> window(scratch, 2 * ry + 1, count);
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
                window.pick(rows, made);
                for (int64_t i = 0; i < count; ++i) out[i] = value_of(made[i]);
            } else {
                window.pick(rows, out);
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
