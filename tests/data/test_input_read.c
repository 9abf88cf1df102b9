/* Tests src/data/input_read.c. */
#include <pare/data.h>
#include "small.h"

static char dir[200], path[300];
static pare_arena *arena;

static int setup(void **state)
{
    (void)state;
    test_mkdir(dir);
    test_path(path, dir, "x.npy");
    arena = pare_arena_new();
    return arena ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    pare_arena_free(arena);
    test_rmdir(dir);
    return 0;
}

typedef struct answer {
    pare_input in;
    size_t ndim, shape[4];
    pare_err err;
} answer;

static pare_status read_back(answer *r, const pare_model *m, pare_array a)
{
    assert_ok(pare_npy_write(path, &a, true, &r->err), &r->err);
    return pare_input_read(&r->in, &r->ndim, r->shape, arena, m, path, &r->err);
}

static void ids_give_a_row_per_token_or_one(void **state)
{
    (void)state;
    static const uint16_t ids[6] = {0, 1, 2, 3, 4, 4};
    answer r;
    pare_model m = small_model(5, 7, PARE_POOL_NONE);
    assert_ok(read_back(&r, &m, (pare_array){PARE_U16, 1, {6}, ids}), &r.err);
    assert_true(r.in.batch == 1 && r.in.tokens == 6 && r.in.ids[5] == 4 && !r.in.x);
    assert_true(r.ndim == 2 && r.shape[0] == 6 && r.shape[1] == 7);
    assert_ok(read_back(&r, &m, (pare_array){PARE_U16, 2, {1, 6}, ids}), &r.err);
    assert_true(r.ndim == 3 && r.shape[0] == 1 && r.shape[1] == 6 && r.shape[2] == 7);
    m.top.pool = PARE_POOL_MEAN;
    assert_ok(read_back(&r, &m, (pare_array){PARE_U16, 1, {6}, ids}), &r.err);
    assert_true(r.ndim == 1 && r.shape[0] == 7);
    assert_ok(read_back(&r, &m, (pare_array){PARE_U16, 2, {3, 2}, ids}), &r.err);
    assert_true(r.in.batch == 3 && r.in.tokens == 2);
    assert_true(r.ndim == 2 && r.shape[0] == 3 && r.shape[1] == 7);
}

static void vectors_give_the_same_shapes(void **state)
{
    (void)state;
    static const float x[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    answer r;
    pare_model m = small_vector_model(3, 2, PARE_POOL_NONE);
    assert_ok(read_back(&r, &m, (pare_array){PARE_F32, 2, {4, 3}, x}), &r.err);
    assert_true(r.in.tokens == 4 && r.in.width == 3 && r.in.x[11] == 12 && !r.in.ids);
    assert_true(r.ndim == 2 && r.shape[0] == 4 && r.shape[1] == 2);
    assert_ok(read_back(&r, &m, (pare_array){PARE_F32, 3, {2, 2, 3}, x}), &r.err);
    assert_true(r.ndim == 3 && r.shape[0] == 2 && r.shape[1] == 2 && r.shape[2] == 2);
}

static void assert_refused(const pare_model *m, pare_array a, pare_status want, const char *says)
{
    answer r;
    assert_status(read_back(&r, m, a), want, &r.err);
    assert_contains(r.err.msg, says);
    assert_contains(r.err.msg, path);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    static const int64_t ids[6] = {0, 1, 2, 3, 4, 5};
    static const double x[6] = {1, 2, 3, 4, 5, NAN};
    pare_model m = small_model(5, 7, PARE_POOL_NONE);
    assert_refused(&m, (pare_array){PARE_F64, 1, {6}, x}, PARE_ERR_INPUT, "F64 [6]");
    assert_refused(&m, (pare_array){PARE_I64, 3, {1, 2, 3}, ids}, PARE_ERR_INPUT, "[1, 2, 3]");
    assert_refused(&m, (pare_array){PARE_I64, 1, {0}, ids}, PARE_ERR_INPUT, "[0] is empty");
    assert_refused(&m, (pare_array){PARE_I64, 1, {6}, ids}, PARE_ERR_INPUT, "id 5");
    m.context = 3;
    assert_refused(&m, (pare_array){PARE_I64, 1, {5}, ids}, PARE_ERR_INPUT, "takes at most");
    m = small_vector_model(3, 2, PARE_POOL_NONE);
    assert_refused(&m, (pare_array){PARE_F64, 2, {3, 2}, x}, PARE_ERR_INPUT,
                   "[3, 2], but the model takes the width 3");
    assert_refused(&m, (pare_array){PARE_F64, 1, {6}, x}, PARE_ERR_INPUT, "[T, d]");
    assert_refused(&m, (pare_array){PARE_F64, 2, {2, 3}, x}, PARE_ERR_NONFINITE, "nan");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_give_a_row_per_token_or_one),
        cmocka_unit_test(vectors_give_the_same_shapes),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
