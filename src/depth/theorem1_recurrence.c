/* theorem1_recurrence.c - Theorem 1: a bound on |f - g| for all inputs of a domain, from weights
 * alone.
 *
 * Both models are walked from the embedding to the head, sublayer by sublayer (walk_attention.c,
 * walk_ffn.c), once with each norm:
 *   largest entry, euclidean length    one number for all entries (the published form)
 *   boxes                              one number for each entry
 *   boxes in a basis                   the same in the principal axes of sample tokens, for models
 *                                      of ids: a trained net often lives in few directions
 * Each is a theorem, and the least of them stands. Norms must be affine: behind a layer or rms norm
 * nothing is known of how far errors spread, and the bound is honestly infinite; what a removed
 * layer injects is bounded there all the same (injected_error.c).
 *
 * Replaces the printed Theorem D.1, which is false (docs/errata.md). Cost: a few dozen products of
 * d x d matrices for each head. */
#include "collapse_chain.h"
#include "initial_set.h"
#include "attention/attend.h"
#include "linalg/bounds.h"
#include "model/model_equality.h"
#include <pare/depth.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WAYS = 4, WIDEST = 320 }; /* beyond that width boxes are too much work */
static const norm_kind kinds[WAYS] = {NORM_INF, NORM_TWO, NORM_BOX, NORM_BOX};

typedef struct walker {
    pare_work k;
    pare_arena *arenas[2]; /* one holds what block b began with, the other what it makes */
    const pare_model *f, *g;
    const depth_domain *domain;
    mask_facts mask;
    pare_mat *bases; /* for the last way; NULL: none */
    pare_arena *kept;
    size_t ways;
    track track[WAYS];
    token_set start[WAYS];
    token_norm first[WAYS];
    chain chain;
    const char *why;
} walker;

/* ---- norms ----------------------------------------------------------------------------------- */

