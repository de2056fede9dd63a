// A tile of an 8-bit resampling. Source pixels go into shared memory channel by channel, so that
// one word holds four neighbouring samples, and one instruction adds four products with weights of
// a byte. Rows are made four at a time, so that a word of what is between holds four rows of one
// column, and the second pass is like the first.
#pragma once

#include "core/work_cuda.h"

namespace cvcli {

constexpr uint32_t kSigns = 0x80808080u;  // flips unsigned bytes into signed ones less 128
constexpr int kCoarseShift = 7;           // coarse weights are in units of 2^-7

CVCLI_FN uint32_t saturated(uint32_t sum, int shift) {
    const int32_t value = static_cast<int32_t>(sum) >> shift;
    return static_cast<uint32_t>(smaller(larger(value, 0), 255));
}

// Four sums shifted, saturated and put together.
CVCLI_FN uint32_t pack_sums(const uint32_t (&sums)[4], int shift) {
#if defined(CVCLI_EMULATED)
    return saturated(sums[0], shift) | saturated(sums[1], shift) << 8 |
           saturated(sums[2], shift) << 16 | saturated(sums[3], shift) << 24;
#else
    uint32_t upper, out;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;"
        : "=r"(upper)
        : "r"(static_cast<int32_t>(sums[3]) >> shift), "r"(static_cast<int32_t>(sums[2]) >> shift));
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;"
        : "=r"(out)
        : "r"(static_cast<int32_t>(sums[1]) >> shift), "r"(static_cast<int32_t>(sums[0]) >> shift),
          "r"(upper));
    return out;
#endif
}

CVCLI_FN uint32_t add_products(uint32_t samples, int32_t weights, uint32_t sum) {
    return static_cast<uint32_t>(
        __dp4a(static_cast<int>(samples), static_cast<int>(weights), static_cast<int>(sum)));
}

// Four pixels as they lie, into one word a channel.
CVCLI_FN void split_channels(uint32_t (&)[1]) {}

CVCLI_FN void split_channels(uint32_t (&w)[2]) {
    const uint32_t first = __byte_perm(w[0], w[1], 0x6420);
    w[1] = __byte_perm(w[0], w[1], 0x7531);
    w[0] = first;
}

CVCLI_FN void split_channels(uint32_t (&w)[3]) {
    const uint32_t a = __byte_perm(__byte_perm(w[0], w[1], 0x0630), w[2], 0x5210);
    const uint32_t b = __byte_perm(__byte_perm(w[0], w[1], 0x0741), w[2], 0x6210);
    const uint32_t c = __byte_perm(__byte_perm(w[0], w[1], 0x0052), w[2], 0x7410);
    w[0] = a;
    w[1] = b;
    w[2] = c;
}

CVCLI_FN void split_channels(uint32_t (&w)[4]) {
    const uint32_t a = __byte_perm(w[0], w[1], 0x5140);
    const uint32_t b = __byte_perm(w[2], w[3], 0x5140);
    const uint32_t c = __byte_perm(w[0], w[1], 0x7362);
    const uint32_t d = __byte_perm(w[2], w[3], 0x7362);
    w[0] = __byte_perm(a, b, 0x5410);
    w[1] = __byte_perm(a, b, 0x7632);
    w[2] = __byte_perm(c, d, 0x5410);
    w[3] = __byte_perm(c, d, 0x7632);
}

// Four pixels from byte `offset` of a row on; nothing outside the row is read.
template <int C>
CVCLI_FN void load_words(const uint8_t* row, int32_t row_bytes, int32_t offset,
                         uint32_t (&words)[C]) {
    const int32_t lead = static_cast<int32_t>(address(row + offset) & 3);
    const uint32_t* from = reinterpret_cast<const uint32_t*>(row + offset - lead);
    if (lead == 0 && offset + 4 * C <= row_bytes) {
#pragma unroll
        for (int i = 0; i < C; ++i) words[i] = read_only(from + i);
    } else if (offset >= lead && offset - lead + 4 * C + 4 <= row_bytes) {
        uint32_t low = read_only(from);
#pragma unroll
        for (int i = 0; i < C; ++i) {
            const uint32_t high = read_only(from + i + 1);
            words[i] = __funnelshift_r(low, high, 8 * lead);
            low = high;
        }
    } else {
#pragma unroll 1
        for (int i = 0; i < 4 * C; ++i) {
            const uint32_t byte = offset + i < row_bytes ? read_only(row + offset + i) : 0;
#pragma unroll
            for (int k = 0; k < C; ++k) {
                if (k == i / 4) words[k] = (i % 4 ? words[k] : 0) | byte << (8 * (i % 4));
            }
        }
    }
}

