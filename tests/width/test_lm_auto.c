/* Tests src/width/lm_auto.c, lm_removal_costs.c and lm_refit.c: the best cut of language
 * models and encoders, against the ones that users know. */
#include "linalg/matrix.h"
#include <pare/width.h>
#include <pare_test.h>
#include "width/lm_auto.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 7, LENGTH = 6, TOKENS = 2 * LENGTH - 1 };

static pare_model *random_model(pare_random_kind kind)
{
    pare_err err = {0};
    pare_model *m = NULL;
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    o.kind = kind;
    o.dim = 16;
    o.vocab = 40;
    o.context = 24;
    o.seed = SEED;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    return m;
}

static pare_inputs inputs_for(pare_arena *a, const pare_model *m, size_t n)
{
    pare_err err = {0};
    pare_inputs set;
    assert_ok(pare_inputs_random(&set, a, m, n, 12, SEED, &err), &err);
    return set;
}

/* |f - g| / |f|, root mean squares. */
static double apart(const pare_model *f, const pare_model *g, const pare_inputs *set)
{
    pare_err err = {0};
    double gap = 0, size = 0;
    for (size_t i = 0; i < set->n; i++) {
        const size_t n = pare_output_rows(f, &set->in[i]) * pare_model_outputs(f);
        double *const x = malloc(n * sizeof *x), *const y = malloc(n * sizeof *y);
        assert_true(x && y);
        assert_ok(pare_forward_f64(x, f, &set->in[i], NULL, NULL, &err), &err);
        assert_ok(pare_forward_f64(y, g, &set->in[i], NULL, NULL, &err), &err);
        for (size_t e = 0; e < n; e++) gap += (x[e] - y[e]) * (x[e] - y[e]), size += x[e] * x[e];
        free(x);
        free(y);
    }
    return sqrt(gap / size);
}

static size_t parameters(const pare_model *m)
{
    return (size_t)pare_model_size(m, 1, 1).parameters;
}

static pare_model *cut(const pare_model *m, const pare_inputs *set, pare_width_opts o,
                       const pare_exec *exec)
{
    pare_err err = {0};
    pare_width_report report;
    pare_model *out = NULL;
    assert_ok(pare_width(&out, &report, m, set, &o, exec, &err), &err);
    return out;
}

/* ---- all models ----------------------------------------------------------------------------- */

static const pare_random_kind kinds[] = {PARE_RANDOM_GPT, PARE_RANDOM_LLAMA, PARE_RANDOM_BERT};

static void nothing_to_take_away_changes_nothing(void **state)
{
    for (size_t k = 0; k < 3; k++) {
        pare_model *const m = random_model(kinds[k]);
        const pare_inputs set = inputs_for(*state, m, 4);
        const pare_width_opts o = {.method = PARE_WIDTH_AUTO, .keep = 1, .max_move = INFINITY};
        pare_model *const g = cut(m, &set, o, NULL);
        const double off = apart(m, g, &set);
        if (!(off <= 1e-6)) fail_msg("%s: off by %g", pare_random_kinds[kinds[k]], off);
        pare_model_free(g);
        pare_model_free(m);
    }
}

static void no_more_than_the_share_is_left(void **state)
{
    for (size_t k = 0; k < 3; k++) {
        pare_model *const m = random_model(kinds[k]);
        const pare_inputs set = inputs_for(*state, m, 20);
        for (size_t share = 6; share < 10; share++) {
            const pare_width_opts o = {
                .method = PARE_WIDTH_AUTO, .keep = 0.1 * (double)share, .max_move = INFINITY};
            pare_model *const g = cut(m, &set, o, NULL);
            const double most = 0.1 * (double)share * (double)parameters(m);
            assert_true((double)parameters(g) <= most);
            assert_true((double)parameters(g) >= 0.93 * most);
            pare_model_free(g);
        }
        pare_model_free(m);
    }
}

