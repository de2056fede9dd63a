// The median on the GPU.
#pragma once

#include "core/median_ranks_cuda.h"

namespace cvcli {

// Counts of a window's values, or of the groups of 16 values that they lie in: sixteen, as wide as
// the number of samples needs.
template <int size>
struct WindowCounts {
    static constexpr bool kBytes = size * size < 256;
    static constexpr int kWords = kBytes ? 4 : 8, kBits = kBytes ? 8 : 16;
    static constexpr uint32_t kOnes = kBytes ? 0x01010101u : 0x00010001u;
    static constexpr uint32_t kTops = kOnes << (kBits - 1), kRank = size * size / 2;
    // So many columns' counts add up in bytes.
    static constexpr int kTogether = 255 / size;
    uint32_t v[kWords] = {};

    // The sum of those of `size` columns, of sixteen bytes each.
    CVCLI_FN WindowCounts(const uint8_t* from, int apart) {
#pragma unroll
        for (int first = 0; first < size; first += kTogether) {
            uint32_t sums[4] = {};
#pragma unroll
            for (int k = first; k < smaller(first + kTogether, size); ++k) {
                const uint4 counts = *reinterpret_cast<const uint4*>(from + k * apart);
                sums[0] += counts.x, sums[1] += counts.y;
                sums[2] += counts.z, sums[3] += counts.w;
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if constexpr (kBytes) {
                    v[i] = sums[i];
                } else {
                    v[2 * i] += __byte_perm(sums[i], 0, 0x4140);
                    v[2 * i + 1] += __byte_perm(sums[i], 0, 0x4342);
                }
            }
        }
    }
    // The first entry up to which, with `below` more, there are over kRank; `below` becomes how
    // many there are before it. A product makes running sums; a top bit says which are over.
    CVCLI_FN int find(uint32_t& below) const {
        constexpr uint32_t room = kTops - kOnes - kRank * kOnes;
        int index = 0;
        uint32_t before = below;
#pragma unroll
        for (int i = 0; i < kWords; ++i) {
            const uint32_t sums = (v[i] + before) * kOnes;
            const int under = __popc(~(sums + room) & kTops);
            if (under) below = sums >> (kBits * (under - 1)) & ((1u << kBits) - 1);
            index += under;
            before = sums >> (32 - kBits);
        }
        return index;
    }
};

// A histogram a column of samples: 256 counts of values, then those of 16 groups. A column's
// successor lies four banks further.
template <int size, int C, int wide, int threads>
struct ColumnCounts {
    static constexpr int kPitch = 256 + kCoarse, kColumns = wide + (size - 1) * C;
    static constexpr int kEach = (kColumns + threads - 1) / threads;
    uint8_t* room;

    CVCLI_FN void clear() const {
#pragma unroll 4
        for (int i = threadIdx.x; i < kColumns * kPitch / 16; i += threads) {
            reinterpret_cast<uint4*>(room)[i] = {0, 0, 0, 0};
        }
    }
    // Adds 1, or takes 1 away, in one of this thread's columns.
    CVCLI_FN void add(int k, uint32_t value, int one) const {
        uint8_t* counts = room + (threadIdx.x + k * threads) * kPitch;
        counts[value] = static_cast<uint8_t>(counts[value] + one);
        uint8_t& group = counts[256 + value / 16];
        group = static_cast<uint8_t>(group + one);
    }
    CVCLI_FN uint8_t median(int column) const {
        const uint8_t* counts = room + column * kPitch;
        uint32_t below = 0;
        const int group = WindowCounts<size>(counts + 256, C * kPitch).find(below);
        const int value = WindowCounts<size>(counts + group * 16, C * kPitch).find(below);
        return static_cast<uint8_t>(group * 16 + value);
    }
};

// The samples of a thread's columns.
template <int each>
struct ColumnSamples {
    const uint8_t* column[each];  // null where there is none
    int64_t pitch;
    int32_t height;
    CVCLI_FN uint32_t at(int k, int32_t y) const {
        return read_only(column[k] + smaller(larger(y, 0), height - 1) * pitch);
    }
};

// A block goes down `rows` rows of `wide` columns of samples.
template <int size, int rows, int wide, int threads, int C>
CVCLI_FN void median_strip(const Image& src, const Image& dst, const Frame& frame, int64_t first,
                           int32_t top) {
    constexpr int R = size / 2;
    using Counts = ColumnCounts<size, C, wide, threads>;
    constexpr int each = Counts::kEach;
    __shared__ __align__(16) uint8_t room[Counts::kColumns * Counts::kPitch];
    const Counts counts = {room};
    ColumnSamples<each> samples = {{}, src.row_pitch, frame.height};
#pragma unroll
    for (int k = 0; k < each; ++k) {
        const int column = threadIdx.x + k * threads;
        const int64_t sample = first + column;
        const int64_t x = int64_t{frame.x0} + sample / C - R;
        const int64_t within = smaller(larger(x, int64_t{0}), int64_t{frame.width} - 1);
        if (column < Counts::kColumns) {
            samples.column[k] = row_at<const uint8_t>(src, 0) + within * C + sample % C;
        }
    }
    const auto add = [&](int32_t y, int one) {
#pragma unroll
        for (int k = 0; k < each; ++k) {
            if (samples.column[k]) counts.add(k, samples.at(k, y), one);
        }
    };
    counts.clear();
    __syncthreads();
    int32_t y = frame.y0 + top;
    for (int dy = -R; dy <= R; ++dy) add(y + dy, 1);
    const int64_t own = first + threadIdx.x;
    const bool mine = threadIdx.x < wide && own < int64_t{dst.width} * C;
    const int32_t end = smaller(rows, dst.height - top);
    uint8_t* out = row_at<uint8_t>(dst, top) + own;
    for (int32_t row = 0;; ++y, out += dst.row_pitch) {
        __syncthreads();
        const bool more = ++row < end;
        uint32_t next[each], gone[each];
#pragma unroll
        for (int k = 0; k < each; ++k) {
            if (!more || !samples.column[k]) continue;
            next[k] = samples.at(k, y + R + 1);
            gone[k] = samples.at(k, y - R);
        }
        if (mine) *out = counts.median(threadIdx.x);
        __syncthreads();
        if (!more) return;
#pragma unroll
        for (int k = 0; k < each; ++k) {
            if (!samples.column[k]) continue;
            counts.add(k, next[k], 1);
            counts.add(k, gone[k], -1);
        }
    }
}

// By squares of that many results a side if there are, else by strips of columns.
template <int size, int square, int rows, int wide, int threads, class W>
CVCLI_FN void median(const W& work, const Each<MedianParams>& each) {
    using T = typename W::In::Sample;
    constexpr int C = W::In::kChannels;
    for_each_tile(work.args, rows, work.args.dst,
                  [&](int32_t index, int32_t tile_x, int32_t tile_y) {
                      const Image src = work.src(index);
                      const Image dst = work.dst(index);
                      const Frame& frame = work.params(each, index).frame;
                      const int32_t top = tile_y * rows;
                      if constexpr (square > 0) {
                          const int64_t left = int64_t{tile_x / C} * square;
                          if (left >= dst.width) return;
                          median_square<size, C, T>(src, dst, frame, static_cast<int32_t>(left),
                                                    top, tile_x % C);
                      } else {
                          const int64_t first = int64_t{tile_x} * wide;
                          if (first >= int64_t{dst.width} * C) return;
                          median_strip<size, rows, wide, threads, C>(src, dst, frame, first, top);
                      }
                  });
}

}  // namespace cvcli
