// A warp's work on one span: up to kSegmentBytes contiguous destination bytes. Whole words or
// chunks go through the middle, the samples before and after its alignment one a lane.
#pragma once

#include "core/gather.h"
#include "core/geometry.h"
#include "core/pixel.h"

namespace cvcli {

CVCLI_FN int lane() {
    return threadIdx.x % kWarp;
}

CVCLI_FN uint64_t address(const void* pointer) {
    return reinterpret_cast<uint64_t>(pointer);
}

CVCLI_FN uint4 load_chunk(const uint8_t* from) {
    return __ldg(reinterpret_cast<const uint4*>(from));
}

// Keeps compilers from loading a chunk only where it is used.
CVCLI_FN void is_loaded(uint4& chunk) {
    asm volatile("" : "+r"(chunk.x), "+r"(chunk.y), "+r"(chunk.z), "+r"(chunk.w));
}

// Copies 16 aligned bytes to shared memory; they are there once copies_done() has returned.
CVCLI_FN void copy_chunk(uint8_t* to, const uint8_t* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && !defined(CVCLI_EMULATED)
    const uint32_t place = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
#else
    *reinterpret_cast<uint4*>(to) = load_chunk(from);
#endif
}
CVCLI_FN void copies_done() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && !defined(CVCLI_EMULATED)
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
// Places that are worked out here, and not again wherever they are needed: compilers think that
// this would cost nothing.
CVCLI_FN const uint8_t* settled(const uint8_t* global) {
#if !defined(CVCLI_EMULATED)
    asm volatile("" : "+l"(global));
#endif
    return global;
}
CVCLI_FN uint8_t* settled(uint8_t* global) {
    return const_cast<uint8_t*>(settled(const_cast<const uint8_t*>(global)));
}
CVCLI_FN uint8_t* settled_in_room(uint8_t* shared) {
#if !defined(CVCLI_EMULATED)
    uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    asm volatile("" : "+r"(at));
    return static_cast<uint8_t*>(const_cast<void*>(__cvta_shared_to_generic(at)));
#else
    return shared;
#endif
}

template <class B>
CVCLI_FN B load_sample(const uint8_t* from) {
    return __ldg(reinterpret_cast<const B*>(from));
}

// Where the source of a span is read: global memory or the warp's stage.
struct FromGlobal {
    CVCLI_FN static uint4 chunk(const uint8_t* from) { return load_chunk(from); }
    template <class B>
    CVCLI_FN static B sample(const uint8_t* from) {
        return load_sample<B>(from);
    }
};

struct FromStage {
    CVCLI_FN static uint4 chunk(const uint8_t* from) {
        return *reinterpret_cast<const uint4*>(from);
    }
    template <class B>
    CVCLI_FN static B sample(const uint8_t* from) {
        return *reinterpret_cast<const B*>(from);
    }
};

// The functor on one sample; `number` counts samples from the row's start and tells alpha.
template <int C, class B, class F>
CVCLI_FN B map_sample(const F& f, B bits, uint32_t number) {
    return is_alpha<C>(number) ? bits : f(bits);
}

// The functor on the samples packed into one word, or into a smaller unit U.
template <class B, int C, class U, class F>
CVCLI_FN U map_word(const F& f, U word, uint32_t number) {
    if constexpr (F::kMoves) return word;
    uint32_t out = 0;
#pragma unroll
    for (int i = 0; i < int(sizeof(U) / sizeof(B)); ++i) {
        const int shift = i * 8 * int(sizeof(B));
        const B bits = static_cast<B>(word >> shift);
        out |= uint32_t{map_sample<C>(f, bits, number + i)} << shift;
    }
    return static_cast<U>(out);
}

template <class B, int C, class F>
CVCLI_FN uint4 map_chunk(const F& f, uint4 chunk, uint32_t number) {
    constexpr uint32_t step = 4 / sizeof(B);
    chunk.x = map_word<B, C>(f, chunk.x, number);
    chunk.y = map_word<B, C>(f, chunk.y, number + step);
    chunk.z = map_word<B, C>(f, chunk.z, number + 2 * step);
    chunk.w = map_word<B, C>(f, chunk.w, number + 3 * step);
    return chunk;
}

// A span cut at `unit`-aligned destination addresses: [head | count units | tail].
struct Cut {
    int head;
    int count;
    int tail_at;
};

CVCLI_FN Cut cut_span(const uint8_t* dst, int bytes, int unit) {
    const int head = smaller(static_cast<int>((0 - address(dst)) & (unit - 1)), bytes);
    const int count = (bytes - head) / unit;
    return {head, count, head + count * unit};
}

// The byte offset of this lane's sample outside the units, or -1. There are at most 30.
template <class B>
CVCLI_FN int edge_offset(const Cut& cut, int bytes) {
    constexpr int size = sizeof(B);
    const int heads = cut.head / size;
    const int tails = (bytes - cut.tail_at) / size;
    if (lane() < heads) return lane() * size;
    return lane() - heads < tails ? cut.tail_at + (lane() - heads) * size : -1;
}

template <class B>
CVCLI_FN void store_sample(uint8_t* to, B bits) {
    *reinterpret_cast<B*>(to) = bits;
}

// dst and src agree in alignment: all of a lane's chunks are in flight before the first is used.
template <class B, int C, class From, class F>
CVCLI_FN void copy_chunks(uint8_t* dst, const uint8_t* src, int bytes, uint32_t number,
                          const F& f) {
    const Cut cut = cut_span(dst, bytes, kChunk);
    const int edge = edge_offset<B>(cut, bytes);
    uint4 chunks[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
        const int at = lane() + i * kWarp;
        if (at < cut.count) chunks[i] = From::chunk(src + cut.head + at * kChunk);
    }
    f.ready();
    __syncwarp();
    if (edge >= 0) {
        const B bits = From::template sample<B>(src + edge);
        store_sample(dst + edge, map_sample<C>(f, bits, number + edge / sizeof(B)));
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
        const int at = lane() + i * kWarp;
        const int offset = cut.head + at * kChunk;
        const uint32_t first = number + offset / sizeof(B);
        if (at < cut.count) {
            *reinterpret_cast<uint4*>(dst + offset) = map_chunk<B, C>(f, chunks[i], first);
        }
    }
}

// The 16-byte chunks that hold a source span. Those in [whole.begin, whole.end) lie within the
// row's memory; only the first and the last may not.
struct Chunks {
    const uint8_t* base;
    int lead;
    int count;
    Part whole;
};

CVCLI_FN Chunks chunks_of(const uint8_t* src, int bytes, const uint8_t* row, int64_t row_bytes) {
    const int lead = static_cast<int>(address(src) & (kChunk - 1));
    const int count = (lead + bytes + kChunk - 1) / kChunk;
    const int64_t from = (src - row) - lead;
    const int32_t begin = from < 0 ? 1 : 0;
    const int32_t end = from + int64_t{count} * kChunk > row_bytes ? count - 1 : count;
    return {src - lead, lead, count, {begin, end}};
}

// What a chunk that may leave the row holds of the span: half the warp for the first chunk, half
// for the last, one sample a lane.
template <class B>
CVCLI_FN void stage_samples(uint8_t* stage, const Chunks& chunks, int bytes) {
    constexpr int half = kWarp / 2;
    const int chunk = lane() < half ? 0 : chunks.count - 1;
    const int within = lane() % half * int(sizeof(B));
    const int at = chunk * kChunk + within;
    const bool whole = chunk >= chunks.whole.begin && chunk < chunks.whole.end;
    const bool wanted = at >= chunks.lead && at < chunks.lead + bytes;
    if (!whole && within < kChunk && wanted) {
        store_sample(stage + at, load_sample<B>(chunks.base + at));
    }
}

// Copies a source span into the stage by aligned chunks, never reading outside the row. Returns
// where in the stage the span starts.
template <class B>
CVCLI_FN int stage_span(uint8_t* stage, const uint8_t* src, int bytes, const uint8_t* row,
                        int64_t row_bytes) {
    const Chunks chunks = chunks_of(src, bytes, row, row_bytes);
    uint4 loaded[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
        const int at = lane() + i * kWarp;
        if (at >= chunks.whole.begin && at < chunks.whole.end) {
            loaded[i] = load_chunk(chunks.base + at * kChunk);
        }
    }
    stage_samples<B>(stage, chunks, bytes);
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
        const int at = lane() + i * kWarp;
        if (at >= chunks.whole.begin && at < chunks.whole.end) {
            *reinterpret_cast<uint4*>(stage + at * kChunk) = loaded[i];
        }
    }
    return chunks.lead;
}

