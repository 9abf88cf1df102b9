/* probe_stream.c - the residual stream on given inputs, place by place: the rank of its rows and
 * their norms. Gathered as second moments while the f64 reference runs, so that no stream is ever
 * stored whole. */
#include "linalg/matrix.h"
#include "probe.h"
#include <math.h>
#include <string.h>

typedef struct place {
    pare_mat moment; /* sum of h h^T */
    double *sum;     /* of h */
    norm_sum norms;
    size_t rows;
} place;

typedef struct observer {
    pare_arena *a;
    place *place; /* 2 blocks + 1: h0 z0 h1 ... */
    size_t nblocks;
    norm_sum enter; /* rows that enter a block */
    bool no_memory;
} observer;

static void add_rows(observer *l, place *at, const double *v, size_t rows, size_t cols, bool enters)
{
    if (!at->sum) {
        at->moment = pare_mat_new(l->a, cols, cols);
        at->sum = pare_alloc(l->a, cols, sizeof *at->sum);
    }
    if (!at->sum || !at->moment.v) {
        l->no_memory = true;
        return;
    }
    union { /* a matrix is a view of what it may write; this one is only read */
        const double *in;
        double *out;
    } seen = {.in = v};
    const pare_mat h = pare_mat_of(seen.out, rows, cols);
    pare_gemm(&at->moment, 1, &h, true, &h, false, 1);
    at->rows += rows;
    for (size_t i = 0; i < rows; i++) {
        double square = 0;
        for (size_t j = 0; j < cols; j++) {
            at->sum[j] += v[i * cols + j];
            square += v[i * cols + j] * v[i * cols + j];
        }
        norm_add(&at->norms, sqrt(square));
        if (enters) norm_add(&l->enter, sqrt(square));
    }
}

static void observe(void *self, pare_tap tap, size_t block, pare_dtype dtype, const void *v,
                    size_t rows, size_t cols)
{
    observer *const l = self;
    PARE_ASSERT(dtype == PARE_F64);
    if (tap == PARE_TAP_ATTN_IN) add_rows(l, &l->place[2 * block], v, rows, cols, true);
    if (tap == PARE_TAP_ATTN_OUT) add_rows(l, &l->place[2 * block + 1], v, rows, cols, false);
    if (tap == PARE_TAP_FFN_OUT && block + 1 == l->nblocks)
        add_rows(l, &l->place[2 * block + 2], v, rows, cols, false);
}

static pare_status observe_input(observer *l, const pare_model *m, const pare_input *in,
                                 const pare_exec *exec, pare_err *err)
{
    const pare_trace trace = {.fn = observe, .self = l};
    pare_arena *const a = pare_arena_new();
    size_t count = 0;
    double *const y = a && pare_mul(&count, pare_output_rows(m, in), pare_model_outputs(m))
                          ? pare_alloc(a, count ? count : 1, sizeof *y)
                          : NULL;
    pare_status st = y ? pare_forward_f64(y, m, in, &trace, exec, err) : pare_no_memory(err);
    if (!st && l->no_memory) st = pare_no_memory(err);
    pare_arena_free(a);
    return st;
}

static pare_status observer_new(observer *l, pare_arena *a, size_t nblocks, pare_err *err)
{
    *l = (observer){.a = a, .nblocks = nblocks};
    l->place = pare_alloc(a, 2 * nblocks + 1, sizeof *l->place);
    return l->place ? PARE_OK : pare_no_memory(err);
}

/* ---- ranks and norms ------------------------------------------------------------------------- */

/* Root mean squares along the axes of sum (h - c)(h - c)^T, c the mean or 0; descending. */
static pare_status axes(double *s, const place *at, bool centered, pare_arena *a, pare_err *err)
{
    const size_t n = at->moment.rows;
    const double rows = (double)at->rows;
    pare_mat g = pare_mat_new(a, n, n);
    double *const up = pare_alloc(a, n, sizeof *up);
    if (!g.v || !up) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            pare_row_mut(&g, i)[j] = pare_row(&at->moment, i)[j] / rows -
                                     (centered ? at->sum[i] / rows * (at->sum[j] / rows) : 0);
    const pare_status st = pare_eigh(up, NULL, &g, a, err);
    for (size_t i = 0; !st && i < n; i++) s[i] = up[n - 1 - i] > 0 ? sqrt(up[n - 1 - i]) : 0;
    return st;
}

static pare_status describe(pare_stream *out, const place *at, pare_arena *keep, pare_arena *a,
                            pare_err *err)
{
    const size_t n = at->moment.rows;
    double *const plain = pare_alloc(a, n, sizeof *plain);
    const pare_norms norms = norm_end(&at->norms);
    out->width = n;
    out->rows = at->rows;
    out->mean = norms.mean;
    out->std = norms.std;
    out->sup = norms.sup;
    out->s_est = pare_alloc(keep, n, sizeof *out->s_est);
    if (!plain || !out->s_est) return pare_no_memory(err);
    pare_status st = axes(plain, at, false, a, err);
    if (!st) st = axes(out->s_est, at, true, a, err);
    if (st) return st;
    out->rank_est = rank_above(plain, n, PARE_PROBE_RANK);
    /* Measured by the rows, not by their spread: a constant stream has affine rank 0. */
    while (out->affine_est < n && out->s_est[out->affine_est] > PARE_PROBE_RANK * plain[0])
        out->affine_est++;
    out->effective_est = effective_rank(out->s_est, n);
    return PARE_OK;
}

pare_status probe_stream(pare_probe *p, const pare_model *m, const pare_inputs *in,
                         const pare_exec *exec, pare_err *err)
{
    observer l;
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? observer_new(&l, a, m->nblocks, err) : pare_no_memory(err);
    for (size_t i = 0; !st && i < in->n; i++) {
        st = observe_input(&l, m, &in->in[i], exec, err);
        p->tokens += in->in[i].batch * in->in[i].tokens;
        if (!st) st = pare_progress(exec, "listen to the stream", i + 1, in->n, err);
    }
    p->inputs = in->n;
    if (!st) p->streams = pare_alloc(p->arena, 2 * m->nblocks + 1, sizeof *p->streams);
    if (!st && !p->streams) st = pare_no_memory(err);
    for (size_t i = 0; !st && i < 2 * m->nblocks + 1; i++) {
        if (l.place[i].rows == 0) continue; /* a block without that part */
        pare_stream *const out = &p->streams[p->nstreams++];
        snprintf(out->name, sizeof out->name, "%c%zu", i % 2 ? 'z' : 'h', i / 2);
        st = describe(out, &l.place[i], p->arena, a, err);
        if (!st) st = pare_progress(exec, "ranks of the stream", i + 1, 2 * m->nblocks + 1, err);
    }
    if (!st) p->vectors = norm_end(&l.enter);
    pare_arena_free(a);
    return st;
}

pare_status pare_probe_norms(pare_norms *operators, pare_norms *vectors, const pare_model *m,
                             const pare_input *in, const pare_exec *exec, pare_err *err)
{
    observer l;
    pare_probe p = {.arena = pare_arena_new()};
    if (!p.arena) return pare_no_memory(err);
    pare_status st = probe_weights(&p, m, exec, err);
    if (!st) st = observer_new(&l, p.arena, m->nblocks, err);
    if (!st) st = observe_input(&l, m, in, exec, err);
    if (!st) *operators = p.operators;
    if (!st) *vectors = norm_end(&l.enter);
    pare_arena_free(p.arena);
    return st;
}
