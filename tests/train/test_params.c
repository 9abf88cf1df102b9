/* Tests src/train/params.c. */
#include <enclose_models.h>
#include <math.h>
#include <pare/train.h>

typedef struct seen {
    const pare_params *p;
    size_t slot, values, stats;
} seen;

/* Weights in the order of the walk, each exactly behind the one before. */
static pare_status follow(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    seen *const s = self;
    const pare_params *const p = s->p;
    const size_t size = pare_dtype_size(p->dtype), n = w->rows * w->cols;
    (void)err;
    if (!pare_has(w)) return PARE_OK;
    if (strstr(name, ".freqs")) {
        assert_true((const char *)w->data < (char *)p->values ||
                    (const char *)w->data >= (char *)p->values + p->count * size);
        return PARE_OK;
    }
    assert_int_equal(w->dtype, p->dtype);
    if (strstr(name, "norm.mean") || strstr(name, "norm.var")) {
        assert_ptr_equal(w->data, (char *)p->stats + s->stats * size);
        s->stats += n;
        return PARE_OK;
    }
    const pare_slot *const slot = &p->slots[s->slot++];
    assert_string_equal(slot->name, name);
    assert_int_equal(slot->offset, s->values);
    assert_int_equal(slot->rows, w->rows);
    assert_int_equal(slot->cols, w->cols);
    assert_int_equal(slot->vector, vector);
    assert_ptr_equal(w->data, (char *)p->values + s->values * size);
    s->values += n;
    return PARE_OK;
}

static void check(uint64_t seed, pare_dtype t)
{
    pare_model *const m = some_model(seed, 1);
    const pare_input in = some_input(m, seed, 1, 0);
    const size_t n = pare_output_rows(m, &in) * pare_model_outputs(m);
    double *const was = calloc(2 * n, sizeof *was), *const is = was + n;
    pare_params *p;
    pare_err err = {0};
    assert_ok(pare_forward_f64(was, m, &in, NULL, NULL, &err), &err);
    assert_ok(pare_params_new(&p, m, t, &err), &err);
    seen s = {.p = p};
    assert_ok(pare_model_visit(p->model, follow, &s, &err), &err);
    assert_int_equal(s.slot, p->nslots);
    assert_int_equal(s.values, p->count);
    assert_int_equal(s.stats, p->nstats);
    assert_ok(pare_model_check(p->model, &err), &err);
    assert_ok(pare_forward_f64(is, p->model, &in, NULL, NULL, &err), &err);
    /* The same numbers at other addresses: BLAS may add them up in another order. */
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(was[i]));
    for (size_t i = 0; i < n && t == PARE_F64; i++)
        assert_true(fabs(was[i] - is[i]) <= 1e-12 * most);
    pare_params_free(p);
    pare_model_free(m);
    free(was);
}

static void weights_lie_side_by_side_and_say_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) check(seed, seed % 2 ? PARE_F32 : PARE_F64);
}

static void params_outlive_the_model_they_came_from(void **state)
{
    (void)state;
    pare_model *const m = some_model(3, 1);
    pare_params *p;
    pare_err err = {0};
    m->vocab = (const uint8_t *)pare_strdup(m->arena, "abc");
    m->vocab_bytes = 3;
    assert_ok(pare_params_new(&p, m, PARE_F32, &err), &err);
    pare_model_free(m);
    assert_ok(pare_model_check(p->model, &err), &err);
    assert_memory_equal(p->model->vocab, "abc", 3);
    pare_params_free(p);
}

static void a_number_beyond_f32_is_refused_by_name(void **state)
{
    (void)state;
    pare_model *const m = some_model(3, 1);
    const double big[] = {1e300};
    pare_params *p;
    pare_err err = {0};
    m->blocks[0].attn = (pare_attn){.kind = PARE_ATTN_CONST, .din = m->blocks[0].attn.din};
    m->blocks[0].attn.bo = (pare_weight){PARE_F64, 1, 1, big};
    assert_status(pare_params_new(&p, m, PARE_F32, &err), PARE_ERR_NONFINITE, &err);
    assert_contains(err.msg, "blocks.0.attn.bo");
    assert_null(p);
    pare_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_lie_side_by_side_and_say_the_same),
        cmocka_unit_test(params_outlive_the_model_they_came_from),
        cmocka_unit_test(a_number_beyond_f32_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
