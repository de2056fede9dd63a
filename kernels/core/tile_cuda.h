// Tiles on the GPU: a block loads its part of the source with the pixels around it into shared
// memory, borders and all, and stores its results from registers.
#pragma once

#include "core/stencil.h"
#include "core/work_cuda.h"

namespace cvcli {

// Python picks the size of tiles and their threads with these numbers in mind: see core/tiles.py.
template <int C>
constexpr int kTileThreads = C == 3 ? 192 : 256;

// A tile of TW x TH results and what it needs of the source: radius RX, RY. Rows of results are
// whole 16-byte chunks, and so is the room on either side of them.
template <class T, int C, int RX, int RY, int TW, int TH>
struct Tile {
    using Sample = T;
    static constexpr int kChannels = C;
    static constexpr int kRadiusX = RX;
    static constexpr int kRadiusY = RY;
    static constexpr int kWidth = TW;
    static constexpr int kHeight = TH;
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

// 16 bytes from any address whose words lie in [row, row + bytes); false if they don't.
CVCLI_FN bool fetch_chunk(const uint8_t* row, int64_t offset, int64_t bytes, uint4& chunk) {
    const uint8_t* from = row + offset;
    if (offset < 0 || offset + kChunk > bytes) return false;
    if ((address(from) & (kChunk - 1)) == 0) {
        chunk = load_chunk(from);
        return true;
    }
    const int lead = static_cast<int>(address(from) & 3);
    if (lead && (offset < lead || offset - lead + kChunk + 4 > bytes)) return false;
    const uint32_t* words = reinterpret_cast<const uint32_t*>(from - lead);
    const uint32_t w0 = __ldg(words), w1 = __ldg(words + 1);
    const uint32_t w2 = __ldg(words + 2), w3 = __ldg(words + 3);
    const uint32_t w4 = lead ? __ldg(words + 4) : 0;
    chunk.x = __funnelshift_r(w0, w1, lead * 8);
    chunk.y = __funnelshift_r(w1, w2, lead * 8);
    chunk.z = __funnelshift_r(w2, w3, lead * 8);
    chunk.w = __funnelshift_r(w3, w4, lead * 8);
    return true;
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

// Copies rows by chunks, all of a thread's loads before its stores.
template <class Shape, class R>
CVCLI_FN void load_chunks(const R& reader, uint8_t* room, const TilePlace& place,
                          const Frame& frame, const Edges& edges) {
    using T = typename Shape::Sample;
    constexpr int chunks = Shape::kPitch / kChunk, total = chunks * Shape::kRows;
    constexpr int some = 4, step = some * Shape::kThreads;
    const int64_t bytes = int64_t{frame.width} * Shape::kPixel;
    const int64_t left = int64_t{place.source_x} * Shape::kPixel - Shape::kPad;
#pragma unroll 1
    for (int base = threadIdx.x; base < total; base += step) {
        uint4 loaded[some];
        bool whole[some];
#pragma unroll
        for (int k = 0; k < some; ++k) {
            const int i = base + k * Shape::kThreads;
            const int32_t y = border_index(place.source_y - Shape::kRadiusY + i / chunks,
                                           frame.height, edges.border);
            whole[k] = i < total && y >= 0 &&
                       fetch_chunk(row_at<const uint8_t>(reader.src, y), left + i % chunks * kChunk,
                                   bytes, loaded[k]);
        }
#pragma unroll
        for (int k = 0; k < some; ++k) {
            const int i = base + k * Shape::kThreads;
            if (whole[k]) *reinterpret_cast<uint4*>(room + i * kChunk) = loaded[k];
        }
#pragma unroll
        for (int k = 0; k < some; ++k) {
            const int i = base + k * Shape::kThreads;
            if (whole[k] || i >= total) continue;
            const int32_t y = border_index(place.source_y - Shape::kRadiusY + i / chunks,
                                           frame.height, edges.border);
            const T* row = y < 0 ? nullptr : row_at<const T>(reader.src, y);
            const int64_t at = (left + i % chunks * kChunk) / int64_t{sizeof(T)};
            place_samples<Shape>(room + i * kChunk, row, at, edges, frame.width,
                                 place.source_x - Shape::kRadiusX,
                                 place.source_x + Shape::kWidth + Shape::kRadiusX);
        }
    }
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
        load_chunks<Shape>(reader, room, place, frame, edges);
    } else {
        load_pixels<Shape>(reader, room, place, frame, edges);
    }
}

// N words in a row.
template <int N>
struct Words {
    uint32_t v[N];
};

template <int N>
CVCLI_FN void store_words(uint8_t* to, const Words<N>& words) {
    static_assert(N == 1 || N == 2 || N == 4, "as wide as a store");
    if constexpr (N == 4) {
        *reinterpret_cast<uint4*>(to) = {words.v[0], words.v[1], words.v[2], words.v[3]};
    } else if constexpr (N == 2) {
        *reinterpret_cast<uint2*>(to) = {words.v[0], words.v[1]};
    } else {
        *reinterpret_cast<uint32_t*>(to) = words.v[0];
    }
}

// How a block's threads share its results: a column of N words, kRounds rows of it, each.
template <class Shape, int N>
struct Columns {
    static constexpr int kColumns = Shape::kRow / (4 * N);
    static constexpr int kGroups = Shape::kThreads / kColumns;
    static constexpr int kRounds = (Shape::kHeight + kGroups - 1) / kGroups;
    static_assert(Shape::kThreads % kColumns == 0, "no thread is left over");
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
#pragma unroll
    for (int r = 0; r < Own::kRounds; ++r) {
        const int row = Own::row() + r;
        if (row >= Shape::kHeight || place.y + row >= dst.height || left <= 0) break;
        uint8_t* to = row_at<uint8_t>(dst, place.y + row) + at;
        if (left >= 4 * N) {
            store_words<N>(to, results[r]);
            continue;
        }
#pragma unroll
        for (int i = 0; i < samples; ++i) {
            if (i * int(sizeof(B)) >= left) break;
            const uint32_t word = results[r].v[i / each];
            store_sample(to + i * sizeof(B), static_cast<B>(word >> i % each * 8 * sizeof(B)));
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
        if (row >= Shape::kHeight) break;
        store_words<N>(room + row * Shape::kRow + Own::column() * 4 * N, results[r]);
    }
    __syncthreads();
    if constexpr (plain) {
        store_shifted<Shape>(dst, place, room);
    } else {
        store_pixels<Shape>(work, dst, place, room);
    }
}

// Calls each(index, src, dst, place) for every tile that a block takes of every image.
template <class Shape, class W, class Params, class Function>
CVCLI_FN void for_each_place(const W& work, const Each<Params>& each, const Function& function) {
    for_each_tile(work.args, Shape::kHeight, work.args.dst,
                  [&](int32_t index, int32_t tile_x, int32_t tile_y) {
                      const Image dst = work.dst(index);
                      const int32_t x = tile_x * Shape::kWidth, y = tile_y * Shape::kHeight;
                      if (x >= dst.width) return;
                      const Params& params = work.params(each, index);
                      function(index, dst, params, tile_place(params.frame, y, x));
                      __syncthreads();
                  });
}

}  // namespace cvcli
