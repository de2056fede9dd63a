// map on the CPU: a launch is cut into bands of destination rows, counted over the whole batch.
#pragma once

#include "core/map_rows_cpu.h"
#include "core/map_tiles_cpu.h"

namespace cvcli {

template <class T, int C>
void map_image(const MapArgs& args, int32_t index, Part rows, const Finish& finish) {
    const Move& move = args.moves ? args.moves[index] : args.move;
    const Band band = {image_at(args.src, index), image_at(args.dst, index), move, rows.begin,
                       rows.end};
    if (move.transpose) return map_band_tiles<T, C>(band, finish);
    map_band_rows<T, C>(band, finish);
}

// Samples from which on a look through a table of 16 bits pays.
constexpr int64_t kManySamples = 1 << 18;

template <class T, int C>
void map_rows(const MapArgs& args, Finish finish, int64_t begin, int64_t end) {
    if constexpr (sizeof(T) == 2) {
        const int64_t samples = (end - begin) * image_at(args.dst, 0).width * C;
        if (finish.table && samples >= kManySamples) {
            finish.pieces = pieces_of(static_cast<const T*>(finish.table));
        }
    }
    int64_t first = 0;
    for (int32_t i = 0; i < args.count && first < end; ++i) {
        const int64_t height = image_at(args.dst, i).height;
        const int64_t from = larger(begin - first, int64_t{0});
        const int64_t to = smaller(end - first, height);
        if (from < to) {
            map_image<T, C>(args, i, {int32_t(from), int32_t(to)}, finish);
        }
        first += height;
    }
}

}  // namespace cvcli
