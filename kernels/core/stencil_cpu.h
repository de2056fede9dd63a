// Filters on the CPU: rows of the bordered image slide through a ring, each made once a band.
#pragma once

#include "core/rows_cpu.h"
#include "core/stencil.h"

namespace cvcli {

// The widest a block of samples is that is kept in registers and the first-level cache.
constexpr int kBlock = 256;

// Rows of the bordered image, `radius` pixels wider than the result on both sides, as samples S.
template <class T, int C, class S>
class Padded {
  public:
    template <class Params>
    Padded(const Share<Params>& share, Scratch& scratch, int32_t radius)
        : reader_(share, scratch), edges_(share.params.edges), frame_(share.params.frame) {
        first_ = frame_.x0 - radius;
        count_ = share.dst.width + 2 * radius;
        if (!reader_.is_direct()) room_ = scratch.take<T>(int64_t{frame_.width} * C);
    }
    int32_t count() const { return count_; }
    // The source's own row of the result's row, from the result's first pixel on.
    const T* middle(int32_t row) const {
        return reader_.row(row + frame_.y0, room_) + int64_t{frame_.x0} * C;
    }
    // Row y of the bordered image through `convert`, a function of a sample.
    template <class Convert>
    void fill(int32_t y, S* __restrict to, const Convert& convert) const {
        const int32_t at_y = border_index(y, frame_.height, edges_.border);
        if (at_y < 0) return constants(to, 0, count_, convert);
        const T* row = reader_.row(at_y, room_);
        const int32_t begin = smaller(larger(-first_, 0), count_);
        const int32_t end = larger(smaller(frame_.width - first_, count_), begin);
        edge(row, to, 0, begin, convert);
        const T* __restrict from = row + (int64_t{first_} + begin) * C;
        S* __restrict out = to + int64_t{begin} * C;
        const int64_t samples = int64_t{end - begin} * C;
        for (int64_t i = 0; i < samples; ++i) out[i] = convert(from[i]);
        edge(row, to, end, count_, convert);
    }

  private:
    template <class Convert>
    void constants(S* to, int32_t begin, int32_t end, const Convert& convert) const {
        for (int64_t x = begin; x < end; ++x) {
            for (int c = 0; c < C; ++c) {
                to[x * C + c] = convert(static_cast<T>(edges_.value[c]));
            }
        }
    }
    template <class Convert>
    void edge(const T* row, S* to, int32_t begin, int32_t end, const Convert& convert) const {
        if (edges_.border == kConstant) return constants(to, begin, end, convert);
        for (int64_t x = begin; x < end; ++x) {
            const int64_t at = border_index(first_ + int32_t(x), frame_.width, edges_.border);
            for (int c = 0; c < C; ++c) to[x * C + c] = convert(row[at * C + c]);
        }
    }
    const Reader<T, C> reader_;
    const Edges& edges_;
    const Frame& frame_;
    int32_t first_;
    int32_t count_;
    T* room_ = nullptr;
};

// Calls line(y, slot) for every row of the bordered image that a band needs, from the first to the
// last, then emit(row, slots, count) for each `group` of its own: rows from `row` on, of which the
// first has slots[0] to slots[2 * radius] around it, the next slots[1] and so on. `stride` is the
// length of a slot; the ring and the list hold 2 * radius + group of them.
template <class U, class Params, class Line, class Emit>
void slide(const Share<Params>& share, int32_t radius, int32_t group, U* ring, int64_t stride,
           U** slots, const Line& line, const Emit& emit) {
    const int32_t size = 2 * radius + group;
    const int32_t first = share.params.frame.y0 + share.begin - radius;
    int32_t made = 0;
    for (int32_t row = share.begin; row < share.end; row += group) {
        const int32_t count = smaller(group, share.end - row);
        const int32_t wanted = row - share.begin + 2 * radius + count;
        for (; made < wanted; ++made) line(first + made, ring + made % size * stride);
        for (int32_t k = 0; k < 2 * radius + count; ++k) {
            slots[k] = ring + (row - share.begin + k) % size * stride;
        }
        emit(row, slots, count);
    }
}

template <class T>
struct AsFloat {
    float operator()(T sample) const { return static_cast<float>(sample); }
};

// Results of a block in their dtype.
template <class T>
void to_samples(const float* __restrict from, T* __restrict to, int count) {
    for (int i = 0; i < count; ++i) to[i] = to_sample<T>(from[i]);
}

}  // namespace cvcli
