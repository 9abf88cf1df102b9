/* linalg_test.h - what the tests of src/linalg share. */
#ifndef PARE_LINALG_TEST_H
#define PARE_LINALG_TEST_H
#include <pare_test.h>
#include "linalg/matrix.h"

/* Exact where it is used: products of two doubles have 106 bits, this has 113. */
__extension__ typedef __float128 quad;

static inline pare_mat normal_mat(pare_arena *a, size_t rows, size_t cols, uint64_t seed)
{
    pare_mat m = pare_mat_new(a, rows, cols);
    pare_rng rng = pare_rng_at(seed, 1);
    assert_non_null(m.v);
    for (size_t i = 0; i < rows * cols; i++) m.v[i] = pare_rng_normal(&rng);
    return m;
}

static inline pare_weight weight_of(const pare_mat *m)
{
    assert_int_equal(m->ld, m->cols);
    return (pare_weight){PARE_F64, m->rows, m->cols, m->v};
}

/* The same numbers, rounded to f32. */
static inline pare_weight narrow_weight(pare_arena *a, const pare_mat *m)
{
    float *v = pare_alloc(a, m->rows * m->cols + 1, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < m->rows * m->cols; i++) v[i] = (float)m->v[i];
    return (pare_weight){PARE_F32, m->rows, m->cols, v};
}

/* max |a - b|; nan when either holds one. */
static inline double distance(const pare_mat *a, const pare_mat *b)
{
    double max = 0;
    assert_true(a->rows == b->rows && a->cols == b->cols);
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) {
            const double d = fabs(pare_row(a, i)[j] - pare_row(b, i)[j]);
            if (!(d <= max)) max = d;
            if (isnan(max)) return max;
        }
    return max;
}

/* max |a - I| */
static inline double distance_to_identity(const pare_mat *a)
{
    double max = 0;
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) {
            const double d = fabs(pare_row(a, i)[j] - (i == j ? 1 : 0));
            if (!(d <= max)) max = d;
            if (isnan(max)) return max;
        }
    return max;
}

#define CHECK(cond, ...)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            print_error(__VA_ARGS__);                                                              \
            print_error("\n");                                                                     \
            assert_true(cond);                                                                     \
        }                                                                                          \
    } while (0)
#endif
