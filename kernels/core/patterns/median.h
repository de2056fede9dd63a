// The median of a square of samples around each, of any odd size; outside the image the edge goes
// on. uint8 by histograms that slide (Huang, Yang and Tang, "A fast two-dimensional median
// filtering algorithm", 1979; on the CPU with a histogram a column: Perreault and Hebert, "Median
// filtering in constant time", 2007), other dtypes by finding the key digit by digit.
#pragma once

#include "core/median_net.h"
#include "core/pattern.h"

namespace cvcli {

struct MedianParams {
    Frame frame;
    int32_t size;
    int32_t reserved;
};

constexpr int kCoarse = 16;  // levels of a histogram's coarse part, and values in each

#if CVCLI_CUDA

// A histogram of one thread, in shared memory that is laid out so that neighbours' counts of one
// value lie side by side; the coarse counts are in registers, three of ten bits a word.
template <class Count, int threads>
struct SlidingCounts {
    Count* fine;  // of this thread
    uint32_t coarse[6];

    CVCLI_FN void clear() {
        for (int i = 0; i < 256; ++i) fine[i * threads] = 0;
#pragma unroll
        for (uint32_t& word : coarse) word = 0;
    }
    // Adds 1, or takes 1 away.
    CVCLI_FN void add(uint32_t value, int one) {
        Count& count = fine[value * threads];
        count = static_cast<Count>(count + one);
        const uint32_t group = value >> 4;
        const uint32_t word = group / 3;
        const uint32_t step = static_cast<uint32_t>(one) << (10 * (group - 3 * word));
#pragma unroll
        for (uint32_t i = 0; i < 6; ++i) coarse[i] += word == i ? step : 0u;
    }
    // The value of which `rank` others are below.
    CVCLI_FN uint32_t at_rank(uint32_t rank) const {
        uint32_t group = 0, below = 0;
#pragma unroll
        for (uint32_t g = 0; g < kCoarse - 1; ++g) {
            const uint32_t next = below + (coarse[g / 3] >> (10 * (g % 3)) & 1023u);
            if (group == g && next <= rank) {
                below = next;
                group = g + 1;
            }
        }
        uint32_t value = group * 16;
        const uint32_t last = value + 15;
        while (value < last) {
            below += fine[value * threads];
            if (below > rank) break;
            ++value;
        }
        return value;
    }
};

template <class T>
struct Window {
    const uint8_t* row;  // of the image's first row, at this thread's channel
    int64_t pitch;
    int32_t x;
    int32_t width;
    int32_t height;
    int32_t channels;
    CVCLI_FN T at(int32_t y, int32_t dx) const {
        const int32_t column = smaller(larger(x + dx, 0), width - 1);
        const int32_t line = smaller(larger(y, 0), height - 1);
        const T* from = reinterpret_cast<const T*>(row + line * pitch);
        return read_only(from + int64_t{column} * channels);
    }
};

// A thread slides down `rows` rows of one column of samples.
template <int size, int rows, int threads>
CVCLI_FN void median_strip(const Window<uint8_t>& window, int32_t top, int32_t y0, int32_t height,
                           uint8_t* out, int64_t pitch) {
    constexpr int R = size / 2;
    using Count = typename UnitOf<(size * size > 255 ? 2 : 1)>::type;
    __shared__ Count room[256 * threads];
    SlidingCounts<Count, threads> counts = {room + threadIdx.x, {}};
    counts.clear();
    for (int dy = -R; dy <= R; ++dy) {
        for (int dx = -R; dx <= R; ++dx) counts.add(window.at(y0 + top + dy, dx), 1);
    }
    const int32_t end = smaller(top + rows, height);
    for (int32_t y = top;;) {
        out[y * pitch] = static_cast<uint8_t>(counts.at_rank(size * size / 2));
        if (++y >= end) return;
#pragma unroll 4
        for (int dx = -R; dx <= R; ++dx) {
            counts.add(window.at(y0 + y - R - 1, dx), -1);
            counts.add(window.at(y0 + y + R, dx), 1);
        }
    }
}

// Digit by digit from the highest: how many keys with the digits found so far have each next one.
template <int size, class T>
CVCLI_FN T median_by_digits(const Window<T>& window, int32_t y) {
    constexpr int R = size / 2;
    constexpr int kBits = 8 * sizeof(T);
    uint32_t found = 0, rank = size * size / 2;
#pragma unroll 1
    for (int shift = kBits - 3; shift > -3; shift -= 3) {
        const int down = larger(shift, 0);
        const uint32_t mask = (shift < 0 ? (1u << (shift + 3)) : 8u) - 1u;
        uint32_t counts[4] = {};  // eight of 16 bits
#pragma unroll 1
        for (int dy = -R; dy <= R; ++dy) {
#pragma unroll 4
            for (int dx = -R; dx <= R; ++dx) {
                const uint32_t rest = uint32_t{order_key(window.at(y + dy, dx))} >> down;
                const uint32_t digit = rest & mask;
                const bool mine = (rest & ~mask) == found;
                const uint32_t one = mine ? 1u << (16 * (digit & 1u)) : 0u;
#pragma unroll
                for (uint32_t i = 0; i < 4; ++i) counts[i] += digit / 2 == i ? one : 0u;
            }
        }
        uint32_t digit = 0;
#pragma unroll
        for (uint32_t d = 0; d < 7; ++d) {
            const uint32_t count = counts[d / 2] >> (16 * (d % 2)) & 0xffffu;
            if (digit == d && count <= rank && d < mask) {
                rank -= count;
                digit = d + 1;
            }
        }
        found |= digit;
        // Room for the next digit, of three bits or what is left.
        const int next = smaller(3, down);
        found = down ? found << next : found;
    }
    return key_sample(static_cast<Key<T>>(found), T{});
}

template <int size, int rows, int threads, class W>
CVCLI_FN void median(const W& work, const Each<MedianParams>& each) {
    using In = typename W::In;
    using T = typename In::Sample;
    constexpr int C = In::kChannels;
    for_each_tile(
        work.args, rows, work.args.dst, [&](int32_t index, int32_t tile_x, int32_t tile_y) {
            const Image src = work.src(index);
            const Image dst = work.dst(index);
            const Frame& frame = work.params(each, index).frame;
            const int64_t sample = int64_t{tile_x} * threads + threadIdx.x;
            const int32_t x = static_cast<int32_t>(sample / C),
                          c = static_cast<int32_t>(sample % C);
            const int32_t top = tile_y * rows;
            if (x >= dst.width) return;
            const Window<T> window = {static_cast<const uint8_t*>(src.data) + c * sizeof(T),
                                      src.row_pitch,
                                      frame.x0 + x,
                                      frame.width,
                                      frame.height,
                                      C};
            uint8_t* out = static_cast<uint8_t*>(dst.data) + sample * sizeof(T);
            if constexpr (sizeof(T) == 1) {
                median_strip<size, rows, threads>(window, top, frame.y0, dst.height, out,
                                                  dst.row_pitch);
            } else {
                const int32_t end = smaller(top + rows, dst.height);
                for (int32_t y = top; y < end; ++y) {
                    *reinterpret_cast<T*>(out + y * dst.row_pitch) =
                        median_by_digits<size>(window, frame.y0 + y);
                }
            }
        });
}

#else

// The window's rows as keys, each with its edge pixels repeated on both sides.
template <class T, int C>
class KeyRows {
  public:
    template <class Params>
    KeyRows(const Share<Params>& share, Scratch& scratch)
        : reader_(share, scratch),
          frame_(share.params.frame),
          size_(share.params.size),
          padded_(share.dst.width + size_ - 1) {
        room_ = scratch.take<T>(int64_t{frame_.width} * C);
        ring_ = scratch.take<Key<T>>(row_keys() * size_);
    }
    int64_t row_keys() const { return int64_t{padded_} * C; }
    // Row y of the frame, which may lie outside the image; the last `size` ones asked for stay.
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
    Key<T>* slot(int32_t y) const { return ring_ + (y + 2 * size_) % size_ * row_keys(); }

