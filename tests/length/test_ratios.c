/* The claim of the issue on errors: N/M of 2, 8, 32 and 64, every mask, every regime, both types,
 * forward and backward: at most 8 times the direct kernel's own error and 8 u max|v| more, against
 * long double; never a nan. Engines: partial results, both plain softmaxes, and one with a bias. */
#include "attention/attend.h"
#include "length/attend_plan.h"
#include "length_cases.h"
#include "length_graph.h"

enum { M = 6, DK = 4, DV = 3 };
static const size_t ratios[] = {2, 8, 32, 64};

static const pare_pattern patterns[] = {{.kind = PARE_FULL},
                                        {.kind = PARE_CAUSAL},
                                        {.kind = PARE_WINDOW, .window = 4},
                                        {.kind = PARE_WINDOW, .window = 9, .sinks = 2},
                                        {.kind = PARE_GRAPH}};
static const char *const pattern_names[] = {"full", "causal", "window", "sinks", "graph"};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

/* ---- an engine with a bias: plain loops in either type --------------------------------------- */

typedef struct biased {
    pare_dtype type;
    uint64_t calls;
} biased;

static void biased_caps(void *self, pare_oracle_caps *out)
{
    const biased *const o = self;
    const bool f32 = o->type == PARE_F32;
    *out = (pare_oracle_caps){.size = sizeof *out,
                              .features = QKV_FULL | PARE_ORC_BIAS,
                              .max_len = M,
                              .dtype = o->type,
                              .exp_flush = f32 ? 104 : 746,
                              .exp_err = 2,
                              .w_min = f32 ? 0x1p-80 : 0x1p-900};
}

static void biased_row_f32(const pare_call_qkv *a, uint32_t i)
{
    const float *const q = a->q, *const k = a->k, *const v = a->v, *const b = a->bias;
    float w[M], top = -INFINITY, sum = 0, *const y = (float *)a->y + i * a->dv;
    for (uint32_t j = 0; j < a->n; j++) {
        w[j] = b[i * a->n + j];
        for (uint32_t e = 0; e < a->dk; e++) w[j] += q[i * a->dk + e] * k[j * a->dk + e];
        top = fmaxf(top, w[j]);
    }
    for (uint32_t j = 0; j < a->n; j++) sum += w[j] = expf(w[j] - top);
    memset(y, 0, a->dv * sizeof *y);
    for (uint32_t j = 0; j < a->n; j++)
        for (uint32_t e = 0; e < a->dv; e++) y[e] += w[j] / sum * v[j * a->dv + e];
}

static void biased_row_f64(const pare_call_qkv *a, uint32_t i)
{
    const double *const q = a->q, *const k = a->k, *const v = a->v, *const b = a->bias;
    double w[M], top = -INFINITY, sum = 0, *const y = (double *)a->y + i * a->dv;
    for (uint32_t j = 0; j < a->n; j++) {
        w[j] = b[i * a->n + j];
        for (uint32_t e = 0; e < a->dk; e++) w[j] += q[i * a->dk + e] * k[j * a->dk + e];
        top = fmax(top, w[j]);
    }
    for (uint32_t j = 0; j < a->n; j++) sum += w[j] = exp(w[j] - top);
    memset(y, 0, a->dv * sizeof *y);
    for (uint32_t j = 0; j < a->n; j++)
        for (uint32_t e = 0; e < a->dv; e++) y[e] += w[j] / sum * v[j * a->dv + e];
}

static pare_status biased_evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    biased *const o = self;
    (void)err;
    for (size_t x = 0; x < n; x++) {
        const pare_call_qkv *const a = &calls[x].u.a;
        assert_true(calls[x].kind == PARE_CALL_QKV && a->bias && !a->causal && a->n <= M);
        for (uint32_t i = 0; i < a->n; i++)
            (o->type == PARE_F32 ? biased_row_f32 : biased_row_f64)(a, i);
    }
    o->calls += n;
    return PARE_OK;
}

static pare_status biased_barrier(void *self, pare_err *err)
{
    (void)self, (void)err;
    return PARE_OK;
}

static void biased_destroy(void *self)
{
    (void)self;
}

