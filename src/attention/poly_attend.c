/* poly_attend.c - polynomial attention of the f32 engine: executes a plan, with a bound for every
 * row. */
#include "attend_f32.h"
#include "poly.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Every row by the exact kernel of the same vectors. */
static pare_status attend_exact(pare_mat32 *y, const pare_poly_saved *saved,
                                pare_poly_report *report, const poly_kernel *kernel,
                                const pare_poly_plan *plan, const pare_mat32 *q,
                                const pare_mat32 *k, const pare_mat32 *v, const pare_exec *exec,
                                pare_err *err)
{
    const pare_pattern p = {.kind = plan->causal ? PARE_CAUSAL : PARE_FULL};
    const attend_kernels kernels = {.name = kernel->name, .tile = kernel->tile};
    const pare_saved32 save_lse = {.lse = saved ? saved->lse : NULL};
    report->rows_exact = q->rows;
    for (size_t i = 0; saved && i < q->rows; i++) {
        if (saved->bound) saved->bound[i] = 0;
        if (saved->exact) saved->exact[i] = 1;
    }
    return attend_save_f32_with(&kernels, y, &save_lse, q, k, v, (float)plan->scale, &p, NULL, NULL,
                                exec, err);
}

pare_status poly_attend_with(const poly_kernel *kernel, pare_mat32 *y, const pare_poly_saved *saved,
                             pare_poly_report *report, const pare_poly_plan *plan,
                             const pare_mat32 *q, const pare_mat32 *k, const pare_mat32 *v,
                             const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(q->rows == plan->n && k->rows == plan->n && v->rows == plan->n);
    PARE_ASSERT(q->cols == plan->d && k->cols == plan->d && v->cols == plan->dv);
    PARE_ASSERT(y->rows == plan->n && y->cols == plan->dv);
    pare_poly_report unread, *const to = report ? report : &unread;
    *to = (pare_poly_report){.kind = plan->kind,
                             .degree = plan->degree,
                             .rows = plan->n,
                             .features = plan->table.count,
                             .worst_case =
                                 plan->kind == PARE_POLY_EXACT ? pare_ub_exact(0) : plan->tv};
    memcpy(to->why, plan->why, sizeof to->why);
    if (plan->kind == PARE_POLY_EXACT || plan->n == 0)
        return attend_exact(y, saved, to, kernel, plan, q, k, v, exec, err);
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    poly_job w = {.plan = plan,
                  .kernel = kernel,
                  .q = q,
                  .k = k,
                  .v = v,
                  .y = *y,
                  .lse = saved ? saved->lse : NULL,
                  .n = plan->n,
                  .rows = plan->n,
                  .d = plan->d,
                  .dv = plan->dv};
    bool fit;
    pare_status st = poly_job_new(&w, a, &fit, exec, err);
    const bool polynomial = !st && fit;
    if (polynomial) st = poly_scan(&w, a, exec, err);
    /* log sum_j e^(scale q.k_j) = log(sum of weights) + their unit + scale q.kc, of all rows: the
     * exact kernel overwrites its own. */
    for (size_t i = 0; polynomial && !st && w.lse && i < w.n; i++) {
        double s = log((double)w.sum[i]) + w.shift[i / POLY_KEYS];
        for (size_t c = 0; c < w.d; c++)
            s += plan->scale * (double)q->v[i * q->ld + c] * plan->kc[c];
        w.lse[i] = (float)s;
    }
    if (polynomial && !st) st = poly_fallback(&w, saved ? saved->exact : NULL, to, a, exec, err);
    if (polynomial && !st && saved && saved->bound)
        memcpy(saved->bound, w.bound, w.n * sizeof *w.bound);
    pare_arena_free(a);
    if (st || fit) return st;
    to->kind = PARE_POLY_EXACT;
    snprintf(to->why, sizeof to->why,
             "exact: values are too large or too small for sums in f32, or weights too unequal");
    return attend_exact(y, saved, to, kernel, plan, q, k, v, exec, err);
}

pare_status pare_poly_attend_f32(pare_mat32 *y, const pare_poly_saved *saved,
                                 pare_poly_report *report, const pare_poly_plan *plan,
                                 const pare_mat32 *q, const pare_mat32 *k, const pare_mat32 *v,
                                 const pare_exec *exec, pare_err *err)
{
    poly_kernel kernels[3];
    poly_kernels(kernels);
    return poly_attend_with(&kernels[0], y, saved, report, plan, q, k, v, exec, err);
}

pare_status pare_poly_f32(pare_mat32 *y, pare_poly_report *report, const pare_attention_args32 *x,
                          const pare_poly_opts *opts, const pare_exec *exec, pare_err *err)
{
    const pare_mat32 *const q = x->q, *const k = x->k, *const v = x->v;
    const pare_pattern *const p = x->pattern;
    pare_poly_plan plan;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st = pare_poly_plan_f32(&plan, a, q, k, v->cols, x->scale, p, opts, exec, err);
    if (!st && (p->kind == PARE_FULL || p->kind == PARE_CAUSAL)) {
        st = pare_poly_attend_f32(y, NULL, report, &plan, q, k, v, exec, err);
    } else if (!st) {
        *report =
            (pare_poly_report){.kind = PARE_POLY_EXACT, .rows = q->rows, .rows_exact = q->rows};
        memcpy(report->why, plan.why, sizeof report->why);
        st = pare_attend_f32(y, x, exec, err);
    }
    pare_arena_free(a);
    return st;
}
