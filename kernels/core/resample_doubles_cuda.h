// Twice the rows and columns of an 8-bit image, each result from four neighbours with weights of
// seven bits. A thread keeps, for eight columns, the bytes of the last four rows it has made; each
// source row moves one in, and then gives the results below and above it.
#pragma once

#include "core/resample_points_cuda.h"

namespace cvcli {

constexpr int kDoublesColumns = 8;  // a thread's
constexpr int kDoublesRows = 32;    // a warp's
constexpr int kDoublesWidth = kDoublesColumns * kWarp;
// Results so near to an edge have weights of their own.
constexpr int kDoublesEdge = 3;

// The sum of four unsigned bytes by signed ones.
CVCLI_FN uint32_t add_signed(uint32_t samples, int32_t weights, uint32_t sum) {
#if defined(CVCLI_EMULATED)
    const uint32_t less = add_products(samples ^ kSigns, weights, sum);
    return add_products(0x40404040u, weights, add_products(0x40404040u, weights, less));
#else
    asm("dp4a.u32.s32 %0, %0, %1, %2;" : "+r"(samples) : "r"(weights), "r"(sum));
    return samples;
#endif
}

// Results from four neighbouring samples, two before the first of an even one.
struct DoubleWeights {
    int32_t even;
    int32_t odd;
};

CVCLI_FN DoubleWeights double_weights(const ResampleAxis& axis) {
    return {axis.words, axis.reach};
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

// The samples of eight columns, a word for each four of them as they lie.
template <int C, class R>
CVCLI_FN void double_columns(const EightPixels<C, R>& pixels, DoubleWeights weights,
                             uint32_t (&row)[2 * C]) {
    uint32_t first[C], last[C], sums[2 * C][4];
    pixels.channels(0, first);
    pixels.channels(1, last);
#pragma unroll
    for (int c = 0; c < C; ++c) {
        uint32_t window = first[c];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int even = 2 * i * C + c, odd = even + C;
            sums[even / 4][even % 4] = add_signed(window, weights.even, 64);
            window = i < 3 ? __funnelshift_r(first[c], last[c], 8 * i + 8) : last[c];
            sums[odd / 4][odd % 4] = add_signed(window, weights.odd, 64);
        }
    }
#pragma unroll
    for (int k = 0; k < 2 * C; ++k) row[k] = pack_sums(sums[k], kCoarseShift);
}

// A warp's part of the result. Its first row and column are even ones of the whole result, so they
// may lie just outside of what is wanted.
template <class W>
struct DoublesPart {
    static constexpr int C = W::In::kChannels;
    static constexpr int kWords = 2 * C;
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
        const DoubleWeights across = double_weights(params.x), down = double_weights(params.y);
        const int32_t source_x = (frame.x0 + x) / 2 + lane() * (kDoublesColumns / 2) - 2;
        const int32_t source_y = (frame.y0 + y) / 2 - 2;
        const int rows = (end_y - y) / 2 + 4;
        uint32_t window[4 * kWords] = {};
        EightPixels<C, R> next;
        next.load(reader, frame, source_y, source_x);
#pragma unroll 1
        for (int k = 0; k < rows; ++k) {
            const EightPixels<C, R> pixels = next;
            next.load(reader, frame, source_y + k + 1, source_x);
            uint32_t row[kWords];
            double_columns(pixels, across, row);
#pragma unroll
            for (int n = 0; n < 4 * kWords; ++n) {
                window[n] = __byte_perm(window[n], row[n / 4], 0x4321 + (n % 4 << 12));
            }
            const int32_t at = y + 2 * (k - 3);
            if (k > 3) emit(window, down.odd, at - 1);
            if (k >= 3 && at < end_y) emit(window, down.even, at);
        }
    }
    template <class R>
    CVCLI_FN void mend(const R& reader) const {
        const Frame& frame = params.frame;
        const int32_t width = 2 * frame.width, height = 2 * frame.height;
        const int32_t left = frame.x0 + x, top = frame.y0 + y;
        const int32_t right = frame.x0 + end_x, bottom = frame.y0 + end_y;
        const bool rows = top < kDoublesEdge || bottom > height - kDoublesEdge;
        const bool columns =
            left < kDoublesEdge || right > width - kDoublesEdge || end_x - x > kDoublesWidth;
        if (!rows && !columns) return;
        __syncwarp();
        const auto in_edge = [](int32_t at, int32_t length) {
            return at < kDoublesEdge || at >= length - kDoublesEdge;
        };
#pragma unroll 1
        for (int32_t at_y = larger(y, 0); at_y < end_y; ++at_y) {
            const bool all = in_edge(frame.y0 + at_y, height);
            if (!all && !columns) continue;
#pragma unroll 1
            for (int32_t at_x = larger(x, 0) + lane(); at_x < end_x; at_x += kWarp) {
                if (all || at_x - x >= kDoublesWidth || in_edge(frame.x0 + at_x, width)) {
                    work.write(dst, at_y, at_x,
                               resampled(typename W::In{}, reader, params, frame.y0 + at_y,
                                         frame.x0 + at_x));
                }
            }
        }
    }