static void sizes_are_as_asked(void **state)
{
    pare_model *const m = random_model(PARE_RANDOM_LLAMA);
    const pare_inputs set = inputs_for(*state, m, 20);
    const size_t units = m->blocks[0].ffn.layers[0].w.rows, heads = m->blocks[0].attn.nheads;
    const pare_width_opts o = {
        .method = PARE_WIDTH_AUTO, .v_dim = 2, .ffn_dim = units / 2, .max_move = INFINITY};
    pare_model *const g = cut(m, &set, o, NULL);
    for (size_t b = 0; b < m->nblocks; b++) {
        assert_int_equal(g->blocks[b].ffn.layers[0].w.rows, units / 2);
        assert_int_equal(g->blocks[b].attn.wo.cols, 2 * heads);
        assert_int_equal(g->blocks[b].attn.wq.rows, m->blocks[b].attn.wq.rows);
    }
    pare_model_free(g);
    pare_model_free(m);
}

static void threads_change_no_bit(void **state)
{
    char x[PARE_SHA256_HEX], y[PARE_SHA256_HEX];
    pare_err err = {0};
    pare_model *const m = random_model(PARE_RANDOM_LLAMA);
    const pare_inputs set = inputs_for(*state, m, 20);
    const pare_width_opts o = {.method = PARE_WIDTH_AUTO, .keep = 0.8, .max_move = INFINITY};
    const pare_exec one = {.threads = 1}, three = {.threads = 3};
    pare_model *const f = cut(m, &set, o, &one), *const g = cut(m, &set, o, &three);
    assert_ok(pare_model_sha256(x, f, &err), &err);
    assert_ok(pare_model_sha256(y, g, &err), &err);
    assert_string_equal(x, y);
    pare_model_free(f);
    pare_model_free(g);
    pare_model_free(m);
}

static void what_does_not_go_together_is_said(void **state)
{
    static const struct {
        pare_width_opts o;
        pare_status st;
    } all[] = {{{.method = PARE_WIDTH_AUTO, .dim = 8, .max_move = INFINITY}, PARE_ERR_USAGE},
               {{.method = PARE_WIDTH_AUTO, .qk_dim = 2, .keep = 0.9, .max_move = INFINITY},
                PARE_ERR_USAGE},
               {{.method = PARE_WIDTH_QK, .v_dim = 2, .max_move = INFINITY}, PARE_ERR_USAGE},
               {{.method = PARE_WIDTH_QK, .dim = 2, .max_move = INFINITY}, PARE_ERR_USAGE},
               {{.method = PARE_WIDTH_QK, .max_move = INFINITY}, PARE_ERR_USAGE},
               {{.method = PARE_WIDTH_QK, .qk_dim = 5, .max_move = INFINITY}, PARE_ERR_USAGE},
               {{.method = PARE_WIDTH_QK, .keep = 0.5, .max_move = INFINITY}, PARE_ERR_PROMISE},
               {{.method = PARE_WIDTH_AUTO, .max_move = INFINITY}, PARE_ERR_USAGE},
               {{.method = PARE_WIDTH_AUTO, .keep = 0.05, .max_move = INFINITY}, PARE_ERR_PROMISE}};
    pare_model *const m = random_model(PARE_RANDOM_GPT);
    const pare_inputs set = inputs_for(*state, m, 4);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        pare_err err = {0};
        pare_width_report report;
        pare_model *g = NULL;
        assert_int_equal(pare_width(&g, &report, m, &set, &all[i].o, NULL, &err), all[i].st);
        assert_true(g == NULL && err.msg[0]);
    }
    pare_model_free(m);
}

/* ---- the metric ----------------------------------------------------------------------------- */

/* sum over the rows of KL(p || q) between the softmax of two rows of logits. */
static double divergence(const double *x, const double *y, size_t rows, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < rows; i++, x += n, y += n) {
        double a = 0, b = 0;
        for (size_t j = 0; j < n; j++) a += exp(x[j]), b += exp(y[j]);
        for (size_t j = 0; j < n; j++) sum += exp(x[j]) / a * (x[j] - log(a) - y[j] + log(b));
    }
    return sum;
}

/* A small error d at the head's input costs d^T G d / 2 nats: over all directions, half the
 * trace. */