// Pixels x to x + 3 of row y of what a pattern reads, one word a channel; 0 where there is none.
template <int C, class R>
CVCLI_FN void load_four(const R& reader, int32_t width, int32_t y, int32_t x,
                        uint32_t (&words)[C]) {
    if constexpr (R::kDirect) {
        load_words(row_at<const uint8_t>(reader.src, y), width * C, x * C, words);
        return split_channels(words);
    }
    if constexpr (R::kBytes) {
        const Axis& axis = reader.move.x;
        const int32_t at_y = axis_at(reader.move.y, y);
        if (at_y >= 0 && x >= axis.run_begin && x + 4 <= axis.run_end) {
            const bool forward = axis.run_step > 0;
            const int32_t first = run_at(axis, forward ? x : x + 3);
            load_words(row_at<const uint8_t>(reader.src, at_y), reader.src.width * C, first * C,
                       words);
            split_channels(words);
#pragma unroll
            for (int c = 0; c < C; ++c) {
                if (!forward) words[c] = __byte_perm(words[c], 0, 0x0123);
            }
            return;
        }
    }
#pragma unroll
    for (int c = 0; c < C; ++c) words[c] = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if (x + i >= width) return;
        const Pixel<uint8_t, C> pixel = reader.at(y, x + i);
#pragma unroll
        for (int c = 0; c < C; ++c) words[c] |= uint32_t{pixel.v[c]} << (8 * i);
    }
}

// Sums of N columns of words, each from its own place, by the same or by own weights: those of
// four bytes of fine weights make three sums.
template <int N, int J, class Word, class Weights>
CVCLI_FN void sum_words(uint32_t (&sums)[N], int4 head, bool coarse, const Word& word,
                        const Weights& weights) {
    if (coarse) {
#pragma unroll
        for (int n = 0; n < N; ++n) sums[n] = static_cast<uint32_t>(head.z);
#pragma unroll
        for (int j = 0; j < J; ++j) {
            const int32_t weight = weights(j).w;
#pragma unroll
            for (int n = 0; n < N; ++n) sums[n] = add_products(word(n, j), weight, sums[n]);
        }
        return;
    }
    uint32_t upper[N] = {}, middle[N] = {};
#pragma unroll
    for (int n = 0; n < N; ++n) sums[n] = static_cast<uint32_t>(head.y);
#pragma unroll
    for (int j = 0; j < J; ++j) {
        const int4 weight = weights(j);
#pragma unroll
        for (int n = 0; n < N; ++n) {
            const uint32_t samples = word(n, j);
            upper[n] = add_products(samples, weight.x, upper[n]);
            middle[n] = add_products(samples, weight.y, middle[n]);
            sums[n] = add_products(samples, weight.z, sums[n]);
        }
    }
#pragma unroll
    for (int n = 0; n < N; ++n) sums[n] += (upper[n] << 16) + (middle[n] << 8);
}

CVCLI_FN const int4* records_of(const ResampleAxis& axis, int32_t index) {
    return reinterpret_cast<const int4*>(axis.records) + int64_t{index} * (1 + axis.words);
}

CVCLI_FN int32_t end_of(const ResampleAxis& axis, int32_t index) {
    const int32_t* span = axis.spans + 2 * int64_t{index};
    return read_only(span) + read_only(span + 1);
}

// Width and Height are the tile in pixels, Span the words of a channel of a source row it needs,
// Quads the fours of source rows, Batch how many of those are in shared memory at once; records
// have Jx and Jy words.
template <int C, int Width, int Height, int Span, int Quads, int Batch, int Jx, int Jy>
struct ByteTile {
    static constexpr int kSamples = Width * C;
    static constexpr int kWords = kSamples / 4;
    static constexpr int kPitch = Quads | 1;  // odd: neighbouring columns are in different banks
    // Words past the end meet weights of zero.
    uint32_t raw[Batch * 4 * C * Span + Jx];
    uint32_t mid[kSamples * kPitch + Jy];
    int4 rows[Height * (1 + Jy)];

    // Columns lie so that those of a result word's four samples are far apart, and those of
    // neighbouring words side by side.
    CVCLI_FN static int column(int sample) { return (sample % 4 * kWords + sample / 4) * kPitch; }
};

