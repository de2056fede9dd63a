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

template <class T, int C, int High>
struct WarpRoom {
    using Kept = Cell<T, C>;
    static constexpr int kWords = Kept::kWords;
    static constexpr int kRoom = 9216;
    static constexpr int kRows = 256;
    static constexpr int kTeam = kWarp / 2;
    struct Memory {
        uint4 words[kRoom / 4];
        int2 spans[kRows];
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
    CVCLI_FN bool fits() const {
        return box.known && box.width <= kRoom && box.height <= kRows &&
               pitch * box.height <= kRoom;
    }
    // Unsigned, for the pixel (0, 0) may lie far outside.
    CVCLI_FN uint32_t origin() const {
        return 0u - (static_cast<uint32_t>(box.y) * pitch + static_cast<uint32_t>(box.x) * kWords);
    }
    CVCLI_FN int index(uint32_t origin, const Place& place) const {
        const uint32_t across = static_cast<uint32_t>(place.x) * kWords + origin;
        return static_cast<int>(static_cast<uint32_t>(place.y) * pitch + across);
    }
    CVCLI_FN Kept cell(int at, int dy, int dx) const {
        const uint32_t* from = words() + (at + dy * pitch + dx * kWords);
        Kept cell;
#pragma unroll
        for (int i = 0; i < kWords; ++i) cell.w[i] = from[i];
        return cell;
    }

    // What columns of each row of the box the tile needs.
    template <int Filter>
    CVCLI_FN void find_spans(const Outline& outline) const {
        using R = Reach<Filter>;
        const int row = threadIdx.x;
        if (row >= box.height) return;
        // Rows whose pixels are taps of places between these two.
        const float low = static_cast<float>(row - R::kLast) - outline.slack;
        const float high = static_cast<float>(row - R::kFirst + 1) + outline.slack;
        float from = 1.0e9f, to = -1.0e9f;
#pragma unroll
        for (int i = 0; i < 4; ++i) meet(outline, i, (i + 1) % 4, low, high, from, to);
        if (from > to) {
            memory.spans[row] = {0, 0};
            return;
        }
        const int begin = static_cast<int>(floor_of(from - outline.slack)) + R::kFirst;
        const int end = static_cast<int>(floor_of(to + outline.slack)) + R::kLast + 1;
        memory.spans[row] = {larger(begin, 0), smaller(end, box.width)};
    }

    // Half a warp takes a row.
    template <class Reader>
    CVCLI_FN void fill(const Reader& reader) const {
        const int team = threadIdx.x / kTeam;
        const int member = threadIdx.x % kTeam;
#pragma unroll 1
        for (int row = team; row < box.height; row += blockDim.x / kTeam) {
            const int32_t y = border_index(box.y + row, params.frame.height, params.border);
            const int2 span = memory.spans[row];
            if constexpr (Reader::kDirect && sizeof(T) == 1 && C == 3) {
                fill_fours(reader, row, y, span, member);
            } else {
#pragma unroll 2
                for (int at = span.x + member; at < span.y; at += kTeam) {
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
    // RGB bytes, four pixels a lane; those whose words are not all in the row go one by one.
    template <class Reader>
    CVCLI_FN void fill_fours(const Reader& reader, int row, int32_t y, int2 span,
                             int member) const {
        const uint8_t* begin = row_at<const uint8_t>(reader.src, y < 0 ? 0 : y);
        const uint8_t* end = begin + int64_t{params.frame.width} * C;
        const int skew = static_cast<int>(reinterpret_cast<uint64_t>(begin) & 3);
#pragma unroll 2
        for (int at = (span.x & ~3) + 4 * member; at < span.y; at += 4 * kTeam) {
            const int32_t x = box.x + at;
            const uint8_t* from = begin + int64_t{x} * C - skew;
            if (y >= 0 && x >= 0 && from >= begin && from + (skew ? 16 : 12) <= end) {
                const auto* aligned = reinterpret_cast<const uint32_t*>(from);
                memory.words[(row * pitch + at) / 4] = four_pixels(aligned, skew * 8);
            } else {
                uint4 four;
                four.x = source(reader, y, x).w[0];
                four.y = source(reader, y, x + 1).w[0];
                four.z = source(reader, y, x + 2).w[0];
                four.w = source(reader, y, x + 3).w[0];
                memory.words[(row * pitch + at) / 4] = four;
            }
        }
    }
    // Widens [from, to] by the part of an edge that lies in a band of rows.
    CVCLI_FN static void meet(const Outline& outline, int i, int j, float low, float high,
                              float& from, float& to) {
        const float y = outline.y[i], down = outline.y[j] - y;
        const float x = outline.x[i], right = outline.x[j] - x;
        if (larger(y, y + down) < low || smaller(y, y + down) > high) return;
        float first = 0.0f, last = 1.0f;
        if (down != 0.0f) {
            const float scale = 1.0f / down;
            const float enter = (low - y) * scale, leave = (high - y) * scale;
            first = larger(first, smaller(enter, leave));
            last = smaller(last, larger(enter, leave));
        }
        from = smaller(from, smaller(x + first * right, x + last * right));
        to = larger(to, larger(x + first * right, x + last * right));
    }
};

}  // namespace cvcli
