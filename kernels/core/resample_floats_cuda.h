// A tile of a resampling in float32: source samples in shared memory, then the rows made of them.
#pragma once

#include "core/resample_bytes_cuda.h"

namespace cvcli {

// Width and Height are the tile in pixels, Span the pixels of a source row that it needs, Rows the
// source rows, Batch how many of those are in shared memory at once; Taps the most of a row.
template <int Width, int Height, int Span, int Rows, int Batch, int Taps>
struct FloatNumbers {
    static constexpr int kWidth = Width, kHeight = Height, kSpan = Span, kRows = Rows;
    static constexpr int kBatch = Batch, kTaps = Taps;
};

template <class N, int C>
struct FloatTile {
    static constexpr int kSamples = N::kWidth * C;
    float raw[N::kBatch * N::kSpan * C];
    float mid[N::kRows * kSamples];
    float weights[N::kTaps * N::kWidth];
};

CVCLI_FN const float* weights_of(const ResampleAxis& axis, int32_t index) {
    return static_cast<const float*>(axis.weights) + int64_t{index} * axis.most;
}

template <int Span, int Batch, int C, class R>
CVCLI_FN void load_floats(float* raw, const R& reader, const SourceTile& place, int32_t first_row) {
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

// The two passes of one tile.
template <class N, class W>
struct FloatPasses {
    using T = typename W::In::Sample;
    static constexpr int C = W::In::kChannels;
    using Tile = FloatTile<N, C>;
    static constexpr int kSamples = Tile::kSamples;
    const W& work;
    const ResampleParams& params;
    const Image& dst;
    Tile& tile;
    SourceTile place;

    CVCLI_FN int32_t first_x() const { return params.frame.x0 + place.x; }
    CVCLI_FN int32_t first_y() const { return params.frame.y0 + place.y; }

    CVCLI_FN void find_source() {
        place.source_x = read_only(params.x.spans + 2 * int64_t{first_x()});
        place.source_y = read_only(params.y.spans + 2 * int64_t{first_y()});
        place.end_x = end_of(params.x, first_x() + place.width - 1);
        place.end_y = end_of(params.y, first_y() + place.height - 1);
    }
    // The weights of columns, turned, so that neighbouring threads read side by side.
    CVCLI_FN void load_weights() {
        for (int i = threadIdx.x; i < place.width * params.x.most; i += kBlockThreads) {
            const int x = i / params.x.most;
            const int k = i % params.x.most;
            tile.weights[k * N::kWidth + x] = read_only(weights_of(params.x, first_x() + x) + k);
        }
    }
    template <class R>
    CVCLI_FN void make_rows(const R& reader) {
        const int32_t rows = place.end_y - place.source_y;
        __syncthreads();  // the tile before has been read
        load_weights();
#pragma unroll 1
        for (int first = 0; first < rows; first += N::kBatch) {
            load_floats<N::kSpan, N::kBatch, C>(tile.raw, reader, place, place.source_y + first);
            __syncthreads();
            for (int i = threadIdx.x; i < N::kBatch / 4 * kSamples; i += kBlockThreads) {
                const int row = i / kSamples * 4;
                const int sample = i % kSamples;
                if (sample < place.width * C && first + row < rows) {
                    make_four(row, sample, first, rows);
                }
            }
            __syncthreads();
        }
    }
    // One sample of four rows.
    CVCLI_FN void make_four(int row, int sample, int first, int rows) {
        const int x = sample / C;
        const int32_t* span = params.x.spans + 2 * int64_t{first_x() + x};
        const int32_t count = read_only(span + 1);
        const int skipped = (read_only(span) - place.source_x) * C + sample % C;
        const float* from = tile.raw + row * N::kSpan * C + skipped;
        float sums[4] = {};
#pragma unroll 2
        for (int k = 0; k < count; ++k) {
            float values[4];
#pragma unroll
            for (int n = 0; n < 4; ++n) values[n] = from[(n * N::kSpan + k) * C];
            add_row(sums, tile.weights[k * N::kWidth + x], values, k == 0);
        }
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            if (first + row + n < rows) tile.mid[(first + row + n) * kSamples + sample] = sums[n];
        }
    }
    // Single samples where they are stored as they are, else whole pixels.
    CVCLI_FN void make_result() const {
        constexpr int M = W::kPlainOut ? 1 : C;
        constexpr int kItems = kSamples / M;
        for (int i = threadIdx.x; i < place.height * kItems; i += kBlockThreads) {
            const int y = i / kItems;
            const int item = i % kItems;
            if (item * M >= place.width * C) continue;
            float sums[M];
            sum_column(sums, first_y() + y, item * M);
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
    template <int M>
    CVCLI_FN void sum_column(float (&sums)[M], int32_t index, int sample) const {
        const int32_t* span = params.y.spans + 2 * int64_t{index};
        const int32_t count = read_only(span + 1);
        const float* weights = weights_of(params.y, index);
        const float* from = tile.mid + (read_only(span) - place.source_y) * kSamples + sample;
#pragma unroll
        for (int n = 0; n < M; ++n) sums[n] = 0;
#pragma unroll 2
        for (int k = 0; k < count; ++k) {
            float values[M];
#pragma unroll
            for (int n = 0; n < M; ++n) values[n] = from[k * kSamples + n];
            add_row(sums, read_only(weights + k), values, k == 0);
        }
    }
};

template <int... Numbers, class W>
CVCLI_FN void resample_floats(const W& work, const Each<ResampleParams>& each) {
    using N = FloatNumbers<Numbers...>;
    __shared__ __align__(16) FloatTile<N, W::In::kChannels> tile;
    for_each_place<N::kWidth, N::kHeight>(
        work, [&](int32_t index, const Image& dst, const SourceTile& place) {
            const Image src = work.src(index);
            FloatPasses<N, W> passes = {work, work.params(each, index), dst, tile, place};
            passes.find_source();
            passes.make_rows(work.reader(src, index));
            passes.make_result();
        });
}

}  // namespace cvcli
