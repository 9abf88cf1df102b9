/* pair_ops.c - what the weights of a pair can do to a distance: proven norms, made once.
 *
 * A computed product A B with inner dimension p is off by at most gamma_{p+2} |A|_F |B|_F in the
 * Frobenius norm E, hence by E in |.|_2 and in the largest |row|_2, by sqrt(columns) E in the
 * largest row sum, and by sqrt(rows columns) E in the bilinear norm of largest entries. */
#include "pair.h"
#include "prove.h"
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "model/model_equality.h"
#include "model/model_facts.h"
#include <string.h>

enum { SHARP = 256 /* beyond, |A B|_2 is bounded by |A|_2 |B|_2 and |A B|_F */ };

typedef struct maker { /* the first failure is kept */
    pare_arena *keep, *scratch;
    pare_status st;
    pare_err *err;
} maker;

static void *room(maker *k, size_t n, size_t size)
{
    void *const p = k->st ? NULL : pare_alloc(k->keep, n ? n : 1, size);
    if (!p && !k->st) k->st = pare_no_memory(k->err);
    return p;
}

static pare_mat matrix(maker *k, size_t rows, size_t cols)
{
    const pare_mat m = k->st ? (pare_mat){0} : pare_mat_new(k->scratch, rows, cols);
    if (!m.v && rows > 0 && cols > 0 && !k->st) k->st = pare_no_memory(k->err);
    return m;
}

static pare_weight as_weight(const pare_mat *m)
{
    PARE_ASSERT(m->ld == m->cols);
    return (pare_weight){PARE_F64, m->rows, m->cols, m->v};
}

/* ---- one matrix ----------------------------------------------------------------------------- */

static double spectral(maker *k, const pare_weight *w)
{
    pare_ub two = pare_ub_inf();
    if (k->st) return INFINITY;
    const pare_mark mark = pare_arena_mark(k->scratch);
    const pare_status st = pare_norm_spectral(&two, w, k->scratch, k->err);
    pare_arena_reset(k->scratch, mark);
    if (st == PARE_ERR_MEMORY) k->st = st;
    return up_min(st ? INFINITY : two.v, pare_norm_fro(w).v);
}

/* m is computed, and off by `off`; `known`: a bound on its |.|_2 that needs no work. */
static op op_of(maker *k, const pare_mat *m, double off, double known)
{
    if (k->st) return (op){0};
    const pare_weight w = as_weight(m);
    const bool sharp = m->rows <= SHARP && m->cols <= SHARP;
    const double two = sharp ? spectral(k, &w) : pare_norm_fro(&w).v;
    return (op){.out = m->rows,
                .two = up_min(known, up_add(two, off)),
                .max = up_fma(up_sqrt((double)m->cols), off, pare_norm_max_row(&w).v),
                .cross = up_add(pare_norm_max_row2(&w).v, off)};
}

static op op_stored(const pare_weight *w, const dense_norms *n)
{
    if (!pare_has(w)) return (op){0};
    return (op){w->rows, n->two, pare_norm_max_row(w).v, n->row2};
}

static op op_skip(const pare_skip *s, const dense_norms *n, size_t din)
{
    switch (s->kind) {
    case PARE_SKIP_NONE:
        break;
    case PARE_SKIP_IDENTITY:
        return op_identity(din);
    case PARE_SKIP_DIAGONAL: {
        const double most = pare_norm_max(&s->w).v;
        return (op){din, most, most, most};
    }
    case PARE_SKIP_DENSE:
        return op_stored(&s->w, n);
    }
    return (op){0};
}

static unit_norms units_of(maker *k, const pare_weight *w)
{
    const size_t n = pare_has(w) ? w->rows : 0;
    unit_norms u = {room(k, n, sizeof *u.two), room(k, n, sizeof *u.one)};
    for (size_t i = 0; !k->st && i < n; i++) {
        const pare_weight row = weight_rows(w, i, 1);
        u.two[i] = pare_norm_max_row2(&row).v;
        u.one[i] = pare_norm_max_row(&row).v;
    }
    return u;
}

/* ---- heads ---------------------------------------------------------------------------------- */

bool attn_reads(const pare_attn *at)
{
    return at->kind != PARE_ATTN_ZERO && at->kind != PARE_ATTN_CONST;
}

bool attn_has_heads(const pare_attn *at)
{
    return pare_attn_has_softmax(at->kind) || at->kind == PARE_ATTN_POOL;
}