static const pare_oracle_ops biased_ops = {biased_caps, biased_evaluate, biased_barrier,
                                           biased_destroy};

/* ---- forward --------------------------------------------------------------------------------- */

static const pare_length_opts ways[] = {
    {.mode = PARE_LENGTH_NATIVE},
    {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL},
    {.mode = PARE_LENGTH_ZEROREF, .features = QKV_CAUSAL},
    {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL, .no_pack = true},
    {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL, .one_vector = true},
    {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL | PARE_ORC_BIAS}};
static const char *const way_names[] = {"native",   "full",       "causal",
                                        "unpacked", "one vector", "bias"};
enum { WAYS = sizeof ways / sizeof *ways, ONE_VECTOR = 4, BIAS = 5 };

static double one_way(length_case *c, size_t p, const pare_graph *g, size_t w, pare_dtype t)
{
    biased own = {.type = t};
    pare_oracle orc = w == BIAS ? (pare_oracle){&biased_ops, &own} : cpu_oracle(t, M, NULL);
    const pare_length_job job = job_of(c, t);
    pare_length_stats s;
    pare_err err = {0};
    assert_ok(pare_length_attend(&orc, &ways[w],
                                 &(pare_length_layer){
                                     .jobs = &job, .count = 1, .pattern = &patterns[p], .graph = g},
                                 &s, NULL, &err),
              &err);
    const double off = error_in(c, t), most = allowed(c, t);
    if (!(off <= most))
        fail_msg("%s, %s, n %zu, %s: off by %g, allowed %g", way_names[w], pattern_names[p], c->n,
                 t == PARE_F32 ? "f32" : "f64", off, most);
    if (w == BIAS) assert_int_equal(own.calls, s.calls + s.fallback_calls);
    pare_oracle_free(&orc);
    return off / most;
}

static void errors_are_those_of_the_direct_kernel(void **state)
{
    (void)state;
    double most = 0;
    for (size_t r = 0; r < 4; r++)
        for (int kind = 0; kind < REGIMES; kind++)
            for (size_t p = 0; p < PATTERNS; p++) {
                length_case c = length_case_new(ratios[r] * M, DK, DV, (regime)kind, 40 + r);
                const pare_graph graph = random_graph(c.a, c.n, r);
                const pare_graph *const g = patterns[p].kind == PARE_GRAPH ? &graph : NULL;
                length_case_exact(&c, &patterns[p], g);
                for (size_t w = 0; w < WAYS; w++) {
                    if (w == ONE_VECTOR && p) continue; /* full attention only */
                    most = fmax(most, one_way(&c, p, g, w, PARE_F32));
                    most = fmax(most, one_way(&c, p, g, w, PARE_F64));
                }
                length_case_free(&c);
            }
    print_message("largest part of what is allowed: %.3f\n", most);
}

/* A bias makes a call of every tile, also of one that a softmax alone would need several for. */
static void a_bias_takes_one_call_a_tile(void **state)
{
    (void)state;
    static const pare_length_opts tiles = {.mode = PARE_LENGTH_NATIVE};
    for (size_t p = 1; p < PATTERNS; p++) {
        length_case c = length_case_new(50, DK, DV, BENIGN, p);
        const pare_graph graph = random_graph(c.a, c.n, p);
        const pare_graph *const g = patterns[p].kind == PARE_GRAPH ? &graph : NULL;
        biased own = {.type = PARE_F64};
        const pare_oracle orc = {&biased_ops, &own};
        pare_oracle partial = cpu_oracle(PARE_F64, M - 1, NULL); /* one row is the reference's */
        const pare_length_job job = job_of(&c, PARE_F64);
        pare_length_stats s, native;
        pare_err err = {0};
        assert_ok(
            pare_length_attend(
                &orc, NULL,
                &(pare_length_layer){.jobs = &job, .count = 1, .pattern = &patterns[p], .graph = g},
                &s, NULL, &err),
            &err);
        assert_ok(
            pare_length_attend(
                &partial, &tiles,
                &(pare_length_layer){.jobs = &job, .count = 1, .pattern = &patterns[p], .graph = g},
                &native, NULL, &err),
            &err);
        assert_int_equal(s.mode, PARE_LENGTH_ZEROREF);
        assert_int_equal(s.calls, native.calls);
        assert_int_equal(own.calls, s.calls);
        pare_oracle_free(&partial);
        length_case_free(&c);
    }
}

