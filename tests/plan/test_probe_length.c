/* Tests src/plan/probe_length.c: what is said of engines is what plans say, and what is said of
 * the data is what the definitions say. */
#include <math.h>
#include "plan/length_probe.h"
#include <pare_test.h>
#include "model/inputs.h"

typedef struct scene {
    pare_arena *a;
    pare_model *m;
    pare_inputs in;
    pare_length_probe p;
    pare_err err;
} scene;

static void open_scene(scene *s, pare_random_kind kind, size_t tokens, double sigma)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    *s = (scene){.a = pare_arena_new()};
    o.kind = kind, o.dim = 8, o.heads = 2, o.layers = 2, o.context = 96, o.sigma = sigma;
    assert_ok(pare_random_model(&s->m, &o, &s->err), &s->err);
    assert_ok(pare_inputs_random(&s->in, s->a, s->m, 1, tokens, 3, &s->err), &s->err);
}

static void close_scene(scene *s)
{
    pare_model_free(s->m);
    pare_arena_free(s->a);
}

static bool applies(const pare_length_probe *p, pare_length_mode mode)
{
    for (size_t i = 0; i < p->nmodes; i++)
        if (p->modes[i].mode == mode) return !*p->modes[i].why_not;
    return false;
}

/* Sizes alone: a llama of any length, a gpt of no more than its context. */
static void plans_are_those_of_the_planner(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, PARE_RANDOM_LLAMA, 8, 0);
    assert_ok(pare_probe_length(&s.p, s.a, s.m, NULL, 0, NULL, &s.err), &s.err);
    assert_true(s.p.tokens == PARE_PROBE_LONG && s.p.endless && !s.p.looked && s.p.nengines == 6);
    for (size_t i = 0; i < s.p.nengines; i++) {
        const pare_probe_engine *const e = &s.p.engines[i];
        const uint64_t k = PARE_PROBE_LONG / e->m, t = (PARE_PROBE_LONG + e->m - 2) / (e->m - 1);
        assert_int_equal(e->native, 4 * k * (k + 1) / 2); /* two layers of two heads */
        assert_int_equal(e->reference, 4 * (t * t - (PARE_PROBE_LONG % (e->m - 1) == 1) * (t - 1)));
        assert_int_equal(e->rounds, 2);
        assert_true(e->lower <= e->native && e->native < e->paper && e->ratio > 1);
    }
    assert_true(s.p.cheapest_ratio > 1);
    for (size_t i = 0; i < s.p.nengines; i++)
        assert_true(s.p.cheapest_ratio <= s.p.engines[i].ratio);
    assert_true(applies(&s.p, PARE_LENGTH_NATIVE) && applies(&s.p, PARE_LENGTH_STRICT) &&
                applies(&s.p, PARE_LENGTH_SAMPLE) && applies(&s.p, PARE_LENGTH_CHUNK));
    close_scene(&s);
    open_scene(&s, PARE_RANDOM_GPT, 8, 0);
    assert_ok(pare_probe_length(&s.p, s.a, s.m, NULL, 0, NULL, &s.err), &s.err);
    assert_true(s.p.tokens == 96 && !s.p.endless);
    assert_int_equal(s.p.nengines, 3); /* 16, 32, 64 */
    s.m->pattern = (pare_pattern){.kind = PARE_WINDOW, .window = 5};
    assert_ok(pare_probe_length(&s.p, s.a, s.m, NULL, 0, NULL, &s.err), &s.err);
    assert_true(!applies(&s.p, PARE_LENGTH_SAMPLE) && applies(&s.p, PARE_LENGTH_PAPER));
    close_scene(&s);
}

/* ---- the definitions ------------------------------------------------------------------------- */

typedef struct seen { /* of the first head */
    double largest, c, d;
    bool done;
} seen;

static pare_status by_definition(void *self, size_t block, pare_dtype t,
                                 const pare_attend_job *jobs, size_t count, const pare_pattern *p,
                                 const pare_graph *g, pare_err *err)
{
    seen *const s = self;
    const pare_attend_job *const j = &jobs[0];
    const double *const q = j->q, *const k = j->k, *const v = j->v;
    (void)block, (void)t, (void)err;
    for (size_t i = 0; i < j->n && !s->done; i++) {
        const pare_keys keys = pare_visible(p, g, j->n, i);
        double low = INFINITY, high = -INFINITY, most = 0, sum[8] = {0}, whole = 0;
        for (size_t x = 0; x < keys.count; x++) {
            const size_t key = pare_key(&keys, x);
            double l = 0, size = 0;
            for (size_t e = 0; e < j->dk; e++)
                l += j->scale * q[i * j->ldq + e] * k[key * j->ldk + e];
            low = fmin(low, l), high = fmax(high, l);
            for (size_t e = 0; e < j->dv; e++) {
                const double b = exp(l) * v[key * j->ldv + e];
                sum[e] += b, size += b * b;
            }
            most = fmax(most, sqrt(size));
        }
        for (size_t e = 0; e < j->dv; e++) whole += sum[e] * sum[e];
        s->largest = fmax(s->largest, fmax(-low, high));
        s->c = fmax(s->c, exp((high - low) / 2));
        s->d = fmin(s->d, sqrt(whole) / ((double)keys.count * most));
    }
    s->done = true;
    for (size_t h = 0; h < count; h++)
        for (size_t i = 0; i < jobs[h].n; i++)
            memset((double *)jobs[h].y + i * jobs[h].ldy, 0, jobs[h].dv * sizeof(double));
    return PARE_OK;
}

