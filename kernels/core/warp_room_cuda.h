// The part of the source that a tile needs, in shared memory.
#pragma once

#include "core/warp_map_cuda.h"

namespace cvcli {

// A pixel in whole words.
template <class T, int C>
struct Cell {
    static constexpr int kWords = (sizeof(T) * C + 3) / 4;
    uint32_t w[kWords];

    CVCLI_FN static Cell of(const Pixel<T, C>& pixel) {
        Cell cell = {};
#pragma unroll
        for (int c = 0; c < C; ++c) {
            if constexpr (sizeof(T) == 4) {
                cell.w[c] = bits_of(pixel.v[c]);
            } else {
                cell.w[c * sizeof(T) / 4] |= uint32_t{pixel.v[c]} << c * sizeof(T) % 4 * 8;
            }
        }
        return cell;
    }
    CVCLI_FN Pixel<T, C> pixel() const {
        Pixel<T, C> pixel;
#pragma unroll
        for (int c = 0; c < C; ++c) {
            if constexpr (sizeof(T) == 4) {
                pixel.v[c] = float_of(w[c]);
            } else {
                pixel.v[c] = static_cast<T>(w[c * sizeof(T) / 4] >> c * sizeof(T) % 4 * 8);
            }
        }
        return pixel;
    }
    // A sample as float32: a whole number is put behind 2^23, and that taken away.
    CVCLI_FN float real(int c) const {
        if constexpr (sizeof(T) == 4) return float_of(w[c]);
        const int byte = c * int(sizeof(T)) % 4;
        const int selector = sizeof(T) == 1 ? 0x7650 | byte : 0x7610 | byte << 4 | byte;
        return float_of(__byte_perm(w[c * sizeof(T) / 4], 0x4b000000u, selector)) - 8388608.0f;
    }
};

// A tap that is read from the image, long to work out: it is there for maps that shrink a lot.
template <class T, int C, class Reader>
CVCLI_CALL Cell<T, C> far_cell(const Reader& reader, const WarpParams& params, int32_t y,
                               int32_t x) {
    const int32_t from_y = border_index(y, params.frame.height, params.border);
    const int32_t from_x = border_index(x, params.frame.width, params.border);
    if (from_y < 0 || from_x < 0) return Cell<T, C>::of(border_pixel<T, C>(params));
    return Cell<T, C>::of(reader.at(from_y, from_x));
}

// Words that an aligned row of three-byte pixels starts with, and four pixels out of them.
CVCLI_FN uint4 four_pixels(const uint32_t* from, int shift) {
    const uint32_t a = read_only(from), b = read_only(from + 1), c = read_only(from + 2);
    const uint32_t d = shift ? read_only(from + 3) : 0;
    const uint32_t x = __funnelshift_r(a, b, shift);
    const uint32_t y = __funnelshift_r(b, c, shift);
    const uint32_t z = __funnelshift_r(c, d, shift);
    return {x, __byte_perm(x, y, 0x6543), __byte_perm(y, z, 0x5432), z >> 8};
}

// Which columns of each row of a box lie between lines along two sides of its outline.
struct Spans {
    float slope[2];
    float low[2];
    float high[2];
    int32_t width;
    int32_t before;
    int32_t after;

    template <int Filter>
    CVCLI_FN static Spans of(const Outline& outline, int32_t width) {
        using R = Reach<Filter>;
        Spans spans = {{}, {}, {}, width, R::kFirst, R::kLast + 1};
        // Rows whose pixels are taps lie so far around those of places.
        const float middle = 0.5f * (1 - R::kFirst - R::kLast);
        const float reach = 0.5f * (1 + R::kLast - R::kFirst) + outline.slack;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const float right = outline.x[1 + 2 * i] - outline.x[0];
            const float down = outline.y[1 + 2 * i] - outline.y[0];
            // A side that is nearly level bounds no columns.
            const float slope = fabsf(down) < 1.0f ? 0.0f : right * near_reciprocal(down);
            float low = outline.x[0] - slope * outline.y[0], high = low;
#pragma unroll
            for (int j = 1; j < 4; ++j) {
                const float at = outline.x[j] - slope * outline.y[j];
                low = fminf(low, at);
                high = fmaxf(high, at);
            }
            const float wide = fabsf(slope) * reach + outline.slack;
            spans.slope[i] = slope;
            spans.low[i] = low + slope * middle - wide;
            spans.high[i] = high + slope * middle + wide;
        }
        return spans;
    }
    CVCLI_FN int32_t begin(int row) const {
        const float at = static_cast<float>(row);
        const float from = fmaxf(fmaf(slope[0], at, low[0]), fmaf(slope[1], at, low[1]));
        return larger(__float2int_rd(from) + before, 0);
    }
    CVCLI_FN int32_t end(int row) const {
        const float at = static_cast<float>(row);
        const float to = fminf(fmaf(slope[0], at, high[0]), fmaf(slope[1], at, high[1]));
        return smaller(__float2int_rd(to) + after, width);
    }
};

template <class T, int C>
struct WarpRoom {
    using Kept = Cell<T, C>;
    static constexpr int kWords = Kept::kWords;
    static constexpr int kRoom = 9216;
    // So many lanes take a row.
    static constexpr int kTeam = 8;
    struct Memory {
        uint4 words[kRoom / 4];
    };
    Memory& memory;
    const Box& box;
    const WarpParams& params;
    int pitch;

