// The median on the CPU.
#pragma once

#include "core/median_ranks_cpu.h"

namespace cvcli {

// The window's rows as keys, each with its edge pixels repeated on both sides.
template <class T, int C>
class KeyRows {
  public:
    template <class Params>
    KeyRows(const Share<Params>& share, Scratch& scratch, int32_t kept)
        : reader_(share, scratch),
          frame_(share.params.frame),
          size_(share.params.size),
          kept_(kept),
          padded_(share.dst.width + size_ - 1) {
        room_ = scratch.take<T>(int64_t{frame_.width} * C);
        ring_ = scratch.take<Key<T>>(row_keys() * kept_);
    }
    int64_t row_keys() const { return int64_t{padded_} * C; }
    // Row y of the frame, which may lie outside the image; the last `kept` ones asked for stay.
    const Key<T>* load(int32_t y) {
        Key<T>* out = slot(y);
        const int32_t line = smaller(larger(y, 0), frame_.height - 1);
        const T* row = reader_.row(line, room_);
        const int32_t first = frame_.x0 - size_ / 2;
        for (int32_t i = 0; i < padded_; ++i) {
            const int32_t x = smaller(larger(first + i, 0), frame_.width - 1);
            for (int c = 0; c < C; ++c) {
                out[int64_t{i} * C + c] = order_key(row[int64_t{x} * C + c]);
            }
        }
        return out;
    }
    Key<T>* slot(int32_t y) const { return ring_ + (y + 2 * kept_) % kept_ * row_keys(); }

