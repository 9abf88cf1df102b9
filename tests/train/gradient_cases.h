/* gradient_cases.h - random losses on random models, and their slopes by differences. */
#ifndef TEST_GRADIENT_CASES_H
#define TEST_GRADIENT_CASES_H
#include <enclose_models.h>
#include "train/gradient.h"

/* loss = sum c y + sum over the streams of e stream: everything a loss may look at. */
typedef struct slope_case {
    pare_params *p;
    pare_tape *t;
    pare_input in;
    pare_mode mode;
    size_t ny;
    double *c;
    double **e; /* nblocks + 1, or NULL */
} slope_case;

static inline size_t stream_size(const slope_case *s, size_t b)
{
    return s->in.batch * s->in.tokens * pare_model_width(s->p->model, b);
}

static inline double *normals(pare_rng *r, size_t n)
{
    double *const v = malloc((n + 1) * sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < n; i++) v[i] = pare_rng_normal(r);
    return v;
}

/* Sum of c v, and of |c v|: what the rounding of a difference is measured against. */
static inline double weigh(const double *c, const double *v, size_t n, double *size)
{
    double s = 0;
    for (size_t i = 0; i < n; i++) {
        s += c[i] * v[i];
        *size += fabs(c[i] * v[i]);
    }
    return s;
}

static inline double loss_of(const slope_case *s, double *size)
{
    const void *y;
    pare_err err = {0};
    assert_ok(pare_tape_forward(s->t, &s->in, &s->mode, &y, &err), &err);
    *size = 0;
    double sum = weigh(s->c, y, s->ny, size);
    for (size_t b = 0; s->e && b <= s->p->model->nblocks; b++)
        sum += weigh(s->e[b], pare_tape_stream(s->t, b), stream_size(s, b), size);
    return sum;
}

static inline void open_case(slope_case *s, const pare_model *m, const pare_input *in,
                             const pare_mode *mode, uint64_t seed, bool streams)
{
    pare_rng r = pare_rng_at(seed, 79);
    pare_err err = {0};
    *s = (slope_case){.in = *in, .mode = *mode};
    assert_ok(pare_params_new(&s->p, m, PARE_F64, &err), &err);
    assert_ok(pare_tape_new(&s->t, s->p, NULL, &err), &err);
    s->ny = pare_output_rows(m, in) * pare_model_outputs(m);
    s->c = normals(&r, s->ny);
    if (!streams) return;
    s->e = calloc(m->nblocks + 1, sizeof *s->e);
    for (size_t b = 0; b <= m->nblocks; b++) s->e[b] = normals(&r, stream_size(s, b));
}

static inline void close_case(slope_case *s)
{
    for (size_t b = 0; s->e && b <= s->p->model->nblocks; b++) free(s->e[b]);
    free(s->e);
    free(s->c);
    pare_tape_free(s->t);
    pare_params_free(s->p);
}

static inline double *gradient_of(slope_case *s)
{
    double size, *const g = calloc(s->p->count + 1, sizeof *g);
    pare_err err = {0};
    (void)loss_of(s, &size);
    assert_ok(pare_tape_backward(s->t, s->c, (const void *const *)s->e, g, &err), &err);
    return g;
}

static inline double moved(const slope_case *s, double *v, const double *was, const double *way,
                           size_t n, double h, double *size)
{
    double z;
    for (size_t i = 0; i < n; i++) v[i] = was[i] + h * way[i];
    const double l = loss_of(s, &z);
    if (z > *size) *size = z;
    return l;
}

/* The slope along `way` in v[0..n), by differences of fourth order. Several steps are tried: a kink
 * of relu may lie within one of them, a narrow norm bends within another. A norm with a tiny eps
 * makes rounding 1e6 times larger: the 1e-10 of the loss's terms. */
