/* Tests src/ticket/{fit_relu,relu_layers,relu_pair,bound_ffn_rows}.c: layers of a ReLU source in
 * the place of a feed-forward part's. */
#include "relu_tickets.h"
#include "fit_problems.h"
#include "base/json.h"
#include "linalg/matrix.h"
#include "model/ticket_store.h"
#include "ticket/ticket_bounds.h"

/* ---- one layer ------------------------------------------------------------------------------- */

typedef struct relu_problem {
    fit_problem p;
    const int32_t *B; /* n x inputs, as they are drawn */
    size_t d;
    bool signs;
} relu_problem;

/* W (o x d) of normal entries, and the problem of [W, -W] or of W. */
static relu_problem problem(pare_arena *a, size_t o, size_t d, size_t n, bool signs, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 77);
    relu_problem q = {.d = d, .signs = signs, .B = drawn(a, seed, 1, n * d)};
    q.p = (fit_problem){.a = o, .b = signs ? 2 * d : d, .n = n, .scale = 1, .inputs = d};
    q.p.A = drawn(a, seed, 0, o * n);
    q.p.w = pare_mat_new(a, o, q.p.b);
    assert_ok(fit_relu_sides(&q.p.B, a, q.B, n, d, signs, NULL), NULL);
    for (size_t i = 0; i < o; i++)
        for (size_t j = 0; j < d; j++) {
            const double w = .5 / sqrt((double)d) * pare_rng_normal(&r);
            pare_row_mut(&q.p.w, i)[j] = w;
            if (signs) pare_row_mut(&q.p.w, i)[d + j] = -w;
        }
    return q;
}

/* (A o MA) relu((B o MB) x): the network itself, unit by unit, with the masks it is given. */
static void source_network(double *z, const relu_problem *q, const fit_result *r, const double *x)
{
    const size_t n = q->p.n, d = q->d;
    for (size_t i = 0; i < q->p.a; i++) z[i] = 0;
    for (size_t k = 0; k < n; k++) {
        double u = 0;
        for (size_t j = 0; j < d; j++) {
            const bool on = pare_bit(&r->mb, k, j) || (q->signs && pare_bit(&r->mb, k, d + j));
            if (on) u += (double)q->B[k * d + j] * 0x1p-24 * x[j];
        }
        u = u > 0 ? u : 0;
        for (size_t i = 0; i < q->p.a; i++)
            if (pare_bit(&r->ma, i, k)) z[i] += (double)q->p.A[i * n + k] * 0x1p-24 * u;
    }
}

/* Otsuka 2025, Lemma 2: W x - z~ = E+ x+ - E- x- for the masked network itself. */
static void check_identity(const relu_problem *q, const fit_result *r, pare_rng *rng)
{
    double x[16], z[16];
    for (int t = 0; t < 20; t++) {
        for (size_t j = 0; j < q->d; j++) {
            x[j] = pare_rng_normal(rng);
            if (!q->signs) x[j] = fabs(x[j]);
        }
        source_network(z, q, r, x);
        for (size_t i = 0; i < q->p.a; i++) {
            double want = 0, left = 0;
            for (size_t j = 0; j < q->d; j++) {
                want += pare_row(&q->p.w, i)[j] * x[j];
                if (x[j] > 0) left += pare_row(&r->e, i)[j] * x[j];
                if (x[j] < 0) left += pare_row(&r->e, i)[q->d + j] * -x[j]; /* that is -E- */
            }
            assert_near(want - z[i], left, 1e-12);
        }
    }
}

static void the_masked_network_errs_by_its_residuals(void **state)
{
    pare_rng rng = pare_rng_at(3, 3);
    for (uint64_t seed = 0; seed < 12; seed++) {
        const bool signs = seed % 3 != 0;
        const size_t d = 1 + seed % 5, o = 1 + seed % 7;
        const relu_problem q = problem(*state, o, d, 22 * d, signs, seed);
        fit_result r;
        pare_err err = {0};
        assert_ok(fit_relu_block(&r, *state, &q.p, NULL, &err), &err);
        check_identity(&q, &r, &rng);
        assert_ok(fit_best(&r, *state, &q.p, NULL, NULL, &err), &err);
        check_identity(&q, &r, &rng);
        assert_int_equal(r.donor, PARE_NO_COLUMN);
    }
}

