/* probe_length.c - what an engine of M tokens would have to do for a model (docs/probe.md).
 *
 * Plans for several M, and which modes apply. On data: the largest logit and what it means for
 * types of numbers, how many rows a sample can prove, and the constants of Theorem 4.1 of Yu 2025,
 *
 *     C = max_i exp(range of row i / 2),
 *     D = min_i |sum_j b_ij| / (n max_j |b_ij|),   b_ij = exp(l_ij) v_j,
 *
 * which asks for  M >= max(C^4 / .08, 800 / D^2) ln(40 n) / eps^2.  Ours needs neither: each row is
 * proven by itself, and how many are is counted by sampling. */
#include "model/inputs.h"
#include "probe.h"
#include "length/backend.h"
#include "length_probe.h"
#include <math.h>
#include <string.h>

enum { MOST_LOOKED = 256, LEAST_SAMPLED = 32, ENGINES = 6, TYPES = 3 };
static const uint32_t sizes[ENGINES] = {16, 32, 64, 128, 256, 512};
#define SAMPLE_EPS   0.5
#define SAMPLE_DELTA 0.01

static const pare_oracle_caps engine = {.size = sizeof(pare_oracle_caps),
                                        .features = PARE_ORC_FULL | PARE_ORC_CAUSAL | PARE_ORC_QKV,
                                        .layers = 1,
                                        .heads = 1,
                                        .dtype = PARE_F32,
                                        .exp_flush = 104,
                                        .exp_err = 4,
                                        .w_min = 0x1p-80};

/* ---- plans: sizes alone ---------------------------------------------------------------------- */

typedef struct planner {
    pare_length_probe *out;
    pare_arena *a;
    const pare_pattern *p;
    const pare_graph *g;
    pare_length_head *heads;
    size_t nheads;
    pare_err *err;
} planner;

static pare_status plan_for(pare_length_plan *plan, const planner *w, uint32_t m, uint32_t more,
                            pare_length_mode mode, pare_err *err)
{
    pare_oracle_caps caps = engine;
    const pare_length_opts o = {.mode = mode};
    caps.max_len = m;
    caps.features = mode == PARE_LENGTH_STRICT ? engine.features | PARE_ORC_STRICT | more
                                               : engine.features | more;
    return pare_length_plan_make(plan, w->a,
                                 &(pare_length_shape){.heads = w->heads,
                                                      .count = w->nheads,
                                                      .tokens = w->out->tokens,
                                                      .pattern = w->p,
                                                      .graph = w->g},
                                 &caps, &o, err);
}

static double ratio_of(const pare_length_plan *p)
{
    return p->cost.direct_flops > 0 ? p->cost.flops / p->cost.direct_flops : 1;
}

/* Costs for engines of several sizes, the cheapest of them, and which modes there are for this
 * pattern on an engine that can do everything. */
