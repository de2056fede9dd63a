// Strips on the GPU: a block takes rows of the source, with the pixels around them, into shared
// memory some at a time, borders and all. Results leave by strip_store_cuda.h.
#pragma once

#include "core/stencil.h"
#include "core/work_cuda.h"

namespace cvcli {

// A strip of `Height` rows of results, or of two such halves one below the other whose rows a
// thread works on in pairs; what it needs of the source: radius RX, RY; and how many rows of each
// half come in at a time. Python picks strips: see core/tiles.py. A row is whole pixels and whole
// 16-byte chunks, whatever the pixel; each thread has four columns of samples, but for a few of the
// last warp, which only load.
template <class T, int C, int RX, int RY, int Halves, int Height, int Rows,
          int Samples = sizeof(T) == 1 ? 480 : 240, int Threads = sizeof(T) == 1 ? 128 : 64>
struct Strip {
    using Sample = T;
    static constexpr int kChannels = C;
    static constexpr int kRadiusX = RX;
    static constexpr int kRadiusY = RY;
    static constexpr int kHalves = Halves;
    static constexpr int kHeight = Height;
    static constexpr int kRows = Rows;
    static constexpr int kLines = Rows * Halves;
    static constexpr int kSamples = Samples;
    static constexpr int kColumns = kSamples / 4;
    static constexpr int kThreads = Threads;
    static constexpr int kPixel = sizeof(T) * C;
    static constexpr int kWidth = kSamples / C;
    static constexpr int kRow = kSamples * sizeof(T);
    static constexpr int kPad = (RX * kPixel + kChunk - 1) / kChunk * kChunk;
    static constexpr int kPitch = kRow + 2 * kPad;
    static constexpr int kBytes = kPitch * kLines;
};

// The four columns that a thread makes results of; some make the last ones too, for nobody.
template <class Shape>
CVCLI_FN int own_column() {
    return smaller<int>(threadIdx.x, Shape::kColumns - 1);
}

// A value that is worked out once, not again wherever it is needed: the compiler doesn't see that a
// lane has its own. All threads must come here.
template <class V>
CVCLI_FN V kept(V value) {
#if defined(CVCLI_EMULATED)
    return value;
#else
    return __shfl_sync(0xffffffffu, value, threadIdx.x % 32);
#endif
}
template <class V>
CVCLI_FN V* kept(V* pointer) {
    return reinterpret_cast<V*>(kept(reinterpret_cast<int64_t>(pointer)));
}
// The same of a place in shared memory; and the place that differs in some bits, of 16 to 112.
template <class V>
CVCLI_FN V* kept_place(V* place) {
#if defined(CVCLI_EMULATED)
    return place;
#else
    const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(place));
    return static_cast<V*>(const_cast<void*>(__cvta_shared_to_generic(kept(at))));
#endif
}
template <class V>
CVCLI_FN V* other_place(V* place, int bits) {
#if defined(CVCLI_EMULATED)
    return reinterpret_cast<V*>(address(place) ^ bits);
#else
    const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(place));
    return static_cast<V*>(const_cast<void*>(__cvta_shared_to_generic(at ^ bits)));
#endif
}

// Where a strip lies: in the source, and in the destination.
struct StripPlace {
    int32_t source_y;
    int32_t source_x;
    int32_t y;
    int32_t x;
};

// 16 bytes from any address, by the words that hold them.
CVCLI_FN uint4 load_shifted(const uint8_t* from) {
    const int lead = static_cast<int>(address(from) & 3), shift = lead * 8;
    const uint32_t* words = reinterpret_cast<const uint32_t*>(from - lead);
    const uint32_t w0 = __ldg(words), w1 = __ldg(words + 1);
    const uint32_t w2 = __ldg(words + 2), w3 = __ldg(words + 3);
    const uint32_t w4 = lead ? __ldg(words + 4) : 0;
    return {__funnelshift_r(w0, w1, shift), __funnelshift_r(w1, w2, shift),
            __funnelshift_r(w2, w3, shift), __funnelshift_r(w3, w4, shift)};
}

// The index that a border stands for, -1 for its constant: few are outside, so the way there is
// held only once.
CVCLI_CALL int32_t outer_index(int32_t index, int32_t length, int32_t border) {
    return border_index(index, length, border);
}
CVCLI_FN int32_t inner_index(int32_t index, int32_t length, int32_t border) {
    return index >= 0 && index < length ? index : outer_index(index, length, border);
}

// Brings rows into shared memory, some at a time: line i of kLines is row i % kRows of half
// i / kRows, and the strip's first pixel lies kPad bytes into it. What lies further out than the
// radius is undefined.
template <class Shape, class R>
class Source {
    static constexpr int kChunks = Shape::kPitch / kChunk;
    static constexpr int kTogether = larger(Shape::kThreads / kChunks, 1);
    static constexpr int kParts = (kChunks + Shape::kThreads - 1) / Shape::kThreads;
    static constexpr int kEach = (Shape::kRows + kTogether - 1) / kTogether;
    static constexpr int kSpan = Shape::kRows + (Shape::kHalves - 1) * Shape::kHeight;

