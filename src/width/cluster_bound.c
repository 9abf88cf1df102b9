/* cluster_bound.c - Theorem 4.4 (Shirzad 2024) as it is true, for the cut that was made.
 *
 * Of the last layer, without a skip around its feed-forward part:
 *
 *     y_i  = Wh h_i + bh,     h_i = W2 relu(W1 z_i + b1) + c2      the input model, z_i pooled rows
 *     y^_i = Wh^ p_i + bh^                                         the cut, p_i its codes
 *
 * Let node i be in cluster a with center c_a, m_a = W2 relu(W1 c_a + b1) + c2, and e_a the code
 * that is 1 at a and 0 elsewhere. Then, for every output
 *
 *     |y_i - y^_i| <= |Wh| |W2||W1| |z_i - c_a| + |Wh^| |p_i - e_a|
 *                     + |Wh m_a + bh - Wh^ e_a - bh^|.
 *
 * Proof. y_i - (Wh m_a + bh) is the first term, because relu moves nothing apart; y^_i -
 * (Wh^ e_a + bh^) is the second; the rest is the third, which is rounding alone in a cut by
 * cut_cluster.c (Wh^ e_a = Wh m_a). []
 *
 * It holds for any clusters; near ones make it small. In the paper's words: the first term is
 * beta^2 eps, and selectors with a margin between the clusters make the second of the same order.
 * The rows z_i and p_i are enclosed, the rounding of m_a is counted. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "prove.h"
#include <math.h>

/* What [W b] (x, 1) may be off by when it is computed, euclidean. */
static pare_ub map_rounding(pare_ub w, const double *b, size_t rows, size_t cols, pare_ub x)
{
    const pare_ub all = pare_ub_add(w, vector_norm(b, rows));
    return product_rounding(cols + 1, all, pare_ub_add(x, pare_ub_exact(1)));
}

static pare_ub row_length(const pare_mat *m, size_t i)
{
    return vector_norm(pare_row(m, i), m->cols);
}

typedef struct meanings {
    pare_mat rows, outputs; /* m_a; Wh m_a + bh */
    pare_ub *off;           /* how far a computed m_a may be from its own, euclidean */
} meanings;

static meanings meanings_of(pare_work *w, const net *n, const net_layer *l, const pare_mat *center)
{
    const pare_mat hidden = layer_hidden(w, l, center);
    meanings m = {.rows = layer_ffn(w, l, center, &hidden),
                  .off = pare_work_alloc(w, center->rows, sizeof *m.off)};
    m.outputs = affine_rows(w, &m.rows, &n->wh, n->bh);
    const pare_ub second = spectral_norm(w, &l->w2);
    for (size_t a = 0; !w->st && a < center->rows; a++) {
        const pare_ub first =
            map_rounding(fro_norm(&l->w1), l->b1, l->w1.rows, l->w1.cols, row_length(center, a));
        const pare_ub last =
            map_rounding(fro_norm(&l->w2), l->c2, l->w2.rows, l->w2.cols, row_length(&hidden, a));
        m.off[a] = pare_ub_fma(second, first, last);
    }
    return m;
}

/* |Wh m_a + bh - Wh^ e_a - bh^| of output c, with what m_a is off by. */
static pare_ub decoding_error(const meanings *m, const net *f, const net *g, size_t a, size_t c)
{
    const double y = pare_row(&m->outputs, a)[c], code = pare_row(&g->wh, c)[a];
    const pare_ub sizes =
        pare_ub_add(pare_ub_exact(fabs(y)),
                    pare_ub_add(pare_ub_exact(fabs(code)), pare_ub_exact(fabs(g->bh[c]))));
    const pare_ub seen =
        pare_ub_fma(pare_ub_exact(0x1p-51), sizes, pare_ub_exact(fabs(y - (code + g->bh[c]))));
    const pare_ub wh = row_length(&f->wh, c);
    const pare_ub rounding = map_rounding(wh, &f->bh[c], 1, f->wh.cols, row_length(&m->rows, a));
    return pare_ub_add(seen, pare_ub_fma(wh, m->off[a], rounding));
}

/* |row - to| for all rows within `rad` of the given one; to NULL: the code of cluster a. */
static pare_ub distance(const pare_mat *m, size_t i, double rad, const double *to, size_t a)
{
    pare_ub sum = pare_ub_exact(0);
    for (size_t j = 0; j < m->cols; j++) {
        const double off = fabs(pare_row(m, i)[j] - (to ? to[j] : j == a ? 1 : 0));
        const pare_ub far = pare_ub_mul(pare_ub_exact(off), pare_ub_exact(1 + 0x1p-51));
        sum = pare_ub_fma(far, far, sum);
    }
    return pare_ub_add(pare_ub_sqrt(sum), pare_ub_exact(rad));
}

pare_ub cluster_gap(pare_work *w, const pare_model *f, const pare_model *g, const net *nf,
                    const net *ng, const activations *pf, const pare_input *in)
{
    double *rad_z = NULL, *rad_p = NULL;
    pare_ub most = pare_ub_exact(0);
    if (nf->nlayers == 0) return pare_ub_inf();
    const net_layer *const l = &nf->layers[nf->nlayers - 1];
    if (l->r2.v || l->act != PARE_ACT_RELU) return pare_ub_inf();
    const clusters c = clusters_of(w, &pf->z[nf->nlayers - 1], ng->wh.cols);
    const pare_mat z = stream_enclosed(w, &rad_z, f, 2 * nf->nlayers - 1, in);
    const pare_mat p = stream_enclosed(w, &rad_p, g, 2 * nf->nlayers, in);
    const meanings m = meanings_of(w, nf, l, &c.center);
    const pare_ub lipschitz = pare_ub_mul(spectral_norm(w, &l->w2), spectral_norm(w, &l->w1));
    for (size_t i = 0; !w->st && i < z.rows; i++) {
        const size_t a = c.label[i];
        const pare_ub radius = distance(&z, i, rad_z[i], pare_row(&c.center, a), 0);
        const pare_ub code = distance(&p, i, rad_p[i], NULL, a);
        for (size_t o = 0; o < nf->wh.rows; o++) {
            const pare_ub rows =
                pare_ub_mul(row_length(&nf->wh, o), pare_ub_mul(lipschitz, radius));
            const pare_ub codes = pare_ub_mul(row_length(&ng->wh, o), code);
            const pare_ub all =
                pare_ub_add(pare_ub_add(rows, codes), decoding_error(&m, nf, ng, a, o));
            most = pare_ub_max(most, all);
        }
    }
    return w->st ? pare_ub_inf() : most;
}