static pare_status plan_engines(planner *w)
{
    pare_length_probe *const o = w->out;
    pare_length_plan native, plain;
    pare_status st = PARE_OK;
    double best = INFINITY;
    o->engines = pare_alloc(w->a, ENGINES, sizeof *o->engines);
    o->modes = pare_alloc(w->a, PARE_LENGTH_MODES, sizeof *o->modes);
    if (!o->engines || !o->modes) return pare_no_memory(w->err);
    for (size_t i = 0; i < ENGINES && (i == 0 || sizes[i] < o->tokens); i++) {
        st = plan_for(&native, w, sizes[i], PARE_ORC_PARTIAL, PARE_LENGTH_NATIVE, w->err);
        if (!st) st = plan_for(&plain, w, sizes[i], PARE_ORC_STATIC, PARE_LENGTH_ZEROREF, w->err);
        if (st) return st;
        o->engines[o->nengines++] =
            (pare_probe_engine){.m = sizes[i],
                                .rounds = plain.cost.rounds,
                                .native = native.cost.calls,
                                .reference = plain.cost.calls,
                                .paper = plain.cost.theorem,
                                .lower = native.cost.lower,
                                .ratio = ratio_of(&plain),
                                .bytes = plain.cost.bytes_in + plain.cost.bytes_out,
                                .scratch = plain.cost.scratch_bytes};
    }
    /* M - 1 keys fit into a call with a reference: one more than a power of two may be less
     * work. */
    for (size_t i = 0; i < 2 * o->nengines; i++) {
        const uint32_t m = o->engines[i / 2].m + (uint32_t)(i % 2);
        st = plan_for(&plain, w, m, PARE_ORC_STATIC, PARE_LENGTH_ZEROREF, w->err);
        if (st) return st;
        if (plain.cost.flops > best) continue;
        best = plain.cost.flops;
        o->cheapest = m;
        o->cheapest_ratio = ratio_of(&plain);
    }
    for (pare_length_mode mode = PARE_LENGTH_NATIVE; mode < PARE_LENGTH_MODES; mode++) {
        pare_err why = {0};
        const uint32_t more = mode == PARE_LENGTH_NATIVE ? PARE_ORC_PARTIAL : 0;
        st = plan_for(&native, w, o->engines[0].m, more, mode, &why);
        if (st && st != PARE_ERR_INPUT) return pare_fail(w->err, st, "%s", why.msg);
        const char *const at = strstr(why.msg, ": ");
        const char *const why_not = !st ? "" : at ? at + 2 : why.msg;
        o->modes[o->nmodes] = (pare_probe_mode){mode, pare_strdup(w->a, why_not)};
        if (!o->modes[o->nmodes++].why_not) return pare_no_memory(w->err);
    }
    return PARE_OK;
}

/* ---- on data --------------------------------------------------------------------------------- */

typedef struct observer {
    pare_length_probe *out;
    pare_arena *a;
    uint64_t seed;
    size_t heads; /* of the whole model */
    const pare_exec *exec;
} observer;

static const double *row(const void *x, size_t ld, size_t i)
{
    return (const double *)x + i * ld;
}

static double dot(const double *a, const double *b, size_t n)
{
    double s = 0;
    for (size_t e = 0; e < n; e++) s += a[e] * b[e];
    return s;
}

/* Upper bound of the longest row. */
static double longest_row(const void *x, size_t ld, size_t rows, size_t cols)
{
    double most = 0;
    for (size_t i = 0; i < rows; i++) most = fmax(most, dot(row(x, ld, i), row(x, ld, i), cols));
    return sqrt(most) * (1 + ((double)cols + 8) * 0x1p-52);
}

/* The logits of one head row by row: their largest, C and D. `l` and `sum` are scratch. */
static void measure_head(pare_probe_logits *h, const pare_attend_job *j, const pare_pattern *p,
                         const pare_graph *g, double *l, double *sum)
{
    h->c = 1;
    h->d = 1;
    for (size_t i = 0; i < j->n; i++) {
        const pare_keys keys = pare_visible(p, g, j->n, i);
        double low = INFINITY, high = -INFINITY, most = 0;
        if (keys.count == 0) continue;
        for (size_t x = 0; x < keys.count; x++) {
            const double *const k = row(j->k, j->ldk, pare_key(&keys, x));
            l[x] = j->scale * dot(row(j->q, j->ldq, i), k, j->dk);
            low = fmin(low, l[x]);
            high = fmax(high, l[x]);
        }
        h->largest = fmax(h->largest, fmax(fabs(low), fabs(high)));
        h->c = fmax(h->c, exp((high - low) / 2));
        memset(sum, 0, j->dv * sizeof *sum);
        for (size_t x = 0; x < keys.count; x++) {
            const double *const v = row(j->v, j->ldv, pare_key(&keys, x));
            const double b = exp(l[x] - high);
            most = fmax(most, b * sqrt(dot(v, v, j->dv)));
            for (size_t e = 0; e < j->dv; e++) sum[e] += b * v[e];
        }
        const double whole = sqrt(dot(sum, sum, j->dv));
        h->d = fmin(h->d, most > 0 ? whole / ((double)keys.count * most) : 0);
    }
    h->lmax = fabs(j->scale) * longest_row(j->q, j->ldq, j->n, j->dk) *
              longest_row(j->k, j->ldk, j->n, j->dk) * (1 + 0x1p-48);
}

