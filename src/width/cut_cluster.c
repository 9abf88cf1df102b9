/* Clusters of nodes instead of dimensions (Theorem 4.4, repaired): ReLU nets, one head, no skips.
 *
 * If the pooled values z of every layer lie within eps |c| of at most d centers c_a that are nearly
 * orthogonal, a hidden layer of d units can say which cluster a node is in, and the next layer
 * needs only that: Wo Wv U = Q R,  Wv^ = R          so that z^.z^' = z.z' (the printed Wv^ gives
 * squares) 'paper'   unit a: 4 c^_a / |c_a|^2, bias -3         (printed: -3|c|^2, which selects
 * nothing) 'margin'  unit a: c^_a / (v - t), bias -t / (v - t), t the largest value c^_a takes
 * outside the cluster, v its mean inside: refused when some node outside is not below all inside
 *     W2^ = I,  U' = [W2 relu(W1 c_a + b1) + c2]_a        what the code of cluster a stands for
 * The codes are one-hot up to O(eps), and so are the outputs. Hypothesis as Shirzad 2024 has it:
 * sep = max c_a.c_b / (gamma_1^2 / 2) < 1; 'paper' really needs c_a.c_b < 3/4 |c_a|^2.
 *
 * Starts: `rank`, the subspace of h_0; or `jl`, random maps for the first layer's queries, keys and
 * values, the best of some draws, where every pair of values is looked at. */
#include "cuts.h"
#include <math.h>
#include <string.h>

enum { LLOYD = 25, PAIR_ROWS = 512 };

static double distance2(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* ---- finding them --------------------------------------------------------------------------- */

/* Farthest first from row 0, until k are found or the farthest row is suddenly near (a tenth of the
 * distance before): what is left then is the width of the clusters, and splitting one would make
 * two that cannot be told apart. */
static void seed_centres(clusters *c, const pare_mat *z, size_t k, double *far)
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
static bool assign(clusters *c, const pare_mat *z)
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

static void center(clusters *c, const pare_mat *z, size_t *count, double *sum)
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

/* Clusters that lost their last node go. */
static void drop_empty(clusters *c, const pare_mat *z, const size_t *count, size_t *renamed)
{
    size_t kept = 0;
    for (size_t a = 0; a < c->k; a++) {
        renamed[a] = kept;
        if (count[a] == 0) continue;
        memmove(pare_row_mut(&c->center, kept), pare_row(&c->center, a), z->cols * sizeof(double));
        kept++;
    }
    c->k = c->center.rows = kept;
    for (size_t i = 0; i < z->rows; i++) c->label[i] = renamed[c->label[i]];
}

clusters clusters_of(pare_work *w, const pare_mat *z, size_t k)
{
    clusters c = {.center = mat_zeros(w, k, z->cols),
                  .label = pare_work_alloc(w, z->rows, sizeof *c.label)};
    double *const far = vec_zeros(w, z->rows), *const sum = vec_zeros(w, k * z->cols);
    size_t *const count = pare_work_alloc(w, k, sizeof *count), *const names = pare_work_alloc(
                                                                    w, k, sizeof *names);
    if (w->st) return c;
    seed_centres(&c, z, k, far);
    for (size_t i = 0; i < z->rows; i++) c.label[i] = SIZE_MAX;
    for (int t = 0; t < LLOYD && assign(&c, z); t++) center(&c, z, count, sum);
    drop_empty(&c, z, count, names);
    return c;
}

cluster_facts clusters_check(pare_work *w, const pare_mat *z, const clusters *c)
{
    cluster_facts f = {.k = c->k, .least = INFINITY, .sep = -INFINITY};
    if (w->st) return f;
    for (size_t i = 0; i < z->rows; i++) {
        const double *const at = pare_row(&c->center, c->label[i]);
        const double size = sqrt(dot(at, at, z->cols));
        f.eps = fmax(f.eps, sqrt(distance2(pare_row(z, i), at, z->cols)) / size);
        f.least = fmin(f.least, size);
        f.most = fmax(f.most, size);
    }
    for (size_t a = 0; a < c->k; a++)
        for (size_t b = 0; b < a; b++)
            f.sep = fmax(f.sep, dot(pare_row(&c->center, a), pare_row(&c->center, b), z->cols));
    f.sep /= f.least * f.least / 2;
    return f;
}

/* ---- what it covers ------------------------------------------------------------------------- */

static bool zeros(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] != 0) return false;
    return true;
}

