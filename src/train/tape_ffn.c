/* tape_ffn.c - feed-forward branches: MLPs of any depth, and gated ones.
 *
 * Hidden rows are saved before and after the activation: its derivative needs the first, the
 * gradient of the next matrix the second (after dropout). */
#include "tape.h"

/* y = down(dropout(act(gate z) * up z)) */
static void gated(pare_tape *t, sublayer *s, rows *y)
{
    const pare_dense *const l = s->ffn->layers;
    ffn_saved *const k = &s->ffn_saved;
    const act_step step = {s->ffn->act, &k->pre[0], &k->pre[1], k->dropout};
    k->post[0] = tape_new_rows(t, s->z.n, l[0].w.rows);
    k->dropout[0] = tape_dropout_draw(t, s->z.n, l[0].w.rows, s->block, DROPOUT_LAYER);
    k->pre[0] = tape_dense(t, &s->z, &l[0].w, &l[0].b);
    k->pre[1] = tape_dense(t, &s->z, &l[1].w, &l[1].b);
    tape_act(t, &step, &k->post[0]);
    tape_dense_into(t, y, &k->post[0], &l[2].w, &l[2].b);
}

static void gated_backward(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *dy)
{
    const pare_dense *const l = s->ffn->layers;
    const ffn_saved *const k = &s->ffn_saved;
    const act_step step = {s->ffn->act, &k->pre[0], &k->pre[1], k->dropout};
    rows dup = tape_new_rows(t, dy->n, l[0].w.rows);
    rows dgate = tape_dense_backward(t, dy, &k->post[0], &l[2].w, &l[2].b);
    tape_act_backward(t, &step, &dgate, &dup);
    tape_dense_backward_into(t, dz, add, &dgate, &s->z, &l[0].w, &l[0].b);
    tape_dense_backward_into(t, dz, true, &dup, &s->z, &l[1].w, &l[1].b);
}

static void mlp(pare_tape *t, sublayer *s, rows *y)
{
    const pare_ffn *const f = s->ffn;
    ffn_saved *const k = &s->ffn_saved;
    const size_t n = s->z.n, hidden = f->nlayers - 1;
    const rows *x = &s->z;
    for (size_t l = 0; l < hidden; l++) {
        const size_t d = f->layers[l].w.rows;
        const act_step step = {f->act, &k->pre[l], NULL, &k->dropout[l]};
        k->pre[l] = k->post[l] = tape_new_rows(t, n, d);
        /* relu's output tells where its derivative is 0, and dropout leaves 0 where no gradient
         * passes: one array serves for before and after. */
        if (f->act != PARE_ACT_RELU) k->post[l] = tape_new_rows(t, n, d);
        k->dropout[l] = tape_dropout_draw(t, n, d, s->block, DROPOUT_LAYER + l);
        tape_dense_into(t, &k->pre[l], x, &f->layers[l].w, &f->layers[l].b);
        tape_act(t, &step, &k->post[l]);
        x = &k->post[l];
    }
    tape_dense_into(t, y, x, &f->layers[hidden].w, &f->layers[hidden].b);
}

static void mlp_backward(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *dy)
{
    const pare_dense *const layer = s->ffn->layers;
    const ffn_saved *const k = &s->ffn_saved;
    rows d = *dy;
    for (size_t l = s->ffn->nlayers - 1; l > 0; l--) {
        const act_step step = {s->ffn->act, &k->pre[l - 1], NULL, &k->dropout[l - 1]};
        d = tape_dense_backward(t, &d, &k->post[l - 1], &layer[l].w, &layer[l].b);
        tape_act_backward(t, &step, &d, NULL);
    }
    tape_dense_backward_into(t, dz, add, &d, &s->z, &layer[0].w, &layer[0].b);
}

void tape_ffn(pare_tape *t, sublayer *s, rows *y)
{
    if (s->ffn->kind == PARE_FFN_GATED)
        gated(t, s, y);
    else
        mlp(t, s, y);
}

void tape_ffn_backward(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *dy)
{
    if (s->ffn->kind == PARE_FFN_GATED)
        gated_backward(t, s, dz, add, dy);
    else
        mlp_backward(t, s, dz, add, dy);
}
