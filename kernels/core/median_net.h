// Medians of 3x3 and 5x5 by exchanges: the same for keys one by one, by vectors, or two a word.
#pragma once

#include "core/pixels.h"

namespace cvcli {

// Unsigned integers that are in order as the samples are; of floats in IEEE 754's total order, so
// that NaN has its place and every bit comes back.
CVCLI_FN uint8_t order_key(uint8_t value) {
    return value;
}
CVCLI_FN uint16_t order_key(uint16_t value) {
    return value;
}
CVCLI_FN uint32_t order_key(float value) {
    const uint32_t bits = bits_of(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
CVCLI_FN uint8_t key_sample(uint8_t key, uint8_t) {
    return key;
}
CVCLI_FN uint16_t key_sample(uint16_t key, uint16_t) {
    return key;
}
CVCLI_FN float key_sample(uint32_t key, float) {
    return float_of(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

template <class T>
struct KeyOf {
    using type = decltype(order_key(T{}));
};
template <class T>
using Key = typename KeyOf<T>::type;

template <class K>
CVCLI_FN K lower(K a, K b) {
    return b < a ? b : a;
}
template <class K>
CVCLI_FN K higher(K a, K b) {
    return a < b ? b : a;
}

// Puts two in order.
template <class K>
CVCLI_FN void order(K& a, K& b) {
    const K low = lower(a, b);
    b = higher(a, b);
    a = low;
}

template <class K>
CVCLI_FN void sort_column(K (&v)[3]) {
    order(v[0], v[1]);
    order(v[1], v[2]);
    order(v[0], v[1]);
}

template <class K>
CVCLI_FN void sort_column(K (&v)[5]) {
    order(v[0], v[1]);
    order(v[3], v[4]);
    order(v[2], v[4]);
    order(v[2], v[3]);
    order(v[1], v[4]);
    order(v[0], v[3]);
    order(v[0], v[2]);
    order(v[1], v[3]);
    order(v[1], v[2]);
}

template <class K>
CVCLI_FN K median_of_3(K a, K b, K c) {
    return higher(lower(a, b), lower(higher(a, b), c));
}

// Brings the lowest of count values to the front, or the highest to the back.
template <int count, class K>
CVCLI_FN void lowest_first(K* v) {
    CVCLI_UNROLL
    for (int i = 1; i < count; ++i) order(v[0], v[i]);
}
template <int count, class K>
CVCLI_FN void highest_last(K* v) {
    CVCLI_UNROLL
    for (int i = 0; i < count - 1; ++i) order(v[i], v[count - 1]);
}

// Brings the lowest to the front and the highest to the back: first by pairs.
template <int count, class K>
CVCLI_FN void extremes_out(K* v) {
    CVCLI_UNROLL
    for (int i = 0; i < count / 2; ++i) order(v[i], v[count - 1 - i]);
    CVCLI_UNROLL
    for (int i = 1; i < (count + 1) / 2; ++i) order(v[0], v[i]);
    CVCLI_UNROLL
    for (int i = count / 2; i < count - 1; ++i) order(v[i], v[count - 1]);
}

// Of columns that are in order: the highest of the lowest, the middle one of the middle ones, the
// lowest of the highest, and of those the median.
template <class K>
CVCLI_FN K median_of_columns(const K (&v)[3][3]) {
    const K low = higher(higher(v[0][0], v[1][0]), v[2][0]);
    const K high = lower(lower(v[0][2], v[1][2]), v[2][2]);
    return median_of_3(low, median_of_3(v[0][1], v[1][1], v[2][1]), high);
}

// Once rows are in order too, an element has at least (i + 1)(j + 1) - 1 others not above it and
// (5 - i)(5 - j) - 1 not below, so only 13 can be the median: the last two of the first row, the
// last three of the second, and so on; six of the others are below and six above. Of the 13, the
// lowest and the highest of more than half can be forgotten, again and again.
template <class K>
CVCLI_FN K median_of_columns(const K (&v)[5][5]) {
    K row[5][5];
    CVCLI_UNROLL
    for (int i = 0; i < 5; ++i) {
        CVCLI_UNROLL
        for (int j = 0; j < 5; ++j) row[i][j] = v[j][i];
    }
    highest_last<5>(row[0]);
    highest_last<4>(row[0]);
    lowest_first<5>(row[1]);
    lowest_first<4>(row[1] + 1);
    extremes_out<5>(row[2]);
    highest_last<5>(row[3]);
    highest_last<4>(row[3]);
    lowest_first<5>(row[4]);
    lowest_first<4>(row[4] + 1);
    K left[8] = {row[0][3], row[0][4], row[1][2], row[1][3],
                 row[1][4], row[2][1], row[2][2], row[2][3]};
    const K more[5] = {row[3][0], row[3][1], row[3][2], row[4][0], row[4][1]};
    extremes_out<8>(left);
    left[7] = more[0];
    extremes_out<7>(left + 1);
    left[7] = more[1];
    extremes_out<6>(left + 2);
    left[7] = more[2];
    extremes_out<5>(left + 3);
    left[7] = more[3];
    extremes_out<4>(left + 4);
    left[7] = more[4];
    return median_of_3(left[5], left[6], left[7]);
}

// Merges two and two that are in order; three and three; five and five: what is at even places and
// what is at odd ones is merged, and then neighbours are put in order (Batcher, "Sorting networks
// and their applications", 1968).
template <class K>
CVCLI_FN void merge(const K (&a)[2], const K (&b)[2], K (&v)[4]) {
    v[0] = a[0], v[1] = b[0], v[2] = a[1], v[3] = b[1];
    order(v[0], v[1]);
    order(v[2], v[3]);
    order(v[1], v[2]);
}
template <class K>
CVCLI_FN void merge(const K (&a)[3], const K (&b)[3], K (&v)[6]) {
    K even[4];
    merge<K>({a[0], a[2]}, {b[0], b[2]}, even);
    v[0] = even[0], v[1] = even[1], v[3] = even[2], v[5] = even[3];
    v[2] = a[1], v[4] = b[1];
    order(v[2], v[4]);
    order(v[1], v[2]);
    order(v[3], v[4]);
}
template <class K>
CVCLI_FN void merge(const K (&a)[5], const K (&b)[5], K (&v)[10]) {
    K even[6], odd[4];
    merge<K>({a[0], a[2], a[4]}, {b[0], b[2], b[4]}, even);
    merge<K>({a[1], a[3]}, {b[1], b[3]}, odd);
    v[0] = even[0], v[9] = even[5];
    CVCLI_UNROLL
    for (int i = 0; i < 4; ++i) {
        v[2 * i + 1] = even[i + 1];
        v[2 * i + 2] = odd[i];
        order(v[2 * i + 1], v[2 * i + 2]);
    }
}

// Of two tens in order together: the six that can be in the middle of all once five more join.
template <class K>
CVCLI_FN void middle_six(const K (&a)[10], const K (&b)[10], K (&six)[6]) {
    K even[10], odd[10];
    merge<K>({a[0], a[2], a[4], a[6], a[8]}, {b[0], b[2], b[4], b[6], b[8]}, even);
    merge<K>({a[1], a[3], a[5], a[7], a[9]}, {b[1], b[3], b[5], b[7], b[9]}, odd);
    CVCLI_UNROLL
    for (int i = 0; i < 3; ++i) {
        six[2 * i] = even[i + 4];
        six[2 * i + 1] = odd[i + 3];
        order(six[2 * i], six[2 * i + 1]);
    }
}

// The sixth of six and five in order: as many of them as from the one are not from the other.
template <class K>
CVCLI_FN K sixth(const K (&six)[6], const K (&five)[5]) {
    K found = six[5];
    CVCLI_UNROLL
    for (int i = 0; i < 5; ++i) found = lower(found, higher(six[4 - i], five[i]));
    return found;
}

}  // namespace cvcli
