/* mean.c - weighted means over the keys that a row sees: attention when all queries are equal.
 *
 *     y_i = sum_j w_j x_j / sum_j w_j        (w_j = 1: the plain mean)
 *
 * Nothing is ever subtracted from a sum, so weights of very different sizes do no harm. Where rows
 * see ranges, the sums are in f64 and linear in time: a running sum under the causal pattern; under
 * a window of m keys the rows are cut into chunks of m, and row i sees the end of the chunk before,
 * summed backwards, and the beginning of its own. Rows of a graph sum their lists, in f32. */
#include "sparse.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 256,     /* rows of one unit of work */
    GRAPH_BLOCK = 64 /* the same on a graph */
};

typedef struct mean_job {
    pare_mat32 *y;
    const pare_mat32 *x;
    const double *w;
    const pare_pattern *p;
    const pare_graph *g;
    const sparse_kernel *kernel;
    size_t width;       /* of a sum: the columns, then the weights */
    double *parts;      /* of each block of rows: its sum, then the sum of all blocks before it */
    const double *sums; /* full: of all rows */
    double *sinks;      /* window: [k] is the sum of the first k rows */
    atomic_bool no_memory;
} mean_job;

static void add_row(double *sum, const mean_job *m, size_t j)
{
    const float *const x = row_of(m->x, j);
    const double w = m->w ? m->w[j] : 1;
    const size_t d = m->x->cols;
    for (size_t c = 0; c < d; c++) sum[c] += w * (double)x[c];
    sum[d] += w;
}

static void add_sum(double *sum, const double *more, size_t width)
{
    for (size_t c = 0; c < width; c++) sum[c] += more[c];
}

static void write_row(const mean_job *m, size_t i, const double *sum)
{
    float *const y = row_of(m->y, i);
    const double by = sum[m->width - 1];
    for (size_t c = 0; c < m->y->cols; c++) y[c] = (float)(sum[c] / by);
}

static size_t end_of(const mean_job *m, size_t first, size_t rows)
{
    const size_t n = m->x->rows;
    return n - first < rows ? n : first + rows;
}

/* ---- full and causal ------------------------------------------------------------------------- */

static void sum_block(void *ctx, size_t b)
{
    const mean_job *const m = ctx;
    double *const sum = m->parts + b * m->width;
    memset(sum, 0, m->width * sizeof *sum);
    for (size_t j = b * BLOCK; j < end_of(m, b * BLOCK, BLOCK); j++) add_row(sum, m, j);
}

static void write_block(void *ctx, size_t b)
{
    const mean_job *const m = ctx;
    double *const running = m->parts + b * m->width; /* causal: before the block, then grows */
    for (size_t j = b * BLOCK; j < end_of(m, b * BLOCK, BLOCK); j++) {
        if (!m->sums) add_row(running, m, j);
        write_row(m, j, m->sums ? m->sums : running);
    }
}

/* ---- windows --------------------------------------------------------------------------------- */

/* Rows of one unit of work: a chunk, or several short ones. */
static size_t window_rows(const mean_job *m)
{
    return (m->p->window < BLOCK ? BLOCK / m->p->window : 1) * m->p->window;
}

static void window_unit(void *ctx, size_t b)
{
    mean_job *const m = ctx;
    const size_t size = m->p->window, width = m->width, rows = window_rows(m);
    double *const ends = malloc((size + 3) * width * sizeof *ends);
    if (!ends) {
        atomic_store(&m->no_memory, true);
        return;
    }
    double *const own = ends + (size + 1) * width, *const sum = own + width;
    for (size_t first = b * rows; first < end_of(m, b * rows, rows); first += size) {
        /* ends[k]: the sum of rows k .. size - 1 of the chunk before */
        if (first) memset(ends + size * width, 0, width * sizeof *ends);
        for (size_t k = first ? size : 0; k-- > 0;) {
            memcpy(ends + k * width, ends + (k + 1) * width, width * sizeof *ends);
            add_row(ends + k * width, m, first - size + k);
        }
        memset(own, 0, width * sizeof *own);
        for (size_t i = first; i < end_of(m, first, size); i++) {
            add_row(own, m, i);
            memcpy(sum, own, width * sizeof *sum);
            if (first) {
                const size_t from = i + 1 - size; /* the oldest key */
                add_sum(sum, ends + (from - (first - size)) * width, width);
                add_sum(sum, m->sinks + (m->p->sinks < from ? m->p->sinks : from) * width, width);
            }
            write_row(m, i, sum);
        }
    }
    free(ends);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static void graph_unit(void *ctx, size_t b)
{
    mean_job *const m = ctx;
    const sparse_rows x = rows_of(m->x);
    const size_t *const ptr = m->g->ptr;
    const size_t first = b * GRAPH_BLOCK, end = end_of(m, first, GRAPH_BLOCK);
    size_t longest = 0;
    for (size_t i = first; i < end; i++)
        if (ptr[i + 1] - ptr[i] > longest) longest = ptr[i + 1] - ptr[i];
    float *const s = malloc((longest + SCORE_PAD) * sizeof *s);
    if (!s) atomic_store(&m->no_memory, true);
    for (size_t i = first; s && i < end; i++) {
        const uint32_t *const idx = m->g->idx + ptr[i];
        const size_t n = ptr[i + 1] - ptr[i];
        double sum = 0;
        if (n == 0) {
            memset(row_of(m->y, i), 0, m->y->cols * sizeof(float));
            continue;
        }
        for (size_t j = 0; j < n; j++) sum += s[j] = m->w ? (float)m->w[idx[j]] : 1;
        m->kernel->values(row_of(m->y, i), s, &x, idx, n, (float)(1 / sum), 0);
    }
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
        sparse_kernel kernels[3];
        sparse_kernels(kernels);
        m.kernel = &kernels[0];
        pare_parallel(exec, (n + GRAPH_BLOCK - 1) / GRAPH_BLOCK, graph_unit, &m);
    } else if (pattern.kind == PARE_WINDOW) {
        const size_t sinks = pattern.sinks < n ? pattern.sinks : n, rows = window_rows(&m);
        m.sinks = calloc((sinks + 1) * m.width, sizeof *m.sinks);
        if (!m.sinks) return pare_no_memory(err);
        for (size_t k = 0; k < sinks; k++) {
            double *const next = m.sinks + (k + 1) * m.width;
            memcpy(next, next - m.width, m.width * sizeof *next);
            add_row(next, &m, k);
        }
        pare_parallel(exec, (n + rows - 1) / rows, window_unit, &m);
    } else {
        const size_t blocks = (n + BLOCK - 1) / BLOCK, width = m.width;
        m.parts = malloc((blocks + 1) * width * sizeof *m.parts);
        if (!m.parts) return pare_no_memory(err);
        pare_parallel(exec, blocks, sum_block, &m);
        /* parts[b] becomes the sum before block b; one more: the sum of all. */
        double *const all = m.parts + blocks * width;
        memset(all, 0, width * sizeof *all);
        for (size_t b = 0; b < blocks; b++)
            for (size_t c = 0; c < width; c++) {
                const double own = m.parts[b * width + c];
                m.parts[b * width + c] = all[c];
                all[c] += own;
            }
        if (pattern.kind == PARE_FULL) m.sums = all;
        pare_parallel(exec, blocks, write_block, &m);
    }
    free(m.sinks);
    free(m.parts);
    return atomic_load(&m.no_memory) ? pare_no_memory(err) : PARE_OK;
}
