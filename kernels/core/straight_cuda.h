// Groups of pixels that fill whole 16-byte chunks of source and result, each in the registers of
// one lane. Where a group is more than a chunk, chunks pass a stage, so that lanes that are
// neighbours load and store neighbouring ones. An image without gaps is one long row.
#pragma once

#include "core/bytes_cuda.h"
#include "core/groups_cuda.h"
#include "core/work_cuda.h"

namespace cvcli {

// The fewest pixels that fill whole chunks.
CVCLI_FN constexpr int chunk_pixels(int unit) {
    return unit % 16 == 0 ? 1 : unit % 8 == 0 ? 2 : unit % 4 == 0 ? 4 : unit % 2 == 0 ? 8 : 16;
}

// N chunks of each of `lanes` lanes, from memory to registers and back, through a stage if N > 1:
// `near` is this lane's first chunk there among its neighbours', `own` the first of its own.
template <int N>
struct ChunkGroups {
    uint8_t* near;
    uint8_t* own;
    int lanes;

    CVCLI_FN ChunkGroups(uint8_t* stage, int count)
        : near(stage + lane() * kChunk), own(stage + lane() * N * kChunk), lanes(count) {}
    // Begins to load, a single chunk to a register; copies must be done, and a barrier passed,
    // before words are taken.
    CVCLI_FN void begin(const uint8_t* row, uint4& only) const {
        const uint8_t* from = settled(row + lane() * kChunk);
        if constexpr (N > 1) {
            uint8_t* to = settled_in_room(near);
            for_each([&](int at) { copy_chunk(to + at, from + at); });
        } else {
            only = lane() < lanes ? load_chunk(from) : uint4{};
        }
    }
    CVCLI_FN void take(uint32_t (&words)[4 * N], const uint4& only) const {
        const uint4* from = reinterpret_cast<const uint4*>(own);
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const uint4 chunk = N > 1 ? from[i] : only;
            words[4 * i] = chunk.x, words[4 * i + 1] = chunk.y;
            words[4 * i + 2] = chunk.z, words[4 * i + 3] = chunk.w;
        }
    }
    CVCLI_FN void store(uint8_t* row, const uint32_t (&words)[4 * N]) const {
        uint8_t* to = settled(row + lane() * kChunk);
        if constexpr (N > 1) {
            store_words<4 * N>(own, words);
            __syncwarp();
            for_each([&](int at) {
                *reinterpret_cast<uint4*>(to + at) = *reinterpret_cast<const uint4*>(near + at);
            });
        } else if (lane() < lanes) {
            *reinterpret_cast<uint4*>(to) = {words[0], words[1], words[2], words[3]};
        }
    }

  private:
    template <class Function>
    CVCLI_FN void for_each(const Function& each) const {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (i * kWarp + lane() < lanes * N) each(i * kWarp * kChunk);
        }
    }
};

// The step of a pass that has no other.
struct NoStep {};
template <class Before>
struct OnlyStep {
    using type = NoStep;
};
template <class Step>
struct OnlyStep<Steps<Step>> {
    using type = Step;
};

// Groups of pixels from words to words, through the steps of W.
template <class W, class Read, class Write, int Pixels>
struct GroupSteps {
    using From = typename Read::T;
    using To = typename Write::T;
    using Step = typename OnlyStep<decltype(W::before)>::type;
    static constexpr int kFrom = W::Source::kChannels;
    static constexpr int kTo = decltype(W::before(typename W::Source{}))::kChannels;
    static constexpr bool kPlain = Write::kPlanes == 1 && decltype(W::after)::kNone;
    static constexpr bool kBytes = sizeof(From) == 1 && sizeof(To) == 1;
    static constexpr bool kSplits =
        Write::kPlanes > 1 && kBytes&& decltype(W::before)::kNone&& decltype(W::after)::kNone;
    // A channel that is white comes from no byte.
    static constexpr bool kPicks =
        kPlain && kBytes && MovesChannels<Step>::value && !(kFrom > 2 && kTo > kFrom);
    static constexpr bool kMixes = kPlain && kBytes && MixesBytes<Step>::value;
    static constexpr bool kRounds = kPlain && RoundsFloats<Step>::value && sizeof(From) < 4 &&
                                    sizeof(From) == sizeof(To) && kFrom == kTo;

