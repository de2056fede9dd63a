// Each sample through the table of its image and channel, or through its level.
#pragma once

#include "core/levels.h"

namespace cvcli {

struct LookupParams {
    Frame frame;
    int32_t kind;
    int32_t reserved;
};

// A pixel through what an image's `aux` holds; alpha has a table or level that keeps it.
template <class T, int C>
CVCLI_FN Pixel<T, C> looked_up(int32_t kind, const void* aux, const Pixel<T, C>& pixel) {
    Pixel<T, C> out;
    for (int c = 0; c < C; ++c) {
        if constexpr (sizeof(T) == 1) {
            out.v[c] = static_cast<const uint8_t*>(aux)[c * kLevels + pixel.v[c]];
        } else {
            out.v[c] = is_alpha<C>(c)
                           ? pixel.v[c]
                           : leveled<T>(kind, pixel.v[c], static_cast<const Level*>(aux)[c]);
        }
    }
    return out;
}

#if CVCLI_CUDA

// Chunks whose samples repeat their channels: a thread takes so many, so that it knows the channel
// of each byte.
template <int C>
constexpr int kGroup = C == 3 ? 3 : 1;

template <int C>
CVCLI_FN uint32_t looked_up_word(const uint8_t* tables, uint32_t word, int first) {
    uint32_t out = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int channel = (first + i) % C;
        out |= uint32_t{tables[channel * kLevels + (word >> (8 * i) & 255u)]} << (8 * i);
    }
    return out;
}

template <int C>
CVCLI_FN void look_up_group(const uint8_t* from, uint8_t* to, const uint8_t* tables) {
    uint4 chunks[kGroup<C>];
#pragma unroll
    for (int k = 0; k < kGroup<C>; ++k) chunks[k] = load_chunk(from + k * kChunk);
#pragma unroll
    for (int k = 0; k < kGroup<C>; ++k) {
        uint4& chunk = chunks[k];
        chunk.x = looked_up_word<C>(tables, chunk.x, k * kChunk);
        chunk.y = looked_up_word<C>(tables, chunk.y, k * kChunk + 4);
        chunk.z = looked_up_word<C>(tables, chunk.z, k * kChunk + 8);
        chunk.w = looked_up_word<C>(tables, chunk.w, k * kChunk + 12);
        *reinterpret_cast<uint4*>(to + k * kChunk) = chunk;
    }
}

// Whole groups of aligned rows [begin, end); returns how many pixels of a row they are.
template <int C>
CVCLI_FN int32_t look_up_groups(const Image& src, const Image& dst, int32_t begin, int32_t end,
                                const uint8_t* tables) {
    const uint64_t bits = address(src.data) | address(dst.data) |
                          static_cast<uint64_t>(src.row_pitch | dst.row_pitch);
    if (bits & (kChunk - 1)) return 0;
    constexpr int kBytes = kGroup<C> * kChunk;
    const int32_t groups = static_cast<int32_t>(int64_t{dst.width} * C / kBytes);
    if (!groups) return 0;
    for (int32_t i = threadIdx.x; i < (end - begin) * groups; i += kBlockThreads) {
        const int32_t y = begin + i / groups;
        const int64_t at = int64_t{i % groups} * kBytes;
        look_up_group<C>(row_at<const uint8_t>(src, y) + at, row_at<uint8_t>(dst, y) + at, tables);
    }
    return static_cast<int32_t>(int64_t{groups} * kBytes / C);
}

// A block takes tile_rows rows of an image; whole chunks where source and result are aligned.
template <int tile_rows, class W>
CVCLI_FN void lookup(const W& work, const Each<LookupParams>& each) {
    using In = typename W::In;
    using T = typename In::Sample;
    constexpr int C = In::kChannels;
    constexpr bool kBytes = sizeof(T) == 1;
    constexpr bool kStraight = W::Read::kDirect && decltype(W::after)::kNone && !W::kPlanarOut;
    constexpr int kRoom = kBytes ? C * kLevels : C * int(sizeof(Level));
    __shared__ __align__(16) uint8_t room[kRoom];
    for_each_tile(work.args, tile_rows, work.args.dst, [&](int32_t index, int32_t, int32_t tile_y) {
        const Image src = work.src(index);
        const Image dst = work.dst(index);
        const Image aux = work.aux(index);
        const int32_t kind = work.params(each, index).kind;
        const auto reader = work.reader(src, index);
        for (int i = threadIdx.x; i < kRoom; i += kBlockThreads) {
            const int row = kBytes ? i / kLevels : 0;
            room[i] = row_at<const uint8_t>(aux, row)[kBytes ? i % kLevels : i];
        }
        __syncthreads();
        const int32_t begin = tile_y * tile_rows;
        const int32_t end = smaller(begin + tile_rows, dst.height);
        int32_t done = 0;
        if constexpr (kStraight && kBytes) done = look_up_groups<C>(src, dst, begin, end, room);
        const int32_t left = dst.width - done;
        for (int32_t i = threadIdx.x; i < (end - begin) * left; i += kBlockThreads) {
            const int32_t y = begin + i / left;
            const int32_t x = done + i % left;
            work.write(dst, y, x, looked_up<T, C>(kind, room, reader.at(y, x)));
        }
        __syncthreads();
    });
}

#else

template <class T, int C>
int32_t lookup_rows(const Share<LookupParams>& share) {
    Scratch scratch;
    const Reader<T, C> reader(share, scratch);
    const Writer<T, C> writer(share, scratch);
    T* room = scratch.take<T>(int64_t{share.dst.width} * C);
    uint8_t* aux = scratch.take<uint8_t>(larger(C * kLevels, C * int(sizeof(Level))));
    if (scratch.failed()) return kNoMemory;
    if (sizeof(T) == 1) {
        for (int c = 0; c < C; ++c) {
            std::memcpy(aux + c * kLevels, row_at<const void>(share.aux, c), kLevels);
        }
    } else {
        std::memcpy(aux, share.aux.data, C * sizeof(Level));
    }
    for (int32_t y = share.begin; y < share.end; ++y) {
        const T* from = reader.row(y, room);
        T* to = writer.begin(y);
        for (int32_t x = 0; x < share.dst.width; ++x, from += C, to += C) {
            Pixel<T, C> pixel;
            std::memcpy(&pixel, from, sizeof pixel);
            pixel = looked_up<T, C>(share.params.kind, aux, pixel);
            std::memcpy(to, &pixel, sizeof pixel);
        }
        writer.end(y);
    }
    return 0;
}

#endif

}  // namespace cvcli

CVCLI_PATTERN(lookup, LookupParams)
