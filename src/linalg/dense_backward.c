/* dense_backward.c - the backward pass of y = x w^T + b:  dx = dy w,  dw += dy^T x,  db += 1^T dy.
 *
 * dx is cut into tiles of rows x inputs. dw is a sum over rows: it is cut into tiles of outputs x
 * inputs and, where these are too few to share, the rows into chunks, whose sums are added in their
 * order. All sizes follow from the shapes alone, so the bits do not depend on the number of
 * threads. */
#include "base/simd.h"
#include "tiles.h"
#include "matrix.h"
#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 504, /* of a tile of dx where there are many: whole tiles of the product, */
    FEW = 2048, /* half of that where there are fewer than so many */
    COLS = 512,
    TILE = 512,   /* outputs, and inputs, of a tile of dw: smaller ones copy too much */
    ENOUGH = 4,   /* tiles of dw to share; with fewer, rows are cut into */
    CHUNKS = 8,   /* at most so many chunks */
    CHUNK = 1024, /* of at least so many rows */
    STRIP = 1024, /* numbers of dw in one unit when chunks are added */
    STEP = 256,   /* rows at a time: what the product takes at a time, too */
    RUN = 32      /* rows that are added in f32 before they go to the sum in f64 */
};

typedef struct job {
    void *dx, *dw, *db;
    const void *dy, *x, *w;
    size_t lddx, lddy, ldx, n, in, out;
    bool add, f64, together; /* together: dx is made along with dw */
    size_t rows, in_blocks;  /* dx: rows of a tile, tiles along the inputs */
    size_t out_tiles, tiles; /* dw: tiles along the outputs, tiles */
    size_t chunk, chunks;    /* rows of a chunk, chunks */
    double *sums;            /* chunks x out: the bias's gradient, or NULL */
    void *partial;           /* chunks - 1 times dw: the first is dw itself */
} job;

/* Element i of an array of the job's type. */
static void *at(const job *j, const void *base, size_t i)
{
    return (char *)base + i * (j->f64 ? sizeof(double) : sizeof(float));
}

typedef struct view {
    void *v;
    size_t rows, cols, ld;
} view;

static pare_mat wide(view x)
{
    return (pare_mat){x.rows, x.cols, x.ld, x.v};
}

/* c = op(a) b, added to c where `add`. */
static void product(const job *j, view c, view a, bool transposed, view b, bool add)
{
    if (j->f64) {
        pare_mat to = wide(c);
        const pare_mat left = wide(a), right = wide(b);
        pare_gemm(&to, 1, &left, transposed, &right, false, add ? 1 : 0);
        return;
    }
    pare_gemm_f32(c.rows, c.cols, b.rows, 1, a.v, a.ld, transposed, b.v, b.ld, false, add ? 1 : 0,
                  c.v, c.ld);
}

/* ---- dx ------------------------------------------------------------------------------------- */

static void dx_part(const job *j, size_t i, size_t rows, size_t c, size_t cols)
{
    const view dx = {at(j, j->dx, i * j->lddx + c), rows, cols, j->lddx};
    const view dy = {at(j, j->dy, i * j->lddy), rows, j->out, j->lddy};
    const view w = {at(j, j->w, c), j->out, cols, j->in};
    product(j, dx, dy, false, w, j->add);
}

static void dx_tile(void *ctx, size_t b)
{
    const job *const j = ctx;
    const size_t i = b / j->in_blocks * j->rows, c = b % j->in_blocks * COLS;
    dx_part(j, i, least(j->rows, j->n - i), c, least(COLS, j->in - c));
}

/* ---- db ------------------------------------------------------------------------------------- */

static void add_f64(double *to, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] += x[i];
}

static void add_f32(float *to, const float *x, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) *(four *)(to + i) += *(const four *)(x + i);
    for (; i < n; i++) to[i] += x[i];
}

/* sum (cols) += rows [i, i + rows) of dy from column o on. */
static void add_rows(const job *j, double *sum, size_t i, size_t rows, size_t o, size_t cols)
{
    for (size_t r = i; r < i + rows; r += RUN) {
        const size_t some = least(RUN, i + rows - r);
        const void *const dy = at(j, j->dy, r * j->lddy + o);
        if (j->f64) {
            for (size_t e = 0; e < some; e++) add_f64(sum, at(j, dy, e * j->lddy), cols);
            continue;
        }
        float part[TILE] = {0}; /* a few rows in f32, so that vectors of them are added */
        for (size_t e = 0; e < some; e++) add_f32(part, at(j, dy, e * j->lddy), cols);
        for (size_t c = 0; c < cols; c++) sum[c] += (double)part[c];
    }
}

static void add_to_bias(const job *j, size_t o, const double *sum, size_t cols)
{
    float *const db = at(j, j->db, o);
    if (j->f64)
        add_f64(at(j, j->db, o), sum, cols);
    else
        for (size_t c = 0; c < cols; c++) db[c] = (float)((double)db[c] + sum[c]);
}

/* Where dw is not wanted. */
static void bias_alone(void *ctx, size_t b)
{
    const job *const j = ctx;
    const size_t o = b * TILE, cols = least(TILE, j->out - o);
    double sum[TILE] = {0};
    add_rows(j, sum, 0, j->n, o, cols);
    add_to_bias(j, o, sum, cols);
}

/* ---- dw ------------------------------------------------------------------------------------- */

/* A tile over one chunk of rows; the first chunk goes to dw itself. The tiles of the first inputs
 * add up the bias's gradient too, while the rows are in the cache; and where there is one tile for
 * all of dw, dx is made of them as well. */