/* Half of the keys (of those before a query a quarter of all), once, and what cannot be proven
 * stays so: the sampled rows are thrown away. */
static pare_status sample_head(observer *w, pare_probe_logits *h, const pare_attend_job *j,
                               const pare_pattern *p, pare_err *err)
{
    const pare_length_opts o = {.mode = PARE_LENGTH_SAMPLE,
                                .no_fallback = true,
                                .eps = SAMPLE_EPS,
                                .delta = SAMPLE_DELTA / (double)w->heads,
                                .seed = w->seed + w->out->nheads};
    const pare_length_job job = pare_length_job_of(j);
    pare_length_stats s;
    pare_oracle orc;
    w->out->drawn = j->n / (p->kind == PARE_FULL ? 2 : 4);
    pare_status st = pare_oracle_cpu(&orc, PARE_F64, (uint32_t)w->out->drawn + 1, w->exec, err);
    if (st) return st;
    st = pare_length_attend(&orc, &o, &(pare_length_layer){.jobs = &job, .count = 1, .pattern = p},
                            &s, w->exec, err);
    pare_oracle_free(&orc);
    if (st) return st;
    h->proven = j->n - s.unproven_rows;
    w->out->rows += j->n;
    w->out->proven += h->proven;
    return PARE_OK;
}

/* Runs in the place of attention; what it computes enters the next layer. */
static pare_status observe_layer(void *self, size_t block, pare_dtype t,
                                 const pare_attend_job *jobs, size_t count, const pare_pattern *p,
                                 const pare_graph *g, pare_err *err)
{
    observer *const w = self;
    const pare_mark mark = pare_arena_mark(w->a);
    pare_status st = PARE_OK;
    (void)t; /* f64 */
    for (size_t i = 0; i < count && !st; i++) {
        const pare_attend_job *const j = &jobs[i];
        pare_probe_logits *const h = &w->out->heads[w->out->nheads++];
        double *const l = pare_alloc(w->a, j->n + 1, sizeof *l);
        double *const sum = pare_alloc(w->a, j->dv + 1, sizeof *sum);
        *h = (pare_probe_logits){.block = block, .head = i};
        if (!l || !sum) return pare_no_memory(err);
        measure_head(h, j, p, g, l, sum);
        if (w->out->samples && j->n >= LEAST_SAMPLED) st = sample_head(w, h, j, p, err);
        pare_mat y = {j->n, j->dv, j->ldy, j->y};
        const pare_mat q = {j->n, j->dk, j->ldq, (double *)(uintptr_t)j->q},
                       k = {j->n, j->dk, j->ldk, (double *)(uintptr_t)j->k},
                       v = {j->n, j->dv, j->ldv, (double *)(uintptr_t)j->v};
        const pare_attention_args x = {
            .q = &q, .k = &k, .v = &v, .scale = j->scale, .pattern = p, .graph = g};
        if (!st) st = pare_attend_f64(&y, &x, w->exec, err);
        pare_arena_reset(w->a, mark);
    }
    return st;
}

