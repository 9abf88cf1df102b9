/* dense_backward.c - the way back of y = x w^T + b:  dx = dy w,  dw += dy^T x,  db += 1^T dy.
 *
 * dx is cut into tiles of rows x inputs. dw is a sum over rows: it is cut into tiles of outputs x
 * inputs and, where these are too few to share, the rows into chunks, whose sums are added in their
 * order. All sizes follow from the shapes alone, so the bits do not depend on the number of
 * threads. */
#include <pare/linalg.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 512, /* of a tile of dx where there are many, */
    FEW = 2048, /* half of that where there are fewer than so many */
    COLS = 512,
    TILE_IN = 512, /* of dw; outputs: from most to least, until there are enough tiles */
    TILE_OUT_MOST = 512,
    TILE_OUT_LEAST = 128,
    ENOUGH = 4,   /* tiles of dw to share; with fewer, rows are cut into */
    CHUNKS = 8,   /* at most so many chunks */
    CHUNK = 1024, /* of at least so many rows */
    STRIP = 1024, /* numbers of dw in one unit when chunks are added */
    BIAS = 64,    /* columns of dy in one unit */
    RUN = 32      /* rows that are added in f32 before they go to the sum in f64 */
};

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

typedef struct job {
    void *dx, *dw, *db;
    const void *dy, *x, *w;
    size_t lddx, lddy, ldx, n, in, out;
    bool add, f64;
    size_t rows, in_blocks;        /* dx: rows of a tile, tiles along the inputs */
    size_t outs, out_tiles, tiles; /* dw: outputs of a tile, tiles along them, tiles */
    size_t chunk, chunks;          /* rows of a chunk, chunks */
    void *partial;                 /* chunks - 1 times dw: the first is dw itself */
} job;

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t blocks_of(size_t n, size_t size)
{
    return n / size + (n % size != 0);
}

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
static void product(const job *j, view c, view a, bool turned, view b, bool add)
{
    if (j->f64) {
        pare_mat to = wide(c);
        const pare_mat left = wide(a), right = wide(b);
        pare_gemm(&to, 1, &left, turned, &right, false, add ? 1 : 0);
        return;
    }
    pare_gemm_f32(c.rows, c.cols, b.rows, 1, a.v, a.ld, turned, b.v, b.ld, false, add ? 1 : 0, c.v,
                  c.ld);
}

/* ---- dx ------------------------------------------------------------------------------------- */

static void dx_tile(void *ctx, size_t b)
{
    const job *const j = ctx;
    const size_t i = b / j->in_blocks * j->rows, rows = least(j->rows, j->n - i);
    const size_t c = b % j->in_blocks * COLS, cols = least(COLS, j->in - c);
    const view dx = {at(j, j->dx, i * j->lddx + c), rows, cols, j->lddx};
    const view dy = {at(j, j->dy, i * j->lddy), rows, j->out, j->lddy};
    const view w = {at(j, j->w, c), j->out, cols, j->in};
    product(j, dx, dy, false, w, j->add);
}

/* ---- dw ------------------------------------------------------------------------------------- */

static void choose_tiles(job *j)
{
    j->outs = 2 * TILE_OUT_MOST;
    do {
        j->outs /= 2;
        j->out_tiles = blocks_of(j->out, j->outs);
        j->tiles = j->out_tiles * blocks_of(j->in, TILE_IN);
    } while (j->tiles < ENOUGH && j->outs > TILE_OUT_LEAST);
    j->chunk = blocks_of(j->n, CHUNKS);
    if (j->chunk < CHUNK) j->chunk = CHUNK;
    if (j->tiles >= ENOUGH) j->chunk = j->n;
    j->chunks = blocks_of(j->n, j->chunk);
}

