/* Tests pare_tape_forward_set (src/train/tape*.c): inputs of different lengths side by side have the
 * outputs of each alone, and their gradient is the sum of the gradients of each. */
#include <enclose_models.h>
#include "train/gradient.h"

enum { INPUTS = 5, MODELS = 250 };

typedef struct passes {
    pare_params *p;
    pare_tape *t;
} passes;

static passes open_passes(const pare_model *m, pare_dtype dtype)
{
    passes s;
    pare_err err = {0};
    assert_ok(pare_params_new(&s.p, m, dtype, &err), &err);
    assert_ok(pare_tape_new(&s.t, s.p, NULL, &err), &err);
    return s;
}

static double number(const void *v, pare_dtype t, size_t i)
{
    return t == PARE_F64 ? ((const double *)v)[i] : (double)((const float *)v)[i];
}

static void close_to(double a, double b, double tolerance, const char *what, uint64_t seed)
{
    if (!(fabs(a - b) <= tolerance * (1 + fabs(b))))
        fail_msg("seed %llu, %s: %.17g together, %.17g alone", (unsigned long long)seed, what, a,
                 b);
}

static void check(pare_model *m, pare_dtype type, uint64_t seed, size_t *ragged)
{
    const pare_mode mode = {.training = false};
    const double tolerance = type == PARE_F64 ? 1e-9 : 2e-3;
    const size_t size = pare_dtype_size(type), cols = pare_model_outputs(m);
    pare_input in[INPUTS];
    pare_err err = {0};
    const void *y;
    size_t rows = 0;
    for (uint64_t i = 0; i < INPUTS; i++) {
        in[i] = some_input(m, 1000 * seed + i, 1, 0);
        rows += pare_output_rows(m, &in[i]);
        *ragged += in[i].tokens != in[0].tokens;
    }
    passes s = open_passes(m, type);
    const size_t count = s.p->count;
    void *const dy = calloc(rows * cols, size), *const all = calloc(rows * cols, size);
    void *const together = calloc(count + 1, size), *const alone = calloc(count + 1, size);
    pare_rng r = pare_rng_at(seed, 3);
    for (size_t i = 0; i < rows * cols; i++) {
        const double v = pare_rng_normal(&r);
        if (type == PARE_F64)
            ((double *)dy)[i] = v;
        else
            ((float *)dy)[i] = (float)v;
    }
    assert_ok(pare_tape_forward_set(s.t, &(pare_inputs){INPUTS, in}, &mode, &y, &err), &err);
    memcpy(all, y, rows * cols * size);
    assert_ok(pare_tape_backward(s.t, dy, NULL, together, &err), &err);
    for (size_t i = 0, at = 0; i < INPUTS; i++) {
        const size_t n = pare_output_rows(m, &in[i]) * cols;
        assert_ok(pare_tape_forward(s.t, &in[i], &mode, &y, &err), &err);
        for (size_t k = 0; k < n; k++)
            close_to(number(all, type, at + k), number(y, type, k), tolerance, "output", seed);
        assert_ok(pare_tape_backward(s.t, (char *)dy + at * size, NULL, alone, &err), &err);
        at += n;
    }
    double most = 0;
    for (size_t i = 0; i < count; i++) most = fmax(most, fabs(number(alone, type, i)));
    for (size_t i = 0; i < count; i++)
        close_to(number(together, type, i), number(alone, type, i), tolerance * (1 + most),
                 "gradient", seed);
    free(dy), free(all), free(together), free(alone);
    pare_tape_free(s.t);
    pare_params_free(s.p);
}

static void the_gradient_of_several_inputs_is_the_sum_of_theirs(void **state)
{
    (void)state;
    size_t ragged = 0, tried = 0;
    for (uint64_t seed = 1; seed <= MODELS; seed++) {
        pare_model *const m = seed % 2 ? some_model(seed, 0.5) : some_encoder(seed, 0.5);
        if (m->pattern.kind != PARE_GRAPH) {
            check(m, PARE_F64, seed, &ragged);
            if (seed % 4 < 2) check(m, PARE_F32, seed, &ragged);
            tried++;
        }
        pare_model_free(m);
    }
    assert_true(tried > MODELS / 2 && ragged > MODELS);
}

static void graphs_do_not_go_side_by_side(void **state)
{
    (void)state;
    uint64_t seed = 1;
    pare_model *m = some_model(seed, 1);
    pare_err err = {0};
    while (m->pattern.kind != PARE_GRAPH) {
        pare_model_free(m);
        m = some_model(++seed, 1);
    }
    pare_input in[] = {some_input(m, 1, 1, 0), some_input(m, 2, 1, 0)};
    passes s = open_passes(m, PARE_F64);
    const pare_mode mode = {.training = false};
    assert_int_equal(pare_tape_forward_set(s.t, &(pare_inputs){2, in}, &mode, NULL, &err),
                     PARE_ERR_INPUT);
    assert_non_null(strstr(err.msg, "side by side"));
    pare_tape_free(s.t);
    pare_params_free(s.p);
    pare_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_of_several_inputs_is_the_sum_of_theirs),
        cmocka_unit_test(graphs_do_not_go_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
