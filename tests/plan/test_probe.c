/* Tests src/plan/probe*.c: spectra and streams against hand-made ones, what is not told is said,
 * and the table of cuts holds what the cuts really cost. */
#include <pare_test.h>
#include "plan/probe.h"
#include "cert/prove.h"
#include "linalg/matrix.h"
#include "plan/probe_internal.h"

typedef struct scene {
    pare_arena *a;
    pare_err err;
    pare_model *m;
    pare_dataset data;
    char dir[200];
} scene;

/* side 0: no board. */
static void scene_open(scene *s, pare_random_kind kind, size_t side)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    char path[256];
    memset(s, 0, sizeof *s);
    s->a = pare_arena_new();
    assert_non_null(s->a);
    o.kind = kind;
    o.dim = 16;
    o.heads = 2;
    assert_ok(pare_random_model(&s->m, &o, &s->err), &s->err);
    test_mkdir(s->dir);
    snprintf(path, sizeof path, "%s/b.npz", s->dir);
    if (side) assert_ok(pare_make_minesweeper(path, side, 1, false, &s->err), &s->err);
    if (side) assert_ok(pare_dataset_load(&s->data, s->a, s->m, path, NULL, &s->err), &s->err);
}

static void scene_close(scene *s)
{
    pare_model_free(s->m);
    pare_arena_free(s->a);
    test_rmdir(s->dir);
}

static pare_probe *probe(scene *s, const pare_dataset *d, const pare_probe_opts *o, int threads)
{
    const pare_exec exec = {.threads = threads};
    pare_probe *p = NULL;
    assert_ok(pare_probe_model(&p, s->m, d, o, &exec, &s->err), &s->err);
    return p;
}

static const pare_spectrum *find(const pare_probe *p, const char *name, size_t block, size_t head)
{
    for (size_t i = 0; i < p->nspectra; i++)
        if (strcmp(p->spectra[i].name, name) == 0 && p->spectra[i].block == block &&
            p->spectra[i].head == head)
            return &p->spectra[i];
    return NULL;
}

/* ---- small pieces --------------------------------------------------------------------------- */

static void ranks_of_known_values(void **state)
{
    (void)state;
    const double even[] = {2, 2, 2, 2}, one[] = {3, 0, 0}, half[] = {1, 1, 1e-7};
    assert_near(effective_rank(even, 4), 4, 1e-12);
    assert_near(effective_rank(one, 3), 1, 1e-12);
    assert_near(effective_rank(NULL, 0), 0, 0);
    assert_int_equal(rank_above(half, 3, PARE_PROBE_RANK), 2);
    assert_int_equal(rank_above(one, 3, PARE_PROBE_RANK), 1);
    norm_sum s = {0};
    norm_add(&s, 1), norm_add(&s, 2), norm_add(&s, 6);
    const pare_norms n = norm_end(&s);
    assert_near(n.mean, 3, 1e-15);
    assert_near(n.std, sqrt(7), 1e-14);
    assert_near(n.sup, 6, 0);
    assert_true(isnan(norm_end(&(norm_sum){0}).mean));
}

