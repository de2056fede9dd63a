// Twice the rows and columns of an 8-bit image, each result from four neighbours with weights of
// seven bits. A thread keeps, for eight columns, the bytes of the last four rows it has made; each
// source row moves one in, and then gives the results below and above it. Results near an edge have
// weights of their own, in three bytes; there a sample outside the image has a weight of zero.
#pragma once

#include "core/resample_points_cuda.h"

namespace cvcli {

constexpr int kDoublesColumns = 8;  // a thread's
constexpr int kDoublesRows = 32;    // a warp's
constexpr int kDoublesWidth = kDoublesColumns * kWarp;
// Results so near to an edge have weights of their own.
constexpr int kDoublesEdge = 3;

// An axis: results are made from four neighbouring samples, two before an even one's own on.
struct DoubledAxis {
    int32_t even;
    int32_t odd;
    int32_t length;
    const int4* edges;

    CVCLI_FN DoubledAxis(const ResampleAxis& axis, int32_t source)
        : even(axis.words),
          odd(axis.reach),
          length(2 * source),
          edges(reinterpret_cast<const int4*>(axis.records)) {}
    CVCLI_FN bool is_edge(int32_t at) const {
        return at < kDoublesEdge || at >= length - kDoublesEdge;
    }
    // The digits of the weights of a result near an edge.
    CVCLI_FN int4 edge(int32_t at) const {
        return __ldg(edges + (at < kDoublesEdge ? larger(at, 0)
                                                : smaller(at - length, -1) + 2 * kDoublesEdge));
    }
};

CVCLI_FN uint32_t edge_sample(uint32_t window, int4 digits) {
    const uint32_t sum = add_products(window, digits.z, 1u << (kWeightBits - 1)) +
                         (add_products(window, digits.y, 0) << 8) +
                         (add_products(window, digits.x, 0) << 16);
    return saturated(sum, kWeightBits);
}

// Eight pixels of a row, as they lie or one word a channel for each four of them.
template <int C, class R>
struct EightPixels {
    static constexpr bool kAsTheyLie = R::kDirect;
    uint32_t w[2 * C + 1];
    int shift;

    CVCLI_FN void load(const R& reader, const Frame& frame, int32_t y, int32_t x) {
        y = smaller(larger(y, 0), frame.height - 1);
        shift = 0;
        if constexpr (kAsTheyLie) {
            const uint8_t* row = row_at<const uint8_t>(reader.src, y);
            const int lead = static_cast<int>(address(row + int64_t{x} * C) & 3);
            const int32_t first = x * C - lead;
            if (first >= 0 && first + 8 * C + 4 <= frame.width * C) {
                const auto* from = reinterpret_cast<const uint32_t*>(row + first);
#pragma unroll
                for (int i = 0; i <= 2 * C; ++i) w[i] = read_only(from + i);
                shift = 8 * lead;
                return;
            }
        } else if (x >= 0 && x + 8 <= frame.width) {
            uint32_t four[C];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                load_four(reader, frame.width, y, x + 4 * half, four);
#pragma unroll
                for (int c = 0; c < C; ++c) w[half * C + c] = four[c];
            }
            return;
        }
        load_each(reader, frame, y, x);
    }
    // Four of them from `half` on, one word a channel.
    CVCLI_FN void channels(int half, uint32_t (&four)[C]) const {
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const int i = half * C + c;
            four[c] = kAsTheyLie ? __funnelshift_r(w[i], w[i + 1], shift) : w[i];
        }
        if constexpr (kAsTheyLie) split_channels(four);
    }

  private:
    // What is outside the row is the pixel at its end; it goes into results of the edge only.
    CVCLI_FN void load_each(const R& reader, const Frame& frame, int32_t y, int32_t x) {
#pragma unroll
        for (int i = 0; i <= 2 * C; ++i) w[i] = 0;
#pragma unroll 1
        for (int i = 0; i < 8; ++i) {
            const int32_t at = smaller(larger(x + i, 0), frame.width - 1);
            const Pixel<uint8_t, C> pixel = reader.at(y, at);
#pragma unroll
            for (int k = 0; k < 2 * C; ++k) {
#pragma unroll
                for (int c = 0; c < C; ++c) {
                    const int byte = kAsTheyLie ? i * C + c - 4 * k : i - k / C * 4;
                    if (!kAsTheyLie && k % C != c) continue;
                    if (byte >= 0 && byte < 4) w[k] |= uint32_t{pixel.v[c]} << (8 * byte);
                }
            }
        }
    }
};

