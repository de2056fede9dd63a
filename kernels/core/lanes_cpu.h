// Vectors of unsigned integers on which the host's compiler takes the operators of one.
#pragma once

#include "core/simd_cpu.h"

namespace cvcli {

#if defined(__GNUC__)

constexpr int kLaneBytes = CVCLI_SIMD == 2 ? 64 : CVCLI_SIMD == 1 ? 32 : 16;

template <class K>
struct LanesOf {
    typedef K type __attribute__((vector_size(kLaneBytes)));
};
template <class K>
using Lanes = typename LanesOf<K>::type;

#else

// Elsewhere a vector of one.
template <class K>
using Lanes = K;

#endif

template <class K>
constexpr int kLaneCount = sizeof(Lanes<K>) / sizeof(K);

template <class V, class K>
inline V load_lanes(const K* from) {
    V lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

template <class V, class K>
inline void store_lanes(K* to, const V& lanes) {
    std::memcpy(to, &lanes, sizeof lanes);
}

}  // namespace cvcli
