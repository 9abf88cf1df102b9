/* Tries to break what the theorems of depth say (src/depth/depth_bounds.h) with another search than their
 * own tests have: a box is a ball around 0 in the largest entry, so the climb of balls serves; for
 * token sequences every word is tried in every place. No input may be worse than its bound. */
#include "../cert/pair_models.h"
#include "../cert/splitmix_nets.h"
#include "depth/depth_bounds.h"

enum { MODELS = 1500, ONE_LAYER = 240, SENTENCES = 400 };

typedef struct tally {
    size_t finite, tried, all;
    double nearest; /* found over proven */
} tally;

static void judge(tally *sum, const char *what, uint64_t seed, double seen, const depth_bound *b,
                  double size)
{
    sum->all++;
    if (isinf(b->bound.v)) return;
    sum->finite++;
    if (b->bound.v > 0) sum->nearest = fmax(sum->nearest, seen / b->bound.v);
    if (seen <= b->bound.v * (1 + 1e-9) + 1e-10 * (1 + size)) return;
    print_error("%s, seed %llu: found %.17g, proven %.17g (%s)\n", what, (unsigned long long)seed,
                seen, b->bound.v, b->theorem);
    fail();
}

static void say(const char *what, const tally *t)
{
    print_message("%s: %zu of %zu bounds are finite, %zu inputs, nearest %.3f of what is proven\n",
                  what, t->finite, t->all, t->tried, t->nearest);
}

/* ---- models ---------------------------------------------------------------------------------- */

/* Norms that divide become ones that do not; all weights of one sign for some seeds. */
static void affine_norm(pare_norm *n)
{
    if (n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS) n->kind = PARE_NORM_MEAN;
}

static pare_status one_sign(void *self, const char *name, pare_weight *w, bool vector_,
                            pare_err *err)
{
    (void)self, (void)vector_, (void)err;
    if (!pare_has(w) || strstr(name, "norm")) return PARE_OK;
    for (size_t i = 0; i < w->rows * w->cols; i++) {
        if (w->dtype == PARE_F32) {
            float *const x = (float *)(uintptr_t)w->data + i;
            *x = fabsf(*x);
        } else {
            double *const x = (double *)(uintptr_t)w->data + i;
            *x = fabs(*x);
        }
    }
    return PARE_OK;
}

static void tame(pare_model *m, uint64_t seed)
{
    affine_norm(&m->embedding.norm);
    affine_norm(&m->head.norm);
    for (size_t b = 0; b < m->nblocks; b++) {
        affine_norm(&m->blocks[b].attn.in_norm), affine_norm(&m->blocks[b].attn.out_norm);
        affine_norm(&m->blocks[b].ffn.in_norm), affine_norm(&m->blocks[b].ffn.out_norm);
        if (seed % 3 == 0) m->blocks[b].ffn = (pare_ffn){0};
    }
    if (seed % 4 == 1) assert_int_equal(pare_model_each_weight(m, one_sign, NULL, NULL), PARE_OK);
}

