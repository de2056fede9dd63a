// How often each of 256 values occurs in each channel: a row of counts for each part of the image.
#pragma once

#include "core/levels.h"

namespace cvcli {

struct HistogramParams {
    Frame frame;
};

#if CVCLI_CUDA

// Two values share a word, for a part of so many columns counts fewer than 2^16 in one copy. There
// is a copy for every other lane, side by side: so few lanes meet in a bank or on a counter,
// whatever the image.
constexpr int kCopies = 16;
constexpr int32_t kWidestCount = 32768;

template <int C>
struct Counts {
    static constexpr int kWords = C * kLevels / 2;
    uint32_t words[kWords][kCopies];

    CVCLI_FN uint32_t* flat() { return &words[0][0]; }
    CVCLI_FN void add(int channel, uint32_t value) {
        atomicAdd(&words[channel * (kLevels / 2) + value / 2][lane() % kCopies],
                  value & 1 ? 65536u : 1u);
    }
    CVCLI_FN void clear() {
        for (int i = threadIdx.x; i < kWords * kCopies; i += kBlockThreads) flat()[i] = 0;
        __syncthreads();
    }
    // Adds the copies to what has been put out, or puts them out.
    CVCLI_FN void put(uint32_t* out, bool more) const {
        __syncthreads();
        for (int i = threadIdx.x; i < kWords; i += kBlockThreads) {
            uint32_t even = 0, odd = 0;
#pragma unroll
            for (int k = 0; k < kCopies; ++k) {
                const uint32_t both = words[i][(k + i) % kCopies];
                even += both & 0xffffu;
                odd += both >> 16;
            }
            out[2 * i] = even + (more ? out[2 * i] : 0);
            out[2 * i + 1] = odd + (more ? out[2 * i + 1] : 0);
        }
        __syncthreads();
    }
};

template <int C>
CVCLI_FN void count_word(Counts<C>& counts, uint32_t word, int first) {
#pragma unroll
    for (int i = 0; i < 4; ++i) counts.add((first + i) % C, word >> (8 * i) & 255u);
}

// Whole groups of 48 bytes of aligned rows [begin, end) from column `left` on, of which there are
// `width`; returns how many pixels of a row they are.
template <int C>
CVCLI_FN int32_t count_groups(const Image& src, int32_t begin, int32_t end, int32_t left,
                              int32_t width, Counts<C>& counts) {
    const uint64_t bits = address(src.data) | static_cast<uint64_t>(src.row_pitch);
    const int32_t groups = width * C / 48;
    if ((bits & (kChunk - 1)) || !groups) return 0;
    for (int32_t i = threadIdx.x; i < (end - begin) * groups; i += kBlockThreads) {
        const uint8_t* from = row_at<const uint8_t>(src, begin + i / groups) + int64_t{left} * C +
                              int64_t{i % groups} * 48;
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
    return groups * 48 / C;
}

// A block makes one part.
template <class W>
CVCLI_FN void histogram(const W& work, const Each<HistogramParams>& each) {
    using In = typename W::In;
    constexpr int C = In::kChannels;
    __shared__ Counts<C> counts;
    for_each_tile(work.args, 1, work.args.dst, [&](int32_t index, int32_t, int32_t part) {
        const Image src = work.src(index);
        const Frame frame = work.params(each, index).frame;
        const auto reader = work.reader(src, index);
        const int32_t begin = part * kPartRows;
        const int32_t end = smaller(begin + kPartRows, frame.height);
        uint32_t* out = row_at<uint32_t>(work.dst(index), part);
#pragma unroll 1
        for (int32_t left = 0; left < frame.width; left += kWidestCount) {
            const int32_t width = smaller(kWidestCount, frame.width - left);
            counts.clear();
            int32_t done = 0;
            if constexpr (W::Read::kDirect) {
                done = count_groups<C>(src, begin, end, left, width, counts);
            }
            const int32_t rest = width - done;
            for (int32_t i = threadIdx.x; i < (end - begin) * rest; i += kBlockThreads) {
                const In pixel = reader.at(begin + i / rest, left + done + i % rest);
#pragma unroll
                for (int c = 0; c < C; ++c) {
                    counts.add(c, static_cast<int>(pixel.v[c]) & (kLevels - 1));
                }
            }
            counts.put(out, left > 0);
        }
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
