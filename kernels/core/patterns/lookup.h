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

// The samples of a 16-byte chunk of a row, the first of which is of channel `first`.
template <int C>
CVCLI_FN uint32_t looked_up_word(const uint8_t (*tables)[kLevels], uint32_t word, int first) {
    uint32_t out = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        int channel = first + i;
        channel -= channel >= C ? C : 0;
        channel -= channel >= C ? C : 0;
        channel -= channel >= C ? C : 0;
        channel -= channel >= C ? C : 0;
        out |= uint32_t{tables[channel][word >> (8 * i) & 255u]} << (8 * i);
    }
    return out;
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
        const auto one = [&](int32_t y, int32_t x) {
            work.write(dst, y, x, looked_up<T, C>(kind, room, reader.at(y, x)));
        };
        const int32_t end = smaller(tile_y * tile_rows + tile_rows, dst.height);
        for (int32_t y = tile_y * tile_rows; y < end; ++y) {
            int32_t begin = 0;
            if constexpr (kStraight && kBytes) {
                const uint8_t* from = row_at<const uint8_t>(src, y);
                uint8_t* to = row_at<uint8_t>(dst, y);
                if (((address(from) | address(to)) & (kChunk - 1)) == 0) {
                    const int32_t chunks = static_cast<int32_t>(int64_t{dst.width} * C / kChunk);
                    const auto* tables = reinterpret_cast<const uint8_t (*)[kLevels]>(room);
                    for (int32_t i = threadIdx.x; i < chunks; i += kBlockThreads) {
                        uint4 chunk = load_chunk(from + int64_t{i} * kChunk);
                        const int first = static_cast<int>(int64_t{i} * kChunk % C);
                        chunk.x = looked_up_word<C>(tables, chunk.x, first);
                        chunk.y = looked_up_word<C>(tables, chunk.y, (first + 4) % C);
                        chunk.z = looked_up_word<C>(tables, chunk.z, (first + 8) % C);
                        chunk.w = looked_up_word<C>(tables, chunk.w, (first + 12) % C);
                        *reinterpret_cast<uint4*>(to + int64_t{i} * kChunk) = chunk;
                    }
                    // The pixel that the last chunk ends in is made again with the rest: the same
                    // bytes once more.
                    begin = static_cast<int32_t>(int64_t{chunks} * kChunk / C);
                }
            }
            for (int32_t x = begin + threadIdx.x; x < dst.width; x += kBlockThreads) one(y, x);
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
