/* embedding_head.c - embedding and output head of both models. Embeddings: the largest of |e_v|,
 * |e~_v|, |e_v - e~_v| over the vocabulary; positions are bounded in the same way and added.
 * Sinusoidal ones are the same in both: d/2 pairs of sine and cosine (the last one may be alone).
 * Outputs are bounded one by one:
 *
 *      |w_o x + b_o - w~_o x~ - b~_o| <= |w_o| d + |w_o - w~_o| |x~| + |b_o - b~_o|. */
#include "embedding_head.h"
#include "linalg/bounds.h"
#include "model/model_equality.h"
#include "model/model_facts.h"
#include "model/shared_rows.h"
#include <pare/run.h>
#include <math.h>

static const pare_ub zero = {0};

/* ---- embedding ------------------------------------------------------------------------------------ */

static span row_sizes(const pare_weight *f, const pare_weight *g, size_t i)
{
    const size_t d = f->cols;
    pare_ub x = zero, y = zero, e = zero;
    for (size_t j = 0; j < d; j++) {
        const double a = pare_weight_at(f, i * d + j), b = pare_weight_at(g, i * d + j);
        const pare_ub gap = a == b ? zero : pare_ub_of(a - b);
        x = pare_ub_fma(pare_ub_exact(a), pare_ub_exact(a), x);
        y = pare_ub_fma(pare_ub_exact(b), pare_ub_exact(b), y);
        e = pare_ub_fma(gap, gap, e);
    }
    return (span){pare_ub_sqrt(x), pare_ub_sqrt(y), pare_ub_sqrt(e), 0};
}

/* Over all rows of two stored tables. */
static span table_sizes(const pare_weight *f, const pare_weight *g)
{
    span s = {zero, zero, zero, 0};
    for (size_t i = 0; i < f->rows; i++) {
        const span row = row_sizes(f, g, i);
        s.f = pare_ub_max(s.f, row.f);
        s.g = pare_ub_max(s.g, row.g);
        s.d = pare_ub_max(s.d, row.d);
    }
    return s;
}

static span position_sizes(const pare_model *f, const pare_model *g, char *why)
{
    const pare_positions *const a = &f->embedding.pos, *const b = &g->embedding.pos;
    span s = {zero, zero, zero, 0};
    const bool waves = a->kind == PARE_POS_SINUSOIDAL;
    if (a->kind != b->kind || a->after_map != b->after_map || a->table.rows != b->table.rows ||
        a->table.cols != b->table.cols || (waves && a->base != b->base)) {
        bounds_refuse(why, "the positions of the ticket are not the target's");
        return s;
    }
    const bool behind = a->after_map && pare_has(&f->embedding.map.w);
    const size_t width = behind ? f->embedding.map.w.rows : f->embedding.width;
    if (waves) s.f = s.g = pare_ub_sqrt(pare_ub_exact((double)((width + 1) / 2)));
    return a->kind == PARE_POS_LEARNED ? table_sizes(&a->table, &b->table) : s;
}

embedding_sizes embedding_sizes_of(pare_work *p, const pare_model *f, const pare_model *g,
                                   char *why)
{
    const pare_embedding *const a = &f->embedding, *const b = &g->embedding;
    embedding_sizes s = {.ids = a->ids, .map = pare_has(&a->map.w), .after_map = a->pos.after_map};
    if (a->ids != b->ids || a->width != b->width || a->vocab != b->vocab || !pare_same_rows(a, b) ||
        s.map != pare_has(&b->map.w))
        bounds_refuse(why, "the ticket does not take what the target takes");
    if (*why) return s;
    if (a->ids) s.rows = table_sizes(&a->table, &b->table);
    s.positions = position_sizes(f, g, why);
    if (s.map) s.dense = dense_sizes_of(p, &a->map, &b->map, why);
    s.norm = norm_sizes_of(&a->norm, &b->norm, pare_model_width(f, 0), why);
    return s;
}

static span span_plus(span a, span b)
{
    return (span){pare_ub_add(a.f, b.f), pare_ub_add(a.g, b.g), pare_ub_add(a.d, b.d), 0};
}

/* Up to the norm. */
static span through_embedding(const embedding_sizes *s, span x, span positions)
{
    if (!s->after_map) x = span_plus(x, positions);
    if (s->map) x = dense_move(&s->dense, x);
    return s->after_map ? span_plus(x, positions) : x;
}

span embedding_move(const embedding_sizes *s, span x)
{
    return norm_move(&s->norm, through_embedding(s, s->ids ? s->rows : x, s->positions));
}

span embedding_row(const embedding_sizes *s, const pare_model *f, const pare_model *g,
                   const pare_input *in, size_t i)
{
    const bool learned = f->embedding.pos.kind == PARE_POS_LEARNED;
    const span at =
        learned ? row_sizes(&f->embedding.pos.table, &g->embedding.pos.table, i % in->tokens)
                : s->positions;
    if (s->ids)
        return through_embedding(s,
                                 row_sizes(&f->embedding.table, &g->embedding.table,
                                           pare_token_row(&f->embedding, in->ids[i])),
                                 at);
    const pare_weight row = {PARE_F64, 1, in->width, in->x + i * in->width};
    const pare_ub x = pare_norm_fro(&row);
    return through_embedding(s, (span){x, x, zero, 0}, at);
}