static void the_metric_counts_in_nats(void **state)
{
    const double eps = 1e-3;
    pare_err err = {0};
    pare_model *const m = random_model(PARE_RANDOM_GPT);
    pare_work w = {*state, NULL, &err, PARE_OK};
    const pare_inputs set = inputs_for(w.arena, m, 60);
    const lm l = lm_open(&w, m, false);
    const pare_mat g = lm_gradient_metric(&w, &l, &set, 0, SEED)[l.nplaces - 1];
    lm_rows r = lm_embedding_rows(&w, &l, &set, 0);
    for (size_t b = 0; b < m->nblocks; b++) {
        const lm_block k = lm_read(&w, &l, b);
        lm_attention_step(&w, &l, &k.attn, &r);
        lm_ffn_step(&w, &l, &k.ffn, &r);
    }
    assert_ok(w.st, &err);
    pare_model head = {.embedding.width = r.x.cols, .head = m->head};
    if (m->head.tied) head.head.out.w = m->embedding.table;
    head.head.tied = false;
    const size_t n = r.x.rows, outs = pare_model_outputs(m);
    double *const y = vec_zeros(&w, n * outs), *const z = vec_zeros(&w, n * outs), trace = 0,
                  nats = 0;
    const pare_input in = {.batch = 1, .tokens = n, .width = r.x.cols, .x = r.x.v};
    assert_ok(pare_forward_f64(y, &head, &in, NULL, NULL, &err), &err);
    for (size_t j = 0; j < r.x.cols; j++) {
        for (size_t i = 0; i < n; i++) pare_row_mut(&r.x, i)[j] += eps;
        assert_ok(pare_forward_f64(z, &head, &in, NULL, NULL, &err), &err);
        for (size_t i = 0; i < n; i++) pare_row_mut(&r.x, i)[j] -= eps;
        nats += divergence(y, z, n, outs) / (double)n;
        trace += pare_row(&g, j)[j];
    }
    /* 720 tokens, one draw each: the trace is known to a few percent. */
    if (!(fabs(eps * eps * trace / 2 / nats - 1) <= 0.15))
        fail_msg("seed %d: %g is not %g", SEED, eps * eps * trace / 2, nats);
    pare_model_free(m);
}

/* ---- the way through ------------------------------------------------------------------------ */

/* Rows of the stream at the end, by the f64 pass. */
static double farthest(pare_model *g, const pare_inputs *set, const pare_mat *rows)
{
    pare_err err = {0};
    double far = 0;
    double *const y = malloc(rows->rows * rows->cols * sizeof *y);
    assert_non_null(y);
    g->head = (pare_output_head){0};
    for (size_t i = 0, at = 0; i < set->n; at += set->in[i].batch * set->in[i].tokens, i++)
        assert_ok(pare_forward_f64(y + at * rows->cols, g, &set->in[i], NULL, NULL, &err), &err);
    for (size_t i = 0; i < rows->rows * rows->cols; i++) far = fmax(far, fabs(y[i] - rows->v[i]));
    free(y);
    return far;
}

/* The constant is an input of the last map: what is still missed has mean 0. */
static double mean_missed(const prune_pass *p)
{
    double most = 0;
    for (size_t j = 0; j < p->large.x.cols; j++) {
        double sum = 0;
        for (size_t i = 0; i < p->large.x.rows; i++)
            sum += pare_row(&p->large.x, i)[j] - pare_row(&p->small.x, i)[j];
        most = fmax(most, fabs(sum) / (double)p->large.x.rows);
    }
    return most;
}

