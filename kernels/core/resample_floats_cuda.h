// A tile of a resampling in float32: source samples in shared memory, then the rows made of them.
#pragma once

#include "core/resample_bytes_cuda.h"

namespace cvcli {

// Width and Height are the tile in pixels, Span the pixels of a source row that it needs, Rows the
// source rows, Batch how many of those are in shared memory at once; Taps the most of a row.
template <int C, int Width, int Height, int Span, int Rows, int Batch, int Taps>
struct FloatTile {
    static constexpr int kSamples = Width * C;
    float raw[Batch * Span * C];
    float mid[Rows * kSamples];
    float weights[Taps * Width];
};

CVCLI_FN const float* weights_of(const ResampleAxis& axis, int32_t index) {
    return static_cast<const float*>(axis.weights) + int64_t{index} * axis.most;
}

template <int Span, int Batch, int C, class R>
CVCLI_FN void load_floats(float* raw, const R& reader, const TilePlace& place, int32_t first_row) {
    const int columns = place.end_x - place.source_x;
    if constexpr (R::kDirect) {
        using T = typename R::Out::Sample;
#pragma unroll 4
        for (int i = threadIdx.x; i < Batch * Span * C; i += kBlockThreads) {
            const int32_t y = first_row + i / (Span * C);
            const int at = i % (Span * C);
            if (at >= columns * C || y >= place.end_y) continue;
            const T* row = row_at<const T>(reader.src, y) + int64_t{place.source_x} * C;
            raw[i] = static_cast<float>(read_only(row + at));
        }
    } else {
#pragma unroll 2
        for (int i = threadIdx.x; i < Batch * Span; i += kBlockThreads) {
            const int32_t y = first_row + i / Span;
            const int at = i % Span;
            if (at >= columns || y >= place.end_y) continue;
            const auto pixel = reader.at(y, place.source_x + at);
#pragma unroll
            for (int c = 0; c < C; ++c) raw[i * C + c] = static_cast<float>(pixel.v[c]);
        }
    }
}

template <int N>
CVCLI_FN void add_row(float (&sums)[N], float weight, const float (&values)[N], bool first) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
        const float product = weight * values[n];
        sums[n] = first ? product : sums[n] + product;
    }
}

template <int Width, int Height, int Span, int Rows, int Batch, int Taps, class W>
CVCLI_FN void resample_floats_tile(const W& work, const ResampleParams& params, const Image& src,
                                   const Image& dst, int32_t index, TilePlace place) {
    using T = typename W::In::Sample;
    constexpr int C = W::In::kChannels;
    using Tile = FloatTile<C, Width, Height, Span, Rows, Batch, Taps>;
    constexpr int kSamples = Tile::kSamples;
    __shared__ __align__(16) Tile tile;
    const auto reader = work.reader(src, index);
    const int32_t thread = static_cast<int32_t>(threadIdx.x);
    const int32_t ix = params.frame.x0 + place.x;
    const int32_t iy = params.frame.y0 + place.y;
    place.source_x = read_only(params.x.spans + 2 * int64_t{ix});
    place.source_y = read_only(params.y.spans + 2 * int64_t{iy});
    place.end_x = end_of(params.x, ix + place.width - 1);
    place.end_y = end_of(params.y, iy + place.height - 1);
    __syncthreads();  // the tile before has been read
    for (int i = thread; i < place.width * params.x.most; i += kBlockThreads) {
        const int x = i / params.x.most;
        const int k = i % params.x.most;
        tile.weights[k * Width + x] = read_only(weights_of(params.x, ix + x) + k);
    }
    const int32_t rows = place.end_y - place.source_y;
#pragma unroll 1
    for (int first = 0; first < rows; first += Batch) {
        load_floats<Span, Batch, C>(tile.raw, reader, place, place.source_y + first);
        __syncthreads();
        for (int i = thread; i < Batch / 4 * kSamples; i += kBlockThreads) {
            const int sample = i % kSamples;
            const int row = i / kSamples * 4;
            const int x = sample / C;
            if (x >= place.width || first + row >= rows) continue;
            const int32_t* span = params.x.spans + 2 * int64_t{ix + x};
            const int32_t count = read_only(span + 1);
            const int skipped = (read_only(span) - place.source_x) * C + sample % C;
            const float* from = tile.raw + row * Span * C + skipped;
            float sums[4] = {};
#pragma unroll 2
            for (int k = 0; k < count; ++k) {
                const float values[4] = {from[k * C], from[(Span + k) * C],
                                         from[(2 * Span + k) * C], from[(3 * Span + k) * C]};
                add_row(sums, tile.weights[k * Width + x], values, k == 0);
            }
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                if (first + row + n < rows) {
                    tile.mid[(first + row + n) * kSamples + sample] = sums[n];
                }
            }
        }
        __syncthreads();
    }

    constexpr int N = W::kPlainOut ? 1 : C;
    constexpr int kItems = kSamples / N;
    for (int i = thread; i < place.height * kItems; i += kBlockThreads) {
        const int y = i / kItems;
        const int item = i % kItems;
        if (item * N >= place.width * C) continue;
        const int32_t* span = params.y.spans + 2 * int64_t{iy + y};
        const int32_t count = read_only(span + 1);
        const float* of_y = weights_of(params.y, iy + y);
        const float* from = tile.mid + (read_only(span) - place.source_y) * kSamples + item * N;
        float sums[N] = {};
#pragma unroll 2
        for (int k = 0; k < count; ++k) {
            float values[N];
#pragma unroll
            for (int n = 0; n < N; ++n) values[n] = from[k * kSamples + n];
            add_row(sums, read_only(of_y + k), values, k == 0);
        }
        if constexpr (W::kPlainOut) {
            T* row = row_at<T>(dst, place.y + y) + int64_t{place.x} * C;
            row[item] = to_sample<T>(sums[0]);
        } else {
            typename W::In pixel;
#pragma unroll
            for (int c = 0; c < C; ++c) pixel.v[c] = to_sample<T>(sums[c]);
            work.write(dst, place.y + y, place.x + item, pixel);
        }
    }
}

template <int Width, int Height, int Span, int Rows, int Batch, int Taps, class W>
CVCLI_FN void resample_floats(const W& work, const Each<ResampleParams>& each) {
    for_each_tile(work.args, Height, work.args.dst,
                  [&](int32_t index, int32_t tile_x, int32_t tile_y) {
                      const Image dst = work.dst(index);
                      TilePlace place = {};
                      place.x = tile_x * Width;
                      place.y = tile_y * Height;
                      if (place.x >= dst.width) return;
                      place.width = smaller(Width, dst.width - place.x);
                      place.height = smaller(Height, dst.height - place.y);
                      const Image src = work.src(index);
                      resample_floats_tile<Width, Height, Span, Rows, Batch, Taps>(
                          work, work.params(each, index), src, dst, index, place);
                  });
}

}  // namespace cvcli
