/* lm_count.c - how many parameters a cut would store, from shapes alone, so that a share of the
 * parameters can be requested before anything is cut (lm.h). */
#include "base/support.h"
#include "lm.h"

void lm_shape_attn(lm_shape *f, const lm_attn *a)
{
    f->attn = a->present;
    f->skip[0] = a->skip.kind;
    if (!a->present) return;
    f->nheads = a->nheads;
    f->nkeys = a->nkeys;
    for (size_t i = 0; i < a->nheads; i++) {
        const lm_head *const h = &a->heads[i];
        f->q += h->wq.rows;
        f->o += h->wo.cols;
        f->bq = f->bq || !all_zero(h->bq, h->wq.rows);
    }
    for (size_t i = 0; i < a->nkeys; i++) {
        const lm_keys *const k = &a->keys[i];
        f->k += k->wk.rows;
        f->v += k->wv.rows;
        f->dk = pare_max_size(f->dk, k->wk.rows);
        f->dv = pare_max_size(f->dv, k->wv.rows);
        f->freqs = pare_max_size(f->freqs, k->planes);
        f->planes += k->planes;
        f->bk = f->bk || !all_zero(k->bk, k->wk.rows);
        f->bv = f->bv || !all_zero(k->bv, k->wv.rows);
    }
    f->bo = !all_zero(a->bo, a->dout);
    f->offset[0] = a->in.offset;
    f->offset[1] = a->out.offset;
}

lm_shape *lm_shapes(pare_work *w, const lm *m)
{
    lm_shape *const shapes = pare_work_alloc(w, m->m->nblocks, sizeof *shapes);
    for (size_t b = 0; !w->st && b < m->m->nblocks; b++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const lm_block k = lm_read(w, m, b);
        const lm_ffn *const n = &k.ffn;
        lm_shape *const f = &shapes[b];
        if (w->st) break;
        lm_shape_attn(f, &k.attn);
        f->ffn = n->present;
        f->skip[1] = n->skip.kind;
        if (n->present) {
            f->gated = n->gated;
            f->units = n->w1.rows;
            f->b1 = !all_zero(n->b1, n->w1.rows);
            f->b3 = n->gated && !all_zero(n->b3, n->w1.rows);
            f->b2 = !all_zero(n->b2, n->dout);
            f->offset[2] = n->in.offset;
            f->offset[3] = n->out.offset;
        }
        pare_arena_reset(w->arena, mark);
    }
    return shapes;
}

/* `requested` 0: as it is. */
static size_t cut_to(size_t have, size_t requested)
{
    return requested ? pare_min_size(have, requested) : have;
}

/* A skip between two widths; between bases of their own an identity becomes a matrix. */
static size_t skip_size(pare_skip_kind k, size_t in, size_t out, bool own)
{
    if (k == PARE_SKIP_DENSE || (k == PARE_SKIP_IDENTITY && own)) return in * out;
    return k == PARE_SKIP_DIAGONAL ? in : 0;
}

static size_t norm_size(const pare_norm *n)
{
    const pare_weight *const all[] = {&n->gain, &n->bias, &n->offset, &n->mean, &n->var};
    size_t sum = 0;
    for (size_t i = 0; i < 5; i++)
        if (pare_has(all[i])) sum += all[i]->cols;
    return sum;
}

static size_t attention_size(const lm_shape *f, const lm_sizes *s, size_t in, size_t out)
{
    if (!f->attn) return 0;
    /* Heads of one layer have one size in every model seen; ragged ones are counted from above. */
    const size_t q = s->qk ? pare_min_size(f->q, f->nheads * s->qk) : f->q;
    const size_t k = s->qk ? pare_min_size(f->k, f->nkeys * s->qk) : f->k;
    const size_t v = s->v ? pare_min_size(f->v, f->nkeys * s->v) : f->v;
    const size_t o = s->v ? pare_min_size(f->o, f->nheads * s->v) : f->o;
    const size_t freqs =
        s->qk && s->qk < f->dk ? f->nkeys * pare_min_size(f->freqs, s->qk / 2) : f->freqs;
    return (q + k + v) * in + out * o + (f->bq ? q : 0) + (f->bk ? k : 0) + (f->bv ? v : 0) +
           (f->bo ? out : 0) + (f->offset[0] ? in : 0) + (f->offset[1] ? out : 0) + freqs +
           skip_size(f->skip[0], in, out, s->own && s->dim);
}

