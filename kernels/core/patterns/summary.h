// The lowest, highest and summed samples of each channel, a row of results for each part.
#pragma once

#include "core/levels.h"

namespace cvcli {

struct SummaryParams {
    Frame frame;
};

#if CVCLI_CUDA

CVCLI_FN Summary lane_from(const Summary& summary, int distance) {
    const uint32_t all = 0xffffffffu;
    return {__shfl_down_sync(all, summary.low, distance),
            __shfl_down_sync(all, summary.high, distance),
            __shfl_down_sync(all, summary.sum, distance)};
}

// The lowest and highest of bytes in groups of 48, of which byte i is of channel i % C.
template <int C>
struct ByteRange {
    uint32_t low[3] = {~0u, ~0u, ~0u};
    uint32_t high[3] = {};

    CVCLI_FN void add(uint32_t word, int place) {
        low[place % 3] = __vminu4(low[place % 3], word);
        high[place % 3] = __vmaxu4(high[place % 3], word);
    }
    CVCLI_FN void add(const uint4& chunk, int place) {
        add(chunk.x, place);
        add(chunk.y, place + 1);
        add(chunk.z, place + 2);
        add(chunk.w, place + 3);
    }
    CVCLI_FN void join(Summary (&total)[C]) const {
#pragma unroll
        for (int i = 0; i < 12; ++i) {
            const int shift = 8 * (i % 4);
            Summary& mine = total[i % C];
            const float lowest = static_cast<float>(low[i / 4] >> shift & 255u);
            const float highest = static_cast<float>(high[i / 4] >> shift & 255u);
            mine.low = lowest < mine.low ? lowest : mine.low;
            mine.high = highest > mine.high ? highest : mine.high;
        }
    }
};

// Whole groups of 48 bytes of aligned rows [begin, end), whose sums nobody asks for; returns how
// many pixels of a row they are.
template <int C>
CVCLI_FN int32_t range_of_groups(const Image& src, int32_t begin, int32_t end,
                                 Summary (&total)[C]) {
    const uint64_t bits = address(src.data) | static_cast<uint64_t>(src.row_pitch);
    const int32_t groups = static_cast<int32_t>(int64_t{src.width} * C / 48);
    if ((bits & (kChunk - 1)) || !groups) return 0;
    ByteRange<C> range;
#pragma unroll 2
    for (int32_t i = threadIdx.x; i < (end - begin) * groups; i += kBlockThreads) {
        const uint8_t* from =
            row_at<const uint8_t>(src, begin + i / groups) + int64_t{i % groups} * 48;
        uint4 chunks[3];
#pragma unroll
        for (int k = 0; k < 3; ++k) chunks[k] = load_chunk(from + k * kChunk);
#pragma unroll
        for (int k = 0; k < 3; ++k) range.add(chunks[k], 4 * k);
    }
    range.join(total);
    return static_cast<int32_t>(int64_t{groups} * 48 / C);
}

// A block makes one part.
template <bool sums, class W>
CVCLI_FN void summary(const W& work, const Each<SummaryParams>& each) {
    using In = typename W::In;
    constexpr int C = In::kChannels;
    __shared__ Summary warps[kBlockWarps][C];
    for_each_tile(work.args, 1, work.args.dst, [&](int32_t index, int32_t, int32_t part) {
        const Image src = work.src(index);
        const Frame frame = work.params(each, index).frame;
        const auto reader = work.reader(src, index);
        Summary mine[C];
        for (int c = 0; c < C; ++c) mine[c] = no_samples();
        const int32_t begin = part * kPartRows;
        const int32_t end = smaller(begin + kPartRows, frame.height);
        int32_t done = 0;
        if constexpr (!sums && W::Read::kDirect && sizeof(typename In::Sample) == 1) {
            done = range_of_groups<C>(src, begin, end, mine);
        }
        const int32_t left = frame.width - done;
#pragma unroll 4
        for (int32_t i = threadIdx.x; i < (end - begin) * left; i += kBlockThreads) {
            const In pixel = reader.at(begin + i / left, done + i % left);
#pragma unroll
            for (int c = 0; c < C; ++c) add_sample(mine[c], pixel.v[c]);
        }
#pragma unroll
        for (int c = 0; c < C; ++c) {
            for (int distance = kWarp / 2; distance; distance /= 2) {
                add_summary(mine[c], lane_from(mine[c], distance));
            }
            if (lane() == 0) warps[threadIdx.x / kWarp][c] = mine[c];
        }
        __syncthreads();
        if (threadIdx.x < C) {
            Summary total = no_samples();
            for (int w = 0; w < kBlockWarps; ++w) add_summary(total, warps[w][threadIdx.x]);
            row_at<Summary>(work.dst(index), part)[threadIdx.x] = total;
        }
        __syncthreads();
    });
}

#else

template <class T, int C>
int32_t summary_rows(const Share<SummaryParams>& share) {
    const Frame& frame = share.params.frame;
    Scratch scratch;
    const Reader<T, C> reader(share, scratch);
    T* room = scratch.take<T>(int64_t{frame.width} * C);
    if (scratch.failed()) return kNoMemory;
    for (int32_t part = share.begin; part < share.end; ++part) {
        Summary total[C];
        for (int c = 0; c < C; ++c) total[c] = no_samples();
        const int32_t end = smaller((part + 1) * kPartRows, frame.height);
        for (int32_t y = part * kPartRows; y < end; ++y) {
            const T* row = reader.row(y, room);
            for (int32_t x = 0; x < frame.width; ++x) {
                for (int c = 0; c < C; ++c) add_sample(total[c], row[int64_t{x} * C + c]);
            }
        }
        std::memcpy(row_at<void>(share.dst, part), total, sizeof total);
    }
    return 0;
}

#endif

}  // namespace cvcli

CVCLI_PATTERN(summary, SummaryParams)