/* The norm of way `w` at a place of the stream, d wide. */
static token_norm norm_at(walker *w, pare_work *k, size_t way, size_t place, size_t d)
{
    if (way + 1 < WAYS || !w->bases || !w->bases[place].v) return norm_plain(kinds[way], d);
    return norm_in_basis(k, &w->bases[place]);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static bool block_attention(walker *w, size_t b)
{
    pare_work *const k = &w->k;
    const size_t width = pare_model_width(w->f, b);
    const pare_attn *const fa = &w->f->blocks[b].attn;
    eff_attn fe, ge;
    bool same = false;
    if (!effective_attn(k, &fe, fa, width, &w->why)) return false;
    if (w->chain.kind != PARE_ONES) {
        chain_attn(k, &w->chain, &ge, &same, &fe, b);
    } else {
        const pare_attn *const ga = &w->g->blocks[b].attn;
        same = pare_same_attn(fa, ga);
        if (same)
            ge = fe;
        else if (!effective_attn(k, &ge, ga, width, &w->why))
            return false;
    }
    if (k->st) return true; /* asked about at the end */
    w->why = "the widths differ";
    if (fe.din != ge.din || fe.dout != ge.dout) return false;
    w->why = "powers of the mean over rows that may see nothing";
    if (!w->mask.never_empty && (fe.npowers > 1 || ge.npowers > 1)) return false;
    const attn_pair p = attn_pair_of(k, &fe, &ge, same);
    for (size_t i = 0; !k->st && i < w->ways; i++) {
        const token_norm out = norm_at(w, k, i, 2 * b + 1, fe.dout);
        w->track[i] = walk_attention(k, &p, &out, &w->track[i], w->mask);
    }
    return true;
}

static bool block_ffn(walker *w, size_t b)
{
    pare_work *const k = &w->k;
    const pare_ffn *const f = &w->f->blocks[b].ffn;
    eff_ffn e;
    w->why = "the FFNs differ";
    if (w->chain.kind == PARE_ONES && !pare_same_ffn(f, &w->g->blocks[b].ffn)) return false;
    if (f->kind == PARE_FFN_NONE) return true;
    if (!effective_ffn(k, &e, f, f->din, &w->why)) return false;
    for (size_t i = 0; !k->st && i < w->ways; i++) {
        const token_norm out = norm_at(w, k, i, 2 * b + 2, f->dout);
        w->track[i] = walk_ffn(k, &e, &out, &w->track[i]);
    }
    return true;
}

/* What the last block made is read from one arena while the next one writes the other. */
static bool next_arena(walker *w, size_t b)
{
    pare_arena_free(w->arenas[b % 2]);
    w->arenas[b % 2] = pare_arena_new();
    w->k.arena = w->arenas[b % 2];
    if (!w->k.arena) pare_work_keep(&w->k, pare_no_memory(w->k.err));
    return !w->k.st;
}

/* ---- the whole way --------------------------------------------------------------------------- */

static bool begin_walk(walker *w)
{
    pare_work at_start = {.arena = w->kept, .exec = w->k.exec, .err = w->k.err};
    pare_work *const k = &at_start;
    for (size_t i = 0; !k->st && i < w->ways; i++) {
        track *const t = &w->track[i];
        t->at = norm_at(w, k, i, 0, pare_model_width(w->f, 0));
        if (!initial_set(k, &t->x, &t->at, w->f, w->domain, &w->why)) return false;
        t->y = t->x;
        t->e = work_matrix(k, 1, t->at.k);
        w->start[i] = t->x;
        w->first[i] = t->at;
    }
    pare_work_keep(&w->k, k->st);
    return true;
}

void take_output_bound(pare_work *k, depth_bound *out, size_t way, const eff_ffn *head, bool extra,
                       const track *t)
{
    const pare_mat e = walk_output_head(k, head, t);
    pare_ub most = {0};
    if (k->st) return;
    for (size_t j = 0; j < e.cols - extra; j++) most = pare_ub_max(most, (pare_ub){e.v[j]});
    if (way < DEPTH_NORMS) out->by[way] = most;
    out->bound = pare_ub_min(out->bound, most);
    if (extra) out->difference = pare_ub_min(out->difference, (pare_ub){e.v[e.cols - 1]});
}

static bool walk_blocks(walker *w, depth_bound *out)
{
    if (!begin_walk(w)) return false;
    for (size_t b = 0; !w->k.st && b < w->f->nblocks; b++) {
        if (!next_arena(w, b)) return true;
        if (!block_attention(w, b) || (!w->k.st && !block_ffn(w, b))) return false;
    }
    if (w->f->nblocks == 0 && !next_arena(w, 0)) return true;
    for (size_t i = 0; w->chain.kind != PARE_ONES && !w->k.st && i < w->ways; i++) {
        track *const t = &w->track[i];
        const pare_mat rest =
            chain_remainder(&w->k, &w->chain, &w->first[i], &t->at, &w->start[i], w->mask);
        if (!w->k.st) t->e = up_sum(&w->k, &t->e, &rest);
    }
    eff_ffn head;
    bool extra;
    if (w->k.st) return true;
    if (!effective_output_head(&w->k, &head, &extra, w->f, &w->why)) return false;
    for (size_t i = 0; !w->k.st && i < w->ways; i++)
        take_output_bound(&w->k, out, i, &head, extra, &w->track[i]);
    return true;
}

static pare_status walk_models(depth_bound *out, walker *w, const pare_exec *exec)
{
    bool boxes = true;
    for (size_t b = 0; b <= w->f->nblocks; b++) boxes &= pare_model_width(w->f, b) <= WIDEST;
    w->ways = boxes ? WAYS - 1 : 2;
    w->kept = pare_arena_new();
    w->k.arena = w->kept;
    if (!w->kept) pare_work_keep(&w->k, pare_no_memory(w->k.err));
    if (!w->k.st && boxes && w->f->embedding.ids && w->f->pattern.kind != PARE_GRAPH) {
        pare_work bases = {.arena = w->kept, .exec = exec, .err = w->k.err};
        pare_work_keep(&w->k, sample_bases(&w->bases, &bases, w->f, exec));
        w->ways = WAYS;
    }
    bool proven = false;
    if (!w->k.st) proven = walk_blocks(w, out);
    if (!proven || w->k.st) *out = depth_nothing_proven("recurrence", w->why);
    if (w->k.st == PARE_OK && isinf(out->bound.v) && !out->why[0])
        snprintf(out->why, sizeof out->why, "the bound overflows");
    for (size_t i = 0; i < 2; i++) pare_arena_free(w->arenas[i]);
    pare_arena_free(w->kept);
    return w->k.st;
}

pare_status depth_recurrence(depth_bound *out, const pare_model *f, const pare_model *g,
                             const depth_domain *d, pare_collapse kind, size_t keep,
                             const pare_exec *exec, pare_err *err)
{
    walker w = {.k = {.exec = exec, .err = err}, .f = f, .g = g, .domain = d};
    w.mask.full = f->pattern.kind == PARE_FULL;
    w.mask.never_empty = pare_never_empty(&f->pattern);
    w.chain = (chain){.kind = kind, .keep = keep, .f = f, .g = g};
    if (kind != PARE_ONES)
        w.chain.keeps_same = pare_same_attn(&f->blocks[keep].attn, &g->blocks[0].attn);
    *out = depth_nothing_proven("recurrence", pare_model_ends_differ(f, g));
    if (out->why[0]) return PARE_OK;
    return walk_models(out, &w, exec);
}