static pare_status observe_data(observer *w, const pare_model *m, const pare_input *in,
                                pare_err *err)
{
    static const pare_probe_type types[TYPES] = {{.name = "f32", .w_min = 0x1p-80},
                                                 {.name = "f64", .w_min = 0x1p-900},
                                                 {.name = "f16", .w_min = 0x1p-12}};
    pare_length_probe *const o = w->out;
    pare_input part = *in;
    part.batch = 1;
    if (!in->graph && part.tokens > MOST_LOOKED) part.tokens = MOST_LOOKED;
    o->looked = part.tokens;
    o->samples = m->pattern.kind == PARE_FULL || m->pattern.kind == PARE_CAUSAL;
    o->heads = pare_alloc(w->a, w->heads, sizeof *o->heads);
    const size_t rows = pare_output_rows(m, &part) * pare_model_outputs(m);
    double *const y = o->heads ? pare_alloc(w->a, rows + 1, sizeof *y) : NULL;
    if (!y) return pare_no_memory(err);
    const pare_attender by = {.fn = observe_layer, .self = w};
    const pare_status st = pare_forward_by(y, PARE_F64, m, &part, &by, NULL, w->exec, err);
    if (st) return st;
    double lmax = 0, c = 1, d = 1;
    for (size_t i = 0; i < o->nheads; i++) {
        lmax = fmax(lmax, o->heads[i].lmax);
        c = fmax(c, o->heads[i].c);
        d = fmin(d, o->heads[i].d);
    }
    /* The condition of Theorem 4.1 of Yu 2025 at eps = 1/2. */
    const double log_term = log(40 * (double)o->looked) / (SAMPLE_EPS * SAMPLE_EPS);
    o->asked = log_term * fmax(c * c * c * c / 0.08, 800 / (d * d));
    /* The reference that each type needs, by the rule of src/length/reference.c. */
    o->types = pare_alloc(w->a, TYPES, sizeof *o->types);
    if (!o->types) return pare_no_memory(err);
    for (; o->ntypes < TYPES; o->ntypes++) {
        pare_probe_type *const t = &o->types[o->ntypes];
        *t = types[o->ntypes];
        t->limit = -log(t->w_min) - log(PARE_PROBE_ORACLE);
        t->reference = lmax <= t->limit     ? PARE_REF_ZERO
                       : t->w_min > 0x1p-40 ? PARE_REF_MEAN
                                            : PARE_REF_PROBE;
    }
    return PARE_OK;
}

/* ---- the whole part -------------------------------------------------------------------------- */

pare_status pare_probe_length(pare_length_probe *out, pare_arena *a, const pare_model *m,
                              const pare_input *in, uint64_t seed, const pare_exec *exec,
                              pare_err *err)
{
    pare_graph whole;
    planner w = {.out = out, .a = a, .p = &m->pattern, .err = err};
    *out = (pare_length_probe){
        .tokens = PARE_PROBE_LONG, .context = m->context, .endless = pare_length_may_exceed(m)};
    if (m->context && !out->endless && m->context < out->tokens) out->tokens = m->context;
    pare_status st = pare_length_heads(&w.heads, &w.nheads, a, m, err);
    if (st || !w.nheads) return st;
    const bool graph = m->pattern.kind == PARE_GRAPH;
    if (graph && in) {
        st = pare_graph_complete(&whole, a, in->graph, &m->pattern, err);
        w.g = &whole;
        out->tokens = in->tokens;
    }
    if (!st && (!graph || in)) st = plan_engines(&w);
    observer l = {out, a, seed, w.nheads, exec};
    return st || !in ? st : observe_data(&l, m, in, err);
}

pare_status probe_length(pare_probe *p, const pare_model *m, const pare_dataset *data,
                         uint64_t seed, const pare_exec *exec, pare_err *err)
{
    const pare_exec silent = pare_exec_silent(exec);
    const pare_input *in = NULL; /* the longest */
    for (size_t i = 0; data && i < data->inputs.n; i++)
        if (!in || data->inputs.in[i].tokens > in->tokens) in = &data->inputs.in[i];
    const pare_status st = pare_probe_length(&p->length, p->arena, m, in, seed, &silent, err);
    p->has_length = !st && p->length.nengines > 0;
    if (st || p->has_length) return st;
    return probe_untold(p, err, "length: %s",
                        m->pattern.kind == PARE_GRAPH && !in
                            ? "calls over a graph depend on the graph, and none was given"
                            : "the model has no softmax heads");
}
