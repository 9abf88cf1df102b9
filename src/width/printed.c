/* What Shirzad 2024 prints of Theorems 3.3 and 4.4, for a certificate's list `paper`: formulas of
 * which the errata say what is wrong, with this model's numbers. Nothing is concluded from them.
 *   3.3  C.1, a step of the proof: scores of rows that moved by e are off by
 *        2 sqrt(alpha) beta e + (beta e)^2 (a beta is missing)
 *   4.4  C.5, the selector: a bias of -3 |c|^2 at centre c (right is -3)
 * The last lines of both proofs are not here: what they print is not known to us in full. */
#include "prove.h"
#include <math.h>

#define UNSEEN 1e-9 /* of the rows: rounding alone is not the same on every machine */

static double longest(const pare_mat *a, const pare_mat *minus)
{
    double most = 0;
    for (size_t i = 0; i < a->rows; i++) {
        double sum = 0;
        for (size_t j = 0; j < a->cols; j++) {
            const double x = pare_row(a, i)[j] - (minus ? pare_row(minus, i)[j] : 0);
            sum += x * x;
        }
        most = fmax(most, sqrt(sum));
    }
    return most;
}

static double scores_step(work *w, const net_layer *l, const pare_mat *h, const pare_mat *moved)
{
    const double root = longest(h, NULL), e = longest(h, moved);
    double beta = 0;
    for (size_t i = 0; i < l->nheads; i++)
        beta = fmax(beta, fmax(sharp_norm(w, &l->heads[i].wq).v, sharp_norm(w, &l->heads[i].wk).v));
    return e > UNSEEN * root ? 2 * root * beta * e + beta * e * beta * e : 0;
}

static double selector_bias(work *w, const pare_mat *z, size_t k)
{
    const clusters c = clusters_of(w, z, k);
    const double most = w->st ? 0 : longest(&c.centre, NULL);
    return -3 * most * most;
}

void printed_formulas(work *w, pare_cert *cert, pare_arena *keep, pare_width_method method,
                      const net *f, const net *g, const points *pf, const points *pg)
{
    const bool jl = method == PARE_WIDTH_JL;
    if (w->st || (!jl && method != PARE_WIDTH_CLUSTER)) return;
    for (size_t l = 0; !w->st && l < f->nlayers; l++) {
        const pare_mark mark = pare_arena_mark(w->a);
        const double value = jl ? scores_step(w, &f->layers[l], &pf->h[l], &pg->h[l])
                                : selector_bias(w, &pf->z[l], g->layers[l].w1.rows);
        if (!w->st)
            w->st = pare_cert_add(cert, keep,
                                  (pare_claim){.kind = jl ? PARE_PAPER_SCORES : PARE_PAPER_SELECTOR,
                                               .p = {(double)l},
                                               .value = value},
                                  w->err);
        pare_arena_reset(w->a, mark);
    }
}
