// A tile of an 8-bit resampling. Source pixels go into shared memory channel by channel, so that
// one word holds four neighbouring samples, and one instruction adds four products with weights of
// a byte. Rows are made four at a time, so that a word of what is between holds four rows of one
// column, and the second pass is like the first.
#pragma once

#include "core/resample_load_cuda.h"

namespace cvcli {

constexpr int kCoarseShift = 7;  // coarse weights are in units of 2^-7

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

// The sum of four unsigned bytes by signed ones.
CVCLI_FN uint32_t add_products(uint32_t samples, int32_t weights, uint32_t sum) {
#if defined(CVCLI_EMULATED)
    const auto add = [&](uint32_t bytes) {
        sum =
            static_cast<uint32_t>(__dp4a(static_cast<int>(bytes), weights, static_cast<int>(sum)));
    };
    add(samples ^ 0x80808080u);
    add(0x40404040u);
    add(0x40404040u);
    return sum;
#else
    asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(samples), "r"(weights));
    return sum;
#endif
}

// Sums of N columns of words, each from its own place, by the same or by own weights: those of
// four bytes of fine weights make three sums.
template <int N, int J, class Word, class Weights>
CVCLI_FN void sum_words(uint32_t (&sums)[N], int4 head, bool coarse, int count, const Word& word,
                        const Weights& weights) {
    constexpr int kUnroll = J ? J : 2;  // as many words as J, or else `count`
    if (coarse) {
#pragma unroll
        for (int n = 0; n < N; ++n) sums[n] = static_cast<uint32_t>(head.z);
#pragma unroll kUnroll
        for (int j = 0; j < (J ? J : count); ++j) {
            const int32_t weight = weights(j).w;
#pragma unroll
            for (int n = 0; n < N; ++n) sums[n] = add_products(word(n, j), weight, sums[n]);
        }
        return;
    }
    uint32_t upper[N] = {}, middle[N] = {};
#pragma unroll
    for (int n = 0; n < N; ++n) sums[n] = static_cast<uint32_t>(head.y);
#pragma unroll kUnroll
    for (int j = 0; j < (J ? J : count); ++j) {
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

// Width and Height are the tile in pixels, records of columns have Words words, and a block has
// Bytes of shared memory. All else is known at run time, so that few kernels serve many sizes.
template <int Width, int Height, int Words, int Bytes>
struct ByteNumbers {
    static constexpr int kWidth = Width, kHeight = Height, kWords = Words, kBytes = Bytes;
};

// How a tile's shared memory is cut up. Words past the end of what is there meet weights of zero.
template <class N, int C>
struct ByteRoom {
    static constexpr int kWords = N::kWidth * C / 4;
    int4* rows;     // the records of rows
    int4* columns;  // and of columns
    uint32_t* mid;  // fours of rows made, `pitch` for each sample of a row
    uint32_t* raw;  // source rows, `span` words for each channel, `batch` fours of them at once
    int32_t pitch, span, pad, batch;

    CVCLI_FN ByteRoom(uint32_t* room, const ResampleParams& params)
        : pitch(params.y.reach), span(params.x.reach), batch(params.x.batch) {
        // Neighbouring fours of rows are so many banks apart, an odd number.
        pad = (9 - 4 * C * span) & (kWarp - 1);
        rows = reinterpret_cast<int4*>(room);
        columns = rows + N::kHeight * (1 + params.y.words);
        mid = reinterpret_cast<uint32_t*>(columns + N::kWidth * (1 + N::kWords));
        raw = mid + N::kWidth * C * pitch + params.y.words;
    }
    // Columns lie so that those of a result word's four samples are far apart, and those of
    // neighbouring words side by side; the pitch is odd, so they are in different banks.
    CVCLI_FN int column(int sample) const { return (sample % 4 * kWords + sample / 4) * pitch; }
};

// The two passes of one tile.
template <class N, class W>
struct BytePasses {
    static constexpr int C = W::In::kChannels;
    using Room = ByteRoom<N, C>;
    const W& work;
    const ResampleParams& params;
    const Image& dst;
    Room room;
    SourceTile place;
    bool coarse_x = false;
    bool coarse_y = false;

    CVCLI_FN int32_t first_x() const { return params.frame.x0 + place.x; }
    CVCLI_FN int32_t first_y() const { return params.frame.y0 + place.y; }
    CVCLI_FN int record_words() const { return 1 + params.y.words; }
    // A warp makes some columns of up to four fours of rows: those of one four are words apart that
    // often share a bank.
    CVCLI_FN int lane_columns() const {
        return room.batch >= 4 ? kWarp / 4 : room.batch >= 2 ? kWarp / 2 : kWarp;
    }
    CVCLI_FN int column() const {
        const int wide = lane_columns();
        return (static_cast<int>(threadIdx.x) / kWarp * wide + lane() % wide) % N::kWidth;
    }
    CVCLI_FN int quad() const {
        const int wide = lane_columns();
        const int group = static_cast<int>(threadIdx.x) / kWarp * wide / N::kWidth;
        return group * (kWarp / wide) + lane() / wide;
    }

    CVCLI_FN void find_source() {
        place.source_x = __ldg(&records_of(params.x, first_x())->x);
        place.source_y = __ldg(&records_of(params.y, first_y())->x);
        place.end_x = end_of(params.x, first_x() + place.width - 1);
        place.end_y = end_of(params.y, first_y() + place.height - 1);
    }
    // The records of an axis into shared memory; returns whether all their weights are coarse.
    CVCLI_FN static bool load_records(int4* to, const ResampleAxis& axis, int32_t first,
                                      int count) {
        const int4* from = records_of(axis, first);
        const int words = 1 + axis.words;
        bool fine = false;
        for (int i = threadIdx.x; i < count * words; i += kBlockThreads) {
            const int4 record = __ldg(from + i);
            to[i] = record;
            if (i % words == 0 && !record.w) fine = true;
        }
        return !__syncthreads_or(fine);
    }
    template <class R>
    CVCLI_FN void make_rows(const R& reader) {
        __syncthreads();  // the tile before has been read
        coarse_x = load_records(room.columns, params.x, first_x(), place.width);
        coarse_y = load_records(room.rows, params.y, first_y(), place.height);
        const uint32_t inverse = inverse_of(room.span);
        const int quads = (place.end_y - place.source_y + 3) / 4;
#pragma unroll 1
        for (int first = 0; first < quads; first += room.batch) {
            BatchLoad<C, R>{reader,
                            room.raw,
                            place,
                            params.frame.width,
                            place.source_y + 4 * first,
                            room.span,
                            room.pad,
                            room.batch,
                            inverse}();
            __syncthreads();
            if (quad() < room.batch && first + quad() < quads && column() < place.width) {
                make_quad(first);
            }
            __syncthreads();
        }
    }
    // This thread's column of four rows.
    CVCLI_FN void make_quad(int first) {
        const int4* record = room.columns + column() * (1 + N::kWords);
        const int4 head = record[0];
        int4 weights[N::kWords];
#pragma unroll
        for (int j = 0; j < N::kWords; ++j) weights[j] = record[1 + j];
        const int skipped = (head.x - place.source_x) / 4;
        const uint32_t* raw = room.raw + quad() * (4 * C * room.span + room.pad) + skipped;
#pragma unroll
        for (int c = 0; c < C; ++c) {
            uint32_t sums[4];
            sum_words<4, N::kWords>(
                sums, head, coarse_x, 0,
                [&](int n, int j) { return raw[(n * C + c) * room.span + j]; },
                [&](int j) { return weights[j]; });
            room.mid[room.column(column() * C + c) + first + quad()] =
                pack_sums(sums, coarse_x ? kCoarseShift : kWeightBits);
        }
    }
    // Calls make(y, item, record, mid) for each of the items of each row; mid is where column 0
    // begins.
    template <int items, class Make>
    CVCLI_FN void for_each_item(const Make& make) const {
#pragma unroll 1
        for (int i = threadIdx.x; i < place.height * items; i += kBlockThreads) {
            const int y = i / items;
            const int4* record = room.rows + y * record_words();
            make(y, i % items, record, room.mid + (record->x - place.source_y) / 4);
        }
    }
    CVCLI_FN void make_words() const {
        for_each_item<Room::kWords>([&](int y, int word, const int4* record, const uint32_t* mid) {
            const int left = place.width * C - 4 * word;
            if (left <= 0) return;
            uint32_t sums[4];
            sum_words<4, 0>(
                sums, *record, coarse_y, params.y.words,
                [&](int n, int j) { return mid[(n * Room::kWords + word) * room.pitch + j]; },
                [&](int j) { return record[1 + j]; });
            uint8_t* to = row_at<uint8_t>(dst, place.y + y) + int64_t{place.x} * C + 4 * word;
            store_word(to, left, pack_sums(sums, coarse_y ? kCoarseShift : kWeightBits));
        });
    }
    CVCLI_FN static void store_word(uint8_t* to, int left, uint32_t bytes) {
        if (left >= 4 && (address(to) & 3) == 0) {
            *reinterpret_cast<uint32_t*>(to) = bytes;
            return;
        }
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            if (n < left) to[n] = static_cast<uint8_t>(bytes >> (8 * n));
        }
    }
    CVCLI_FN void make_pixels() const {
        for_each_item<N::kWidth>([&](int y, int x, const int4* record, const uint32_t* mid) {
            if (x >= place.width) return;
            uint32_t sums[C];
            sum_words<C, 0>(
                sums, *record, coarse_y, params.y.words,
                [&](int n, int j) { return mid[room.column(x * C + n) + j]; },
                [&](int j) { return record[1 + j]; });
            typename W::In pixel;
#pragma unroll
            for (int c = 0; c < C; ++c) {
                const int shift = coarse_y ? kCoarseShift : kWeightBits;
                pixel.v[c] = static_cast<uint8_t>(saturated(sums[c], shift));
            }
            work.write(dst, place.y + y, place.x + x, pixel);
        });
    }
};

// Calls each(index, dst, place) for every tile of every image.
template <int Width, int Height, class W, class Function>
CVCLI_FN void for_each_place(const W& work, const Function& each) {
    for_each_tile(work.args, Height, work.args.dst,
                  [&](int32_t index, int32_t tile_x, int32_t tile_y) {
                      const Image dst = work.dst(index);
                      SourceTile place = {};
                      place.x = tile_x * Width;
                      place.y = tile_y * Height;
                      if (place.x >= dst.width) return;
                      place.width = smaller(Width, dst.width - place.x);
                      place.height = smaller(Height, dst.height - place.y);
                      each(index, dst, place);
                  });
}

template <int... Numbers, class W>
CVCLI_FN void resample_bytes(const W& work, const Each<ResampleParams>& each) {
    using N = ByteNumbers<Numbers...>;
    __shared__ __align__(16) uint32_t words[N::kBytes / 4];
    for_each_place<N::kWidth, N::kHeight>(
        work, [&](int32_t index, const Image& dst, const SourceTile& place) {
            const Image src = work.src(index);
            const ResampleParams& params = work.params(each, index);
            BytePasses<N, W> passes = {work, params, dst, {words, params}, place};
            passes.find_source();
            passes.make_rows(work.reader(src, index));
            if constexpr (W::kPlainOut) {
                passes.make_words();
            } else {
                passes.make_pixels();
            }
        });
}

}  // namespace cvcli
