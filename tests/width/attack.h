/* attack.h - train or draw a small model, cut it, prove the cut, and then try to find an input in
 * the stated domain on which the two models are further apart than was proven: the graph itself and
 * the worst single-node edits with 113 bits, all single-node edits one by one, random inputs and
 * ascent inside the ball around the features and inside the norms of the a priori bound. */
#ifndef WIDTH_ATTACK_H
#define WIDTH_ATTACK_H
#include "edit_models.h"
#include "width/prove.h"
#include <claims.h>
#include <enclose_quad.h>
#include "linalg/matrix.h"
#include <pare/width.h>

enum { A_TYPES = 3, A_NODES = 12, A_KINDS = 4, A_WIDTH = 4, A_TRAINED = TEMPERS, A_TYPED, A_ALL };

typedef struct attack {
    stage s;
    uint64_t seed;
    size_t temper;
    pare_model *f, *g;
    pare_graph graph;
    pare_mat x;
    int64_t label[A_NODES];
    double rho; /* of the ball */
    pare_cert cert;
} attack;

/* What was found over many models. */
typedef struct tally {
    size_t models, refused, vacuous, edits, inputs;
    size_t by_method[PARE_WIDTH_METHODS];
    double graph, edit, ball, apriori; /* found over proven, largest */
    double edit_least;                 /* ... smallest, of models that differ at all */
} tally;

/* ---- models ---------------------------------------------------------------------------------- */

static inline pare_status a_batch(void *self, pare_batch *out, pare_arena *a, uint64_t seed,
                                  uint64_t step, pare_err *err)
{
    attack *const t = self;
    (void)seed, (void)step, (void)err;
    pare_input *const in = pare_alloc(a, 1, sizeof *in);
    if (!in) return PARE_ERR_MEMORY;
    *in = input_of(&t->x, &t->graph);
    *out = (pare_batch){.in = {1, in}, .label = t->label};
    return PARE_OK;
}

static inline pare_status a_score(void *self, double *out, const pare_model *m, pare_fold_part part,
                                  const pare_exec *exec, pare_err *err)
{
    (void)self, (void)m, (void)part, (void)exec, (void)err;
    *out = 0.5; /* only the last step is marked */
    return PARE_OK;
}

static inline pare_model *trained_model(attack *t)
{
    pare_model *const start = temper_model(&t->s, t->seed, 7, 2);
    pare_model *m = NULL;
    pare_train_result r;
    const pare_task task = {
        .self = t, .metric = "auc", .fixed = true, .epoch = 1, .batch = a_batch, .score = a_score};
    const pare_train_opts o = {.steps = 30,
                               .eval_every = 30,
                               .lr = 0.05,
                               .adamw = PARE_ADAMW_OPTS_DEFAULT,
                               .seed = t->seed};
    assert_ok(pare_train(&m, &r, start, &task, &o, NULL, &t->s.err), &t->s.err);
    pare_model_free(start);
    return m;
}

/* Type a sees all of type a + 1; rows are orthonormal by type; values are transposed and the hidden
 * part is the identity: the hypotheses of the theorem about clusters hold in every layer. */
static inline pare_model *typed_model(attack *t)
{
    stage *const s = &t->s;
    const size_t each = A_NODES / A_TYPES, d = A_WIDTH;
    size_t *const ptr = pare_work_alloc(&s->w, A_NODES + 1, sizeof *ptr);
    uint32_t *const idx = pare_work_alloc(&s->w, A_NODES * each, sizeof *idx);
    for (size_t i = 0; i < A_NODES; i++) {
        ptr[i + 1] = ptr[i] + each;
        for (size_t j = 0; j < each; j++)
            idx[ptr[i] + j] = (uint32_t)((i / each + 1) % A_TYPES * each + j);
    }
    t->graph = (pare_graph){A_NODES, ptr, idx};
    const pare_mat rows = rand_orthonormal(s, d, A_TYPES);
    for (size_t i = 0; i < A_NODES; i++)
        for (size_t k = 0; k < d; k++) pare_row_mut(&t->x, i)[k] = pare_row(&rows, k)[i / each];
    const net n = rand_net(
        s,
        (net_shape){.features = d, .dim = d, .layers = 1 + t->seed % 3, .heads = 1, .ffn = 2 * d});
    for (size_t l = 0; l < n.nlayers; l++) {
        net_layer *const at = &n.layers[l];
        at->heads[0].wv = rand_orthonormal(s, d, d);
        for (size_t i = 0; i < d; i++)
            for (size_t j = 0; j < 2 * d; j++)
                pare_row_mut(&at->w1, j)[i] = pare_row_mut(&at->w2, i)[j] =
                    j % d == i ? (j < d ? 1 : -1) : 0;
    }
    return model_of(s, &n);
}