    CVCLI_FN WarpRoom(Memory& room, const Box& part, const WarpParams& from)
        : memory(room), box(part), params(from) {
        const int32_t words = smaller(part.width, kRoom) * kWords;
        pitch = words + ((from.bank - words) & (kWarp - 1));
    }
    CVCLI_FN bool fits(int widest) const {
        return box.known && box.width <= smaller(widest, kRoom) &&
               box.height <= smaller(widest, kRoom) && pitch * box.height <= kRoom;
    }
    // Where the box would start if places in it were so much smaller.
    CVCLI_FN const uint8_t* start(int excess) const {
        return reinterpret_cast<const uint8_t*>(words() - excess * (pitch + kWords));
    }
    CVCLI_FN const uint8_t* at(const uint8_t* start, const Place& place) const {
        return start + place.x * (4 * kWords) + place.y * (4 * pitch);
    }
    CVCLI_FN Kept cell(const uint8_t* at, int dy, int dx) const {
        const auto* from = reinterpret_cast<const uint32_t*>(at + dy * (4 * pitch)) + dx * kWords;
        Kept cell;
#pragma unroll
        for (int i = 0; i < kWords; ++i) cell.w[i] = from[i];
        return cell;
    }

    template <class Reader>
    CVCLI_FN void fill(const Reader& reader, const Spans& spans) const {
        const int team = static_cast<int>(threadIdx.x) / kTeam;
        const int member = static_cast<int>(threadIdx.x) % kTeam;
        if constexpr (Reader::kDirect && sizeof(T) == 1 && C == 3) {
            if (holds_fours(reader.src)) return copy_fours(reader.src, spans, team, member);
        }
#pragma unroll 1
        for (int row = team; row < box.height; row += blockDim.x / kTeam) {
            const int32_t y = border_index(box.y + row, params.frame.height, params.border);
            const int32_t end = spans.end(row);
            if constexpr (Reader::kDirect && sizeof(T) == 1 && C == 3) {
                fill_fours(reader, row, y, (spans.begin(row) & ~3) + 4 * member, end);
            } else {
#pragma unroll 2
                for (int at = spans.begin(row) + member; at < end; at += kTeam) {
                    put(row, at, source(reader, y, box.x + at));
                }
            }
        }
    }

  private:
    CVCLI_FN uint32_t* words() const { return &memory.words[0].x; }
    CVCLI_FN void put(int row, int at, const Kept& cell) const {
        uint32_t* to = words() + row * pitch + at * kWords;
#pragma unroll
        for (int i = 0; i < kWords; ++i) to[i] = cell.w[i];
    }
    template <class Reader>
    CVCLI_FN Kept source(const Reader& reader, int32_t y, int32_t x) const {
        const int32_t from = border_index(x, params.frame.width, params.border);
        if (y < 0 || from < 0) return Kept::of(border_pixel<T, C>(params));
        if constexpr (Reader::kDirect && sizeof(T) < 4 && sizeof(T) * C % 4 == 0) {
            const T* at = row_at<const T>(reader.src, y) + int64_t{from} * C;
            if (reinterpret_cast<uint64_t>(at) % 4 == 0) {
                Kept cell;
#pragma unroll
                for (int i = 0; i < kWords; ++i) {
                    cell.w[i] = read_only(reinterpret_cast<const uint32_t*>(at) + i);
                }
                return cell;
            }
        }
        return Kept::of(reader.at(y, from));
    }
    // Whether all of the box lies in the image, as words.
    CVCLI_FN bool holds_fours(const Image& src) const {
        const uint64_t skew =
            reinterpret_cast<uint64_t>(src.data) | static_cast<uint64_t>(src.row_pitch);
        return skew % 4 == 0 && box.x >= 0 && box.y >= 0 &&
               box.x + ((box.width + 3) & ~3) <= params.frame.width &&
               box.y + box.height <= params.frame.height;
    }
    // RGB bytes of such a box, four pixels a lane.
    CVCLI_FN void copy_fours(const Image& src, const Spans& spans, int team, int member) const {
        const int rows = blockDim.x / kTeam;
        const uint8_t* line = row_at<const uint8_t>(src, box.y + team) + int64_t{box.x} * C;
        uint4* to = memory.words + team * (pitch / 4);
#pragma unroll 1
        for (int row = team; row < box.height; row += rows) {
            const int end = spans.end(row);
#pragma unroll 2
            for (int at = (spans.begin(row) & ~3) + 4 * member; at < end; at += 4 * kTeam) {
                to[at / 4] = four_pixels(reinterpret_cast<const uint32_t*>(line + at * C), 0);
            }
            line += rows * src.row_pitch;
            to += rows * (pitch / 4);
        }
    }
    // RGB bytes, four pixels a lane; those whose words are not all in the row go one by one.
    template <class Reader>
    CVCLI_FN void fill_fours(const Reader& reader, int row, int32_t y, int from, int to) const {
        const uint8_t* begin = row_at<const uint8_t>(reader.src, y < 0 ? 0 : y);
        const uint8_t* end = begin + int64_t{params.frame.width} * C;
        const int skew = static_cast<int>(reinterpret_cast<uint64_t>(begin) & 3);
        const Kept border = Kept::of(border_pixel<T, C>(params));
        const bool constant = params.border == kConstant;
#pragma unroll 1
        for (int at = from; at < to; at += 4 * kTeam) {
            const int32_t x = box.x + at;
            const uint8_t* first = begin + int64_t{x} * C - skew;
            uint4 four;
            if (y >= 0 && x >= 0 && first >= begin && first + (skew ? 16 : 12) <= end) {
                four = four_pixels(reinterpret_cast<const uint32_t*>(first), skew * 8);
            } else {
                four = {border.w[0], border.w[0], border.w[0], border.w[0]};
                if (!constant || (y >= 0 && x > -4 && x < params.frame.width)) {
#pragma unroll 1
                    for (int i = 0; i < 4; ++i) {
                        four = {four.y, four.z, four.w, source(reader, y, x + i).w[0]};
                    }
                }
            }
            memory.words[(row * pitch + at) / 4] = four;
        }
    }
};

}  // namespace cvcli
