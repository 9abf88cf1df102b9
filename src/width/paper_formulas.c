/* paper_formulas.c - what Shirzad 2024 prints of Theorems 3.3, 4.2 and 4.4, for a certificate's
 * list `paper`, with this model's numbers (a: alpha, b: beta). Nothing is concluded from them;
 * what is wrong with each: docs/errata.md.
 *   3.3  e' = c1 e + c2 eps,  c1 = b^3 + 8 b a + 4 b^2 sqrt(a),
 *                             c2 = 4 b^2 (a sqrt(a) + 2 a + sqrt(a))
 *   3.3  C.1, a step of the proof: scores of rows that moved by e are off by
 *        2 sqrt(a) b e + (b e)^2                                       (a factor b is missing)
 *   4.2  C.3, last line: e' = b eps + b^3 (1 + (8 a + b sqrt(a))) e
 *   4.4  C.5, the selector: a bias of -3 |c|^2 at center c             (right is -3) */
#include "linalg/matrix.h"
#include "prove.h"
#include <math.h>

#define ROUNDING 1e-9 /* of the rows: rounding alone is not the same on every machine */

double pare_jl_printed(double beta, double root_alpha, size_t layers, double eps)
{
    const double b = beta, s = root_alpha, a = s * s;
    const double c1 = b * b * b + 8 * b * a + 4 * b * b * s;
    const double c2 = 4 * b * b * (a * s + 2 * a + s);
    double e = 0;
    for (size_t l = 0; l < layers; l++) e = c1 * e + c2 * eps;
    return e;
}

double pare_lowrank_printed(double beta, double root_alpha, size_t layers, double eps)
{
    const double b = beta, s = root_alpha;
    double e = eps;
    for (size_t l = 0; l < layers; l++) e = b * eps + b * b * b * (1 + (8 * s * s + b * s)) * e;
    return e;
}

/* Theorem 3.3 is about plain nets; its eps is the largest distortion of a product as drawn. */
static void theorem_3_3(pare_work *w, pare_cert *cert, pare_arena *keep, const net *f,
                        const activations *pf)
{
    double eps = -1, root = 0;
    for (size_t i = 0; i < cert->nclaims; i++)
        if (cert->claims[i].kind == PARE_JL_DISTORTION) eps = fmax(eps, cert->claims[i].value);
    if (eps < 0 || lowrank_refuses(f)) return;
    for (size_t l = 0; l < f->nlayers; l++) root = fmax(root, max_row_norm(&pf->h[l], NULL));
    const double beta = largest_map_norm(w, f).v;
    if (w->st) return;
    if (!(eps > ROUNDING)) eps = 0;
    w->st = pare_cert_add(
        cert, keep,
        (pare_claim){.kind = PARE_PAPER_JL, .value = pare_jl_printed(beta, root, f->nlayers, eps)},
        w->err);
}

void add_paper_formulas(pare_work *w, pare_cert *cert, pare_arena *keep, pare_width_method method,
                        const net *f, const net *g, const activations *pf, const activations *pg)
{
    const bool jl = method == PARE_WIDTH_JL;
    if (w->st || (!jl && method != PARE_WIDTH_CLUSTER)) return;
    if (jl) theorem_3_3(w, cert, keep, f, pf);
    for (size_t l = 0; !w->st && l < f->nlayers; l++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        double value;
        if (jl) {
            const net_layer *const k = &f->layers[l];
            const double root = max_row_norm(&pf->h[l], NULL);
            const double e = max_row_norm(&pf->h[l], &pg->h[l]);
            double beta = 0;
            for (size_t i = 0; i < k->nheads; i++)
                beta = fmax(beta, fmax(spectral_norm(w, &k->heads[i].wq).v,
                                       spectral_norm(w, &k->heads[i].wk).v));
            value = e > ROUNDING * root ? 2 * root * beta * e + beta * e * beta * e : 0;
        } else {
            const clusters c = clusters_of(w, &pf->z[l], g->layers[l].w1.rows);
            const double norm = w->st ? 0 : max_row_norm(&c.center, NULL);
            value = -3 * norm * norm;
        }
        if (!w->st)
            w->st = pare_cert_add(cert, keep,
                                  (pare_claim){.kind = jl ? PARE_PAPER_SCORES : PARE_PAPER_SELECTOR,
                                               .p = {(double)l},
                                               .value = value},
                                  w->err);
        pare_arena_reset(w->arena, mark);
    }
}
