/* Tests src/cert/publish.c: true models are certified, however noisy f64 is on them; no figure is
 * silently 0; nothing is said of new inputs where it does not follow. */
#include <prove_each.h>
#include "cert_toy.h"
#include <enclose_quad.h>

/* What every prover takes from a gap, and what held-out inputs allow. */
static pare_status gap_prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                             const pare_model *f, const pare_model *g, const pare_inputs *set,
                             const pare_exec *exec, pare_err *err)
{
    (void)claimed;
    pare_gap gap;
    pare_status st = pare_prove_gap(&gap, f, g, set, exec, err);
    if (st) return st;
    again->norm = PARE_NORM_HEADLINE;
    again->domain = pare_domain_text(a, &again->data);
    if (!again->domain) return pare_no_memory(err);
    st = pare_cert_take_gap(again, a, &gap, err);
    return st ? st : add_new_inputs(again, a, &again->data, f, g, set, err);
}

static const pare_prover gap_prover = {"gap", gap_prove};

static pare_status verify(toy *t)
{
    const pare_verify_opts o = {.provers = &gap_prover, .nprovers = 1, .load = toy_load};
    t->err = (pare_err){0};
    return pare_cert_verify(toy_path(t, "g.pare.cert.json"), &o, &t->err);
}

/* f is saved and becomes g.pare with its certificate; both are freed. */
static pare_status publish(toy *t, pare_cert *cert, pare_model *f, pare_model *g,
                           pare_publish_opts o)
{
    assert_ok(pare_model_save(f, toy_path(t, "f.pare"), true, NULL, &t->err), &t->err);
    o.in_path = toy_path(t, "f.pare");
    o.out_path = toy_path(t, "g.pare");
    o.prover = &gap_prover;
    t->err = (pare_err){0};
    const pare_status st = pare_publish(cert, t->a, f, &g, &o, &t->err);
    pare_model_free(f);
    pare_model_free(g);
    return st;
}

/* On the bytes of a data file; `fitted` may be NULL. */
static pare_status publish_on(toy *t, pare_cert *cert, const char *data, const char *fitted,
                              double max_error)
{
    pare_inputs set = {0}, other = {0};
    pare_files *const files = pare_files_new();
    assert_non_null(files);
    pare_model *const f = toy_model(0, TOY_OUTPUTS), *const g = toy_model(0.5, TOY_OUTPUTS);
    test_write_file(toy_path(t, "d.bin"), data, strlen(data));
    assert_ok(toy_load(&set, t->a, f, toy_path(t, "d.bin"), 0, files, &t->err), &t->err);
    if (fitted) {
        test_write_file(toy_path(t, "t.bin"), fitted, strlen(fitted));
        assert_ok(toy_load(&other, t->a, f, toy_path(t, "t.bin"), 0, files, &t->err), &t->err);
    }
    pare_files_free(files);
    const pare_publish_opts o = {.overwrite = true,
                                 .max_error = max_error,
                                 .data_path = toy_path(t, "d.bin"),
                                 .set = &set,
                                 .new_inputs = true,
                                 .fitted = fitted ? &other : NULL};
    return publish(t, cert, f, g, o);
}

/* ---- true models -------------------------------------------------------------------------------
 */

/* A batch norm of variance 0 and eps 1e-30 multiplies by 1e15: on outputs of that size the f64
 * pass sees a difference of 0.3 as a multiple of 1/8 or so. */
static void a_batch_norm_without_variance_is_certified(void **state)
{
    (void)state;
    static const float mean[] = {0.1f, 0.2f, 0.3f}, var[3];
    toy t;
    toy_begin(&t);
    pare_model *const f = toy_model(0, TOY_OUTPUTS), *const g = toy_model(0.3, TOY_OUTPUTS);
    pare_model *const both[] = {f, g};
    for (size_t i = 0; i < 2; i++)
        both[i]->embedding.norm = (pare_norm){.kind = PARE_NORM_BATCH,
                                              .eps = 1e-30,
                                              .mean = {PARE_F32, 1, 3, mean},
                                              .var = {PARE_F32, 1, 3, var}};
    pare_inputs set;
    pare_cert c;
    double seen = 0;
    assert_ok(pare_inputs_random(&set, t.a, f, 5, 2, 3, &t.err), &t.err);
    assert_ok(pare_measure(&seen, f, g, &set, NULL, &t.err), &t.err);
    const pare_publish_opts o = {.max_error = INFINITY, .seed = 3, .tokens = 2, .set = &set};
    assert_ok(publish(&t, &c, f, g, o), &t.err);
    assert_true(fabs(seen - 0.3) > 1e-3); /* f64 alone does not see it */
    assert_near(c.measured, 0.3, 1e-6);
    assert_true(c.proven >= c.measured && c.proven < 1.001 * c.measured);
    assert_ok(verify(&t), &t.err);
    toy_end(&t);
}

