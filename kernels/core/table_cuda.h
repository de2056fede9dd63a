// Table lookups on the GPU. A functor is bound once a block, before the first pixel.
#pragma once

#include "core/geometry.h"
#include "core/pointwise.h"

namespace cvcli {

template <class B>
struct Lookup {
    static constexpr bool kMoves = false;
    const B* entries;
    CVCLI_FN B operator()(B bits) const { return entries[bits]; }
};

// 65,536 entries do not fit beside the stages: they are read through the read-only cache.
template <>
struct Lookup<uint16_t> {
    static constexpr bool kMoves = false;
    const uint16_t* entries;
    CVCLI_FN uint16_t operator()(uint16_t bits) const { return __ldg(entries + bits); }
};

template <class T>
struct Table;

// 256 entries fill 64 words, two a bank: a lookup costs at most two passes, whatever the image.
template <>
struct Table<uint8_t> {
    CVCLI_FN Lookup<uint8_t> bind(const MapArgs& args) const {
        __shared__ uint8_t entries[256];
        static_assert(kBlockThreads == 256, "one entry a thread");
        entries[threadIdx.x] = __ldg(static_cast<const uint8_t*>(args.table) + threadIdx.x);
        __syncthreads();
        return {entries};
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