// Words leave a stage in three steps of five rounds. All five are read before the first is stored,
// for the compiler cannot tell that a store does not change the stage.
constexpr int kSteps = 3;
constexpr int kRounds = 5;
static_assert(kSteps * kRounds * kWarp * 4 == kSegmentBytes, "steps cover a segment");

// A lane's words of one step: begin, begin + stride, ...; read(round) gives each.
template <class B, int C, class F, class Read>
CVCLI_FN void emit_step(uint32_t* out, int count, int begin, int stride, uint32_t number,
                        const F& f, const Read& read) {
    uint32_t words[kRounds];
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
        if (begin + round * stride < count) words[round] = read(round);
    }
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
        const int i = begin + round * stride;
        if (i < count) out[i] = map_word<B, C>(f, words[round], number + i * (4 / sizeof(B)));
    }
}

// Two neighbouring words shifted together.
struct ShiftedWords {
    const uint32_t* words;
    int shift;
    CVCLI_FN uint32_t operator()(int round) const {
        const uint32_t* at = words + round * kWarp;
        return __funnelshift_r(at[0], at[1], shift);
    }
};

// From a stage whose alignment differs from dst's.
template <class B, int C, class F>
CVCLI_FN void emit_forward(uint8_t* dst, const uint8_t* span, int bytes, uint32_t number,
                           const F& f) {
    const Cut cut = cut_span(dst, bytes, 4);
    const int edge = edge_offset<B>(cut, bytes);
    if (edge >= 0) {
        const B bits = FromStage::sample<B>(span + edge);
        store_sample(dst + edge, map_sample<C>(f, bits, number + edge / sizeof(B)));
    }
    const uint8_t* from = span + cut.head;
    const int shift = static_cast<int>(address(from) & 3) * 8;
    const uint32_t* words = reinterpret_cast<const uint32_t*>(from - shift / 8);
    uint32_t* out = reinterpret_cast<uint32_t*>(dst + cut.head);
    const uint32_t first = number + cut.head / sizeof(B);
#pragma unroll 1
    for (int begin = lane(); begin < cut.count; begin += kRounds * kWarp) {
        emit_step<B, C>(out, cut.count, begin, kWarp, first, f, ShiftedWords{words + begin, shift});
    }
}

