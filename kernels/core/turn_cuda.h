// A tile of a quarter turn on the GPU: its rows come in by 16-byte loads, each lane gathers pixels
// until they fill words, and rows go out by 16-byte stores.
#pragma once

#include "core/groups_cuda.h"

namespace cvcli {

// The part of the destination that a block turns.
struct TurnPart {
    int32_t x;
    int32_t y;
    int32_t width;
    int32_t height;
};

template <class T, int C>
struct TurnRoom {
    static constexpr int P = sizeof(T) * C;
    static constexpr int kPixels = tile_pixels(P);
    static constexpr int kGroup = group_pixels(P);
    static constexpr int kGroups = kPixels / kGroup;  // in a row
    static constexpr int kWords = kGroup * P / 4;
    // Chunks that hold a row wherever it starts; an odd number of words from row to row.
    static constexpr int kChunks = (kPixels * P + 2 * (kChunk - 1)) / kChunk;
    static constexpr int kInPitch = kChunks * kChunk + 4;
    static constexpr int kOutPitch = kPixels * P + kChunk;
    // Quads of bytes that go down a column may begin before it.
    static constexpr int kInAt = P == 1 ? kChunk : 0;
    static constexpr int kOutAt = kInAt + whole_chunks(kPixels * kInPitch + 8);
    static constexpr int kBytes = kOutAt + kPixels * kOutPitch + kChunk;
    static constexpr int kItems = (kPixels * kChunks + kBlockThreads - 1) / kBlockThreads;
    static_assert(kGroups % 8 == 0, "a warp takes eight groups of four rows");
};

// Where the tile's pixels lie in the source: row `right` of the tile is source row row(right), and
// their first column is `column`.
template <int P>
struct TurnSource {
    const Image& src;
    const Axis& x;
    int32_t first;
    int32_t column;
    CVCLI_FN int32_t row(int right) const { return run_at(x, first + right); }
    CVCLI_FN const uint8_t* start(int right) const {
        return row_at<const uint8_t>(src, row(right)) + int64_t{column} * P;
    }
    // How far into its first chunk a row starts.
    CVCLI_FN int lead(int right) const {
        const uint32_t low =
            static_cast<uint32_t>(address(src.data)) +
            static_cast<uint32_t>(row(right)) * static_cast<uint32_t>(src.row_pitch) +
            static_cast<uint32_t>(column) * P;
        return static_cast<int>(low & (kChunk - 1));
    }
};

template <int P>
struct TurnChunk {
    const uint8_t* from;
    int64_t offset;  // in the row's memory
    int64_t row_bytes;
    bool wanted;
    CVCLI_FN bool whole() const { return offset >= 0 && offset + kChunk <= row_bytes; }
};

template <class Room, int P>
CVCLI_FN TurnChunk<P> turn_chunk(const TurnSource<P>& source, const TurnPart& part, int item) {
    const int right = item / Room::kChunks, chunk = item % Room::kChunks;
    if (right >= part.width) return {nullptr, 0, 0, false};
    const uint8_t* start = source.start(right);
    const int lead = static_cast<int>(address(start) & (kChunk - 1));
    const bool wanted = chunk * kChunk < lead + part.height * P;
    const int skip = chunk * kChunk - lead;
    return {start + skip, int64_t{source.column} * P + skip, int64_t{source.src.width} * P, wanted};
}

// Chunks that reach out of their row's memory are read byte by byte.
template <int P>
CVCLI_FN void stage_turn_bytes(uint8_t* to, const TurnChunk<P>& chunk) {
#pragma unroll 1
    for (int b = 0; b < kChunk; ++b) {
        const int64_t at = chunk.offset + b;
        if (at >= 0 && at < chunk.row_bytes) to[b] = __ldg(chunk.from + b);
    }
}

template <class Room, int P>
CVCLI_FN void stage_turn(uint8_t* room, const TurnSource<P>& source, const TurnPart& part) {
    uint4 loaded[Room::kItems];
#pragma unroll
    for (int i = 0; i < Room::kItems; ++i) {
        const auto chunk = turn_chunk<Room>(source, part, threadIdx.x + i * kBlockThreads);
        if (chunk.wanted && chunk.whole()) loaded[i] = load_chunk(chunk.from);
    }
#pragma unroll
    for (int i = 0; i < Room::kItems; ++i) {
        const int item = threadIdx.x + i * kBlockThreads;
        const auto chunk = turn_chunk<Room>(source, part, item);
        if (!chunk.wanted) continue;
        uint8_t* to = room + Room::kInAt + item / Room::kChunks * Room::kInPitch +
                      item % Room::kChunks * kChunk;
        if (chunk.whole()) {
            uint32_t* words = reinterpret_cast<uint32_t*>(to);
            words[0] = loaded[i].x, words[1] = loaded[i].y;
            words[2] = loaded[i].z, words[3] = loaded[i].w;
        } else {
            stage_turn_bytes(to, chunk);
        }
    }
}

// The P bytes at a place into words from byte `at` of them on. Whole words lie in step with words.
template <int P>
CVCLI_FN void append_bytes(uint32_t* words, int at, const uint8_t* from) {
    if constexpr (P % 4 == 0) {
        const uint32_t* whole = reinterpret_cast<const uint32_t*>(from);
#pragma unroll
        for (int w = 0; w < P / 4; ++w) words[at / 4 + w] = whole[w];
        return;
    }
    const int within = static_cast<int>(address(from) & 3);
    const uint32_t* raw = reinterpret_cast<const uint32_t*>(from - within);
    // One byte, or two in step with words, never cross into the next.
    const uint32_t next = P < 3 ? 0 : raw[1];
    const uint32_t low = __funnelshift_r(raw[0], next, within * 8);
    const int shift = at % 4 * 8;
    if constexpr (P > 4) {
        const uint32_t high = next >> (within * 8) & ((1u << (P - 4) * 8) - 1);
        const uint64_t value = uint64_t{high} << 32 | low;
        words[at / 4] |= static_cast<uint32_t>(value << shift);
        words[at / 4 + 1] |= static_cast<uint32_t>(value >> (32 - shift));
        return;
    }
    const uint32_t value = low & ((1u << P % 4 * 8) - 1);
    words[at / 4] |= value << shift;
    if (at % 4 + P > 4) words[at / 4 + 1] |= value >> (32 - shift) % 32;
}

// Where the result's row lies in the room: at dst's place within a chunk, but in step with words.
template <class Room>
CVCLI_FN uint8_t* turned_row(uint8_t* room, int down, const uint8_t* dst) {
    return room + Room::kOutAt + down * Room::kOutPitch + static_cast<int>(address(dst) & 12);
}

// Four bytes of each of four words become a word of each of four.
CVCLI_FN void turn_words(uint32_t (&words)[4]) {
    const uint32_t a = __byte_perm(words[0], words[1], 0x5140);
    const uint32_t b = __byte_perm(words[2], words[3], 0x5140);
    const uint32_t c = __byte_perm(words[0], words[1], 0x7362);
    const uint32_t d = __byte_perm(words[2], words[3], 0x7362);
    words[0] = __byte_perm(a, b, 0x5410);
    words[1] = __byte_perm(a, b, 0x7632);
    words[2] = __byte_perm(c, d, 0x5410);
    words[3] = __byte_perm(c, d, 0x7632);
}

// Pixels of one byte turn by squares of four.
template <class T, class F>
CVCLI_FN void turn_quads(uint8_t* room, const TurnSource<1>& source, const Axis& y,
                         const Image& dst, const TurnPart& part, const F& f) {
    using Room = TurnRoom<T, 1>;
    constexpr int across = Room::kGroups / 8;
    const bool forward = y.run_step > 0;
#pragma unroll 1
    for (int item = threadIdx.x; item < Room::kPixels / 4 * Room::kGroups; item += kBlockThreads) {
        const int block = item / kWarp;
        const int group = block % across * 8 + item % 8;
        const int down = (block / across * 4 + item % kWarp / 8) * 4;
        if (down >= part.height || group * 4 >= part.width) continue;
        const int along = run_at(y, part.y + down) - source.column - (forward ? 0 : 3);
        uint32_t words[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int right = smaller(group * 4 + i, part.width - 1);
            const uint8_t* from =
                room + Room::kInAt + right * Room::kInPitch + source.lead(right) + along;
            const int within = static_cast<int>(address(from) & 3);
            const uint32_t* raw = reinterpret_cast<const uint32_t*>(from - within);
            words[i] = __funnelshift_r(raw[0], raw[1], within * 8);
        }
        turn_words(words);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            if (down + j >= part.height) break;
            const uint8_t* place = row_at<uint8_t>(dst, part.y + down + j) + part.x;
            uint32_t* to = reinterpret_cast<uint32_t*>(turned_row<Room>(room, down + j, place));
            to[group] = map_word<Bits<T>, 1>(f, forward ? words[j] : words[3 - j], 0);
        }
    }
}

