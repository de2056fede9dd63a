// Patterns on the CPU: rows come in through a gather and steps, and go out through steps.
#pragma once

#include <cstdlib>

#include "core/lanes_cpu.h"
#include "core/map_rows_cpu.h"
#include "core/pixels.h"

namespace cvcli {

// A step bound to its parameters, from a row of pixels to one of `bytes` a pixel.
struct PixelFn {
    void (*apply)(const void* params, const void* in, void* out, int64_t width);
    const void* params;
    int64_t bytes;
};

// How rows are read. `read` gathers one of `bytes` a pixel; null: rows are read as they lie.
struct RowsIn {
    void (*read)(const Image* src, const Move* move, int32_t row, int32_t width, void* out);
    const PixelFn* fns;
    int32_t count;
    int32_t bytes;
};

// How rows are written. `planar` is the size of samples that go to planes of their own, or 0.
struct RowsOut {
    const PixelFn* fns;
    int32_t count;
    int32_t planar;
};

// Memory of one band's work, freed with it. Take all first, then ask whether there was enough.
class Scratch {
  public:
    Scratch() = default;
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    CVCLI_ONCE ~Scratch() {
        while (last_) {
            Head* before = last_->before;
            std::free(last_);
            last_ = before;
        }
    }
    // 64-byte aligned, and 64 bytes longer, so that a vector may read past the end.
    template <class T>
    T* take(int64_t count) {
        return static_cast<T*>(take_bytes(static_cast<size_t>(count) * sizeof(T)));
    }
    bool failed() const { return failed_; }

  private:
    struct Head {
        Head* before;
    };
    CVCLI_ONCE void* take_bytes(size_t bytes) {
        Head* head = static_cast<Head*>(std::malloc(sizeof(Head) + 128 + bytes));
        if (!head) {
            failed_ = true;
            return nullptr;
        }
        head->before = last_;
        last_ = head;
        const uintptr_t at = (reinterpret_cast<uintptr_t>(head + 1) + 63) & ~uintptr_t{63};
        return reinterpret_cast<void*>(at);
    }
    Head* last_ = nullptr;
    bool failed_ = false;
};

constexpr int32_t kNoMemory = 1;

// One image's share of a launch: rows of work [begin, end).
template <class Params>
struct Share {
    Image src;
    Image dst;
    Image aux;
    const Move& move;
    const Params& params;
    const RowsIn& in;
    const RowsOut& out;
    int32_t begin;
    int32_t end;
};

// Rows of what a pattern reads, whatever its pixels are.
class RowReader {
  public:
    RowReader(const Image& src, const Move& move, const RowsIn& in, int32_t width, int64_t bytes,
              Scratch& scratch)
        : src_(src), move_(move), in_(in), width_(width), bytes_(bytes) {
        int64_t widest = in_.bytes;
        for (int32_t i = 0; i < in_.count; ++i) widest = larger(widest, in_.fns[i].bytes);
        if (in_.count) rooms_[0] = scratch.take<uint8_t>(widest * width_);
        if (in_.count > 1) rooms_[1] = scratch.take<uint8_t>(widest * width_);
    }
    // Whether rows are read where they lie, so that no room is needed.
    bool is_direct() const { return !in_.read && !in_.count; }
    // The pixels of a row, 0 to the frame's height; in `room` unless they lie ready in the image.
    CVCLI_ONCE const void* row(int32_t y, void* room) const {
        if (is_direct()) return row_at<const void>(src_, y);
        if (in_.read && !in_.count) return gathered(move_, y, room);
        const void* at = in_.read ? raw(y) : row_at<const void>(src_, y);
        for (int32_t i = 0; i < in_.count; ++i) {
            void* to = i + 1 == in_.count ? room : other(at);
            in_.fns[i].apply(in_.fns[i].params, at, to, width_);
            at = to;
        }
        if (in_.read && move_.constants) put_constants(y, static_cast<uint8_t*>(room));
        return room;
    }

