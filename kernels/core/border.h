// Which pixel of an axis stands for one outside it.
#pragma once

#include "core/platform.h"

namespace cvcli {

enum : int32_t { kConstant, kReplicate, kReflect, kReflect101, kWrap };

CVCLI_FN int64_t positive_rest(int64_t index, int64_t period) {
    const int64_t rest = index % period;
    return rest < 0 ? rest + period : rest;
}

CVCLI_FN int32_t folded_index(int64_t index, int64_t length, int32_t border) {
    if (border == kReplicate) return index < 0 ? 0 : static_cast<int32_t>(length - 1);
    if (border == kWrap) return static_cast<int32_t>(positive_rest(index, length));
    const int64_t twice = border == kReflect ? 1 : 0;  // the edge is met twice
    const int64_t period = larger(2 * length - 2 + 2 * twice, int64_t{1});
    const int64_t phase = positive_rest(index, period);
    return static_cast<int32_t>(smaller(phase, period - twice - phase));
}

// The index that a border stands for, -1 for its constant. It may lie any number of lengths away.
CVCLI_FN int32_t border_index(int32_t index, int32_t length, int32_t border) {
    if (index >= 0 && index < length) return index;
    return border == kConstant ? -1 : folded_index(index, length, border);
}

}  // namespace cvcli
