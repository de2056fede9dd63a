// Where the pixels of a tile come from: places by row and column, and what encloses them all.
#pragma once

#include "core/warp.h"

namespace cvcli {

struct WarpTile {
    int32_t x;
    int32_t y;
    int32_t width;
    int32_t height;
};

// The part of the source, borders included, that a tile needs; `known` if it is sure.
struct Box {
    int32_t x;
    int32_t y;
    int32_t width;
    int32_t height;
    bool known;
    CVCLI_FN bool misses(const Frame& source) const {
        return known &&
               (x >= source.width || y >= source.height || x + width <= 0 || y + height <= 0);
    }
};

// The corners of a tile in a box, in order around it, and how far from them pixels may lie.
struct Outline {
    float x[4];
    float y[4];
    float slack;
};

// A box around places from (x0, y0) to (x1, y1); it starts at a multiple of four pixels.
template <int Filter>
CVCLI_FN Box box_around(int32_t x0, int32_t y0, int32_t x1, int32_t y1, bool known) {
    using R = Reach<Filter>;
    const int32_t x = (x0 + R::kFirst) & ~3;
    const int32_t y = y0 + R::kFirst;
    return {x, y, x1 + R::kLast + 1 - x, y1 + R::kLast + 1 - y, known};
}

template <int Shape, int High>
struct WarpMap;

template <int High>
struct WarpMap<kAffine, High> {
    struct Memory {};
    struct Step {
        int64_t x;
        int64_t y;
        CVCLI_FN void move(const Step& by) {
            x += by.x;
            y += by.y;
        }
    };
    using At = Step;
    const int64_t* fixed;
    Step first;
    int32_t width;
    int32_t height;

    CVCLI_FN WarpMap(const WarpParams& params, const WarpTile& tile, int64_t half, Memory&)
        : fixed(params.fixed), width(tile.width), height(tile.height) {
        const int64_t x = params.frame.x0 + tile.x;
        const int64_t y = params.frame.y0 + tile.y;
        first.x = fixed[0] * x + fixed[1] * y + fixed[2] + half;
        first.y = fixed[3] * x + fixed[4] * y + fixed[5] + half;
    }
    CVCLI_FN Step column(int x) const { return {fixed[0] * x, fixed[3] * x}; }
    CVCLI_FN Step rows(int count) const { return {fixed[1] * count, fixed[4] * count}; }
    CVCLI_FN At at(int y, int x) const {
        return {first.x + fixed[1] * y + fixed[0] * x, first.y + fixed[4] * y + fixed[3] * x};
    }
    template <int Filter, bool Near>
    CVCLI_FN Place place(const At& at) const {
        return affine_place(at.x, at.y);
    }
    template <int Filter>
    CVCLI_FN Box box() const {
        const Step wide = column(width - 1);
        const Step high = rows(height - 1);
        const int64_t zero = 0;
        return box_around<Filter>(whole(first.x + smaller(wide.x, zero) + smaller(high.x, zero)),
                                  whole(first.y + smaller(wide.y, zero) + smaller(high.y, zero)),
                                  whole(first.x + larger(wide.x, zero) + larger(high.x, zero)),
                                  whole(first.y + larger(wide.y, zero) + larger(high.y, zero)),
                                  true);
    }
    CVCLI_FN Outline outline(const Box& box) const {
        Outline outline = {{}, {}, 0.25f};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const At corner = at(i < 2 ? 0 : height - 1, i == 1 || i == 2 ? width - 1 : 0);
            outline.x[i] = inside(corner.x, box.x);
            outline.y[i] = inside(corner.y, box.y);
        }
        return outline;
    }

  private:
    CVCLI_FN static int32_t whole(int64_t at) { return static_cast<int32_t>(at >> 32); }
    CVCLI_FN static float inside(int64_t at, int32_t from) {
        const int64_t rest = at - (int64_t{from} << 32);
        return static_cast<float>(static_cast<int32_t>(rest >> 16)) * (1.0f / 65536.0f);
    }
};