// The samples of eight columns from result `at` on, a word for each four of them as they lie.
template <int C, class R>
CVCLI_FN void double_columns(const EightPixels<C, R>& pixels, const DoubledAxis& axis, int32_t at,
                             bool edges, uint32_t (&row)[2 * C]) {
    uint32_t first[C], last[C], sums[2 * C][4];
    pixels.channels(0, first);
    pixels.channels(1, last);
#pragma unroll
    for (int i = 0; i < kDoublesColumns; ++i) {
        // Windows begin every sample; an odd result's is that of the next even one.
        const int skipped = i / 2 + i % 2;
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const uint32_t window =
                skipped < 4 ? __funnelshift_r(first[c], last[c], 8 * skipped) : last[c];
            sums[(i * C + c) / 4][(i * C + c) % 4] =
                add_products(window, i % 2 ? axis.odd : axis.even, 64);
        }
    }
#pragma unroll
    for (int k = 0; k < 2 * C; ++k) row[k] = pack_sums(sums[k], kCoarseShift);
    if (!edges) return;
#pragma unroll
    for (int i = 0; i < kDoublesColumns; ++i) {
        if (!axis.is_edge(at + i)) continue;
        const int4 digits = axis.edge(at + i);
        const int skipped = i / 2 + i % 2;
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const int n = i * C + c;
            const uint32_t window =
                skipped < 4 ? __funnelshift_r(first[c], last[c], 8 * skipped) : last[c];
            row[n / 4] = __byte_perm(row[n / 4], edge_sample(window, digits),
                                     0x3210 & ~(0xf << n % 4 * 4) | 4 << n % 4 * 4);
        }
    }
}

// A warp's part of the result. Its first row and column are even ones of the whole result, so they
// may lie just outside of what is wanted.
template <class W>
struct DoublesPart {
    static constexpr int C = W::In::kChannels;
    static constexpr int kWords = 2 * C;
    using Out = decltype(static_cast<const W*>(nullptr)->after(typename W::In{}));
    static constexpr bool kStaged = !W::kPlanarOut && sizeof(typename Out::Sample) == 1;
    const W& work;
    const ResampleParams& params;
    const Image& dst;
    uint32_t* stage;  // a row of it
    int32_t x;
    int32_t y;
    // The part before another one ends where that begins.
    int32_t end_x;
    int32_t end_y;

    template <class R>
    CVCLI_FN void make(const R& reader) const {
        const Frame& frame = params.frame;
        const DoubledAxis across(params.x, frame.width), down(params.y, frame.height);
        const int32_t left = frame.x0 + x, top = frame.y0 + y;
        const bool edges =
            left < kDoublesEdge || left + kDoublesWidth > across.length - kDoublesEdge;
        const int32_t source_x = left / 2 + lane() * (kDoublesColumns / 2) - 2;
        const int32_t source_y = top / 2 - 2;
        const int rows = (end_y - y) / 2 + 4;
        uint32_t window[4 * kWords] = {};
        EightPixels<C, R> next;
        next.load(reader, frame, source_y, source_x);
#pragma unroll 1
        for (int k = 0; k < rows; ++k) {
            const EightPixels<C, R> pixels = next;
            next.load(reader, frame, source_y + k + 1, source_x);
            uint32_t row[kWords];
            double_columns(pixels, across, left + lane() * kDoublesColumns, edges, row);
#pragma unroll
            for (int n = 0; n < 4 * kWords; ++n) {
                window[n] = __byte_perm(window[n], row[n / 4], 0x4321 + (n % 4 << 12));
            }
            const int32_t at = y + 2 * (k - 3);
            if (k > 3) emit(window, down, down.odd, at - 1);
            if (k >= 3 && at < end_y) emit(window, down, down.even, at);
        }
        if (end_x - x > kDoublesWidth) make_column(reader, x + kDoublesWidth);
    }

