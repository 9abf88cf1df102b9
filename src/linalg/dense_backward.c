/* dense_backward.c - the way back of y = x w^T + b:  dx = dy w,  dw += dy^T x,  db += 1^T dy.
 *
 * dx is cut into blocks of rows. dw is a sum over rows: tiles of dw, each over chunks of rows whose
 * partial sums are added in their order. All sizes follow from the shapes alone, so the bits do not
 * depend on the number of threads. */
#include <pare/linalg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 256,   /* of dy and dx in one unit of work */
    COLS = 384,   /* of dx in one unit */
    TILE = 256,   /* outputs and inputs of one tile of dw */
    CHUNK = 1024, /* rows of one partial sum of dw and db */
    PARTS = 8     /* tiles enough to share: below it the rows are cut too */
};

typedef struct job {
    float *dx, *dw, *db;
    double *dx64, *dw64, *db64;
    const float *dy, *x, *w;
    const double *dy64, *x64, *w64;
    size_t lddx, lddy, ldx, n, in, out;
    bool add, f64;
    size_t in_blocks; /* dx */
    size_t row_tiles, tiles,
        parts;     /* dw: tiles along out, tiles, chunks of rows (1: no partials) */
    void *partial; /* parts x out x in */
} job;

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t blocks_of(size_t n, size_t size)
{
    return n / size + (n % size != 0);
}

/* ---- dx -------------------------------------------------------------------------------------- */

static void dx_block(void *ctx, size_t b)
{
    const job *const j = ctx;
    const size_t i = b / j->in_blocks * ROWS, rows = least(ROWS, j->n - i);
    const size_t c = b % j->in_blocks * COLS, cols = least(COLS, j->in - c);
    if (j->f64) {
        pare_mat dx = {rows, cols, j->lddx, j->dx64 + i * j->lddx + c};
        const pare_mat dy = {rows, j->out, j->lddy, (double *)j->dy64 + i * j->lddy};
        const pare_mat w = {j->out, cols, j->in, (double *)j->w64 + c};
        pare_gemm(&dx, 1, &dy, false, &w, false, j->add);
        return;
    }
    pare_gemm_f32(rows, cols, j->out, 1, j->dy + i * j->lddy, j->lddy, false, j->w + c, j->in,
                  false, j->add, j->dx + i * j->lddx + c, j->lddx);
}

/* ---- dw -------------------------------------------------------------------------------------- */

/* Tile t over chunk p: into dw itself where there is one chunk, into the chunk's partial else. */
static void dw_block(void *ctx, size_t b)
{
    const job *const j = ctx;
    const size_t t = b / j->parts, p = b % j->parts;
    const size_t o = t % j->row_tiles * TILE, outs = least(TILE, j->out - o);
    const size_t c = t / j->row_tiles * TILE, ins = least(TILE, j->in - c);
    const size_t i = p * CHUNK, rows = j->parts == 1 ? j->n : least(CHUNK, j->n - i);
    const size_t at = o * j->in + c, off = p * j->out * j->in + at;
    const bool direct = j->parts == 1;
    if (j->f64) {
        double *const to = direct ? j->dw64 + at : (double *)j->partial + off;
        pare_mat dw = {outs, ins, j->in, to};
        const pare_mat dy = {rows, outs, j->lddy, (double *)j->dy64 + i * j->lddy + o};
        const pare_mat x = {rows, ins, j->ldx, (double *)j->x64 + i * j->ldx + c};
        pare_gemm(&dw, 1, &dy, true, &x, false, direct);
        return;
    }
    float *const to = direct ? j->dw + at : (float *)j->partial + off;
    pare_gemm_f32(outs, ins, rows, 1, j->dy + i * j->lddy + o, j->lddy, true, j->x + i * j->ldx + c,
                  j->ldx, false, direct, to, j->in);
}

static void add_partials(job *j)
{
    const size_t size = j->out * j->in;
    for (size_t p = 0; p < j->parts; p++)
        for (size_t i = 0; i < size; i++) {
            if (j->f64)
                j->dw64[i] += ((double *)j->partial)[p * size + i];
            else
                j->dw[i] += ((float *)j->partial)[p * size + i];
        }
}

static pare_status weights(job *j, const pare_exec *exec, pare_err *err)
{
    j->row_tiles = blocks_of(j->out, TILE);
    j->tiles = j->row_tiles * blocks_of(j->in, TILE);
    j->parts = j->tiles < PARTS ? blocks_of(j->n, CHUNK) : 1;
    if (j->parts > 1) {
        size_t count;
        if (!pare_mul(&count, j->parts * j->out, j->in)) return pare_no_memory(err);
        j->partial = malloc(count * (j->f64 ? sizeof(double) : sizeof(float)));
        if (!j->partial) return pare_no_memory(err);
    }
    pare_parallel(exec, j->tiles * j->parts, dw_block, j);
    if (j->parts > 1) add_partials(j);
    free(j->partial);
    return PARE_OK;
}

/* ---- db -------------------------------------------------------------------------------------- */

/* One column's sum in f64: what is added to it is far below an f32 rounding. */
static void bias_block(void *ctx, size_t b)
{
    const job *const j = ctx;
    for (size_t o = b * 16; o < j->out && o < (b + 1) * 16; o++) {
        double sum = 0;
        for (size_t i = 0; i < j->n; i++)
            sum += j->f64 ? j->dy64[i * j->lddy + o] : (double)j->dy[i * j->lddy + o];
        if (j->f64)
            j->db64[o] += sum;
        else
            j->db[o] = (float)((double)j->db[o] + sum);
    }
}

static pare_status run(job *j, bool dx, bool dw, bool db, const pare_exec *exec, pare_err *err)
{
    if (j->n == 0) return PARE_OK;
    j->in_blocks = blocks_of(j->in, COLS);
    if (dx) pare_parallel(exec, blocks_of(j->n, ROWS) * j->in_blocks, dx_block, j);
    if (db) pare_parallel(exec, blocks_of(j->out, 16), bias_block, j);
    return dw ? weights(j, exec, err) : PARE_OK;
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
    return run(&j, dx, dw, db, exec, err);
}

pare_status pare_dense_backward_f64(double *dx, size_t lddx, bool add, double *dw, double *db,
                                    const double *dy, size_t lddy, const double *x, size_t ldx,
                                    size_t n, const pare_weight *w, const pare_exec *exec,
                                    pare_err *err)
{
    PARE_ASSERT(!dx || w->dtype == PARE_F64);
    job j = {.dx64 = dx,
             .dw64 = dw,
             .db64 = db,
             .dy64 = dy,
             .x64 = x,
             .w64 = w->data,
             .lddx = lddx,
             .lddy = lddy,
             .ldx = ldx,
             .n = n,
             .in = w->cols,
             .out = w->rows,
             .add = add,
             .f64 = true};
    return run(&j, dx, dw, db, exec, err);
}