/* Inputs from a file of doubles, three to each. */
static pare_status load_doubles(pare_inputs *out, pare_arena *a, const pare_model *m,
                                const char *path, const pare_data_opts *o, pare_files *files,
                                pare_err *err)
{
    (void)m, (void)o;
    pare_blob *b = NULL;
    const pare_status st = pare_files_read(files, &b, path, err);
    if (st) return st;
    out->n = b->bytes / (3 * sizeof(double));
    out->in = pare_alloc(a, out->n, sizeof *out->in);
    double *const x = pare_alloc(a, 3 * out->n, sizeof *x);
    assert_true(x && out->in);
    memcpy(x, b->data, 3 * out->n * sizeof *x);
    for (size_t i = 0; i < out->n; i++)
        out->in[i] = (pare_input){.batch = 1, .tokens = 1, .width = 3, .x = x + 3 * i};
    pare_blob_release(b);
    return PARE_OK;
}

/* Outputs near 1e-14 left of numbers near 100: the f64 pass is off by more than the outputs are
 * large, which is its noise and no fault. */
static void outputs_below_the_noise_of_f64_are_certified(void **state)
{
    (void)state;
    static const float w[] = {1.1f, 0.7f, 1.3f};
    static const float small[] = {1e-14f}, larger[] = {1.1e-14f};
    toy t;
    toy_begin(&t);
    pare_model *const f = toy_model(0, 1), *const g = toy_model(0, 1);
    double x[16][3];
    pare_inputs set;
    pare_gap gap;
    pare_cert c;
    pare_rng rng = pare_rng_at(4, 0);
    for (size_t i = 0; i < 16; i++) {
        x[i][0] = 100 * pare_rng_uniform(&rng);
        x[i][1] = 100 * pare_rng_uniform(&rng);
        x[i][2] = -((double)w[0] * x[i][0] + (double)w[1] * x[i][1]) / (double)w[2];
    }
    test_write_file(toy_path(&t, "d.bin"), x, sizeof x);
    pare_files *const files = pare_files_new();
    assert_non_null(files);
    assert_ok(load_doubles(&set, t.a, f, toy_path(&t, "d.bin"), NULL, files, &t.err), &t.err);
    pare_files_free(files);
    f->head.out.w.data = g->head.out.w.data = w;
    f->head.out.b.data = small;
    g->head.out.b.data = larger;
    assert_ok(pare_prove_gap(&gap, f, g, &set, NULL, &t.err), &t.err);
    assert_true(gap.f64_radius > 1e-14 && gap.scale < 1e-12);
    const pare_publish_opts o = {
        .max_error = INFINITY, .data_path = toy_path(&t, "d.bin"), .set = &set};
    assert_ok(publish(&t, &c, f, g, o), &t.err);
    assert_near(c.measured, 1e-15, 1e-20);
    assert_true(c.proven >= c.measured && c.proven < 1.01e-15);
    const pare_verify_opts v = {.provers = &gap_prover, .nprovers = 1, .load = load_doubles};
    assert_ok(pare_cert_verify(toy_path(&t, "g.pare.cert.json"), &v, &t.err), &t.err);
    toy_end(&t);
}

