/* Feed-forward branches: any depth, or gated.
 *
 * A layer's hidden rows are kept before and after the activation: the slope needs the first, the
 * gradient of the next matrix the second (with what dropout left of it). */
#include "tape.h"

/* ---- gated: down( drop( act(gate z) up z ) ) --------------------------------------------------
 */

static pare_status gated(pare_tape *t, sublayer *s, rows *y)
{
    const pare_dense *const l = s->ffn->layers;
    ffn_saved *const k = &s->ffn_saved;
    const size_t n = s->z.n, hidden = l[0].w.rows;
    const act_step w = {s->ffn->act, &k->pre[0], &k->pre[1], k->drop};
    pare_status st;
    if ((st = tape_new_rows(t, &k->pre[0], n, hidden)) ||
        (st = tape_new_rows(t, &k->pre[1], n, hidden)) ||
        (st = tape_new_rows(t, &k->post[0], n, hidden)) ||
        (st = tape_dropout_draw(t, k->drop, n, hidden, s->block, DROPOUT_LAYER)) ||
        (st = tape_dense(t, &k->pre[0], &s->z, &l[0].w, &l[0].b)) ||
        (st = tape_dense(t, &k->pre[1], &s->z, &l[1].w, &l[1].b)) ||
        (st = tape_act(t, &w, &k->post[0])))
        return st;
    return tape_dense(t, y, &k->post[0], &l[2].w, &l[2].b);
}

static pare_status gated_back(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *dy)
{
    const pare_dense *const l = s->ffn->layers;
    const ffn_saved *const k = &s->ffn_saved;
    rows dgate, dup;
    const act_step w = {s->ffn->act, &k->pre[0], &k->pre[1], k->drop};
    pare_status st;
    if ((st = tape_new_rows(t, &dgate, dy->n, l[0].w.rows)) ||
        (st = tape_new_rows(t, &dup, dy->n, l[0].w.rows)) ||
        (st = tape_dense_backward(t, &dgate, false, dy, &k->post[0], &l[2].w, &l[2].b)) ||
        (st = tape_act_backward(t, &w, &dgate, &dup)) ||
        (st = tape_dense_backward(t, dz, add, &dgate, &s->z, &l[0].w, &l[0].b)))
        return st;
    return tape_dense_backward(t, dz, true, &dup, &s->z, &l[1].w, &l[1].b);
}

/* ---- mlp ------------------------------------------------------------------------------------- */

/* relu tells from what it left where its slope is 0, and dropout leaves 0 where nothing goes back:
 * one array serves for before and after. */
static pare_status new_hidden(pare_tape *t, sublayer *s, size_t l, size_t n, size_t d)
{
    ffn_saved *const k = &s->ffn_saved;
    const pare_status st = tape_new_rows(t, &k->pre[l], n, d);
    k->post[l] = k->pre[l];
    return st || s->ffn->act == PARE_ACT_RELU ? st : tape_new_rows(t, &k->post[l], n, d);
}

static pare_status mlp(pare_tape *t, sublayer *s, rows *y)
{
    const pare_ffn *const f = s->ffn;
    ffn_saved *const k = &s->ffn_saved;
    const size_t n = s->z.n, hidden = f->nlayers - 1;
    const rows *x = &s->z;
    pare_status st;
    for (size_t l = 0; l < hidden; l++) {
        const size_t d = f->layers[l].w.rows;
        const act_step w = {f->act, &k->pre[l], NULL, &k->drop[l]};
        if ((st = new_hidden(t, s, l, n, d)) ||
            (st = tape_dropout_draw(t, &k->drop[l], n, d, s->block, DROPOUT_LAYER + l)) ||
            (st = tape_dense(t, &k->pre[l], x, &f->layers[l].w, &f->layers[l].b)) ||
            (st = tape_act(t, &w, &k->post[l])))
            return st;
        x = &k->post[l];
    }
    return tape_dense(t, y, x, &f->layers[hidden].w, &f->layers[hidden].b);
}

static pare_status mlp_back(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *dy)
{
    const pare_ffn *const f = s->ffn;
    const ffn_saved *const k = &s->ffn_saved;
    rows d = *dy, below;
    pare_status st;
    for (size_t l = f->nlayers - 1; l > 0; l--) {
        const pare_dense *const layer = &f->layers[l];
        const act_step w = {f->act, &k->pre[l - 1], NULL, &k->drop[l - 1]};
        if ((st = tape_new_rows(t, &below, d.n, layer->w.cols)) ||
            (st = tape_dense_backward(t, &below, false, &d, &k->post[l - 1], &layer->w,
                                      &layer->b)) ||
            (st = tape_act_backward(t, &w, &below, NULL)))
            return st;
        d = below;
    }
    return tape_dense_backward(t, dz, add, &d, &s->z, &f->layers[0].w, &f->layers[0].b);
}

pare_status tape_ffn(pare_tape *t, sublayer *s, rows *y)
{
    return s->ffn->kind == PARE_FFN_GATED ? gated(t, s, y) : mlp(t, s, y);
}

pare_status tape_ffn_backward(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *dy)
{
    return s->ffn->kind == PARE_FFN_GATED ? gated_back(t, s, dz, add, dy)
                                          : mlp_back(t, s, dz, add, dy);
}
