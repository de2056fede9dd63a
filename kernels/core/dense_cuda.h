// The dense pattern on the GPU: a thread makes 16 bytes of several rows of results, and reads each
// row of the source once, as floats.
#pragma once

#include "core/axes_cuda.h"
#include "core/tile_cuda.h"

namespace cvcli {

// Samples of a row of a tile as floats: `count` of them from group g of G samples on, and those
// that the radius reaches on either side.
template <class Shape, int G>
struct LineOf {
    using T = typename Shape::Sample;
    static constexpr int kReach = Shape::kRadiusX * Shape::kChannels;
    static constexpr int kCount = G + 2 * kReach;
    static constexpr int kWords = (2 * Shape::kPad + G * int(sizeof(T))) / 4;
    float v[kCount];
    CVCLI_FN void read(const uint8_t* row, int group) {
        uint32_t words[kWords];
        read_words(row + group * G * int(sizeof(T)), words);
        constexpr int first = Shape::kPad / int(sizeof(T)) - kReach;
        constexpr int each = 4 / int(sizeof(T));
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            v[i] = float_at<T>(words[(first + i) / each], (first + i) % each);
        }
    }
};

// Results in the dtype, as they lie in memory.
template <class T>
CVCLI_FN Words<4> chunk_of(const float (&values)[16 / sizeof(T)]) {
    constexpr int each = 4 / int(sizeof(T));
    Words<4> words;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        if constexpr (sizeof(T) == 4) {
            words.v[w] = bits_of(to_sample<float>(values[w]));
        } else {
            words.v[w] = 0;
#pragma unroll
            for (int i = 0; i < each; ++i) {
                const uint32_t sample = to_sample<T>(values[w * each + i]);
                words.v[w] |= sample << i * 8 * sizeof(T);
            }
        }
    }
    return words;
}

// Sums over the taps that `Mask` has a bit for, in their order.
template <class Shape, int Mask, int R, int G>
CVCLI_FN void sum_rows(const uint8_t* room, int first, int column, const Tap* taps,
                       float (&sums)[R][G]) {
    constexpr int RX = Shape::kRadiusX, RY = Shape::kRadiusY, C = Shape::kChannels;
    constexpr int wide = 2 * RX + 1;
    float weights[wide * (2 * RY + 1)];
    int count = 0;
#pragma unroll
    for (int k = 0; k < wide * (2 * RY + 1); ++k) {
        weights[k] = Mask >> k & 1 ? read_only(&taps[count++].weight) : 0.0f;
    }
    bool begun[R] = {};
#pragma unroll
    for (int row = 0; row < R + 2 * RY; ++row) {
        LineOf<Shape, G> line;
        line.read(room + (first + row) * Shape::kPitch, column);
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const int dy = row - r;
            if (dy < 0 || dy > 2 * RY) continue;
#pragma unroll
            for (int dx = 0; dx < wide; ++dx) {
                if (!(Mask >> (dy * wide + dx) & 1)) continue;
#pragma unroll
                for (int i = 0; i < G; ++i) {
                    const float product = weights[dy * wide + dx] * line.v[i + dx * C];
                    sums[r][i] = begun[r] ? sums[r][i] + product : product;
                }
                begun[r] = true;
            }
        }
    }
}

// Takes sums to the results of a blend; samples on the edge of the image stay.
template <class Shape, int R, int G>
CVCLI_FN void blend_rows(const uint8_t* room, int first, int column, const DenseParams& params,
                         const TilePlace& place, float (&sums)[R][G]) {
    using T = typename Shape::Sample;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const int row = first + r;
        const int32_t y = place.source_y + row;
        const T* own = reinterpret_cast<const T*>(room + (row + Shape::kRadiusY) * Shape::kPitch +
                                                  Shape::kPad) +
                       column * G;
#pragma unroll
        for (int i = 0; i < G; ++i) {
            const int32_t x = place.source_x + (column * G + i) / Shape::kChannels;
            const bool edge =
                y == 0 || y == params.frame.height - 1 || x == 0 || x == params.frame.width - 1;
            const float sample = static_cast<float>(own[i]);
            sums[r][i] = edge ? sample : blended<T>(sample, sums[r][i], params.amount);
        }
    }
}

