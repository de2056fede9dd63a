// map on the GPU, row by row: a warp takes one segment of one destination row.
#pragma once

#include "core/gather.h"
#include "core/span_cuda.h"
#include "core/table_cuda.h"

namespace cvcli {

template <int Size>
struct UnitOf;
template <>
struct UnitOf<1> {
    using type = uint8_t;
};
template <>
struct UnitOf<2> {
    using type = uint16_t;
};
template <>
struct UnitOf<4> {
    using type = uint32_t;
};

// The largest power of two, up to a word, that divides a pixel.
CVCLI_FN constexpr int widest_unit(int pixel_bytes) {
    return pixel_bytes % 4 == 0 ? 4 : pixel_bytes % 2 == 0 ? 2 : 1;
}

// What is known of every row before a launch; kernels that know more need fewer registers, and so
// have more loads in flight.
enum class Path {
    kAny,
    kForward,   // the x run covers every row, in source order; there are no constants
    kMirrored,  // the same, reversed
};

// A uniform batch has its descriptors in the arguments, which are constant memory; a ragged one
// has both lists.
template <bool Uniform>
CVCLI_FN Image image_of(const Images& images, int32_t index) {
    if constexpr (Uniform) return strided_image(images, index);
    return images.list[index];
}

template <bool Uniform>
CVCLI_FN const Move& move_of(const MapArgs& args, int32_t index) {
    if constexpr (Uniform) return args.move;
    return args.moves[index];
}

// One warp's place in one image.
template <class T>
struct Segment {
    const Image& src;
    const Move& move;
    uint8_t* dst_row;
    uint8_t* stage;
    int32_t at_y;
};

template <class T, int C, class F>
CVCLI_FN void map_forward_run(const Segment<T>& seg, int32_t begin, int32_t end, const F& f) {
    using B = Bits<T>;
    constexpr int P = sizeof(T) * C;
    const uint8_t* row = row_at<const uint8_t>(seg.src, seg.at_y);
    const uint8_t* src = row + int64_t{run_at(seg.move.x, begin)} * P;
    uint8_t* dst = seg.dst_row + int64_t{begin} * P;
    const int bytes = (end - begin) * P;
    const uint32_t number = static_cast<uint32_t>(begin) * C;
    if (((address(src) ^ address(dst)) & (kChunk - 1)) == 0) {
        return copy_chunks<B, C, FromGlobal>(dst, src, bytes, number, f);
    }
    const int lead = stage_span<B>(seg.stage, src, bytes, row, int64_t{seg.src.width} * P);
    f.ready();
    __syncwarp();
    emit_forward<B, C>(dst, seg.stage + lead, bytes, number, f);
    __syncwarp();
}

template <class T, int C, class F>
CVCLI_FN void map_mirrored_run(const Segment<T>& seg, int32_t begin, int32_t end, const F& f) {
    using B = Bits<T>;
    constexpr int P = sizeof(T) * C;
    const uint8_t* row = row_at<const uint8_t>(seg.src, seg.at_y);
    const uint8_t* src = row + int64_t{run_at(seg.move.x, end - 1)} * P;
    uint8_t* dst = seg.dst_row + int64_t{begin} * P;
    const int bytes = (end - begin) * P;
    const uint32_t number = static_cast<uint32_t>(begin) * C;
    const int lead = stage_span<B>(seg.stage, src, bytes, row, int64_t{seg.src.width} * P);
    const uint8_t* span = seg.stage + lead;
    f.ready();
    __syncwarp();
    using Unit = typename UnitOf<widest_unit(P)>::type;
    if (((address(src) | address(dst)) & (sizeof(Unit) - 1)) == 0) {
        emit_mirrored<B, Unit, C>(dst, span, bytes, number, f);
    } else {
        emit_mirrored<B, B, C>(dst, span, bytes, number, f);
    }
    __syncwarp();
}

// Destination pixels [begin, end) inside the x run of a row that has a source.
template <class T, int C, class F>
CVCLI_FN void map_run(const Segment<T>& seg, int32_t begin, int32_t end, const F& f) {
    if (seg.move.x.run_step > 0) return map_forward_run<T, C>(seg, begin, end, f);
    map_mirrored_run<T, C>(seg, begin, end, f);
}

// Any pixels, one a lane: finished into the stage at dst's alignment, then stored by chunks.
template <class T, int C, class F>
CVCLI_FN void map_any(const Segment<T>& seg, int32_t begin, int32_t end, const F& f) {
    using B = Bits<T>;
    constexpr int P = sizeof(T) * C;
    uint8_t* dst = seg.dst_row + int64_t{begin} * P;
    uint8_t* span = seg.stage + (address(dst) & (kChunk - 1));
    f.ready();
    __syncwarp();
#pragma unroll 2
    for (int32_t i = lane(); i < end - begin; i += kWarp) {
        const int32_t at_x = axis_at(seg.move.x, begin + i);
        const bool fixed = constant_number(seg.at_y, at_x) >= 0;
        const B* from =
            reinterpret_cast<const B*>(pixel_at<T, C>(seg.src, seg.move, seg.at_y, at_x));
        B* to = reinterpret_cast<B*>(span + i * P);
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const B bits = __ldg(from + c);
            to[c] = fixed ? bits : map_sample<C>(f, bits, c);
        }
    }
    __syncwarp();
    copy_chunks<B, C, FromStage>(dst, span, (end - begin) * P, static_cast<uint32_t>(begin) * C,
                                 Identity{});
    __syncwarp();
}