pare_status head_matrix(pare_mat *out, pare_arena *a, const pare_attn *at, size_t h, char which,
                        pare_err *err)
{
    const pare_head *const d = &at->heads[h];
    const pare_weight *const w = which == 'q' ? &at->wq : which == 'k' ? &at->wk : &at->wv;
    const size_t from = which == 'q' ? d->q : which == 'k' ? d->k : d->v;
    const bool pool = at->kind == PARE_ATTN_POOL, o = which == 'o';
    *out = pare_mat_new(a, o ? at->dout : which == 'v' ? d->dv : d->dk, o ? d->dv : at->din);
    if (!out->v) return out->rows > 0 && out->cols > 0 ? pare_no_memory(err) : PARE_OK;
    if (!o && pare_has(w))
        pare_weight_widen(out, w, from, 0);
    else if (o && (pool || pare_has(&at->wo)))
        pare_weight_widen(out, pool ? &at->matrix : &at->wo, 0, (pool ? at->din : 0) + d->o);
    else
        for (size_t k = 0; o && k < d->dv; k++) pare_row_mut(out, d->o + k)[k] = 1;
    return PARE_OK;
}

static pare_mat of_head(maker *k, const pare_attn *at, size_t h, char which)
{
    pare_mat m = {0};
    if (!k->st) k->st = head_matrix(&m, k->scratch, at, h, which, k->err);
    return m;
}

static double fro_of(const pare_mat *m)
{
    const pare_weight w = as_weight(m);
    return w.rows && w.cols ? pare_norm_fro(&w).v : 0;
}

/* |scale| |Wq^T Wk| in both norms. */
static void query_key(maker *k, head_ops *o, const pare_mat *q, const pare_mat *key, double scale)
{
    const double size = (double)q->cols;
    pare_mat b = matrix(k, q->cols, q->cols);
    if (k->st) return;
    pare_gemm(&b, 1, q, true, key, false, 0);
    const double off = up_mul(gamma_of(q->rows + 2, PARE_UNIT_F64), up_mul(o->fq, o->fk));
    const op all = op_of(k, &b, off, up_mul(o->q2, o->k2));
    const pare_weight w = as_weight(&b);
    double sum = 0; /* of all |entries|: the rows' one by one */
    for (size_t i = 0; i < w.rows; i++) {
        const pare_weight row = weight_rows(&w, i, 1);
        sum = up_add(sum, pare_norm_max_row(&row).v);
    }
    o->qk2 = up_mul(fabs(scale), all.two);
    o->qk1 = up_mul(fabs(scale), up_min(up_fma(size, off, sum), up_mul(size, all.two)));
}

/* Norms of head h; e1 += Wo Wv, and *off what that is off by. */
static head_ops head_ops_of(maker *k, const pare_attn *at, size_t h, pare_mat *e1, double *off)
{
    const pare_mark mark = pare_arena_mark(k->scratch);
    const pare_mat q = of_head(k, at, h, 'q'), key = of_head(k, at, h, 'k');
    const pare_mat v = of_head(k, at, h, 'v'), o = of_head(k, at, h, 'o');
    pare_mat ov = matrix(k, at->dout, at->din);
    head_ops n = {0};
    if (k->st) return n;
    n.fq = fro_of(&q), n.fk = fro_of(&key), n.fv = fro_of(&v), n.fo = fro_of(&o);
    const pare_weight wq = as_weight(&q), wk = as_weight(&key), wv = as_weight(&v),
                      wo = as_weight(&o);
    n.q2 = spectral(k, &wq), n.k2 = spectral(k, &wk);
    query_key(k, &n, &q, &key, at->heads[h].scale);
    if (k->st) return n;
    pare_gemm(&ov, 1, &o, false, &v, false, 0);
    const double fov = up_mul(n.fo, n.fv);
    const double product = up_mul(gamma_of(v.rows + 2, PARE_UNIT_F64), fov);
    n.v = op_of(k, &ov, product, up_mul(spectral(k, &wo), spectral(k, &wv)));
    for (size_t i = 0; i < ov.rows * ov.cols; i++) e1->v[i] += ov.v[i];
    /* each sum over the heads so far is rounded once */
    *off = up_add(*off, up_add(product, up_mul(0x1p-52, fro_of(e1))));
    pare_arena_reset(k->scratch, mark);
    return n;
}

/* ---- branches ------------------------------------------------------------------------------- */

typedef struct mixes { /* E_0, E_1, ... as computed */
    size_t powers;
    pare_mat *e;
    double *off;
} mixes;

static size_t powers_of(const pare_attn *at)
{
    switch (at->kind) {
    case PARE_ATTN_NONE:
    case PARE_ATTN_ZERO:
    case PARE_ATTN_CONST:
        return 0;
    case PARE_ATTN_LINEAR:
        return 1;
    case PARE_ATTN_UMIX:
        return at->dout ? at->mix.rows / at->dout : 0;
    case PARE_ATTN_EXACT:
    case PARE_ATTN_POLY:
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_MEANQ:
    case PARE_ATTN_POOL:
    case PARE_ATTN_UNIFORM:
    case PARE_ATTN_AFFMIX:
        break;
    }
    return 2;
}

