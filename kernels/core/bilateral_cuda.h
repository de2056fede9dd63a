// The bilateral pattern on the GPU: a tile of pixels and the table of colours in shared memory;
// a thread makes four pixels, a tap of all of them at a time.
#pragma once

#include "core/axes_cuda.h"

namespace cvcli {

constexpr int kDiscSide = 32;
constexpr int kDiscThreads = 256;
constexpr int kDiscRows = kDiscThreads / kDiscSide;
constexpr int kDiscRounds = kDiscSide / kDiscRows;

// A pixel in shared memory: bytes as one word, for one instruction sums their differences.
template <class T, int C>
struct Near {
    Pixel<T, C> pixel;
    CVCLI_FN static Near of(const Pixel<T, C>& pixel) { return {pixel}; }
    CVCLI_FN float value(int c) const { return static_cast<float>(pixel.v[c]); }
    CVCLI_FN T sample(int c) const { return pixel.v[c]; }
    CVCLI_FN float difference(const Near& other) const {
        float sum = magnitude(value(0) - other.value(0));
#pragma unroll
        for (int c = 1; c < kColours<C>; ++c) sum += magnitude(value(c) - other.value(c));
        return sum;
    }
};

CVCLI_FN uint32_t sum_of_differences(uint32_t a, uint32_t b) {
#if defined(CVCLI_EMULATED)
    const uint32_t each = __vabsdiffu4(a, b);
    return (each & 255) + (each >> 8 & 255) + (each >> 16 & 255) + (each >> 24);
#else
    return __vsadu4(a, b);
#endif
}

template <int C>
struct Near<uint8_t, C> {
    static constexpr uint32_t kMask = kColours<C> == 3 ? 0xffffffu : 0xffu;
    uint32_t word;
    CVCLI_FN static Near of(const Pixel<uint8_t, C>& pixel) {
        uint32_t word = 0;
#pragma unroll
        for (int c = 0; c < C; ++c) word |= uint32_t{pixel.v[c]} << 8 * c;
        return {word};
    }
    CVCLI_FN float value(int c) const { return float_at<uint8_t>(word, c); }
    CVCLI_FN uint8_t sample(int c) const { return static_cast<uint8_t>(word >> 8 * c); }
    CVCLI_FN int32_t difference(const Near& other) const {
        const uint32_t mask = kHasAlpha<C> ? kMask : ~0u;
        return static_cast<int32_t>(sum_of_differences(word & mask, other.word & mask));
    }
};

// Sums of one pixel.
template <class T, int C>
struct Disc {
    Near<T, C> own;
    float sum;
    float values[kColours<C>];
    CVCLI_FN explicit Disc(const Near<T, C>& near) : own(near), sum(1.0f) {
#pragma unroll
        for (int c = 0; c < kColours<C>; ++c) values[c] = near.value(c);
    }
    CVCLI_FN void add(const Near<T, C>& near, float space, const float* colours, float scale,
                      int32_t entries) {
        float weight;
        if constexpr (sizeof(T) == 1) {
            weight = space * colours[own.difference(near)];
        } else {
            weight = space * colour_weight<T>(colours, scale, entries, own.difference(near));
        }
        sum += weight;
#pragma unroll
        for (int c = 0; c < kColours<C>; ++c) {
            // Only floats can be infinite or no number, and then their weight is 0.
            const bool counts = sizeof(T) < 4 || weight > 0.0f;
            values[c] += weight * (counts ? near.value(c) : 0.0f);
        }
    }
    CVCLI_FN Pixel<T, C> result() const {
        const float share = 1.0f / sum;
        Pixel<T, C> pixel;
#pragma unroll
        for (int c = 0; c < C; ++c) {
            if constexpr (!kHasAlpha<C>) {
                pixel.v[c] = to_sample<T>(values[c] * share);
            } else {
                pixel.v[c] =
                    c < C - 1 ? to_sample<T>(values[smaller(c, C - 2)] * share) : own.sample(c);
            }
        }
        return pixel;
    }
};

// Entries of the table that differences can reach.
template <class T, int C>
constexpr int kEntries = sizeof(T) == 1 ? 255 * kColours<C> + 1 : 4097;

template <int R, class W>
CVCLI_FN void load_disc(const typename W::Read& reader, const BilateralParams& params, int32_t y0,
                        int32_t x0, Near<typename W::In::Sample, W::In::kChannels>* room) {
    constexpr int wide = kDiscSide + 2 * R;
#pragma unroll 2
    for (int i = threadIdx.x; i < wide * wide; i += kDiscThreads) {
        const int32_t y = y0 - R + i / wide, x = x0 - R + i % wide;
        room[i] = Near<typename W::In::Sample, W::In::kChannels>::of(
            bordered_at<W>(reader, params.frame, params.edges, y, x));
    }
}

// The taps of a disc of radius R, in the order of the list.
template <int R, class N, class D>
CVCLI_FN void add_disc(const N* room, const float* spaces, const float* colours,
                       const BilateralParams& params, D* discs) {
    constexpr int wide = kDiscSide + 2 * R;
    const int first = (threadIdx.x / kDiscSide + R) * wide + threadIdx.x % kDiscSide + R;
    int k = 0;
#pragma unroll
    for (int dy = -R; dy <= R; ++dy) {
#pragma unroll
        for (int dx = -R; dx <= R; ++dx) {
            if (dy * dy + dx * dx > R * R || (dy == 0 && dx == 0)) continue;
            const float space = spaces[k++];
#pragma unroll
            for (int j = 0; j < kDiscRounds; ++j) {
                discs[j].add(room[first + (j * kDiscRows + dy) * wide + dx], space, colours,
                             params.scale, params.entries);
            }
        }
    }
}

template <int R, class W>
CVCLI_FN void filter_discs(const W& work, const Each<BilateralParams>& each) {
    using In = typename W::In;
    using T = typename In::Sample;
    constexpr int C = In::kChannels, wide = kDiscSide + 2 * R, taps = (2 * R + 1) * (2 * R + 1);
    __shared__ Near<T, C> room[wide * wide];
    __shared__ float colours[kEntries<T, C>];
    __shared__ float spaces[taps];
    for_each_tile(
        work.args, kDiscSide, work.args.dst, [&](int32_t index, int32_t tile_x, int32_t tile_y) {
            const Image src = work.src(index), dst = work.dst(index);
            const BilateralParams& params = work.params(each, index);
            const int32_t x0 = tile_x * kDiscSide, y0 = tile_y * kDiscSide;
            if (x0 >= dst.width) return;
            load_disc<R, W>(work.reader(src, index), params, y0 + params.frame.y0,
                            x0 + params.frame.x0, room);
            for (int i = threadIdx.x; i < kEntries<T, C>; i += kDiscThreads) {
                colours[i] = read_only(params.colours + i);
            }
            for (int i = threadIdx.x; i < params.count; i += kDiscThreads) {
                spaces[i] = read_only(&params.taps[i].weight);
            }
            __syncthreads();
            const int column = threadIdx.x % kDiscSide, row = threadIdx.x / kDiscSide;
            const Near<T, C>* own = room + (row + R) * wide + column + R;
            Disc<T, C> discs[kDiscRounds] = {Disc<T, C>(own[0]), Disc<T, C>(own[kDiscRows * wide]),
                                             Disc<T, C>(own[2 * kDiscRows * wide]),
                                             Disc<T, C>(own[3 * kDiscRows * wide])};
            add_disc<R>(room, spaces, colours, params, discs);
            const int32_t x = x0 + column;
#pragma unroll
            for (int j = 0; j < kDiscRounds; ++j) {
                const int32_t y = y0 + row + j * kDiscRows;
                if (x < dst.width && y < dst.height) work.write(dst, y, x, discs[j].result());
            }
            __syncthreads();
        });
}

// Any radius: pixels and the table are read where they lie.
template <class W>
CVCLI_FN void filter_long_discs(const W& work, const Each<BilateralParams>& each) {
    using In = typename W::In;
    using T = typename In::Sample;
    constexpr int C = In::kChannels;
    for_each_tile(
        work.args, kDiscSide, work.args.dst, [&](int32_t index, int32_t tile_x, int32_t tile_y) {
            const Image src = work.src(index), dst = work.dst(index);
            const BilateralParams& params = work.params(each, index);
            const auto reader = work.reader(src, index);
            const int32_t x = tile_x * kDiscSide + threadIdx.x % kDiscSide;
            for (int j = 0; j < kDiscRounds; ++j) {
                const int32_t y = tile_y * kDiscSide + j * kDiscRows + threadIdx.x / kDiscSide;
                if (x >= dst.width || y >= dst.height) return;
                const int32_t at_y = y + params.frame.y0, at_x = x + params.frame.x0;
                Disc<T, C> disc(Near<T, C>::of(reader.at(at_y, at_x)));
                for (int32_t k = 0; k < params.count; ++k) {
                    const Tap tap = params.taps[k];
                    const In near = bordered_at<W>(reader, params.frame, params.edges,
                                                   at_y + tap.dy, at_x + tap.dx);
                    disc.add(Near<T, C>::of(near), tap.weight, params.colours, params.scale,
                             params.entries);
                }
                work.write(dst, y, x, disc.result());
            }
        });
}

// R < 0: any radius.
template <int R, int TW, int TH, class W>
CVCLI_FN void bilateral(const W& work, const Each<BilateralParams>& each) {
    static_assert(TW == kDiscSide && TH == kDiscSide, "tiles are picked in Python");
    if constexpr (R < 0) {
        filter_long_discs(work, each);
    } else {
        filter_discs<R>(work, each);
    }
}

}  // namespace cvcli