static void output_sizes(pare_work *p, output_head_sizes *s, const pare_model *f,
                         const pare_model *g)
{
    const pare_weight *const w = pare_head_weight(f), *const wt = pare_head_weight(g);
    const pare_weight *const b = &f->head.out.b, *const bt = &g->head.out.b;
    const uint32_t *const map = pare_output_map(f); /* that of g as well */
    const size_t n = s->outputs;
    s->row_f = pare_work_alloc(p, 4 * n, sizeof *s->row_f);
    if (p->st) return;
    s->row_g = s->row_f + n;
    s->row_e = s->row_g + n;
    s->bias_e = s->row_e + n;
    for (size_t o = 0; o < n; o++) {
        const double x = pare_has(b) ? pare_weight_at(b, o) : 0,
                     y = pare_has(bt) ? pare_weight_at(bt, o) : 0;
        const span row = row_sizes(w, wt, map ? map[o] : o);
        s->row_f[o] = row.f;
        s->row_g[o] = row.g;
        s->row_e[o] = row.d;
        s->bias_e[o] = x == y ? zero : pare_ub_of(x - y);
    }
}

output_head_sizes output_head_sizes_of(pare_work *p, const pare_model *f, const pare_model *g,
                                       char *why)
{
    const pare_output_head *const a = &f->head, *const b = &g->head;
    const pare_weight *const w = pare_head_weight(f), *const wt = pare_head_weight(g);
    output_head_sizes s = {.dense_there = pare_has(&a->dense.w),
                           .out_there = pare_has(w),
                           .slope = pare_act_lipschitz(a->act),
                           .pooled = pare_ub_exact(1),
                           .outputs = pare_model_outputs(f)};
    if (a->pool != b->pool || a->act != b->act || a->normalize != b->normalize ||
        s.dense_there != pare_has(&b->dense.w) || s.out_there != pare_has(wt) ||
        s.outputs != pare_model_outputs(g) ||
        (s.out_there && (w->cols != wt->cols || w->rows != wt->rows)))
        bounds_refuse(why, "the head of the ticket is not the target's");
    if (*why) return s;
    const size_t width = pare_model_width(f, f->nblocks);
    s.norm = norm_sizes_of(&a->norm, &b->norm, width, why);
    if (a->pool == PARE_POOL_MAX) s.pooled = pare_ub_sqrt(pare_ub_exact((double)width));
    if (s.dense_there) s.dense = dense_sizes_of(p, &a->dense, &b->dense, why);
    if (s.out_there) output_sizes(p, &s, f, g);
    return s;
}

/* Pooling takes one row, or a convex combination: no bound grows. A maximum over tokens moves, entry
 * by entry, by no more than an entry of a row does: in length by sqrt(width) times that. */
pare_ub output_head_move(const output_head_sizes *t, span s)
{
    s = norm_move(&t->norm, s);
    s.f = pare_ub_mul(t->pooled, s.f);
    s.g = pare_ub_mul(t->pooled, s.g);
    s.d = pare_ub_mul(t->pooled, s.d);
    if (t->dense_there) s = dense_move(&t->dense, s);
    s.d = pare_ub_mul(pare_ub_exact(t->slope), s.d);
    s = span_tightened(s);
    if (!t->out_there) return s.d;
    pare_ub most = zero;
    for (size_t o = 0; o < t->outputs; o++) {
        const pare_ub by_g = pare_ub_fma(t->row_f[o], s.d, pare_ub_mul(t->row_e[o], s.g)),
                      by_f = pare_ub_fma(t->row_g[o], s.d, pare_ub_mul(t->row_e[o], s.f));
        most = pare_ub_max(most, pare_ub_add(pare_ub_min(by_f, by_g), t->bias_e[o]));
    }
    return most;
}

/* With |f| >= least and |f - g| <= d, |g| >= least - d, and (docs/theory/outputs.md)
 *     | f/|f| - g/|g| | <= d / sqrt(|f| |g|)  and  <= 2. */
pare_ub normalized_move(const output_head_sizes *t, pare_ub apart, double least)
{
    /* Without a last map `apart` is the distance of the whole row. */
    const double terms = t->out_there ? (double)t->outputs : 1;
    const pare_ub d = pare_ub_mul(pare_ub_sqrt(pare_ub_exact(terms)), apart);
    const pare_ub two = pare_ub_exact(2);
    if (!(d.v < least)) return two;
    const double other = (least - d.v) * (1 - 0x1p-52), root = sqrt(least * other) * (1 - 0x1p-50);
    return root > 0 ? pare_ub_min(two, pare_ub_of(d.v / root * (1 + 0x1p-50))) : two;
}

void bounds_refuse_normalized(char *why, const pare_model *f)
{
    if (f->head.normalize)
        bounds_refuse(why, "the model normalizes its outputs: a bound for all inputs would need "
                           "the length of the shortest output row");
}

void models_compare(const pare_model *f, const pare_model *g, char *why)
{
    if (f->nblocks != g->nblocks)
        bounds_refuse(why, "the ticket has %zu blocks, the target %zu", g->nblocks, f->nblocks);
    const pare_pattern *const a = &f->pattern, *const b = &g->pattern;
    if (a->kind != b->kind || a->window != b->window || a->sinks != b->sinks ||
        a->self_loops != b->self_loops || a->expander_degree != b->expander_degree ||
        (a->expander_degree > 0 && a->expander_seed != b->expander_seed))
        bounds_refuse(why, "the tokens of the ticket do not see what the target's see");
    for (size_t k = 0; !*why && k < f->nblocks; k++)
        if (pare_model_width(f, k) != pare_model_width(g, k))
            bounds_refuse(why, "block %zu of the ticket has another width", k);
}
