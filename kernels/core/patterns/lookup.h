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

// The groups of a thread, one in so many of whole rows, without a division for each.
template <int C>
struct GroupWalk {
    static constexpr int kBytes = kGroup<C> * kChunk;
    const uint8_t* from;
    uint8_t* to;
    int64_t from_pitch;
    int64_t to_pitch;
    int32_t groups;
    int32_t rows;
    int32_t step_rows;
    int32_t step;
    int32_t row;
    int32_t group;

    CVCLI_FN GroupWalk(const Image& src, const Image& dst, int32_t begin, int32_t end, int32_t all)
        : from(row_at<const uint8_t>(src, begin)),
          to(row_at<uint8_t>(dst, begin)),
          from_pitch(src.row_pitch),
          to_pitch(dst.row_pitch),
          groups(all),
          rows(all ? end - begin : 0),
          step_rows(all ? kBlockThreads / all : 0),
          step(kBlockThreads - step_rows * all),
          row(all ? static_cast<int32_t>(threadIdx.x) / all : 0),
          group(static_cast<int32_t>(threadIdx.x) - row * all) {}
    CVCLI_FN bool has_one() const { return row < rows; }
    CVCLI_FN void load(uint4 (&chunks)[kGroup<C>]) const {
        const uint8_t* at = from + row * from_pitch + group * kBytes;
#pragma unroll
        for (int k = 0; k < kGroup<C>; ++k) chunks[k] = load_chunk(at + k * kChunk);
    }
    CVCLI_FN uint8_t* place() const { return to + row * to_pitch + group * kBytes; }
    CVCLI_FN void next() {
        row += step_rows;
        group += step;
        if (group >= groups) {
            group -= groups;
            ++row;
        }
    }
};

// Groups that whole chunks hold in aligned rows; 0 where rows are not.
template <int C>
CVCLI_FN int32_t whole_groups(const Image& src, const Image& dst) {
    const uint64_t bits = address(src.data) | address(dst.data) |
                          static_cast<uint64_t>(src.row_pitch | dst.row_pitch);
    return bits & (kChunk - 1)
               ? 0
               : static_cast<int32_t>(int64_t{dst.width} * C / (kGroup<C> * kChunk));
}

// All of a thread's groups; `next` has been loaded, and after it each is while the one before it
// is looked up.
template <int C>
CVCLI_FN void look_up_groups(GroupWalk<C> walk, uint4 (&next)[kGroup<C>], const uint8_t* tables) {
    bool mine = walk.has_one();
#pragma unroll 1
    while (__any_sync(~0u, mine)) {
        uint4 chunks[kGroup<C>];
#pragma unroll
        for (int k = 0; k < kGroup<C>; ++k) chunks[k] = next[k];
        uint8_t* to = walk.place();
        walk.next();
        const bool more = walk.has_one();
        if (more) walk.load(next);
        __syncwarp();  // or compilers put the loads last
        if (mine) {
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
        mine = more;
    }
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
    constexpr int kRowWords = (kBytes ? kLevels : kRoom) / 4;
    __shared__ __align__(16) uint8_t room[kRoom];
    for_each_tile(work.args, tile_rows, work.args.dst, [&](int32_t index, int32_t, int32_t tile_y) {
        const Image src = work.src(index);
        const Image dst = work.dst(index);
        const Image aux = work.aux(index);
        const int32_t kind = work.params(each, index).kind;
        const auto reader = work.reader(src, index);
        const int32_t begin = tile_y * tile_rows;
        const int32_t end = smaller(begin + tile_rows, dst.height);
        int32_t groups = 0;
        if constexpr (kStraight && kBytes) groups = whole_groups<C>(src, dst);
        // The first pixels are on their way while the tables are.
        const GroupWalk<C> walk(src, dst, begin, end, groups);
        uint4 first[kGroup<C>] = {};
        if (walk.has_one()) walk.load(first);
        for (int i = threadIdx.x; i < kRoom / 4; i += kBlockThreads) {
            reinterpret_cast<uint32_t*>(room)[i] =
                row_at<const uint32_t>(aux, i / kRowWords)[i % kRowWords];
        }
        __syncthreads();
        if constexpr (kStraight && kBytes) look_up_groups<C>(walk, first, room);
        const int32_t done = groups * (kGroup<C> * kChunk) / C;
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