  private:
    CVCLI_FN void emit(const uint32_t (&window)[4 * kWords], int32_t weights, int32_t row) const {
        uint32_t out[kWords];
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
            uint32_t sums[4];
#pragma unroll
            for (int n = 0; n < 4; ++n) sums[n] = add_signed(window[4 * k + n], weights, 64);
            out[k] = pack_sums(sums, kCoarseShift);
        }
        if (row < 0) return;
        if constexpr (W::kPlainOut) {
            store(out, row);
        } else {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                uint32_t four[C];
#pragma unroll
                for (int c = 0; c < C; ++c) four[c] = out[half * C + c];
                write_some(four, row, x + lane() * kDoublesColumns + 4 * half);
            }
        }
    }
    CVCLI_FN void write_some(const uint32_t (&four)[C], int32_t row, int32_t from) const {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (from + i >= 0 && from + i < end_x)
                work.write(dst, row, from + i, pixel_of(four, i));
        }
    }
    // A row through the stage, from where it leaves by chunks.
    CVCLI_FN void store(const uint32_t (&out)[kWords], int32_t row) const {
#pragma unroll
        for (int k = 0; k < kWords; ++k) stage[lane() * kWords + k] = out[k];
        __syncwarp();
        const int skipped = x < 0 ? 1 : 0;
        const int bytes = (smaller(end_x - x, kDoublesWidth) - skipped) * C;
        uint8_t* to = row_at<uint8_t>(dst, row) + int64_t{x + skipped} * C;
        const uint8_t* from = reinterpret_cast<const uint8_t*>(stage) + skipped * C;
        if (((address(to) | address(from)) & (kChunk - 1)) == 0 && bytes == kDoublesWidth * C) {
            constexpr int chunks = kDoublesWidth * C / kChunk;
#pragma unroll
            for (int i = 0; i < chunks; i += kWarp) {
                if (i + kWarp > chunks && i + lane() >= chunks) continue;
                reinterpret_cast<uint4*>(to)[i + lane()] =
                    reinterpret_cast<const uint4*>(from)[i + lane()];
            }
        } else {
            emit_forward<uint8_t, C>(to, from, bytes, 0, Identity{});
        }
        __syncwarp();
    }
};

template <class W>
CVCLI_FN void resample_doubles(const W& work, const Each<ResampleParams>& each) {
    constexpr int C = W::In::kChannels;
    constexpr int high = kDoublesRows * kBlockWarps;
    // A word past the row may be read.
    constexpr int words = kDoublesWidth * C / 4 + 4;
    __shared__ __align__(16) uint32_t stages[W::kPlainOut ? kBlockWarps : 1][words];
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
            const DoublesPart<W> part = {work,
                                         params,
                                         dst,
                                         stages[W::kPlainOut ? warp : 0],
                                         x - frame.x0 % 2,
                                         y - frame.y0 % 2,
                                         end_x,
                                         end_y};
            part.make(reader);
            part.mend(reader);
        });
}

}  // namespace cvcli
