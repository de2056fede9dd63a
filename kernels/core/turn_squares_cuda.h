// A tile of a quarter turn whose rows lie in step with chunks, in the source and in the
// destination: each thread turns a square of pixels in registers.
#pragma once

#include "core/bytes_cuda.h"
#include "core/turn_cuda.h"

namespace cvcli {

template <class T, int C>
struct SquareRoom {
    static constexpr int P = sizeof(T) * C;
    static constexpr int kPixels = tile_pixels(P);
    static constexpr int kSide = P <= 4 ? 4 : 2;
    static constexpr int kSquares = kPixels / kSide;  // in a row
    static constexpr int kWords = kSide * P / 4;      // of a row of a square
    static constexpr int kRow = kPixels * P;
    static constexpr int kChunks = kRow / kChunk;
    // Rows may begin within a chunk. An odd number of chunks from row to row, so that threads of
    // neighbouring squares read different banks; on the way out chunks change places for that.
    static constexpr int kInChunks = kChunks + 1;
    static constexpr int kInPitch = kInChunks * kChunk;
    static constexpr int kOutAt = kPixels * kInPitch;
    static constexpr int kBytes = kOutAt + kPixels * kRow;
    // Threads that take chunks of a row, and the rows that they take at a time: a number of squares
    // after which chunks have the same places again.
    static constexpr int kLanes = kChunks > 16 ? 32 : kChunks > 8 ? 16 : kChunks;
    static constexpr int kRows = kBlockThreads / kLanes;
    static constexpr int kMask = kChunks % 8 || kRows / kSide % 8 ? 3 : 7;
    static_assert(kInChunks % 2 == 1 && kChunks % (kMask + 1) == 0, "chunks may change places");
};

// Rows of a square of pixels become its columns.
template <int P, int Side, int W>
CVCLI_FN void turn_square(const uint32_t (&in)[Side][W], uint32_t (&out)[Side][W]) {
    if constexpr (P == 1) {
        uint32_t words[4] = {in[0][0], in[1][0], in[2][0], in[3][0]};
        turn_words(words);
#pragma unroll
        for (int k = 0; k < 4; ++k) out[k][0] = words[k];
        return;
    }
#pragma unroll
    for (int k = 0; k < Side; ++k) {
        if constexpr (P == 3) {
            uint32_t pixels[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int word = 3 * k / 4, within = 3 * k % 4;
                pixels[i] = __byte_perm(in[i][word], in[i][smaller(word + 1, 2)],
                                        0x3210u + 0x1111u * within);
            }
            pack_pixels<3>(pixels, out[k]);
        } else if constexpr (P % 4 == 0) {
            constexpr int n = P / 4;
#pragma unroll
            for (int w = 0; w < W; ++w) out[k][w] = in[w / n][k * n + w % n];
        } else {
            constexpr int n = P / 2;
#pragma unroll
            for (int w = 0; w < W; ++w) {
                const int low = k * n + 2 * w % n, high = k * n + (2 * w + 1) % n;
                const uint32_t picks = (low % 2 ? 0x32u : 0x10u) | (high % 2 ? 0x7600u : 0x5400u);
                out[k][w] =
                    __byte_perm(in[2 * w / n][low / 2], in[(2 * w + 1) / n][high / 2], picks);
            }
        }
    }
}

// Where a tile that turns by squares comes from: its first row's first chunk, how far into that its
// first pixel lies, and how far it is to the row of the next column.
struct SquareSource {
    const uint8_t* from;
    int64_t stride;
    int lead;
    int chunks;
    bool forward;  // columns of the source are rows of the tile, in this order
};

// `from` is null where a tile is not covered by its runs, or rows are not in step.
template <class T, int C>
CVCLI_FN SquareSource square_source(const Image& src, const Image& dst, const Move& move,
                                    const TurnPart& part) {
    constexpr int P = sizeof(T) * C;
    const Part run_x = run_part(move.x, part.x, part.x + part.width);
    const Part run_y = run_part(move.y, part.y, part.y + part.height);
    if (run_x.end - run_x.begin < part.width || run_y.end - run_y.begin < part.height) return {};
    const bool forward = move.y.run_step > 0;
    const int64_t offset = int64_t{run_at(move.y, part.y + (forward ? 0 : part.height - 1))} * P;
    const int lead = static_cast<int>(offset & (kChunk - 1));
    const int chunks = (lead + part.height * P + kChunk - 1) / kChunk;
    const uint64_t bits = address(src.data) | address(dst.data) |
                          static_cast<uint64_t>(src.row_pitch | dst.row_pitch);
    const bool fits = offset - lead + chunks * kChunk <= int64_t{src.width} * P;
    if ((bits & (kChunk - 1)) || ((lead | part.width * P) & 3) || !fits) return {};
    return {row_at<const uint8_t>(src, run_at(move.x, part.x)) + offset - lead,
            move.x.run_step * src.row_pitch, lead, chunks, forward};
}

template <class Room>
CVCLI_FN void load_squares(uint8_t* room, const SquareSource& source, const TurnPart& part) {
    const int first = threadIdx.x / Room::kLanes, chunk = threadIdx.x % Room::kLanes;
    const int rows = chunk < smaller(source.chunks, Room::kChunks) ? part.width : 0;
    const uint8_t* from = settled(source.from + first * source.stride + chunk * kChunk);
    uint8_t* to = settled_in_room(room + first * Room::kInPitch + chunk * kChunk);
#pragma unroll
    for (int row = 0; row < Room::kPixels; row += Room::kRows) {
        if (first + row < rows) copy_chunk(to + row * Room::kInPitch, from);
        from += Room::kRows * source.stride;
    }
    // The last chunk of rows that begin within one.
    const int row = threadIdx.x;
    if (source.chunks > Room::kChunks && row < part.width) {
        copy_chunk(room + row * Room::kInPitch + Room::kRow,
                   source.from + row * source.stride + Room::kRow);
    }
    copies_done();
}

template <class T, int C, class F>
CVCLI_FN void turn_squares(uint8_t* room, const SquareSource& source, const TurnPart& part,
                           const F& f) {
    using Room = SquareRoom<T, C>;
    constexpr int side = Room::kSide, W = Room::kWords;
    static_assert(Room::kSquares * Room::kSquares == kBlockThreads, "a square a thread");
    const int down = threadIdx.x % Room::kSquares * side;
    const int right = threadIdx.x / Room::kSquares * side;
    if (down >= part.height || right >= part.width) return;
    uint32_t in[side][W], out[side][W];
#pragma unroll
    for (int i = 0; i < side; ++i) {
        const int row = smaller(right + i, part.width - 1);
        load_words<W, 4>(in[i], room + row * Room::kInPitch + source.lead + down * Room::P);
    }
    turn_square<Room::P>(in, out);
    const int first = right * Room::P / 4;  // word of a row of the result
    const int other = down / side & Room::kMask;
#pragma unroll
    for (int k = 0; k < side; ++k) {
        const int row = source.forward ? down + k : part.height - 1 - down - k;
        if (down + k >= part.height) break;
        uint8_t* to = room + Room::kOutAt + row * Room::kRow;
#pragma unroll
        for (int w = 0; w < W; ++w) {
            out[k][w] = map_word<Bits<T>, C>(f, out[k][w], (first + w) * 4 / int(sizeof(T)));
        }
        if constexpr (W % 4 == 0) {
#pragma unroll
            for (int w = 0; w < W; w += 4) {
                store_words<4>(to + ((first + w) / 4 ^ other) * kChunk, out[k] + w);
            }
        } else {
#pragma unroll
            for (int w = 0; w < W; ++w) {
                const int place = ((first + w) / 4 ^ other) * kChunk + (first + w) % 4 * 4;
                *reinterpret_cast<uint32_t*>(to + place) = out[k][w];
            }
        }
    }
}

template <class Room>
CVCLI_FN void emit_squares(uint8_t* room, const SquareSource& source, const Image& dst,
                           const TurnPart& part) {
    const int first = threadIdx.x / Room::kLanes, at = threadIdx.x % Room::kLanes * kChunk;
    const int bytes = part.width * Room::P - at;
    const int rows = bytes > 0 && at < Room::kRow ? part.height : 0;
    const int down = source.forward ? first : part.height - 1 - first;
    const int other = down / Room::kSide & Room::kMask;
    const uint8_t* from =
        settled_in_room(room + Room::kOutAt + first * Room::kRow + (at ^ other * kChunk));
    uint8_t* to = settled(row_at<uint8_t>(dst, part.y + first) + int64_t{part.x} * Room::P + at);
#pragma unroll
    for (int row = 0; row < Room::kPixels; row += Room::kRows) {
        const uint4 chunk = *reinterpret_cast<const uint4*>(from + row * Room::kRow);
        if (first + row < rows) {
            if (bytes >= kChunk) {
                *reinterpret_cast<uint4*>(to) = chunk;
            } else {
                uint32_t* words = reinterpret_cast<uint32_t*>(to);
                words[0] = chunk.x;
                if (bytes > 4) words[1] = chunk.y;
                if (bytes > 8) words[2] = chunk.z;
            }
        }
        to += Room::kRows * dst.row_pitch;
    }
}

template <class T, int C, class F>
CVCLI_FN void turn_by_squares(uint8_t* room, const SquareSource& source, const Image& dst,
                              const TurnPart& part, const F& f) {
    using Room = SquareRoom<T, C>;
    load_squares<Room>(room, source, part);
    f.ready();
    __syncthreads();
    turn_squares<T, C>(room, source, part, f);
    __syncthreads();
    emit_squares<Room>(room, source, dst, part);
    __syncthreads();
}

}  // namespace cvcli
