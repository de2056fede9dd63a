// Tiles on the GPU: a block loads its part of the source with the pixels around it into shared
// memory, borders and all, and stores its results from registers.
#pragma once

#include "core/strip_store_cuda.h"

namespace cvcli {

// Python picks the size of tiles and their threads with these numbers in mind: see core/tiles.py.
template <int C>
constexpr int kTileThreads = C == 3 ? 192 : 256;

// A tile of TW x TH results and what it needs of the source: radius RX, RY. A block makes one below
// the other in as many turns. Rows of results are
// whole 16-byte chunks, and so is the room on either side of them.
template <class T, int C, int RX, int RY, int TW, int TH, int Turns>
struct Tile {
    using Sample = T;
    static constexpr int kChannels = C;
    static constexpr int kRadiusX = RX;
    static constexpr int kRadiusY = RY;
    static constexpr int kWidth = TW;
    static constexpr int kHeight = TH;
    static constexpr int kTurns = Turns;
    static constexpr int kThreads = kTileThreads<C>;
    static constexpr int kPixel = sizeof(T) * C;
    static constexpr int kRow = TW * kPixel;
    static constexpr int kPad = (RX * kPixel + kChunk - 1) / kChunk * kChunk;
    static constexpr int kPitch = kRow + 2 * kPad;
    static constexpr int kRows = TH + 2 * RY;
    static constexpr int kBytes = kPitch * kRows;
    static_assert(kRow % kChunk == 0, "rows are whole chunks");
};

// Where a tile lies: in the source, and in the destination.
struct TilePlace {
    int32_t source_y;
    int32_t source_x;
    int32_t y;
    int32_t x;
};

CVCLI_FN TilePlace tile_place(const Frame& frame, int32_t y, int32_t x) {
    return {y + frame.y0, x + frame.x0, y, x};
}

// The samples of a chunk that reaches past the image, one by one.
template <class Shape>
CVCLI_FN void place_samples(uint8_t* to, const typename Shape::Sample* row, int64_t first,
                            const Edges& edges, int32_t width, int32_t begin, int32_t end) {
    using T = typename Shape::Sample;
    constexpr int C = Shape::kChannels;
#pragma unroll 1
    for (int k = 0; k < kChunk / int(sizeof(T)); ++k) {
        const int64_t sample = first + k;
        const int32_t x = static_cast<int32_t>((sample + int64_t{C} * 64) / C) - 64;
        if (x < begin || x >= end) continue;
        const int c = static_cast<int>(sample - int64_t{x} * C);
        const int32_t at = border_index(x, width, edges.border);
        const T value =
            row && at >= 0 ? read_only(row + int64_t{at} * C + c) : static_cast<T>(edges.value[c]);
        reinterpret_cast<T*>(to)[k] = value;
    }
}

// Rows whose chunks all lie in the image, as most do: a thread takes one chunk of some rows, and
// has all of its loads under way before its first store.
template <class Shape, bool Aligned>
CVCLI_FN void load_inner(const Image& src, uint8_t* room, const TilePlace& place,
                         const Frame& frame, const Edges& edges) {
    constexpr int chunks = Shape::kPitch / kChunk, together = Shape::kThreads / chunks;
    constexpr int rounds = (Shape::kRows + together - 1) / together;
    const int first = threadIdx.x / chunks, at = threadIdx.x % chunks * kChunk;
    if (first >= together) return;
    const int64_t left = int64_t{place.source_x} * Shape::kPixel - Shape::kPad + at;
    uint4 loaded[rounds];
#pragma unroll
    for (int k = 0; k < rounds; ++k) {
        const int row = first + k * together;
        if (row >= Shape::kRows) break;
        const int32_t y =
            border_index(place.source_y - Shape::kRadiusY + row, frame.height, edges.border);
        const uint8_t* from = row_at<const uint8_t>(src, y) + left;
        loaded[k] = Aligned ? load_chunk(from) : load_shifted(from);
    }
#pragma unroll
    for (int k = 0; k < rounds; ++k) {
        const int row = first + k * together;
        if (row < Shape::kRows)
            *reinterpret_cast<uint4*>(room + row * Shape::kPitch + at) = loaded[k];
    }
}

// Rows at the sides of the image, chunk by chunk.
template <class Shape>
CVCLI_FN void load_outer(const Image& src, uint8_t* room, const TilePlace& place,
                         const Frame& frame, const Edges& edges) {
    using T = typename Shape::Sample;
    constexpr int chunks = Shape::kPitch / kChunk, total = chunks * Shape::kRows;
    const int64_t bytes = int64_t{frame.width} * Shape::kPixel;
    const int64_t left = int64_t{place.source_x} * Shape::kPixel - Shape::kPad;
#pragma unroll 1
    for (int i = threadIdx.x; i < total; i += Shape::kThreads) {
        const int row = i / chunks;
        const int64_t offset = left + i % chunks * kChunk;
        const int32_t y =
            border_index(place.source_y - Shape::kRadiusY + row, frame.height, edges.border);
        const T* from = y < 0 ? nullptr : row_at<const T>(src, y);
        const uint8_t* chunk = reinterpret_cast<const uint8_t*>(from) + offset;
        if (from && offset >= 0 && offset + kChunk <= bytes &&
            (address(chunk) & (kChunk - 1)) == 0) {
            *reinterpret_cast<uint4*>(room + i * kChunk) = load_chunk(chunk);
        } else {
            place_samples<Shape>(room + i * kChunk, from, offset / int64_t{sizeof(T)}, edges,
                                 frame.width, place.source_x - Shape::kRadiusX,
                                 place.source_x + Shape::kWidth + Shape::kRadiusX);
        }
    }
}

template <class Shape>
CVCLI_FN void load_chunks(const Image& src, uint8_t* room, const TilePlace& place,
                          const Frame& frame, const Edges& edges) {
    const int64_t bytes = int64_t{frame.width} * Shape::kPixel;
    const int64_t left = int64_t{place.source_x} * Shape::kPixel - Shape::kPad;
    const bool aligned = ((address(src.data) + left | src.row_pitch) & (kChunk - 1)) == 0;
    // Words around a chunk that lies across them must be in the row too.
    const int slack = aligned ? 0 : 4;
    const bool within = left >= slack && left + Shape::kPitch + slack <= bytes;
    const int32_t top = place.source_y - Shape::kRadiusY;
    const bool rows = edges.border != kConstant || (top >= 0 && top + Shape::kRows <= frame.height);
    if (!within || !rows) return load_outer<Shape>(src, room, place, frame, edges);
    if (aligned) return load_inner<Shape, true>(src, room, place, frame, edges);
    load_inner<Shape, false>(src, room, place, frame, edges);
}

// Reads pixels one by one, each through the gather and the steps before.
template <class Shape, class R>
CVCLI_FN void load_pixels(const R& reader, uint8_t* room, const TilePlace& place,
                          const Frame& frame, const Edges& edges) {
    using T = typename Shape::Sample;
    constexpr int wide = Shape::kWidth + 2 * Shape::kRadiusX, total = wide * Shape::kRows;
#pragma unroll 2
    for (int i = threadIdx.x; i < total; i += Shape::kThreads) {
        const int row = i / wide, column = i % wide;
        const int32_t y =
            border_index(place.source_y - Shape::kRadiusY + row, frame.height, edges.border);
        const int32_t x =
            border_index(place.source_x - Shape::kRadiusX + column, frame.width, edges.border);
        Pixel<T, Shape::kChannels> pixel;
        if (y >= 0 && x >= 0) {
            pixel = reader.at(y, x);
        } else {
#pragma unroll
            for (int c = 0; c < Shape::kChannels; ++c) pixel.v[c] = static_cast<T>(edges.value[c]);
        }
        const int at = row * Shape::kPitch + Shape::kPad - Shape::kRadiusX * Shape::kPixel;
        T* to = reinterpret_cast<T*>(room + at) + column * Shape::kChannels;
#pragma unroll
        for (int c = 0; c < Shape::kChannels; ++c) to[c] = pixel.v[c];
    }
}

// Fills `room`, Shape::kBytes aligned to 16: row i of it is row i - kRadiusY of the tile, whose
// first pixel lies kPad bytes into the row. What lies further out than the radius is undefined.
// Follow with __syncthreads().
template <class Shape, class R>
CVCLI_FN void load_tile(const R& reader, uint8_t* room, const TilePlace& place, const Frame& frame,
                        const Edges& edges) {
    if constexpr (R::kDirect) {
        load_chunks<Shape>(reader.src, room, place, frame, edges);
    } else {
        load_pixels<Shape>(reader, room, place, frame, edges);
    }
}

// How a block's threads share its results: a column of N words, kRounds rows of it, each.
template <class Shape, int N>
struct Columns {
    static constexpr int kColumns = Shape::kRow / (4 * N);
    static constexpr int kGroups = Shape::kThreads / kColumns;
    static constexpr int kRounds = Shape::kHeight / kGroups;
    static_assert(Shape::kThreads % kColumns == 0, "no thread is left over");
    static_assert(Shape::kHeight % kGroups == 0, "no row is left over");
    CVCLI_FN static int column() { return threadIdx.x % kColumns; }
    CVCLI_FN static int row() { return threadIdx.x / kColumns * kRounds; }
};

// Aligned rows: words go where they belong, the last of a row by samples.
template <class Shape, int N>
CVCLI_FN void store_direct(const Image& dst, const TilePlace& place,
                           const Words<N> (&results)[Columns<Shape, N>::kRounds]) {
    using Own = Columns<Shape, N>;
    using B = Bits<typename Shape::Sample>;
    constexpr int samples = 4 * N / int(sizeof(B)), each = 4 / int(sizeof(B));
    const int64_t at = int64_t{place.x} * Shape::kPixel + Own::column() * 4 * N;
    const int64_t left = int64_t{dst.width} * Shape::kPixel - at;
    const int rows = dst.height - place.y - Own::row();
    uint8_t* to = row_at<uint8_t>(dst, place.y + Own::row()) + at;
    if (left >= 4 * N) {
#pragma unroll
        for (int r = 0; r < Own::kRounds; ++r) {
            if (r < rows) store_words<N>(to + r * dst.row_pitch, results[r]);
        }
        return;
    }
#pragma unroll
    for (int r = 0; r < Own::kRounds; ++r) {
#pragma unroll
        for (int i = 0; i < samples; ++i) {
            if (r >= rows || i * int(sizeof(B)) >= left) break;
            const uint32_t word = results[r].v[i / each];
            store_sample(to + r * dst.row_pitch + i * sizeof(B),
                         static_cast<B>(word >> i % each * 8 * sizeof(B)));
        }
    }
}

// Rows of any alignment: from shared memory by aligned words, their ends by samples.
template <class Shape>
CVCLI_FN void store_shifted(const Image& dst, const TilePlace& place, const uint8_t* room) {
    using B = Bits<typename Shape::Sample>;
    constexpr int words = Shape::kRow / 4 + 1;
    const int64_t left = (int64_t{dst.width} - place.x) * Shape::kPixel;
    const int bytes = static_cast<int>(smaller(left, int64_t{Shape::kRow}));
#pragma unroll 2
    for (int i = threadIdx.x; i < words * Shape::kHeight; i += Shape::kThreads) {
        const int row = i / words;
        if (place.y + row >= dst.height) break;
        uint8_t* to = row_at<uint8_t>(dst, place.y + row) + int64_t{place.x} * Shape::kPixel;
        const uint8_t* from = room + row * Shape::kRow;
        const int lead = static_cast<int>(address(to) & 3), at = i % words * 4 - lead;
        if (at >= 0 && at + 4 <= bytes) {
            const uint32_t* pair = reinterpret_cast<const uint32_t*>(from + (at & ~3));
            const uint32_t next = at & 3 ? pair[1] : 0;
            *reinterpret_cast<uint32_t*>(to + at) = __funnelshift_r(pair[0], next, (at & 3) * 8);
            continue;
        }
#pragma unroll 1
        for (int k = at; k < at + 4; k += int(sizeof(B))) {
            if (k < 0 || k >= bytes) continue;
            store_sample(to + k, *reinterpret_cast<const B*>(from + k));
        }
    }
}

// Pixels through the steps after, and to planes.
template <class Shape, class W>
CVCLI_FN void store_pixels(const W& work, const Image& dst, const TilePlace& place,
                           const uint8_t* room) {
    using T = typename Shape::Sample;
    for (int i = threadIdx.x; i < Shape::kWidth * Shape::kHeight; i += Shape::kThreads) {
        const int row = i / Shape::kWidth, x = i % Shape::kWidth;
        if (place.y + row >= dst.height) break;
        if (place.x + x >= dst.width) continue;
        const T* from = reinterpret_cast<const T*>(room + row * Shape::kRow) + x * Shape::kChannels;
        Pixel<T, Shape::kChannels> pixel;
#pragma unroll
        for (int c = 0; c < Shape::kChannels; ++c) pixel.v[c] = from[c];
        work.write(dst, place.y + row, place.x + x, pixel);
    }
}

// Takes every thread's results to the destination. `room` may be the source's: nobody may need it
// any more once all threads are here, and all threads must come here.
template <class Shape, int N, class W>
CVCLI_FN void store_results(const W& work, const Image& dst, const TilePlace& place, uint8_t* room,
                            const Words<N> (&results)[Columns<Shape, N>::kRounds]) {
    using Own = Columns<Shape, N>;
    constexpr bool plain = decltype(work.after)::kNone && !W::kPlanarOut;
    const bool aligned = ((address(dst.data) | dst.row_pitch) & (4 * N - 1)) == 0;
    if (plain && aligned) return store_direct<Shape, N>(dst, place, results);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < Own::kRounds; ++r) {
        const int row = Own::row() + r;
        store_words<N>(room + row * Shape::kRow + Own::column() * 4 * N, results[r]);
    }
    __syncthreads();
    if constexpr (plain) {
        store_shifted<Shape>(dst, place, room);
    } else {
        store_pixels<Shape>(work, dst, place, room);
    }
}

// Calls function(index, dst, params, place) for every tile that a block makes of every image.
template <class Shape, class W, class Params, class Function>
CVCLI_FN void for_each_place(const W& work, const Each<Params>& each, const Function& function) {
    constexpr int rows = Shape::kHeight * Shape::kTurns;
    for_each_tile(
        work.args, rows, work.args.dst, [&](int32_t index, int32_t tile_x, int32_t tile_y) {
            const Image dst = work.dst(index);
            const int32_t x = tile_x * Shape::kWidth;
            if (x >= dst.width) return;
            const Params& params = work.params(each, index);
            const int64_t end = smaller(int64_t{tile_y} * rows + rows, int64_t{dst.height});
#pragma unroll 1
            for (int32_t y = tile_y * rows; y < end; y += Shape::kHeight) {
                function(index, dst, params, tile_place(params.frame, y, x));
                __syncthreads();
            }
        });
}

}  // namespace cvcli
