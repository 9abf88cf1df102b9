/* width_nets.h - random nets and graphs, and the model of a net. */
#ifndef WIDTH_NETS_H
#define WIDTH_NETS_H
#include "linalg/matrix.h"
#include <pare_test.h>
#include "width/cuts.h"

typedef struct stage {
    pare_work w;
    pare_err err;
    pare_rng rng;
} stage;

static inline void stage_open(stage *s, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    s->w.arena = pare_arena_new();
    s->w.err = &s->err;
    s->rng = pare_rng_at(seed, 0);
    assert_non_null(s->w.arena);
}

static inline void stage_close(stage *s)
{
    pare_arena_free(s->w.arena);
}

#define assert_work(s) assert_ok((s)->w.st, &(s)->err)

static inline pare_mat rand_mat(stage *s, size_t rows, size_t cols, double sigma)
{
    pare_mat m = mat_zeros(&s->w, rows, cols);
    for (size_t i = 0; i < rows * cols; i++) m.v[i] = sigma * pare_rng_normal(&s->rng);
    return m;
}

static inline pare_mat rand_product(stage *s, size_t rows, size_t rank, size_t cols)
{
    const pare_mat a = rand_mat(s, rows, rank, 1), b = rand_mat(s, rank, cols, 1);
    return mat_mul(&s->w, &a, false, &b, false);
}

static inline double *rand_vec(stage *s, size_t n, double sigma)
{
    return rand_mat(s, 1, n, sigma).v;
}

/* Columns are orthonormal. */
static inline pare_mat rand_orthonormal(stage *s, size_t rows, size_t cols)
{
    const pare_mat a = rand_mat(s, rows, cols, 1);
    pare_mat q = mat_zeros(&s->w, rows, cols), r = mat_zeros(&s->w, cols, cols);
    assert_ok(pare_qr(&q, &r, &a, s->w.arena, &s->err), &s->err);
    return q;
}

/* deg random keys for each node but those of `alone` (ended by SIZE_MAX; may be NULL). */
static inline pare_graph rand_graph(stage *s, size_t n, size_t deg, const size_t *alone)
{
    size_t *const ptr = pare_work_alloc(&s->w, n + 1, sizeof *ptr);
    uint32_t *const idx = pare_work_alloc(&s->w, n * deg, sizeof *idx);
    for (size_t i = 0; i < n; i++) {
        size_t k = deg, at = ptr[i];
        for (const size_t *a = alone; a && *a != SIZE_MAX; a++)
            if (*a == i) k = 0;
        for (size_t j = 0, left = k; j < n && left > 0; j++)
            if (pare_rng_below(&s->rng, n - j) < left) {
                idx[at++] = (uint32_t)j;
                left--;
            }
        ptr[i + 1] = at;
    }
    return (pare_graph){n, ptr, idx};
}

typedef struct net_shape {
    size_t features, dim, layers, classes, heads, ffn;
    size_t lowrank; /* w1 has so many different directions; 0: all */
    bool residual;  /* encoder, skips, biases, head; else the plain net of Shirzad 2024 */
    double gain;
} net_shape;

static inline pare_mat rand_map(stage *s, size_t out, size_t in, double gain)
{
    return rand_mat(s, out, in, gain / sqrt((double)in));
}

static inline pare_mat rand_w1(stage *s, const net_shape *k)
{
    if (!k->lowrank) return rand_map(s, k->ffn, k->dim, k->gain);
    const pare_mat few = rand_map(s, k->lowrank, k->dim, k->gain);
    pare_mat w1 = mat_zeros(&s->w, k->ffn, k->dim);
    for (size_t f = 0; f < k->ffn; f++) {
        const double scale = fabs(k->gain * pare_rng_normal(&s->rng));
        const size_t r = (size_t)pare_rng_below(&s->rng, k->lowrank);
        for (size_t j = 0; j < k->dim; j++) pare_row_mut(&w1, f)[j] = scale * pare_row(&few, r)[j];
    }
    return w1;
}

static inline net_head rand_head(stage *s, const net_shape *k, size_t din)
{
    const size_t dh = k->dim / k->heads;
    net_head h = {.wq = rand_map(s, dh, din, k->gain),
                  .wk = rand_map(s, dh, din, k->gain),
                  .wv = rand_map(s, dh, din, k->gain),
                  .bq = rand_vec(s, dh, k->residual ? 0.1 : 0),
                  .bv = rand_vec(s, dh, k->residual ? 0.1 : 0),
                  .scale = 1 / sqrt((double)dh)};
    h.wo = k->heads == 1 ? mat_identity(&s->w, dh) : rand_map(s, k->dim, dh, k->gain);
    return h;
}

static inline pare_mat rand_skip(stage *s, size_t d)
{
    pare_mat r = mat_identity(&s->w, d);
    for (size_t i = 0; i < d; i++) pare_row_mut(&r, i)[i] = 0.5 + pare_rng_uniform(&s->rng);
    return r;
}

