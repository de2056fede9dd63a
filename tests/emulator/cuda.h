// Stands in for what NVRTC has built in. Approximate functions are left out: they would not give
// the same bits.
#pragma once

#include "runtime.h"

#include <math.h>
#include <string.h>

#define __CUDACC_RTC__ 1
#define CVCLI_EMULATED 1
#define __CUDA_ARCH__ 900
// 64 bits are `long long` there; the host's headers made them `long`.
#define int64_t emu_int64_t
#define uint64_t emu_uint64_t

#define __device__
#define __host__
#define __global__ __attribute__((visibility("default")))
#define __constant__ static
#define __shared__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_assume(condition) ((void)0)
#define __isGlobal(pointer) true
#define EMU_FN static inline __attribute__((unused))

#define threadIdx emu_place.thread
#define blockIdx emu_place.block
#define blockDim emu_place.block_dim
#define gridDim emu_place.grid_dim
constexpr int warpSize = 32;

#define EMU_VECTORS(base, type, two, four)                          \
    struct alignas(sizeof(type)) base##1 {                          \
        type x;                                                     \
    };                                                              \
    struct alignas(two) base##2 {                                   \
        type x, y;                                                  \
    };                                                              \
    struct base##3 {                                                \
        type x, y, z;                                               \
    };                                                              \
    struct alignas(four) base##4 {                                  \
        type x, y, z, w;                                            \
    };                                                              \
    EMU_FN base##1 make_##base##1(type x) {                         \
        return {x};                                                 \
    }                                                               \
    EMU_FN base##2 make_##base##2(type x, type y) {                 \
        return {x, y};                                              \
    }                                                               \
    EMU_FN base##3 make_##base##3(type x, type y, type z) {         \
        return {x, y, z};                                           \
    }                                                               \
    EMU_FN base##4 make_##base##4(type x, type y, type z, type w) { \
        return {x, y, z, w};                                        \
    }
EMU_VECTORS(char, signed char, 2, 4)
EMU_VECTORS(uchar, unsigned char, 2, 4)
EMU_VECTORS(short, short, 4, 8)
EMU_VECTORS(ushort, unsigned short, 4, 8)
EMU_VECTORS(int, int, 8, 16)
EMU_VECTORS(uint, unsigned, 8, 16)
EMU_VECTORS(longlong, long long, 16, 16)
EMU_VECTORS(ulonglong, unsigned long long, 16, 16)
EMU_VECTORS(float, float, 8, 16)
EMU_VECTORS(double, double, 16, 16)

template <class To, class From>
EMU_FN To emu_bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

// Memory
template <class T>
EMU_FN T __ldg(const T* from) {
    return *from;
}
template <class T>
EMU_FN T __ldcs(const T* from) {
    return *from;
}
template <class T>
EMU_FN T __ldcg(const T* from) {
    return *from;
}
template <class T>
EMU_FN T __ldca(const T* from) {
    return *from;
}
template <class T>
EMU_FN void __stcs(T* to, T value) {
    *to = value;
}
template <class T>
EMU_FN void __stcg(T* to, T value) {
    *to = value;
}
template <class T>
EMU_FN void __stwt(T* to, T value) {
    *to = value;
}
EMU_FN void __threadfence() {}
EMU_FN void __threadfence_block() {}
EMU_FN void __trap() {
    emu_fail("traps");
}

// Barriers
EMU_FN void __syncthreads() {
    emu_barrier(0);
}
EMU_FN int __syncthreads_or(int value) {
    return emu_barrier(value) != 0;
}
EMU_FN int __syncthreads_and(int value) {
    return emu_barrier(value) == int(blockDim.x);
}
EMU_FN int __syncthreads_count(int value) {
    return emu_barrier(value);
}
EMU_FN void __syncwarp(unsigned mask = ~0u) {
    emu_exchange(mask, 0, EMU_SYNCWARP);
}

