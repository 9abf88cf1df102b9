/* lm_read.c - from a model to the one form that cuts use (lm.h): gains and biases of norms move
 * into the maps behind them, the mean subtraction into the maps before them. */
#include "attention/attend.h"
#include "linalg/matrix.h"
#include "lm.h"
#include <math.h>
#include <string.h>

/* ---- which models can be cut ---------------------------------------------------------------- */

/* Heads share keys and values whole or not at all. */
static void check_heads(pare_work *w, size_t b, const pare_attn *a)
{
    for (size_t i = 0; i < a->nheads; i++)
        for (size_t k = 0; k < i; k++) {
            const pare_head *const x = &a->heads[i], *const y = &a->heads[k];
            const bool same = x->k == y->k && x->v == y->v && x->dk == y->dk && x->dv == y->dv &&
                              x->planes == y->planes && (!x->planes || x->freq == y->freq);
            const bool apart = (x->k + x->dk <= y->k || y->k + y->dk <= x->k) &&
                               (x->v + x->dv <= y->v || y->v + y->dv <= x->v);
            const bool own = x->q + x->dk <= y->q || y->q + y->dk <= x->q;
            if (!own || (!same && !apart))
                refuse_model(w, "attention", b, "heads that share a part of their keys or values");
        }
}

bool lm_divides(const pare_norm *n)
{
    return n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS;
}

/* What reads the stream through norm n, where `after` stands between the stream and its reader. */
static void check_reader(pare_work *w, const lm *m, const char *where, size_t b, const pare_norm *n,
                         const lm_affine *after)
{
    if (n->kind != PARE_NORM_NONE && !after->plain)
        refuse_model(w, where, b, "a norm reads what another norm's gain has scaled");
    if (m->centered && n->kind != PARE_NORM_LAYER && n->kind != PARE_NORM_MEAN)
        refuse_model(w, where, b,
                     "it reads the mean, which layer norms elsewhere take away: the stream "
                     "cannot be cut");
}

/* What writes to the stream through norm `out`, beside skip s. */
static void check_writer(pare_work *w, const lm *m, const char *where, size_t b, const pare_skip *s,
                         const pare_norm *out)
{
    if (m->centered && out->kind == PARE_NORM_RMS && pare_has(&out->offset))
        refuse_model(w, where, b,
                     "a norm with an offset beside layer norms: the stream cannot be cut");
    if (m->centered && s->kind != PARE_SKIP_IDENTITY && s->kind != PARE_SKIP_NONE)
        refuse_model(w, where, b,
                     "a skip with weights beside layer norms: the stream cannot be cut");
}

/* Whether a layer norm stands before some sublayer or the head. */
static bool has_pre_layer_norm(const pare_model *m)
{
    bool any = m->head.norm.kind == PARE_NORM_LAYER;
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        const pare_ffn *const f = &m->blocks[b].ffn;
        any |= a->kind != PARE_ATTN_NONE && a->in_norm.kind == PARE_NORM_LAYER;
        any |= f->kind != PARE_FFN_NONE && f->in_norm.kind == PARE_NORM_LAYER;
    }
    return any;
}

/* ---- norms in two parts: what divides, and what is affine ------------------------------------ */

void lm_subtract_mean(double *v, size_t d)
{
    double mean = 0;
    for (size_t i = 0; i < d; i++) mean += v[i];
    mean /= (double)d;
    for (size_t i = 0; i < d; i++) v[i] -= mean;
}

static lm_norm divisor_of(pare_work *w, const lm *m, const pare_norm *n, size_t d)
{
    if (!m->stream) return (lm_norm){.present = n->kind != PARE_NORM_NONE, .raw = n};
    if (!lm_divides(n)) return (lm_norm){0};
    lm_norm out = {.present = true, .eps = n->eps, .divisor = n->divisor, .shift = n->shift};
    if (pare_has(&n->offset)) {
        out.offset = read_vector(w, &n->offset, 0, d);
        if (!w->st && n->kind == PARE_NORM_LAYER) lm_subtract_mean(out.offset, d);
    }
    return out;
}

