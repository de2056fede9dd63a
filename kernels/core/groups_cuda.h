// Pixels of a row on their way through a warp's shared memory: staged by 16-byte loads, read by
// each lane in groups that fill whole words of the result, and put out by 16-byte stores.
#pragma once

#include "core/pointwise.h"
#include "core/span_cuda.h"

namespace cvcli {

CVCLI_FN constexpr int whole_chunks(int bytes) {
    return (bytes + kChunk - 1) / kChunk * kChunk;
}

// The fewest pixels that fill whole words of a plane, or of all channels side by side.
CVCLI_FN constexpr int group_pixels(int unit) {
    return unit % 4 == 0 ? 1 : (unit % 2 == 0 ? 2 : 4);
}

// How G pixels lie in words. In planar memory each channel has words of its own.
template <class P, bool Planar, int G>
struct Packing {
    using T = typename P::Sample;
    static constexpr int kPlanes = Planar ? P::kChannels : 1;
    static constexpr int kUnit = sizeof(T) * (Planar ? 1 : P::kChannels);
    static constexpr int kPlaneWords = (G * kUnit + 3) / 4;
    static constexpr int kWords = kPlanes * kPlaneWords;

    CVCLI_FN static constexpr int place(int pixel, int channel) {
        return Planar ? channel * (kPlaneWords * 4 / int(sizeof(T))) + pixel
                      : pixel * P::kChannels + channel;
    }
    CVCLI_FN static T sample(const uint32_t* words, int place) {
        if constexpr (sizeof(T) == 4) {
            return float_of(words[place]);
        } else {
            const int byte = place * int(sizeof(T));
            if constexpr (sizeof(T) == 1) {
                return static_cast<T>(__byte_perm(words[byte / 4], 0, 0x4440 | byte % 4));
            }
            return static_cast<T>(words[byte / 4] >> (byte % 4 * 8));
        }
    }
    CVCLI_FN static void put(uint32_t* words, int place, T value) {
        if constexpr (sizeof(T) == 4) {
            words[place] = bits_of(value);
        } else {
            const int byte = place * int(sizeof(T));
            words[byte / 4] |= uint32_t{value} << (byte % 4 * 8);
        }
    }
    CVCLI_FN static P pixel(const uint32_t* words, int number) {
        P out;
#pragma unroll
        for (int c = 0; c < P::kChannels; ++c) out.v[c] = sample(words, place(number, c));
        return out;
    }
    CVCLI_FN static void put(uint32_t* words, int number, const P& pixel) {
#pragma unroll
        for (int c = 0; c < P::kChannels; ++c) put(words, place(number, c), pixel.v[c]);
    }
};

// N words from a place that is aligned to a sample only.
template <int N, int SampleBytes>
CVCLI_FN void load_words(uint32_t* words, const uint8_t* from) {
    if constexpr (SampleBytes == 4) {
        if (N % 4 == 0 && (address(from) & (kChunk - 1)) == 0) {
#pragma unroll
            for (int i = 0; i < N / 4; ++i) {
                const uint4 chunk = reinterpret_cast<const uint4*>(from)[i];
                words[4 * i] = chunk.x, words[4 * i + 1] = chunk.y;
                words[4 * i + 2] = chunk.z, words[4 * i + 3] = chunk.w;
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < N; ++i) words[i] = reinterpret_cast<const uint32_t*>(from)[i];
    } else {
        const int within = static_cast<int>(address(from) & 3);
        const uint32_t* at = reinterpret_cast<const uint32_t*>(from - within);
        uint32_t raw[N + 1];
#pragma unroll
        for (int i = 0; i <= N; ++i) raw[i] = at[i];
#pragma unroll
        for (int i = 0; i < N; ++i) words[i] = __funnelshift_r(raw[i], raw[i + 1], within * 8);
    }
}

// N words to a place aligned to the widest power of two in N words, up to 4 words.
template <int N>
CVCLI_FN void store_words(uint8_t* to, const uint32_t* words) {
    if constexpr (N % 4 == 0) {
#pragma unroll
        for (int i = 0; i < N; i += 4) {
            const uint4 chunk = {words[i], words[i + 1], words[i + 2], words[i + 3]};
            *reinterpret_cast<uint4*>(to + 4 * i) = chunk;
        }
    } else if constexpr (N % 2 == 0) {
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            *reinterpret_cast<uint2*>(to + 4 * i) = uint2{words[i], words[i + 1]};
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) reinterpret_cast<uint32_t*>(to)[i] = words[i];
    }
}

// A warp's room for S pixels read and S written, as they lie in memory.
template <int S, class In, bool PlanarIn, bool Backwards, class Out, bool PlanarOut>
struct Stage {
    static constexpr int kGroup =
        group_pixels(int(sizeof(typename Out::Sample)) * (PlanarOut ? 1 : Out::kChannels));
    using Read = Packing<In, PlanarIn, kGroup>;
    using Write = Packing<Out, PlanarOut, kGroup>;
    // A group that runs backwards may begin before its span.
    static constexpr int kFront = Backwards ? whole_chunks((kGroup - 1) * Read::kUnit) : 0;
    static constexpr int kInPitch = kFront + whole_chunks(S * Read::kUnit) + 2 * kChunk;
    // A span may begin 12 bytes in, and a word past its end is read.
    static constexpr int kOutPitch = whole_chunks(S * Write::kUnit) + 2 * kChunk;
    static constexpr int kOutAt = Read::kPlanes * kInPitch;
    static constexpr int kBytes = kOutAt + Write::kPlanes * kOutPitch;

    uint8_t* memory;

    CVCLI_FN uint8_t* in(int plane) const { return memory + plane * kInPitch + kFront; }
    // Where in its room a plane's span begins, so that whole chunks may go to dst.
    CVCLI_FN uint8_t* out(int plane, const uint8_t* dst) const {
        constexpr int step = Write::kPlaneWords % 4 == 0 ? 16 : Write::kPlaneWords % 2 ? 4 : 8;
        const int lead = static_cast<int>(address(dst) & (kChunk - step));
        return memory + kOutAt + plane * kOutPitch + lead;
    }
};

// A finished span to its place in global memory.
template <class B>
CVCLI_FN void emit_span(uint8_t* dst, const uint8_t* span, int bytes) {
    if (((address(dst) ^ address(span)) & (kChunk - 1)) == 0) {
        return copy_chunks<B, 1, FromStage>(dst, span, bytes, 0, Identity{});
    }
    emit_forward<B, 1>(dst, span, bytes, 0, Identity{});
}

}  // namespace cvcli