static inline void attack_open(attack *t, uint64_t seed)
{
    static const size_t alone[] = {3, SIZE_MAX};
    memset(t, 0, sizeof *t);
    stage_open(&t->s, seed);
    t->seed = seed;
    t->temper = seed % A_ALL;
    t->graph = rand_graph(&t->s, A_NODES, 1 + seed / 3 % 4, seed % 3 ? NULL : alone);
    t->x = repeating_rows(&t->s, A_NODES, A_KINDS);
    for (size_t i = 0; i < A_NODES; i++)
        t->label[i] = i < 2 ? (int64_t)i : i % 5 == 4 ? -1 : pare_row(&t->x, i)[0] > 0;
    t->f = t->temper == A_TYPED     ? typed_model(t)
           : t->temper == A_TRAINED ? trained_model(t)
                                    : temper_model(&t->s, seed, t->temper, 2);
}

static inline void attack_close(attack *t)
{
    pare_model_free(t->f);
    pare_model_free(t->g);
    stage_close(&t->s);
}

/* ---- the cut and its proof ------------------------------------------------------------------- */

static inline pare_width_opts attack_opts(const attack *t)
{
    static const pare_width_method methods[] = {PARE_WIDTH_AUTO,    PARE_WIDTH_EXACT,
                                                PARE_WIDTH_LOWRANK, PARE_WIDTH_LEVERAGE,
                                                PARE_WIDTH_JL,      PARE_WIDTH_QK};
    const uint64_t seed = t->seed;
    pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
    o.method = t->temper == A_TYPED ? PARE_WIDTH_CLUSTER : methods[(seed + seed / A_ALL) % 6];
    o.seed = seed;
    o.trials = 3;
    const bool scores = o.method == PARE_WIDTH_JL || o.method == PARE_WIDTH_QK;
    if (scores) o.qk_dim = 1 + seed % 3;
    if (!scores && o.method != PARE_WIDTH_EXACT) o.dim = 1 + seed / 2 % 5;
    if (o.method == PARE_WIDTH_CLUSTER) o.dim = A_TYPES;
    if (o.method == PARE_WIDTH_LEVERAGE) o.rows = (pare_width_rows)(seed / 5 % 2);
    return o;
}

/* False: the method does not take this model, and says so. */
static inline bool attack_cut(attack *t, tally *sum)
{
    pare_width_report r;
    pare_input in = input_of(&t->x, &t->graph);
    in.target = t->label;
    const pare_inputs set = {1, &in};
    const pare_width_opts o = attack_opts(t);
    const pare_status st = pare_width(&t->g, &r, t->f, &set, &o, NULL, &t->s.err);
    if (st == PARE_ERR_INPUT) return false;
    assert_ok(st, &t->s.err);
    const pare_prover *const prover = &pare_width_provers[o.method];
    const pare_data_ref data = {.kind = "random", .count = 1, .tokens = A_NODES};
    t->rho = pow(10, -1 - (double)(t->seed % 7));
    pare_claim ask[] = {pare_width_edits(0), pare_ball_claim(t->rho, PARE_BALL_TWO)};
    const pare_cert claimed = {
        .reduction = prover->reduction, .data = data, .nclaims = 2, .claims = ask};
    t->cert = (pare_cert){.reduction = prover->reduction, .data = data};
    assert_ok(prover->prove(&t->cert, t->s.w.arena, &claimed, t->f, t->g, &set, NULL, &t->s.err),
              &t->s.err);
    sum->by_method[o.method]++;
    return true;
}

static inline void attack_holds(const attack *t, const char *what, double found, double bound)
{
    if (!(found <= bound))
        fail_msg("seed %llu: %s: %.17g found, %.17g proven", (unsigned long long)t->seed, what,
                 found, bound);
}

/* ---- attacks --------------------------------------------------------------------------------- */

/* Largest |f - g|, in f64. */
static inline double apart_f64(attack *t, const pare_mat *x)
{
    const pare_mark mark = pare_arena_mark(t->s.w.arena);
    const pare_input in = input_of(x, &t->graph);
    const pare_mat a = output_of(&t->s, t->f, &in), b = output_of(&t->s, t->g, &in);
    const double apart = mats_apart(&a, &b);
    pare_arena_reset(t->s.w.arena, mark);
    return apart;
}

