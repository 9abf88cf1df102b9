/* The state of polynomial attention: sums over keys of weight x monomials x (values, 1, ...).
 *
 * Sums are taken in f32 over POLY_KEYS keys (and a few such blocks), then in f64: their error does
 * not grow with n. Which keys are summed together depends on the sizes alone. */
#include "poly.h"
#include <pare/elementary.h>
#include <math.h>
#include <string.h>

static size_t aligned(size_t n)
{
    return padded(n, POLY_LANES);
}

size_t poly_workspace_floats(const poly_job *w)
{
    return aligned(POLY_KEYS * w->table.ldphi) + aligned(POLY_KEYS * w->cols4) +
           aligned(POLY_KEYS * w->d) + aligned(w->cols4 * w->table.ld);
}

poly_workspace poly_workspace_at(const poly_job *w, float *at)
{
    poly_workspace r = {.phi = at};
    r.u = r.phi + aligned(POLY_KEYS * w->table.ldphi);
    r.x = r.u + aligned(POLY_KEYS * w->cols4);
    r.s = r.x + aligned(POLY_KEYS * w->d);
    memset(at, 0, poly_workspace_floats(w) * sizeof *at);
    return r;
}

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

void poly_weighted_values(float *u, const poly_job *w, size_t first, size_t rows, bool state)
{
    const size_t power = w->plan->degree ? w->plan->degree - 1 : 1, dv4 = w->dv / 4 * 4;
    for (size_t j = first; j < first + rows; j++, u += w->cols4) {
        const float *const v = w->v->v + j * w->v->ld;
        const float f = state && w->heavy && w->heavy[j] ? 0 : w->w[j];
        for (size_t c = 0; c < dv4; c += 4)
            *(four *)(u + c) =
                (*(const four *)(v + c) - *(const four *)(w->centre + c)) * (four){f, f, f, f};
        for (size_t c = dv4; c < w->dv; c++) u[c] = (v[c] - w->centre[c]) * f;
        u[w->dv] = f;
        if (w->moment)
            u[w->dv + 1] = state ? f * (float)poly_power((double)key_norm(w, j), power) : 0;
        for (size_t c = w->cols; c < w->cols4; c++) u[c] = 0;
    }
}

static void make_monomials(const poly_workspace *r, const poly_job *w, const float *x, size_t rows)
{
    const poly_table *const t = &w->table;
    if (w->kernel->products && t->factors.factor) {
        w->kernel->products(r->phi, t->ldphi, &t->factors, x, w->d, w->d, rows);
        return;
    }
    for (size_t j = 0; j < rows; j++) {
        r->phi[j * t->ldphi] = 1;
        memcpy(r->phi + j * t->ldphi + 1, x + j * w->d, t->copied * sizeof *x);
    }
    w->kernel->rows(r->phi, t->ldphi, t->whole, t->nmade, x, w->d, rows);
}

/* Their monomials stay in the first-level cache while all sums over them are taken. */
static void add_rows(const poly_workspace *r, const poly_job *w, size_t first, size_t rows)
{
    const poly_table *const t = &w->table;
    const float *const x = r->x + first * w->d;
    const poly_keys keys = {r->u + first * w->cols4, w->cols4, t->ldphi, w->d, rows, w->cols4};
    make_monomials(r, w, x, rows);
    w->kernel->gather(r->s, t->ld, &keys, r->phi, NULL, t->made);
    for (const poly_run *k = t->whole + t->nmade; k < t->whole + t->nwhole; k++)
        w->kernel->gather(r->s + k->to, t->ld, &keys, r->phi + k->from, x + k->var, k->count);
}

void poly_load_keys(const poly_workspace *r, const poly_job *w, size_t chunk)
{
    const size_t first = chunk * POLY_KEYS, rows = chunk_end(w, chunk) - first;
    poly_centered_rows(r->x, &w->keys, first, rows);
    poly_weighted_values(r->u, w, first, rows, true);
}

void poly_add_loaded(const poly_workspace *r, const poly_job *w, size_t rows)
{
    for (size_t j = 0; j < rows; j += POLY_KEYS_AT_ONCE)
        add_rows(r, w, j, rows - j < POLY_KEYS_AT_ONCE ? rows - j : POLY_KEYS_AT_ONCE);
}

void poly_add_chunk(const poly_workspace *r, const poly_job *w, size_t chunk)
{
    poly_load_keys(r, w, chunk);
    poly_add_loaded(r, w, chunk_end(w, chunk) - chunk * POLY_KEYS);
}

void poly_flush(poly_sums *to, const poly_workspace *r, const poly_job *w)
{
    w->kernel->flush(to->v, r->s, w->cols4 * w->table.ld);
}

/* What sums are times in another unit. */
double poly_rescale_factor(const poly_sums *s, double shift)
{
    return s->shift == -INFINITY ? 0 : s->shift == shift ? 1 : pare_exp(s->shift - shift);
}

void poly_set_shift(poly_sums *s, const poly_job *w, double shift)
{
    if (s->shift == shift) return;
    const double fade = poly_rescale_factor(s, shift);
    for (size_t i = 0; s->shift != -INFINITY && i < w->cols4 * w->table.ld; i++) s->v[i] *= fade;
    s->shift = shift;
}

void poly_update_state(float *state, poly_sums *now, const poly_workspace *r, const poly_job *w,
                       double shift, const poly_sums *before)
{
    const poly_rescale f = {poly_rescale_factor(now, shift), poly_rescale_factor(before, shift)};
    for (size_t b = 0; b < w->table.nblocks; b++) {
        const poly_block *const k = &w->table.blocks[b];
        for (size_t c = 0; c < w->cols; c++) {
            const size_t at = c * w->table.ld + k->first;
            const double *const by = c > w->dv ? w->by_moment : w->by;
            w->kernel->settle(state + k->first * w->cols4 + c * k->count, now->v + at, r->s + at,
                              &f, before->v + at, by + k->first, k->count);
        }
    }
    now->shift = shift;
}

void poly_state_from_sums(float *state, const poly_job *w, const double *sums)
{
    for (size_t b = 0; b < w->table.nblocks; b++) {
        const poly_block *const k = &w->table.blocks[b];
        float *to = state + k->first * w->cols4;
        for (size_t c = 0; c < w->cols; c++) {
            const double *const by = c > w->dv ? w->by_moment : w->by;
            for (size_t e = k->first; e < k->first + k->count; e++)
                *to++ = (float)(sums[c * w->table.ld + e] * by[e]);
        }
    }
}
