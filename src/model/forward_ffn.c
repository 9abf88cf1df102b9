/* Feed-forward branches: any depth, or gated. */
#include "forward_parts.h"

static pare_status gated(const pass *p, rows *y, const rows *z, const pare_ffn *f)
{
    const pare_dense *const gate = &f->layers[0], *const up = &f->layers[1];
    const rows_ctx *const c = &p->ctx;
    rows g, u;
    pare_status st;
    if ((st = rows_new(&g, c, z->t, z->n, gate->w.rows)) ||
        (st = rows_new(&u, c, z->t, z->n, up->w.rows)) ||
        (st = rows_dense(&g, z, &gate->w, &gate->b, c)) ||
        (st = rows_dense(&u, z, &up->w, &up->b, c)) || (st = rows_act(&g, &u, f->act, c)))
        return st;
    return rows_dense(y, &g, &f->layers[2].w, &f->layers[2].b, c);
}

static pare_status mlp(const pass *p, rows *y, const rows *z, const pare_ffn *f)
{
    const rows_ctx *const c = &p->ctx;
    rows x = *z;
    pare_status st;
    for (size_t l = 0; l + 1 < f->nlayers; l++) {
        rows h;
        if ((st = rows_new(&h, c, z->t, z->n, f->layers[l].w.rows)) ||
            (st = rows_dense(&h, &x, &f->layers[l].w, &f->layers[l].b, c)) ||
            (st = rows_act(&h, NULL, f->act, c)))
            return st;
        x = h;
    }
    const pare_dense *const last = &f->layers[f->nlayers - 1];
    return rows_dense(y, &x, &last->w, &last->b, c);
}

pare_status ffn_branch(const pass *p, rows *y, const rows *z, const pare_ffn *f)
{
    return f->kind == PARE_FFN_GATED ? gated(p, y, z, f) : mlp(p, y, z, f);
}