/* A unit reads one input, and serves the column of its own sign. */
static void every_unit_reads_one_input_and_serves_its_sign(void **state)
{
    for (int signs = 0; signs < 2; signs++)
        for (int best = 0; best < 2; best++) {
            const relu_problem q = problem(*state, 9, 6, 120, signs, 5);
            fit_result r;
            size_t served = 0;
            assert_ok(best ? fit_best(&r, *state, &q.p, NULL, NULL, NULL)
                           : fit_relu_block(&r, *state, &q.p, NULL, NULL),
                      NULL);
            for (size_t k = 0; k < q.p.n; k++) {
                size_t on = 0;
                for (size_t j = 0; j < q.p.b; j++) on += pare_bit(&r.mb, k, j);
                assert_true(on == (r.own[k] != PARE_NO_COLUMN));
                if (!on) continue;
                served++;
                const int32_t w = q.B[k * 6 + r.own[k] % 6];
                assert_true((w > 0) == (r.own[k] < 6));
            }
            /* contiguous blocks can only use the positive half where no input is negative */
            assert_true(signs || best ? served == q.p.n : served > 40 && served < 80);
        }
}

static double gain_of(pare_arena *a, bool signs, uint64_t seeds)
{
    double gain = 0;
    for (uint64_t seed = 0; seed < seeds; seed++) {
        const relu_problem q = problem(a, 16, 8, (signs ? 24 : 12) * 8, signs, 50 + seed);
        fit_result block, best;
        assert_ok(fit_relu_block(&block, a, &q.p, NULL, NULL), NULL);
        assert_ok(fit_best(&best, a, &q.p, NULL, NULL, NULL), NULL);
        gain += log(largest(&block.e) / largest(&best.e));
    }
    gain = exp(gain / (double)seeds);
    print_message("%s: signs and units where they are needed: %.0f times below the blocks\n",
                  signs ? "both signs" : "no negative input", gain);
    return gain;
}

/* Chance deals a slot 3 units of 12, and that slot is the error. */
static void units_by_sign_and_need_are_worth_much(void **state)
{
    assert_le(8, gain_of(*state, true, 8));
    assert_le(8, gain_of(*state, false, 8));
}

static void same_masks_for_any_number_of_threads(void **state)
{
    const relu_problem q = problem(*state, 20, 7, 150, true, 4);
    const pare_exec many = {.threads = 4};
    fit_result one, two;
    assert_ok(fit_best(&one, *state, &q.p, NULL, NULL, NULL), NULL);
    assert_ok(fit_best(&two, *state, &q.p, NULL, &many, NULL), NULL);
    assert_memory_equal(one.ma.v, two.ma.v, one.ma.rows * one.ma.words * sizeof *one.ma.v);
    assert_memory_equal(one.mb.v, two.mb.v, one.mb.rows * one.mb.words * sizeof *one.mb.v);
}

/* Golden vectors of an independent numpy implementation. */
static void blocks_are_the_golden_ones(void **state)
{
    static const char path[] = "../shared/reference/ticket/vectors.json";
    NEED_SHARED(path);
    char *text;
    size_t size;
    assert_ok(pare_text_read(&text, &size, *state, path, NULL), NULL);
    cJSON *const all = cJSON_Parse(text), *const f = cJSON_GetObjectItem(all, "fit_relu");
    const cJSON *const w = cJSON_GetObjectItem(f, "W"), *const ep = cJSON_GetObjectItem(f, "Ep"),
                       *const en = cJSON_GetObjectItem(f, "En");
    relu_problem q = problem(*state, 3, 2, 48, true, 5);
    fit_result r;
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 2; j++) {
            const cJSON *const row = cJSON_GetArrayItem(w, (int)i);
            const double v = cJSON_GetArrayItem(row, (int)j)->valuedouble;
            pare_row_mut(&q.p.w, i)[j] = v;
            pare_row_mut(&q.p.w, i)[2 + j] = -v;
        }
    assert_ok(fit_relu_block(&r, *state, &q.p, NULL, NULL), NULL);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++) {
            const double *const e = pare_row(&r.e, (size_t)i);
            const cJSON *const p = cJSON_GetArrayItem(ep, i), *const n = cJSON_GetArrayItem(en, i);
            assert_near(e[j], cJSON_GetArrayItem(p, j)->valuedouble, 1e-13);
            assert_near(e[2 + j], -cJSON_GetArrayItem(n, j)->valuedouble, 1e-13);
        }
    const pare_weight e = {PARE_F64, 3, 4, r.e.v};
    pare_ub norm;
    assert_ok(pare_norm_spectral(&norm, &e, *state, NULL), NULL);
    const double ref = cJSON_GetObjectItem(f, "norm")->valuedouble;
    assert_true(norm.v >= ref * (1 - 1e-12) && norm.v <= ref * (1 + 1e-4)); /* from above */
    cJSON_Delete(all);
}

/* ---- whole models ---------------------------------------------------------------------------- */

