/* Heads of kind poly in f32: by polynomials where the plan of the data meets the tolerance and is
 * faster, by the exact kernel else. Each sequence and head is planned anew in every pass, since the
 * weights move; the way back plans again, to the same bits, rather than keep what a plan is made
 * of. In f64 such a head is exact. */
#include "tape.h"
#include <string.h>

/* A constant may be within the tolerance, but has no slope: queries and keys would learn nothing.
 * So the degree is at least 1. */
static pare_status plan_of(pare_poly_plan *p, pare_arena *a, const poly_head *h)
{
    pare_poly_opts o = {.tolerance = h->tolerance, .kind = PARE_POLY_AUTO, .degree = -1};
    pare_status st =
        pare_poly_plan_f32(p, a, &h->q, &h->k, h->v.cols, h->scale, h->pattern, &o, h->exec, NULL);
    if (st || p->kind == PARE_POLY_EXACT || p->degree > 0) return st;
    o.degree = 1;
    return pare_poly_plan_f32(p, a, &h->q, &h->k, h->v.cols, h->scale, h->pattern, &o, h->exec,
                              NULL);
}

/* Queries that are not finite are the exact kernel's, whose nan the loss will show. */
static pare_status planned(pare_poly_plan *p, pare_arena *a, const poly_head *h)
{
    const pare_status st = plan_of(p, a, h);
    if (st != PARE_ERR_NONFINITE) return st;
    *p = (pare_poly_plan){.kind = PARE_POLY_EXACT, .why = "exact: not all numbers are finite"};
    return PARE_OK;
}

pare_status tape_poly(pare_mat32 *y, pare_poly_report *way, uint8_t *exact, const poly_head *h)
{
    pare_arena *const a = pare_arena_new();
    pare_poly_plan plan;
    pare_status st = a ? planned(&plan, a, h) : PARE_ERR_MEMORY;
    *way = (pare_poly_report){.kind = PARE_POLY_EXACT};
    if (!st) memcpy(way->why, plan.why, sizeof way->why);
    if (!st && plan.kind != PARE_POLY_EXACT) {
        const pare_poly_kept kept = {.exact = exact};
        st = pare_poly_attend_f32(y, &kept, way, &plan, &h->q, &h->k, &h->v, h->exec, NULL);
        if (st == PARE_ERR_NONFINITE) { /* among the values */
            *way = (pare_poly_report){.kind = PARE_POLY_EXACT};
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
    pare_status st = a ? planned(&plan, a, h) : PARE_ERR_MEMORY;
    if (!st)
        st = pare_poly_backward_f32(dq, dk, dv, dy, &plan, &h->q, &h->k, &h->v, exact, h->exec,
                                    NULL);
    pare_arena_free(a);
    return st;
}

bool tape_poly_alloc(pare_tape *t, sublayer *s)
{
    attn_saved *const k = &s->attn_saved;
    k->way = NULL;
    if (s->attn->kind != PARE_ATTN_POLY || k->q.t != PARE_F32) return true;
    k->way = stack_alloc(&t->stack, s->attn->nheads * t->batch, sizeof *k->way);
    k->exact = stack_alloc(&t->stack, s->attn->nheads * k->q.n, sizeof *k->exact);
    return k->way && k->exact;
}

void tape_poly_count(pare_tape *t, const sublayer *s)
{
    const attn_saved *const k = &s->attn_saved;
    pare_poly_use *const use = &t->use[s->block];
    if (!k->way) return;
    for (size_t i = 0; i < s->attn->nheads * t->batch; i++) {
        const bool exact = k->way[i].kind == PARE_POLY_EXACT;
        use->exact += exact;
        use->polynomial += !exact;
    }
    memcpy(use->why, k->way[0].why, sizeof use->why);
}

const pare_poly_use *pare_tape_poly_use(const pare_tape *t, size_t block)
{
    PARE_ASSERT(block < t->m->nblocks);
    return &t->use[block];
}
