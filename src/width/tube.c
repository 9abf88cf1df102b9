/* tube.c - a path through the layers of a model, and how far the exact stream may be from it.
 *
 * The path is made of doubles: at every layer any rows H will do. Of one layer at given doubles
 * pare_enclose gives the exact value with a radius; what the layer does to the distance between H
 * and the stream itself, move.c bounds. So with |h_i - H_i| <= e_i
 *     |layer(h)_i - M_i| <= rad_i sqrt(width) + move(H, e)_i,     M: the enclosure's midpoint,
 * and the same holds for every stream that begins within e of the path: balls (ball_bound.c), and
 * paths that another model took (layerwise_bound.c).
 *
 * Norms are taken of folded matrices. A fold multiplies entries by gain / sqrt(var + eps), rounded
 * four times, and stores them in the model's own type once more: `off` of themselves. Batch norms
 * in front of a map would change its bias as well, whose rounding is not small against the bias:
 * such models are refused. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "prove.h"
#include <math.h>
#include <string.h>

static bool folds_behind(const pare_norm *n)
{
    return n->kind == PARE_NORM_NONE || n->kind == PARE_NORM_BATCH;
}

const char *propagation_refuses(const pare_model *m)
{
    if (!folds_behind(&m->embedding.norm) || !folds_behind(&m->head.norm))
        return "a norm at an end";
    if (m->head.normalize) return "outputs that are normalized";
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_block *const k = &m->blocks[b];
        if (k->attn.in_norm.kind != PARE_NORM_NONE || k->ffn.in_norm.kind != PARE_NORM_NONE)
            return "a norm in front of a map";
        if (!folds_behind(&k->attn.out_norm) || !folds_behind(&k->ffn.out_norm))
            return "a norm that does not fold";
    }
    return NULL;
}

static pare_ub with_share(pare_ub norm, const pare_mat *m, pare_ub off)
{
    if (off.v == 0) return norm;
    return pare_ub_add(norm, pare_ub_fma(off, fro_norm(m), pare_ub_exact(0x1p-130)));
}

static pare_status look_for_f32(void *self, const char *name, pare_weight *w, bool vector,
                                pare_err *err)
{
    (void)name, (void)vector, (void)err;
    bool *const any = self;
    *any = *any || (pare_has(w) && w->dtype == PARE_F32);
    return PARE_OK;
}

/* What one rounding of a fold is worth: as soon as one weight is f32, folded ones may be. */
static double own_share(pare_work *w, const pare_model *m)
{
    bool any = false;
    /* The visitor hands out mutable weights; looking does not touch them. */
    if (!w->st)
        w->st = pare_model_each_weight((pare_model *)(uintptr_t)m, look_for_f32, &any, w->err);
    return any ? 0x1p-23 : 0x1p-49;
}

propagation propagation_new(pare_work *w, const pare_model *m, const net *n, size_t rounded,
                            const pare_input *in, const pare_graph *g)
{
    const double off = rounded ? own_share(w, m) : 0;
    propagation t = {.m = m, .n = n, .in = in, .g = g, .off = pare_ub_exact(off)};
    t.layers = pare_work_alloc(w, n->nlayers, sizeof *t.layers);
    for (size_t l = 0; !w->st && l < n->nlayers; l++)
        t.layers[l] = mover_new(w, &n->layers[l], off);
    t.map = with_share(spectral_norm(w, &n->we), &n->we, t.off);
    t.top = pare_work_alloc(w, n->wh.rows, sizeof *t.top);
    for (size_t c = 0; !w->st && c < n->wh.rows; c++) {
        const pare_mat row = pare_mat_part(&n->wh, c, 0, 1, n->wh.cols);
        t.top[c] = with_share(vector_norm(row.v, row.cols), &row, t.off);
    }
    return t;
}

/* A part of the model on given rows: blocks [l, l + nblocks) of `part`. */
static pare_enclosure enclosed(pare_work *w, const pare_model *part, const pare_input *in)
{
    pare_enclosure e = {0};
    pare_model_norms *norms = NULL;
    if (!w->st) w->st = pare_model_norms_new(&norms, w->arena, part, SILENT_EXEC(w), w->err);
    if (!w->st) w->st = pare_enclose(&e, w->arena, part, norms, in, SILENT_EXEC(w), w->err);
    return e;
}