static inline net rand_net(stage *s, net_shape k)
{
    if (k.gain == 0) k.gain = 1;
    if (k.ffn == 0) k.ffn = k.dim;
    net n = {.nlayers = k.layers, .dtype = PARE_F64};
    size_t din = k.residual ? k.dim : k.features;
    n.layers = pare_work_alloc(&s->w, k.layers, sizeof *n.layers);
    n.we = k.residual ? rand_map(s, k.dim, k.features, 1) : mat_identity(&s->w, k.features);
    n.be = rand_vec(s, n.we.rows, k.residual ? 0.1 : 0);
    for (size_t i = 0; i < k.layers; i++, din = k.dim) {
        net_layer *const l = &n.layers[i];
        l->nheads = k.heads;
        l->act = PARE_ACT_RELU;
        l->heads = pare_work_alloc(&s->w, k.heads, sizeof *l->heads);
        for (size_t h = 0; h < k.heads; h++) l->heads[h] = rand_head(s, &k, din);
        l->w1 = rand_w1(s, &k);
        l->w2 = rand_map(s, k.dim, k.ffn, k.gain);
        l->b1 = rand_vec(s, k.ffn, k.residual && !k.lowrank ? 0.1 : 0);
        l->c1 = rand_vec(s, k.dim, k.residual ? 0.1 : 0);
        l->c2 = rand_vec(s, k.dim, k.residual ? 0.1 : 0);
        if (k.residual) l->r1 = rand_skip(s, k.dim);
        if (k.residual) l->r2 = rand_skip(s, k.dim);
    }
    n.wh = k.residual ? rand_map(s, k.classes, k.dim, 1) : mat_identity(&s->w, k.dim);
    n.bh = rand_vec(s, n.wh.rows, k.residual ? 1 : 0);
    return n;
}

/* A model of it over graphs without self loops; free with pare_model_free. */
static inline pare_model *model_of(stage *s, const net *n)
{
    char name[] = "test";
    const pare_model like = {
        .name = name, .pattern = {.kind = PARE_GRAPH}, .embedding = {.width = n->we.cols}};
    pare_model *m = NULL;
    assert_ok(net_write(&m, n, &like, &s->err), &s->err);
    return m;
}

static inline pare_input input_of(const pare_mat *x, const pare_graph *g)
{
    return (pare_input){.batch = 1, .tokens = x->rows, .width = x->cols, .x = x->v, .graph = g};
}

static inline pare_mat output_of(stage *s, const pare_model *m, const pare_input *in)
{
    pare_mat y = mat_zeros(&s->w, in->tokens, pare_model_outputs(m));
    assert_work(s);
    assert_ok(pare_forward_f64(y.v, m, in, NULL, NULL, &s->err), &s->err);
    return y;
}

static inline double mats_apart(const pare_mat *a, const pare_mat *b)
{
    double worst = 0;
    assert_true(a->rows == b->rows && a->cols == b->cols);
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) {
            const double off = fabs(pare_row(a, i)[j] - pare_row(b, i)[j]);
            if (!(off <= worst)) worst = off;
        }
    return worst;
}

/* Largest euclidean distance of rows. */
static inline double rows_apart(const pare_mat *a, const pare_mat *b)
{
    double worst = 0;
    for (size_t i = 0; i < a->rows; i++) {
        double sum = 0;
        for (size_t j = 0; j < a->cols; j++) sum += pow(pare_row(a, i)[j] - pare_row(b, i)[j], 2);
        worst = fmax(worst, sqrt(sum));
    }
    return worst;
}

/* Cuts a net on its data; free *cut with pare_model_free. Returns the largest change of an output
 * entry, and in *scale the largest entry. */
static inline double cut_moves(stage *s, pare_model **cut, pare_width_report *r, double *scale,
                               const net *n, const pare_mat *x, const pare_graph *g,
                               const pare_width_opts *o)
{
    pare_model *const m = model_of(s, n);
    pare_input in = input_of(x, g);
    const pare_inputs set = {1, &in};
    assert_ok(pare_width(cut, r, m, &set, o, NULL, &s->err), &s->err);
    const pare_mat before = output_of(s, m, &in), after = output_of(s, *cut, &in);
    if (scale) *scale = pare_mat_max_abs(&before);
    pare_model_free(m);
    return mats_apart(&before, &after);
}

/* ---- golden vectors of an independent numpy implementation ---- */

#define TINY "../shared/reference/width/fixtures/tiny.npz"

typedef struct tiny {
    pare_npz *z;
    pare_model *m;
    pare_graph graph;
    pare_mat x;
    pare_input in;
} tiny;

static inline pare_mat tiny_mat(stage *s, const tiny *t, const char *name)
{
    pare_array v;
    assert_ok(pare_npz_get(&v, t->z, name, &s->err), &s->err);
    const size_t rows = v.ndim > 1 ? v.shape[0] : 1, cols = pare_array_count(&v) / rows;
    pare_mat m = mat_zeros(&s->w, rows, cols);
    for (size_t i = 0; i < rows * cols; i++) m.v[i] = pare_array_f64(&v, i);
    return m;
}

static inline void tiny_open(stage *s, tiny *t)
{
    assert_ok(pare_npz_open(&t->z, s->w.arena, TINY, &s->err), &s->err);
    assert_ok(pare_model_load(&t->m, TINY, &s->err), &s->err);
    const pare_mat ptr = tiny_mat(s, t, "ptr"), idx = tiny_mat(s, t, "idx");
    t->x = tiny_mat(s, t, "X");
    size_t *const p = pare_work_alloc(&s->w, ptr.cols, sizeof *p);
    uint32_t *const i = pare_work_alloc(&s->w, idx.cols, sizeof *i);
    for (size_t k = 0; k < ptr.cols; k++) p[k] = (size_t)ptr.v[k];
    for (size_t k = 0; k < idx.cols; k++) i[k] = (uint32_t)idx.v[k];
    t->graph = (pare_graph){ptr.cols - 1, p, i};
    t->in = input_of(&t->x, &t->graph);
}

static inline void tiny_close(tiny *t)
{
    pare_model_free(t->m);
    pare_npz_close(t->z);
}
#endif
