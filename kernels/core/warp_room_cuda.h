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

// Words of a row, which may begin up to three bytes before what is wanted.
template <int N>
CVCLI_FN void shifted_words(const uint32_t* from, int shift, uint32_t (&words)[N]) {
    uint32_t low = read_only(from);
#pragma unroll
    for (int i = 0; i < N; ++i) {
        const uint32_t high = i + 1 < N || shift ? read_only(from + i + 1) : 0;
        words[i] = __funnelshift_r(low, high, shift);
        low = high;
    }
}

// Pixel i of those side by side in words, as a word.
template <int Bytes, int N>
CVCLI_FN uint32_t pixel_word(const uint32_t (&words)[N], int i) {
    const int at = i * Bytes;
    const uint32_t word = words[at / 4];
    if constexpr (Bytes == 4) return word;
    if constexpr (Bytes == 3) {
        // The last byte is of no account.
        if (at % 4 < 2) return word >> at % 4 * 8;
        return __byte_perm(word, words[(at / 4 + 1) % N], 0x3210 + 0x1111 * (at % 4));
    }
    return __byte_perm(word, 0, Bytes == 1 ? 0x4440 + at % 4 : 0x4410 + 0x11 * (at % 4));
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
    // Bytes of a pixel: single ones stay that.
    static constexpr int kUnit = sizeof(T) * C == 1 ? 1 : 4 * kWords;
    static constexpr int kRoom = 9216;
    // So many lanes take a row.
    static constexpr int kTeam = 8;
    struct Memory {
        uint4 words[kRoom / 4];
    };
    Memory& memory;
    const Box& box;
    const WarpParams& params;
    int pitch;  // in bytes

    CVCLI_FN WarpRoom(Memory& room, const Box& part, const WarpParams& from)
        : memory(room), box(part), params(from) {
        const int32_t words = (smaller(part.width, kRoom) * kUnit + 3) / 4;
        pitch = 4 * (words + ((from.bank - words) & (kWarp - 1)));
    }
    CVCLI_FN bool fits(int widest) const {
        return box.known && box.width <= smaller(widest, kRoom) &&
               box.height <= smaller(widest, kRoom) && pitch * box.height <= 4 * kRoom;
    }
    // Where the box would start if places in it were so much smaller.
    CVCLI_FN const uint8_t* start(int excess) const { return bytes() - excess * (pitch + kUnit); }
    CVCLI_FN const uint8_t* at(const uint8_t* start, const Place& place) const {
        return start + place.x * kUnit + place.y * pitch;
    }
    CVCLI_FN Kept cell(const uint8_t* at, int dy, int dx) const {
        const uint8_t* from = at + dy * pitch + dx * kUnit;
        if constexpr (kUnit == 1) return {{*from}};
        Kept cell;
#pragma unroll
        for (int i = 0; i < kWords; ++i) cell.w[i] = reinterpret_cast<const uint32_t*>(from)[i];
        return cell;
    }

    template <class Reader>
    CVCLI_FN void fill(const Reader& reader, const Spans& spans) const {
        const int team = static_cast<int>(threadIdx.x) / kTeam;
        const int member = static_cast<int>(threadIdx.x) % kTeam;
        if constexpr (kFours<Reader>) {
            if (holds_fours(reader.src)) return copy_fours(reader, spans, team, member);
        }
#pragma unroll 1
        for (int row = team; row < box.height; row += blockDim.x / kTeam) {
            const int32_t y = border_index(box.y + row, params.frame.height, params.border);
            const int32_t end = spans.end(row);
            if constexpr (kFours<Reader>) {
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
    // Whether four pixels are read as words that lie side by side, and kept in one each.
    template <class Reader>
    static constexpr bool kFours =
        Reader::kPacked && !Reader::kMoved && sizeof(typename Reader::Raw) <= 4 && kWords == 1;

    CVCLI_FN uint8_t* bytes() const { return reinterpret_cast<uint8_t*>(&memory.words[0]); }
    template <class Reader>
    CVCLI_FN static void put_four(uint8_t* to, const Reader& reader, const uint8_t* from,
                                  int shift) {
        using Raw = typename Reader::Raw;
        constexpr int bytes = sizeof(Raw);
        uint32_t words[bytes], out[4];
        shifted_words(reinterpret_cast<const uint32_t*>(from), shift, words);
        if constexpr (kUnit == 1 && !Reader::kSteps && bytes == 1) {
            *reinterpret_cast<uint32_t*>(to) = words[0];
            return;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            out[i] = pixel_word<bytes>(words, i);
            if constexpr (Reader::kSteps) {
                const Cell<typename Raw::Sample, Raw::kChannels> raw = {{out[i]}};
                out[i] = Kept::of(reader.before(raw.pixel())).w[0];
            }
        }
        keep_four(to, {out[0], out[1], out[2], out[3]});
    }
    CVCLI_FN static void keep_four(uint8_t* to, const uint4& four) {
        if constexpr (kUnit == 1) {
            *reinterpret_cast<uint32_t*>(to) = four.x | four.y << 8 | four.z << 16 | four.w << 24;
        } else {
            *reinterpret_cast<uint4*>(to) = four;
        }
    }
    CVCLI_FN void put(int row, int at, const Kept& cell) const {
        uint8_t* to = bytes() + row * pitch + at * kUnit;
        if constexpr (kUnit == 1) {
            *to = static_cast<uint8_t>(cell.w[0]);
        } else {
#pragma unroll
            for (int i = 0; i < kWords; ++i) reinterpret_cast<uint32_t*>(to)[i] = cell.w[i];
        }
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
    // Such a box, four pixels a lane.
    template <class Reader>
    CVCLI_FN void copy_fours(const Reader& reader, const Spans& spans, int team, int member) const {
        constexpr int unit = sizeof(typename Reader::Raw);
        const int rows = blockDim.x / kTeam;
        const uint8_t* line =
            row_at<const uint8_t>(reader.src, box.y + team) + int64_t{box.x} * unit;
        uint8_t* to = bytes() + team * pitch;
#pragma unroll 1
        for (int row = team; row < box.height; row += rows) {
            const int end = spans.end(row);
#pragma unroll 2
            for (int at = (spans.begin(row) & ~3) + 4 * member; at < end; at += 4 * kTeam) {
                put_four(to + at * kUnit, reader, line + at * unit, 0);
            }
            line += rows * reader.src.row_pitch;
            to += rows * pitch;
        }
    }
    // Four pixels a lane; those whose words are not all in the row go one by one.
    template <class Reader>
    CVCLI_FN void fill_fours(const Reader& reader, int row, int32_t y, int from, int to) const {
        constexpr int unit = sizeof(typename Reader::Raw);
        const uint8_t* begin = row_at<const uint8_t>(reader.src, y < 0 ? 0 : y);
        const uint8_t* end = begin + int64_t{params.frame.width} * unit;
        const int skew = static_cast<int>(reinterpret_cast<uint64_t>(begin) & 3);
        const Kept border = Kept::of(border_pixel<T, C>(params));
        const bool constant = params.border == kConstant;
#pragma unroll 1
        for (int at = from; at < to; at += 4 * kTeam) {
            const int32_t x = box.x + at;
            const uint8_t* first = begin + int64_t{x} * unit - skew;
            uint8_t* const place = bytes() + row * pitch + at * kUnit;
            if (y >= 0 && x >= 0 && first >= begin && first + 4 * unit + (skew ? 4 : 0) <= end) {
                put_four(place, reader, first, skew * 8);
            } else {
                uint4 four = {border.w[0], border.w[0], border.w[0], border.w[0]};
                if (!constant || (y >= 0 && x > -4 && x < params.frame.width)) {
#pragma unroll 1
                    for (int i = 0; i < 4; ++i) {
                        four = {four.y, four.z, four.w, source(reader, y, x + i).w[0]};
                    }
                }
                keep_four(place, four);
            }
        }
    }
};

}  // namespace cvcli