static size_t ffn_size(const lm_shape *f, const lm_sizes *s, size_t in, size_t out)
{
    if (!f->ffn) return 0;
    const size_t u = cut_to(f->units, s->ffn);
    return u * in * (f->gated ? 2 : 1) + out * u + (f->b1 ? u : 0) + (f->b3 ? u : 0) +
           (f->b2 ? out : 0) + (f->offset[2] ? in : 0) + (f->offset[3] ? out : 0) +
           skip_size(f->skip[1], in, out, s->own && s->dim);
}

static size_t weight_size(const pare_weight *v)
{
    return pare_has(v) ? v->rows * v->cols : 0;
}

static size_t dense_size(const pare_dense *d)
{
    return weight_size(&d->w) + weight_size(&d->b);
}

/* As lm_write_ends makes them. */
static size_t ends_size(const lm *m, const lm_sizes *s)
{
    const pare_embedding *const st = &m->m->embedding;
    const pare_output_head *const t = &m->m->head;
    const bool mapped = pare_has(&st->map.w), learned = st->pos.kind == PARE_POS_LEARNED;
    const bool behind = lm_foldable(st), tied = t->tied && !s->untie && !pare_has(&t->dense.w);
    const bool shift =
        !m->head_input.plain && !all_zero(m->head_input.shift, m->width[m->nplaces - 1]);
    const size_t d = cut_to(m->width[0], s->dim), l = cut_to(m->width[m->nplaces - 1], s->dim);
    const bool narrow = tied && st->ids && !mapped && behind;
    const size_t e = narrow ? d + (m->centered && d < m->width[0]) : st->width;
    const bool own_map = !st->ids || !behind || (tied && (mapped || m->centered));
    size_t n = learned ? st->pos.table.rows * (behind ? d : st->width) : 0;
    n += st->ids ? st->vocab * (tied || !behind ? e : d) : 0;
    n += own_map ? d * e + (weight_size(&st->map.b) ? d : 0) : 0;
    if (pare_has(&t->dense.w))
        return n + t->dense.w.rows * (l + 1) + weight_size(&t->out.w) + weight_size(&t->out.b) +
               (t->tied ? weight_size(&st->table) : 0);
    if (tied)
        return n + (m->head_input.plain && !s->own && !m->centered ? 0 : e * l + (shift ? e : 0)) +
               weight_size(&t->out.b);
    const size_t outs = pare_model_outputs(m->m);
    return n + outs * l + (shift || pare_has(&t->out.b) ? outs : 0);
}

size_t lm_count(const lm *m, const lm_shape *f, const lm_sizes *s)
{
    const pare_embedding *const st = &m->m->embedding;
    const pare_output_head *const t = &m->m->head;
    size_t n = 0;
    if (m->stream)
        n = ends_size(m, s);
    else
        n = weight_size(&st->table) + weight_size(&st->pos.table) + dense_size(&st->map) +
            norm_size(&st->norm) + norm_size(&t->norm) + dense_size(&t->dense) +
            dense_size(&t->out);
    for (size_t b = 0; b < m->m->nblocks; b++) {
        const pare_block *const k = &m->m->blocks[b];
        const size_t in = cut_to(m->width[2 * b], s->dim),
                     mid = cut_to(m->width[2 * b + 1], s->dim);
        n += attention_size(&f[b], s, in, mid);
        n += ffn_size(&f[b], s, mid, cut_to(m->width[2 * b + 2], s->dim));
        if (m->stream) continue;
        n += norm_size(&k->attn.in_norm) + norm_size(&k->attn.out_norm) +
             norm_size(&k->ffn.in_norm) + norm_size(&k->ffn.out_norm);
    }
    return n;
}