/* The affine part of a norm, behind the division: scale (C x) + shift. */
static lm_affine affine_of(pare_work *w, const lm *m, const pare_norm *n, size_t d)
{
    lm_affine f = {.center = n->kind == PARE_NORM_MEAN};
    if (n->kind == PARE_NORM_NONE || !m->stream) return (lm_affine){.plain = true};
    f.scale = vec_zeros(w, d);
    f.shift = read_vector(w, &n->bias, 0, d);
    if (w->st) return f;
    for (size_t i = 0; i < d; i++) {
        f.scale[i] = pare_has(&n->gain) ? pare_weight_at(&n->gain, i) : 1;
        if (n->kind != PARE_NORM_BATCH) continue;
        f.scale[i] /= sqrt(pare_weight_at(&n->var, i) + n->eps);
        f.shift[i] -= pare_weight_at(&n->mean, i) * f.scale[i];
    }
    if (n->kind == PARE_NORM_MEAN && pare_has(&n->offset)) {
        double *const o = read_vector(w, &n->offset, 0, d);
        if (w->st) return f;
        lm_subtract_mean(o, d);
        for (size_t i = 0; i < d; i++) f.shift[i] += f.scale[i] * o[i];
    }
    /* A norm without gain and bias only divides. */
    f.plain = !f.center;
    for (size_t i = 0; f.plain && i < d; i++) f.plain = f.scale[i] == 1 && f.shift[i] == 0;
    return f;
}

/* ---- the whole model ------------------------------------------------------------------------ */

/* Widths of all points, and what stands between each and its readers. */
static void read_points(pare_work *w, lm *m)
{
    const pare_model *const p = m->m;
    size_t d = pare_model_width(p, 0);
    m->width[0] = d;
    m->after[0] = affine_of(w, m, &p->embedding.norm, d);
    for (size_t b = 0; !w->st && b < p->nblocks; b++) {
        const pare_block *const k = &p->blocks[b];
        m->after[2 * b + 1] = m->after[2 * b];
        if (k->attn.kind != PARE_ATTN_NONE) {
            d = k->attn.dout;
            m->after[2 * b + 1] = affine_of(w, m, &k->attn.out_norm, d);
        }
        m->width[2 * b + 1] = d;
        m->after[2 * b + 2] = m->after[2 * b + 1];
        if (k->ffn.kind != PARE_FFN_NONE) {
            d = k->ffn.dout;
            m->after[2 * b + 2] = affine_of(w, m, &k->ffn.out_norm, d);
        }
        m->width[2 * b + 2] = d;
    }
}

/* Whether every reader and writer of the stream can be folded. */
static void check_stream(pare_work *w, const lm *m)
{
    const pare_model *const p = m->m;
    for (size_t b = 0; !w->st && b < p->nblocks; b++) {
        const pare_attn *const a = &p->blocks[b].attn;
        const pare_ffn *const f = &p->blocks[b].ffn;
        if (a->kind != PARE_ATTN_NONE) {
            check_reader(w, m, "attention", b, &a->in_norm, &m->after[2 * b]);
            check_writer(w, m, "attention", b, &a->skip, &a->out_norm);
        }
        if (f->kind != PARE_FFN_NONE) {
            check_reader(w, m, "feed-forward", b, &f->in_norm, &m->after[2 * b + 1]);
            check_writer(w, m, "feed-forward", b, &f->skip, &f->out_norm);
        }
    }
    check_reader(w, m, "head", SIZE_MAX, &p->head.norm, &m->after[m->nplaces - 1]);
    if (p->head.pool == PARE_POOL_MAX)
        refuse_model(w, "head", SIZE_MAX,
                     "it pools by the largest entry over the tokens (max): the stream cannot be "
                     "cut");
    if (p->embedding.pos.kind == PARE_POS_SINUSOIDAL && p->embedding.pos.after_map)
        refuse_model(w, "positions", SIZE_MAX, "sines that are added behind the input map");
}

lm lm_open(pare_work *w, const pare_model *p, bool stream)
{
    lm m = {.m = p, .stream = stream, .nplaces = 2 * p->nblocks + 1};
    if (w->st) return m;
    if (p->nblocks == 0) refuse_model(w, "model", SIZE_MAX, "it has no blocks");
    for (size_t b = 0; b < p->nblocks; b++) {
        const pare_attn *const a = &p->blocks[b].attn;
        const pare_ffn *const f = &p->blocks[b].ffn;
        char text[64];
        if (a->kind != PARE_ATTN_NONE && a->kind != PARE_ATTN_EXACT) {
            snprintf(text, sizeof text, "attention of kind %s", pare_attn_name(a->kind));
            refuse_model(w, "attention", b, text);
        }
        if (a->kind == PARE_ATTN_EXACT) check_heads(w, b, a);
        if (f->kind == PARE_FFN_MLP && f->nlayers != 2) {
            snprintf(text, sizeof text, "%s of %zu maps", pare_ffn_name(f->kind), f->nlayers);
            refuse_model(w, "feed-forward", b, text);
        }
    }
    m.centered = stream && has_pre_layer_norm(p);
    m.merges = pare_never_empty(&p->pattern);
    m.interleaved = p->embedding.pos.interleaved;
    m.width = pare_work_alloc(w, m.nplaces, sizeof *m.width);
    m.after = pare_work_alloc(w, m.nplaces, sizeof *m.after);
    if (w->st) return m;
    read_points(w, &m);
    if (!w->st && stream) check_stream(w, &m);
    if (w->st) return m;
    const size_t last = m.width[m.nplaces - 1];
    m.embedding_norm = divisor_of(w, &m, &p->embedding.norm, m.width[0]);
    m.head_norm = divisor_of(w, &m, &p->head.norm, last);
    m.head_input = p->head.norm.kind == PARE_NORM_NONE ? m.after[m.nplaces - 1]
                                                       : affine_of(w, &m, &p->head.norm, last);
    return m;
}