  private:
    // One column more, a pixel a lane.
    template <class R>
    CVCLI_FN void make_column(const R& reader, int32_t at) const {
        const Frame& frame = params.frame;
#pragma unroll 1
        for (int32_t row = larger(y, 0) + lane(); row < end_y; row += kWarp) {
            work.write(dst, row, at,
                       resampled(typename W::In{}, reader, params, frame.y0 + row, frame.x0 + at));
        }
    }
    CVCLI_FN void emit(const uint32_t (&window)[4 * kWords], const DoubledAxis& axis,
                       int32_t weights, int32_t row) const {
        if (row < 0) return;
        uint32_t out[kWords];
        const int32_t number = params.frame.y0 + row;
        if (axis.is_edge(number)) {
            const int4 digits = axis.edge(number);
#pragma unroll
            for (int k = 0; k < kWords; ++k) {
                out[k] = 0;
#pragma unroll
                for (int n = 0; n < 4; ++n) {
                    out[k] |= edge_sample(window[4 * k + n], digits) << (8 * n);
                }
            }
        } else {
#pragma unroll
            for (int k = 0; k < kWords; ++k) {
                uint32_t sums[4];
#pragma unroll
                for (int n = 0; n < 4; ++n) sums[n] = add_products(window[4 * k + n], weights, 64);
                out[k] = pack_sums(sums, kCoarseShift);
            }
        }
        if constexpr (W::kPlainOut) {
            store<C>(out, row);
        } else {
            finish(out, row);
        }
    }
    // Through the steps after; bytes that stay together leave by the stage too.
    CVCLI_FN void finish(const uint32_t (&words)[kWords], int32_t row) const {
        const int32_t from = x + lane() * kDoublesColumns;
        if constexpr (kStaged) {
            constexpr int channels = Out::kChannels;
            uint32_t out[2 * channels] = {};
#pragma unroll
            for (int i = 0; i < kDoublesColumns; ++i) {
                const Out pixel = work.after(pixel_at(words, i));
#pragma unroll
                for (int c = 0; c < channels; ++c) {
                    const int n = i * channels + c;
                    out[n / 4] |= uint32_t{pixel.v[c]} << (8 * (n % 4));
                }
            }
            store<channels>(out, row);
        } else {
#pragma unroll
            for (int i = 0; i < kDoublesColumns; ++i) {
                if (from + i >= 0 && from + i < end_x) {
                    work.write(dst, row, from + i, pixel_at(words, i));
                }
            }
        }
    }
    CVCLI_FN static typename W::In pixel_at(const uint32_t (&words)[kWords], int i) {
        typename W::In pixel;
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const int n = i * C + c;
            pixel.v[c] = static_cast<uint8_t>(words[n / 4] >> (8 * (n % 4)));
        }
        return pixel;
    }
    // A row through the stage, from where it leaves by chunks.
    template <int Channels>
    CVCLI_FN void store(const uint32_t (&out)[2 * Channels], int32_t row) const {
#pragma unroll
        for (int k = 0; k < 2 * Channels; ++k) stage[lane() * 2 * Channels + k] = out[k];
        __syncwarp();
        const int skipped = x < 0 ? 1 : 0;
        const int bytes = (smaller(end_x - x, kDoublesWidth) - skipped) * Channels;
        uint8_t* to = row_at<uint8_t>(dst, row) + int64_t{x + skipped} * Channels;
        const uint8_t* from = reinterpret_cast<const uint8_t*>(stage) + skipped * Channels;
        constexpr int chunks = kDoublesWidth * Channels / kChunk;
        if (((address(to) | address(from)) & (kChunk - 1)) == 0 && bytes == chunks * kChunk) {
#pragma unroll
            for (int i = 0; i < chunks; i += kWarp) {
                if (i + kWarp > chunks && i + lane() >= chunks) continue;
                reinterpret_cast<uint4*>(to)[i + lane()] =
                    reinterpret_cast<const uint4*>(from)[i + lane()];
            }
        } else {
            emit_forward<uint8_t, Channels>(to, from, bytes, 0, Identity{});
        }
        __syncwarp();
    }
};

template <class W>
CVCLI_FN void resample_doubles(const W& work, const Each<ResampleParams>& each) {
    constexpr int high = kDoublesRows * kBlockWarps;
    // A word past the row may be read.
    using Part = DoublesPart<W>;
    constexpr int words = kDoublesWidth * Part::Out::kChannels / 4 + 4;
    __shared__ __align__(16) uint32_t stages[Part::kStaged ? kBlockWarps : 1][words];
    for_each_tile(
        work.args, high, work.args.dst, [&](int32_t index, int32_t tile_x, int32_t tile_y) {
            const Image dst = work.dst(index);
            const Image src = work.src(index);
            const ResampleParams& params = work.params(each, index);
            const Frame& frame = params.frame;
            const int warp = static_cast<int>(threadIdx.x) / kWarp;
            const int32_t x = tile_x * kDoublesWidth, y = tile_y * high + warp * kDoublesRows;
            if (x >= dst.width || y >= dst.height) return;
            // The last parts take a row or column more, where all begin one earlier.
            const int32_t right = x + kDoublesWidth, bottom = y + kDoublesRows;
            const int32_t end_x = right < dst.width ? right - frame.x0 % 2 : dst.width;
            const int32_t end_y = bottom < dst.height ? bottom - frame.y0 % 2 : dst.height;
            const auto reader = work.reader(src, index);
            const Part part = {work,
                               params,
                               dst,
                               stages[Part::kStaged ? warp : 0],
                               x - frame.x0 % 2,
                               y - frame.y0 % 2,
                               end_x,
                               end_y};
            part.make(reader);
        });
}

}  // namespace cvcli