    CVCLI_FN static void make(const W& work, const uint32_t (&in)[Read::kWords],
                              uint32_t (&out)[Write::kWords]) {
        if constexpr (kSplits) {
            split(in, out);
        } else if constexpr (kPicks) {
            pick(work.before.first, in, out);
        } else if constexpr (kMixes) {
            mix(in, out);
        } else if constexpr (kRounds) {
            round(work.before.first, in, out);
        } else {
#pragma unroll
            for (int i = 0; i < Write::kWords; ++i) out[i] = 0;
#pragma unroll
            for (int i = 0; i < Pixels; ++i) {
                Write::put(out, i, work.after(work.before(Read::pixel(in, i))));
            }
        }
    }

  private:
    CVCLI_FN static void split(const uint32_t* in, uint32_t* out) {
#pragma unroll
        for (int i = 0; i < Write::kWords; ++i) {
            constexpr int words = Write::kPlaneWords;
            const int first = i % words * 4 * kFrom + i / words;
            out[i] = bytes_at(in, first, first + kFrom, first + 2 * kFrom, first + 3 * kFrom);
        }
    }
    CVCLI_FN static void pick(const Step& step, const uint32_t* in, uint32_t* out) {
        uint32_t picks = 0;
#pragma unroll
        for (int n = 0; n < kTo; ++n) picks |= step.channel_of(n) << 4 * n;
#pragma unroll
        for (int i = 0; i < Pixels / 4; ++i) {
            uint32_t pixels[4];
            pixel_words<kFrom>(in + i * kFrom, picks, pixels);
            pack_pixels<kTo>(pixels, out + i * kTo);
        }
    }
    CVCLI_FN static void mix(const uint32_t* in, uint32_t* out) {
#pragma unroll
        for (int i = 0; i < Pixels / 4; ++i) {
            uint32_t pixels[4];
            pixel_words<kFrom>(in + i * kFrom, 0x3210, pixels);
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const uint32_t mixed = Step::mixed(pixels[k]);
                pixels[k] = kFrom > 3 ? __byte_perm(mixed, pixels[k], 0x7200) : mixed;
            }
            pack_pixels<kTo, 2>(pixels, out + i * kTo);
        }
    }
    CVCLI_FN static void round(const Step& step, const uint32_t* in, uint32_t* out) {
        constexpr int each = 4 / sizeof(From);
        float sums[Pixels * kFrom];
#pragma unroll
        for (int i = 0; i < Pixels; ++i) {
            Pixel<float, kFrom> pixel;
#pragma unroll
            for (int c = 0; c < kFrom; ++c) {
                const int at = i * kFrom + c;
                pixel.v[c] = float_at<From>(in[at / each], at % each);
            }
            pixel = step.template unrounded<From>(pixel);
#pragma unroll
            for (int c = 0; c < kFrom; ++c) sums[i * kFrom + c] = pixel.v[c];
        }
#pragma unroll
        for (int i = 0; i < Write::kWords; ++i) out[i] = rounded_word<To>(sums + i * each);
    }
};

// A warp takes R parts of `Part` pixels at a time.
template <class W, int Part, int R>
struct Straight {
    using In = typename W::Source;
    using Out = decltype(W::after(typename W::In{}));
    static constexpr int kPixels =
        larger(chunk_pixels(int(sizeof(In))),
               chunk_pixels(int(W::kPlanarOut ? sizeof(typename Out::Sample) : sizeof(Out))));
    using Read = Packing<In, false, kPixels>;
    using Write = Packing<Out, W::kPlanarOut, kPixels>;
    static constexpr int kIn = Read::kWords / 4, kOut = Write::kPlaneWords / 4;
    // More would not fit the registers.
    static constexpr bool kFits = !W::kMoved && !W::kPlanarIn &&
                                  Read::kWords + Write::kWords <= 32 &&
                                  (!W::kPlanarOut || kOut == 1);
    static constexpr int kRoom = larger(kIn > 1 ? kIn : 0, kOut > 1 ? kOut : 0) * kWarp * kChunk;
    // Units of a group a lane, so many that they are at least the parts; all are under way at once.
    static constexpr int kUnit = kWarp * kPixels;
    static constexpr int kUnits = R * ((Part + kUnit - 1) / kUnit);

    // Groups one after the other in memory.
    struct Span {
        const uint8_t* from;
        uint8_t* to;
        int groups;
    };

    static constexpr int kBytes = kFits ? kUnits * kRoom : 0;