/* ---- readers and writers -------------------------------------------------------------------- */

void lm_fold_in(pare_work *w, pare_mat *m, double *b, const lm_affine *f)
{
    if (w->st || f->plain) return;
    for (size_t i = 0; i < m->rows; i++) {
        double *const row = pare_row_mut(m, i);
        for (size_t j = 0; j < m->cols; j++) {
            if (b) b[i] += row[j] * f->shift[j];
            row[j] *= f->scale[j];
        }
        if (f->center) lm_subtract_mean(row, m->cols);
    }
}

/* C m: every column loses its mean. */
void lm_center_columns(pare_work *w, pare_mat *m)
{
    for (size_t j = 0; !w->st && j < m->cols; j++) {
        double mean = 0;
        for (size_t i = 0; i < m->rows; i++) mean += pare_row(m, i)[j];
        mean /= (double)m->rows;
        for (size_t i = 0; i < m->rows; i++) pare_row_mut(m, i)[j] -= mean;
    }
}

/* How one sublayer reads the stream and writes to it. */
typedef struct ends {
    lm_affine reads;     /* what the maps read */
    const lm_affine *at; /* what the skip reads */
    bool center;         /* what is written loses its mean */
} ends;

static ends ends_of(pare_work *w, const lm *m, const lm_affine *at, const pare_norm *in,
                    const pare_norm *out, size_t din)
{
    ends e = {.at = at};
    e.reads = in->kind == PARE_NORM_NONE ? *at : affine_of(w, m, in, din);
    e.center = m->stream && (m->centered || out->kind == PARE_NORM_LAYER);
    return e;
}

/* The skip in the coordinates of lm.h; its constant part goes to b. */
static lm_skip skip_of(pare_work *w, const lm *m, const pare_skip *s, const ends *e, size_t din,
                       double *b)
{
    lm_skip out = {.kind = s->kind};
    const bool same = e->at->plain && (!e->center || m->centered);
    if (s->kind == PARE_SKIP_NONE || (s->kind == PARE_SKIP_IDENTITY && same)) return out;
    out.kind = PARE_SKIP_DENSE;
    out.w = read_skip(w, s, din);
    lm_fold_in(w, &out.w, b, e->at);
    if (e->center) lm_center_columns(w, &out.w);
    return out;
}

/* ---- attention ------------------------------------------------------------------------------ */

static lm_keys read_keys(pare_work *w, const pare_attn *a, const pare_head *h, const ends *e)
{
    lm_keys k = {.wk = read_matrix_part(w, &a->wk, h->k, 0, h->dk, a->din),
                 .wv = read_matrix_part(w, &a->wv, h->v, 0, h->dv, a->din),
                 .bk = read_vector(w, &a->bk, h->k, h->dk),
                 .bv = read_vector(w, &a->bv, h->v, h->dv),
                 .planes = h->planes};
    k.freqs = read_vector(w, &a->freqs, h->freq, h->planes);
    lm_fold_in(w, &k.wk, k.bk, &e->reads);
    lm_fold_in(w, &k.wv, k.bv, &e->reads);
    /* A constant on a key without rotary position shifts all scores of a query equally. */
    for (size_t i = 2 * h->planes; !w->st && i < h->dk; i++) k.bk[i] = 0;
    return k;
}