/* The same on random inputs, with a verification: tiny weights, tiny outputs. */
static void tiny_outputs_are_certified(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_model *const m[] = {toy_model(0, TOY_OUTPUTS), toy_model(0, TOY_OUTPUTS)};
    float w[2][6];
    static const float none[2];
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < 6; i++)
            w[k][i] = 1e-14f * (float)(i + 1) * (k && i == 4 ? 1.0000002f : 1.0f);
        m[k]->head.out.w.data = w[k];
        m[k]->head.out.b.data = none;
    }
    pare_inputs set;
    pare_cert c;
    assert_ok(pare_inputs_random(&set, t.a, m[0], 5, 2, 3, &t.err), &t.err);
    const pare_publish_opts o = {.max_error = INFINITY, .seed = 3, .tokens = 2, .set = &set};
    assert_ok(publish(&t, &c, m[0], m[1], o), &t.err);
    assert_true(c.measured > 1e-21 && c.measured < 1e-19 && c.proven >= c.measured);
    assert_ok(verify(&t), &t.err);
    toy_end(&t);
}

/* Outputs of 1e10 that differ by 5.5: nothing is rounded away for being small beside them (A9). */
static void no_figure_is_zero_for_being_small(void **state)
{
    (void)state;
    static const float large[] = {1e10f, 1e10f}, w[] = {0, 0.25f, 0.5f, 0.75f, 1, 6.75f};
    toy t;
    toy_begin(&t);
    pare_model *const f = toy_model(0, TOY_OUTPUTS), *const g = toy_model(0, TOY_OUTPUTS);
    f->head.out.b.data = g->head.out.b.data = large;
    g->head.out.w.data = w; /* 5.5 x_2 more */
    pare_inputs set;
    pare_cert c;
    double most = 0;
    assert_ok(pare_inputs_random(&set, t.a, f, 5, 2, 3, &t.err), &t.err);
    for (size_t i = 0; i < set.n; i++)
        for (size_t k = 0; k < set.in[i].batch * set.in[i].tokens; k++)
            most = fmax(most, 5.5 * fabs(set.in[i].x[3 * k + 2]));
    const pare_publish_opts o = {.max_error = INFINITY, .seed = 3, .tokens = 2, .set = &set};
    assert_ok(publish(&t, &c, f, g, o), &t.err);
    assert_true(most > 1);
    assert_near(c.measured, most, 1e-5);
    assert_true(c.proven >= most && c.proven < 1.001 * most);
    /* 1e10 in f32 is a multiple of 1024. */
    assert_true(pare_cert_find(&c, PARE_ENGINE_DISTANCE)->value > 1);
    assert_ok(verify(&t), &t.err);
    toy_end(&t);
}

/* A base of 2e130 and a bias of 1e10 once were "proven 5e-07, measured 5.55" (A1). */
static void a_base_beyond_what_logarithms_are_proven_for_is_refused(void **state)
{
    (void)state;
    static const float large[] = {1e10f, 1e10f};
    static const double zeros[6] = {0};
    toy t;
    toy_begin(&t);
    pare_model *const m[] = {toy_model(0, TOY_OUTPUTS), toy_model(0, TOY_OUTPUTS)};
    for (size_t i = 0; i < 2; i++) {
        m[i]->embedding.pos = (pare_positions){.kind = PARE_POS_SINUSOIDAL, .base = 2e130};
        m[i]->head.out.b.data = large;
        assert_status(pare_model_check(m[i], &t.err), PARE_ERR_INPUT, &t.err);
        assert_contains(t.err.msg, "positions.base");
        assert_status(pare_model_save(m[i], toy_path(&t, "m"), true, NULL, &t.err), PARE_ERR_INPUT,
                      &t.err);
        m[i]->embedding.pos.base = i ? 1e30 : 1e28; /* the end of the range: proven right */
        assert_ok(pare_model_check(m[i], &t.err), &t.err);
    }
    pare_input in = {.batch = 1, .tokens = 2, .width = 3, .x = zeros};
    const pare_inputs set = {1, &in};
    const qmat y = q_model(t.a, m[0], &in, 0), z = q_model(t.a, m[1], &in, 0);
    double apart = 0;
    for (size_t i = 0; i < y.n * y.d; i++) apart = fmax(apart, (double)q_abs(y.v[i] - z.v[i]));
    pare_gap gap;
    assert_ok(pare_prove_gap(&gap, m[0], m[1], &set, NULL, &t.err), &t.err);
    assert_true(apart > 0);
    assert_le(apart, gap.proven.v);
    assert_near(gap.measured, apart, gap.radius * (1 + 1e-9));
    assert_le(gap.measured, gap.proven.v);
    pare_model_free(m[0]);
    pare_model_free(m[1]);
    toy_end(&t);
}

