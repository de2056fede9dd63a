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

template <class T, int C>
void map_rows(const MapArgs& args, const Finish& finish, int64_t begin, int64_t end) {
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