static void read_heads(pare_work *w, lm_attn *out, const pare_attn *a, const ends *e)
{
    size_t *const group = pare_work_alloc(w, a->nheads, sizeof *group);
    out->heads = pare_work_alloc(w, a->nheads, sizeof *out->heads);
    out->keys = pare_work_alloc(w, a->nheads, sizeof *out->keys);
    for (size_t i = 0; !w->st && i < a->nheads; i++) {
        const pare_head *const h = &a->heads[i];
        size_t owner = 0; /* the first head that names the same keys */
        while (a->heads[owner].k != h->k) owner++;
        if (owner == i) {
            group[i] = out->nkeys++;
            out->keys[group[i]] = read_keys(w, a, h, e);
        }
        lm_head q = {.keys = group[owner],
                     .wq = read_matrix_part(w, &a->wq, h->q, 0, h->dk, a->din),
                     .wo = read_wo(w, a, h),
                     .bq = read_vector(w, &a->bq, h->q, h->dk),
                     .scale = h->scale};
        lm_fold_in(w, &q.wq, q.bq, &e->reads);
        if (e->center) lm_center_columns(w, &q.wo);
        out->heads[i] = q;
    }
}

void lm_merge_value_biases(pare_work *w, lm_attn *a)
{
    for (size_t i = 0; !w->st && i < a->nheads; i++)
        a->bo = mat_vec(w, &a->heads[i].wo, false, a->keys[a->heads[i].keys].bv, a->bo);
    for (size_t k = 0; !w->st && k < a->nkeys; k++)
        memset(a->keys[k].bv, 0, a->keys[k].wv.rows * sizeof *a->keys[k].bv);
}

lm_attn lm_read_attn(pare_work *w, const lm *m, size_t b)
{
    const pare_attn *const a = &m->m->blocks[b].attn;
    lm_attn out = {.din = m->width[2 * b], .dout = m->width[2 * b + 1]};
    if (a->kind == PARE_ATTN_NONE) return out;
    const ends e = ends_of(w, m, &m->after[2 * b], &a->in_norm, &a->out_norm, a->din);
    out.present = true;
    out.nheads = a->nheads;
    out.bo = read_vector(w, &a->bo, 0, a->dout);
    out.skip = skip_of(w, m, &a->skip, &e, a->din, out.bo);
    if (!w->st && e.center) lm_subtract_mean(out.bo, a->dout);
    read_heads(w, &out, a, &e);
    if (m->merges) lm_merge_value_biases(w, &out);
    out.in = divisor_of(w, m, &a->in_norm, a->din);
    out.out = divisor_of(w, m, &a->out_norm, a->dout);
    return out;
}

/* ---- feed-forward --------------------------------------------------------------------------- */

lm_ffn lm_read_ffn(pare_work *w, const lm *m, size_t b)
{
    const pare_ffn *const f = &m->m->blocks[b].ffn;
    lm_ffn out = {.din = m->width[2 * b + 1], .dout = m->width[2 * b + 2]};
    if (f->kind == PARE_FFN_NONE) return out;
    const ends e = ends_of(w, m, &m->after[2 * b + 1], &f->in_norm, &f->out_norm, f->din);
    const pare_dense *const down = &f->layers[f->nlayers - 1];
    const size_t units = f->layers[0].w.rows;
    out.present = true;
    out.act = f->act;
    out.gated = f->kind == PARE_FFN_GATED;
    out.w1 = read_matrix(w, &f->layers[0].w);
    out.b1 = read_vector(w, &f->layers[0].b, 0, units);
    lm_fold_in(w, &out.w1, out.b1, &e.reads);
    out.b3 = read_vector(w, &f->layers[1].b, 0, out.gated ? units : 0);
    if (out.gated) {
        out.w3 = read_matrix(w, &f->layers[1].w);
        lm_fold_in(w, &out.w3, out.b3, &e.reads);
    }
    out.w2 = read_matrix(w, &down->w);
    out.b2 = read_vector(w, &down->b, 0, f->dout);
    out.skip = skip_of(w, m, &f->skip, &e, f->din, out.b2);
    if (e.center) lm_center_columns(w, &out.w2);
    if (!w->st && e.center) lm_subtract_mean(out.b2, f->dout);
    out.in = divisor_of(w, m, &f->in_norm, f->din);
    out.out = divisor_of(w, m, &f->out_norm, f->dout);
    return out;
}

lm_block lm_read(pare_work *w, const lm *m, size_t b)
{
    lm_block k = {.attn = lm_read_attn(w, m, b)};
    k.ffn = lm_read_ffn(w, m, b);
    return k;
}

lm_norm lm_reading_norm(pare_work *w, const lm *m, size_t p)
{
    for (size_t i = p; i + 1 < m->nplaces; i++) {
        const pare_block *const k = &m->m->blocks[i / 2];
        if (i % 2 == 0 && k->attn.kind != PARE_ATTN_NONE)
            return divisor_of(w, m, &k->attn.in_norm, m->width[p]);
        if (i % 2 == 1 && k->ffn.kind != PARE_FFN_NONE)
            return divisor_of(w, m, &k->ffn.in_norm, m->width[p]);
    }
    return m->head_norm;
}