/* ---- new inputs --------------------------------------------------------------------------------
 */

static void held_out_inputs_allow_a_statement(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert c;
    assert_ok(publish_on(&t, &c, "abcdefg", "xyz", INFINITY), &t.err);
    assert_int_equal(c.data.candidates, 1);
    assert_int_equal(c.data.fitted.n, 3);
    assert_int_equal(c.data.heldout.n, 7);
    const pare_claim *const one = pare_cert_find(&c, PARE_NEW_INPUT_OUTPUTS);
    assert_non_null(one);
    assert_true(one->p[0] == 7 && one->p[1] == 0 && one->value >= 0.5);
    assert_non_null(pare_cert_find(&c, PARE_NEW_INPUTS_SHARE));
    assert_int_equal(pare_cert_find(&c, PARE_NEW_INPUT_INDEPENDENT)->holds, PARE_UNKNOWN);
    assert_ok(verify(&t), &t.err);
    toy_end(&t);
}

/* Whether the file is written at all was decided by these inputs (A5). */
static void a_promise_withholds_the_statement(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert c;
    assert_ok(publish_on(&t, &c, "abcdefg", "xyz", 10), &t.err);
    assert_int_equal(c.data.candidates, 0);
    assert_int_equal(c.data.heldout.n, 0);
    for (size_t i = 0; i < c.nclaims; i++)
        assert_true(!pare_kind_is_drawn(c.claims[i].kind) &&
                    c.claims[i].kind != PARE_NEW_INPUT_INDEPENDENT);
    assert_ok(verify(&t), &t.err);
    toy_end(&t);
}

static void a_fitted_input_among_the_held_out_ones_is_refused(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert c;
    assert_status(publish_on(&t, &c, "abcdefg", "xyg", INFINITY), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "fitted to");
    assert_false(pare_file_exists(toy_path(&t, "g.pare")));
    assert_false(pare_file_exists(toy_path(&t, "g.pare.cert.json")));
    toy_end(&t);
}

/* A statement that the tool withheld, put into the file by hand (A6). */
static void a_statement_cannot_be_added_by_hand(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert c, full;
    assert_ok(publish_on(&t, &full, "abcdefg", "xyz", INFINITY), &t.err);
    const char *const cert = toy_path(&t, "g.pare.cert.json");
    assert_ok(publish_on(&t, &c, "abcdefg", "xyz", 10), &t.err);
    const pare_cert withheld = c;
    const pare_claim *const claim = pare_cert_find(&full, PARE_NEW_INPUT_OUTPUTS);
    assert_ok(pare_cert_add(&c, t.a, *claim, &t.err), &t.err);
    assert_ok(pare_cert_write(&c, cert, true, &t.err), &t.err);
    assert_status(verify(&t), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "new_input.outputs");
    c = withheld;
    assert_ok(pare_cert_write(&c, cert, true, &t.err), &t.err);
    assert_ok(verify(&t), &t.err);
    toy_end(&t);
}

/* Draws, errors left out, probability and bound of a statement; its words change with them. */
static void a_statement_cannot_be_sharpened(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert c;
    assert_ok(publish_on(&t, &c, "abcdefg", "xyz", INFINITY), &t.err);
    const char *const cert = toy_path(&t, "g.pare.cert.json");
    for (size_t k = 0; k < c.nclaims; k++) {
        if (!pare_kind_is_drawn(c.claims[k].kind)) continue;
        for (size_t i = 0; i < 6; i++) {
            const pare_claim old = c.claims[k];
            pare_claim *const now = &c.claims[k];
            if (i == 0) now->p[0] = 8;
            if (i == 1) now->p[0] = 6;
            if (i == 2) now->p[1] = 1;
            if (i == 3) now->probability += 0.01;
            if (i == 4) now->value *= 0.99;
            if (i == 5) now->domain = "all inputs";
            assert_ok(pare_cert_write(&c, cert, true, &t.err), &t.err);
            assert_status(verify(&t), PARE_ERR_VERIFY, &t.err);
            assert_contains(t.err.msg, "new_input");
            *now = old;
        }
    }
    /* The held-out inputs chose between two cuts, or are others. */
    c.data.candidates = 2;
    assert_ok(pare_cert_write(&c, cert, true, &t.err), &t.err);
    assert_status(verify(&t), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "candidates");
    c.data.candidates = 1;
    c.data.heldout.n--;
    assert_ok(pare_cert_write(&c, cert, true, &t.err), &t.err);
    assert_status(verify(&t), PARE_ERR_VERIFY, &t.err);
    c.data.heldout.n++;
    assert_ok(pare_cert_write(&c, cert, true, &t.err), &t.err);
    assert_ok(verify(&t), &t.err);
    toy_end(&t);
}

