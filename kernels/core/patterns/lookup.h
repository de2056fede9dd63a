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

// Tables one behind the other, for three channels the first two once more: wherever a chunk of
// samples begins, its channels follow in order.
template <int C>
constexpr int kTables = C == 3 ? 5 : C;

// Four samples from place `first` of a chunk on, whose first channel has the table at `base`.
template <int C>
CVCLI_FN uint32_t looked_up_word(const uint8_t* tables, int base, uint32_t word, int first) {
    uint32_t out = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int channel = (first + i) % C;
        const int at = base | static_cast<int>(word >> (8 * i) & 255u);
        out |= uint32_t{tables[channel * kLevels + at]} << (8 * i);
    }
    return out;
}

template <int C>
CVCLI_FN uint4 looked_up_chunk(const uint8_t* tables, int number, uint4 chunk) {
    // 16 is one more than a multiple of 3, and a multiple of any other count of channels.
    const int base = C == 3 ? number % 3 * kLevels : 0;
    return {
        looked_up_word<C>(tables, base, chunk.x, 0), looked_up_word<C>(tables, base, chunk.y, 4),
        looked_up_word<C>(tables, base, chunk.z, 8), looked_up_word<C>(tables, base, chunk.w, 12)};
}

// A thread's chunks of whole rows, one in kBlockThreads, without a division for each.
struct ChunkWalk {
    int32_t chunks;
    int32_t step_rows;
    int32_t step;
    int32_t row;
    int32_t at;

    CVCLI_FN explicit ChunkWalk(int32_t all)
        : chunks(all),
          step_rows(kBlockThreads / all),
          step(kBlockThreads - step_rows * all),
          row(static_cast<int32_t>(threadIdx.x) / all),
          at(static_cast<int32_t>(threadIdx.x) - row * all) {}
    CVCLI_FN int64_t offset(int64_t pitch) const { return row * pitch + int64_t{at} * kChunk; }
    CVCLI_FN void next() {
        row += step_rows;
        at += step;
        row += at >= chunks ? 1 : 0;
        at -= at >= chunks ? chunks : 0;
    }
};

// Whole chunks of aligned rows [begin, end), of neighbours by neighbouring lanes, four of a thread
// at a time; returns how many pixels of a row they are.
template <int C>
CVCLI_FN int32_t look_up_chunks(const Image& src, const Image& dst, int32_t begin, int32_t end,
                                const uint8_t* tables) {
    constexpr int kPixels = C == 3 ? kChunk : kChunk / C;  // that fill whole chunks
    constexpr int kRound = 4;
    const uint64_t bits = address(src.data) | address(dst.data) |
                          static_cast<uint64_t>(src.row_pitch | dst.row_pitch);
    const int32_t pixels = dst.width / kPixels * kPixels;
    if ((bits & (kChunk - 1)) || !pixels) return 0;
    const uint8_t* from = row_at<const uint8_t>(src, begin);
    uint8_t* to = row_at<uint8_t>(dst, begin);
    ChunkWalk walk(static_cast<int32_t>(int64_t{pixels} * C / kChunk));
    const int32_t rows = end - begin;
#pragma unroll 1
    while (walk.row < rows) {
        uint4 loaded[kRound];
        ChunkWalk places[kRound] = {walk, walk, walk, walk};
#pragma unroll
        for (int n = 0; n < kRound; ++n) {
            places[n] = walk;
            // Those past the end are loaded in its last row, and not put out.
            walk.row = smaller(walk.row, rows - 1);
            loaded[n] = load_chunk(from + walk.offset(src.row_pitch));
            walk = places[n];
            walk.next();
        }
#pragma unroll
        for (int n = 0; n < kRound; ++n) is_loaded(loaded[n]);
#pragma unroll
        for (int n = 0; n < kRound; ++n) {
            if (places[n].row < rows) {
                *reinterpret_cast<uint4*>(to + places[n].offset(dst.row_pitch)) =
                    looked_up_chunk<C>(tables, places[n].at, loaded[n]);
            }
        }
    }
    return pixels;
}

// A block takes tile_rows rows of an image; whole chunks where source and result are aligned.
template <int tile_rows, class W>
CVCLI_FN void lookup(const W& work, const Each<LookupParams>& each) {
    using In = typename W::In;
    using T = typename In::Sample;
    constexpr int C = In::kChannels;
    constexpr bool kBytes = sizeof(T) == 1;
    constexpr bool kStraight = W::Read::kDirect && decltype(W::after)::kNone && !W::kPlanarOut;
    constexpr int kRoom = kBytes ? kTables<C> * kLevels : C * int(sizeof(Level));
    __shared__ __align__(16) uint8_t room[kRoom];
    for_each_tile(work.args, tile_rows, work.args.dst, [&](int32_t index, int32_t, int32_t tile_y) {
        const Image src = work.src(index);
        const Image dst = work.dst(index);
        const Image aux = work.aux(index);
        const int32_t kind = work.params(each, index).kind;
        const auto reader = work.reader(src, index);
        constexpr int words = (kBytes ? kLevels : kRoom) / 4;
        for (int i = threadIdx.x; i < kRoom / 4; i += kBlockThreads) {
            reinterpret_cast<uint32_t*>(room)[i] =
                row_at<const uint32_t>(aux, i / words % C)[i % words];
        }
        __syncthreads();
        const int32_t begin = tile_y * tile_rows;
        const int32_t end = smaller(begin + tile_rows, dst.height);
        int32_t done = 0;
        if constexpr (kStraight && kBytes) done = look_up_chunks<C>(src, dst, begin, end, room);
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
