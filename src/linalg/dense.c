/* dense.c - y = x w^T + b, the product everything else is made of.
 *
 * The work is cut into tiles of tokens x outputs whose sizes follow from the shapes alone, so the
 * bits do not depend on the number of threads. A weight stored in the other precision is converted
 * tile by tile into scratch that lives as long as the tile, never whole. */
#include "small_dense.h"
#include "sgemm.h"
#include "tiles.h"
#include "packed.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    most_outs = 512,      /* of a tile */
    inner_tile = 512,     /* columns of w converted at a time: 256 x 512 doubles are 1 MB */
    small_work = 1 << 15, /* multiplications below which a second thread costs more than it gives */
    small_work_f32 = 1 << 17,
    small_product = 1 << 22 /* f32, more than a few tokens: one call is best */
};

typedef struct job {
    const pare_weight *w, *b; /* b NULL when absent */
    const pare_mat *x64;      /* either these two ... */
    pare_mat *y64;
    const float *x32; /* ... or these */
    float *y32;
    size_t ldx, ldy;
    size_t n, tokens, outs, out_blocks; /* a tile is tokens x outs */
    atomic_bool no_memory;
} job;

typedef struct tile {
    size_t i, tokens; /* rows of x and y */
    size_t o, outs;   /* rows of w, columns of y */
} tile;

static tile tile_at(const job *j, size_t block)
{
    const size_t i = block / j->out_blocks * j->tokens, o = block % j->out_blocks * j->outs;
    return (tile){i, least(j->tokens, j->n - i), o, least(j->outs, j->w->rows - o)};
}

static double bias_at(const job *j, size_t o)
{
    return j->b ? pare_weight_at(j->b, o) : 0;
}

static void tile_f64(void *ctx, size_t block)
{
    job *j = ctx;
    const tile t = tile_at(j, block);
    const size_t in = j->w->cols;
    pare_mat y = pare_mat_part(j->y64, t.i, t.o, t.tokens, t.outs);
    for (size_t i = 0; i < t.tokens; i++)
        for (size_t o = 0; o < t.outs; o++) pare_row_mut(&y, i)[o] = bias_at(j, t.o + o);
    if (j->w->dtype == PARE_F64) {
        const pare_mat x = pare_mat_part(j->x64, t.i, 0, t.tokens, in);
        const pare_mat w = pare_mat_of((double *)j->w->data + t.o * in, t.outs, in);
        pare_gemm(&y, 1, &x, false, &w, true, 1);
        return;
    }
    double *wide = malloc(t.outs * least(in, inner_tile) * sizeof *wide);
    if (!wide) {
        atomic_store_explicit(&j->no_memory, true, memory_order_relaxed);
        return;
    }
    for (size_t c = 0; c < in; c += inner_tile) {
        const size_t cols = least(inner_tile, in - c);
        const pare_mat x = pare_mat_part(j->x64, t.i, c, t.tokens, cols);
        pare_mat w = pare_mat_of(wide, t.outs, cols);
        pare_weight_widen(&w, j->w, t.o, c);
        pare_gemm(&y, 1, &x, false, &w, true, 1);
    }
    free(wide);
}

static void bias_rows_f32(const job *j, tile t, float *y)
{
    for (size_t o = 0; o < t.outs; o++) y[o] = (float)bias_at(j, t.o + o);
    if (j->ldy != t.outs) {
        for (size_t i = 1; i < t.tokens; i++) memcpy(y + i * j->ldy, y, t.outs * sizeof *y);
        return;
    }
    for (size_t done = 1; done < t.tokens; done *= 2) /* rows lie close: twice as many at a time */
        memcpy(y + done * t.outs, y, least(done, t.tokens - done) * t.outs * sizeof *y);
}

