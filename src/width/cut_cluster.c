/* cut_cluster.c - clusters of nodes instead of dimensions (Theorem 4.4 of Shirzad 2024, repaired):
 * ReLU nets with one head and no skips.
 *
 * If the pooled values z of every layer lie within eps |c| of at most d centers c_a that are nearly
 * orthogonal, a hidden layer of d units can tell the cluster of a node, and the next layer needs
 * only that. With U the decoder of the stream and Wo Wv U = Q R,
 *
 *     Wv^ = R                  keeps z^.z^' = z.z' (the printed Wv^ gives squares)
 *     unit a, rule `paper`     4 c^_a / |c_a|^2, bias -3 (printed: -3 |c|^2, which selects nothing)
 *     unit a, rule `margin`    c^_a / (v - t), bias -t / (v - t), t the largest value c^_a takes
 *                              outside the cluster, v its mean inside: refused when some node
 *                              outside is not below all nodes inside
 *     W2^ = I
 *     U'  = [W2 relu(W1 c_a + b1) + c2]_a      what the code of cluster a means in the stream
 *
 * The codes are one-hot up to O(eps), and so are the outputs. Hypothesis as Shirzad 2024 has it:
 * sep = max c_a.c_b / (gamma_1^2 / 2) < 1; `paper` really needs c_a.c_b < 3/4 |c_a|^2.
 *
 * Starts: `rank`, the subspace of h_0; or `jl`, random maps for the first layer's queries, keys and
 * values, the best of some draws, judged on every pair of values. */
#include "linalg/matrix.h"
#include "cuts.h"
#include "stored_weights.h"
#include <math.h>
#include <string.h>

enum {
    LLOYD = 25,     /* iterations */
    PAIR_ROWS = 512 /* of a Gram matrix at a time */
};

