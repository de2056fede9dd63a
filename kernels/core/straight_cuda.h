// Groups of pixels that fill whole 16-byte chunks of source and result, each in the registers of
// one lane. Where a group is more than a chunk, chunks pass a stage, so that lanes that are
// neighbours load and store neighbouring ones.
#pragma once

#include "core/groups_cuda.h"

namespace cvcli {

// The fewest pixels that fill whole chunks.
CVCLI_FN constexpr int chunk_pixels(int unit) {
    return unit % 16 == 0 ? 1 : unit % 8 == 0 ? 2 : unit % 4 == 0 ? 4 : unit % 2 == 0 ? 8 : 16;
}

// N chunks of each of `lanes` lanes, from a row of memory to registers and back.
template <int N>
struct ChunkGroups {
    uint4* stage;
    int lanes;

    CVCLI_FN void load(const uint8_t* row, uint32_t (&words)[4 * N]) const {
        const uint4* from = reinterpret_cast<const uint4*>(row);
        uint4 own[N] = {};
        for_each([&](int i, int number) { own[i] = __ldg(from + number); });
        if constexpr (N > 1) {
#pragma unroll
            for (int i = 0; i < N; ++i) is_loaded(own[i]);
            for_each([&](int i, int number) { stage[number] = own[i]; });
            __syncwarp();
#pragma unroll
            for (int i = 0; i < N; ++i) own[i] = stage[lane() * N + i];
        }
#pragma unroll
        for (int i = 0; i < N; ++i) {
            words[4 * i] = own[i].x, words[4 * i + 1] = own[i].y;
            words[4 * i + 2] = own[i].z, words[4 * i + 3] = own[i].w;
        }
    }
    CVCLI_FN void store(uint8_t* row, const uint32_t (&words)[4 * N]) const {
        uint4* to = reinterpret_cast<uint4*>(row);
        if constexpr (N > 1) {
            store_words<4 * N>(reinterpret_cast<uint8_t*>(stage + lane() * N), words);
            __syncwarp();
            for_each([&](int, int number) { to[number] = stage[number]; });
        } else if (lane() < lanes) {
            to[lane()] = uint4{words[0], words[1], words[2], words[3]};
        }
    }

  private:
    template <class Function>
    CVCLI_FN void for_each(const Function& each) const {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const int number = i * kWarp + lane();
            if (number < lanes * N) each(i, number);
        }
    }
};

template <class In, class Out>
struct Straight {
    static constexpr int kPixels =
        larger(chunk_pixels(int(sizeof(In))), chunk_pixels(int(sizeof(Out))));
    using Read = Packing<In, false, kPixels>;
    using Write = Packing<Out, false, kPixels>;
    static constexpr int kIn = Read::kWords / 4, kOut = Write::kWords / 4;
    // More would not fit the registers.
    static constexpr bool kFits = kIn + kOut <= 7;

    struct Memory {
        uint4 in[kFits && kIn > 1 ? kIn * kWarp : 1];
        uint4 out[kFits && kOut > 1 ? kOut * kWarp : 1];
    };

    // The groups of a part of a row; returns how many pixels they are, 0 where they aren't aligned.
    template <class W>
    CVCLI_FN static int part(const W& work, Memory& memory, const uint8_t* from, uint8_t* to,
                             int count) {
        if ((address(from) | address(to)) & (kChunk - 1)) return 0;
        const int groups = count / kPixels;
#pragma unroll 1
        for (int first = 0; first < groups; first += kWarp) {
            __syncwarp();  // the stage has been read
            const int lanes = smaller(groups - first, kWarp);
            const int64_t at = int64_t{first} * kPixels;
            uint32_t in[Read::kWords], out[Write::kWords] = {};
            ChunkGroups<kIn>{memory.in, lanes}.load(from + at * int(sizeof(In)), in);
#pragma unroll
            for (int i = 0; i < kPixels; ++i) {
                Write::put(out, i, work.after(work.before(Read::pixel(in, i))));
            }
            ChunkGroups<kOut>{memory.out, lanes}.store(to + at * int(sizeof(Out)), out);
        }
        return groups * kPixels;
    }
};

}  // namespace cvcli
