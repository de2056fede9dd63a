// Vectors of unsigned integers on which the host's compiler takes the operators of one.
#pragma once

#include "core/simd_cpu.h"

namespace cvcli {

#if defined(__GNUC__)

constexpr int kPackBytes = CVCLI_SIMD == 2 ? 64 : CVCLI_SIMD == 1 ? 32 : 16;

template <class K>
struct PackOf {
    typedef K type __attribute__((vector_size(kPackBytes)));
};
template <class K>
using Pack = typename PackOf<K>::type;

#else

// Elsewhere a vector of one.
template <class K>
using Pack = K;

#endif

template <class K>
constexpr int kPackCount = sizeof(Pack<K>) / sizeof(K);

template <class V, class K>
inline V load_pack(const K* from) {
    V pack;
    std::memcpy(&pack, from, sizeof pack);
    return pack;
}

template <class V, class K>
inline void store_pack(K* to, const V& pack) {
    std::memcpy(to, &pack, sizeof pack);
}

}  // namespace cvcli