  private:
    Reader<T, C> reader_;
    const Frame& frame_;
    int32_t size_;
    int32_t kept_;
    int32_t padded_;
    T* room_ = nullptr;
    Key<T>* ring_ = nullptr;
};

// Counts of the values of one column, or of a window: 16 groups of 16 values, and the values.
struct ColumnCounts {
    uint16_t coarse[kCoarse];
    uint16_t fine[kCoarse][kCoarse];
    void add(uint8_t value, int one) {
        coarse[value >> 4] = static_cast<uint16_t>(coarse[value >> 4] + one);
        uint16_t& count = fine[value >> 4][value & 15];
        count = static_cast<uint16_t>(count + one);
    }
};

inline void add_counts(uint16_t* total, const uint16_t* more) {
    for (int i = 0; i < kCoarse; ++i) total[i] = static_cast<uint16_t>(total[i] + more[i]);
}
inline void slide_counts(uint16_t* total, const uint16_t* more, const uint16_t* less) {
    for (int i = 0; i < kCoarse; ++i) {
        total[i] = static_cast<uint16_t>(total[i] + more[i] - less[i]);
    }
}

// The entry that brings the sum of those up to it over `rank`; takes those before it off.
inline int rank_entry(const uint16_t* counts, uint32_t& rank) {
    int at = 0;
    while (at < kCoarse - 1 && counts[at] <= rank) rank -= counts[at++];
    return at;
}

// One row of medians of a channel. A group's values are brought up to date only when the median
// lies in it: `seen` tells for which window they are.
template <int C>
void slide_row(const ColumnCounts* columns, int32_t width, int32_t size, uint8_t* out) {
    ColumnCounts window = {};
    int32_t seen[kCoarse];
    for (int g = 0; g < kCoarse; ++g) seen[g] = -size;
    for (int32_t i = 0; i < size - 1; ++i) add_counts(window.coarse, columns[i * C].coarse);
    static const uint16_t none[kCoarse] = {};
    for (int32_t x = 0; x < width; ++x) {
        const uint16_t* gone = x ? columns[(x - 1) * C].coarse : none;
        slide_counts(window.coarse, columns[(x + size - 1) * C].coarse, gone);
        uint32_t rank = static_cast<uint32_t>(size * size / 2);
        const int group = rank_entry(window.coarse, rank);
        uint16_t* fine = window.fine[group];
        if (x - seen[group] >= size) {
            std::memset(fine, 0, sizeof window.fine[group]);
            for (int32_t i = 0; i < size; ++i) add_counts(fine, columns[(x + i) * C].fine[group]);
        } else {
            for (int32_t at = seen[group]; at < x; ++at) {
                slide_counts(fine, columns[(at + size) * C].fine[group],
                             columns[at * C].fine[group]);
            }
        }
        seen[group] = x;
        out[int64_t{x} * C] = static_cast<uint8_t>(group * 16 + rank_entry(fine, rank));
    }
}

template <int C>
int32_t median_by_columns(const Share<MedianParams>& share) {
    const int32_t size = share.params.size, y0 = share.params.frame.y0, r = size / 2;
    Scratch scratch;
    KeyRows<uint8_t, C> rows(share, scratch, size);
    const Writer<uint8_t, C> writer(share, scratch);
    ColumnCounts* columns = scratch.take<ColumnCounts>(rows.row_keys());
    if (scratch.failed()) return kNoMemory;
    std::memset(static_cast<void*>(columns), 0, sizeof(ColumnCounts) * rows.row_keys());
    const auto count_row = [&](const uint8_t* keys, int one) {
        for (int64_t i = 0; i < rows.row_keys(); ++i) columns[i].add(keys[i], one);
    };
    for (int32_t k = -r; k < r; ++k) count_row(rows.load(share.begin + y0 + k), 1);
    for (int32_t y = share.begin; y < share.end; ++y) {
        if (y > share.begin) count_row(rows.slot(y0 + y - 1 - r), -1);
        count_row(rows.load(y0 + y + r), 1);
        uint8_t* out = writer.begin(y);
        for (int c = 0; c < C; ++c) slide_row<C>(columns + c, share.dst.width, size, out + c);
        writer.end(y);
    }
    return 0;
}

// A length in parts, as even as can be, of at most so many.
struct Parts {
    int32_t length;
    int32_t most;
    int32_t count = (length + most - 1) / most;
    int32_t begin(int32_t part) const {
        return static_cast<int32_t>(int64_t{length} * part / count);
    }
};

// By tiles of all rows that a tile may have.
template <class T, int C>
int32_t median_by_ranks(const Share<MedianParams>& share) {
    const int32_t size = share.params.size, first = share.params.frame.y0 - size / 2;
    const int32_t width = share.dst.width;
    const Parts across = {width, kTileSide - size + 1};
    const Parts down = {share.end - share.begin, kTileSide - size + 1};
    Scratch scratch;
    KeyRows<T, C> rows(share, scratch, kTileSide);
    const Writer<T, C> writer(share, scratch);
    RankTile<Key<T>> tile(scratch, size);
    T* results = scratch.take<T>(int64_t{width} * C * down.most);
    if (scratch.failed()) return kNoMemory;
    const Key<T>* keys[kTileSide];
    int32_t loaded = share.begin;
    for (int32_t part = 0; part < down.count; ++part) {
        const int32_t top = share.begin + down.begin(part),
                      end = share.begin + down.begin(part + 1);
        for (; loaded < end + size - 1; ++loaded) rows.load(first + loaded);
        for (int32_t y = top; y < end + size - 1; ++y) keys[y - top] = rows.slot(first + y);
        for (int32_t i = 0; i < across.count * C; ++i) {
            const int64_t at = int64_t{across.begin(i / C)} * C + i % C;
            const int32_t wide = across.begin(i / C + 1) - across.begin(i / C);
            tile.run(keys, {at, C, wide + size - 1, end - top + size - 1},
                     [&](int y, int x, Key<T> key) {
                         results[int64_t{y} * width * C + at + x * C] = key_sample(key, T{});
                     });
        }
        for (int32_t y = top; y < end; ++y) writer.put(y, results + int64_t{y - top} * width * C);
    }
    return 0;
}

template <class T, int C>
int32_t median_rows(const Share<MedianParams>& share) {
    if constexpr (sizeof(T) == 1) return median_by_columns<C>(share);
    return median_by_ranks<T, C>(share);
}

}  // namespace cvcli