static inline double apart_quad(attack *t, const pare_mat *x)
{
    const pare_mark mark = pare_arena_mark(t->s.w.arena);
    const pare_input in = input_of(x, &t->graph);
    const qmat a = q_model(t->s.w.arena, t->f, &in, 0), b = q_model(t->s.w.arena, t->g, &in, 0);
    double most = 0;
    for (size_t i = 0; i < a.n * a.d; i++) most = fmax(most, (double)q_abs(a.v[i] - b.v[i]));
    pare_arena_reset(t->s.w.arena, mark);
    return most;
}

/* The auc by its definition, with 113 bits. */
static inline double auc_quad(attack *t, const pare_model *m)
{
    const pare_input in = input_of(&t->x, &t->graph);
    const qmat y = q_model(t->s.w.arena, m, &in, 0);
    double sum = 0, pairs = 0;
    for (size_t p = 0; p < A_NODES; p++)
        for (size_t n = 0; n < A_NODES; n++) {
            if (t->label[p] != 1 || t->label[n] != 0) continue;
            const quad a = y.v[2 * p + 1] - y.v[2 * p], b = y.v[2 * n + 1] - y.v[2 * n];
            sum += a > b ? 1 : a == b ? 0.5 : 0;
            pairs++;
        }
    return sum / pairs;
}

static inline void attack_graph(attack *t, tally *sum)
{
    const double found = apart_quad(t, &t->x);
    attack_holds(t, "the graph", found, t->cert.proven);
    attack_holds(t, "layer by layer", found, claim_value(&t->cert, PARE_LOCAL_OUTPUTS));
    if (found > 1e-6) sum->graph = fmax(sum->graph, found / t->cert.proven);
    if (pare_model_outputs(t->f) != 2) return;
    const double f = auc_quad(t, t->f), g = auc_quad(t, t->g);
    attack_holds(t, "auc", g, claim_value(&t->cert, PARE_AUC_MOST));
    attack_holds(t, "auc, from below", claim_value(&t->cert, PARE_AUC_LEAST), g + 1e-15);
    attack_holds(t, "auc apart", fabs(f - g), claim_value(&t->cert, PARE_AUC_DIFFERENCE) + 1e-15);
}

/* All edits; the worst, and every fifth, with 113 bits as well. */
static inline void attack_edits(attack *t, tally *sum)
{
    const double bound = claim_value(&t->cert, PARE_EDITS_OUTPUTS);
    const size_t kinds = t->temper == A_TYPED ? A_NODES : A_KINDS;
    pare_mat y = mat_copy(&t->s.w, &t->x), worst = mat_copy(&t->s.w, &t->x);
    double most = -1;
    size_t tried = 0;
    for (size_t i = 0; i < A_NODES; i++) {
        for (size_t k = 0; k < kinds; k++) {
            memcpy(pare_row_mut(&y, i), pare_row(&t->x, k), A_WIDTH * sizeof(double));
            const double apart = apart_f64(t, &y);
            if (++tried % 5 == 0) attack_holds(t, "an edit", apart_quad(t, &y), bound);
            if (!(apart <= most)) {
                most = apart;
                memcpy(worst.v, y.v, A_NODES * A_WIDTH * sizeof(double));
            }
        }
        memcpy(pare_row_mut(&y, i), pare_row(&t->x, i), A_WIDTH * sizeof(double));
    }
    const double found = apart_quad(t, &worst);
    attack_holds(t, "the worst edit", found, bound);
    sum->edits += tried;
    sum->vacuous += bound == INFINITY;
    if (found <= 1e-6 || bound == INFINITY || t->temper == 1 || t->temper == 4) return;
    sum->edit = fmax(sum->edit, found / bound);
    sum->edit_least = fmin(sum->edit_least, found / bound);
}

static inline double row_size(const double *v)
{
    double s = 0;
    for (size_t k = 0; k < A_WIDTH; k++) s += v[k] * v[k];
    return sqrt(s);
}

/* Rows no further than `size` from those of `from`. */
static inline void shorten(pare_mat *x, const pare_mat *from, double size)
{
    for (size_t i = 0; i < x->rows; i++) {
        double d[A_WIDTH];
        for (size_t k = 0; k < A_WIDTH; k++) d[k] = pare_row(x, i)[k] - pare_row(from, i)[k];
        const double now = row_size(d);
        for (size_t k = 0; now > size && k < A_WIDTH; k++)
            pare_row_mut(x, i)[k] = pare_row(from, i)[k] + d[k] * size * (1 - 1e-9) / now;
    }
}