static void tile_f32(void *ctx, size_t block)
{
    job *j = ctx;
    const tile t = tile_at(j, block);
    const size_t in = j->w->cols;
    const float *x = j->x32 + t.i * j->ldx;
    float *y = j->y32 + t.i * j->ldy + t.o;
    if (narrow_f32(y, j->ldy, x, j->ldx, t.tokens, j->w, j->b))
        return; /* one tile has all outputs */
    const bool whole = j->w->dtype == PARE_F32;
    const float beta = j->b || !whole ? 1 : 0;
    const float *const w = whole ? (const float *)j->w->data + t.o * in : NULL;
    /* Our own kernel wherever there is one, also for few rows: the bits of a row of y depend on its row of
     * x alone, which BLAS does not promise. The bias goes into the product: y is written once. */
    if (w) {
        float bias[most_outs];
        for (size_t o = 0; j->b && o < t.outs; o++) bias[o] = (float)bias_at(j, t.o + o);
        if (sgemm_avx512(t.tokens, t.outs, in, x, j->ldx, false, w, in, true, j->b ? bias : NULL, 0,
                         y, j->ldy))
            return;
    }
    if (beta != 0) bias_rows_f32(j, t, y);
    if (w) {
        pare_gemm_f32(t.tokens, t.outs, in, 1, x, j->ldx, false, w, in, true, beta, y, j->ldy);
        return;
    }
    float *slim = malloc(t.outs * least(in, inner_tile) * sizeof *slim);
    if (!slim) {
        atomic_store_explicit(&j->no_memory, true, memory_order_relaxed);
        return;
    }
    for (size_t c = 0; c < in; c += inner_tile) {
        const size_t cols = least(inner_tile, in - c);
        for (size_t o = 0; o < t.outs; o++) {
            const double *from = (const double *)j->w->data + (t.o + o) * in + c;
            for (size_t k = 0; k < cols; k++) slim[o * cols + k] = (float)from[k];
        }
        if (!sgemm_avx512(t.tokens, t.outs, cols, x + c, j->ldx, false, slim, cols, true, y, j->ldy,
                          y, j->ldy))
            pare_gemm_f32(t.tokens, t.outs, cols, 1, x + c, j->ldx, false, slim, cols, true, 1, y,
                          j->ldy);
    }
    free(slim);
}

static pare_status run(job *j, void (*tile_fn)(void *, size_t), const pare_exec *exec,
                       pare_err *err)
{
    if (j->b && !pare_has(j->b)) j->b = NULL;
    PARE_ASSERT(j->w->dtype == PARE_F32 || j->w->dtype == PARE_F64 || (j->y64 && packed_of(j->w)));
    PARE_ASSERT(!j->b || j->b->rows * j->b->cols == j->w->rows);
    if (j->n == 0 || j->w->rows == 0) return PARE_OK;
    PARE_ASSERT(pare_has(j->w) || j->w->cols == 0);
    const size_t n = j->n, out = j->w->rows;
    const double work = (double)n * (double)out * (double)j->w->cols;
    const bool few = n <= 64;
    if (j->y64) {
        /* Long inputs take tall tiles, so that a converted tile of w serves many tokens; few tokens
         * take narrow ones, so that there is something to share between threads. */
        const bool one = work < small_work;
        j->tokens = one ? n : n >= 2048 ? 512 : 128;
        j->outs = one ? out : few ? 128 : 256;
    } else { /* a product copies its operands tile by tile: larger tiles waste less */
        const bool one = work < (few ? small_work_f32 : small_product);
        j->tokens = one ? n : few ? 64 : n >= 2048 ? 504 : 256;
        j->outs = one ? least(out, most_outs) : few ? 128 : most_outs;
    }
    j->out_blocks = blocks_of(out, j->outs);
    pare_parallel(exec, blocks_of(j->n, j->tokens) * j->out_blocks, tile_fn, j);
    return atomic_load(&j->no_memory) ? pare_no_memory(err) : PARE_OK;
}

pare_status pare_dense_f64(pare_mat *y, const pare_mat *x, const pare_weight *w,
                           const pare_weight *b, const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(x->cols == w->cols && y->cols == w->rows && y->rows == x->rows);
    job j = {.w = w, .b = b, .x64 = x, .y64 = y, .n = x->rows};
    return run(&j, tile_f64, exec, err);
}

pare_status pare_dense_f32(pare_mat32 *y, const pare_mat32 *x, const pare_weight *w,
                           const pare_weight *b, const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(x->cols == w->cols && y->cols == w->rows && y->rows == x->rows);
    PARE_ASSERT(x->rows <= 1 || (x->ld >= w->cols && y->ld >= w->rows));
    job j = {.w = w, .b = b, .x32 = x->v, .y32 = y->v, .ldx = x->ld, .ldy = y->ld, .n = x->rows};
    return run(&j, tile_f32, exec, err);
}
