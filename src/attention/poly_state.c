/* poly_state.c - the state of polynomial attention: sums over keys of weight x monomials x
 * (values, 1, ...).
 *
 * Sums are in f32 over POLY_KEYS keys (and a few such blocks), then in f64: their error does not
 * grow with n. Which keys are summed together depends on the sizes alone. */
#include "base/simd.h"
#include "poly.h"
#include "linalg/elementary.h"
#include <pare/base.h>
#include <math.h>
#include <string.h>

poly_workspace poly_workspace_new(const poly_job *w, layout *l)
{
    poly_workspace r;
    r.phi = layout_take_zeroed(l, POLY_KEYS * w->table.ldphi);
    r.u = layout_take_zeroed(l, POLY_KEYS * w->cols4);
    r.x = layout_take_zeroed(l, POLY_KEYS * w->d);
    r.s = layout_take_zeroed(l, w->cols4 * w->table.ld);
    return r;
}

void poly_weighted_values(float *u, const poly_job *w, size_t first, size_t rows, bool state)
{
    const size_t power = w->plan->degree ? w->plan->degree - 1 : 1, dv4 = w->dv / 4 * 4;
    for (size_t j = first; j < first + rows; j++, u += w->cols4) {
        const float *const v = w->v->v + j * w->v->ld;
        const float f = state && w->heavy && w->heavy[j] ? 0 : w->w[j];
        for (size_t c = 0; c < dv4; c += 4)
            *(four *)(u + c) =
                (*(const four *)(v + c) - *(const four *)(w->center + c)) * (four){f, f, f, f};
        for (size_t c = dv4; c < w->dv; c++) u[c] = (v[c] - w->center[c]) * f;
        u[w->dv] = f;
        if (w->moment)
            u[w->dv + 1] = state ? f * (float)poly_power((double)key_norm(w, j), power) : 0;
        for (size_t c = w->cols; c < w->cols4; c++) u[c] = 0;
    }
}

void poly_load_keys(const poly_workspace *r, const poly_job *w, size_t chunk)
{
    const size_t first = chunk * POLY_KEYS, rows = chunk_end(w, chunk) - first;
    poly_centered_rows(r->x, &w->keys, first, rows);
    poly_weighted_values(r->u, w, first, rows, true);
}

/* A few keys at a time: their monomials stay in the first-level cache while all sums over them are
 * taken. */
void poly_add_loaded(const poly_workspace *r, const poly_job *w, size_t rows)
{
    const poly_table *const t = &w->table;
    for (size_t first = 0, some; first < rows; first += some) {
        some = rows - first < POLY_KEYS_AT_ONCE ? rows - first : POLY_KEYS_AT_ONCE;
        const float *const x = r->x + first * w->d;
        const poly_keys keys = {r->u + first * w->cols4, w->cols4, t->ldphi, w->d, some, w->cols4};
        if (w->kernel->products && t->factors.factor) {
            w->kernel->products(r->phi, t->ldphi, &t->factors, x, w->d, w->d, some);
        } else {
            for (size_t j = 0; j < some; j++) {
                r->phi[j * t->ldphi] = 1;
                memcpy(r->phi + j * t->ldphi + 1, x + j * w->d, t->copied * sizeof *x);
            }
            w->kernel->rows(r->phi, t->ldphi, t->whole, t->nstored, x, w->d, some);
        }
        w->kernel->accumulate(r->s, t->ld, &keys, r->phi, NULL, t->stored);
        for (const poly_run *k = t->whole + t->nstored; k < t->whole + t->nwhole; k++)
            w->kernel->accumulate(r->s + k->to, t->ld, &keys, r->phi + k->from, x + k->var,
                                  k->count);
    }
}

void poly_flush(poly_sums *to, const poly_workspace *r, const poly_job *w)
{
    w->kernel->flush(to->v, r->s, w->cols4 * w->table.ld);
}

double poly_rescale_factor(const poly_sums *s, double shift)
{
    return s->shift == -INFINITY ? 0 : s->shift == shift ? 1 : pare_exp(s->shift - shift);
}

void poly_set_shift(poly_sums *s, const poly_job *w, double shift)
{
    if (s->shift == shift) return;
    const double rescale = poly_rescale_factor(s, shift);
    for (size_t i = 0; s->shift != -INFINITY && i < w->cols4 * w->table.ld; i++) s->v[i] *= rescale;
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
            const double *const factor = c > w->dv ? w->moment_factor : w->factor;
            w->kernel->update_state(state + k->first * w->cols4 + c * k->count, now->v + at,
                                    r->s + at, &f, before->v + at, factor + k->first, k->count);
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
            const double *const factor = c > w->dv ? w->moment_factor : w->factor;
            for (size_t e = k->first; e < k->first + k->count; e++)
                *to++ = (float)(sums[c * w->table.ld + e] * factor[e]);
        }
    }
}