static void fill_mixes(mixes *m, const pare_attn *at)
{
    const bool matrix0 =
        at->kind == PARE_ATTN_LINEAR || at->kind == PARE_ATTN_AFFMIX || at->kind == PARE_ATTN_POOL;
    if (matrix0) pare_weight_widen(&m->e[0], &at->matrix, 0, 0);
    if (at->kind == PARE_ATTN_UNIFORM || at->kind == PARE_ATTN_AFFMIX)
        pare_weight_widen(&m->e[1], &at->mix, 0, 0);
    for (size_t j = 0; at->kind == PARE_ATTN_UMIX && j < m->powers; j++)
        pare_weight_widen(&m->e[j], &at->mix, j * at->dout, 0);
}

static mixes mixes_of(maker *k, branch_ops *b, const pare_attn *at)
{
    mixes m = {.powers = powers_of(at)};
    m.e = k->st ? NULL : pare_alloc(k->scratch, m.powers + 1, sizeof *m.e);
    m.off = k->st ? NULL : pare_alloc(k->scratch, m.powers + 1, sizeof *m.off);
    if ((!m.e || !m.off) && !k->st) k->st = pare_no_memory(k->err);
    for (size_t j = 0; !k->st && j < m.powers; j++) m.e[j] = matrix(k, at->dout, at->din);
    if (k->st) return m;
    fill_mixes(&m, at);
    if (attn_has_heads(at)) {
        b->heads = room(k, at->nheads, sizeof *b->heads);
        for (size_t h = 0; !k->st && h < at->nheads; h++)
            b->heads[h] = head_ops_of(k, at, h, &m.e[1], &m.off[1]);
    }
    b->powers = m.powers;
    b->e = room(k, m.powers, sizeof *b->e);
    for (size_t j = 0; !k->st && j < m.powers; j++) b->e[j] = op_of(k, &m.e[j], m.off[j], INFINITY);
    return m;
}

/* The norms of E^f_j - E^g_j. */
static void mixes_apart(maker *k, attn_ops *o, const mixes *f, const mixes *g, const pare_attn *at)
{
    o->powers = f->powers > g->powers ? f->powers : g->powers;
    o->apart = room(k, o->powers, sizeof *o->apart);
    for (size_t j = 0; !k->st && j < o->powers; j++) {
        pare_mat d = matrix(k, at->dout, at->din);
        double off = 0;
        if (k->st) return;
        for (size_t i = 0; i < d.rows * d.cols; i++)
            d.v[i] = (j < f->powers ? f->e[j].v[i] : 0) - (j < g->powers ? g->e[j].v[i] : 0);
        if (j < f->powers) off = up_add(off, f->off[j]);
        if (j < g->powers) off = up_add(off, g->off[j]);
        off = up_fma(0x1p-52, fro_of(&d), off);
        o->apart[j] = op_of(k, &d, off, INFINITY);
    }
}

/* ---- what is the same ----------------------------------------------------------------------- */

static bool values_equal(const pare_attn *a, const pare_attn *b)
{
    if (a->nheads != b->nheads || !pare_same_weight(&a->wv, &b->wv) ||
        !pare_same_weight(&a->wo, &b->wo))
        return false;
    for (size_t h = 0; h < a->nheads; h++) {
        const pare_head *const x = &a->heads[h], *const y = &b->heads[h];
        if (x->dv != y->dv || x->v != y->v || x->o != y->o) return false;
    }
    return true;
}

static bool softmax_kind(const pare_attn *at)
{
    return attn_has_heads(at) && at->kind != PARE_ATTN_POOL;
}

static bool scores_equal(const pare_attn *a, const pare_attn *b)
{
    const bool exact = pare_attn_is_softmax(a->kind) && pare_attn_is_softmax(b->kind);
    if (a->kind != b->kind && !exact) return false;
    if (!pare_same_weight(&a->wq, &b->wq) || !pare_same_weight(&a->bq, &b->bq) ||
        !pare_same_weight(&a->wk, &b->wk) || !pare_same_weight(&a->bk, &b->bk) ||
        !pare_same_weight(&a->freqs, &b->freqs))
        return false;
    for (size_t h = 0; h < a->nheads; h++) {
        const pare_head *const x = &a->heads[h], *const y = &b->heads[h];
        if (x->dk != y->dk || x->q != y->q || x->k != y->k || x->scale != y->scale ||
            x->freq != y->freq || x->planes != y->planes)
            return false;
    }
    return true;
}

