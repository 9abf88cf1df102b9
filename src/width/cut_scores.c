/* Queries and keys alone, layer by layer: each layer is fitted on the stream that the layers before
 * it, already cut, give. The order matters: a map that suits the original stream may not suit the
 * one it will meet. */
#include "cuts.h"
#include <math.h>

static net_head fewer(pare_work *w, const net_head *hd, const pare_mat *h, const pare_graph *g,
                      const pare_width_opts *o, uint64_t stream, pare_width_head *note)
{
    qk_fit fit = {0, NAN, NAN, NAN};
    net_head out;
    if (o->method == PARE_WIDTH_JL) {
        jl_draws draws = {.trials = o->trials, .rng = pare_rng_at(o->seed, stream)};
        out = jl_search(w, hd, h, g, o->qk_dim, &draws);
        note->scores_est = draws.best;
        return out;
    }
    out = qk_optimal(w, hd, h, g, o->qk_dim, &fit);
    const double *const before = head_scores(w, hd, h, g), *const after =
                                                               head_scores(w, &out, h, g);
    if (w->st) return out;
    note->scores_est = score_half_range(before, after, g);
    note->objective_est = fit.objective;
    note->least_est = fit.least;
    return out;
}

static void note_widths(cut_record *r, const activations *p)
{
    for (size_t i = 0; i < r->npoints; i++) {
        pare_width_point *const at = &r->points[i];
        snprintf(at->name, sizeof at->name, "%c%zu", i % 2 ? 'z' : 'h', i / 2);
        at->before = at->after = i % 2 ? p->z[i / 2].cols : p->h[i / 2].cols;
        at->residual_est = NAN;
    }
    for (size_t i = 0; i < r->nhidden; i++)
        r->hidden[i] = (pare_width_hidden){i, p->p[i].cols, p->p[i].cols, 1, NAN, NAN};
}

net cut_scores(pare_work *w, const net *n, const activations *p, const pare_width_opts *o,
               cut_record *r)
{
    net out = net_shallow(w, n);
    pare_mat h = p->h[0];
    if (!w->st) note_widths(r, p);
    for (size_t i = 0, head = 0; !w->st && i < n->nlayers; i++) {
        net_layer *const l = &out.layers[i];
        for (size_t k = 0; !w->st && k < l->nheads; k++, head++) {
            pare_width_head *const note = &r->heads[head];
            *note = (pare_width_head){i, k, l->heads[k].wq.rows, l->heads[k].wq.rows, 0, NAN, NAN};
            if (o->qk_dim >= note->before) continue;
            l->heads[k] = fewer(w, &l->heads[k], &h, &p->graph, o, head, note);
            note->after = l->heads[k].wq.rows;
        }
        if (i + 1 == n->nlayers) break;
        const pare_mat z = layer_attention(w, l, &h, &p->graph), q = layer_hidden(w, l, &z);
        h = layer_ffn(w, l, &z, &q);
        if (!w->st) w->st = pare_progress(w->exec, "width", i + 1, n->nlayers, w->err);
    }
    return out;
}
