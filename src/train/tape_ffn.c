/* tape_ffn.c - feed-forward branches: MLPs of any depth, and gated ones.
 *
 * Hidden rows are saved before and after the activation: its derivative needs the first, the
 * gradient of the next matrix the second (after dropout). */
#include "tape.h"

void tape_ffn(pare_tape *t, sublayer *s, rows *y)
{
    const pare_dense *const layer = s->ffn->layers;
    const bool gated = s->ffn->kind == PARE_FFN_GATED; /* y = down(dropout(act(gate z) * up z)) */
    const size_t n = s->z.n, last = s->ffn->nlayers - 1, hidden = gated ? 1 : last;
    ffn_saved *const k = &s->ffn_saved;
    const rows *x = &s->z;
    for (size_t l = 0; l < hidden; l++) {
        const size_t d = layer[l].w.rows;
        const act_step step = {s->ffn->act, &k->pre[l], gated ? &k->pre[1] : NULL, &k->dropout[l]};
        k->pre[l] = k->post[l] = tape_new_rows(t, n, d);
        /* relu's output tells where its derivative is 0, and dropout leaves 0 where no gradient
         * passes: one array serves for before and after. */
        if (gated || s->ffn->act != PARE_ACT_RELU) k->post[l] = tape_new_rows(t, n, d);
        k->dropout[l] = tape_dropout_draw(t, n, d, s->block, DROPOUT_LAYER + l);
        tape_dense_into(t, &k->pre[l], x, &layer[l].w, &layer[l].b);
        if (gated) k->pre[1] = tape_dense(t, x, &layer[1].w, &layer[1].b);
        tape_act(t, &step, &k->post[l]);
        x = &k->post[l];
    }
    tape_dense_into(t, y, x, &layer[last].w, &layer[last].b);
}

void tape_ffn_backward(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *dy)
{
    const pare_dense *const layer = s->ffn->layers;
    const ffn_saved *const k = &s->ffn_saved;
    rows d = *dy;
    if (s->ffn->kind == PARE_FFN_GATED) {
        const act_step step = {s->ffn->act, &k->pre[0], &k->pre[1], k->dropout};
        rows dup = tape_new_rows(t, dy->n, layer[0].w.rows);
        d = tape_dense_backward(t, dy, &k->post[0], &layer[2].w, &layer[2].b);
        tape_act_backward(t, &step, &d, &dup);
        tape_dense_backward_into(t, dz, add, &d, &s->z, &layer[0].w, &layer[0].b);
        tape_dense_backward_into(t, dz, true, &dup, &s->z, &layer[1].w, &layer[1].b);
        return;
    }
    for (size_t l = s->ffn->nlayers - 1; l > 0; l--) {
        const act_step step = {s->ffn->act, &k->pre[l - 1], NULL, &k->dropout[l - 1]};
        d = tape_dense_backward(t, &d, &k->post[l - 1], &layer[l].w, &layer[l].b);
        tape_act_backward(t, &step, &d, NULL);
    }
    tape_dense_backward_into(t, dz, add, &d, &s->z, &layer[0].w, &layer[0].b);
}