/* A graph through the engine that takes tokens and weights and merges by itself. */
static void graphs_go_through_the_strict_oracle(void **state)
{
    (void)state;
    const pare_pattern p = {.kind = PARE_GRAPH};
    const pare_length_opts strict = {.mode = PARE_LENGTH_STRICT};
    for (int kind = 0; kind < REGIMES; kind++)
        for (int w = 0; w < 4; w++) {
            const pare_dtype t = w & 1 ? PARE_F32 : PARE_F64;
            length_case c = length_case_new(40, DK, DV, (regime)kind, 5);
            const pare_graph g = random_graph(c.a, c.n, 3);
            const pare_length_job job = job_of(&c, t);
            pare_oracle orc;
            pare_length_stats s;
            pare_err err = {0};
            assert_ok(pare_oracle_paper(&orc,
                                        &(pare_oracle_caps){
                                            .max_len = M,
                                            .layers = 1 + (w & 1),
                                            .heads = 2,
                                            .features = (w & 2 ? PARE_ORC_FULL : PARE_ORC_CAUSAL) |
                                                        PARE_ORC_WIDE_HEAD,
                                            .dtype = t},
                                        NULL, &err),
                      &err);
            length_case_exact(&c, &p, &g);
            assert_ok(pare_length_attend(&orc, &strict,
                                         &(pare_length_layer){
                                             .jobs = &job, .count = 1, .pattern = &p, .graph = &g},
                                         &s, NULL, &err),
                      &err);
            assert_true(s.merge_calls > 0);
            assert_le(error_in(&c, t), t == PARE_F32 ? 2e-4 : 1e-12);
            pare_oracle_free(&orc);
            length_case_free(&c);
        }
}

/* ---- backward -------------------------------------------------------------------------------- */

typedef struct slopes { /* rows x DK, rows x DK, rows x DV */
    double *dq, *dk, *dv;
} slopes;

static slopes slopes_new(length_case *c)
{
    return (slopes){doubles(c->a, c->n * DK), doubles(c->a, c->n * DK), doubles(c->a, c->n * DV)};
}

typedef struct sums { /* in long double */
    long double *dq, *dk, *dv;
} sums;

static void exact_slopes_row(const length_case *c, const pare_keys *keys, const double *dy,
                             size_t i, sums *s)
{
    long double w[64 * M], dp[64 * M], top = -INFINITY, total = 0, delta = 0;
    for (size_t x = 0; x < keys->count; x++) {
        const size_t j = pare_key(keys, x);
        w[x] = dp[x] = 0;
        for (size_t e = 0; e < DK; e++)
            w[x] += (long double)c->q[i * DK + e] * (long double)c->k[j * DK + e];
        for (size_t e = 0; e < DV; e++)
            dp[x] += (long double)dy[i * DV + e] * (long double)c->v[j * DV + e];
        if (w[x] > top) top = w[x];
    }
    for (size_t x = 0; x < keys->count; x++) total += w[x] = expl(w[x] - top);
    for (size_t x = 0; x < keys->count; x++) delta += (w[x] /= total) * dp[x];
    for (size_t x = 0; x < keys->count; x++) {
        const size_t j = pare_key(keys, x);
        const long double ds = w[x] * (dp[x] - delta);
        for (size_t e = 0; e < DV; e++) s->dv[j * DV + e] += w[x] * (long double)dy[i * DV + e];
        for (size_t e = 0; e < DK; e++) {
            s->dq[i * DK + e] += ds * (long double)c->k[j * DK + e];
            s->dk[j * DK + e] += ds * (long double)c->q[i * DK + e];
        }
    }
}

