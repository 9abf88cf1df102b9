/* Attention of the f32 engine, plainly: one query at a time over the keys it sees, for every
 * pattern alike. O(n) scratch per block of rows. (The tiled kernels will sit in its place.) */
#include <pare/attention.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 32, LANES = 8 };

typedef struct job {
    pare_mat32 y;
    const pare_mat32 *q, *k, *v;
    float scale;
    const pare_pattern *p;
    const pare_graph *g;
    atomic_bool no_memory;
} job;

/* Eight partial sums in a fixed order: what the compiler may turn into vectors without being
 * allowed to reorder anything itself. */
static float dot(const float *a, const float *b, size_t n)
{
    float part[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++) part[l] += a[i + l] * b[i + l];
    float s =
        ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
    for (; i < n; i++) s += a[i] * b[i];
    return s;
}

static const float *row(const pare_mat32 *m, size_t i)
{
    return m->v + i * m->ld;
}

static void attend_row(job *w, size_t i, const pare_keys *keys, float *s)
{
    float *const y = w->y.v + i * w->y.ld;
    memset(y, 0, w->y.cols * sizeof *y);
    if (keys->count == 0) return;
    float top = -INFINITY, sum = 0;
    for (size_t j = 0; j < keys->count; j++) {
        s[j] = w->scale * dot(row(w->q, i), row(w->k, pare_key(keys, j)), w->q->cols);
        if (s[j] > top) top = s[j];
    }
    for (size_t j = 0; j < keys->count; j++) sum += s[j] = expf(s[j] - top);
    for (size_t j = 0; j < keys->count; j++) {
        const float p = s[j] / sum;
        const float *const v = row(w->v, pare_key(keys, j));
        for (size_t c = 0; c < w->y.cols; c++) y[c] += p * v[c];
    }
}

static void block(void *ctx, size_t b)
{
    job *const w = ctx;
    const size_t n = w->q->rows, r0 = b * ROWS, r1 = n - r0 < ROWS ? n : r0 + ROWS;
    float *const s = malloc(n * sizeof *s);
    if (!s) {
        atomic_store(&w->no_memory, true);
        return;
    }
    for (size_t i = r0; i < r1; i++) {
        const pare_keys keys = pare_visible(w->p, w->g, n, i);
        attend_row(w, i, &keys, s);
    }
    free(s);
}

pare_status pare_attend_f32(pare_mat32 *y, const pare_mat32 *q, const pare_mat32 *k,
                            const pare_mat32 *v, float scale, const pare_pattern *p,
                            const pare_graph *g, const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(q->rows == k->rows && q->rows == v->rows && q->rows == y->rows);
    PARE_ASSERT(q->cols == k->cols && v->cols == y->cols);
    PARE_ASSERT(p->kind != PARE_GRAPH || (g && g->n == q->rows));
    job w = {.y = *y, .q = q, .k = k, .v = v, .scale = scale, .p = p, .g = g};
    pare_parallel(exec, (q->rows + ROWS - 1) / ROWS, block, &w);
    return atomic_load(&w.no_memory) ? pare_no_memory(err) : PARE_OK;
}
