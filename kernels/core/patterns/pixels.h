// Whole pixels, each read at its place and taken through the steps.
#pragma once

#include "core/pattern.h"

#if CVCLI_CUDA
#include "core/straight_cuda.h"
#endif

namespace cvcli {

struct PixelsParams {
    Frame frame;
};

#if CVCLI_CUDA

// A warp's part of a row: `count` pixels from `begin` on, from where in the source, if that is one
// run of its row `at_y`.
struct RowPart {
    int32_t y;
    int32_t begin;
    int32_t count;
    int32_t at_y;
    int32_t at_x;
    bool run;
    bool backwards;
};

template <class W>
CVCLI_FN RowPart row_part(const W& work, int32_t index, int32_t y, int32_t begin, int32_t count) {
    if constexpr (!W::kMoved) return {y, begin, count, y, begin, true, false};
    const Move& move = work.move(index);
    const int32_t at_y = axis_at(move.y, y);
    const Part run = run_part(move.x, begin, begin + count);
    const bool backwards = move.x.run_step < 0;
    const int32_t at_x = run_at(move.x, backwards ? begin + count - 1 : begin);
    return {y, begin, count, at_y, at_x, at_y >= 0 && run.end - run.begin == count, backwards};
}

// The source of a part into the stage; `leads` is where each plane's span begins.
template <class W, class Stage>
CVCLI_FN void stage_row(const Stage& stage, const Image& src, const RowPart& part, int* leads) {
    using P = typename W::Source;
    using B = Bits<typename P::Sample>;
    constexpr int unit = Stage::Read::kUnit;
#pragma unroll
    for (int plane = 0; plane < Stage::Read::kPlanes; ++plane) {
        const uint8_t* from = place_of<W::kPlanarIn, P>(src, plane, part.at_y, part.at_x);
        const uint8_t* row = from - int64_t{part.at_x} * unit;
        leads[plane] =
            stage_span<B>(stage.in(plane), from, part.count * unit, row, int64_t{src.width} * unit);
    }
    __syncwarp();
}

// The words of the group whose first pixel, in source order, is `first`.
template <class Stage>
CVCLI_FN void load_group(const Stage& stage, const int* leads, int first, uint32_t* words) {
    using Read = typename Stage::Read;
#pragma unroll
    for (int plane = 0; plane < Read::kPlanes; ++plane) {
        load_words<Read::kPlaneWords, sizeof(typename Read::T)>(
            words + plane * Read::kPlaneWords,
            stage.in(plane) + leads[plane] + first * Read::kUnit);
    }
}

// Staged pixels, group by group, through the steps; those past the end are made but not put out.
template <class W, class Stage>
CVCLI_FN void step_groups(const W& work, const Stage& stage, const RowPart& part, const int* leads,
                          uint8_t* const* outs) {
    using Read = typename Stage::Read;
    using Write = typename Stage::Write;
    constexpr int G = Stage::kGroup;
#pragma unroll(G == 4 ? 1 : 2)
    for (int at = lane() * G; at < part.count; at += kWarp * G) {
        uint32_t in[Read::kWords];
        uint32_t out[Write::kWords] = {};
        load_group(stage, leads, part.backwards ? part.count - at - G : at, in);
#pragma unroll
        for (int g = 0; g < G; ++g) {
            auto pixel = Read::pixel(in, g);
            if (W::kMoved && part.backwards) pixel = Read::pixel(in, G - 1 - g);
            Write::put(out, g, work.after(work.before(pixel)));
        }
#pragma unroll
        for (int plane = 0; plane < Write::kPlanes; ++plane) {
            store_words<Write::kPlaneWords>(outs[plane] + at * Write::kUnit,
                                            out + plane * Write::kPlaneWords);
        }
    }
}

// Pixels from anywhere, one a lane.
template <class W, class Stage>
CVCLI_FN void step_scattered(const W& work, const Image& src, int32_t index, const RowPart& part,
                             uint8_t* const* outs) {
    using Write = typename Stage::Write;
    using T = typename Write::T;
    const auto reader = work.reader(src, index);
#pragma unroll 2
    for (int32_t i = lane(); i < part.count; i += kWarp) {
        const auto pixel = work.after(reader.at(part.y, part.begin + i));
#pragma unroll
        for (int c = 0; c < decltype(pixel)::kChannels; ++c) {
            T* to = reinterpret_cast<T*>(outs[Write::kPlanes > 1 ? c : 0] + i * Write::kUnit);
            to[Write::kPlanes > 1 ? 0 : c] = pixel.v[c];
        }
    }
}

template <class Stage, bool Planar, class Out>
CVCLI_FN void emit_row(const Stage& stage, const Image& dst, const RowPart& part) {
    using Write = typename Stage::Write;
    // Not unrolled: the addresses of all planes would not fit the registers.
#pragma unroll 1
    for (int plane = 0; plane < Write::kPlanes; ++plane) {
        uint8_t* place = place_of<Planar, Out>(dst, plane, part.y, part.begin);
        emit_span<Bits<typename Write::T>>(place, stage.out(plane, place),
                                           part.count * Write::kUnit);
    }
}

template <class W, class Stage, class Out>
CVCLI_FN void map_part(const W& work, const Stage& stage, const Image& src, const Image& dst,
                       int32_t index, const RowPart& part) {
    uint8_t* outs[Stage::Write::kPlanes];
#pragma unroll
    for (int plane = 0; plane < Stage::Write::kPlanes; ++plane) {
        outs[plane] =
            stage.out(plane, place_of<W::kPlanarOut, Out>(dst, plane, part.y, part.begin));
    }
    if (part.run) {
        int leads[Stage::Read::kPlanes];
        stage_row<W>(stage, src, part, leads);
        step_groups(work, stage, part, leads, outs);
    } else if constexpr (W::kMoved) {
        step_scattered<W, Stage>(work, src, index, part, outs);
    }
    __syncwarp();
    emit_row<Stage, W::kPlanarOut, Out>(stage, dst, part);
    __syncwarp();
}

template <int S, class W>
CVCLI_FN auto stage_of(const W& work, uint8_t* memory) {
    using Out = decltype(work.after(typename W::In{}));
    return Stage<S, typename W::Source, W::kPlanarIn, W::kMoved, Out, W::kPlanarOut>{memory};
}

// `count` pixels of row y through a stage.
template <int S, class W>
CVCLI_FN void staged_part(const W& work, uint8_t* memory, int32_t index, int32_t y, int32_t begin,
                          int32_t count) {
    using Out = decltype(work.after(typename W::In{}));
    const auto stage = stage_of<S>(work, memory);
    const RowPart part = row_part(work, index, y, begin, count);
    map_part<W, decltype(stage), Out>(work, stage, work.src(index), work.dst(index), index, part);
}

// The same, as far as it can through registers.
template <int S, class Through, class W>
CVCLI_FN void pixels_part(const W& work, uint8_t* memory, int32_t index, int32_t y, int32_t begin,
                          int32_t count) {
    int done = 0;
    if constexpr (Through::kFits) {
        using Out = decltype(work.after(typename W::In{}));
        const Image src = work.src(index), dst = work.dst(index);
        const auto span =
            Through::row_span(place_of<false, typename W::Source>(src, 0, y, begin),
                              place_of<W::kPlanarOut, Out>(dst, 0, y, begin), dst, count);
        Through::run(work, memory, span, dst);
        done = span.groups * Through::kPixels;
        __syncwarp();
        if (done == count) return;
    }
    staged_part<S>(work, memory, index, y, begin + done, count - done);
}

// A warp's parts of an image's rows.
template <int S, class Through, class W>
CVCLI_FN void pixels_image(const W& work, uint8_t* memory, int32_t index) {
    const Image dst = work.dst(index);
    const int32_t x = static_cast<int32_t>(blockIdx.x) * S, count = smaller(S, dst.width - x);
    if (count <= 0) return;
    int32_t y = static_cast<int32_t>(blockIdx.y * kBlockWarps + threadIdx.x / kWarp);
#pragma unroll 1
    for (; y < dst.height; y += gridDim.y * kBlockWarps) {
        pixels_part<S, Through>(work, memory, index, y, x, count);
    }
}

// Images that are not flat, where that is rare: a call, for inlined they would take registers from
// those that are.
template <int S, class Through, class W, class Before, class After>
CVCLI_CALL void pixels_images(const MapArgs& args, Before before, After after, uint8_t* memory) {
    const W work = {args, before, after};
#pragma unroll 1
    for (int32_t index = blockIdx.z; index < args.count; index += gridDim.z) {
        if (Through::is_flat(work.src(index), work.dst(index))) continue;
        pixels_image<S, Through>(work, memory, index);
    }
}

// A warp takes S pixels of a row; or as many, R times, of an image that is one long row.
template <int S, int R, class W>
CVCLI_FN void pixels(const W& work, const Each<PixelsParams>&) {
    using Through = Straight<W, S, R>;
    using Room = decltype(stage_of<S>(work, nullptr));
    constexpr int bytes = larger(whole_chunks(Room::kBytes), Through::kBytes);
    __shared__ __align__(16) uint8_t rooms[kBlockWarps][bytes];
    uint8_t* const memory = rooms[threadIdx.x / kWarp];
    bool rest = false;
#pragma unroll 1
    for (int32_t index = blockIdx.z; index < work.args.count; index += gridDim.z) {
        if constexpr (Through::kFits) {
            const bool flat = Through::is_flat(work.src(index), work.dst(index));
            if (flat) Through::flat(work, memory, index);
            rest = rest || !flat;
        } else {
            pixels_image<S, Through>(work, memory, index);
        }
    }
    if constexpr (Through::kFits) {
        if (rest) pixels_images<S, Through, W>(work.args, work.before, work.after, memory);
    }
}

#else

template <class T, int C>
int32_t pixels_rows(const Share<PixelsParams>& share) {
    Scratch scratch;
    const Reader<T, C> reader(share, scratch);
    const Writer<T, C> writer(share, scratch);
    if (scratch.failed()) return kNoMemory;
    for (int32_t row = share.begin; row < share.end; ++row) {
        T* room = writer.begin(row);
        const T* pixels = reader.row(row, room);
        pixels == room ? writer.end(row) : writer.put(row, pixels);
    }
    return 0;
}

#endif

}  // namespace cvcli

CVCLI_PATTERN(pixels, PixelsParams)