static slopes exact_slopes(length_case *c, const pare_pattern *p, const pare_graph *g,
                           const double *dy)
{
    const size_t n[3] = {c->n * DK, c->n * DK, c->n * DV};
    slopes out = slopes_new(c);
    double *const to[3] = {out.dq, out.dk, out.dv};
    sums s = {calloc(n[0], sizeof *s.dq), calloc(n[1], sizeof *s.dk), calloc(n[2], sizeof *s.dv)};
    long double *const from[3] = {s.dq, s.dk, s.dv};
    assert_true(s.dq && s.dk && s.dv);
    for (size_t i = 0; i < c->n; i++) {
        const pare_keys keys = pare_visible(p, g, c->n, i);
        if (keys.count) exact_slopes_row(c, &keys, dy, i, &s);
    }
    for (size_t x = 0; x < 3; x++) {
        for (size_t i = 0; i < n[x]; i++) to[x][i] = (double)from[x][i];
        free(from[x]);
    }
    return out;
}

static void widen(double *to, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] = (double)from[i];
}

static slopes direct_f64(length_case *c, const pare_pattern *p, const pare_graph *g,
                         const pare_transposed_graph *transposed, double *dy)
{
    slopes s = slopes_new(c);
    double *const lse = doubles(c->a, c->n);
    pare_mat y = pare_mat_of(c->direct, c->n, DV), dq = pare_mat_of(s.dq, c->n, DK),
             dk = pare_mat_of(s.dk, c->n, DK), dv = pare_mat_of(s.dv, c->n, DV);
    const pare_mat q = pare_mat_of(c->q, c->n, DK), k = pare_mat_of(c->k, c->n, DK),
                   v = pare_mat_of(c->v, c->n, DV), d = pare_mat_of(dy, c->n, DV);
    pare_err err = {0};
    assert_ok(pare_attend_saving_f64(&y, lse, &q, &k, &v, 1, p, g, NULL, &err), &err);
    assert_ok(pare_attend_backward_f64(&dq, &dk, &dv, &d, &q, &k, &v, &y, lse, 1, p, g, transposed,
                                       NULL, &err),
              &err);
    return s;
}

static slopes direct_f32(length_case *c, const pare_pattern *p, const pare_graph *g,
                         const pare_transposed_graph *transposed, float *dy)
{
    slopes s = slopes_new(c);
    const size_t edges = g ? g->ptr[g->n] : 0;
    const pare_saved32 kept = {.lse = floats(c->a, c->n), .scores = g ? floats(c->a, edges) : NULL};
    float *const out[3] = {floats(c->a, c->n * DK), floats(c->a, c->n * DK),
                           floats(c->a, c->n * DV)};
    pare_mat32 y = {c->n, DV, DV, c->directf}, dq = {c->n, DK, DK, out[0]},
               dk = {c->n, DK, DK, out[1]}, dv = {c->n, DV, DV, out[2]};
    const pare_mat32 q = {c->n, DK, DK, c->qf}, k = {c->n, DK, DK, c->kf},
                     v = {c->n, DV, DV, c->vf}, d = {c->n, DV, DV, dy};
    pare_err err = {0};
    assert_ok(pare_attend_saving_f32(&y, &kept, &q, &k, &v, 1, p, g, transposed, NULL, &err), &err);
    assert_ok(pare_attend_backward_f32(&dq, &dk, &dv, &d, &q, &k, &v, &y, &kept, 1, p, g,
                                       transposed, NULL, &err),
              &err);
    widen(s.dq, out[0], c->n * DK), widen(s.dk, out[1], c->n * DK), widen(s.dv, out[2], c->n * DV);
    return s;
}

static slopes by_tiles(length_case *c, const pare_pattern *p, const pare_graph *g, pare_dtype t,
                       double *dy, float *dyf)
{
    slopes s = slopes_new(c);
    float *const out[3] = {floats(c->a, c->n * DK), floats(c->a, c->n * DK),
                           floats(c->a, c->n * DV)};
    const bool f = t == PARE_F32;
    pare_oracle orc = cpu_oracle(t, M, NULL);
    pare_length_grad w = {.job = job_of(c, t),
                          .dy = f ? (void *)dyf : dy,
                          .lddy = DV,
                          .dq = f ? (void *)out[0] : s.dq,
                          .dk = f ? (void *)out[1] : s.dk,
                          .dv = f ? (void *)out[2] : s.dv,
                          .lddq = DK,
                          .lddk = DK,
                          .lddv = DV};
    pare_length_stats stats;
    pare_err err = {0};
    pare_oracle_count count = {0};
    w.job.lse = doubles(c->a, c->n);
    assert_ok(pare_length_attend(
                  &orc, &ways[0],
                  &(pare_length_layer){.jobs = &w.job, .count = 1, .pattern = p, .graph = g},
                  &stats, NULL, &err),
              &err);
    assert_ok(pare_length_backward(&w, t, M, p, g, &count, NULL, &err), &err);
    assert_int_equal(count.calls, stats.calls);
    if (f) widen(s.dq, out[0], c->n * DK), widen(s.dk, out[1], c->n * DK);
    if (f) widen(s.dv, out[2], c->n * DV);
    pare_oracle_free(&orc);
    return s;
}