    // Whether both images are a row of pixels each, as they lie in memory, and aligned.
    CVCLI_FN static bool is_flat(const Image& src, const Image& dst) {
        const bool dense = src.row_pitch == int64_t{dst.width} * int(sizeof(In)) &&
                           dst.row_pitch == int64_t{dst.width} * Write::kUnit;
        return dense && aligned(src.data, dst.data, dst);
    }
    // A warp's units of such images, and the pixels at their end.
    CVCLI_FN static void flat(const W& work, uint8_t* memory, int32_t index) {
        const Image src = work.src(index), dst = work.dst(index);
        const int64_t all = int64_t{dst.height} * dst.width;
        const uint32_t block = blockIdx.y * gridDim.x + blockIdx.x;
        int64_t first = int64_t{block * kBlockWarps + threadIdx.x / kWarp} * (kUnits * kUnit);
        if (first == 0 && lane() < static_cast<int>(all % kPixels)) rest(work, src, dst, index);
#pragma unroll 1
        for (; first < all;
             first += int64_t{gridDim.y * gridDim.x} * kBlockThreads / kWarp * (kUnits * kUnit)) {
            const int64_t left = smaller(all - first, int64_t{kUnits} * kUnit);
            __syncwarp();  // the stage has been read
            units(work, memory, static_cast<const uint8_t*>(src.data) + first * int(sizeof(In)),
                  static_cast<uint8_t*>(dst.data) + first * Write::kUnit,
                  dst.height * dst.row_pitch, static_cast<int>(left) / kPixels);
        }
    }
    // The groups of `count` pixels of a row; none where they aren't aligned.
    CVCLI_FN static Span row_span(const uint8_t* from, uint8_t* to, const Image& dst, int count) {
        return {from, to, aligned(from, to, dst) ? count / kPixels : 0};
    }
    CVCLI_FN static void run(const W& work, uint8_t* memory, const Span& span, const Image& dst) {
#pragma unroll 1
        for (int first = 0; first < span.groups; first += kUnits * kWarp) {
            const int64_t at = int64_t{first} * kPixels;
            __syncwarp();  // the stage has been read
            units(work, memory, span.from + at * int(sizeof(In)), span.to + at * Write::kUnit,
                  dst.height * dst.row_pitch, span.groups - first);
        }
    }

  private:
    // Pixels that fill no group, each by a lane.
    CVCLI_FN static void rest(const W& work, const Image& src, const Image& dst, int32_t index) {
        int32_t y = dst.height - 1, x = dst.width - 1 - lane();
        for (; x < 0; x += dst.width) --y;
        work.write(dst, y, x, work.reader(src, index).at(y, x));
    }
    CVCLI_FN static bool aligned(const void* from, const void* to, const Image& dst) {
        const uint64_t plane =
            Write::kPlanes > 1 ? static_cast<uint64_t>(dst.height * dst.row_pitch) : 0;
        return ((address(from) | address(to) | plane) & (kChunk - 1)) == 0;
    }
    CVCLI_FN static void units(const W& work, uint8_t* memory, const uint8_t* from, uint8_t* to,
                               int64_t plane, int groups) {
        uint4 only[kUnits];
#pragma unroll
        for (int r = 0; r < kUnits; ++r) {
            const ChunkGroups<kIn> loads(memory + r * kRoom, lanes_of(groups, r));
            loads.begin(from + r * kUnit * int(sizeof(In)), only[r]);
        }
        copies_done();
        __syncwarp();
        // What waits in registers has to be known by its number.
#pragma unroll(kIn > 1 ? 1 : kUnits)
        for (int r = 0; r < kUnits; ++r) {
            const int lanes = lanes_of(groups, r);
            if (lanes == 0) return;
            unit(work, memory + r * kRoom, lanes, only[r], to + r * kUnit * Write::kUnit, plane);
        }
    }
    CVCLI_FN static int lanes_of(int groups, int r) {
        return smaller(larger(groups - r * kWarp, 0), kWarp);
    }
    CVCLI_FN static void unit(const W& work, uint8_t* stage, int lanes, const uint4& only,
                              uint8_t* to, int64_t plane) {
        uint32_t in[Read::kWords], out[Write::kWords];
        ChunkGroups<kIn>(stage, lanes).take(in, only);
        GroupSteps<W, Read, Write, kPixels>::make(work, in, out);
        if constexpr (kIn != kOut) __syncwarp();
#pragma unroll
        for (int p = 0; p < Write::kPlanes; ++p) {
            uint32_t words[Write::kPlaneWords];
#pragma unroll
            for (int i = 0; i < Write::kPlaneWords; ++i) words[i] = out[p * Write::kPlaneWords + i];
            ChunkGroups<kOut>(stage, lanes).store(to + p * plane, words);
        }
    }
};

}  // namespace cvcli
