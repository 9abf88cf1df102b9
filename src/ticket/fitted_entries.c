/* fitted_entries.c - which matrices of a target were fitted, the size of their entries and the
 * distance of the ticket's: what the search was asked for, from the two models alone. */
#include "ticket_bounds.h"
#include "fitted_entries.h"
#include <math.h>

static void add_matrix(ticket_entries *t, size_t a, size_t b, size_t rank, double largest,
                       double error)
{
    if (!(error > 0)) return; /* kept as it is */
    t->matrices++;
    t->entries += a * b;
    t->largest = fmax(t->largest, largest);
    t->error = fmax(t->error, error);
    t->bits += (double)(a + b) * pare_ticket_least_units(a, b, rank, largest, error);
}

static void add_stored(ticket_entries *t, const pare_weight *f, const pare_weight *g)
{
    double largest = 0, error = 0;
    if (!pare_has(f) || !pare_has(g) || f->rows != g->rows || f->cols != g->cols) return;
    for (size_t i = 0; i < f->rows * f->cols; i++) {
        const double x = pare_weight_at(f, i);
        largest = fmax(largest, fabs(x));
        error = fmax(error, fabs(x - pare_weight_at(g, i)));
    }
    add_matrix(t, f->rows, f->cols, f->rows, largest, error);
}

static void add_attention(ticket_entries *t, const attn_sizes *s, const pare_attn *f,
                          const pare_attn *g)
{
    const bool same = f->wq.rows == g->wq.rows && f->wk.rows == g->wk.rows &&
                      f->wv.rows == g->wv.rows && f->wo.cols == g->wo.cols;
    if (same) {
        add_stored(t, &f->wq, &g->wq);
        add_stored(t, &f->wk, &g->wk);
        add_stored(t, &f->wv, &g->wv);
        add_stored(t, &f->wo, &g->wo);
        return;
    }
    for (size_t h = 0; h < s->nheads; h++) {
        const head_sizes *const z = &s->heads[h];
        const size_t one = pare_has(&f->bq) ? 1 : 0, dk = f->heads[h].dk, dv = f->heads[h].dv;
        add_matrix(t, f->din + one, f->din, dk, z->g_max.v, z->ge_max.v);
        add_matrix(t, f->dout, f->din, dv, z->v_max.v, z->ve_max.v);
    }
}

static void add_ffn(ticket_entries *t, const ffn_sizes *s, const pare_ffn *f, const pare_ffn *g)
{
    for (size_t l = 0; f->kind != PARE_FFN_NONE && l < f->nlayers; l++) {
        const pare_weight *const w = &f->layers[l].w;
        if (s->form == FFN_EQUAL) {
            add_stored(t, w, &g->layers[l].w);
            continue;
        }
        add_matrix(t, w->rows, w->cols, w->rows, s->layers[l].w_max.v, s->layers[l].e_max.v);
        if (l == 0) t->entries += w->rows * w->cols; /* of both signs */
    }
}

ticket_entries ticket_entries_of(const model_sizes *m, const pare_model *f, const pare_model *g)
{
    ticket_entries t = {0};
    add_stored(&t, &f->embedding.table, &g->embedding.table);
    add_stored(&t, &f->embedding.pos.table, &g->embedding.pos.table);
    add_stored(&t, &f->embedding.map.w, &g->embedding.map.w);
    for (size_t b = 0; b < m->nblocks; b++) {
        add_attention(&t, &m->blocks[b].attn, &f->blocks[b].attn, &g->blocks[b].attn);
        add_ffn(&t, &m->blocks[b].ffn, &f->blocks[b].ffn, &g->blocks[b].ffn);
    }
    add_stored(&t, &f->head.dense.w, &g->head.dense.w);
    if (!f->head.tied) add_stored(&t, &f->head.out.w, &g->head.out.w);
    return t;
}
