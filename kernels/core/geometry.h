// How a CUDA launch is cut up. Python works out the grid from the same numbers:
//   map_rows:  x = ceil(width / segment_pixels), y = ceil(height / 8): a warp a segment of a row
//   map_tiles: x = ceil(width / tile_pixels), y = ceil(height / tile_pixels): a block a tile
// of the largest destination, z = images, y and z at most 65535: what is left over is looped for.
// Where blocks share a multiprocessor's memory with a table they are larger, and one each: they
// loop over the rows of all images.
// A part's place comes without a division, which would keep its first load waiting.
#pragma once

#include "core/platform.h"

namespace cvcli {

constexpr int kWarp = 32;
#ifndef CVCLI_BLOCK_WARPS
#define CVCLI_BLOCK_WARPS 8
#endif
constexpr int kBlockWarps = CVCLI_BLOCK_WARPS;
constexpr int kBlockThreads = kWarp * kBlockWarps;
constexpr int kChunk = 16;  // bytes of the widest load

// A warp's share of a row. 1920 is a multiple of every pixel size (1, 2, 3, 4, 6, 8, 12, 16) and
// of 128, so segments of an aligned row stay aligned; four 16-byte loads a lane cover it.
constexpr int kSegmentBytes = 1920;
constexpr int kLoads = 4;

// A staged segment starts up to 15 bytes into its first chunk, and one word past it may be read.
constexpr int kStageBytes = kSegmentBytes + 2 * kChunk;

static_assert(kSegmentBytes + kChunk - 1 <= kLoads * kWarp * kChunk, "loads cover a segment");

CVCLI_FN constexpr int segment_pixels(int pixel_bytes) {
    return kSegmentBytes / pixel_bytes;
}

// Small pixels get wider tiles, so that a tile's row is at least two 32-byte sectors.
CVCLI_FN constexpr int tile_pixels(int pixel_bytes) {
    return pixel_bytes <= 4 ? 64 : 32;
}

// An odd number of words, so that a column of a tile falls into 32 different banks.
CVCLI_FN constexpr int tile_pitch(int pixel_bytes) {
    return tile_pixels(pixel_bytes) * pixel_bytes + 4;
}

}  // namespace cvcli