  private:
    const void* gathered(const Move& move, int32_t y, void* room) const {
        in_.read(&src_, &move, y, width_, room);
        return room;
    }
    // Constants are values after the steps, so they are put in last.
    const void* raw(int32_t y) const {
        Move move = move_;
        move.constants = nullptr;
        return gathered(move, y, rooms_[0]);
    }
    void put_constants(int32_t y, uint8_t* room) const {
        const int32_t at_y = axis_at(move_.y, y);
        const Part run = at_y < 0 ? Part{width_, width_} : run_part(move_.x, 0, width_);
        const uint8_t* constants = static_cast<const uint8_t*>(move_.constants);
        for (int32_t x = 0; x < width_; x = x + 1 == run.begin ? larger(run.end, x + 1) : x + 1) {
            const int32_t number = constant_number(at_y, axis_at(move_.x, x));
            if (number >= 0) {
                std::memcpy(room + x * bytes_, constants + number * bytes_,
                            static_cast<size_t>(bytes_));
            }
        }
    }
    void* other(const void* at) const { return at == rooms_[0] ? rooms_[1] : rooms_[0]; }
    Image src_;
    const Move& move_;
    const RowsIn& in_;
    int32_t width_;
    int64_t bytes_;
    uint8_t* rooms_[2] = {};
};

template <class T, int C>
class Reader : public RowReader {
  public:
    template <class Params>
    Reader(const Share<Params>& share, Scratch& scratch)
        : RowReader(share.src, share.move, share.in, share.params.frame.width, sizeof(T) * C,
                    scratch) {}
    const T* row(int32_t y, T* room) const {
        return static_cast<const T*>(RowReader::row(y, room));
    }
};

// A row of pixels of `channels` samples, each of `bytes`, to a plane a channel.
void put_planes(const Image& dst, int32_t row, const void* pixels, int32_t bytes, int32_t channels);

// Rows of what a pattern gives, whatever its pixels are.
class RowWriter {
  public:
    RowWriter(const Image& dst, const RowsOut& out, int64_t bytes, Scratch& scratch)
        : dst_(dst), out_(out), bytes_(bytes) {
        int64_t widest = bytes_;
        for (int32_t i = 0; i < out_.count; ++i) {
            bytes_ = out_.fns[i].bytes;
            widest = larger(widest, bytes_);
        }
        if (!is_direct()) {
            for (uint8_t*& room : rooms_) room = scratch.take<uint8_t>(widest * dst_.width);
        }
    }
    bool is_direct() const { return !out_.count && !out_.planar; }
    // Takes the row through the steps and to its place.
    void end(int32_t row) const {
        if (!is_direct()) put(row, rooms_[0]);
    }
    // The same for pixels that lie elsewhere; they are not changed.
    CVCLI_ONCE void put(int32_t row, const void* pixels) const {
        const void* at = pixels;
        for (int32_t i = 0; i < out_.count; ++i) {
            const bool last = i + 1 == out_.count && !out_.planar;
            void* to = last ? row_at<void>(dst_, row) : at == rooms_[0] ? rooms_[1] : rooms_[0];
            out_.fns[i].apply(out_.fns[i].params, at, to, dst_.width);
            at = to;
        }
        if (out_.planar) {
            const int32_t channels = static_cast<int32_t>(bytes_ / out_.planar);
            return put_planes(dst_, row, at, out_.planar, channels);
        }
        if (!out_.count) std::memcpy(row_at<uint8_t>(dst_, row), at, bytes_ * dst_.width);
    }

  protected:
    // Where the pattern is to put the pixels of a destination row.
    void* room(int32_t row) const {
        return is_direct() ? row_at<void>(dst_, row) : static_cast<void*>(rooms_[0]);
    }

  private:
    Image dst_;
    const RowsOut& out_;
    int64_t bytes_;
    uint8_t* rooms_[2] = {};
};

template <class T, int C>
class Writer : public RowWriter {
  public:
    template <class Params>
    Writer(const Share<Params>& share, Scratch& scratch)
        : RowWriter(share.dst, share.out, sizeof(T) * C, scratch) {}
    T* begin(int32_t row) const { return static_cast<T*>(room(row)); }
};

// Runs `work`, which returns 0 or kNoMemory, on each image's part of the rows [begin, end).
template <class Params>
CVCLI_ONCE int32_t share_rows(const MapArgs& args, const Each<Params>& each, const RowsIn& in,
                              const RowsOut& out, int64_t begin, int64_t end,
                              int32_t (*work)(const Share<Params>&)) {
    int64_t first = 0;
    for (int32_t i = 0; i < args.count && first < end; ++i) {
        const Params& params = each.list ? each.list[i] : each.first;
        const int64_t rows = params.frame.rows;
        const int64_t from = larger(begin - first, int64_t{0});
        const int64_t to = smaller(end - first, rows);
        first += rows;
        if (from >= to) continue;
        const Move& move = args.moves ? args.moves[i] : args.move;
        const Share<Params> share = {image_at(args.src, i),
                                     image_at(args.dst, i),
                                     image_at(args.aux, i),
                                     move,
                                     params,
                                     in,
                                     out,
                                     int32_t(from),
                                     int32_t(to)};
        if (const int32_t failed = work(share)) return failed;
    }
    return 0;
}

}  // namespace cvcli

#define CVCLI_PATTERN_ROWS(name, Params, suffix, T, C)                                           \
    CVCLI_EXPORT int32_t cvcli_##name##_##suffix##_##C(                                          \
        const cvcli::MapArgs* args, const cvcli::Each<cvcli::Params>* each,                      \
        const cvcli::RowsIn* in, const cvcli::RowsOut* out, int64_t begin, int64_t end) {        \
        return cvcli::share_rows(*args, *each, *in, *out, begin, end, cvcli::name##_rows<T, C>); \
    }

// The exports of a pattern; name_rows<T, C>(share) makes an image's rows, C being the channels of
// what the pattern reads.
#define CVCLI_PATTERN(name, Params)                    \
    CVCLI_PATTERN_ROWS(name, Params, u8, uint8_t, 1)   \
    CVCLI_PATTERN_ROWS(name, Params, u8, uint8_t, 2)   \
    CVCLI_PATTERN_ROWS(name, Params, u8, uint8_t, 3)   \
    CVCLI_PATTERN_ROWS(name, Params, u8, uint8_t, 4)   \
    CVCLI_PATTERN_ROWS(name, Params, u16, uint16_t, 1) \
    CVCLI_PATTERN_ROWS(name, Params, u16, uint16_t, 2) \
    CVCLI_PATTERN_ROWS(name, Params, u16, uint16_t, 3) \
    CVCLI_PATTERN_ROWS(name, Params, u16, uint16_t, 4) \
    CVCLI_PATTERN_ROWS(name, Params, f32, float, 1)    \
    CVCLI_PATTERN_ROWS(name, Params, f32, float, 2)    \
    CVCLI_PATTERN_ROWS(name, Params, f32, float, 3)    \
    CVCLI_PATTERN_ROWS(name, Params, f32, float, 4)