/* L layers become L + 1: the signs apart, the first one for both, the others as they were. */
static void a_relu_part_is_the_same_function_in_one_layer_more(void **state)
{
    for (size_t layers = 1; layers <= 4; layers++) {
        pare_rng r = pare_rng_at(layers, 5);
        pare_model *const f = relu_target(&r, 5, layers, 1 + layers % 2, true);
        pare_ticket_report report;
        pare_model *const g = relu_ticket(&report, f, 20, PARE_TICKET_BEST, false, 0);
        const pare_ffn *const x = &f->blocks[0].ffn, *const y = &g->blocks[0].ffn;
        double rows[7 * 5];
        assert_int_equal(y->nlayers, layers + 1);
        assert_true(y->layers[1].w.cols == 10 && report.relu_parts == f->nblocks);
        assert_int_equal(report.other_parts, 0);
        for (size_t i = 0; i < 10; i++)
            for (size_t j = 0; j < 5; j++)
                assert_true(pare_weight_at(&y->layers[0].w, i * 5 + j) ==
                            (i % 5 == j ? (i < 5 ? 1 : -1) : 0));
        assert_memory_equal(x->layers[0].b.data, y->layers[1].b.data, x->layers[0].b.cols * 8);
        pair_rows(rows, &r, 7, 5, 2);
        const pare_input in = {.batch = 1, .tokens = 7, .width = 5, .x = rows};
        const double far = pair_apart(f, g, &in, NULL, NULL);
        print_message("%zu layers: %.1e apart\n", layers, far);
        assert_le(far, 2e-3);
        pare_model_free(g);
        pare_model_free(f);
    }
    (void)state;
}

/* What is saved draws the source again and is the same model, bit for bit; every method, with
 * biases from the source as well, by bits and by units. */
static void a_relu_ticket_is_read_back_bit_for_bit(void **state)
{
    char dir[200], path[300], is[PARE_SHA256_HEX], was[PARE_SHA256_HEX];
    pare_err err = {0};
    (void)state;
    test_mkdir(dir);
    snprintf(path, sizeof path, "%s/m.ticket", dir);
    for (int how = 0; how < 8; how++) {
        pare_rng r = pare_rng_at((uint64_t)how, 6);
        pare_model *const f = relu_target(&r, 4, 1 + (size_t)how % 3, 1, true), *back;
        pare_ticket_report report;
        pare_model *const g =
            relu_ticket(&report, f, 9, (pare_ticket_method)(how % 2), how & 2, how & 4 ? 200 : 0);
        assert_ok(pare_model_save(g, path, true, NULL, &err), &err);
        assert_ok(pare_model_load(&back, path, &err), &err);
        assert_ok(pare_model_sha256(was, g, &err), &err);
        assert_ok(pare_model_sha256(is, back, &err), &err);
        assert_string_equal(is, was);
        const pare_weight *const b = &g->blocks[0].ffn.layers[1].b,
                                 *const t = &f->blocks[0].ffn.layers[0].b;
        double far = 0;
        for (size_t i = 0; i < b->cols; i++)
            far = fmax(far, fabs(pare_weight_at(b, i) - pare_weight_at(t, i)));
        assert_true(how & 2 ? far > 0 && far < (how % 2 ? .5 : .05) : far == 0);
        pare_model_free(back);
        pare_model_free(g);
        pare_model_free(f);
    }
    test_rmdir(dir);
}

/* GELU and gated parts stay what they are, and are said to. */
static void other_activations_stay_factored(void **state)
{
    pare_err err = {0};
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    pare_model *m;
    pare_ticket_report report;
    (void)state;
    o.dim = 8, o.heads = 2, o.layers = 1, o.vocab = 20, o.context = 8;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    pare_model *const g = relu_ticket(&report, m, 6, PARE_TICKET_BLOCK, false, 0);
    assert_true(report.relu_parts == 0 && report.other_parts == 1);
    assert_int_equal(g->blocks[0].ffn.nlayers, m->blocks[0].ffn.nlayers);
    pare_model_free(g);
    pare_model_free(m);
}

/* ---- what is proven -------------------------------------------------------------------------- */

/* Real tickets of up to 3 layers and 4 blocks; what is proven is not exceeded, rows of
 * the worst kind included, and lengths of very vectors are below products of norms. */
static void relu_tickets_keep_to_what_is_proven(void **state)
{
    relu_sum sum = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) relu_attack(&sum, seed, 6);
    print_message("%zu attacks: up to %.2f of the bound for all inputs, %.2f for the given\n",
                  sum.n, sum.free, sum.given);
    assert_true(sum.free > .2 && sum.given > .5);
}

