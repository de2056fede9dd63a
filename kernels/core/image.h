// The descriptors that cross from Python into a kernel, byte for byte the same on both sides.
#pragma once

#include "core/platform.h"

namespace cvcli {

// One image of interleaved samples; row_pitch is in bytes and may exceed a row's own bytes.
struct Image {
    void* data;
    int32_t height;
    int32_t width;
    int64_t row_pitch;
};

// A batch: image i is list[i] (ragged), or `first` moved on by i * stride bytes (list is null).
struct Images {
    Image first;
    int64_t stride;
    const Image* list;
};

// Where each destination index of one axis comes from: inside the run by arithmetic, outside it
// by the map. A value v >= 0 is a source index, v < 0 is constant pixel number ~v.
struct Axis {
    const int32_t* map;
    int32_t run_begin;
    int32_t run_end;
    int32_t run_source;
    int32_t run_step;
};

// dst(y, x) = src(Y(y), X(x)), or src(X(x), Y(y)) when transposed. Constants are final values: the
// pointwise part of a map leaves them alone.
struct Move {
    Axis x;
    Axis y;
    const void* constants;
    int32_t transpose;
    int32_t reserved;
};

// One launch. Image i moves by moves[i], or by `move` when moves is null; `aux` is a second batch
// to read, for the patterns that take one.
struct MapArgs {
    Images src;
    Images dst;
    int32_t count;
    int32_t reserved;
    Move move;
    const Move* moves;
    const void* table;
    Images aux;
};

static_assert(sizeof(Image) == 24, "Image is packed by Python");
static_assert(sizeof(Images) == 40, "Images is packed by Python");
static_assert(sizeof(Axis) == 24, "Axis is packed by Python");
static_assert(sizeof(Move) == 64, "Move is packed by Python");
static_assert(sizeof(MapArgs) == 208, "MapArgs is packed by Python");

CVCLI_FN Image strided_image(const Images& images, int32_t index) {
    Image image = images.first;
    image.data = static_cast<uint8_t*>(image.data) + index * images.stride;
    return image;
}

CVCLI_FN Image image_at(const Images& images, int32_t index) {
    return images.list ? images.list[index] : strided_image(images, index);
}

CVCLI_FN Move move_at(const MapArgs& args, int32_t index) {
    return args.moves ? args.moves[index] : args.move;
}

template <class T>
CVCLI_FN T* row_at(const Image& image, int32_t row) {
    return reinterpret_cast<T*>(static_cast<uint8_t*>(image.data) + row * image.row_pitch);
}

}  // namespace cvcli
