// resample on the CPU: groups of rows are turned, so that the taps of a row become those of a
// column, which are sums of whole vectors; a ring keeps each row made as long as it is needed.
#pragma once

#include "core/resample_floats_cpu.h"
#include "core/resample_halves_cpu.h"
#include "core/resample_rows_cpu.h"
#include "core/resample_sparse_cpu.h"

namespace cvcli {

template <class T>
struct MidOf {
    using type = float;
};
template <>
struct MidOf<uint8_t> {
    using type = uint8_t;
};

template <class T, int C>
class Resampler {
  public:
    using Mid = typename MidOf<T>::type;
    static constexpr bool kFloat = sizeof(Mid) > 1;
    static constexpr int kGroup = kFloat ? 8 : kBytes;

    Resampler(const Share<ResampleParams>& share, Scratch& scratch)
        : share_(share),
          x_(share.params.x),
          y_(share.params.y),
          reader_(share, scratch),
          writer_(share, scratch),
          sums_(x_, share.params.frame.x0, kFloat && !x_.copies ? share.dst.width : 0,
                share.params.frame.width, scratch),
          sparse_(is_sparse(share)),
          sparse_sums_(x_, share.params.frame.x0, sparse_ ? share.dst.width : 0,
                       share.params.frame.width * int64_t{C}, scratch),
          width_(int64_t{share.dst.width} * C),
          pitch_((width_ + 127) / 64 * 64) {
        const int32_t most = taps(y_);
        slots_ = most + kGroup;
        ring_ = scratch.take<Mid>(pitch_ * (slots_ + 1));
        numbers_ = scratch.take<int32_t>(slots_);
        const int64_t row = int64_t{share.params.frame.width} * C;
        if (!reader_.is_direct()) rooms_ = scratch.take<T>(row * kGroup);
        room_pitch_ = reader_.is_direct() ? 0 : row;
        if (sizeof(T) == 2) wide_ = scratch.take<float>(row);
        halves_ = !kFloat && kHalvesRows && x_.halves;
        if (kFloat || x_.copies || halves_ || sparse_) return;
        turned_ = scratch.take<Mid>((larger(kChunk, taps(x_)) * C + 16) * int64_t{kGroup});
        made_ = scratch.take<Mid>((kChunk * C + 16) * int64_t{kGroup});
    }

    void run() {
        for (int32_t row = share_.begin; row < share_.end; ++row) {
            const int32_t index = share_.params.frame.y0 + row;
            const int32_t first = y_.spans[2 * index];
            while (next_ < first + y_.spans[2 * index + 1]) fill(row);
            while (numbers_[head_] != first) head_ = head_ + 1 < slots_ ? head_ + 1 : 0;
            const RingRows<Mid> rows = {ring_, pitch_, head_, slots_};
            blend_row(writer_.begin(row), rows, y_, index, width_);
            writer_.end(row);
        }
    }

  private:
    // Columns turned at a time: what they take stays in the second level of the caches.
    static constexpr int32_t kChunk = (1 << 16) / (kGroup * C * int(sizeof(Mid)));

    // Few pixels of many, whose weights the caches hold: no others are worth a look.
    static bool is_sparse(const Share<ResampleParams>& share) {
        const int64_t wanted = share.dst.width, taken = 2 * taps(share.params.x) * wanted;
        return !kFloat && wanted <= 1 << 16 && share.params.frame.width > taken;
    }

    static int32_t taps(const ResampleAxis& axis) { return axis.most * (kFloat ? 1 : 2); }

    // The next rows that the destination rows from `row` on need, into the ring.
    void fill(int32_t row) {
        const T* rows[kGroup];
        Mid* made[kGroup];
        int32_t count = 0;
        const int32_t wanted = halves_ || sparse_ ? 8 : kGroup;
        for (; row < share_.end && count < wanted; ++row) {
            const int32_t* span = y_.spans + 2 * int64_t{share_.params.frame.y0 + row};
            next_ = larger(next_, span[0]);
            for (; next_ < span[0] + span[1] && count < wanted; ++next_, ++count) {
                rows[count] = reader_.row(next_, rooms_ + count * room_pitch_);
                made[count] = ring_ + tail_ * pitch_;
                numbers_[tail_] = next_;
                tail_ = tail_ + 1 < slots_ ? tail_ + 1 : 0;
            }
        }
        if (x_.copies) return copy(made, rows, count);
        if (kFloat || halves_ || sparse_) return each_row(made, rows, count);
        if constexpr (!kFloat) {
            for (; count < kGroup; ++count) {
                rows[count] = rows[0];
                made[count] = ring_ + slots_ * pitch_;
            }
            resize(made, rows);
        }
    }