template <class Shape, int Mask, int Blends, class W>
CVCLI_FN void filter_tiles(const W& work, const Each<DenseParams>& each) {
    using T = typename Shape::Sample;
    using Own = Columns<Shape, 4>;
    constexpr int G = 16 / int(sizeof(T)), R = Own::kRounds;
    __shared__ __align__(16) uint8_t room[Shape::kBytes];
    for_each_place<Shape>(
        work, each,
        [&](int32_t index, const Image& dst, const DenseParams& params, const TilePlace& place) {
            const Image src = work.src(index);
            load_tile<Shape>(work.reader(src, index), room, place, params.frame, params.edges);
            __syncthreads();
            float sums[R][G] = {};
            const int first = Own::row(), column = Own::column();
            sum_rows<Shape, Mask>(room, first, column, params.taps, sums);
            if constexpr (Blends != 0) {
                blend_rows<Shape>(room, first, column, params, place, sums);
            }
            Words<4> results[R];
#pragma unroll
            for (int r = 0; r < R; ++r) results[r] = chunk_of<T>(sums[r]);
            store_results<Shape, 4>(work, dst, place, room, results);
        });
}

// Any taps, a thread a pixel: samples are read where they lie.
constexpr int kAnyWidth = 32;
constexpr int kAnyHeight = 8;

template <class W>
CVCLI_FN typename W::In filtered_pixel(const typename W::Read& reader, const DenseParams& params,
                                       int32_t y, int32_t x) {
    using In = typename W::In;
    using T = typename In::Sample;
    float sums[In::kChannels] = {};
#pragma unroll 1
    for (int32_t k = 0; k < params.count; ++k) {
        const Tap tap = params.taps[k];
        const In pixel = bordered_at<W>(reader, params.frame, params.edges, y + tap.dy, x + tap.dx);
#pragma unroll
        for (int c = 0; c < In::kChannels; ++c) {
            const float product = tap.weight * static_cast<float>(pixel.v[c]);
            sums[c] = k ? sums[c] + product : product;
        }
    }
    In made;
#pragma unroll
    for (int c = 0; c < In::kChannels; ++c) made.v[c] = to_sample<T>(sums[c]);
    return made;
}

template <class W>
CVCLI_FN void filter_pixels(const W& work, const Each<DenseParams>& each) {
    for_each_tile(
        work.args, kAnyHeight, work.args.dst, [&](int32_t index, int32_t tile_x, int32_t tile_y) {
            const Image src = work.src(index), dst = work.dst(index);
            const DenseParams& params = work.params(each, index);
            const auto reader = work.reader(src, index);
            const int32_t x = tile_x * kAnyWidth + threadIdx.x % kAnyWidth;
            const int32_t y = tile_y * kAnyHeight + threadIdx.x / kAnyWidth;
            if (x >= dst.width || y >= dst.height) return;
            work.write(dst, y, x,
                       filtered_pixel<W>(reader, params, y + params.frame.y0, x + params.frame.x0));
        });
}

// RX < 0: any taps.
template <int RX, int RY, int TW, int TH, int Turns, int Mask, int Blends, class W>
CVCLI_FN void dense(const W& work, const Each<DenseParams>& each) {
    using In = typename W::In;
    if constexpr (RX < 0) {
        static_assert(Blends == 0, "blends are of small filters");
        filter_pixels(work, each);
    } else {
        using Shape = Tile<typename In::Sample, In::kChannels, RX, RY, TW, TH, Turns>;
        filter_tiles<Shape, Mask, Blends>(work, each);
    }
}

}  // namespace cvcli