/* Largest |x - exact| of an entry; nan counts as inf. */
static double off_by(const double *x, const double *exact, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (!(fabs(x[i] - exact[i]) <= most)) most = fabs(x[i] - exact[i]);
    return isnan(most) ? INFINITY : most;
}

static double largest(const double *x, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
    return most;
}

static double compare(const char *what, const length_case *c, size_t p, pare_dtype t,
                      const double *tiles, const double *direct, const double *exact, size_t n)
{
    const double u = t == PARE_F32 ? 0x1p-24 : 0x1p-53;
    const double most = 8 * off_by(direct, exact, n) + 8 * u * largest(exact, n);
    const double off = off_by(tiles, exact, n);
    if (!(off <= most))
        fail_msg("%s, %s, n %zu, %s: off by %g, allowed %g", what, pattern_names[p], c->n,
                 t == PARE_F32 ? "f32" : "f64", off, most);
    return most > 0 ? off / most : 0;
}

static double one_gradient(length_case *c, size_t p, const pare_graph *g,
                           const pare_transposed_graph *transposed, pare_dtype t, double *dy,
                           float *dyf)
{
    const slopes exact = exact_slopes(c, &patterns[p], g, dy);
    const slopes tiles = by_tiles(c, &patterns[p], g, t, dy, dyf);
    const slopes direct = t == PARE_F32 ? direct_f32(c, &patterns[p], g, transposed, dyf)
                                        : direct_f64(c, &patterns[p], g, transposed, dy);
    const double q = compare("dq", c, p, t, tiles.dq, direct.dq, exact.dq, c->n * DK);
    const double k = compare("dk", c, p, t, tiles.dk, direct.dk, exact.dk, c->n * DK);
    return fmax(fmax(q, k), compare("dv", c, p, t, tiles.dv, direct.dv, exact.dv, c->n * DV));
}

static void gradients_are_those_of_the_direct_kernel(void **state)
{
    (void)state;
    double most = 0;
    for (size_t r = 0; r < 4; r++)
        for (int kind = 0; kind < REGIMES; kind++)
            for (size_t p = 0; p < PATTERNS; p++) {
                length_case c = length_case_new(ratios[r] * M, DK, DV, (regime)kind, 60 + r);
                const pare_graph graph = random_graph(c.a, c.n, r);
                const bool is = patterns[p].kind == PARE_GRAPH;
                pare_transposed_graph transposed = {0};
                pare_err err = {0};
                if (is)
                    assert_ok(pare_graph_transpose(&transposed, c.a, &graph, DK + DV, &err), &err);
                double *const dy = doubles(c.a, c.n * DV);
                float *const dyf = floats(c.a, c.n * DV);
                pare_rng g = pare_rng_at(r, 8);
                for (size_t i = 0; i < c.n * DV; i++)
                    dy[i] = (double)(dyf[i] = (float)pare_rng_normal(&g));
                for (int f = 0; f < 2; f++)
                    most =
                        fmax(most, one_gradient(&c, p, is ? &graph : NULL, is ? &transposed : NULL,
                                                f ? PARE_F32 : PARE_F64, dy, dyf));
                length_case_free(&c);
            }
    print_message("largest part of what is allowed: %.3f\n", most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_those_of_the_direct_kernel),
        cmocka_unit_test(a_bias_takes_one_call_a_tile),
        cmocka_unit_test(graphs_go_through_the_strict_oracle),
        cmocka_unit_test(gradients_are_those_of_the_direct_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
