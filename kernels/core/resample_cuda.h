// resample on the GPU: tiles whose source goes through shared memory, or pixel by pixel.
#pragma once

#include "core/resample_bytes_cuda.h"
#include "core/resample_doubles_cuda.h"
#include "core/resample_floats_cuda.h"
#include "core/resample_pairs_cuda.h"

namespace cvcli {

template <class W>
CVCLI_FN void resample_points(const W& work, const Each<ResampleParams>& each) {
    for_each_tile(work.args, kBlockWarps, work.args.dst,
                  [&](int32_t index, int32_t tile_x, int32_t tile_y) {
                      const Image src = work.src(index);
                      const Image dst = work.dst(index);
                      const ResampleParams& params = work.params(each, index);
                      const auto reader = work.reader(src, index);
                      const int32_t thread = static_cast<int32_t>(threadIdx.x);
                      const int32_t y = tile_y * kBlockWarps + thread / kWarp;
                      const int32_t x = tile_x * kWarp + lane();
                      if (x >= dst.width || y >= dst.height) return;
                      work.write(dst, y, x,
                                 resampled(typename W::In{}, reader, params, params.frame.y0 + y,
                                           params.frame.x0 + x));
                  });
}

// `Numbers` are those of resample_bytes or resample_floats; one, how often a side gets longer or,
// less than 0, shorter; or none for points.
template <int... Numbers, class W>
CVCLI_FN void resample(const W& work, const Each<ResampleParams>& each) {
    if constexpr (sizeof...(Numbers) == 0) {
        resample_points(work, each);
    } else if constexpr (sizeof...(Numbers) == 1) {
        if constexpr ((Numbers + ...) < 0) {
            if constexpr (sizeof(typename W::In::Sample) == 1) {
                resample_halves(work, each);
            } else {
                resample_pairs(work, each);
            }
        } else {
            resample_doubles(work, each);
        }
    } else if constexpr (sizeof(typename W::In::Sample) == 1) {
        resample_bytes<Numbers...>(work, each);
    } else {
        resample_floats<Numbers...>(work, each);
    }
}

}  // namespace cvcli