/* The same function of the normed rows. */
static bool branches_equal(const pare_attn *a, const pare_attn *b)
{
    if (!pare_same_weight(&a->bo, &b->bo) || !pare_same_weight(&a->bv, &b->bv)) return false;
    if (softmax_kind(a) && softmax_kind(b)) return values_equal(a, b) && scores_equal(a, b);
    if (a->kind != b->kind) return false;
    if (!pare_same_weight(&a->matrix, &b->matrix) || !pare_same_weight(&a->mix, &b->mix))
        return false;
    return a->kind != PARE_ATTN_POOL || (values_equal(a, b) && scores_equal(a, b));
}

const char *pair_refuses(const pare_model *f, const pare_model *g)
{
    if (f->nblocks != g->nblocks) return "the models have different numbers of blocks";
    const char *const ends = pare_model_ends_differ(f, g);
    if (ends) return ends;
    for (size_t b = 0; b < f->nblocks; b++) {
        const pare_attn *const x = &f->blocks[b].attn, *const y = &g->blocks[b].attn;
        if (!pare_same_ffn(&f->blocks[b].ffn, &g->blocks[b].ffn))
            return "the models differ in a feed-forward part";
        if (x->kind == PARE_ATTN_NONE && y->kind == PARE_ATTN_NONE) continue;
        if (x->kind == PARE_ATTN_NONE || y->kind == PARE_ATTN_NONE)
            return "only one of the models has an attention in some block";
        const bool both = attn_reads(x) && attn_reads(y);
        if (x->din != y->din || x->dout != y->dout ||
            (both && !pare_same_norm(&x->in_norm, &y->in_norm)) ||
            !pare_same_norm(&x->out_norm, &y->out_norm) || !pare_same_skip(&x->skip, &y->skip))
            return "the models differ in a norm or a skip";
    }
    return NULL;
}

/* ---- together ------------------------------------------------------------------------------- */

static void attention(maker *k, attn_ops *o, const pare_attn *f, const pare_attn *g,
                      const attn_norms *n)
{
    if (f->kind == PARE_ATTN_NONE) return;
    const pare_mark mark = pare_arena_mark(k->scratch);
    o->same = branches_equal(f, g);
    o->paired = softmax_kind(f) && softmax_kind(g) && values_equal(f, g);
    o->scored = o->paired && scores_equal(f, g);
    const mixes ef = mixes_of(k, &o->b[0], f);
    if (o->same) {
        o->b[1] = o->b[0];
    } else {
        const mixes eg = mixes_of(k, &o->b[1], g);
        mixes_apart(k, o, &ef, &eg, f);
    }
    o->skip = op_skip(&f->skip, &n->skip, f->din);
    pare_arena_reset(k->scratch, mark);
}

static void hidden(maker *k, ffn_ops *o, const pare_ffn *f, const ffn_norms *n)
{
    if (f->kind == PARE_FFN_NONE) return;
    o->layers = room(k, f->nlayers, sizeof *o->layers);
    o->units = room(k, f->nlayers, sizeof *o->units);
    for (size_t l = 0; !k->st && l < f->nlayers; l++) {
        o->layers[l] = op_stored(&f->layers[l].w, &n->layers[l]);
        o->units[l] = units_of(k, &f->layers[l].w);
    }
    o->skip = op_skip(&f->skip, &n->skip, f->din);
}

static void whole(maker *k, pair_ops *o, const pare_model *f, const pare_model *g,
                  const pare_model_norms *n)
{
    o->map = op_stored(&f->embedding.map.w, &n->map);
    o->dense = op_stored(&f->head.dense.w, &n->dense);
    o->dense_units = units_of(k, &f->head.dense.w);
    o->out = op_stored(pare_head_weight(f), &n->out);
    o->out_units = units_of(k, pare_head_weight(f));
    if (pare_has(pare_head_weight(f)) && o->out.out <= SHARP)
        o->out.two = up_min(o->out.two, spectral(k, pare_head_weight(f)));
    o->attn = room(k, f->nblocks, sizeof *o->attn);
    o->ffn = room(k, f->nblocks, sizeof *o->ffn);
    for (size_t b = 0; !k->st && b < f->nblocks; b++) {
        attention(k, &o->attn[b], &f->blocks[b].attn, &g->blocks[b].attn, &n->attn[b]);
        hidden(k, &o->ffn[b], &f->blocks[b].ffn, &n->ffn[b]);
    }
}

pare_status pair_ops_new(pair_ops **out, pare_arena *a, const pare_model *f, const pare_model *g,
                         const pare_model_norms *norms, pare_err *err)
{
    maker k = {.keep = a, .scratch = pare_arena_new(), .err = err};
    if (!k.scratch) return pare_no_memory(err);
    *out = room(&k, 1, sizeof **out);
    if (!k.st) whole(&k, *out, f, g, norms);
    pare_arena_free(k.scratch);
    return k.st;
}