static void check_layer(pare_work *w, const net_layer *l, size_t i)
{
    const net_head *const hd = &l->heads[0];
    const char *what = NULL;
    if (l->r1.v || l->r2.v) what = "skip connections";
    if (l->act != PARE_ACT_RELU) what = "activations other than ReLU";
    if (l->nheads != 1) what = "layers of more than one head";
    if (!what && (!zeros(hd->bv, hd->wv.rows) || !zeros(l->c1, hd->wo.rows)))
        what = "biases on values or outputs of attention";
    if (what)
        pare_work_fail(
            w, PARE_ERR_INPUT,
            "the method cluster works only for models without %s; block %zu has them; try auto",
            what, i);
}

/* ---- the selector --------------------------------------------------------------------------- */

static void paper_unit(pare_work *w, net_layer *out, const pare_mat *p, const clusters *c, size_t a,
                       size_t layer)
{
    const double *const ca = pare_row(&c->center, a);
    const double square = dot(ca, ca, c->center.cols);
    size_t node = 0;
    while (c->label[node] != a) node++;
    for (size_t b = 0; b < c->k; b++) {
        const double other = dot(ca, pare_row(&c->center, b), c->center.cols);
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
        const double v = dot(row, pare_row(p, i), p->cols);
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

static void select_clusters(pare_work *w, net_layer *out, const pare_mat *p, const clusters *c,
                            pare_width_rule rule, size_t layer)
{
    out->w1 = mat_zeros(w, c->k, p->cols);
    out->b1 = vec_zeros(w, c->k);
    out->w2 = mat_identity(w, c->k);
    out->c2 = vec_zeros(w, c->k);
    for (size_t a = 0; !w->st && a < c->k; a++) {
        const double *const ca = pare_row(&c->center, a);
        if (!(dot(ca, ca, c->center.cols) > 0))
            pare_work_fail(w, PARE_ERR_INPUT, "block %zu: the centre of cluster %zu is 0", layer,
                           a);
        else if (rule == PARE_RULE_PAPER)
            paper_unit(w, out, p, c, a, layer);
        else
            margin_unit(w, out, p, c, a, layer);
    }
}

/* Columns: what each code stands for in the stream of the original. */
static pare_mat meanings(pare_work *w, const net_layer *l, const clusters *c)
{
    const pare_mat hidden = layer_hidden(w, l, &c->center);
    const pare_mat h = layer_ffn(w, l, &c->center, &hidden);
    return mat_transpose(w, &h);
}

static double code_error(const pare_mat *h, const clusters *c)
{
    double worst = 0;
    for (size_t i = 0; i < h->rows; i++)
        for (size_t a = 0; a < h->cols; a++)
            worst = fmax(worst, fabs(pare_row(h, i)[a] - (c->label[i] == a ? 1 : 0)));
    return worst;
}

/* ---- values --------------------------------------------------------------------------------- */

/* The Gram matrix of the values is kept: R^T R = (Wo Wv U)^T (Wo Wv U). */
static void keep_gram(pare_work *w, net_head *out, const pare_mat *values)
{
    const bool tall = values->rows >= values->cols;
    pare_mat q = mat_zeros(w, values->rows, values->cols),
             r = mat_zeros(w, values->cols, values->cols);
    if (!w->st && tall) w->st = pare_qr(&q, &r, values, w->arena, w->err);
    out->wv = tall ? r : *values;
    out->bv = vec_zeros(w, out->wv.rows);
    out->wo = mat_identity(w, out->wv.rows);
}

/* Largest |a_i.a_j - b_i.b_j| over all pairs of rows. */
static double gram_apart(pare_work *w, const pare_mat *a, const pare_mat *b)
{
    double worst = 0;
    for (size_t i = 0; !w->st && i < a->rows; i += PAIR_ROWS) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const size_t n = a->rows - i < PAIR_ROWS ? a->rows - i : PAIR_ROWS;
        const pare_mat ai = pare_mat_part(a, i, 0, n, a->cols);
        const pare_mat bi = pare_mat_part(b, i, 0, n, b->cols);
        pare_mat gap = mat_mul(w, &ai, false, a, true);
        if (w->st) break;
        pare_gemm(&gap, -1, &bi, false, b, true, 1);
        worst = fmax(worst, mat_max_abs(&gap));
        pare_arena_reset(w->arena, mark);
    }
    return worst;
}

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
        const double off = gram_apart(w, &v, &mv);
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

/* The new head on a stream h^ with h ~ U h^. */
static net_head head_for(pare_work *w, const net_head *hd, const pare_mat *u, const pare_mat *h,
                         const pare_graph *g, bool random, const pare_width_opts *o,
                         cluster_facts *f)
{
    const basis b = {*u, vec_zeros(w, u->rows)};
    const pare_mat values = mat_mul3(w, &hd->wo, false, &hd->wv, u, false);
    net_head out = w->st ? *hd : qk_exact(w, hd, &b);
    if (random && !w->st && o->dim < out.wq.rows) {
        jl_draws draws = {.trials = o->trials, .rng = pare_rng_at(o->seed, 0)};
        out = jl_search(w, &out, h, g, o->dim, &draws);
    }
    if (random)
        f->values = draw_values(w, &out, &values, h, o);
    else
        keep_gram(w, &out, &values);
    return out;
}

static void note_layer(cut_record *r, const activations *p, size_t i, const net_layer *l,
                       const net_layer *out)
{
    r->heads[i] =
        (pare_width_head){i, 0, l->heads[0].wq.rows, out->heads[0].wq.rows, NAN, NAN, NAN};
    r->hidden[i] = (pare_width_hidden){i, l->w1.rows, out->w1.rows, NAN, NAN, NAN};
    for (size_t k = 2 * i + 1; k <= 2 * i + 2; k++) {
        pare_width_point *const at = &r->points[k];
        snprintf(at->name, sizeof at->name, "%c%zu", k % 2 ? 'z' : 'h', k / 2);
        at->before = k % 2 ? p->z[i].cols : p->h[i + 1].cols;
        at->after = k % 2 ? out->heads[0].wo.rows : out->w2.rows;
        at->residual_est = NAN;
    }
}

static net_layer layer_for(pare_work *w, const net_layer *l, pare_mat *u, pare_mat *h,
                           const activations *p, size_t i, const pare_width_opts *o,
                           cluster_facts *f)
{
    net_layer out = {.nheads = 1, .act = PARE_ACT_RELU};
    cluster_facts first = {0};
    out.heads = pare_work_alloc(w, 1, sizeof *out.heads);
    if (w->st) return out;
    const bool random = i == 0 && o->start == PARE_START_JL;
    out.heads[0] = head_for(w, &l->heads[0], u, h, &p->graph, random, o, &first);
    out.c1 = vec_zeros(w, out.heads[0].wo.rows);
    const pare_mat pooled = head_pooled(w, &out.heads[0], h, &p->graph);
    const clusters c = clusters_of(w, &p->z[i], o->dim);
    if (!w->st) select_clusters(w, &out, &pooled, &c, o->rule, i);
    *u = meanings(w, l, &c);
    *h = layer_hidden(w, &out, &pooled); /* W2^ = I: the codes */
    if (w->st) return out;
    *f = clusters_check(w, &p->z[i], &c);
    f->onehot = code_error(h, &c);
    f->values = first.values;
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
    r->points[0] = (pare_width_point){"h0", d0, basis_dim(&b), basis_residual(w, &b, &p->h[0])};
    out.we = mat_mul(w, &u, true, &n->we, false);
    out.be = mat_vec(w, &u, true, n->be, NULL);
    for (size_t i = 0; !w->st && i < n->nlayers; i++) {
        out.layers[i] = layer_for(w, &n->layers[i], &u, &h, p, i, o, &facts[i]);
        if (!w->st) note_layer(r, p, i, &n->layers[i], &out.layers[i]);
    }
    out.wh = mat_mul(w, &n->wh, false, &u, false);
    return out;
}