/* The ReLU pair whose residual is met: one input, errors of one sign. */
static void the_bound_of_a_pair_is_met(void **state)
{
    pare_err err = {0};
    pare_rng r = pare_rng_at(1, 1);
    pare_model *const f = relu_target(&r, 1, 1, 1, false), *g;
    const double w = .5, pair[2] = {.5 + 1e-3, -.5 - 3e-3}, signs[2] = {1, -1};
    pare_dense layers[2] = {{{PARE_F64, 2, 1, signs}, {0}}, {{PARE_F64, 1, 2, pair}, {0}}};
    double x[2] = {-2, 2};
    const pare_input in = {.batch = 1, .tokens = 2, .width = 1, .x = x};
    const pare_inputs set = {1, (pare_input *)(uintptr_t)&in};
    pare_ticket_bound all, given;
    (void)state;
    f->blocks[0].ffn.layers[0].w.data = &w;
    assert_ok(pare_model_clone(&g, f, &err), &err);
    g->blocks[0].ffn.nlayers = 2;
    g->blocks[0].ffn.layers = layers;
    const double far = pair_apart(f, g, &in, NULL, NULL);
    assert_near(far, 6e-3, 1e-15);
    assert_ok(pare_ticket_bound_free(&all, f, g, 2, NULL, &err), &err);
    assert_ok(pare_ticket_bound_given(&given, f, g, &set, NULL, &err), &err);
    /* for all inputs the two signs of one input count as if both could be there */
    assert_true(far <= all.outputs.v && all.outputs.v <= sqrt(10) / 3 * far * (1 + 1e-9));
    assert_true(far <= given.outputs.v && given.outputs.v <= far * (1 + 1e-9));
    pare_model_free(g);
    pare_model_free(f);
}

/* Numbers at the ends of their range: bounded or said to be unbounded, never less than it is. */
static void wild_layers_are_bounded_or_refused(void **state)
{
    static const double sizes[] = {1e-300, 1e-160, 1, 1e150, 1e300};
    pare_err err = {0};
    (void)state;
    for (int i = 0; i < 25; i++) {
        pare_rng r = pare_rng_at((uint64_t)i, 8);
        pare_model *const f = relu_target(&r, 3, 2, 1, true);
        pare_ticket_report report;
        pare_model *const g = relu_ticket(&report, f, 6, PARE_TICKET_BEST, false, 0);
        double rows[2 * 3];
        pare_input in = {.batch = 1, .tokens = 2, .width = 3, .x = rows};
        const pare_inputs set = {1, &in};
        pare_ticket_bound all, given;
        for (pare_model *m = f; m; m = m == f ? g : NULL) {
            pare_ffn *const ff = &m->blocks[0].ffn;
            for (size_t l = m == f ? 0 : 1; l < ff->nlayers; l++) {
                double *const to = pare_alloc(m->arena, 64, sizeof *to);
                pare_weight *const w = &ff->layers[l].w;
                assert_true(to && w->rows * w->cols <= 64);
                for (size_t k = 0; k < w->rows * w->cols; k++)
                    to[k] = sizes[i % 5] * pare_weight_at(w, k);
                *w = (pare_weight){PARE_F64, w->rows, w->cols, to};
            }
        }
        pair_rows(rows, &r, 2, 3, sizes[i / 5]);
        double scale;
        const double far = pair_apart(f, g, &in, NULL, &scale);
        assert_ok(pare_ticket_bound_free(&all, f, g, sizes[i / 5], NULL, &err), &err);
        assert_ok(pare_ticket_bound_given(&given, f, g, &set, NULL, &err), &err);
        if (isfinite(far)) {
            assert_le(far, all.outputs.v + 1e-10 * scale + 1e-300);
            assert_le(far, given.outputs.v + 1e-10 * scale + 1e-300);
        } else {
            assert_true(isinf(all.outputs.v) && isinf(given.outputs.v));
        }
        pare_model_free(g);
        pare_model_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(the_masked_network_errs_by_its_residuals),
        ARENA_TEST(every_unit_reads_one_input_and_serves_its_sign),
        ARENA_TEST(units_by_sign_and_need_are_worth_much),
        ARENA_TEST(same_masks_for_any_number_of_threads),
        ARENA_TEST(blocks_are_the_golden_ones),
        ARENA_TEST(a_relu_part_is_the_same_function_in_one_layer_more),
        ARENA_TEST(a_relu_ticket_is_read_back_bit_for_bit),
        ARENA_TEST(other_activations_stay_factored),
        ARENA_TEST(relu_tickets_keep_to_what_is_proven),
        ARENA_TEST(the_bound_of_a_pair_is_met),
        ARENA_TEST(wild_layers_are_bounded_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