/* Two blocks: every head by itself, and the matrices of the whole. */
static void spectra_are_those_of_each_head(void **state)
{
    (void)state;
    scene s;
    const pare_probe_opts o = PARE_PROBE_OPTS_DEFAULT;
    scene_open(&s, PARE_RANDOM_GRAPH, 0);
    pare_probe *const p = probe(&s, NULL, &o, 2);
    const pare_spectrum *const q = find(p, "Wq", 1, 1);
    assert_non_null(q);
    assert_true(q->rows == 8 && q->cols == 16 && q->n == 8);
    pare_mat w = pare_mat_new(s.a, 8, 16);
    double v[8], square = 0;
    pare_weight_widen(&w, &s.m->blocks[1].attn.wq, s.m->blocks[1].attn.heads[1].q, 0);
    assert_ok(pare_svd(NULL, v, NULL, &w, s.a, &s.err), &s.err);
    for (size_t i = 0; i < 8; i++) assert_near(q->s_est[i], v[i], 1e-12);
    for (size_t i = 0; i < 8; i++) square += v[i] * v[i];
    assert_near(q->stable_est, square / (v[0] * v[0]), 1e-12);
    assert_int_equal(q->rank_est, 8);
    assert_non_null(find(p, "Wo", 0, 0));
    assert_non_null(find(p, "W2", 0, SIZE_MAX));
    assert_non_null(find(p, "input", SIZE_MAX, SIZE_MAX));
    assert_int_equal(p->nspectra, 2 * (2 * 4 + 2) + 2);
    /* Table 1: three maps for each of 4 heads, two for each block. */
    assert_int_equal(p->operators.n, 16);
    assert_true(p->operators.sup >= q->s_est[0] && p->operators.mean <= p->operators.sup);
    pare_probe_free(p);
    scene_close(&s);
}

static void large_matrices_go_by_their_gram(void **state)
{
    (void)state;
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    const pare_probe_opts po = PARE_PROBE_OPTS_DEFAULT;
    scene s;
    scene_open(&s, PARE_RANDOM_GRAPH, 0);
    pare_model_free(s.m);
    o.dim = 128, o.vocab = 20000, o.layers = 1; /* 128^2 (20000 + 128) is more than is done whole */
    assert_ok(pare_random_model(&s.m, &o, &s.err), &s.err);
    pare_probe *const p = probe(&s, NULL, &po, 2);
    const pare_spectrum *const e = find(p, "embedding", SIZE_MAX, SIZE_MAX);
    pare_mat w = pare_mat_new(s.a, 20000, 128);
    double *const v = pare_alloc(s.a, 128, sizeof *v);
    pare_weight_widen(&w, &s.m->embedding.table, 0, 0);
    assert_ok(pare_svd(NULL, v, NULL, &w, s.a, &s.err), &s.err);
    for (size_t i = 0; i < 128; i++) assert_near(e->s_est[i], v[i], 1e-9 * v[0]);
    assert_null(find(p, "output", SIZE_MAX, SIZE_MAX)); /* tied: told once */
    pare_probe_free(p);
    scene_close(&s);
}

/* ---- the stream ----------------------------------------------------------------------------- */

static void one_hot_features_have_one_dimension_less_without_their_mean(void **state)
{
    (void)state;
    scene s;
    pare_probe_opts o = PARE_PROBE_OPTS_DEFAULT;
    o.no_cuts = true;
    scene_open(&s, PARE_RANDOM_GRAPH, 40);
    for (size_t i = 0; i < s.m->embedding.map.b.cols;
         i++) /* so that the first place is the features */
        ((float *)(uintptr_t)s.m->embedding.map.b.data)[i] = 0;
    pare_probe *const p = probe(&s, &s.data, &o, 2);
    assert_int_equal(p->nstreams, 5);
    assert_string_equal(p->streams[0].name, "h0");
    assert_string_equal(p->streams[3].name, "z1");
    assert_string_equal(p->streams[4].name, "h2");
    assert_int_equal(p->streams[0].rank_est, 7);
    assert_int_equal(p->streams[0].affine_est, 6);
    assert_int_equal(p->streams[0].rows, 1600);
    assert_int_equal(p->streams[4].affine_est, 16);
    assert_int_equal(p->tokens, 1600);
    /* Norms of the rows that enter: h0 and h1, no others. */
    assert_int_equal(p->vectors.n, 3200);
    assert_near(p->vectors.sup, fmax(p->streams[0].sup, p->streams[2].sup), 0);
    assert_near(p->vectors.mean, (p->streams[0].mean + p->streams[2].mean) / 2, 1e-12);
    pare_norms op, vec;
    assert_ok(pare_probe_norms(&op, &vec, s.m, &s.data.inputs.in[0], NULL, &s.err), &s.err);
    assert_near(vec.mean, p->vectors.mean, 0);
    assert_near(op.mean, p->operators.mean, 0);
    pare_probe_free(p);
    scene_close(&s);
}

