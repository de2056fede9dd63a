// A quarter of the pixels of an 8-bit image, each the mean of two means of two, rounded up at
// half: what weights of a half come to. A thread makes four pixels of one row, in registers.
#pragma once

#include "core/resample_bytes_cuda.h"

namespace cvcli {

constexpr int kHalvesWidth = 4 * kWarp;

// Bytes half a sum, rounded up.
CVCLI_FN uint32_t mean_bytes(uint32_t a, uint32_t b) {
    return (a | b) - (((a ^ b) >> 1) & 0x7f7f7f7fu);
}

// The means of pixels 0 and 1, 2 and 3, 4 and 5, 6 and 7.
CVCLI_FN void mean_pixels(const uint32_t (&w)[2], uint32_t (&out)[1]) {
    out[0] = mean_bytes(__byte_perm(w[0], w[1], 0x6420), __byte_perm(w[0], w[1], 0x7531));
}

CVCLI_FN void mean_pixels(const uint32_t (&w)[4], uint32_t (&out)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        out[i] = mean_bytes(__byte_perm(w[2 * i], w[2 * i + 1], 0x5410),
                            __byte_perm(w[2 * i], w[2 * i + 1], 0x7632));
    }
}

CVCLI_FN void mean_pixels(const uint32_t (&w)[6], uint32_t (&out)[3]) {
    const uint32_t even[3] = {__byte_perm(w[0], w[1], 0x6210),
                              __byte_perm(__byte_perm(w[1], w[2], 0x0043), w[3], 0x5410),
                              __byte_perm(__byte_perm(w[4], w[5], 0x4320), w[3], 0x3216)};
    const uint32_t odd[3] = {__byte_perm(__byte_perm(w[0], w[1], 0x0543), w[2], 0x5210),
                             __byte_perm(__byte_perm(w[2], w[3], 0x0732), w[4], 0x4210),
                             __byte_perm(w[4], w[5], 0x7651)};
#pragma unroll
    for (int i = 0; i < 3; ++i) out[i] = mean_bytes(even[i], odd[i]);
}

CVCLI_FN void mean_pixels(const uint32_t (&w)[8], uint32_t (&out)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) out[i] = mean_bytes(w[2 * i], w[2 * i + 1]);
}

// The pixel at place i of some that lie side by side.
template <class P, int N>
CVCLI_FN P pixel_at(const uint32_t (&words)[N], int i) {
    P pixel;
#pragma unroll
    for (int c = 0; c < P::kChannels; ++c) {
        const int byte = i * P::kChannels + c;
        pixel.v[c] = static_cast<uint8_t>(words[byte / 4] >> (8 * (byte % 4)));
    }
    return pixel;
}

// Eight pixels of two rows from x on through the steps before, by whole words; false where there
// are none.
template <int C, class R>
CVCLI_FN bool load_through(const R& reader, int32_t width, int32_t y, int32_t x,
                           uint32_t (&words)[2][2 * C]) {
    constexpr int all = 2 * R::Raw::kChannels;
    const uint8_t* from = row_at<const uint8_t>(reader.src, y) + x * R::Raw::kChannels;
    if ((address(from) | reader.src.row_pitch) & 7 || x + 8 > width) return false;
    uint32_t raw[2][all];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int i = 0; i < all; i += 2) {
            const uint2 two = __ldg(reinterpret_cast<const uint2*>(from) + i / 2);
            raw[r][i] = two.x, raw[r][i + 1] = two.y;
        }
        from += reader.src.row_pitch;
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int i = 0; i < 2 * C; ++i) words[r][i] = 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const Pixel<uint8_t, C> pixel = reader.before(pixel_at<typename R::Raw>(raw[r], i));
#pragma unroll
            for (int c = 0; c < C; ++c) {
                const int byte = i * C + c;
                words[r][byte / 4] |= uint32_t{pixel.v[c]} << (8 * (byte % 4));
            }
        }
    }
    return true;
}

