/* lm_slice.c - the method slice: PCA of the residual stream (the idea of SliceGPT), for every model
 * of lm.h.
 *
 * At every point of the stream the rows that the next sublayer reads (behind its norm) have a Gram
 * matrix; its first d eigenvectors are the basis of that point, and everything else is dropped.
 * Between points with bases of their own an identity skip becomes the dense map U_out^T U_in; with
 * one basis for all points (the eigenvectors of the sum of all Gram matrices) skips stay
 * identities.
 *
 * With d = D nothing is lost: an orthonormal change of coordinates commutes with norms that only
 * divide. Cost: one pass through the model in f64, and per point n D^2 for the Gram matrix. */
#include "balance.h"
#include <string.h>

/* The dimension of point p. */
static size_t dim_at(const lm_job *j, size_t p)
{
    const size_t have = j->m->width[p];
    return j->size.dim < have ? j->size.dim : have;
}

/* g += the Gram matrix of the rows that are read at point p. */
static void add_gram(lm_job *j, pare_mat *g, const lm_rows *r, size_t p)
{
    pare_work *const w = j->w;
    const pare_mark mark = pare_arena_mark(w->arena);
    const lm_norm n = lm_reading_norm(w, j->m, p);
    const pare_mat u = lm_normed(w, &n, &r->x);
    lm_gram(w, g, &u);
    pare_arena_reset(w->arena, mark);
}

static lm_basis basis_at(lm_job *j, const lm_rows *r, size_t p)
{
    pare_work *const w = j->w;
    lm_basis b = {.read = mat_zeros(w, j->m->width[p], dim_at(j, p))};
    const pare_mark mark = pare_arena_mark(w->arena);
    pare_mat g = mat_zeros(w, j->m->width[p], j->m->width[p]);
    add_gram(j, &g, r, p);
    leading_eigenvectors(w, &b.read, NULL, &g);
    pare_arena_reset(w->arena, mark);
    return b;
}

/* The bases behind block b. A missing sublayer leaves the basis as it is. */
static void bases_of_block(lm_job *j, lm_rows *r, size_t b, lm_basis *basis)
{
    pare_work *const w = j->w;
    const size_t p = 2 * b;
    const pare_model *const m = j->m->m;
    /* What outlives the block comes before the mark: its matrices are given back. */
    lm_basis mid = basis[p], out;
    const pare_mark start = pare_arena_mark(w->arena);
    if (m->blocks[b].attn.kind != PARE_ATTN_NONE) {
        const lm_attn a = lm_read_attn(w, j->m, b);
        lm_attention_step(w, j->m, &a, r);
        pare_arena_reset(w->arena, start);
        mid = basis_at(j, r, p + 1);
    }
    out = mid;
    const pare_mark middle = pare_arena_mark(w->arena);
    if (m->blocks[b].ffn.kind != PARE_FFN_NONE) {
        const lm_ffn f = lm_read_ffn(w, j->m, b);
        lm_ffn_step(w, j->m, &f, r);
        pare_arena_reset(w->arena, middle);
        out = basis_at(j, r, p + 2);
    }
    basis[p + 1] = mid;
    basis[p + 2] = out;
}

/* Block b in the bases of its three points. */
static void write_projected(lm_job *j, size_t b, const lm_basis *in, const lm_basis *mid,
                            const lm_basis *out)
{
    pare_work *const w = j->w;
    const pare_mark mark = pare_arena_mark(w->arena);
    const lm_block k = lm_read(w, j->m, b);
    lm_block small = {.attn = lm_project_attn(w, &k.attn, in, mid)};
    small.ffn = lm_project_ffn(w, &k.ffn, mid, out);
    lm_balance(w, j->m, &small.attn);
    lm_write_block(w, j->out, b, &small);
    pare_arena_reset(w->arena, mark);
    if (!w->st) w->st = pare_progress(w->exec, "cut", b + 1, j->m->m->nblocks, w->err);
}

static void own_bases(lm_job *j)
{
    pare_work *const w = j->w;
    lm_rows r = lm_embedding_rows(w, j->m, j->data, j->o->tokens);
    lm_basis *const basis = pare_work_alloc(w, j->m->nplaces, sizeof *basis);
    if (w->st) return;
    basis[0] = basis_at(j, &r, 0);
    for (size_t b = 0; !w->st && b < j->m->m->nblocks; b++) {
        bases_of_block(j, &r, b, basis);
        if (w->st) return;
        write_projected(j, b, &basis[2 * b], &basis[2 * b + 1], &basis[2 * b + 2]);
    }
    lm_job_write_ends(j, &basis[0], &basis[j->m->nplaces - 1]);
}

/* ---- one basis for all points --------------------------------------------------------------- */

static pare_mat gram_of_all(lm_job *j)
{
    pare_work *const w = j->w;
    const lm *const m = j->m;
    pare_mat g = mat_zeros(w, m->width[0], m->width[0]);
    const pare_mark mark = pare_arena_mark(w->arena);
    lm_rows r = lm_embedding_rows(w, m, j->data, j->o->tokens);
    if (!w->st) add_gram(j, &g, &r, 0);
    for (size_t b = 0; !w->st && b < m->m->nblocks; b++) {
        const pare_mark present = pare_arena_mark(w->arena);
        const lm_block k = lm_read(w, m, b);
        lm_attention_step(w, m, &k.attn, &r);
        if (k.attn.present) add_gram(j, &g, &r, 2 * b + 1);
        lm_ffn_step(w, m, &k.ffn, &r);
        if (k.ffn.present) add_gram(j, &g, &r, 2 * b + 2);
        pare_arena_reset(w->arena, present);
        if (!w->st) w->st = pare_progress(w->exec, "calibrate", b + 1, m->m->nblocks, w->err);
    }
    pare_arena_reset(w->arena, mark);
    return g;
}

static void one_basis(lm_job *j)
{
    pare_work *const w = j->w;
    lm_need_one_width(w, j->m);
    if (w->st) return;
    pare_steps steps = pare_steps_of(w->exec, 2);
    const pare_exec *const exec = w->exec;
    w->exec = pare_step(&steps, "cut", 1);
    const pare_mat g = gram_of_all(j);
    (void)pare_step(&steps, "cut", 1);
    lm_basis b = {.read = mat_zeros(w, g.rows, dim_at(j, 0))};
    if (!w->st) leading_eigenvectors(w, &b.read, NULL, &g);
    for (size_t k = 0; !w->st && k < j->m->m->nblocks; k++) write_projected(j, k, &b, &b, &b);
    lm_job_write_ends(j, &b, &b);
    w->exec = exec;
}

void lm_slice(lm_job *j)
{
    if (j->size.own)
        own_bases(j);
    else
        one_basis(j);
}
