// The equalizing table of each tile and channel, its histogram clipped first.
#pragma once

#include "core/levels.h"

namespace cvcli {

struct ClaheTablesParams {
    Frame frame;
    int32_t across;
    int32_t tile_width;
    int32_t tile_height;
    int32_t limit;
    float scale;
    int32_t reserved;
};

// Tiles reach past the image by reflection without the edge pixel, over and over if need be.
CVCLI_FN int32_t reflected(int32_t index, int32_t length) {
    if (index < length) return index;
    if (length == 1) return 0;
    const int32_t phase = index % (2 * length - 2);
    return phase < length ? phase : 2 * length - 2 - phase;
}

CVCLI_FN void clip_counts(uint32_t* counts, uint32_t limit) {
    uint32_t clipped = 0;
    for (int i = 0; i < kLevels; ++i) {
        if (counts[i] > limit) {
            clipped += counts[i] - limit;
            counts[i] = limit;
        }
    }
    const uint32_t share = clipped / kLevels;
    uint32_t rest = clipped - share * kLevels;
    for (int i = 0; i < kLevels; ++i) counts[i] += share;
    if (!rest) return;
    const uint32_t step = larger(kLevels / rest, 1u);
    for (uint32_t i = 0; i < kLevels && rest; i += step, --rest) ++counts[i];
}

CVCLI_FN void clahe_table(uint32_t* counts, const ClaheTablesParams& params, uint8_t* table) {
    if (params.limit > 0) clip_counts(counts, static_cast<uint32_t>(params.limit));
    uint32_t sum = 0;
    for (int i = 0; i < kLevels; ++i) {
        sum += counts[i];
        table[i] = table_entry(static_cast<float>(sum) * params.scale);
    }
}

#if CVCLI_CUDA

// A block makes the tables of one tile.
template <class W>
CVCLI_FN void clahe_tables(const W& work, const Each<ClaheTablesParams>& each) {
    using In = typename W::In;
    constexpr int C = In::kChannels;
    constexpr int kCopies = 4;
    __shared__ uint32_t counts[kCopies][C][kLevels];
    __shared__ uint8_t made[C][kLevels];
    uint32_t* const flat = &counts[0][0][0];
    const uint8_t* const table = &made[0][0];
    auto* const mine = counts[threadIdx.x / kWarp % kCopies];
    for_each_tile(work.args, 1, work.args.dst, [&](int32_t index, int32_t, int32_t tile) {
        const Image src = work.src(index);
        const ClaheTablesParams& params = work.params(each, index);
        const auto reader = work.reader(src, index);
        for (int i = threadIdx.x; i < kCopies * C * kLevels; i += kBlockThreads) {
            flat[i] = 0;
        }
        __syncthreads();
        const int32_t top = tile / params.across * params.tile_height;
        const int32_t left = tile % params.across * params.tile_width;
        for (int32_t dy = threadIdx.x / kWarp; dy < params.tile_height; dy += kBlockWarps) {
            const int32_t y = reflected(top + dy, params.frame.height);
            for (int32_t dx = lane(); dx < params.tile_width; dx += kWarp) {
                const In pixel = reader.at(y, reflected(left + dx, params.frame.width));
#pragma unroll
                for (int c = 0; c < C; ++c) {
                    atomicAdd(&mine[c][static_cast<int>(pixel.v[c]) & (kLevels - 1)], 1u);
                }
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < C * kLevels; i += kBlockThreads) {
            for (int copy = 1; copy < kCopies; ++copy) flat[i] += flat[copy * C * kLevels + i];
        }
        __syncthreads();
        if (threadIdx.x < C) clahe_table(counts[0][threadIdx.x], params, made[threadIdx.x]);
        __syncthreads();
        uint8_t* out = row_at<uint8_t>(work.dst(index), tile);
        for (int i = threadIdx.x; i < C * kLevels; i += kBlockThreads) out[i] = table[i];
        __syncthreads();
    });
}

#else

template <class T, int C>
int32_t clahe_tables_rows(const Share<ClaheTablesParams>& share) {
    if constexpr (sizeof(T) == 1) {
        const ClaheTablesParams& params = share.params;
        Scratch scratch;
        const Reader<T, C> reader(share, scratch);
        T* room = scratch.take<T>(int64_t{params.frame.width} * C);
        uint32_t* counts = scratch.take<uint32_t>(C * kLevels);
        if (scratch.failed()) return kNoMemory;
        for (int32_t tile = share.begin; tile < share.end; ++tile) {
            std::memset(counts, 0, sizeof(uint32_t) * C * kLevels);
            const int32_t top = tile / params.across * params.tile_height;
            const int32_t left = tile % params.across * params.tile_width;
            for (int32_t dy = 0; dy < params.tile_height; ++dy) {
                const T* row = reader.row(reflected(top + dy, params.frame.height), room);
                for (int32_t dx = 0; dx < params.tile_width; ++dx) {
                    const T* at = row + int64_t{reflected(left + dx, params.frame.width)} * C;
                    for (int c = 0; c < C; ++c) ++counts[c * kLevels + at[c]];
                }
            }
            uint8_t* out = row_at<uint8_t>(share.dst, tile);
            for (int c = 0; c < C; ++c) {
                clahe_table(counts + c * kLevels, params, out + c * kLevels);
            }
        }
    }
    return 0;
}

#endif

}  // namespace cvcli

CVCLI_PATTERN(clahe_tables, ClaheTablesParams)
