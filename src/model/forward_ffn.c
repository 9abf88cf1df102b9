/* Feed-forward branches: any depth, or gated. */
#include "forward_parts.h"

static void multiply_row(const void *ctx, double *v, const double *x)
{
    const size_t d = *(const size_t *)ctx;
    for (size_t j = 0; j < d; j++) v[j] *= x[j];
}

static pare_status gated(pass *p, rows *y, const rows *z, const pare_ffn *f)
{
    const pare_dense *const gate = &f->layers[0], *const up = &f->layers[1];
    rows g, u;
    pare_status st;
    if ((st = rows_new(&g, p->scratch, z->t, z->n, gate->w.rows, p->err)) ||
        (st = rows_new(&u, p->scratch, z->t, z->n, up->w.rows, p->err)) ||
        (st = rows_dense(&g, z, &gate->w, &gate->b, p->exec, p->err)) ||
        (st = rows_dense(&u, z, &up->w, &up->b, p->exec, p->err)) ||
        (st = rows_act(&g, f->act, p->exec, p->err)) ||
        (st = rows_map2(&g, &u, multiply_row, &g.d, p->exec, p->err)))
        return st;
    return rows_dense(y, &g, &f->layers[2].w, &f->layers[2].b, p->exec, p->err);
}

static pare_status mlp(pass *p, rows *y, const rows *z, const pare_ffn *f)
{
    rows x = *z;
    pare_status st;
    for (size_t l = 0; l + 1 < f->nlayers; l++) {
        rows h;
        if ((st = rows_new(&h, p->scratch, z->t, z->n, f->layers[l].w.rows, p->err)) ||
            (st = rows_dense(&h, &x, &f->layers[l].w, &f->layers[l].b, p->exec, p->err)) ||
            (st = rows_act(&h, f->act, p->exec, p->err)))
            return st;
        x = h;
    }
    const pare_dense *const last = &f->layers[f->nlayers - 1];
    return rows_dense(y, &x, &last->w, &last->b, p->exec, p->err);
}

pare_status ffn_branch(pass *p, rows *y, const rows *z, const pare_ffn *f)
{
    return f->kind == PARE_FFN_GATED ? gated(p, y, z, f) : mlp(p, y, z, f);
}