/* The same change in both: blocks of f and g begin as the same. */
static bool tamed_pair(pair_case *t, uint64_t seed, double sigma)
{
    pair_open(t, seed, sigma, 1);
    tame(t->f, seed);
    tame(t->g, seed);
    const bool ok =
        pare_model_check(t->f, NULL) == PARE_OK && pare_model_check(t->g, NULL) == PARE_OK;
    if (!ok) pair_close(t);
    return ok;
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* All tokens within half the diameter of one row that lies in the box. */
static double *centre_rows(const pair_case *t, double room, pare_rng *r)
{
    const size_t n = t->in.batch * t->in.tokens * t->in.width;
    double *const x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = i < t->in.width ? room * (pare_rng_uniform(r) < 0.5 ? -1 : 1) : x[i % t->in.width];
    return x;
}

static void no_input_of_a_box_is_worse(void **state)
{
    (void)state;
    tally sum = {0};
    for (uint64_t seed = 0; seed < MODELS; seed++) {
        static const double phis[] = {0.05, 0.5, 2}, sigmas[] = {0.1, 0.4, 1};
        pair_case t;
        depth_bound b;
        if (!tamed_pair(&t, 7000 + seed, sigmas[seed / 3 % 3])) continue;
        pare_rng r = pare_rng_at(seed, 3);
        const bool narrow = seed % 2;
        depth_domain d = {phis[seed % 3], -1};
        if (narrow) d.diam0 = d.phi0 * (seed % 5 == 0 ? 0.01 : 0.5);
        assert_ok(depth_apriori(&b, t.f, t.g, &d, NULL, &t.err), &t.err);
        const double half = narrow ? d.diam0 / 2 : d.phi0;
        double *const x = centre_rows(&t, (d.phi0 - half) * (1 - 1e-12), &r);
        t.in.x = x;
        if (isfinite(b.bound.v)) {
            const found seen = search(&t, half * (1 - 1e-12), PARE_BALL_MAX, 40, 6);
            judge(&sum, "box", t.seed, seen.apart, &b, seen.moves);
            sum.tried += seen.tried;
        } else {
            sum.all++;
        }
        free(x);
        pair_close(&t);
    }
    say("boxes", &sum);
    assert_true(sum.finite > MODELS / 4);
}

/* ---- one-layer collapses --------------------------------------------------------------------- */

static void no_input_of_a_collapse_is_worse(void **state)
{
    (void)state;
    tally sum = {0};
    for (uint64_t seed = 0; seed < ONE_LAYER; seed++) {
        static const double scales[] = {0.01, 0.05, 0.2};
        stream s = {.x = seed};
        const size_t layers = 1 + seed % 4, heads = 1 + seed / 2 % 2, d = 1 + seed % 5;
        pair_case t = {.seed = seed};
        t.f = san_of(&s, layers, heads, d, scales[seed % 3], 1 / sqrt((double)d), PARE_FULL);
        if (seed % 4 == 1)
            assert_int_equal(pare_model_each_weight(t.f, one_sign, NULL, NULL), PARE_OK);
        t.in = rows_of(&s, 2 + seed % 5, d, 1);
        const pare_input calibrated = t.in;
        const pare_inputs calib = {1, (pare_input *)(uintptr_t)&calibrated};
        for (int kind = 0; kind < PARE_ONES; kind++) {
            const one_layer_opts o = {
                .kind = (pare_collapse)kind, .keep = layers - 1, .calib = &calib};
            depth_bound b;
            if (collapse_to_one_layer(&t.g, t.f, &o, &t.err) != PARE_OK) continue;
            const depth_domain box = {1, -1};
            assert_ok(depth_apriori(&b, t.f, t.g, &box, NULL, &t.err), &t.err);
            double *const x = calloc(t.in.tokens * d, sizeof *x);
            assert_non_null(x);
            t.in.x = x;
            const found seen = search(&t, 1, PARE_BALL_MAX, 30, 6);
            judge(&sum, pare_collapse_names[kind], seed, seen.apart, &b, seen.moves);
            sum.tried += seen.tried;
            free(x);
            pare_model_free(t.g);
        }
        pare_model_free(t.f);
    }
    say("one-layer collapses", &sum);
}

/* ---- token sequences ------------------------------------------------------------------------- */

static double apart_on(const pare_model *f, const pare_model *g, const int64_t *ids, size_t n)
{
    double y[2][1024], most = 0;
    const pare_input in = {.batch = 1, .tokens = n, .ids = ids};
    const size_t out = pare_output_rows(f, &in) * pare_model_outputs(f);
    assert_true(out <= 1024);
    assert_int_equal(pare_forward_f64(y[0], f, &in, NULL, NULL, NULL), PARE_OK);
    assert_int_equal(pare_forward_f64(y[1], g, &in, NULL, NULL, NULL), PARE_OK);
    for (size_t i = 0; i < out; i++) most = fmax(most, fabs(y[0][i] - y[1][i]));
    return most;
}

/* Every word in every place, as long as that is worse. */
static double worst_sentence(const pare_model *f, const pare_model *g, pare_rng *r, size_t *tried)
{
    int64_t ids[16];
    const size_t n = 1 + (size_t)pare_rng_below(r, 10);
    for (size_t i = 0; i < n; i++) ids[i] = (int64_t)pare_rng_below(r, f->embedding.vocab);
    double best = apart_on(f, g, ids, n);
    for (bool better = true; better;) {
        better = false;
        for (size_t i = 0; i < n; i++)
            for (size_t w = 0; w < f->embedding.vocab; w++) {
                const int64_t was = ids[i];
                ids[i] = (int64_t)w;
                const double now = apart_on(f, g, ids, n);
                ++*tried;
                if (now > best * (1 + 1e-12))
                    best = now, better = true;
                else
                    ids[i] = was;
            }
    }
    return best;
}

static void no_sentence_is_worse(void **state)
{
    (void)state;
    tally sum = {0};
    for (uint64_t seed = 0; seed < SENTENCES; seed++) {
        static const double sigmas[] = {0.1, 0.4, 1};
        pare_err err = {0};
        pare_model *g = NULL, *const f = some_model(20000 + seed, sigmas[seed % 3]);
        depth_bound b;
        tame(f, seed);
        if (f->embedding.ids && pare_model_check(f, NULL) == PARE_OK) {
            assert_ok(pare_model_clone(&g, f, &err), &err);
            maker k = {.m = g, .r = pare_rng_at(seed, 6), .sigma = 0.5};
            for (size_t l = 0; l < g->nblocks; l++)
                if (g->blocks[l].attn.kind == PARE_ATTN_EXACT)
                    replace_attn(&k, &g->blocks[l].attn, other_kind(&k));
            const depth_domain d = {0, 0};
            assert_ok(depth_apriori(&b, f, g, &d, NULL, &err), &err);
            pare_rng r = pare_rng_at(seed, 4);
            double seen = 0;
            for (size_t s = 0; isfinite(b.bound.v) && s < 4; s++)
                seen = fmax(seen, worst_sentence(f, g, &r, &sum.tried));
            judge(&sum, "sentence", 20000 + seed, seen, &b, seen);
            pare_model_free(g);
        }
        pare_model_free(f);
    }
    say("sentences", &sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_input_of_a_box_is_worse),
        cmocka_unit_test(no_input_of_a_collapse_is_worse),
        cmocka_unit_test(no_sentence_is_worse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
