// How often each of 256 values occurs in each channel: a row of counts for each part of the image.
#pragma once

#include "core/levels.h"

namespace cvcli {

struct HistogramParams {
    Frame frame;
};

#if CVCLI_CUDA

template <int C>
CVCLI_FN void count_word(uint32_t (*counts)[kLevels], uint32_t word, int first) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        atomicAdd(&counts[(first + i) % C][word >> (8 * i) & 255u], 1u);
    }
}

// Whole groups of 48 bytes of aligned rows [begin, end); returns how many pixels of a row they are.
template <int C>
CVCLI_FN int32_t count_groups(const Image& src, int32_t begin, int32_t end,
                              uint32_t (*counts)[kLevels]) {
    const uint64_t bits = address(src.data) | static_cast<uint64_t>(src.row_pitch);
    const int32_t groups = static_cast<int32_t>(int64_t{src.width} * C / 48);
    if ((bits & (kChunk - 1)) || !groups) return 0;
    for (int32_t i = threadIdx.x; i < (end - begin) * groups; i += kBlockThreads) {
        const uint8_t* from =
            row_at<const uint8_t>(src, begin + i / groups) + int64_t{i % groups} * 48;
        uint4 chunks[3];
#pragma unroll
        for (int k = 0; k < 3; ++k) chunks[k] = load_chunk(from + k * kChunk);
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            count_word<C>(counts, chunks[k].x, k * kChunk);
            count_word<C>(counts, chunks[k].y, k * kChunk + 4);
            count_word<C>(counts, chunks[k].z, k * kChunk + 8);
            count_word<C>(counts, chunks[k].w, k * kChunk + 12);
        }
    }
    return static_cast<int32_t>(int64_t{groups} * 48 / C);
}

// A block makes one part; each warp counts by itself, so that few lanes meet on one counter.
template <class W>
CVCLI_FN void histogram(const W& work, const Each<HistogramParams>& each) {
    using In = typename W::In;
    constexpr int C = In::kChannels;
    constexpr int kCopies = C > 2 ? 4 : 8;
    __shared__ uint32_t counts[kCopies][C][kLevels];
    uint32_t* const flat = &counts[0][0][0];
    auto* const mine = counts[threadIdx.x / kWarp % kCopies];
    for_each_tile(work.args, 1, work.args.dst, [&](int32_t index, int32_t, int32_t part) {
        const Image src = work.src(index);
        const Frame frame = work.params(each, index).frame;
        const auto reader = work.reader(src, index);
        for (int i = threadIdx.x; i < kCopies * C * kLevels; i += kBlockThreads) {
            flat[i] = 0;
        }
        __syncthreads();
        const int32_t begin = part * kPartRows;
        const int32_t end = smaller(begin + kPartRows, frame.height);
        int32_t done = 0;
        if constexpr (W::Read::kDirect) done = count_groups<C>(src, begin, end, mine);
        const int32_t left = frame.width - done;
        for (int32_t i = threadIdx.x; i < (end - begin) * left; i += kBlockThreads) {
            const In pixel = reader.at(begin + i / left, done + i % left);
#pragma unroll
            for (int c = 0; c < C; ++c) {
                atomicAdd(&mine[c][static_cast<int>(pixel.v[c]) & (kLevels - 1)], 1u);
            }
        }
        __syncthreads();
        uint32_t* out = row_at<uint32_t>(work.dst(index), part);
        for (int i = threadIdx.x; i < C * kLevels; i += kBlockThreads) {
            uint32_t total = 0;
            for (int copy = 0; copy < kCopies; ++copy) total += flat[copy * C * kLevels + i];
            out[i] = total;
        }
        __syncthreads();
    });
}

#else

template <class T, int C>
int32_t histogram_rows(const Share<HistogramParams>& share) {
    if constexpr (sizeof(T) == 1) {
        const Frame& frame = share.params.frame;
        Scratch scratch;
        const Reader<T, C> reader(share, scratch);
        T* room = scratch.take<T>(int64_t{frame.width} * C);
        // Two sets, taken in turn: a count need not wait for the one before it.
        uint32_t* counts = scratch.take<uint32_t>(2 * C * kLevels);
        if (scratch.failed()) return kNoMemory;
        for (int32_t part = share.begin; part < share.end; ++part) {
            std::memset(counts, 0, sizeof(uint32_t) * 2 * C * kLevels);
            const int32_t end = smaller((part + 1) * kPartRows, frame.height);
            for (int32_t y = part * kPartRows; y < end; ++y) {
                const T* row = reader.row(y, room);
                for (int32_t x = 0; x < frame.width; ++x, row += C) {
                    uint32_t* set = counts + (x & 1) * C * kLevels;
                    for (int c = 0; c < C; ++c) ++set[c * kLevels + row[c]];
                }
            }
            uint32_t* out = row_at<uint32_t>(share.dst, part);
            for (int i = 0; i < C * kLevels; ++i) out[i] = counts[i] + counts[C * kLevels + i];
        }
    }
    return 0;
}

#endif

}  // namespace cvcli

CVCLI_PATTERN(histogram, HistogramParams)
