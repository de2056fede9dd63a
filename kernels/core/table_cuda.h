// Table lookups on the GPU. A functor is bound once a block, before the first pixel.
#pragma once

#include "core/geometry.h"
#include "core/pointwise.h"

namespace cvcli {

template <class B>
struct Lookup;

// Each warp has a copy of the 256 entries of its own. They are fetched first and put in place when
// the warp's pixels are on their way, so neither waits for the other. 256 entries fill 64 words,
// two a bank: a lookup costs at most two passes, whatever the image.
template <>
struct Lookup<uint8_t> {
    static constexpr bool kMoves = false;
    uint2 fetched;
    uint2* room;
    const uint8_t* entries;
    CVCLI_FN void ready() const { *room = fetched; }
    CVCLI_FN uint8_t operator()(uint8_t bits) const { return entries[bits]; }
};

// 65,536 entries do not fit beside the stages: they are read through the read-only cache.
template <>
struct Lookup<uint16_t> {
    static constexpr bool kMoves = false;
    const uint16_t* entries;
    CVCLI_FN void ready() const {}
    CVCLI_FN uint16_t operator()(uint16_t bits) const { return __ldg(entries + bits); }
};

template <class T>
struct Table;

template <>
struct Table<uint8_t> {
    CVCLI_FN Lookup<uint8_t> bind(const MapArgs& args) const {
        __shared__ uint2 rooms[kBlockWarps][kWarp];
        uint2* room = rooms[threadIdx.x / kWarp];
        const int lane = threadIdx.x % kWarp;
        const uint2 fetched = __ldg(static_cast<const uint2*>(args.table) + lane);
        return {fetched, room + lane, reinterpret_cast<const uint8_t*>(room)};
    }
};

template <>
struct Table<uint16_t> {
    CVCLI_FN Lookup<uint16_t> bind(const MapArgs& args) const {
        return {static_cast<const uint16_t*>(args.table)};
    }
};

template <class F>
CVCLI_FN F bind(const F& functor, const MapArgs&) {
    return functor;
}

template <class T>
CVCLI_FN Lookup<Bits<T>> bind(const Table<T>& table, const MapArgs& args) {
    return table.bind(args);
}

}  // namespace cvcli
