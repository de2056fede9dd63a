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

// A block makes one part.
template <class W>
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
        const int32_t end = smaller((part + 1) * kPartRows, frame.height);
        for (int32_t y = part * kPartRows; y < end; ++y) {
#pragma unroll 4
            for (int32_t x = threadIdx.x; x < frame.width; x += kBlockThreads) {
                const In pixel = reader.at(y, x);
#pragma unroll
                for (int c = 0; c < C; ++c) add_sample(mine[c], pixel.v[c]);
            }
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
