// Whole pixels, each read at its place and taken through the steps.
#pragma once

#include "core/pattern.h"

namespace cvcli {

struct PixelsParams {
    Frame frame;
};

#if CVCLI_CUDA

// A warp takes 128 pixels of a row, each lane one in 32.
template <class W>
CVCLI_FN void pixels(const W& work, const Each<PixelsParams>&) {
    for_each_tile(
        work.args, kBlockWarps, work.args.dst, [&](int32_t index, int32_t tile_x, int32_t tile_y) {
            const Image src = work.src(index);
            const Image dst = work.dst(index);
            const auto reader = work.reader(src, index);
            const int32_t y = tile_y * kBlockWarps + static_cast<int32_t>(threadIdx.x) / kWarp;
            if (y >= dst.height) return;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int32_t x = tile_x * 128 + i * kWarp + lane();
                if (x < dst.width) work.write(dst, y, x, reader.at(y, x));
            }
        });
}

#else

template <class T, int C>
int32_t pixels_rows(const Share<PixelsParams>& share) {
    Scratch scratch;
    const Reader<T, C> reader(share, scratch);
    const Writer<T, C> writer(share, scratch);
    if (scratch.failed()) return kNoMemory;
    for (int32_t row = share.begin; row < share.end; ++row) {
        T* room = writer.begin(row);
        const T* pixels = reader.row(row, room);
        pixels == room ? writer.end(row) : writer.put(row, pixels);
    }
    return 0;
}

#endif

}  // namespace cvcli

CVCLI_PATTERN(pixels, PixelsParams)
