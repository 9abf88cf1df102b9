/* npz_sample.h - a small archive for the tests of npz.c and of its failing malloc. */
#ifndef NPZ_SAMPLE_H
#define NPZ_SAMPLE_H
#include <pare_test.h>
#include <pare/base.h>

static const float sample_w[6] = {1, 2, 3, 4, 5, 6};
static const int64_t sample_ids[40] = {7, 8, 9};

static const char *const sample_names[] = {"W", "ids", "none"};
static const pare_array sample_arrays[] = {
    {.dtype = PARE_F32, .ndim = 2, .shape = {2, 3}, .data = sample_w},
    {.dtype = PARE_I64, .ndim = 1, .shape = {40}, .data = sample_ids},
    {.dtype = PARE_F64, .ndim = 1, .shape = {0}},
};
#define SAMPLE_COUNT 3

static inline void sample_compare(const pare_array *got, size_t which)
{
    const pare_array *want = &sample_arrays[which];
    assert_int_equal(got->dtype, want->dtype);
    assert_int_equal(got->ndim, want->ndim);
    for (size_t i = 0; i < want->ndim; i++) assert_int_equal(got->shape[i], want->shape[i]);
    const size_t bytes = pare_array_count(want) * pare_dtype_size(want->dtype);
    if (bytes) assert_memory_equal(got->data, want->data, bytes);
}
#endif