// Rows start in the tile's first column or at the anchor within it.
template <int High>
struct WarpMap<kPerspective, High> {
    // Of corners, in order around the tile: their places, w, and the larger of what it divides.
    struct Memory {
        float4 origins[High][2];
        float4 corners[4];
    };
    struct Step {
        int rows;
    };
    struct At {
        const float4* origin;
        Homogeneous step;
        CVCLI_FN void move(const Step& by) { origin += 2 * by.rows; }
    };
    const WarpParams& params;
    WarpTile tile;
    int32_t x;
    int32_t y;
    Memory& memory;

    CVCLI_FN WarpMap(const WarpParams& from, const WarpTile& part, int64_t, Memory& room)
        : params(from),
          tile(part),
          x(from.frame.x0 + part.x),
          y(from.frame.y0 + part.y),
          memory(room) {
        for (int i = threadIdx.x; i < 2 * tile.height; i += blockDim.x) {
            const int32_t anchor = x - x % kAnchor + (i & 1) * kAnchor;
            const Homogeneous at = origin_at(params, anchor, y + i / 2);
            memory.origins[i / 2][i & 1] = {at.x, at.y, at.w, 0.0f};
        }
        if (threadIdx.x < 4) memory.corners[threadIdx.x] = corner(threadIdx.x);
        __syncthreads();
    }
    CVCLI_FN Step rows(int count) const { return {count}; }
    CVCLI_FN At at(int down, int right) const {
        const int32_t from = x % kAnchor + right;
        return {&memory.origins[down][from / kAnchor], step_by(params, from % kAnchor)};
    }
    template <int Filter, bool Near>
    CVCLI_FN Place place(const At& at) const {
        const float4 from = *at.origin;
        return perspective_place<Filter, Near>({from.x, from.y, from.z}, at.step);
    }
    // Between the corners, whose denominators must be of one sign and not too different: only then
    // do places lie within two pixels of the straight lines from corner to corner.
    template <int Filter>
    CVCLI_FN Box box() const {
        if (!is_known()) return {0, 0, 0, 0, false};
        float4 low = memory.corners[0], high = low;
#pragma unroll
        for (int i = 1; i < 4; ++i) {
            const float4 at = memory.corners[i];
            low.x = smaller(low.x, at.x);
            low.y = smaller(low.y, at.y);
            high.x = larger(high.x, at.x);
            high.y = larger(high.y, at.y);
        }
        return box_around<Filter>(whole(low.x) - 2, whole(low.y) - 2, whole(high.x) + 2,
                                  whole(high.y) + 2, true);
    }
    CVCLI_FN Outline outline(const Box& box) const {
        Outline outline = {{}, {}, 2.0f};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            outline.x[i] = memory.corners[i].x - static_cast<float>(box.x);
            outline.y[i] = memory.corners[i].y - static_cast<float>(box.y);
        }
        return outline;
    }

  private:
    CVCLI_FN float4 corner(int i) const {
        const int32_t right = i == 1 || i == 2 ? tile.width - 1 : 0;
        const int32_t down = i < 2 ? 0 : tile.height - 1;
        const Homogeneous at = origin_at(params, x + right, y + down);
        const float most = larger(magnitude(at.x), magnitude(at.y));
        return {at.x / at.w, at.y / at.w, at.w, most};
    }
    CVCLI_FN bool is_known() const {
        float most = 0.0f, least = 3.0e38f, far = 0.0f;
        bool positive = true, negative = true;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float4 at = memory.corners[i];
            positive = positive && at.z > 0.0f;
            negative = negative && at.z < 0.0f;
            most = larger(most, magnitude(at.z));
            least = smaller(least, magnitude(at.z));
            far = larger(far, at.w);
        }
        const float step = magnitude(params.map[0]) + magnitude(params.map[3]);
        return (positive || negative) &&
               most + kAnchor * magnitude(params.map[6]) <= 64.0f * least &&
               far + kAnchor * step <= 0.75f * kNear * least;
    }
    CVCLI_FN static int32_t whole(float at) { return static_cast<int32_t>(floor_of(at)); }
    CVCLI_FN static float magnitude(double value) {
        return static_cast<float>(value < 0.0 ? -value : value);
    }
};

}  // namespace cvcli
