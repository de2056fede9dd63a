// Lookups in a 16-bit table that is wholly in shared memory, for GPUs with so much of it: through
// the caches a lane of a warp waits for the others wherever they meet different lines.
#pragma once

#include "core/map.h"

namespace cvcli {

constexpr int kTableChunks = 65536 * 2 / kChunk;

struct RoomLookup {
    static constexpr bool kMoves = false;
    const uint16_t* entries;
    CVCLI_FN void ready() const {}
    CVCLI_FN uint16_t operator()(uint16_t bits) const { return entries[bits]; }
};

struct RoomTable {};

CVCLI_FN RoomLookup bind(const RoomTable&, const MapArgs& args) {
    extern __shared__ uint4 table_room[];
    const uint4* from = static_cast<const uint4*>(args.table);
    for (int i = threadIdx.x; i < kTableChunks; i += kBlockThreads) table_room[i] = __ldg(from + i);
    __syncthreads();
    return {reinterpret_cast<const uint16_t*>(table_room)};
}

}  // namespace cvcli