static double distance2(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

/* ---- finding clusters ------------------------------------------------------------------------ */

/* Farthest first from row 0, until k are found or the farthest row is suddenly near (a tenth of the
 * distance before): what is left then is the width of the clusters, and splitting one would make
 * two that cannot be told apart. */
static void seed_centers(clusters *c, const pare_mat *z, size_t k, double *far)
{
    size_t next = 0;
    double before = 0;
    for (size_t i = 0; i < z->rows; i++) far[i] = INFINITY;
    while (c->k < k) {
        double *const at = pare_row_mut(&c->center, c->k++);
        memcpy(at, pare_row(z, next), z->cols * sizeof(double));
        next = 0;
        for (size_t i = 0; i < z->rows; i++) {
            far[i] = fmin(far[i], distance2(pare_row(z, i), at, z->cols));
            if (far[i] > far[next]) next = i;
        }
        if (!(far[next] > 0.01 * before)) return; /* squares */
        before = far[next];
    }
}

/* Whether any label changed. */
static bool assign_rows(clusters *c, const pare_mat *z)
{
    bool changed = false;
    for (size_t i = 0; i < z->rows; i++) {
        size_t best = 0;
        double least = INFINITY;
        for (size_t a = 0; a < c->k; a++) {
            const double far = distance2(pare_row(z, i), pare_row(&c->center, a), z->cols);
            if (far < least) {
                least = far;
                best = a;
            }
        }
        changed = changed || c->label[i] != best;
        c->label[i] = best;
    }
    return changed;
}

static void move_centers(clusters *c, const pare_mat *z, size_t *count, double *sum)
{
    memset(count, 0, c->k * sizeof *count);
    memset(sum, 0, c->k * z->cols * sizeof *sum);
    for (size_t i = 0; i < z->rows; i++) {
        count[c->label[i]]++;
        for (size_t j = 0; j < z->cols; j++) sum[c->label[i] * z->cols + j] += pare_row(z, i)[j];
    }
    for (size_t a = 0; a < c->k; a++)
        for (size_t j = 0; count[a] > 0 && j < z->cols; j++)
            pare_row_mut(&c->center, a)[j] = sum[a * z->cols + j] / (double)count[a];
}

clusters clusters_of(pare_work *w, const pare_mat *z, size_t k)
{
    clusters c = {.center = mat_zeros(w, k, z->cols),
                  .label = pare_work_alloc(w, z->rows, sizeof *c.label)};
    double *const far = vec_zeros(w, z->rows), *const sum = vec_zeros(w, k * z->cols);
    size_t *const count = pare_work_alloc(w, k, sizeof *count);
    size_t *const label = pare_work_alloc(w, k, sizeof *label);
    size_t kept = 0;
    if (w->st) return c;
    seed_centers(&c, z, k, far);
    for (size_t i = 0; i < z->rows; i++) c.label[i] = SIZE_MAX;
    for (int t = 0; t < LLOYD && assign_rows(&c, z); t++) move_centers(&c, z, count, sum);
    for (size_t a = 0; a < c.k; a++) { /* clusters that lost their last node are dropped */
        label[a] = kept;
        if (count[a] == 0) continue;
        memmove(pare_row_mut(&c.center, kept), pare_row(&c.center, a), z->cols * sizeof(double));
        kept++;
    }
    c.k = c.center.rows = kept;
    for (size_t i = 0; i < z->rows; i++) c.label[i] = label[c.label[i]];
    return c;
}

cluster_facts clusters_check(pare_work *w, const pare_mat *z, const clusters *c)
{
    cluster_facts f = {.k = c->k, .least = INFINITY, .sep = -INFINITY};
    if (w->st) return f;
    for (size_t i = 0; i < z->rows; i++) {
        const double *const at = pare_row(&c->center, c->label[i]);
        const double size = sqrt(vec_dot(at, at, z->cols));
        f.eps = fmax(f.eps, sqrt(distance2(pare_row(z, i), at, z->cols)) / size);
        f.least = fmin(f.least, size);
        f.most = fmax(f.most, size);
    }
    for (size_t a = 0; a < c->k; a++)
        for (size_t b = 0; b < a; b++)
            f.sep = fmax(f.sep, vec_dot(pare_row(&c->center, a), pare_row(&c->center, b), z->cols));
    f.sep /= f.least * f.least / 2;
    return f;
}

/* ---- the selector --------------------------------------------------------------------------- */

static void paper_unit(pare_work *w, net_layer *out, const pare_mat *p, const clusters *c, size_t a,
                       size_t layer)
{
    const double *const ca = pare_row(&c->center, a);
    const double square = vec_dot(ca, ca, c->center.cols);
    size_t node = 0;
    while (c->label[node] != a) node++;
    for (size_t b = 0; b < c->k; b++) {
        const double other = vec_dot(ca, pare_row(&c->center, b), c->center.cols);
        if (b != a && !(other < 0.75 * square)) {
            pare_work_fail(
                w, PARE_ERR_INPUT,
                "block %zu: clusters %zu and %zu are not separable: c.c' = %.4g, below %.4g "
                "(3/4 |c|^2) is needed",
                layer, a, b, other, 0.75 * square);
            return;
        }
    }
    for (size_t j = 0; j < p->cols; j++)
        pare_row_mut(&out->w1, a)[j] = 4 * pare_row(p, node)[j] / square;
    out->b1[a] = -3;
}

static void margin_unit(pare_work *w, net_layer *out, const pare_mat *p, const clusters *c,
                        size_t a, size_t layer)
{
    double *const row = pare_row_mut(&out->w1, a); /* first the mean, then scaled */
    double in = INFINITY, outside = -INFINITY, mean = 0;
    size_t count = 0;
    for (size_t i = 0; i < p->rows; i++) {
        if (c->label[i] != a) continue;
        count++;
        for (size_t j = 0; j < p->cols; j++) row[j] += pare_row(p, i)[j];
    }
    for (size_t j = 0; j < p->cols; j++) row[j] /= (double)count;
    for (size_t i = 0; i < p->rows; i++) {
        const double v = vec_dot(row, pare_row(p, i), p->cols);
        if (c->label[i] == a) {
            in = fmin(in, v);
            mean += v / (double)count;
        } else
            outside = fmax(outside, v);
    }
    if (!(outside < in)) {
        pare_work_fail(
            w, PARE_ERR_INPUT,
            "block %zu: cluster %zu of %zu nodes is not separable: a node outside has %.4g, one "
            "inside %.4g",
            layer, a, count, outside, in);
        return;
    }
    const double t = outside > 0 ? outside : 0, scale = mean - t;
    for (size_t j = 0; j < p->cols; j++) row[j] /= scale;
    out->b1[a] = -t / scale;
}

/* ---- values --------------------------------------------------------------------------------- */

/* Random values: the best of some draws, judged by the largest |v^.v^' - v.v'| of all pairs, which
 * is returned. */
static double draw_values(pare_work *w, net_head *out, const pare_mat *values, const pare_mat *h,
                          const pare_width_opts *o)
{
    size_t kinds;
    const size_t *const which = jl_representatives(w, &kinds, h);
    const pare_mat rows = mat_take_rows(w, h, which, kinds),
                   v = affine_rows(w, &rows, values, NULL);
    pare_rng rng = pare_rng_at(o->seed, 1);
    pare_mat best = mat_zeros(w, o->dim, values->rows);
    double least = INFINITY;
    for (size_t t = 0; !w->st && t < o->trials; t++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const pare_mat m = jl_map(w, o->dim, values->rows, &rng), mv = affine_rows(w, &v, &m, NULL);
        double off = 0;
        for (size_t i = 0; !w->st && i < v.rows; i += PAIR_ROWS) {
            const pare_mark here = pare_arena_mark(w->arena);
            const size_t n = v.rows - i < PAIR_ROWS ? v.rows - i : PAIR_ROWS;
            const pare_mat vi = pare_mat_part(&v, i, 0, n, v.cols);
            const pare_mat mvi = pare_mat_part(&mv, i, 0, n, mv.cols);
            pare_mat gap = mat_mul(w, &vi, false, &v, true);
            if (w->st) break;
            pare_gemm(&gap, -1, &mvi, false, &mv, true, 1);
            off = fmax(off, pare_mat_max_abs(&gap));
            pare_arena_reset(w->arena, here);
        }
        if (w->st) break;
        if (off < least) {
            least = off;
            memcpy(best.v, m.v, m.rows * m.cols * sizeof(double));
        }
        pare_arena_reset(w->arena, mark);
    }
    out->wv = mat_mul(w, &best, false, values, false);
    out->bv = vec_zeros(w, o->dim);
    out->wo = mat_identity(w, o->dim);
    return least;
}

/* ---- the cut -------------------------------------------------------------------------------- */

static void check_layer(pare_work *w, const net_layer *l, size_t i)
{
    const net_head *const hd = &l->heads[0];
    const char *what = NULL;
    if (l->r1.v || l->r2.v) what = "skip connections";
    if (l->act != PARE_ACT_RELU) what = "activations other than ReLU";
    if (l->nheads != 1) what = "layers of more than one head";
    if (!what && (!all_zero(hd->bv, hd->wv.rows) || !all_zero(l->c1, hd->wo.rows)))
        what = "biases on values or outputs of attention";
    if (what)
        pare_work_fail(
            w, PARE_ERR_INPUT,
            "the method cluster works only for models without %s; block %zu has them; try auto",
            what, i);
}

/* The new head on a stream h^ with h ~ U h^; of random maps, *values is what they do to products of
 * values. */
static net_head head_for(pare_work *w, const net_head *hd, const pare_mat *u, const pare_mat *h,
                         const pare_graph *g, bool random, const pare_width_opts *o, double *values)
{
    const basis b = {*u, vec_zeros(w, u->rows)};
    const pare_mat ov = mat_mul3(w, &hd->wo, false, &hd->wv, u, false);
    net_head out = w->st ? *hd : qk_exact(w, hd, &b);
    if (random && !w->st && o->dim < out.wq.rows) {
        jl_draws draws = {.trials = o->trials, .rng = pare_rng_at(o->seed, 0)};
        out = jl_search(w, &out, h, g, o->dim, &draws);
    }
    *values = 0;
    if (random) {
        *values = draw_values(w, &out, &ov, h, o);
        return out;
    }
    /* R^T R = (Wo Wv U)^T (Wo Wv U): products of values are kept. */
    const bool tall = ov.rows >= ov.cols;
    pare_mat q = mat_zeros(w, ov.rows, ov.cols), r = mat_zeros(w, ov.cols, ov.cols);
    if (!w->st && tall) w->st = pare_qr(&q, &r, &ov, w->arena, w->err);
    out.wv = tall ? r : ov;
    out.bv = vec_zeros(w, out.wv.rows);
    out.wo = mat_identity(w, out.wv.rows);
    return out;
}

/* Layer i on the stream h^ with decoder U; both are those of the next layer afterwards. */
static net_layer layer_for(pare_work *w, const net_layer *l, pare_mat *u, pare_mat *h,
                           const activations *p, size_t i, const pare_width_opts *o,
                           cluster_facts *f)
{
    net_layer out = {.nheads = 1, .act = PARE_ACT_RELU};
    double values;
    out.heads = pare_work_alloc(w, 1, sizeof *out.heads);
    if (w->st) return out;
    const bool random = i == 0 && o->start == PARE_START_JL;
    out.heads[0] = head_for(w, &l->heads[0], u, h, &p->graph, random, o, &values);
    out.c1 = vec_zeros(w, out.heads[0].wo.rows);
    const pare_mat pooled = head_pooled(w, &out.heads[0], h, &p->graph);
    const clusters c = clusters_of(w, &p->z[i], o->dim);
    out.w1 = mat_zeros(w, c.k, pooled.cols);
    out.b1 = vec_zeros(w, c.k);
    out.w2 = mat_identity(w, c.k);
    out.c2 = vec_zeros(w, c.k);
    for (size_t a = 0; !w->st && a < c.k; a++) {
        const double *const ca = pare_row(&c.center, a);
        if (!(vec_dot(ca, ca, c.center.cols) > 0))
            pare_work_fail(w, PARE_ERR_INPUT, "block %zu: the centre of cluster %zu is 0", i, a);
        else if (o->rule == PARE_RULE_PAPER)
            paper_unit(w, &out, &pooled, &c, a, i);
        else
            margin_unit(w, &out, &pooled, &c, a, i);
    }
    const pare_mat hidden = layer_hidden(w, l, &c.center);
    const pare_mat meaning = layer_ffn(w, l, &c.center, &hidden);
    *u = mat_transpose(w, &meaning);
    *h = layer_hidden(w, &out, &pooled); /* W2^ = I: the codes */
    if (w->st) return out;
    *f = clusters_check(w, &p->z[i], &c);
    f->values = values;
    for (size_t n = 0; n < h->rows; n++)
        for (size_t a = 0; a < h->cols; a++)
            f->onehot = fmax(f->onehot, fabs(pare_row(h, n)[a] - (c.label[n] == a ? 1 : 0)));
    return out;
}

net cut_cluster(pare_work *w, const net *n, const activations *p, const pare_width_opts *o,
                cut_record *r, cluster_facts *facts)
{
    net out = *n;
    for (size_t i = 0; i < n->nlayers; i++) check_layer(w, &n->layers[i], i);
    const bool rank = o->start == PARE_START_RANK;
    const size_t d0 = p->h[0].cols;
    const basis b = rank ? basis_pca(w, &p->h[0], o->dim, false) : basis_identity(w, d0);
    pare_mat u = b.u, h = rank ? basis_coords(w, &b, &p->h[0]) : p->h[0];
    out.layers = pare_work_alloc(w, n->nlayers, sizeof *out.layers);
    if (w->st) return out;
    record_point(r, 0, d0, basis_dim(&b), basis_residual(w, &b, &p->h[0]));
    out.we = mat_mul(w, &u, true, &n->we, false);
    out.be = mat_vec(w, &u, true, n->be, NULL);
    for (size_t i = 0; !w->st && i < n->nlayers; i++) {
        const net_layer *const l = &n->layers[i];
        net_layer *const to = &out.layers[i];
        *to = layer_for(w, l, &u, &h, p, i, o, &facts[i]);
        if (w->st) break;
        r->heads[i] =
            (pare_width_head){i, 0, l->heads[0].wq.rows, to->heads[0].wq.rows, NAN, NAN, NAN};
        r->hidden[i] = (pare_width_hidden){i, l->w1.rows, to->w1.rows, NAN, NAN, NAN};
        record_point(r, 2 * i + 1, p->z[i].cols, to->heads[0].wo.rows, NAN);
        record_point(r, 2 * i + 2, p->h[i + 1].cols, to->w2.rows, NAN);
    }
    out.wh = mat_mul(w, &n->wh, false, &u, false);
    return out;
}
