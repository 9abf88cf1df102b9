/* Means over the keys a row sees: what attention is when every row asks the same.
 *
 *     y_i = sum_j w_j x_j / sum_j w_j        (w_j = 1: the plain mean)
 *
 * Sums only ever grow: nothing is subtracted, so weights of very different sizes do no harm. Where
 * rows see ranges, the sums are in f64 and taken once: a running one under the causal pattern;
 * under a window of m keys, cut the rows into chunks of m, and what row i sees is the end of the
 * chunk before, added up backwards, and the beginning of its own. Rows of a graph add up their
 * lists, in f32. */
#include "sparse.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 256, /* rows of one unit of work */
    LISTS = 64   /* the same on a graph */
};

typedef struct mean_job {
    pare_mat32 *y;
    const pare_mat32 *x;
    const double *w;
    const pare_pattern *p;
    const pare_graph *g;
    const sparse_kernel *kernel;
    size_t width;  /* of a sum: the columns, then the weights */
    double *parts; /* of each block of rows: its sum, and then the sum of all blocks before */
    double *sinks; /* k: the sum of the first k rows; window only */
    atomic_bool no_memory;
} mean_job;

static void add_row(double *sum, const mean_job *m, size_t j)
{
    const float *const x = m->x->v + j * m->x->ld;
    const double w = m->w ? m->w[j] : 1;
    const size_t d = m->x->cols;
    for (size_t c = 0; c < d; c++) sum[c] += w * (double)x[c];
    sum[d] += w;
}

static void add_sum(double *sum, const double *more, size_t width)
{
    for (size_t c = 0; c < width; c++) sum[c] += more[c];
}

static void put_row(const mean_job *m, size_t i, const double *sum)
{
    float *const y = m->y->v + i * m->y->ld;
    const double by = sum[m->width - 1];
    for (size_t c = 0; c < m->y->cols; c++) y[c] = (float)(sum[c] / by);
}

static size_t end_of(const mean_job *m, size_t first, size_t rows)
{
    const size_t n = m->x->rows;
    return n - first < rows ? n : first + rows;
}

/* ---- all rows, and all up to the row itself -------------------------------------------------- */

static void sum_block(void *ctx, size_t b)
{
    const mean_job *const m = ctx;
    double *const sum = m->parts + b * m->width;
    memset(sum, 0, m->width * sizeof *sum);
    for (size_t j = b * BLOCK; j < end_of(m, b * BLOCK, BLOCK); j++) add_row(sum, m, j);
}

static void causal_block(void *ctx, size_t b)
{
    const mean_job *const m = ctx;
    double *const sum = m->parts + b * m->width; /* before the block; grows */
    for (size_t j = b * BLOCK; j < end_of(m, b * BLOCK, BLOCK); j++) {
        add_row(sum, m, j);
        put_row(m, j, sum);
    }
}

static void full_block(void *ctx, size_t b)
{
    const mean_job *const m = ctx;
    const double *const all = m->parts + (m->x->rows + BLOCK - 1) / BLOCK * m->width;
    for (size_t j = b * BLOCK; j < end_of(m, b * BLOCK, BLOCK); j++) put_row(m, j, all);
}

/* parts[b] becomes the sum before block b; one more: the sum of all. */
static void sums_before(const mean_job *m, size_t blocks)
{
    const size_t width = m->width;
    double *const all = m->parts + blocks * width;
    memset(all, 0, width * sizeof *all);
    for (size_t b = 0; b < blocks; b++)
        for (size_t c = 0; c < width; c++) {
            const double own = m->parts[b * width + c];
            m->parts[b * width + c] = all[c];
            all[c] += own;
        }
}