// Warps
template <class T>
EMU_FN T emu_from(unsigned mask, T value, int lane) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "32 or 64 bits");
    unsigned long long raw = 0;
    memcpy(&raw, &value, sizeof value);
    const auto* all = emu_exchange(mask, raw, EMU_SHUFFLE);
    if (!(mask >> lane & 1)) emu_fail("shuffles from a lane outside the mask");
    raw = all[lane];
    memcpy(&value, &raw, sizeof value);
    return value;
}
EMU_FN int emu_lane() {
    return threadIdx.x % 32;
}
template <class T>
EMU_FN T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
    return emu_from(mask, value, (emu_lane() & ~(width - 1)) + (lane & (width - 1)));
}
template <class T>
EMU_FN T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
    const int in = emu_lane() % width;
    return emu_from(mask, value, in >= int(by) ? emu_lane() - int(by) : emu_lane());
}
template <class T>
EMU_FN T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
    const int in = emu_lane() % width;
    return emu_from(mask, value, in + int(by) < width ? emu_lane() + int(by) : emu_lane());
}
template <class T>
EMU_FN T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32) {
    const int to = emu_lane() ^ by;
    return emu_from(mask, value, to / width > emu_lane() / width ? emu_lane() : to);
}
EMU_FN unsigned __ballot_sync(unsigned mask, int value) {
    const auto* all = emu_exchange(mask, value != 0, EMU_VOTE);
    unsigned out = 0;
    for (int i = 0; i < 32; ++i) {
        if (mask >> i & 1) out |= unsigned(all[i]) << i;
    }
    return out;
}
EMU_FN int __any_sync(unsigned mask, int value) {
    return __ballot_sync(mask, value) != 0;
}
EMU_FN int __all_sync(unsigned mask, int value) {
    return __ballot_sync(mask, value) == mask;
}
template <class T>
EMU_FN unsigned __match_any_sync(unsigned mask, T value) {
    unsigned long long raw = 0;
    memcpy(&raw, &value, sizeof value);
    const auto* all = emu_exchange(mask, raw, EMU_SHUFFLE);
    unsigned out = 0;
    for (int i = 0; i < 32; ++i) {
        if (mask >> i & 1) out |= unsigned(all[i] == raw) << i;
    }
    return out;
}
template <class T, class F>
EMU_FN T emu_reduce(unsigned mask, T value, F join) {
    const auto* all = emu_exchange(mask, static_cast<unsigned>(value), EMU_SHUFFLE);
    bool first = true;
    T out = value;
    for (int i = 0; i < 32; ++i) {
        if (!(mask >> i & 1)) continue;
        out = first ? T(all[i]) : join(out, T(all[i]));
        first = false;
    }
    return out;
}
#define EMU_REDUCE(name, type, expression)                                                 \
    EMU_FN type __reduce_##name##_sync(unsigned mask, type value) {                        \
        return emu_reduce(mask, value, [](type a, type b) -> type { return expression; }); \
    }
EMU_REDUCE(add, unsigned, a + b)
EMU_REDUCE(add, int, int(unsigned(a) + unsigned(b)))
EMU_REDUCE(min, unsigned, a < b ? a : b)
EMU_REDUCE(min, int, a < b ? a : b)
EMU_REDUCE(max, unsigned, a > b ? a : b)
EMU_REDUCE(max, int, a > b ? a : b)
EMU_REDUCE(and, unsigned, a& b)
EMU_REDUCE(or, unsigned, a | b)
EMU_REDUCE(xor, unsigned, a ^ b)

// Atomics. What they touch is checked, but is no race.
template <class T>
struct EmuSame {
    using type = T;
};
#define EMU_ATOMIC(name, expression)                                         \
    template <class T>                                                       \
    __attribute__((noinline, no_sanitize("kernel-address"))) T atomic##name( \
        T* at, typename EmuSame<T>::type value) {                            \
        emu_check(at, sizeof(T), 1);                                         \
        const T old = *at;                                                   \
        *at = expression;                                                    \
        return old;                                                          \
    }
EMU_ATOMIC(Add, T(old + value))
EMU_ATOMIC(Sub, T(old - value))
EMU_ATOMIC(Min, value < old ? value : old)
EMU_ATOMIC(Max, value > old ? value : old)
EMU_ATOMIC(And, T(old& value))
EMU_ATOMIC(Or, T(old | value))
EMU_ATOMIC(Xor, T(old ^ value))
EMU_ATOMIC(Exch, value)
template <class T>
__attribute__((noinline, no_sanitize("kernel-address"))) T
atomicCAS(T* at, typename EmuSame<T>::type wanted, typename EmuSame<T>::type value) {
    emu_check(at, sizeof(T), 1);
    const T old = *at;
    if (old == wanted) *at = value;
    return old;
}

#include "cuda_math.h"
