/* bound_attn.c - the attention of one block in both models: whether it can be compared at all, and
 * its sizes. */
#include "bounds.h"
#include "attention/attend.h"
#include <pare/ticket.h>
#include <math.h>

static bool softmax_heads(pare_attn_kind k)
{
    return k == PARE_ATTN_EXACT || k == PARE_ATTN_POLY;
}

/* Rotary heads must turn in the same way: the product of both maps cannot be taken. */
static bool same_factored(const pare_model *f, const pare_model *g, const pare_attn *x,
                          const pare_attn *y, size_t h)
{
    const pare_head *const a = &x->heads[h], *const b = &y->heads[h];
    if (a->planes == 0 && b->planes == 0) return true;
    if (a->planes != b->planes || a->dk != b->dk ||
        f->embedding.pos.interleaved != g->embedding.pos.interleaved)
        return false;
    for (size_t i = 0; i < a->planes; i++)
        if (pare_weight_at(&x->freqs, a->freq + i) != pare_weight_at(&y->freqs, b->freq + i))
            return false;
    return true;
}

static void compare(const pare_model *f, const pare_model *g, size_t b, char *why)
{
    const pare_attn *const x = &f->blocks[b].attn, *const y = &g->blocks[b].attn;
    const bool constant = x->kind == PARE_ATTN_ZERO || x->kind == PARE_ATTN_CONST;
    if (x->kind == PARE_ATTN_NONE && y->kind == PARE_ATTN_NONE) return;
    if (!(softmax_heads(x->kind) && softmax_heads(y->kind)) &&
        !(x->kind == y->kind && (constant || x->kind == PARE_ATTN_NONE))) {
        bounds_refuse(why, "block %zu: no theorem for a ticket of %s attention beside %s", b,
                      pare_attn_name(y->kind), pare_attn_name(x->kind));
        return;
    }
    if (x->din != y->din || x->dout != y->dout || x->nheads != y->nheads ||
        pare_has(&x->wo) != pare_has(&y->wo)) {
        bounds_refuse(why, "block %zu: the heads of target and ticket do not pair up", b);
        return;
    }
    for (size_t h = 0; h < x->nheads; h++) {
        if (!same_factored(f, g, x, y, h))
            bounds_refuse(why,
                          "block %zu head %zu: its rotary frequencies are not those of the target",
                          b, h);
        if (!pare_has(&x->wo) && x->heads[h].dv != y->heads[h].dv)
            bounds_refuse(why, "block %zu head %zu: values of different widths", b, h);
    }
}

/* Every value bias through wo, and bo. */
static void biases(pare_work *p, attn_sizes *s, const pare_attn *f, const pare_attn *g,
                   rmat *inside, rmat *inside_t)
{
    const rmat bo = rmat_column(p, &f->bo, 0, f->dout), bt = rmat_column(p, &g->bo, 0, g->dout);
    const rmat be = rmat_diff(p, &bo, &bt);
    const rmat all = rmat_sum(p, inside, &bo), all_t = rmat_sum(p, inside_t, &bt);
    const rmat all_e = rmat_diff(p, &all, &all_t);
    s->bias = rmat_fro(&all);
    s->bias_g = rmat_fro(&all_t);
    s->bias_e = rmat_fro(&all_e);
    s->empty = rmat_fro(&bo);
    s->empty_g = rmat_fro(&bt);
    s->empty_e = rmat_fro(&be);
}

/* One head after the other: its matrices are gone before the next one's are there. */
static void heads_of(pare_work *p, attn_sizes *s, const pare_attn *f, const pare_attn *g)
{
    rmat inside = rmat_new(p, f->dout, 1), inside_t = rmat_new(p, f->dout, 1);
    for (size_t h = 0; !p->st && h < f->nheads; h++) {
        const pare_mark mark = pare_arena_mark(p->arena);
        const head_pair pair = head_pair_of(p, f, g, h);
        s->heads[h] = head_sizes_of(p, &pair);
        const rmat more = rmat_sum(p, &inside, &pair.inside),
                   more_t = rmat_sum(p, &inside_t, &pair.inside_t);
        for (size_t i = 0; !p->st && i < f->dout; i++) {
            inside.mid.v[i] = more.mid.v[i];
            inside_t.mid.v[i] = more_t.mid.v[i];
        }
        inside.off = more.off;
        inside_t.off = more_t.off;
        pare_arena_reset(p->arena, mark);
        if (!p->st) p->st = pare_stopped(p->exec, p->err);
    }
    biases(p, s, f, g, &inside, &inside_t);
}

attn_sizes attn_sizes_of(pare_work *p, const pare_model *f, const pare_model *g, size_t b,
                         char *why)
{
    const pare_attn *const x = &f->blocks[b].attn, *const y = &g->blocks[b].attn;
    attn_sizes s = {.kind = x->kind, .nheads = x->nheads};
    compare(f, g, b, why);
    if (*why || p->st || x->kind == PARE_ATTN_NONE) return s;
    s.may_be_empty = !pare_never_empty(&f->pattern);
    s.heads = pare_alloc(p->arena, x->nheads + 1, sizeof *s.heads);
    if (!s.heads) p->st = pare_no_memory(p->err);
    if (!softmax_heads(x->kind)) s.nheads = 0;
    if (!p->st) heads_of(p, &s, x, y);
    s.in = norm_sizes_of(&x->in_norm, &y->in_norm, x->din, why);
    s.out = norm_sizes_of(&x->out_norm, &y->out_norm, x->dout, why);
    s.skip = skip_sizes_of(p, &x->skip, &y->skip, why);
    return s;
}

pare_status pare_ticket_layer_bound(pare_ticket_layer *out, const pare_model *f,
                                    const pare_model *g, size_t b, double alpha,
                                    const pare_exec *exec, pare_err *err)
{
    *out = (pare_ticket_layer){pare_ub_inf(), INFINITY, INFINITY, ""};
    if (b >= f->nblocks || b >= g->nblocks)
        return pare_fail(err, PARE_ERR_USAGE, "there is no block %zu in both models", b);
    pare_work p = {pare_arena_new(), exec, err, PARE_OK};
    if (!p.arena) return pare_no_memory(err);
    const attn_sizes s = attn_sizes_of(&p, f, g, b, out->why);
    if (!(alpha > 0 && alpha < INFINITY))
        bounds_refuse(out->why, "a bound for all rows needs their length, a positive number");
    if (!p.st && !*out->why) {
        const pare_ub a = pare_ub_exact(alpha);
        out->free = attn_move(&s, (span){a, a, pare_ub_exact(0), 0}).d;
        out->paper_est = paper_form(&s, f->blocks[b].attn.din, f->blocks[b].attn.dout, alpha);
        out->largest_vo = 0;
        for (size_t h = 0; h < s.nheads; h++)
            out->largest_vo = fmax(out->largest_vo, s.heads[h].v.v);
    }
    pare_arena_free(p.arena);
    return p.st;
}
