/* paper_bound.c - the printed bound of Theorem D.1 of Rank collapse 2025, as it stands there:
 *     eps_l = 2 eta phi0 (1 + H eta)^l      g(e) = 2 (exp(e) - 1)     delta = max_l 2 g(2 H eps_l)
 *     C = max_l 3 eta (eps_l^2 + 1)         bound = (1 + C + ... + C^L) delta
 *     claim = 2 A / L,  A = eta max(H L, phi0)
 * It is not sound, for its own network or any other (docs/errata.md): reports show it under
 * "paper_not_sound" and nothing is concluded from it. */
#include "linalg/bounds.h"
#include "depth_bounds.h"
#include <math.h>

depth_paper depth_paper_of(double eta, double phi0, size_t heads, size_t layers)
{
    const double h = (double)heads, l = (double)layers;
    depth_paper p = {.eta = eta, .phi0 = phi0};
    p.eps = 2 * eta * phi0 * pow(1 + h * eta, l); /* eps_l grows with l */
    p.delta = 4 * (exp(fmin(2 * h * p.eps, 700)) - 1);
    p.k = 3 * eta * (p.eps * p.eps + 1);
    p.a = eta * fmax(h * l, phi0);
    p.holds = eta <= 1 && p.eps < 1 && p.k < 0.5 && 2 * h * p.eps < 0.5;
    double sum = 0;
    for (size_t i = 0; i <= layers; i++) sum = sum * p.k + 1;
    p.bound = sum * p.delta;
    p.claim = layers ? 2 * p.a / l : 0;
    return p;
}

/* Largest entry of Wo_h Wv_h: Rank collapse 2025 has one matrix of values per head. */
static double largest_value(const pare_attn *at, const pare_head *h)
{
    double most = 0;
    for (size_t i = 0; i < at->dout; i++)
        for (size_t j = 0; j < at->din; j++) {
            double sum = 0;
            for (size_t c = 0; c < h->dv; c++) {
                const double o = pare_has(&at->wo)
                                     ? pare_weight_at(&at->wo, i * at->wo.cols + h->o + c)
                                     : (double)(i == h->o + c);
                if (o != 0) sum += o * pare_weight_at(&at->wv, (h->v + c) * at->din + j);
            }
            most = fmax(most, fabs(sum));
        }
    return most;
}

depth_paper depth_paper_model(const pare_model *f, double phi0)
{
    size_t heads = 0;
    double eta = 0;
    for (size_t b = 0; b < f->nblocks; b++) {
        const pare_attn *const at = &f->blocks[b].attn;
        if (at->nheads > heads) heads = at->nheads;
        if (!pare_attn_is_softmax(at->kind)) continue;
        eta = fmax(eta, fmax(pare_norm_max(&at->wq).v, pare_norm_max(&at->wk).v));
        for (size_t h = 0; h < at->nheads; h++) eta = fmax(eta, largest_value(at, &at->heads[h]));
    }
    return depth_paper_of(eta, phi0, heads, f->nblocks);
}