// Eight pixels of row y of what a pattern reads from x on, as they lie; 0 where there is none.
template <int C, class R>
CVCLI_FN void load_eight(const R& reader, int32_t width, int32_t y, int32_t x,
                         uint32_t (&words)[2 * C]) {
    if constexpr (R::kDirect) {
        const uint8_t* row = row_at<const uint8_t>(reader.src, y);
        const int32_t offset = x * C;
        if ((address(row + offset) & 7) == 0 && offset + 8 * C <= width * C) {
            const uint2* from = reinterpret_cast<const uint2*>(row + offset);
#pragma unroll
            for (int i = 0; i < C; ++i) {
                const uint2 two = __ldg(from + i);
                words[2 * i] = two.x;
                words[2 * i + 1] = two.y;
            }
            return;
        }
        uint32_t halves[2][C];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            load_words(row, width * C, offset + h * 4 * C, halves[h]);
#pragma unroll
            for (int i = 0; i < C; ++i) words[h * C + i] = halves[h][i];
        }
    } else {
#pragma unroll
        for (int i = 0; i < 2 * C; ++i) words[i] = 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            if (x + i >= width) return;
            const Pixel<uint8_t, C> pixel = reader.at(y, x + i);
#pragma unroll
            for (int c = 0; c < C; ++c) {
                const int byte = i * C + c;
                words[byte / 4] |= uint32_t{pixel.v[c]} << (8 * (byte % 4));
            }
        }
    }
}

template <int C, class R>
CVCLI_FN void load_rows(const R& reader, int32_t width, int32_t y, int32_t x,
                        uint32_t (&words)[2][2 * C]) {
    if constexpr (!R::kMoved && R::kPacked && R::kSteps && sizeof(typename R::Raw::Sample) == 1) {
        if (load_through<C>(reader, width, y, x, words)) return;
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) load_eight<C>(reader, width, y + r, x, words[r]);
}

// Four pixels side by side, of which the image has `count`.
template <int C>
CVCLI_FN void store_four(const Image& dst, int32_t y, int32_t x, int32_t count,
                         const uint32_t (&words)[C]) {
    uint8_t* to = row_at<uint8_t>(dst, y) + int64_t{x} * C;
    if (count == 4 && (address(to) & 3) == 0) {
#pragma unroll
        for (int i = 0; i < C; ++i) reinterpret_cast<uint32_t*>(to)[i] = words[i];
        return;
    }
#pragma unroll
    for (int i = 0; i < 4 * C; ++i) {
        if (i < count * C) to[i] = static_cast<uint8_t>(words[i / 4] >> (8 * (i % 4)));
    }
}

// Four result pixels through the steps after; bytes that stay together are stored by words.
template <int C, class W>
CVCLI_FN void write_four(const W& work, const Image& dst, int32_t y, int32_t x, int32_t count,
                         const uint32_t (&words)[C]) {
    using Out = decltype(work.after(typename W::In{}));
    if constexpr (W::kPlainOut) {
        store_four<C>(dst, y, x, count, words);
    } else if constexpr (!W::kPlanarOut && sizeof(typename Out::Sample) == 1) {
        uint32_t out[Out::kChannels] = {};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const Out pixel = work.after(pixel_of(words, i));
#pragma unroll
            for (int c = 0; c < Out::kChannels; ++c) {
                const int byte = i * Out::kChannels + c;
                out[byte / 4] |= uint32_t{pixel.v[c]} << (8 * (byte % 4));
            }
        }
        store_four<Out::kChannels>(dst, y, x, count, out);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (i < count) work.write(dst, y, x + i, pixel_of(words, i));
        }
    }
}

template <class W>
CVCLI_FN void resample_halves(const W& work, const Each<ResampleParams>& each) {
    constexpr int C = W::In::kChannels;
    for_each_tile(
        work.args, kBlockWarps, work.args.dst, [&](int32_t index, int32_t tile_x, int32_t tile_y) {
            const Image src = work.src(index);
            const Image dst = work.dst(index);
            const Frame& frame = work.params(each, index).frame;
            const auto reader = work.reader(src, index);
            const int32_t thread = static_cast<int32_t>(threadIdx.x);
            const int32_t y = tile_y * kBlockWarps + thread / kWarp;
            const int32_t x = tile_x * kHalvesWidth + 4 * lane();
            if (x >= dst.width || y >= dst.height) return;
            uint32_t words[2][2 * C], means[2][C], out[C];
            load_rows<C>(reader, frame.width, 2 * (frame.y0 + y), 2 * (frame.x0 + x), words);
#pragma unroll
            for (int r = 0; r < 2; ++r) mean_pixels(words[r], means[r]);
#pragma unroll
            for (int c = 0; c < C; ++c) out[c] = mean_bytes(means[0][c], means[1][c]);
            write_four(work, dst, y, x, smaller(4, dst.width - x), out);
        });
}

}  // namespace cvcli