static inline bool slope_agrees(const slope_case *s, double *v, const double *way, size_t n,
                                double want, double *got)
{
    static const double steps[] = {1e-4, 1e-5, 1e-3, 1e-6};
    double *const was = malloc((n + 1) * sizeof *was);
    bool ok = false;
    memcpy(was, v, n * sizeof *was);
    for (size_t k = 0; !ok && k < sizeof steps / sizeof *steps; k++) {
        const double h = steps[k];
        double size = 0;
        const double one = moved(s, v, was, way, n, h, &size) - moved(s, v, was, way, n, -h, &size);
        const double two =
            moved(s, v, was, way, n, 2 * h, &size) - moved(s, v, was, way, n, -2 * h, &size);
        *got = (8 * one - two) / (12 * h);
        ok = fabs(*got - want) <= 1e-6 * fmax(fabs(want), fabs(*got)) + 1e-10 * (1 + size);
    }
    memcpy(v, was, n * sizeof *was);
    free(was);
    return ok;
}

/* Every tensor: a random direction, and some single entries. */
static inline void check_slopes(slope_case *s, uint64_t seed, const char *what)
{
    pare_rng r = pare_rng_at(seed, 80);
    double *const g = gradient_of(s), *const values = s->p->values;
    for (size_t k = 0; k < s->p->nslots; k++) {
        const pare_slot *const slot = &s->p->slots[k];
        const size_t n = slot->rows * slot->cols;
        for (int trial = 0; trial < 3; trial++) {
            double *const way = normals(&r, n), want = 0, got = 0;
            const size_t one = (size_t)pare_rng_below(&r, n);
            for (size_t i = 0; i < n; i++) {
                if (trial > 0) way[i] = i == one;
                want += way[i] * g[slot->offset + i];
            }
            if (!slope_agrees(s, values + slot->offset, way, n, want, &got)) {
                print_error("seed %llu (%s) %s [%zu]: %.12g by the tape, %.12g by differences\n",
                            (unsigned long long)seed, what, slot->name, trial ? one : n, want, got);
                fail();
            }
            free(way);
        }
    }
    free(g);
}

static inline void least_eps(pare_norm *n)
{
    if (n->eps < 1e-3) n->eps = 1e-3;
}

/* A norm over two or three numbers that are nearly equal makes rounding 1 / sqrt(eps) times
 * larger, and the next one again: such slopes cannot be found by differences. */
static inline void tame(pare_model *m)
{
    least_eps(&m->stem.norm);
    least_eps(&m->top.norm);
    for (size_t b = 0; b < m->nblocks; b++) {
        least_eps(&m->blocks[b].attn.in_norm);
        least_eps(&m->blocks[b].attn.out_norm);
        least_eps(&m->blocks[b].ffn.in_norm);
        least_eps(&m->blocks[b].ffn.out_norm);
    }
}

/* More rows than a span, in the shape that suits the pattern; false: the model cannot take it. */
static inline bool many_rows(pare_model *m, pare_input *in, uint64_t seed)
{
    maker k = {.m = m, .r = pare_rng_at(seed, 81)};
    const bool graph = m->pattern.kind == PARE_GRAPH;
    *in = (pare_input){.batch = graph ? 1 : 15, .tokens = graph ? 200 : 14};
    if (graph && m->stem.pos.kind == PARE_POS_LEARNED) return false;
    if (graph) m->context = 0;
    const size_t n = in->batch * in->tokens;
    int64_t *const ids = make(&k, n, sizeof *ids);
    double *const x = make(&k, n * m->stem.width, sizeof *x);
    for (size_t i = 0; m->stem.ids && i < n; i++) ids[i] = (int64_t)pick(&k, m->stem.vocab);
    for (size_t i = 0; i < n * m->stem.width; i++) x[i] = pare_rng_normal(&k.r);
    in->width = m->stem.ids ? 0 : m->stem.width;
    in->ids = m->stem.ids ? ids : NULL;
    in->x = m->stem.ids ? NULL : x;
    if (!graph) return true;
    pare_graph *const g = make(&k, 1, sizeof *g);
    size_t *const ptr = make(&k, n + 1, sizeof *ptr);
    uint32_t *const idx = make(&k, n * n, sizeof *idx);
    for (size_t i = 0; i < n; i++) {
        ptr[i + 1] = ptr[i];
        for (size_t j = 0; i % 5 && j < n; j++)
            if (pick(&k, 40) == 0) idx[ptr[i + 1]++] = (uint32_t)j;
    }
    *g = (pare_graph){n, ptr, idx};
    in->graph = g;
    return true;
}
#endif