// One image's tile: where it begins in the result and in the source, and how much of it there is.
struct TilePlace {
    int32_t x, y, width, height;
    int32_t source_x, source_y, end_x, end_y;
};

// The fours of pixels of some source rows that one tile needs.
template <int C, int Span, int Batch, class R>
struct BatchLoad {
    const R& reader;
    uint32_t* raw;
    const TilePlace& place;
    int32_t width;
    int32_t first_row;

    // Calls each(row, group) for all of them, so many of a thread's at a time.
    template <int Unroll, class Function>
    CVCLI_FN void for_each(const Function& each) const {
        const int groups = (place.end_x - place.source_x + 3) / 4;
#pragma unroll Unroll
        for (int i = threadIdx.x; i < Batch * 4 * Span; i += kBlockThreads) {
            const int row = i / Span;
            const int group = i % Span;
            if (group < groups && first_row + row < place.end_y) each(row, group);
        }
    }
    CVCLI_FN void store(int row, int group, const uint32_t (&words)[C]) const {
#pragma unroll
        for (int c = 0; c < C; ++c) raw[(row * C + c) * Span + group] = words[c] ^ kSigns;
    }
    CVCLI_FN void load_any(int row, int group) const {
        uint32_t words[C];
        load_four(reader, width, first_row + row, place.source_x + 4 * group, words);
        store(row, group, words);
    }
    // Rows as they lie, by words; where those would leave the row, byte by byte.
    template <bool Shifted>
    CVCLI_FN void load_rows() const {
        constexpr int more = Shifted ? 4 : 0;
        const int32_t row_bytes = width * C;
        const auto whole = [&](int32_t offset, int32_t lead) {
            return offset >= lead && offset - lead + 4 * C + more <= row_bytes;
        };
        const auto lead_of = [&](const uint8_t* at) {
            return Shifted ? static_cast<int32_t>(address(at) & 3) : 0;
        };
        for_each<4>([&](int row, int group) {
            const int32_t offset = (place.source_x + 4 * group) * C;
            const uint8_t* at = row_at<const uint8_t>(reader.src, first_row + row) + offset;
            const int32_t lead = lead_of(at);
            if (!whole(offset, lead)) return;
            const uint32_t* from = reinterpret_cast<const uint32_t*>(at - lead);
            uint32_t words[C + 1];
#pragma unroll
            for (int c = 0; c < (Shifted ? C + 1 : C); ++c) words[c] = read_only(from + c);
            uint32_t four[C];
#pragma unroll
            for (int c = 0; c < C; ++c) {
                four[c] = Shifted ? __funnelshift_r(words[c], words[c + 1], 8 * lead) : words[c];
            }
            split_channels(four);
            store(row, group, four);
        });
        const bool at_left = Shifted && place.source_x == 0;
        if (!at_left && ((place.end_x + 3) & ~3) * C + more <= row_bytes) return;
        for_each<1>([&](int row, int group) {
            const int32_t offset = (place.source_x + 4 * group) * C;
            const uint8_t* at = row_at<const uint8_t>(reader.src, first_row + row) + offset;
            if (!whole(offset, lead_of(at))) load_any(row, group);
        });
    }
    CVCLI_FN void operator()() const {
        if constexpr (R::kDirect) {
            const uint64_t places = address(reader.src.data) | reader.src.row_pitch;
            (places & 3) ? load_rows<true>() : load_rows<false>();
        } else {
            for_each<2>([&](int row, int group) { load_any(row, group); });
        }
    }
};

