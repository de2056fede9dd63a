// Groups of pixels that fill whole 16-byte chunks of source and result, each in the registers of
// one lane.
#pragma once

#include "core/groups_cuda.h"

namespace cvcli {

// The fewest pixels that fill whole chunks.
CVCLI_FN constexpr int chunk_pixels(int unit) {
    return unit % 16 == 0 ? 1 : unit % 8 == 0 ? 2 : unit % 4 == 0 ? 4 : unit % 2 == 0 ? 8 : 16;
}

template <class In, class Out>
struct Straight {
    static constexpr int kPixels =
        larger(chunk_pixels(int(sizeof(In))), chunk_pixels(int(sizeof(Out))));
    using Read = Packing<In, false, kPixels>;
    using Write = Packing<Out, false, kPixels>;
    // More would not fit the registers.
    static constexpr bool kFits = Read::kWords + Write::kWords <= 24;

    // All loads are under way before the first pixel is made.
    template <class W>
    CVCLI_FN static void group(const W& work, const uint8_t* from, uint8_t* to, bool mine) {
        uint4 chunks[Read::kWords / 4] = {};
#pragma unroll
        for (int i = 0; i < Read::kWords / 4; ++i) {
            if (mine) chunks[i] = load_chunk(from + i * kChunk);
        }
        __syncwarp();
        if (!mine) return;
        uint32_t in[Read::kWords], out[Write::kWords] = {};
#pragma unroll
        for (int i = 0; i < Read::kWords / 4; ++i) {
            in[4 * i] = chunks[i].x, in[4 * i + 1] = chunks[i].y;
            in[4 * i + 2] = chunks[i].z, in[4 * i + 3] = chunks[i].w;
        }
#pragma unroll
        for (int i = 0; i < kPixels; ++i) {
            Write::put(out, i, work.after(work.before(Read::pixel(in, i))));
        }
        store_words<Write::kWords>(to, out);
    }
    // The groups of a part of a row; returns how many pixels they are, 0 where they aren't aligned.
    template <class W>
    CVCLI_FN static int part(const W& work, const uint8_t* from, uint8_t* to, int count) {
        if ((address(from) | address(to)) & (kChunk - 1)) return 0;
#pragma unroll 1
        for (int first = 0; first < count; first += kWarp * kPixels) {
            const int at = first + lane() * kPixels;
            group(work, from + at * int(sizeof(In)), to + at * int(sizeof(Out)),
                  at + kPixels <= count);
        }
        return count / kPixels * kPixels;
    }
};

}  // namespace cvcli
