/* cut_scores.c - the methods jl and qk: queries and keys in fewer dimensions, nothing else. Layer
 * by layer, each fitted on the stream that the layers before it, already cut, produce: a map that
 * suits the original stream may not suit the one it will meet. */
#include "cuts.h"
#include <math.h>

net cut_scores(pare_work *w, const net *n, const activations *p, const pare_width_opts *o,
               cut_record *r)
{
    net out = net_shallow(w, n);
    pare_mat h = p->h[0];
    for (size_t i = 0; !w->st && i < r->npoints; i++) {
        const size_t width = i % 2 ? p->z[i / 2].cols : p->h[i / 2].cols;
        record_point(r, i, width, width, NAN);
    }
    for (size_t i = 0; !w->st && i < r->nhidden; i++)
        r->hidden[i] = (pare_width_hidden){i, p->p[i].cols, p->p[i].cols, 1, NAN, NAN};
    for (size_t i = 0, head = 0; !w->st && i < n->nlayers; i++) {
        net_layer *const l = &out.layers[i];
        for (size_t k = 0; !w->st && k < l->nheads; k++, head++) {
            pare_width_head *const note = &r->heads[head];
            net_head *const hd = &l->heads[k];
            *note = (pare_width_head){i, k, hd->wq.rows, hd->wq.rows, 0, NAN, NAN};
            if (o->qk_dim >= note->before) continue;
            if (o->method == PARE_WIDTH_JL) {
                jl_draws draws = {.trials = o->trials, .rng = pare_rng_at(o->seed, head)};
                *hd = jl_search(w, hd, &h, &p->graph, o->qk_dim, &draws);
                note->scores_est = draws.best;
            } else {
                *hd = qk_reduced(w, hd, &h, &p->graph, o->qk_dim, note);
            }
            note->after = hd->wq.rows;
        }
        if (i + 1 == n->nlayers) break;
        const pare_mat z = layer_attention(w, l, &h, &p->graph), q = layer_hidden(w, l, &z);
        h = layer_ffn(w, l, &z, &q);
        if (!w->st) w->st = pare_progress(w->exec, "width", i + 1, n->nlayers, w->err);
    }
    return out;
}