static void the_fit_follows_the_model_as_it_is_cut(pare_random_kind kind, size_t v, size_t u)
{
    pare_err err = {0};
    pare_model *const m = random_model(kind);
    pare_work w = {pare_arena_new(), NULL, &err, PARE_OK};
    const pare_inputs set = inputs_for(w.arena, m, 20);
    const lm l = lm_open(&w, m, false);
    lm_out out = {0};
    lm_write_begin(&w, &out, &l, (pare_dtype)0);
    prune_pass p = {.w = &w, .m = &l, .out = &out, .fit = true};
    p.parts = pare_work_alloc(&w, PARTS * m->nblocks, sizeof *p.parts);
    p.metric = lm_gradient_metric(&w, &l, &set, 0, SEED);
    p.large = lm_embedding_rows(&w, &l, &set, 0);
    p.small = lm_embedding_rows(&w, &l, &set, 0);
    assert_ok(w.st, &err);
    p.parts[VALUES].removed = v; /* of the first block; the others only make good */
    p.parts[UNITS].removed = u;
    lm_refit(&p);
    lm_write_ends(&w, &out, NULL, NULL, NULL);
    pare_model *const g = lm_write_finish(&w, &out);
    assert_ok(w.st, &err);
    const double size = pare_mat_max_abs(&p.large.x), off = farthest(g, &set, &p.small.x);
    if (!(off <= 1e-5 * size)) fail_msg("%s: off by %g", pare_random_kinds[kind], off);
    assert_true(pare_mat_max_abs(&p.small.x) > 0.1 * size);
    if (kind != PARE_RANDOM_BERT) assert_true(mean_missed(&p) <= 1e-9 * size);
    pare_model_free(g);
    pare_model_free(m);
    pare_arena_free(w.arena);
}

static void the_stream_it_goes_on_with_is_that_of_the_cut_model(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        the_fit_follows_the_model_as_it_is_cut(kinds[k], 4, 0);
        the_fit_follows_the_model_as_it_is_cut(kinds[k], 0, 20);
    }
}

/* ---- a trained one -------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* What models/sort.safetensors was taught: symbols, then the first of the sorted ones. */
static pare_inputs to_sort(pare_arena *a, size_t n, uint64_t seed)
{
    pare_inputs set = {n, pare_alloc(a, n, sizeof *set.in)};
    assert_non_null(set.in);
    for (size_t i = 0; i < n; i++) {
        pare_rng rng = pare_rng_at(seed, i);
        int64_t *const ids = pare_alloc(a, 2 * LENGTH, sizeof *ids);
        assert_non_null(ids);
        for (size_t t = 0; t < LENGTH; t++)
            ids[t] = ids[LENGTH + t] = (int64_t)pare_rng_below(&rng, 3);
        qsort(ids + LENGTH, LENGTH, sizeof *ids, by_value);
        set.in[i] = (pare_input){.batch = 1, .tokens = TOKENS, .ids = ids};
    }
    return set;
}

static void a_quarter_less_costs_less_than_by_slicing_or_plain_svd(void **state)
{
    static const struct {
        pare_width_method method;
        pare_width_basis basis;
    } others[] = {{PARE_WIDTH_SLICE, PARE_BASIS_PCA},
                  {PARE_WIDTH_SLICE, PARE_BASIS_SHARED},
                  {PARE_WIDTH_SVD, PARE_BASIS_PCA}};
    pare_err err = {0};
    pare_model *m = NULL;
    assert_ok(pare_model_load(&m, "models/sort.safetensors", &err), &err);
    const pare_inputs fit = to_sort(*state, 100, 1), held = to_sort(*state, 50, 2);
    pare_width_opts o = {.method = PARE_WIDTH_AUTO, .keep = 0.75, .max_move = INFINITY};
    pare_model *const g = cut(m, &fit, o, NULL);
    const double ours = apart(m, g, &held);
    for (size_t k = 0; k < 3; k++) {
        o.method = others[k].method;
        o.basis = others[k].basis;
        pare_model *const other = cut(m, &fit, o, NULL);
        const double theirs = apart(m, other, &held);
        print_message("auto %.3g, %s %.3g\n", ours, pare_width_method_names[o.method], theirs);
        assert_true(4 * parameters(other) <= 3 * parameters(m));
        assert_true(ours <= 0.8 * theirs);
        pare_model_free(other);
    }
    assert_true(4 * parameters(g) <= 3 * parameters(m));
    pare_model_free(g);
    pare_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(nothing_to_take_away_changes_nothing),
        ARENA_TEST(no_more_than_the_share_is_left),
        ARENA_TEST(sizes_are_as_asked),
        ARENA_TEST(threads_change_no_bit),
        ARENA_TEST(the_metric_counts_in_nats),
        ARENA_TEST(the_stream_it_goes_on_with_is_that_of_the_cut_model),
        ARENA_TEST(what_does_not_go_together_is_said),
        ARENA_TEST(a_quarter_less_costs_less_than_by_slicing_or_plain_svd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