/* ---- the promise -------------------------------------------------------------------------------
 */

static void a_promise_is_compared_with_what_is_written(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert c;
    assert_status(publish_on(&t, &c, "abc", NULL, 0.5), PARE_ERR_PROMISE, &t.err); /* 0.50005 */
    assert_false(pare_file_exists(toy_path(&t, "g.pare")));
    assert_ok(publish_on(&t, &c, "abc", NULL, 0.5001), &t.err);
    assert_true(c.proven > 0.5 && c.proven <= 0.5001);
    toy_end(&t);
}

/* A prover that is wrong by more than the proven radii is a fault, and nothing appears. */
static pare_status wrong_prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                               const pare_model *f, const pare_model *g, const pare_inputs *set,
                               const pare_exec *exec, pare_err *err)
{
    const pare_status st = gap_prove(again, a, claimed, f, g, set, exec, err);
    if (again->seed == 1) again->measured += 1e-9;
    if (again->seed == 2) again->proven = 0.25;
    return st;
}

static void a_prover_that_disagrees_with_the_reference_writes_nothing(void **state)
{
    (void)state;
    static const pare_prover wrong = {"gap", wrong_prove};
    toy t;
    toy_begin(&t);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        pare_model *const f = toy_model(0, TOY_OUTPUTS);
        pare_model *g = toy_model(0.5, TOY_OUTPUTS);
        pare_inputs set;
        pare_cert c;
        assert_ok(pare_inputs_random(&set, t.a, f, 5, 2, seed, &t.err), &t.err);
        assert_ok(pare_model_save(f, toy_path(&t, "f.pare"), true, NULL, &t.err), &t.err);
        const pare_publish_opts o = {.in_path = toy_path(&t, "f.pare"),
                                     .out_path = toy_path(&t, "g.pare"),
                                     .overwrite = true,
                                     .max_error = INFINITY,
                                     .seed = seed,
                                     .tokens = 2,
                                     .set = &set,
                                     .prover = &wrong};
        const pare_status st = pare_publish(&c, t.a, f, &g, &o, &t.err);
        if (seed < 3) {
            assert_int_equal(st, PARE_ERR_VERIFY);
            assert_contains(t.err.msg, "self-check");
        }
        assert_int_equal(pare_file_exists(toy_path(&t, "g.pare")), st == PARE_OK);
        pare_model_free(f);
        pare_model_free(g);
    }
    toy_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_norm_without_variance_is_certified),
        cmocka_unit_test(outputs_below_the_noise_of_f64_are_certified),
        cmocka_unit_test(tiny_outputs_are_certified),
        cmocka_unit_test(no_figure_is_zero_for_being_small),
        cmocka_unit_test(a_base_beyond_what_logarithms_are_proven_for_is_refused),
        cmocka_unit_test(held_out_inputs_allow_a_statement),
        cmocka_unit_test(a_promise_withholds_the_statement),
        cmocka_unit_test(a_fitted_input_among_the_held_out_ones_is_refused),
        cmocka_unit_test(a_statement_cannot_be_added_by_hand),
        cmocka_unit_test(a_statement_cannot_be_sharpened),
        cmocka_unit_test(a_promise_is_compared_with_what_is_written),
        cmocka_unit_test(a_prover_that_disagrees_with_the_reference_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