template <class T, int C, class F>
CVCLI_FN void turn_groups(uint8_t* room, const TurnSource<int(sizeof(T)) * C>& source,
                          const Axis& y, const Image& dst, const TurnPart& part, const F& f) {
    using Room = TurnRoom<T, C>;
    constexpr int across = Room::kGroups / 8;
#pragma unroll 1
    for (int item = threadIdx.x; item < Room::kPixels * Room::kGroups; item += kBlockThreads) {
        // Eight groups of four rows a warp: their pixels lie in different banks.
        const int block = item / kWarp;
        const int group = block % across * 8 + item % 8;
        const int down = block / across * 4 + item % kWarp / 8;
        if (down >= part.height || group * Room::kGroup >= part.width) continue;
        const int along = (run_at(y, part.y + down) - source.column) * Room::P;
        uint32_t words[Room::kWords] = {};
#pragma unroll
        for (int i = 0; i < Room::kGroup; ++i) {
            // Past the tile's width any pixel will do.
            const int right = smaller(group * Room::kGroup + i, part.width - 1);
            append_bytes<Room::P>(
                words, i * Room::P,
                room + Room::kInAt + right * Room::kInPitch + source.lead(right) + along);
        }
        const uint8_t* place = row_at<uint8_t>(dst, part.y + down) + int64_t{part.x} * Room::P;
        uint32_t* to = reinterpret_cast<uint32_t*>(turned_row<Room>(room, down, place));
#pragma unroll
        for (int w = 0; w < Room::kWords; ++w) {
            to[group * Room::kWords + w] =
                map_word<Bits<T>, C>(f, words[w], static_cast<uint32_t>(w * 4 / sizeof(T)));
        }
    }
}