// The run may cover none, a part or all of a segment; what is on either side goes pixel by pixel.
template <class T, int C, class F>
CVCLI_FN void map_any_segment(const Segment<T>& seg, int32_t begin, int32_t end, const F& f) {
    const bool has_run = seg.at_y >= 0 && !seg.move.transpose;
    const Part run = has_run ? run_part(seg.move.x, begin, end) : Part{begin, begin};
    if (run.begin < run.end) map_run<T, C>(seg, run.begin, run.end, f);
#pragma unroll 1
    for (int side = 0; side < 2; ++side) {
        const int32_t from = side ? run.end : begin;
        const int32_t to = side ? end : run.begin;
        if (from < to) map_any<T, C>(seg, from, to, f);
    }
}

template <Path path, class T, int C, class F>
CVCLI_FN void map_segment(const Segment<T>& seg, int32_t begin, int32_t end, const F& f) {
    if constexpr (path == Path::kForward) return map_forward_run<T, C>(seg, begin, end, f);
    if constexpr (path == Path::kMirrored) return map_mirrored_run<T, C>(seg, begin, end, f);
    if constexpr (path == Path::kAny) map_any_segment<T, C>(seg, begin, end, f);
}

// The block's segment column of eight rows of one image, and of those a whole grid further down.
// Images smaller than the largest leave blocks over, so a ragged batch is one launch.
template <Path path, bool Uniform, class T, int C, class F>
CVCLI_FN void map_image(const MapArgs& args, int32_t index, uint8_t* stage, const F& f) {
    constexpr int N = segment_pixels(sizeof(T) * C);
    const Image dst = image_of<Uniform>(args.dst, index);
    const int32_t begin = static_cast<int32_t>(blockIdx.x) * N;
    if (begin >= dst.width) return;
    const int32_t end = begin + smaller(N, dst.width - begin);
    const Image src = image_of<Uniform>(args.src, index);
    const Move& move = move_of<Uniform>(args, index);
    for (int32_t row = blockIdx.y * kBlockWarps + threadIdx.x / kWarp; row < dst.height;
         row += gridDim.y * kBlockWarps) {
        const Segment<T> seg = {src, move, row_at<uint8_t>(dst, row), stage, axis_at(move.y, row)};
        map_segment<path, T, C>(seg, begin, end, f);
    }
}

template <Path path, bool Uniform, class T, int C, class F>
CVCLI_FN void map_parts(const MapArgs& args, const F& functor) {
    __shared__ __align__(16) uint8_t stages[kBlockWarps][kStageBytes];
    const auto f = bind(functor, args);
    for (int32_t index = blockIdx.z; index < args.count; index += gridDim.z) {
        map_image<path, Uniform, T, C>(args, index, stages[threadIdx.x / kWarp], f);
    }
}

template <bool Uniform, class T, int C, class F>
CVCLI_FN void map_rows(const MapArgs& args, const F& functor) {
    map_parts<Path::kAny, Uniform, T, C>(args, functor);
}

template <bool Uniform, class T, int C, class F>
CVCLI_FN void map_forward(const MapArgs& args, const F& functor) {
    map_parts<Path::kForward, Uniform, T, C>(args, functor);
}

template <bool Uniform, class T, int C, class F>
CVCLI_FN void map_mirrored(const MapArgs& args, const F& functor) {
    map_parts<Path::kMirrored, Uniform, T, C>(args, functor);
}

}  // namespace cvcli