static void mean_prefix(mean_job *m, const pare_exec *exec)
{
    const size_t blocks = (m->x->rows + BLOCK - 1) / BLOCK;
    m->parts = malloc((blocks + 1) * m->width * sizeof *m->parts);
    if (m->parts) {
        pare_parallel(exec, blocks, sum_block, m);
        sums_before(m, blocks);
        pare_parallel(exec, blocks, m->p->kind == PARE_FULL ? full_block : causal_block, m);
    } else {
        atomic_store(&m->no_memory, true);
    }
    free(m->parts);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* ends[k]: rows k .. size - 1 of the chunk that begins at `first`. */
static void sum_ends(const mean_job *m, double *ends, size_t first, size_t size)
{
    const size_t width = m->width;
    memset(ends + size * width, 0, width * sizeof *ends);
    for (size_t k = size; k-- > 0;) {
        memcpy(ends + k * width, ends + (k + 1) * width, width * sizeof *ends);
        add_row(ends + k * width, m, first + k);
    }
}

static void window_chunk(const mean_job *m, size_t first, double *ends, double *own, double *sum)
{
    const size_t size = m->p->window, width = m->width;
    if (first) sum_ends(m, ends, first - size, size);
    memset(own, 0, width * sizeof *own);
    for (size_t i = first; i < end_of(m, first, size); i++) {
        add_row(own, m, i);
        memcpy(sum, own, width * sizeof *sum);
        if (first) {
            const size_t from = i + 1 - size; /* the oldest key */
            add_sum(sum, ends + (from - (first - size)) * width, width);
            add_sum(sum, m->sinks + (m->p->sinks < from ? m->p->sinks : from) * width, width);
        }
        put_row(m, i, sum);
    }
}

/* Chunks that are shorter than a unit of work are taken several at a time. */
static size_t chunks_of_unit(const mean_job *m)
{
    return m->p->window < BLOCK ? BLOCK / m->p->window : 1;
}

static void window_unit(void *ctx, size_t b)
{
    mean_job *const m = ctx;
    const size_t size = m->p->window, unit = chunks_of_unit(m) * size;
    double *const room = malloc((size + 3) * m->width * sizeof *room);
    if (!room) {
        atomic_store(&m->no_memory, true);
        return;
    }
    double *const own = room + (size + 1) * m->width;
    for (size_t first = b * unit; first < end_of(m, b * unit, unit); first += size)
        window_chunk(m, first, room, own, own + m->width);
    free(room);
}

static void mean_window(mean_job *m, const pare_exec *exec)
{
    const size_t n = m->x->rows, sinks = m->p->sinks < n ? m->p->sinks : n;
    const size_t unit = chunks_of_unit(m) * m->p->window;
    m->sinks = calloc((sinks + 1) * m->width, sizeof *m->sinks);
    for (size_t k = 0; m->sinks && k < sinks; k++) {
        double *const next = m->sinks + (k + 1) * m->width;
        memcpy(next, next - m->width, m->width * sizeof *next);
        add_row(next, m, k);
    }
    if (m->sinks)
        pare_parallel(exec, (n + unit - 1) / unit, window_unit, m);
    else
        atomic_store(&m->no_memory, true);
    free(m->sinks);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static void listed_row(const mean_job *m, size_t i, float *s)
{
    const sparse_rows x = {m->x->v, m->x->ld, m->x->cols};
    const uint32_t *const idx = m->g->idx + m->g->ptr[i];
    const size_t n = m->g->ptr[i + 1] - m->g->ptr[i];
    float *const y = m->y->v + i * m->y->ld;
    double sum = 0;
    if (n == 0) {
        memset(y, 0, m->y->cols * sizeof *y);
        return;
    }
    for (size_t j = 0; j < n; j++) sum += s[j] = m->w ? (float)m->w[idx[j]] : 1;
    m->kernel->values(y, s, &x, idx, n, (float)(1 / sum), 0);
}

static void listed_unit(void *ctx, size_t b)
{
    mean_job *const m = ctx;
    const size_t end = end_of(m, b * LISTS, LISTS);
    size_t most = 0;
    for (size_t i = b * LISTS; i < end; i++)
        if (m->g->ptr[i + 1] - m->g->ptr[i] > most) most = m->g->ptr[i + 1] - m->g->ptr[i];
    float *const s = malloc((most + SCORE_PAD) * sizeof *s);
    for (size_t i = b * LISTS; s && i < end; i++) listed_row(m, i, s);
    if (!s) atomic_store(&m->no_memory, true);
    free(s);
}

pare_status pare_mean_f32(pare_mat32 *y, const pare_mat32 *x, const double *w,
                          const pare_pattern *p, const pare_graph *g, const pare_exec *exec,
                          pare_err *err)
{
    PARE_ASSERT(y->rows == x->rows && y->cols == x->cols);
    const size_t n = x->rows;
    mean_job m = {.y = y, .x = x, .w = w, .p = p, .g = g, .width = x->cols + 1};
    pare_pattern pattern = *p;
    if (n == 0 || x->cols == 0) return PARE_OK;
    if (p->kind == PARE_WINDOW && p->window >= n) pattern.kind = PARE_CAUSAL;
    m.p = &pattern;
    if (pattern.kind == PARE_GRAPH) {
        sparse_kernel all[3];
        sparse_kernels(all);
        m.kernel = &all[0];
        pare_parallel(exec, (n + LISTS - 1) / LISTS, listed_unit, &m);
    } else if (pattern.kind == PARE_WINDOW) {
        mean_window(&m, exec);
    } else {
        mean_prefix(&m, exec);
    }
    return atomic_load(&m.no_memory) ? pare_no_memory(err) : PARE_OK;
}
