/* tape_poly.c - heads of kind poly in f32: by polynomials where the plan for the data meets the
 * tolerance and is faster, else by the exact kernel.
 *
 * Each sequence and head is planned anew in every pass, since the weights change; the backward pass
 * plans again, with the same bits, rather than save what a plan consists of. In f64 such a head is
 * exact. */
#include "attention/polynomial.h"
#include "gradient.h"
#include "tape.h"
#include <string.h>

static pare_status make_plan(pare_poly_plan *p, pare_arena *a, const poly_head *h)
{
    pare_poly_opts o = {.tolerance = h->tolerance, .kind = PARE_POLY_AUTO, .degree = -1};
    pare_status st =
        pare_poly_plan_f32(p, a, &h->q, &h->k, h->v.cols, h->scale, h->pattern, &o, h->exec, NULL);
    if (!st && p->kind != PARE_POLY_EXACT && p->degree <= 0) {
        /* A constant may be within the tolerance, but its derivative is 0: queries and keys would
         * learn nothing. */
        o.degree = 1;
        st = pare_poly_plan_f32(p, a, &h->q, &h->k, h->v.cols, h->scale, h->pattern, &o, h->exec,
                                NULL);
    }
    if (st != PARE_ERR_NONFINITE) return st;
    /* The exact kernel gives a nan, which the loss will show. */
    *p = (pare_poly_plan){.kind = PARE_POLY_EXACT, .why = "exact: not all numbers are finite"};
    return PARE_OK;
}

pare_status tape_poly(pare_mat32 *y, pare_poly_report *report, uint8_t *exact, const poly_head *h)
{
    pare_arena *const a = pare_arena_new();
    pare_poly_plan plan;
    pare_status st = a ? make_plan(&plan, a, h) : PARE_ERR_MEMORY;
    *report = (pare_poly_report){.kind = PARE_POLY_EXACT};
    if (!st) memcpy(report->why, plan.why, sizeof report->why);
    if (!st && plan.kind != PARE_POLY_EXACT) {
        const pare_poly_saved kept = {.exact = exact};
        st = pare_poly_attend_f32(y, &kept, report, &plan, &h->q, &h->k, &h->v, h->exec, NULL);
        if (st == PARE_ERR_NONFINITE) { /* among the values */
            *report = (pare_poly_report){.kind = PARE_POLY_EXACT};
            st = PARE_OK;
        }
    }
    pare_arena_free(a);
    return st;
}

pare_status tape_poly_backward(pare_mat32 *dq, pare_mat32 *dk, pare_mat32 *dv, const pare_mat32 *dy,
                               const uint8_t *exact, const poly_head *h)
{
    pare_arena *const a = pare_arena_new();
    pare_poly_plan plan;
    pare_status st = a ? make_plan(&plan, a, h) : PARE_ERR_MEMORY;
    if (!st)
        st = pare_poly_backward_f32(dq, dk, dv, dy, &plan, &h->q, &h->k, &h->v, exact, h->exec,
                                    NULL);
    pare_arena_free(a);
    return st;
}

void tape_poly_alloc(pare_tape *t, sublayer *s)
{
    attn_saved *const k = &s->attn_saved;
    k->poly = NULL;
    if (s->attn->kind != PARE_ATTN_POLY || k->q.t != PARE_F32) return;
    k->poly = tape_alloc(t, s->attn->nheads * t->layout.n, sizeof *k->poly);
    k->exact = tape_alloc(t, s->attn->nheads * k->q.n, sizeof *k->exact);
}

void tape_poly_count(pare_tape *t, const sublayer *s)
{
    const attn_saved *const k = &s->attn_saved;
    pare_poly_use *const use = &t->poly_use[s->block];
    if (t->work.st || !k->poly) return;
    for (size_t i = 0; i < s->attn->nheads * t->layout.n; i++) {
        const bool exact = k->poly[i].kind == PARE_POLY_EXACT;
        use->exact += exact;
        use->polynomial += !exact;
    }
    memcpy(use->why, k->poly[0].why, sizeof use->why);
}

const pare_poly_use *pare_tape_poly_use(const pare_tape *t, size_t block)
{
    PARE_ASSERT(block < t->m->nblocks);
    return &t->poly_use[block];
}