/* A tile over one chunk of rows; the first chunk goes to dw itself. */
static void dw_tile(void *ctx, size_t b)
{
    const job *const j = ctx;
    const size_t t = b / j->chunks, p = b % j->chunks;
    const size_t o = t % j->out_tiles * j->outs, outs = least(j->outs, j->out - o);
    const size_t c = t / j->out_tiles * TILE_IN, ins = least(TILE_IN, j->in - c);
    const size_t i = p * j->chunk, rows = least(j->chunk, j->n - i), to = o * j->in + c;
    const view dw = {p == 0 ? at(j, j->dw, to) : at(j, j->partial, (p - 1) * j->out * j->in + to),
                     outs, ins, j->in};
    const view dy = {at(j, j->dy, i * j->lddy + o), rows, outs, j->lddy};
    const view x = {at(j, j->x, i * j->ldx + c), rows, ins, j->ldx};
    product(j, dw, dy, true, x, p == 0);
}

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

static pare_status weights(job *j, const pare_exec *exec, pare_err *err)
{
    choose_tiles(j);
    if (j->chunks > 1) {
        size_t bytes;
        if (!pare_mul(&bytes, (j->chunks - 1) * j->out, j->in) ||
            !pare_mul(&bytes, bytes, j->f64 ? sizeof(double) : sizeof(float)))
            return pare_no_memory(err);
        j->partial = malloc(bytes > 0 ? bytes : 1);
        if (!j->partial) return pare_no_memory(err);
    }
    pare_parallel(exec, j->tiles * j->chunks, dw_tile, j);
    if (j->chunks > 1) pare_parallel(exec, blocks_of(j->out * j->in, STRIP), add_chunks, j);
    free(j->partial);
    return PARE_OK;
}

/* ---- db ------------------------------------------------------------------------------------- */

/* sum[c] += the sum of a few rows: in f32, so that vectors of them are added. */
static void add_run(double *sum, const float *dy, size_t ld, size_t rows, size_t cols)
{
    float part[BIAS] = {0};
    for (size_t i = 0; i < rows; i++) add_f32(part, dy + i * ld, cols);
    for (size_t c = 0; c < cols; c++) sum[c] += (double)part[c];
}

static void bias(void *ctx, size_t b)
{
    const job *const j = ctx;
    const size_t o = b * BIAS, cols = least(BIAS, j->out - o);
    double sum[BIAS] = {0};
    if (j->f64) {
        for (size_t i = 0; i < j->n; i++) add_f64(sum, at(j, j->dy, i * j->lddy + o), cols);
        add_f64(at(j, j->db, o), sum, cols);
        return;
    }
    for (size_t i = 0; i < j->n; i += RUN)
        add_run(sum, at(j, j->dy, i * j->lddy + o), j->lddy, least(RUN, j->n - i), cols);
    float *const db = at(j, j->db, o);
    for (size_t c = 0; c < cols; c++) db[c] = (float)((double)db[c] + sum[c]);
}

static pare_status run(job *j, const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(j->n <= 1 ||
                (j->lddy >= j->out && (!j->dx || j->lddx >= j->in) && (!j->dw || j->ldx >= j->in)));
    if (j->n == 0) return PARE_OK;
    j->rows = j->n >= FEW ? ROWS : ROWS / 2;
    j->in_blocks = blocks_of(j->in, COLS);
    if (j->dx) pare_parallel(exec, blocks_of(j->n, j->rows) * j->in_blocks, dx_tile, j);
    if (j->db) pare_parallel(exec, blocks_of(j->out, BIAS), bias, j);
    return j->dw ? weights(j, exec, err) : PARE_OK;
}

pare_status pare_dense_backward_f32(float *dx, size_t lddx, bool add, float *dw, float *db,
                                    const float *dy, size_t lddy, const float *x, size_t ldx,
                                    size_t n, const pare_weight *w, const pare_exec *exec,
                                    pare_err *err)
{
    PARE_ASSERT(!dx || w->dtype == PARE_F32);
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
             .add = add};
    return run(&j, exec, err);
}

pare_status pare_dense_backward_f64(double *dx, size_t lddx, bool add, double *dw, double *db,
                                    const double *dy, size_t lddy, const double *x, size_t ldx,
                                    size_t n, const pare_weight *w, const pare_exec *exec,
                                    pare_err *err)
{
    PARE_ASSERT(!dx || w->dtype == PARE_F64);
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
             .f64 = true};
    return run(&j, exec, err);
}