    void copy(Mid* const* made, const T* const* rows, int32_t count) const {
        for (int32_t r = 0; r < count; ++r) {
            const T* from = rows[r] + int64_t{share_.params.frame.x0} * C;
            for (int64_t i = 0; i < width_; ++i) made[r][i] = static_cast<Mid>(from[i]);
        }
    }

    void each_row(Mid* const* made, const T* const* rows, int32_t count) const {
        const Frame& frame = share_.params.frame;
        for (int32_t r = 0; r < count; ++r) {
            if constexpr (kFloat) {
                sums_.sum(made[r], as_floats(rows[r]));
            } else if (sparse_) {
                sparse_sums_.sum(made[r], rows[r]);
            } else {
                const int64_t skipped = int64_t{frame.x0} * C * 2;
                halve_row<C>(made[r], rows[r] + skipped, int64_t{frame.width} * C - skipped,
                             width_);
            }
        }
    }

    // A row of samples that floats hold exactly.
    const float* as_floats(const T* row) const {
        if constexpr (sizeof(T) == sizeof(float)) return row;
        const int64_t count = int64_t{share_.params.frame.width} * C;
        for (int64_t i = 0; i < count; ++i) wide_[i] = static_cast<float>(row[i]);
        return wide_;
    }

    void resize(Mid* const* made, const T* const* rows) const {
        const int32_t* spans = x_.spans + 2 * int64_t{share_.params.frame.x0};
        for (int32_t begin = 0; begin < share_.dst.width;) {
            int32_t end = begin;
            const int32_t first = spans[2 * begin];
            int32_t last = first;
            while (end < share_.dst.width && end - begin < kChunk) {
                const int32_t reach = spans[2 * end] + spans[2 * end + 1];
                if (end > begin && reach - first > kChunk) break;
                last = larger(last, reach);
                ++end;
            }
            chunk(made, rows, begin, end, first, last);
            begin = end;
        }
    }

    void chunk(Mid* const* made, const T* const* rows, int32_t begin, int32_t end, int32_t first,
               int32_t last) const {
        const int64_t row_bytes = share_.params.frame.width * int64_t{C};
        turn_in(turned_, rows, row_bytes, int64_t{first} * C, int64_t{last} * C);
        for (int32_t x = begin; x < end; ++x) {
            const int32_t index = share_.params.frame.x0 + x;
            column(index, x - begin, x_.spans[2 * index] - first);
        }
        turn_out(made, int64_t{begin} * C, made_, int64_t{end - begin} * C);
    }

    // One result column of a turned group.
    void column(int32_t index, int32_t place, int32_t skipped) const {
        constexpr int32_t wide = C * kGroup;
        const PlainRows<Mid> taps = {turned_ + skipped * int64_t{wide}, wide};
        Mid* to = made_ + place * int64_t{wide};
        blend_bytes(taps, x_, index, wide,
                    [to](int64_t at, Bytes bytes) { store_bytes(to + at, bytes); });
    }

    const Share<ResampleParams>& share_;
    const ResampleAxis& x_;
    const ResampleAxis& y_;
    const Reader<T, C> reader_;
    const Writer<T, C> writer_;
    const FloatSums<C> sums_;
    const bool sparse_;
    const SparseSums<C> sparse_sums_;
    int64_t width_;
    int64_t pitch_;
    int32_t slots_ = 0;
    Mid* ring_ = nullptr;
    int32_t* numbers_ = nullptr;
    T* rooms_ = nullptr;
    float* wide_ = nullptr;
    int64_t room_pitch_ = 0;
    Mid* turned_ = nullptr;
    Mid* made_ = nullptr;
    bool halves_ = false;
    int32_t next_ = 0;
    int32_t head_ = 0;
    int32_t tail_ = 0;
};

template <class T, int C>
int32_t resample_rows(const Share<ResampleParams>& share) {
    Scratch scratch;
    Resampler<T, C> work(share, scratch);
    if (scratch.failed()) return kNoMemory;
    work.run();
    return 0;
}

}  // namespace cvcli
