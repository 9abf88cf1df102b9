/* length_backward.c - gradients of native runs (docs/theory/length.md "Gradients"): the same tiles,
 * one at a time.
 *
 * With lse_i of all keys of a row and delta_i = dy_i . y_i, a tile needs nothing of the others:
 *
 *     P = e^(S - lse),   dV += P^T dY,   dS = P (dY V^T - delta),   dQ += dS K,   dK += dS^T Q.
 *
 * Tiles are added in f64, in the order of the plan: no N x N memory, and the bits do not depend on
 * the threads. */
#include "numbers.h"
#include "attention/attend.h"
#include "attend_plan.h"
#include <stdlib.h>
#include <string.h>

typedef struct backward_pass {
    const pare_length_grad *g;
    pare_dtype type;
    const pare_exec *exec;
    pare_err *err;
    double *dq, *dk, *dv;              /* sums over tiles */
    char *q, *k, *v, *y, *dy, *lse;    /* rows of the tile */
    char *tile_dq, *tile_dk, *tile_dv; /* and its answer */
    pare_oracle_count count;
} backward_pass;

static void gather_rows(const backward_pass *b, const pare_tile *t, bool keys, char *to,
                        const void *from, size_t ld, size_t cols)
{
    const size_t s = pare_dtype_size(b->type), n = keys ? t->nk : t->nq;
    for (size_t x = 0; x < n; x++) {
        const size_t row = keys ? pare_tile_key(t, x) : pare_tile_query(t, x);
        memcpy(to + x * cols * s, (const char *)from + row * ld * s, cols * s);
    }
}

static void scatter_add(const backward_pass *b, const pare_tile *t, bool keys, double *to,
                        const char *from, size_t cols)
{
    for (size_t x = 0; x < (keys ? t->nk : t->nq); x++) {
        double *const row = to + (keys ? pare_tile_key(t, x) : pare_tile_query(t, x)) * cols;
        for (size_t c = 0; c < cols; c++) row[c] += num_at(b->type, from, x * cols + c);
    }
}

static pare_mat32 mat32(char *v, size_t rows, size_t cols)
{
    return (pare_mat32){rows, cols, cols, (float *)(void *)v};
}

static pare_mat mat64(char *v, size_t rows, size_t cols)
{
    return (pare_mat){rows, cols, cols, (double *)(void *)v};
}

static pare_status run_tile(backward_pass *b, const pare_tile *t)
{
    const pare_length_job *const j = &b->g->job;
    const size_t nq = t->nq, nk = t->nk, dk = j->dk, dv = j->dv;
    if (b->type == PARE_F32) {
        pare_mat32 dq = mat32(b->tile_dq, nq, dk), dkeys = mat32(b->tile_dk, nk, dk),
                   dvalues = mat32(b->tile_dv, nk, dv);
        const pare_mat32 q = mat32(b->q, nq, dk), k = mat32(b->k, nk, dk), v = mat32(b->v, nk, dv),
                         y = mat32(b->y, nq, dv), dy = mat32(b->dy, nq, dv);
        return pare_attend_partial_backward_f32(&dq, &dkeys, &dvalues, &dy, &q, &k, &v, &y,
                                                (const float *)(const void *)b->lse,
                                                (float)j->scale, t->vis0, b->exec, b->err);
    }
    pare_mat dq = mat64(b->tile_dq, nq, dk), dkeys = mat64(b->tile_dk, nk, dk),
             dvalues = mat64(b->tile_dv, nk, dv);
    const pare_mat q = mat64(b->q, nq, dk), k = mat64(b->k, nk, dk), v = mat64(b->v, nk, dv),
                   y = mat64(b->y, nq, dv), dy = mat64(b->dy, nq, dv);
    pare_attend_partial_backward_f64(&dq, &dkeys, &dvalues, &dy, &q, &k, &v, &y,
                                     (const double *)(const void *)b->lse, j->scale, t->vis0);
    return PARE_OK;
}

static pare_status one_tile(void *ctx, const pare_tile *t)
{
    backward_pass *const b = ctx;
    const pare_length_job *const j = &b->g->job;
    const size_t s = pare_dtype_size(b->type);
    gather_rows(b, t, false, b->q, j->q, j->ldq, j->dk);
    gather_rows(b, t, true, b->k, j->k, j->ldk, j->dk);
    gather_rows(b, t, true, b->v, j->v, j->ldv, j->dv);
    gather_rows(b, t, false, b->y, j->y, j->ldy, j->dv);
    gather_rows(b, t, false, b->dy, b->g->dy, b->g->lddy, j->dv);
    gather_rows(b, t, false, b->lse, j->lse, 1, 1);
    memset(b->tile_dq, 0, t->nq * j->dk * s);
    memset(b->tile_dk, 0, t->nk * j->dk * s);
    memset(b->tile_dv, 0, t->nk * j->dv * s);
    const pare_status st = run_tile(b, t);
    if (st) return st;
    scatter_add(b, t, false, b->dq, b->tile_dq, j->dk);
    scatter_add(b, t, true, b->dk, b->tile_dk, j->dk);
    scatter_add(b, t, true, b->dv, b->tile_dv, j->dv);
    b->count.calls++;
    if (t->nq > b->count.max_len) b->count.max_len = t->nq;
    if (t->nk > b->count.max_len) b->count.max_len = t->nk;
    return PARE_OK;
}

static void write_out(pare_dtype t, void *to, size_t ld, const double *from, size_t n, size_t cols)
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < cols; c++) num_put(t, to, i * ld + c, from[i * cols + c]);
}

pare_status pare_length_backward(const pare_length_grad *g, pare_dtype dtype, uint32_t length,
                                 const pare_pattern *p, const pare_graph *graph,
                                 pare_oracle_count *count, const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT((dtype == PARE_F32 || dtype == PARE_F64) && length && g->job.lse);
    backward_pass b = {.g = g, .type = dtype, .exec = exec, .err = err};
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    const size_t n = g->job.n, edges = p->kind == PARE_GRAPH ? graph->ptr[n] : 0;
    const size_t longest = n > edges ? n : edges, m = length < longest ? length : longest;
    const size_t size = pare_dtype_size(dtype), dk = g->job.dk, dv = g->job.dv;
    b.dq = pare_alloc(a, n * dk, sizeof *b.dq);
    b.dk = pare_alloc(a, n * dk, sizeof *b.dk);
    b.dv = pare_alloc(a, n * dv, sizeof *b.dv);
    b.lse = pare_alloc(a, m, size);
    bool ok = b.dq && b.dk && b.dv && b.lse;
    char **const of_keys[] = {&b.q, &b.k, &b.tile_dq, &b.tile_dk};
    char **const of_values[] = {&b.v, &b.y, &b.dy, &b.tile_dv};
    for (size_t i = 0; i < 4; i++) {
        *of_keys[i] = pare_alloc(a, m * dk, size);
        *of_values[i] = pare_alloc(a, m * dv, size);
        ok = ok && *of_keys[i] && *of_values[i];
    }
    pare_status st = ok ? PARE_OK : pare_no_memory(err);
    if (!st) st = pare_tiles(n, p, graph, length, length, one_tile, &b);
    if (!st) {
        write_out(dtype, g->dq, g->lddq, b.dq, n, dk);
        write_out(dtype, g->dk, g->lddk, b.dk, n, dk);
        write_out(dtype, g->dv, g->lddv, b.dv, n, dv);
    }
    if (count) {
        count->calls += b.count.calls;
        if (b.count.max_len > count->max_len) count->max_len = b.count.max_len;
    }
    pare_arena_free(a);
    return st;
}
