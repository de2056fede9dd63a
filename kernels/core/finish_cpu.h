// The pointwise part of a map on the CPU: a table, a list of row functions, or nothing.
#pragma once

#include "core/image.h"
#include "core/lookup_cpu.h"

namespace cvcli {

// One operator over a float row, with its parameter block.
struct RowFn {
    void (*apply)(const void* params, float* row, int64_t width, int32_t channels);
    const void* params;
};

struct Finish {
    const void* table;
    const RowFn* fns;
    int32_t nfns;
    Pieces pieces;
    bool changes() const { return table || nfns; }
};

// A table of the samples of a row, which `finish` has.
template <class T, int C>
void finish_by_table(const Finish& finish, T* dst, const T* src, int64_t width) {
    const T* table = static_cast<const T*>(finish.table);
    if constexpr (sizeof(T) == 2) {
        if (finish.pieces.found) return piece_row<C>(dst, src, width, table, finish.pieces);
    }
    lookup_row<C>(dst, src, width, table);
}

template <class T, int C>
void finish_in_place(const Finish& finish, uint8_t* row, int64_t width) {
    if constexpr (sizeof(T) == sizeof(float)) {
        float* floats = reinterpret_cast<float*>(row);
        for (int32_t i = 0; i < finish.nfns; ++i) {
            finish.fns[i].apply(finish.fns[i].params, floats, width, C);
        }
    } else if (finish.table) {
        T* samples = reinterpret_cast<T*>(row);
        finish_by_table<T, C>(finish, samples, samples, width);
    }
}

// A run in source order: with a table, copied and looked up in one pass.
template <class T, int C>
bool finish_while_copying(const Finish& finish, uint8_t* dst, const uint8_t* src, int64_t width) {
    if constexpr (sizeof(T) < sizeof(float)) {
        if (!finish.table) return false;
        finish_by_table<T, C>(finish, reinterpret_cast<T*>(dst), reinterpret_cast<const T*>(src),
                              width);
        return true;
    }
    return false;
}

}  // namespace cvcli