  public:
    // From row y of the source on, to places in `rooms`.
    CVCLI_FN Source(const R& reader, const Frame& frame, const Edges& edges, int32_t y, int32_t x,
                    int32_t width, uint8_t* rooms)
        : reader_(reader), frame_(frame), edges_(edges), rooms_(rooms), y_(kept(y)), x_(x) {
        if constexpr (!R::kDirect) return;
        const int64_t left = int64_t{x} * Shape::kPixel - Shape::kPad;
        const int64_t bytes = int64_t{frame.width} * Shape::kPixel;
        const Image& src = reader.src;
        aligned_ = ((address(src.data) + left | src.row_pitch) & (kChunk - 1)) == 0;
        last_simple_ = kept(aligned_ ? frame.height - kSpan : -1);
        // Words around a chunk that lies across them must be in the row too.
        const int slack = aligned_ ? 0 : 4;
        const int reach = Shape::kRadiusX * Shape::kPixel;
        const int64_t wanted = int64_t{width} * Shape::kPixel + Shape::kPad + reach;
        wanted_ = {Shape::kPad - reach, static_cast<int32_t>(smaller(
                                            wanted, int64_t{Shape::kPitch - Shape::kPad + reach}))};
        inside_ = {chunks_in(slack - left + kChunk - 1), chunks_in(bytes - slack - left)};
        if (inside_.end <= inside_.begin) inside_ = {wanted_.end, wanted_.end};
        patches_ = kept(wanted_.begin < inside_.begin || wanted_.end > inside_.end ? 1 : 0);
        from_ = static_cast<const uint8_t*>(src.data) + left;
        const int first = threadIdx.x / kChunks % kTogether, at = threadIdx.x % kChunks * kChunk;
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
            const int chunk = at + part * Shape::kThreads * kChunk;
            const bool mine =
                threadIdx.x < kTogether * kChunks && chunk >= inside_.begin && chunk < inside_.end;
            count_[part] = kept(mine ? Shape::kRows - first : 0);
        }
        to_ = kept_place(rooms + first * Shape::kPitch + at);
        next_ = kept(from_ + at + (int64_t{y} + first) * src.row_pitch);
        stride_ = kept(kTogether * src.row_pitch);
    }

    // Begins to bring in the next rows, `place` bytes into the rooms; copies_done() and a barrier
    // must follow.
    CVCLI_FN void begin(int place) {
        uint8_t* room = rooms_ + place;
        if constexpr (!R::kDirect) {
            load_pixels(room);
        } else {
            const bool simple = y_ >= 0 && y_ <= last_simple_;
            const bool bare = !simple && is_bare();
            if (simple) {
                copy_chunks(place);
            } else if (!bare) {
                load_chunks(room);
            }
            if (patches_ || bare) patch(bare, room);
            next_ += Shape::kRows * reader_.src.row_pitch;
        }
        y_ += Shape::kRows;
    }

  private:
    CVCLI_FN void copy_chunks(int place) const {
        constexpr int apart = Shape::kThreads * kChunk;
#pragma unroll
        for (int h = 0; h < Shape::kHalves; ++h) {
            const uint8_t* from = next_ + h * Shape::kHeight * reader_.src.row_pitch;
            uint8_t* to = to_ + place + h * Shape::kRows * Shape::kPitch;
#pragma unroll
            for (int k = 0; k < kEach; ++k, from += stride_) {
#pragma unroll
                for (int part = 0; part < kParts; ++part) {
                    if (k * kTogether >= count_[part]) continue;
                    copy_chunk(to + k * kTogether * Shape::kPitch + part * apart,
                               from + part * apart);
                }
            }
        }
    }
    // Rows that don't all lie in the image, or lie across chunks.
    CVCLI_FN void load_chunks(uint8_t* room) const {
#pragma unroll 1
        for (int i = threadIdx.x; i < kChunks * Shape::kLines; i += Shape::kThreads) {
            const int at = i % kChunks * kChunk;
            if (at < inside_.begin || at >= inside_.end) continue;
            const uint8_t* from = from_ + row_of(i / kChunks) * reader_.src.row_pitch + at;
            *reinterpret_cast<uint4*>(room + i * kChunk) =
                aligned_ ? load_chunk(from) : load_shifted(from);
        }
    }
    // What no chunk brings, sample by sample: the sides of an image, and rows of a constant.
    CVCLI_FN void patch(bool bare, uint8_t* room) const {
        constexpr int lanes = 16, size = sizeof(typename Shape::Sample);
        const Part left = {wanted_.begin,
                           smaller(larger(inside_.begin, wanted_.begin), wanted_.end)};
        const int32_t right = bare ? left.end : larger(inside_.end, left.end);
        const int32_t before = (left.end - left.begin) / size;
        const int32_t count = before + larger(wanted_.end - right, 0) / size;
#pragma unroll 1
        for (int i = threadIdx.x / lanes; i < Shape::kLines; i += Shape::kThreads / lanes) {
            const int32_t row = row_of(i);
#pragma unroll 1
            for (int j = threadIdx.x % lanes; j < count; j += lanes) {
                const int at = j < before ? left.begin + j * size : right + (j - before) * size;
                put(room + i * Shape::kPitch + at, row, at / size);
            }
        }
    }
    CVCLI_FN static int32_t chunks_in(int64_t bytes) {
        return static_cast<int32_t>(smaller(larger(bytes, int64_t{0}), int64_t{Shape::kPitch})) &
               ~(kChunk - 1);
    }
    // The source's row of a line, -1 for a constant.
    CVCLI_FN int32_t row_of(int number) const {
        const int down = number % Shape::kRows + number / Shape::kRows * Shape::kHeight;
        return inner_index(y_ + down, frame_.height, edges_.border);
    }
    // Whether a row of constants is among the next.
    CVCLI_FN bool is_bare() const {
        return edges_.border == kConstant && (y_ < 0 || y_ + kSpan > frame_.height);
    }

    CVCLI_FN void put(uint8_t* to, int32_t row, int32_t sample) const {
        using T = typename Shape::Sample;
        constexpr int C = Shape::kChannels;
        const int32_t from = sample - Shape::kPad / int(sizeof(T)) + C * 64;
        const int32_t x = inner_index(x_ + from / C - 64, frame_.width, edges_.border);
        const int c = from % C;
        T value = static_cast<T>(edges_.value[c]);
        if (row >= 0 && x >= 0) {
            value = read_only(row_at<const T>(reader_.src, row) + int64_t{x} * C + c);
        }
        *reinterpret_cast<T*>(to) = value;
    }
    // Pixels one by one, each through the gather and the steps before: some are read before the
    // first is stored.
    CVCLI_FN void load_pixels(uint8_t* room) const {
        using T = typename Shape::Sample;
        constexpr int C = Shape::kChannels, some = 4;
        constexpr int wide = Shape::kWidth + 2 * Shape::kRadiusX, all = wide * Shape::kLines;
#pragma unroll 1
        for (int i = threadIdx.x; i < all; i += some * Shape::kThreads) {
            Pixel<T, C> pixels[some];
#pragma unroll
            for (int k = 0; k < some; ++k) {
                const int at = smaller(i + k * Shape::kThreads, all - 1);
                const int32_t row = row_of(at / wide);
                const int32_t x =
                    inner_index(x_ - Shape::kRadiusX + at % wide, frame_.width, edges_.border);
                pixels[k] = reader_.at(larger(row, 0), larger(x, 0));
#pragma unroll
                for (int c = 0; c < C; ++c) {
                    const bool constant = row < 0 || x < 0;
                    if (constant) pixels[k].v[c] = static_cast<T>(edges_.value[c]);
                }
            }
#pragma unroll
            for (int k = 0; k < some; ++k) {
                const int at = i + k * Shape::kThreads;
                if (at >= all) break;
                const int to = at / wide * Shape::kPitch + Shape::kPad;
                T* pixel = reinterpret_cast<T*>(room + to) + (at % wide - Shape::kRadiusX) * C;
#pragma unroll
                for (int c = 0; c < C; ++c) pixel[c] = pixels[k].v[c];
            }
        }
    }

    const R& reader_;
    const Frame& frame_;
    const Edges& edges_;
    uint8_t* rooms_;
    int32_t y_;
    int32_t x_;
    bool aligned_ = false;
    int32_t last_simple_ = 0;  // up to which whole rows of the image come in
    Part wanted_ = {};         // of a line, in bytes
    Part inside_ = {};         // whole chunks of it that lie in the image
    int patches_ = 0;
    const uint8_t* from_ = nullptr;  // a line's place in the image's first row
    // Where and how many rows down this thread loads a chunk of some.
    uint8_t* to_ = nullptr;
    int count_[kParts] = {};
    const uint8_t* next_ = nullptr;
    int64_t stride_ = 0;
};

// Calls function(index, dst, params, place) for every strip that a block makes of every image.
template <class Shape, class W, class Params, class Function>
CVCLI_FN void for_each_strip(const W& work, const Each<Params>& each, const Function& function) {
    constexpr int rows = Shape::kHeight * Shape::kHalves;
    for_each_tile(work.args, rows, work.args.dst,
                  [&](int32_t index, int32_t tile_x, int32_t tile_y) {
                      const Image dst = work.dst(index);
                      const int32_t x = tile_x * Shape::kWidth, y = tile_y * rows;
                      if (x >= dst.width) return;
                      const Params& params = work.params(each, index);
                      const Frame& frame = params.frame;
                      function(index, dst, params, StripPlace{y + frame.y0, x + frame.x0, y, x});
                      __syncthreads();
                  });
}

}  // namespace cvcli
