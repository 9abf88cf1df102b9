/* lm_project.c - a sublayer in new coordinates: x ~ U x^ where it reads, x^ = W^T x where it writes
 * (lm.h). With orthonormal U = W of full width nothing changes: |x| = |x^|. */
#include "lm.h"

size_t lm_dim(const lm_basis *b)
{
    return b->read.cols;
}

const pare_mat *lm_write_basis(const lm_basis *b)
{
    return b->write.v ? &b->write : &b->read;
}

/* |U x^ + o|^2 = |x^ + U^T o|^2 + |o|^2 - |U^T o|^2: what of an offset lies outside goes to the
 * shift. */
lm_norm lm_project_norm(pare_work *w, const lm_norm *n, const lm_basis *b)
{
    lm_norm out = *n;
    if (!n->offset) return out;
    out.offset = mat_vec(w, &b->read, true, n->offset, NULL);
    if (w->st) return out;
    double outside = 0;
    for (size_t i = 0; i < b->read.rows; i++) outside += n->offset[i] * n->offset[i];
    for (size_t i = 0; i < b->read.cols; i++) outside -= out.offset[i] * out.offset[i];
    if (outside > 0) out.shift += outside;
    return out;
}

static lm_skip projected_skip(pare_work *w, const lm_skip *s, const lm_basis *in,
                              const lm_basis *out)
{
    lm_skip to = *s;
    const bool same = in->read.v == out->read.v && in->write.v == out->write.v;
    if (s->kind == PARE_SKIP_NONE || (s->kind == PARE_SKIP_IDENTITY && same)) return to;
    to.kind = PARE_SKIP_DENSE;
    const pare_mat read =
        s->kind == PARE_SKIP_DENSE ? mat_mul(w, &s->w, false, &in->read, false) : in->read;
    to.w = mat_mul(w, lm_write_basis(out), true, &read, false);
    return to;
}

lm_attn lm_project_attn(pare_work *w, const lm_attn *a, const lm_basis *in, const lm_basis *out)
{
    lm_attn to = *a;
    to.din = lm_dim(in);
    to.dout = lm_dim(out);
    if (!a->present || w->st) return to;
    to.heads = pare_work_alloc(w, a->nheads, sizeof *to.heads);
    to.keys = pare_work_alloc(w, a->nkeys, sizeof *to.keys);
    for (size_t i = 0; !w->st && i < a->nkeys; i++) {
        to.keys[i] = a->keys[i];
        to.keys[i].wk = mat_mul(w, &a->keys[i].wk, false, &in->read, false);
        to.keys[i].wv = mat_mul(w, &a->keys[i].wv, false, &in->read, false);
    }
    for (size_t i = 0; !w->st && i < a->nheads; i++) {
        to.heads[i] = a->heads[i];
        to.heads[i].wq = mat_mul(w, &a->heads[i].wq, false, &in->read, false);
        to.heads[i].wo = mat_mul(w, lm_write_basis(out), true, &a->heads[i].wo, false);
    }
    to.bo = mat_vec(w, lm_write_basis(out), true, a->bo, NULL);
    to.in = lm_project_norm(w, &a->in, in);
    to.out = lm_project_norm(w, &a->out, out);
    to.skip = projected_skip(w, &a->skip, in, out);
    return to;
}

lm_ffn lm_project_ffn(pare_work *w, const lm_ffn *f, const lm_basis *in, const lm_basis *out)
{
    lm_ffn to = *f;
    to.din = lm_dim(in);
    to.dout = lm_dim(out);
    if (!f->present || w->st) return to;
    to.w1 = mat_mul(w, &f->w1, false, &in->read, false);
    if (f->gated) to.w3 = mat_mul(w, &f->w3, false, &in->read, false);
    to.w2 = mat_mul(w, lm_write_basis(out), true, &f->w2, false);
    to.b2 = mat_vec(w, lm_write_basis(out), true, f->b2, NULL);
    to.in = lm_project_norm(w, &f->in, in);
    to.out = lm_project_norm(w, &f->out, out);
    to.skip = projected_skip(w, &f->skip, in, out);
    return to;
}
