// The box pattern on the CPU: sums of rows by doubling, sums of columns kept up as rows pass.
#pragma once

#include "core/stencil_cpu.h"

namespace cvcli {

template <class T>
struct AsIs {
    T operator()(T sample) const { return sample; }
};

template <class U, class S>
void add_row(U* __restrict to, const S* __restrict from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<U>(to[i] + from[i]);
}

// out[i] = the sum of `length` samples from i on, `step` apart. `power` holds sums of 1, 2, 4, ...
// samples in turn; it is as long as the row.
template <class U, class T>
CVCLI_ONCE void sum_line(const T* row, U* __restrict power, U* __restrict out, int64_t count,
                         int32_t length, int64_t step) {
    int64_t whole = count + (length - 1) * step;
    for (int64_t i = 0; i < whole; ++i) power[i] = row[i];
    std::memset(out, 0, count * sizeof(U));
    int64_t done = 0;
    for (int32_t size = 1; size <= length; size *= 2) {
        if (length & size) {
            add_row(out, power + done * step, count);
            done += size;
        }
        whole -= size * step;
        const U* further = power + size * step;
        // In place: what is read lies further on than what has been written.
        for (int64_t i = 0; i < whole; ++i) power[i] = static_cast<U>(power[i] + further[i]);
    }
}

// Sums of columns, the oldest row taken away and the newest added with each row of results.
template <class T, class U>
class Columns {
  public:
    Columns(const BoxParams& params, uint32_t* sums, int64_t count)
        : params_(params), sums_(sums), count_(count) {
        std::memset(sums, 0, count * sizeof(uint32_t));
    }
    CVCLI_ONCE void emit(U** rows, T* __restrict out) {
        const int32_t last = 2 * params_.radius_y;
        for (int32_t k = started_ ? last : 0; k < last; ++k) add_row(sums_, rows[k], count_);
        started_ = true;
        const U* __restrict oldest = rows[0];
        const U* __restrict newest = rows[last];
        for (int64_t i = 0; i < count_; ++i) {
            const uint32_t sum = sums_[i] + newest[i];
            out[i] = mean_sample<T>(params_, sum);
            sums_[i] = sum - oldest[i];
        }
    }

  private:
    const BoxParams& params_;
    uint32_t* sums_;
    int64_t count_;
    bool started_ = false;
};

// Sums of a row: 127 bytes fit 16 bits.
template <class T>
struct RowSum {
    using type = uint32_t;
};
template <>
struct RowSum<uint8_t> {
    using type = uint16_t;
};

template <class T, int C>
int32_t box_rows(const Share<BoxParams>& share) {
    using U = typename RowSum<T>::type;
    const BoxParams& params = share.params;
    const int32_t rx = params.radius_x, ry = params.radius_y;
    const int64_t count = int64_t{share.dst.width} * C;
    Scratch scratch;
    const Padded<T, C, T> padded(share, scratch, rx);
    const Writer<T, C> writer(share, scratch);
    T* wide = scratch.take<T>(int64_t{padded.count()} * C);
    U* power = scratch.take<U>(int64_t{padded.count()} * C);
    U* ring = scratch.take<U>((2 * ry + 1) * count);
    U** slots = scratch.take<U*>(2 * ry + 1);
    uint32_t* sums = scratch.take<uint32_t>(count);
    if (scratch.failed()) return kNoMemory;
    Columns<T, U> columns(params, sums, count);
    slide(
        share, ry, 1, ring, count, slots,
        [&](int32_t y, U* slot) {
            padded.fill(y, wide, AsIs<T>());
            sum_line(wide, power, slot, count, 2 * rx + 1, C);
        },
        [&](int32_t row, U** rows, int32_t) {
            columns.emit(rows, writer.begin(row));
            writer.end(row);
        });
    return 0;
}

}  // namespace cvcli