  private:
    Reader<T, C> reader_;
    const Frame& frame_;
    int32_t size_;
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
    KeyRows<uint8_t, C> rows(share, scratch);
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

// Quickselect, Hoare 1961: the entry of that rank.
template <class K>
K select_key(K* keys, int32_t count, int32_t rank) {
    int32_t low = 0, high = count - 1;
    while (low < high) {
        const K pivot = keys[low + (high - low) / 2];
        int32_t i = low, j = high;
        while (i <= j) {
            while (keys[i] < pivot) ++i;
            while (pivot < keys[j]) --j;
            if (i <= j) {
                const K swapped = keys[i];
                keys[i++] = keys[j];
                keys[j--] = swapped;
            }
        }
        if (rank <= j) {
            high = j;
        } else if (rank >= i) {
            low = i;
        } else {
            break;
        }
    }
    return keys[rank];
}

template <class T, int C>
int32_t median_by_selection(const Share<MedianParams>& share) {
    const int32_t size = share.params.size, y0 = share.params.frame.y0, r = size / 2;
    Scratch scratch;
    KeyRows<T, C> rows(share, scratch);
    const Writer<T, C> writer(share, scratch);
    Key<T>* window = scratch.take<Key<T>>(size * size);
    if (scratch.failed()) return kNoMemory;
    for (int32_t k = -r; k < r; ++k) rows.load(share.begin + y0 + k);
    for (int32_t y = share.begin; y < share.end; ++y) {
        rows.load(y0 + y + r);
        T* out = writer.begin(y);
        for (int64_t i = 0; i < int64_t{share.dst.width} * C; ++i) {
            Key<T>* to = window;
            for (int32_t k = -r; k <= r; ++k) {
                const Key<T>* row = rows.slot(y0 + y + k) + i;
                for (int32_t dx = 0; dx < size; ++dx) *to++ = row[dx * C];
            }
            out[i] = key_sample(select_key(window, size * size, size * size / 2), T{});
        }
        writer.end(y);
    }
    return 0;
}

template <class T, int C>
int32_t median_rows(const Share<MedianParams>& share) {
    if constexpr (sizeof(T) == 1) return median_by_columns<C>(share);
    return median_by_selection<T, C>(share);
}

#endif

}  // namespace cvcli

CVCLI_PATTERN(median, MedianParams)