/* ---- what is not told ----------------------------------------------------------------------- */

static void weights_alone_say_what_they_cannot_tell(void **state)
{
    (void)state;
    scene s;
    const pare_probe_opts o = PARE_PROBE_OPTS_DEFAULT;
    scene_open(&s, PARE_RANDOM_GRAPH, 0);
    pare_probe *const p = probe(&s, NULL, &o, 1);
    assert_int_equal(p->nuntold, 2); /* calls over a graph, and what needs a pass */
    assert_contains(p->untold[0], "none was given");
    assert_contains(p->untold[1], "none were given");
    assert_false(p->has_width_facts);
    assert_int_equal(p->nstreams + p->ncuts + p->nfindings, 0);
    assert_true(isnan(p->output));
    pare_probe_free(p);
    scene_close(&s);
}

static void a_language_model_gets_the_parts_that_apply(void **state)
{
    (void)state;
    scene s;
    pare_probe_opts o = PARE_PROBE_OPTS_DEFAULT;
    o.tokens = 20;
    scene_open(&s, PARE_RANDOM_LLAMA, 0);
    char path[256];
    snprintf(path, sizeof path, "%s/t.npy", s.dir);
    assert_ok(pare_make_random_ids(path, 5, 16, 256, 1, false, &s.err), &s.err);
    assert_ok(pare_dataset_load(&s.data, s.a, s.m, path, NULL, &s.err), &s.err);
    pare_probe *const p = probe(&s, &s.data, &o, 2);
    assert_int_equal(p->inputs, 2); /* the first that hold 20 tokens */
    assert_int_equal(p->tokens, 32);
    assert_int_equal(p->nstreams, 5);
    assert_non_null(find(p, "gate", 0, SIZE_MAX));
    /* One head of keys for two of queries. */
    assert_non_null(find(p, "Wk", 0, 0));
    assert_null(find(p, "Wk", 0, 1));
    assert_non_null(find(p, "Wq", 0, 1));
    assert_string_equal(p->metric, "nats");
    assert_false(p->has_width_facts);
    assert_true(p->nuntold >= 1);
    assert_contains(p->untold[0], "theorems");
    pare_probe_free(p);
    scene_close(&s);
}

/* ---- theorems and cuts ---------------------------------------------------------------------- */

static void a_failing_hypothesis_says_by_what_factor(void **state)
{
    (void)state;
    scene s;
    size_t failing = 0;
    pare_probe_opts o = PARE_PROBE_OPTS_DEFAULT;
    o.no_cuts = true;
    scene_open(&s, PARE_RANDOM_GRAPH, 12);
    pare_probe *const p = probe(&s, &s.data, &o, 1);
    assert_true(p->has_width_facts && p->nfindings == 9);
    for (size_t i = 0; i < p->nfindings; i++) {
        const pare_finding *const f = &p->findings[i];
        assert_int_equal(f->holds == PARE_TRUE, f->value <= f->limit);
        if (isnan(f->factor)) continue;
        assert_near(f->factor, f->value / f->limit, 1e-12 * f->factor);
        assert_int_equal(f->holds == PARE_TRUE, f->factor <= 1);
        failing += f->holds == PARE_FALSE;
    }
    assert_true(failing >= 3);
    /* The recursion's limit is where its bound meets the outputs: just above it exceeds them. */
    for (size_t i = 0; i < p->nfindings; i++) {
        const pare_finding *const f = &p->findings[i];
        if (strcmp(f->theorem, "Theorem 4.2") != 0) continue;
        const pare_ub b = pare_ub_of(p->operators.sup), v = pare_ub_of(p->vectors.sup);
        assert_le(pare_lowrank_bound(b, v, 2, pare_ub_of(f->limit)).v, p->output);
        assert_true(pare_lowrank_bound(b, v, 2, pare_ub_of(1.001 * f->limit)).v > p->output);
    }
    pare_probe_free(p);
    scene_close(&s);
}