static void dw_tile(void *ctx, size_t b)
{
    const job *const j = ctx;
    const size_t t = b / j->chunks, p = b % j->chunks;
    const size_t o = t % j->out_tiles * TILE, outs = least(TILE, j->out - o);
    const size_t c = t / j->out_tiles * TILE, ins = least(TILE, j->in - c);
    const size_t first = p * j->chunk, end = first + least(j->chunk, j->n - first);
    const size_t to = o * j->in + c;
    const view dw = {p == 0 ? at(j, j->dw, to) : at(j, j->partial, (p - 1) * j->out * j->in + to),
                     outs, ins, j->in};
    for (size_t i = first; i < end; i += STEP) {
        const size_t rows = least(STEP, end - i);
        const view dy = {at(j, j->dy, i * j->lddy + o), rows, outs, j->lddy};
        const view x = {at(j, j->x, i * j->ldx + c), rows, ins, j->ldx};
        if (j->together) dx_part(j, i, rows, 0, j->in);
        product(j, dw, dy, true, x, p == 0 || i > first);
        if (j->sums && c == 0) add_rows(j, j->sums + p * j->out + o, i, rows, o, outs);
    }
}

static void add_chunks(void *ctx, size_t b)
{
    const job *const j = ctx;
    const size_t size = j->out * j->in, first = b * STRIP, n = least(STRIP, size - first);
    for (size_t p = 1; p < j->chunks; p++) {
        void *const to = at(j, j->dw, first), *const x = at(j, j->partial, (p - 1) * size + first);
        if (j->f64)
            add_f64(to, x, n);
        else
            add_f32(to, x, n);
    }
}

static pare_status weight_gradient(job *j, const pare_exec *exec, pare_err *err)
{
    size_t count;
    bool enough = pare_mul(&count, (j->chunks - 1) * j->out, j->in);
    if (enough && count > 0) {
        j->partial = malloc(count * (j->f64 ? sizeof(double) : sizeof(float)));
        enough = j->partial != NULL;
    }
    if (enough && j->db) {
        j->sums = calloc(j->chunks * j->out + 1, sizeof *j->sums);
        enough = j->sums != NULL;
    }
    if (enough) {
        pare_parallel(exec, j->tiles * j->chunks, dw_tile, j);
        if (j->chunks > 1) pare_parallel(exec, blocks_of(j->out * j->in, STRIP), add_chunks, j);
        for (size_t p = 1; j->sums && p < j->chunks; p++)
            add_f64(j->sums, j->sums + p * j->out, j->out);
        if (j->sums) add_to_bias(j, 0, j->sums, j->out);
    }
    free(j->partial);
    free(j->sums);
    return enough ? PARE_OK : pare_no_memory(err);
}

static pare_status backward(bool f64, void *dx, size_t lddx, bool add, void *dw, void *db,
                            const void *dy, size_t lddy, const void *x, size_t ldx, size_t n,
                            const pare_weight *w, const pare_exec *exec, pare_err *err)
{
    job j = {.dx = dx,
             .dw = dw,
             .db = db,
             .dy = dy,
             .x = x,
             .w = w->data,
             .lddx = lddx,
             .lddy = lddy,
             .ldx = ldx,
             .n = n,
             .in = w->cols,
             .out = w->rows,
             .add = add,
             .f64 = f64};
    PARE_ASSERT(!dx || w->dtype == (f64 ? PARE_F64 : PARE_F32));
    PARE_ASSERT(n <= 1 || (lddy >= j.out && (!dx || lddx >= j.in) && (!dw || ldx >= j.in)));
    if (n == 0) return PARE_OK;
    const bool with_weights = dw && j.in > 0;
    if (with_weights) {
        j.out_tiles = blocks_of(j.out, TILE);
        j.tiles = j.out_tiles * blocks_of(j.in, TILE);
        j.chunk = blocks_of(n, CHUNKS);
        if (j.chunk < CHUNK) j.chunk = CHUNK;
        if (j.tiles >= ENOUGH) j.chunk = n;
        j.chunks = blocks_of(n, j.chunk);
        j.together = dx && j.tiles == 1 && j.chunks > CHUNKS / 2;
    }
    j.rows = n >= FEW ? ROWS : ROWS / 2;
    j.in_blocks = blocks_of(j.in, COLS);
    if (dx && !j.together) pare_parallel(exec, blocks_of(n, j.rows) * j.in_blocks, dx_tile, &j);
    if (with_weights) return weight_gradient(&j, exec, err);
    if (db) pare_parallel(exec, blocks_of(j.out, TILE), bias_alone, &j);
    return PARE_OK;
}

pare_status pare_dense_backward_f32(float *dx, size_t lddx, bool add, float *dw, float *db,
                                    const float *dy, size_t lddy, const float *x, size_t ldx,
                                    size_t n, const pare_weight *w, const pare_exec *exec,
                                    pare_err *err)
{
    return backward(false, dx, lddx, add, dw, db, dy, lddy, x, ldx, n, w, exec, err);
}

pare_status pare_dense_backward_f64(double *dx, size_t lddx, bool add, double *dw, double *db,
                                    const double *dy, size_t lddy, const double *x, size_t ldx,
                                    size_t n, const pare_weight *w, const pare_exec *exec,
                                    pare_err *err)
{
    return backward(true, dx, lddx, add, dw, db, dy, lddy, x, ldx, n, w, exec, err);
}