static void logits_are_those_of_the_definitions(void **state)
{
    (void)state;
    for (int kind = PARE_RANDOM_GPT; kind <= PARE_RANDOM_GRAPH; kind++) {
        scene s;
        seen want = {.c = 1, .d = 1};
        const pare_attender by = {.fn = by_definition, .self = &want};
        open_scene(&s, (pare_random_kind)kind, 70, 0);
        double *const y = pare_alloc(s.a, 70 * 300, sizeof *y);
        assert_ok(pare_forward_by(y, PARE_F64, s.m, &s.in.in[0], &by, NULL, NULL, &s.err), &s.err);
        assert_ok(pare_probe_length(&s.p, s.a, s.m, &s.in.in[0], 1, NULL, &s.err), &s.err);
        assert_int_equal(s.p.nheads, 4);
        assert_near(s.p.heads[0].largest, want.largest, 1e-9 * want.largest);
        assert_near(s.p.heads[0].c, want.c, 1e-9 * want.c);
        assert_near(s.p.heads[0].d, want.d, 1e-9);
        for (size_t i = 0; i < 4; i++) assert_true(s.p.heads[i].largest <= s.p.heads[i].lmax);
        assert_true(s.p.asked >= 800 * log(40 * 70) / 0.25); /* D is at most 1 */
        assert_int_equal(s.p.samples, kind != PARE_RANDOM_GRAPH);
        assert_int_equal(s.p.rows, kind == PARE_RANDOM_GRAPH ? 0 : 4 * 70);
        close_scene(&s);
    }
}

/* ---- types and samples ----------------------------------------------------------------------- */

/* Small logits are safe in any type, large ones only in f64. */
static void references_follow_the_logits(void **state)
{
    (void)state;
    for (int large = 0; large < 2; large++) {
        scene s;
        open_scene(&s, PARE_RANDOM_BERT, 40, large ? 6 : 0.01);
        assert_ok(pare_probe_length(&s.p, s.a, s.m, &s.in.in[0], 1, NULL, &s.err), &s.err);
        assert_int_equal(s.p.ntypes, 3);
        double lmax = 0;
        for (size_t i = 0; i < s.p.nheads; i++) lmax = fmax(lmax, s.p.heads[i].lmax);
        assert_true(large ? lmax > 60 : lmax < 1);
        for (size_t i = 0; i < 3; i++) {
            const pare_probe_type *const t = &s.p.types[i];
            assert_int_equal(t->reference == PARE_REF_ZERO, lmax <= t->limit);
            assert_near(t->limit, -log(t->w_min) - log(PARE_PROBE_ORACLE), 1e-9);
        }
        assert_int_equal(s.p.types[0].reference, large ? PARE_REF_PROBE : PARE_REF_ZERO);
        assert_int_equal(s.p.types[2].reference, large ? PARE_REF_MEAN : PARE_REF_ZERO);
        if (large) assert_int_equal(s.p.proven, 0); /* no sample says anything */
        close_scene(&s);
    }
}

static void the_graph_decides_about_calls(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, PARE_RANDOM_GRAPH, 50, 0);
    assert_ok(pare_probe_length(&s.p, s.a, s.m, NULL, 0, NULL, &s.err), &s.err);
    assert_int_equal(s.p.nengines, 0);
    assert_ok(pare_probe_length(&s.p, s.a, s.m, &s.in.in[0], 0, NULL, &s.err), &s.err);
    assert_true(s.p.tokens == 50 && s.p.nengines == 2 && s.p.engines[0].native == 4 * 50);
    assert_true(!applies(&s.p, PARE_LENGTH_SAMPLE) && applies(&s.p, PARE_LENGTH_ZEROREF));
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_those_of_the_planner),
        cmocka_unit_test(logits_are_those_of_the_definitions),
        cmocka_unit_test(references_follow_the_logits),
        cmocka_unit_test(the_graph_decides_about_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