static void a_cut_costs_what_the_cut_model_costs(void **state)
{
    (void)state;
    scene s;
    const size_t dims[] = {8, 3};
    pare_probe_opts o = PARE_PROBE_OPTS_DEFAULT;
    o.dims = dims, o.ndims = 2, o.trials = 2, o.seed = 4;
    scene_open(&s, PARE_RANDOM_GRAPH, 12);
    pare_probe *const p = probe(&s, &s.data, &o, 3);
    size_t seen = 0, of[PARE_WIDTH_METHODS] = {0};
    for (size_t i = 0; i < p->ncuts; i++) {
        const pare_cut_cost *const c = &p->cuts[i];
        of[c->method]++;
        if (c->method == PARE_WIDTH_CLUSTER) {
            assert_non_null(c->refused);
            assert_contains(c->refused, "cluster works only for models without");
            assert_true(isnan(c->largest));
        }
        if (c->refused || c->method != PARE_WIDTH_AUTO || c->dim != 3) continue;
        pare_width_opts w = PARE_WIDTH_OPTS_DEFAULT;
        pare_width_report r;
        pare_model *small = NULL;
        double moved;
        w.dim = 3, w.seed = 4, w.trials = 2;
        assert_ok(pare_width(&small, &r, s.m, &s.data.inputs, &w, NULL, &s.err), &s.err);
        assert_ok(pare_measure(&moved, s.m, small, &s.data.inputs, NULL, &s.err), &s.err);
        assert_near(c->largest, moved, 1e-12 * moved);
        assert_true(c->rms > 0 && c->rms <= c->largest);
        assert_int_equal(c->parameters, pare_model_size(small, 1, 1).parameters);
        assert_true(c->metric >= 0 && c->metric <= 1);
        pare_model_free(small);
        seen++;
    }
    assert_int_equal(seen, 1);
    /* exact alone has no width; queries and keys have 8 dimensions, so 8 is no cut of theirs. */
    assert_int_equal(of[PARE_WIDTH_EXACT], 1);
    assert_int_equal(of[PARE_WIDTH_LOWRANK], 2);
    assert_int_equal(of[PARE_WIDTH_QK], 1);
    assert_int_equal(p->cuts[0].dim, 0);
    assert_true(p->cuts[0].largest < 1e-4); /* weights are f32 */
    assert_string_equal(p->metric, "auc");
    pare_probe_free(p);
    scene_close(&s);
}

static void json_is_the_same_for_any_number_of_threads(void **state)
{
    (void)state;
    scene s;
    char *text[2];
    const size_t dims[] = {4};
    pare_probe_opts o = PARE_PROBE_OPTS_DEFAULT;
    o.dims = dims, o.ndims = 1, o.trials = 2;
    scene_open(&s, PARE_RANDOM_GRAPH, 12);
    for (int i = 0; i < 2; i++) {
        cJSON *json = NULL;
        pare_probe *const p = probe(&s, &s.data, &o, 1 + 2 * i);
        assert_ok(pare_probe_json(&json, p, &s.err), &s.err);
        assert_ok(pare_json_print(&text[i], NULL, s.a, json, 0, &s.err), &s.err);
        cJSON_Delete(json);
        pare_probe_free(p);
    }
    assert_string_equal(text[0], text[1]);
    assert_contains(text[0], "\"untold\": [");
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_known_values),
        cmocka_unit_test(spectra_are_those_of_each_head),
        cmocka_unit_test(large_matrices_go_by_their_gram),
        cmocka_unit_test(one_hot_features_have_one_dimension_less_without_their_mean),
        cmocka_unit_test(weights_alone_say_what_they_cannot_tell),
        cmocka_unit_test(a_language_model_gets_the_parts_that_apply),
        cmocka_unit_test(a_failing_hypothesis_says_by_what_factor),
        cmocka_unit_test(a_cut_costs_what_the_cut_model_costs),
        cmocka_unit_test(json_is_the_same_for_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