template <int Width, int Height, int Span, int Quads, int Batch, int Jx, int Jy, class W>
CVCLI_FN void resample_bytes_tile(const W& work, const ResampleParams& params, const Image& src,
                                  const Image& dst, int32_t index, TilePlace place) {
    constexpr int C = W::In::kChannels;
    using Tile = ByteTile<C, Width, Height, Span, Quads, Batch, Jx, Jy>;
    __shared__ __align__(16) Tile tile;
    const auto reader = work.reader(src, index);
    const int32_t thread = static_cast<int32_t>(threadIdx.x);
    const int32_t ix = params.frame.x0 + place.x;
    const int32_t iy = params.frame.y0 + place.y;
    const int32_t column = thread % Width;
    const int32_t quad = thread / Width;

    const int4* own = records_of(params.x, ix + smaller(column, place.width - 1));
    const int4 head = __ldg(own);
    int4 weights[Jx];
#pragma unroll
    for (int j = 0; j < Jx; ++j) weights[j] = __ldg(own + 1 + j);
    const int4* rows = records_of(params.y, iy);
    place.source_x = __ldg(&records_of(params.x, ix)->x);
    place.source_y = __ldg(&rows->x);
    place.end_x = end_of(params.x, ix + place.width - 1);
    place.end_y = end_of(params.y, iy + place.height - 1);
    bool fine_row = false;
    __syncthreads();  // the tile before has been read
    for (int i = thread; i < place.height * (1 + Jy); i += kBlockThreads) {
        tile.rows[i] = __ldg(rows + i);
        if (i % (1 + Jy) == 0 && !tile.rows[i].w) fine_row = true;
    }
    const bool coarse_x = !__syncthreads_or(!head.w);
    const bool coarse_y = !__syncthreads_or(fine_row);
    const int shift_x = coarse_x ? kCoarseShift : kWeightBits;
    const int shift_y = coarse_y ? kCoarseShift : kWeightBits;
    const int quads = (place.end_y - place.source_y + 3) / 4;
    const uint32_t* raw = tile.raw + quad * 4 * C * Span + (head.x - place.source_x) / 4;
#pragma unroll 1
    for (int first = 0; first < quads; first += Batch) {
        BatchLoad<C, Span, Batch, decltype(reader)>{reader, tile.raw, place, params.frame.width,
                                                    place.source_y + 4 * first}();
        __syncthreads();
        if (quad < Batch && first + quad < quads && column < place.width) {
#pragma unroll
            for (int c = 0; c < C; ++c) {
                uint32_t sums[4];
                sum_words<4, Jx>(
                    sums, head, coarse_x, [&](int n, int j) { return raw[(n * C + c) * Span + j]; },
                    [&](int j) { return weights[j]; });
                tile.mid[Tile::column(column * C + c) + first + quad] =
                    pack_sums(sums, shift_x) ^ kSigns;
            }
        }
        __syncthreads();
    }

    if constexpr (W::kPlainOut) {
#pragma unroll 1
        for (int i = thread; i < place.height * Tile::kWords; i += kBlockThreads) {
            const int y = i / Tile::kWords;
            const int word = i % Tile::kWords;
            const int left = place.width * C - 4 * word;
            if (left <= 0) continue;
            const int4* record = tile.rows + y * (1 + Jy);
            const uint32_t* mid = tile.mid + word * Tile::kPitch + (record->x - place.source_y) / 4;
            uint32_t sums[4];
            sum_words<4, Jy>(
                sums, *record, coarse_y,
                [&](int n, int j) { return mid[n * Tile::kWords * Tile::kPitch + j]; },
                [&](int j) { return record[1 + j]; });
            const uint32_t bytes = pack_sums(sums, shift_y);
            uint8_t* to = row_at<uint8_t>(dst, place.y + y) + int64_t{place.x} * C + 4 * word;
            if (left >= 4 && (address(to) & 3) == 0) {
                *reinterpret_cast<uint32_t*>(to) = bytes;
            } else {
#pragma unroll
                for (int n = 0; n < 4; ++n) {
                    if (n < left) to[n] = static_cast<uint8_t>(bytes >> (8 * n));
                }
            }
        }
    } else {
#pragma unroll 1
        for (int i = thread; i < place.height * Width; i += kBlockThreads) {
            const int y = i / Width;
            const int x = i % Width;
            if (x >= place.width) continue;
            const int4* record = tile.rows + y * (1 + Jy);
            const uint32_t* mid = tile.mid + (record->x - place.source_y) / 4;
            uint32_t sums[C];
            sum_words<C, Jy>(
                sums, *record, coarse_y,
                [&](int n, int j) { return mid[Tile::column(x * C + n) + j]; },
                [&](int j) { return record[1 + j]; });
            typename W::In pixel;
#pragma unroll
            for (int c = 0; c < C; ++c) {
                pixel.v[c] = static_cast<uint8_t>(saturated(sums[c], shift_y));
            }
            work.write(dst, place.y + y, place.x + x, pixel);
        }
    }
}

template <int Width, int Height, int Span, int Quads, int Batch, int Jx, int Jy, class W>
CVCLI_FN void resample_bytes(const W& work, const Each<ResampleParams>& each) {
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
                      resample_bytes_tile<Width, Height, Span, Quads, Batch, Jx, Jy>(
                          work, work.params(each, index), src, dst, index, place);
                  });
}

}  // namespace cvcli