/* The model without its stem, its blocks and its top: rows go straight through. */
static pare_model bare(const propagation *t, size_t width)
{
    pare_model part = *t->m;
    part.embedding = (pare_embedding){.width = width};
    part.nblocks = 0;
    part.head = (pare_output_head){0};
    return part;
}

static pare_input on_rows(const propagation *t, const pare_mat *h)
{
    pare_input in = *t->in;
    PARE_ASSERT(h->ld == h->cols);
    in.width = h->cols;
    in.x = h->v;
    return in;
}

/* |x - mid|_2 <= sqrt(cols) |x - mid|_max */
static pare_ub row_radius(const pare_enclosure *e, size_t i)
{
    const pare_ub cols = pare_ub_sqrt(pare_ub_exact((double)e->cols));
    return pare_ub_mul(cols, pare_ub_exact(e->rad[i]));
}

pare_mat propagation_embedding(pare_work *w, const propagation *t, pare_ub *r)
{
    pare_model part = *t->m;
    part.nblocks = 0;
    part.head = (pare_output_head){0};
    const pare_enclosure e = enclosed(w, &part, t->in);
    for (size_t i = 0; !w->st && i < e.rows; i++) r[i] = row_radius(&e, i);
    return pare_mat_of(e.mid, e.rows, e.cols);
}

/* The attention part of layer l at the rows h: z, with radii of rows. */
static pare_enclosure attention_at(pare_work *w, const propagation *t, size_t l, const pare_mat *h)
{
    const pare_input in = on_rows(t, h);
    pare_block half = t->m->blocks[l];
    pare_model part = bare(t, h->cols);
    half.ffn = (pare_ffn){.kind = PARE_FFN_NONE};
    part.nblocks = 1;
    part.blocks = &half;
    return enclosed(w, &part, &in);
}

/* The rest of it at the rows z. */
static pare_enclosure ffn_at(pare_work *w, const propagation *t, size_t l, const pare_mat *z)
{
    const pare_input in = on_rows(t, z);
    pare_block half = t->m->blocks[l];
    pare_model part = bare(t, z->cols);
    half.attn = (pare_attn){.kind = PARE_ATTN_NONE};
    part.nblocks = 1;
    part.blocks = &half;
    return enclosed(w, &part, &in);
}

/* W1 z + b1 at the rows z, for all rows within r of them. */
static pare_enclosure hidden_at(pare_work *w, const propagation *t, size_t l, const pare_mat *z,
                                const pare_ub *r)
{
    const pare_input in = on_rows(t, z);
    pare_model part = bare(t, z->cols);
    part.head.out = t->m->blocks[l].ffn.layers[0];
    const pare_enclosure e = enclosed(w, &part, &in);
    const pare_ub longest = mover_longest(t->layers[l]);
    for (size_t i = 0; !w->st && i < e.rows; i++)
        e.rad[i] = pare_ub_fma(longest, r[i], pare_ub_exact(e.rad[i])).v;
    return e;
}

pare_mat propagation_layer(pare_work *w, const propagation *t, size_t l, const pare_mat *h,
                           const pare_ub *e, pare_ub *r)
{
    pare_mat out = mat_zeros(w, h->rows, t->n->layers[l].w2.rows);
    const pare_mark mark = pare_arena_mark(w->arena);
    pare_ub *const rz = pare_work_alloc(w, h->rows, sizeof *rz);
    const pare_enclosure at = attention_at(w, t, l, h);
    for (size_t i = 0; !w->st && i < at.rows; i++) rz[i] = row_radius(&at, i);
    const pare_mat z = pare_mat_of(at.mid, at.rows, at.cols);
    const pare_enclosure hidden = hidden_at(w, t, l, &z, rz), rest = ffn_at(w, t, l, &z);
    move_layer(w, r, t->layers[l], h, e, t->g, &hidden);
    for (size_t i = 0; !w->st && i < rest.rows; i++) {
        const pare_ub rounds =
            pare_ub_fma(mover_stretch(t->layers[l]), rz[i], row_radius(&rest, i));
        r[i] = pare_ub_add(r[i], rounds);
    }
    if (!w->st) memcpy(out.v, rest.mid, rest.rows * rest.cols * sizeof *out.v);
    pare_arena_reset(w->arena, mark);
    return out;
}

pare_enclosure propagation_head(pare_work *w, const propagation *t, const pare_mat *h)
{
    pare_model part = bare(t, h->cols);
    const pare_input in = on_rows(t, h);
    part.head = t->m->head;
    return enclosed(w, &part, &in);
}