// Where byte `offset` of the mirrored span lies: pixels run backwards, the bytes of one forwards.
template <int P>
CVCLI_FN const uint8_t* mirrored(const uint8_t* last, uint32_t offset) {
    return last - offset + 2 * (offset % P);
}

// A word put together from units. Three steps of the warp are a multiple of every pixel size, so
// a lane's next word in a step lies that far back; U is the widest unit that stays aligned.
template <class U>
struct MirroredWords {
    static constexpr int kUnits = 4 / sizeof(U);
    static constexpr int kBack = kSteps * kWarp * 4;
    const uint8_t* from[kUnits];
    CVCLI_FN uint32_t operator()(int round) const {
        uint32_t word = 0;
#pragma unroll
        for (int u = 0; u < kUnits; ++u) {
            const U unit = *reinterpret_cast<const U*>(from[u] - round * kBack);
            word |= uint32_t{unit} << (u * 8 * int(sizeof(U)));
        }
        return word;
    }
};

template <class U, int P>
CVCLI_FN MirroredWords<U> mirrored_words(const uint8_t* last, int offset) {
    MirroredWords<U> words;
#pragma unroll
    for (int u = 0; u < MirroredWords<U>::kUnits; ++u) {
        words.from[u] = mirrored<P>(last, offset + u * int(sizeof(U)));
    }
    return words;
}

template <class B, class U, int C, class F>
CVCLI_FN void emit_mirrored(uint8_t* dst, const uint8_t* span, int bytes, uint32_t number,
                            const F& f) {
    constexpr int P = sizeof(B) * C;
    const uint8_t* last = span + bytes - P;
    const Cut cut = cut_span(dst, bytes, 4);
    const int edge = edge_offset<B>(cut, bytes);
    if (edge >= 0) {
        const B bits = FromStage::sample<B>(mirrored<P>(last, edge));
        store_sample(dst + edge, map_sample<C>(f, bits, number + edge / sizeof(B)));
    }
    uint32_t* out = reinterpret_cast<uint32_t*>(dst + cut.head);
    const uint32_t first = number + cut.head / sizeof(B);
#pragma unroll 1
    for (int step = 0; step < kSteps; ++step) {
        const int begin = lane() + step * kWarp;
        emit_step<B, C>(out, cut.count, begin, kSteps * kWarp, first, f,
                        mirrored_words<U, P>(last, cut.head + 4 * begin));
    }
}

}  // namespace cvcli