// Rows whose ends are in step with words: by chunks, and by words before the first and behind the
// last whole one.
template <class Room>
CVCLI_FN void emit_turn_chunks(uint8_t* room, const Image& dst, const TurnPart& part) {
#pragma unroll
    for (int i = 0; i < Room::kItems; ++i) {
        const int item = threadIdx.x + i * kBlockThreads;
        const int down = item / Room::kChunks, chunk = item % Room::kChunks;
        if (down >= part.height) continue;
        uint8_t* place = row_at<uint8_t>(dst, part.y + down) + int64_t{part.x} * Room::P;
        const int lead = static_cast<int>(address(place) & (kChunk - 1));
        const int begin = chunk * kChunk - lead;
        const int end = part.width * Room::P;
        const uint8_t* from = room + Room::kOutAt + down * Room::kOutPitch + chunk * kChunk;
        if (begin >= 0 && begin + kChunk <= end) {
            *reinterpret_cast<uint4*>(place + begin) = *reinterpret_cast<const uint4*>(from);
        } else {
#pragma unroll
            for (int w = 0; w < kChunk; w += 4) {
                if (begin + w >= 0 && begin + w < end) {
                    *reinterpret_cast<uint32_t*>(place + begin + w) =
                        *reinterpret_cast<const uint32_t*>(from + w);
                }
            }
        }
    }
}

template <class T, int C>
CVCLI_FN void emit_turn(uint8_t* room, const Image& dst, const TurnPart& part) {
    using Room = TurnRoom<T, C>;
    const uint64_t places = address(dst.data) + int64_t{part.x} * Room::P;
    if (((places | dst.row_pitch | part.width * Room::P) & 3) == 0) {
        return emit_turn_chunks<Room>(room, dst, part);
    }
#pragma unroll 1
    for (int down = threadIdx.x / kWarp; down < part.height; down += kBlockWarps) {
        uint8_t* place = row_at<uint8_t>(dst, part.y + down) + int64_t{part.x} * Room::P;
        emit_span<Bits<T>>(place, turned_row<Room>(room, down, place), part.width * Room::P);
    }
}

// Turns a part if the runs of both axes cover it; returns whether they do.
template <class T, int C, class F>
CVCLI_FN bool turn_part(uint8_t* room, const Image& src, const Image& dst, const Move& move,
                        const TurnPart& part, const F& f) {
    const Part run_x = run_part(move.x, part.x, part.x + part.width);
    const Part run_y = run_part(move.y, part.y, part.y + part.height);
    if (run_x.end - run_x.begin < part.width || run_y.end - run_y.begin < part.height) return false;
    const int32_t last = part.y + part.height - 1;
    const int32_t column = run_at(move.y, move.y.run_step > 0 ? part.y : last);
    const TurnSource<int(sizeof(T)) * C> source = {src, move.x, part.x, column};
    stage_turn<TurnRoom<T, C>>(room, source, part);
    __syncthreads();
    if constexpr (sizeof(T) * C == 1) {
        turn_quads<T>(room, source, move.y, dst, part, f);
    } else {
        turn_groups<T, C>(room, source, move.y, dst, part, f);
    }
    __syncthreads();
    emit_turn<T, C>(room, dst, part);
    __syncthreads();
    return true;
}

}  // namespace cvcli
