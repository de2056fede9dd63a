// Patterns on the GPU: pixels come in through a gather and steps, and go out through steps.
#pragma once

#include "core/map_rows_cuda.h"
#include "core/pixels.h"

namespace cvcli {

// Where a pixel lies, or its sample in one plane.
template <bool Planar, class P>
CVCLI_FN uint8_t* place_of(const Image& image, int32_t plane, int32_t y, int32_t x) {
    using T = typename P::Sample;
    T* row = Planar ? plane_row_at<T>(image, plane, y) : row_at<T>(image, y);
    return reinterpret_cast<uint8_t*>(row + int64_t{x} * (Planar ? 1 : P::kChannels));
}

template <bool Planar, class T, int C>
CVCLI_FN Pixel<T, C> load_pixel(const Image& src, int32_t y, int32_t x) {
    Pixel<T, C> pixel;
    const T* row = row_at<const T>(src, y) + int64_t{x} * C;
#pragma unroll
    for (int c = 0; c < C; ++c) {
        pixel.v[c] = read_only(Planar ? plane_row_at<const T>(src, c, y) + x : row + c);
    }
    return pixel;
}

// What a pattern reads: pixel (y, x) after the gather and the steps before.
template <bool Moved, bool Planar, class T, int C, class Before>
struct Reader {
    using Out = decltype(Before{}(Pixel<T, C>{}));
    // Rows can be copied as bytes: nothing is done to pixels on their way in.
    static constexpr bool kDirect = !Moved && !Planar && Before::kNone;
    // What lies in memory, the samples of a pixel side by side or not, read through a gather or
    // not.
    using Raw = Pixel<T, C>;
    static constexpr bool kPacked = !Planar;
    static constexpr bool kMoved = Moved;
    static constexpr bool kSteps = !Before::kNone;
    const Image& src;
    const Move& move;
    const Before& before;

    CVCLI_FN Out at(int32_t y, int32_t x) const {
        if constexpr (Moved) {
            y = axis_at(move.y, y);
            x = axis_at(move.x, x);
            const int32_t number = constant_number(y, x);
            if (number >= 0) return constant(number);
        }
        return before(load_pixel<Planar, T, C>(src, y, x));
    }

  private:
    CVCLI_FN Out constant(int32_t number) const {
        Out pixel;
        const auto* from = constant_at<typename Out::Sample, Out::kChannels>(move, number);
#pragma unroll
        for (int c = 0; c < Out::kChannels; ++c) pixel.v[c] = read_only(from + c);
        return pixel;
    }
};

template <bool Planar, class T, int C>
CVCLI_FN void store_pixel(const Image& dst, int32_t y, int32_t x, const Pixel<T, C>& pixel) {
    T* row = row_at<T>(dst, y) + int64_t{x} * C;
#pragma unroll
    for (int c = 0; c < C; ++c) {
        *(Planar ? plane_row_at<T>(dst, c, y) + x : row + c) = pixel.v[c];
    }
}

// All that is the same for every pixel of a launch.
template <bool Uniform, bool Moved, bool PlanarIn, bool PlanarOut, class T, int C, class Before,
          class After>
struct Work {
    using Read = Reader<Moved, PlanarIn, T, C, Before>;
    using In = typename Read::Out;
    using Source = Pixel<T, C>;
    static constexpr bool kMoved = Moved;
    static constexpr bool kPlanarIn = PlanarIn;
    static constexpr bool kPlanarOut = PlanarOut;
    // Results are stored as the pattern makes them, sample by sample.
    static constexpr bool kPlainOut = !PlanarOut && After::kNone;
    static constexpr bool kUniform = Uniform;

    const MapArgs& args;
    Before before;
    After after;

    CVCLI_FN Image src(int32_t index) const { return image_of<Uniform>(args.src, index); }
    CVCLI_FN Image dst(int32_t index) const { return image_of<Uniform>(args.dst, index); }
    CVCLI_FN Image aux(int32_t index) const { return image_of<Uniform>(args.aux, index); }
    CVCLI_FN Read reader(const Image& image, int32_t index) const {
        return {image, move_of<Uniform>(args, index), before};
    }
    template <class Params>
    CVCLI_FN const Params& params(const Each<Params>& each, int32_t index) const {
        if constexpr (Uniform) return each.first;
        return each.list[index];
    }
    // The move of an image, which only means something if kMoved.
    CVCLI_FN const Move& move(int32_t index) const { return move_of<Uniform>(args, index); }
    // A pixel of the pattern through the steps after it and to its place.
    template <class P>
    CVCLI_FN void write(const Image& image, int32_t y, int32_t x, const P& pixel) const {
        store_pixel<PlanarOut>(image, y, x, after(pixel));
    }
};

template <bool Uniform, bool Moved, bool PlanarIn, bool PlanarOut, class T, int C, class Before,
          class After>
CVCLI_FN Work<Uniform, Moved, PlanarIn, PlanarOut, T, C, Before, After> work(const MapArgs& args,
                                                                             const Before& before,
                                                                             const After& after) {
    return {args, before, after};
}

// Calls each(index, x, y) for every image of the batch and every tile of the grid: x and y number
// tiles of the largest image, so each has to see whether its own image reaches that far.
template <class Function>
CVCLI_FN void for_each_tile(const MapArgs& args, int tile_rows, const Images& extent,
                            const Function& each) {
    for (int32_t index = blockIdx.z; index < args.count; index += gridDim.z) {
        const int32_t height = image_at(extent, index).height;
        for (int32_t y = blockIdx.y; int64_t{y} * tile_rows < height; y += gridDim.y) {
            each(index, static_cast<int32_t>(blockIdx.x), y);
        }
    }
}

}  // namespace cvcli

#define CVCLI_PATTERN(name, Params)