/* A step uphill by differences, back into the domain. */
static inline void ascend(attack *t, pare_mat *x, const pare_mat *from, double size)
{
    const double step = size;
    pare_mat slope = mat_zeros(&t->s.w, x->rows, A_WIDTH);
    double norm = 0;
    for (size_t i = 0; i < A_NODES * A_WIDTH; i++) {
        const double at = x->v[i], h = 1e-4 * size;
        x->v[i] = at + h;
        const double up = apart_f64(t, x);
        x->v[i] = at - h;
        slope.v[i] = (up - apart_f64(t, x)) / (2 * h);
        x->v[i] = at;
        norm += slope.v[i] * slope.v[i];
    }
    for (size_t i = 0; norm > 0 && i < A_NODES * A_WIDTH; i++)
        x->v[i] += step * slope.v[i] / sqrt(norm);
    shorten(x, from, size);
}

/* Largest |f - g| that a few random starts and steps uphill find within `size` of `from`. */
static inline double search(attack *t, tally *sum, const pare_mat *from, double size)
{
    enum { STARTS = 2, STEPS = 2 };
    double found = 0;
    for (size_t k = 0; k < STARTS; k++) {
        pare_mat x = rand_mat(&t->s, A_NODES, A_WIDTH, size);
        for (size_t i = 0; i < A_NODES * A_WIDTH; i++) x.v[i] += from->v[i];
        shorten(&x, from, size);
        found = fmax(found, apart_quad(t, &x));
        for (size_t i = 0; i < STEPS; i++) ascend(t, &x, from, size);
        found = fmax(found, apart_quad(t, &x));
        sum->inputs += 1 + STEPS;
    }
    return found;
}

static inline void attack_ball(attack *t, tally *sum)
{
    const double bound = claim_value(&t->cert, PARE_BALL_OUTPUTS);
    const double found = search(t, sum, &t->x, t->rho);
    attack_holds(t, "the ball", found, bound);
    if (found > 1e-6) sum->ball = fmax(sum->ball, found / bound);
}

static inline void attack_norms(attack *t, tally *sum)
{
    double size = 0;
    const double bound = pare_cert_apriori(&t->cert);
    if (!(bound < 1e300)) return;
    const pare_mat zero = mat_zeros(&t->s.w, A_NODES, A_WIDTH);
    for (size_t i = 0; i < A_NODES; i++) size = fmax(size, row_size(pare_row(&t->x, i)));
    const double found = search(t, sum, &zero, size);
    attack_holds(t, "a priori", found, bound);
    sum->apriori = fmax(sum->apriori, found / bound);
}

static inline void attack_one(tally *sum, uint64_t seed)
{
    attack t;
    attack_open(&t, seed);
    if (attack_cut(&t, sum)) {
        sum->models++;
        attack_graph(&t, sum);
        attack_edits(&t, sum);
        attack_ball(&t, sum);
        attack_norms(&t, sum);
    } else {
        sum->refused++;
    }
    attack_close(&t);
}

static inline void attack_many(uint64_t first, uint64_t last)
{
    tally sum = {.edit_least = 1};
    for (uint64_t seed = first; seed <= last; seed++) attack_one(&sum, seed);
    print_message("seeds %llu to %llu: %zu models attacked, %zu refused by the method, %zu "
                  "bounds over edits inf, 0 violations\n",
                  (unsigned long long)first, (unsigned long long)last, sum.models, sum.refused,
                  sum.vacuous);
    for (size_t m = 0; m <= PARE_WIDTH_AUTO; m++) /* those after it are not for graphs */
        print_message("  %-9s %zu\n", pare_width_method_names[m], sum.by_method[m]);
    print_message("found / proven: the graph up to %.9f; %zu edits %.9f to %.9f; %zu inputs: "
                  "balls up to %.3g, norms up to %.2g\n",
                  sum.graph, sum.edits, sum.edit_least, sum.edit, sum.inputs, sum.ball,
                  sum.apriori);
    assert_true(sum.refused * 5 <= sum.models && sum.vacuous * 20 <= sum.models);
    for (size_t m = 0; m <= PARE_WIDTH_AUTO; m++) assert_true(sum.by_method[m] > 0);
    assert_true(sum.edit > 0.999999);
}
#endif
