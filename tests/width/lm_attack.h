/* lm_attack.h - small language models and encoders are cut, the cut is proven, and everything that
 * the certificate says is held against both models evaluated with 113 bits on the inputs it speaks
 * of: every output entry, every attention weight of every layer, the largest entry of every row. */
#ifndef WIDTH_LM_ATTACK_H
#define WIDTH_LM_ATTACK_H
#include <claims.h>
#include <enclose_quad.h>
#include "model/model_facts.h"
#include <pare/width.h>

enum { LA_KINDS = 3, LA_METHODS = 3, LA_DIM = 8, LA_VOCAB = 10, LA_TOKENS = 6, LA_INPUTS = 3 };

typedef enum la_temper {
    LA_PLAIN,
    LA_LARGE,  /* every weight */
    LA_TIES,   /* outputs in pairs that are nearly the same */
    LA_WHOLE,  /* nothing is cut away: what is left is rounding */
    LA_SHARP,  /* large queries: attention to one key */
    LA_OFFSET, /* a stream far from its variance: layer norms cancel */
    LA_SPIN,   /* rotary angles of millions: they are rounded before they are transposed by */
    LA_TEMPERS
} la_temper;

typedef struct la {
    uint64_t seed;
    la_temper temper;
    pare_width_method method;
    pare_model *f, *g;
    pare_arena *a;
    pare_inputs set;
    pare_cert cert;
    pare_err err;
} la;

/* What was found over many models: found / proven. */
typedef struct la_tally {
    size_t models, weights, vacuous, rows, changed, uncertain;
    size_t by_method[PARE_WIDTH_METHODS], by_kind[LA_KINDS];
    double least, most, ratio_least, ratio, rounding;
} la_tally;

/* ---- models ---------------------------------------------------------------------------------- */

static inline pare_status la_widen(void *self, const char *name, pare_weight *w, bool vector,
                                   pare_err *err)
{
    (void)name, (void)vector, (void)err;
    pare_model *const m = self;
    if (!pare_has(w)) return PARE_OK;
    double *const v = pare_alloc(m->arena, w->rows * w->cols, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < w->rows * w->cols; i++) v[i] = pare_weight_at(w, i);
    *w = (pare_weight){PARE_F64, w->rows, w->cols, v};
    return PARE_OK;
}

static inline double *la_numbers(const pare_weight *w)
{
    return (double *)(uintptr_t)w->data; /* la_widen made them */
}

static inline void la_scale(pare_weight *w, double by, double add)
{
    for (size_t i = 0; i < w->rows * w->cols; i++) la_numbers(w)[i] = la_numbers(w)[i] * by + add;
}

/* Row 2k + 1 becomes row 2k and nearly nothing. */
static inline void la_pair_rows(pare_weight *w, double by)
{
    for (size_t i = 0; i + 1 < w->rows; i += 2)
        for (size_t k = 0; k < w->cols; k++)
            la_numbers(w)[(i + 1) * w->cols + k] = la_numbers(w)[i * w->cols + k] * (1 + by);
}

static inline double la_near(const la *t)
{
    static const double near[] = {0, 1e-3, 1e-9, 1e-15};
    return near[(t->seed + t->seed / 8) % 4];
}

/* Every group of keys has another plane that it does without: svd then leaves them different
 * frequencies. */
static inline void la_unlike_planes(pare_model *m, pare_attn *at)
{
    for (size_t h = 0; h < at->nheads; h++) {
        const pare_head *const x = &at->heads[h];
        const bool pairs = m->embedding.pos.interleaved;
        const size_t f = x->k / x->dk % x->planes, two = pairs ? 2 * f + 1 : f + x->planes;
        for (size_t c = 0; c < at->wk.cols; c++) {
            la_numbers(&at->wk)[(x->k + (pairs ? 2 * f : f)) * at->wk.cols + c] *= 0.01;
            la_numbers(&at->wk)[(x->k + two) * at->wk.cols + c] *= 0.01;
        }
    }
}

static inline void la_bend(la *t)
{
    pare_model *const m = t->f;
    if (t->temper == LA_TIES) {
        la_pair_rows(m->head.tied ? &m->embedding.table : &m->head.out.w, la_near(t));
        if (pare_has(&m->head.out.b)) la_scale(&m->head.out.b, 0, 0);
    }
    if (t->temper == LA_OFFSET) la_scale(&m->embedding.table, 1, 1e4);
    for (size_t b = 0; t->temper == LA_SPIN && b < m->nblocks; b++)
        if (pare_has(&m->blocks[b].attn.freqs))
            la_scale(&m->blocks[b].attn.freqs, 314159.2653589793, 0);
    for (size_t b = 0; t->method == PARE_WIDTH_SVD && b < m->nblocks; b++)
        if (pare_model_is_rotary(m)) la_unlike_planes(m, &m->blocks[b].attn);
    for (size_t b = 0; t->temper == LA_SHARP && b < m->nblocks; b++)
        la_scale(&m->blocks[b].attn.wq, 40, 0);
}

/* One input of several sequences instead of several of one. */
static inline void la_join(la *t)
{
    int64_t *const ids = pare_alloc(t->a, LA_INPUTS * LA_TOKENS, sizeof *ids);
    assert_non_null(ids);
    for (size_t i = 0; i < LA_INPUTS; i++)
        memcpy(ids + i * LA_TOKENS, t->set.in[i].ids, LA_TOKENS * sizeof *ids);
    t->set.in[0].ids = ids;
    t->set.in[0].batch = LA_INPUTS;
    t->set.n = 1;
}

static inline void la_open(la *t, uint64_t seed)
{
    static const pare_width_method methods[] = {PARE_WIDTH_AUTO, PARE_WIDTH_SLICE, PARE_WIDTH_SVD};
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    memset(t, 0, sizeof *t);
    t->seed = seed;
    t->method = methods[seed % LA_METHODS];
    if (t->method == PARE_WIDTH_AUTO && seed / LA_METHODS % 2) t->method = PARE_WIDTH_QK;
    t->temper = (la_temper)(seed / 2 % LA_TEMPERS);
    t->a = pare_arena_new();
    assert_non_null(t->a);
    o.kind = (pare_random_kind)(seed / LA_METHODS % LA_KINDS);
    o.dim = o.kind == PARE_RANDOM_LLAMA ? 2 * LA_DIM : LA_DIM; /* groups of several planes */
    o.layers = 1 + seed / 4 % 3;
    o.heads = seed % 5 && o.kind != PARE_RANDOM_LLAMA ? 2 : 4;
    o.ffn = 6 + seed % 5;
    o.vocab = LA_VOCAB;
    o.context = LA_TOKENS;
    o.classes = 2 + 2 * (seed % 2); /* even: ties come in pairs */
    o.sigma = t->temper == LA_LARGE ? 1 + (double)(seed % 4) : 0;
    o.seed = seed;
    assert_ok(pare_random_model(&t->f, &o, &t->err), &t->err);
    if (seed % 2 || t->temper >= LA_TIES || pare_model_is_rotary(t->f))
        assert_ok(pare_model_each_weight(t->f, la_widen, t->f, &t->err), &t->err);
    la_bend(t);
    assert_ok(pare_inputs_random(&t->set, t->a, t->f, LA_INPUTS, LA_TOKENS, seed, &t->err),
              &t->err);
    if (seed % 4 == 1) la_join(t);
}

static inline void la_close(la *t)
{
    pare_model_free(t->f);
    pare_model_free(t->g);
    pare_arena_free(t->a);
}

/* ---- the cut and its proof ------------------------------------------------------------------- */

static inline pare_width_opts la_opts(const la *t)
{
    pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
    o.method = t->method;
    o.seed = t->seed;
    if (t->method == PARE_WIDTH_SLICE)
        o.basis = t->seed / 2 % 2 ? PARE_BASIS_SHARED : PARE_BASIS_PCA;
    o.untie = (t->method == PARE_WIDTH_SLICE || t->method == PARE_WIDTH_SVD) && t->seed % 4 == 0;
    if (t->method == PARE_WIDTH_QK)
        o.qk_dim = t->temper == LA_WHOLE ? t->f->blocks[0].attn.heads[0].dk : 2;
    else if (t->method == PARE_WIDTH_AUTO)
        o.keep = t->temper == LA_WHOLE ? 1 : 0.95 - 0.05 * (double)(t->seed % 4);
    else
        o.dim = pare_model_width(t->f, 0) - (t->temper == LA_WHOLE ? 0 : 1 + t->seed / 2 % 5);
    if (t->method == PARE_WIDTH_SVD && t->temper != LA_WHOLE) {
        o.qk_dim = t->f->blocks[0].attn.heads[0].dk / 2; /* rotary: whole planes */
        if (o.qk_dim % 2 && pare_model_is_rotary(t->f)) o.qk_dim = 0;
        o.v_dim = 1;
        o.ffn_dim = 5;
    }
    return o;
}

static inline void la_prove(la *t)
{
    pare_width_report r;
    const pare_width_opts o = la_opts(t);
    const pare_status st = pare_width(&t->g, &r, t->f, &t->set, &o, NULL, &t->err);
    if (st) fail_msg("seed %llu: %s", (unsigned long long)t->seed, t->err.msg);
    const pare_prover *const prover = &pare_width_provers[o.method];
    const pare_cert claimed = {.reduction = prover->reduction,
                               .data = {.kind = "random", .count = LA_INPUTS, .tokens = LA_TOKENS}};
    t->cert = claimed;
    assert_ok(prover->prove(&t->cert, t->a, &claimed, t->f, t->g, &t->set, NULL, &t->err), &t->err);
    assert_int_equal(claims_of(&t->cert, PARE_ROWS_CHANGED), 1);
    assert_int_equal(claims_of(&t->cert, PARE_ATTENTION_RATIO), t->f->nblocks);
}

static inline void la_holds(const la *t, const char *what, double found, double bound)
{
    if (!(found <= bound))
        fail_msg("seed %llu: %s: %.17g found, %.17g proven", (unsigned long long)t->seed, what,
                 found, bound);
}

/* ---- outputs --------------------------------------------------------------------------------- */

static inline size_t la_largest(const quad *v, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (v[i] > v[best]) best = i;
    return best;
}

/* How far the f32 engine is from what the model is. */
static inline double la_f32(const la *t, const pare_input *in, size_t seq, const qmat *y)
{
    pare_err err = {0};
    const size_t n = pare_output_rows(t->g, in) * pare_model_outputs(t->g);
    float *const z = pare_alloc(t->a, n, sizeof *z);
    double most = 0;
    assert_non_null(z);
    assert_ok(pare_forward_f32(z, t->g, in, NULL, NULL, &err), &err);
    for (size_t i = 0; i < y->n * y->d; i++)
        most = fmax(most, (double)q_abs((quad)z[seq * y->n * y->d + i] - y->v[i]));
    return most;
}

static inline void la_outputs(la *t, la_tally *sum)
{
    double apart = 0, rounding = 0;
    size_t rows = 0, changed = 0;
    for (size_t i = 0; i < t->set.n; i++)
        for (size_t s = 0; s < t->set.in[i].batch; s++) {
            const qmat x = q_model(t->a, t->f, &t->set.in[i], s);
            const qmat y = q_model(t->a, t->g, &t->set.in[i], s);
            for (size_t e = 0; e < x.n * x.d; e++)
                apart = fmax(apart, (double)q_abs(x.v[e] - y.v[e]));
            for (size_t r = 0; r < x.n; r++)
                changed += la_largest(x.v + r * x.d, x.d) != la_largest(y.v + r * y.d, y.d);
            rows += x.n;
            rounding = fmax(rounding, la_f32(t, &t->set.in[i], s, &y));
        }
    const double share = claim_value(&t->cert, PARE_ROWS_CHANGED);
    const bool tied = t->temper == LA_TIES && la_near(t) == 0;
    la_holds(t, "an output", apart, t->cert.proven);
    la_holds(t, "an output, a priori", apart, pare_cert_apriori(&t->cert));
    la_holds(t, "an output of the f32 engine", rounding,
             claim_bound(&t->cert, PARE_ENGINE_ROUNDING));
    la_holds(t, "an output of the f32 engine, as seen", rounding,
             claim_value(&t->cert, PARE_ENGINE_DISTANCE));
    la_holds(t, "rows whose largest entry changed", (double)changed / (double)rows, share);
    if (tied) la_holds(t, "rows that are ties", 1, share);
    if (!tied) sum->uncertain += (size_t)(share * (double)rows + 0.5);
    if (!tied) sum->changed += changed;
    sum->rows += rows;
    sum->rounding = fmax(sum->rounding, rounding / claim_bound(&t->cert, PARE_ENGINE_ROUNDING));
    if (apart <= 1e-6) return;
    sum->least = fmin(sum->least, apart / t->cert.proven);
    sum->most = fmax(sum->most, apart / t->cert.proven);
}

/* ---- attention weights ----------------------------------------------------------------------- */

/* ln a of one head at layer l, tokens x tokens; what is not seen is left out (0). */
static inline qmat la_logs(la *t, const pare_model *m, const qmat *z, size_t l, size_t head)
{
    const pare_attn *const at = &m->blocks[l].attn;
    const pare_head *const h = &at->heads[head];
    const qmat q = q_dense(t->a, z, &at->wq, h->q, h->dk, &at->bq);
    const qmat k = q_dense(t->a, z, &at->wk, h->k, h->dk, &at->bk);
    qmat out = q_new(t->a, z->n, z->n);
    for (size_t i = 0; pare_has(&at->freqs) && i < z->n; i++) {
        q_turn(q.v + i * h->dk, h, &at->freqs, m->embedding.pos.interleaved, i);
        q_turn(k.v + i * h->dk, h, &at->freqs, m->embedding.pos.interleaved, i);
    }
    for (size_t i = 0; i < z->n; i++) {
        const pare_keys keys = pare_visible(&m->pattern, NULL, z->n, i);
        quad *const s = out.v + i * z->n, top = 0, sum = 0;
        for (size_t j = 0; j < keys.count; j++) {
            for (size_t c = 0; c < h->dk; c++)
                s[j] += q.v[i * h->dk + c] * k.v[pare_key(&keys, j) * h->dk + c];
            s[j] *= (quad)h->scale;
            if (j == 0 || s[j] > top) top = s[j];
        }
        for (size_t j = 0; j < keys.count; j++) sum += q_exp(s[j] - top);
        for (size_t j = 0; j < keys.count; j++) s[j] -= top + q_log(sum);
    }
    return out;
}

/* What the attention of layer l reads. */
static inline qmat la_rows(la *t, const pare_model *m, size_t l, const pare_input *in, size_t s)
{
    pare_model part = *m;
    part.nblocks = l;
    part.head = (pare_output_head){0};
    qmat z = q_model(t->a, &part, in, s);
    q_norm(&z, &m->blocks[l].attn.in_norm);
    return z;
}

static inline double la_layer(la *t, la_tally *sum, size_t l, const pare_input *in, size_t s)
{
    const qmat x = la_rows(t, t->f, l, in, s), y = la_rows(t, t->g, l, in, s);
    double most = 0;
    for (size_t h = 0; h < t->f->blocks[l].attn.nheads; h++) {
        const qmat a = la_logs(t, t->f, &x, l, h), b = la_logs(t, t->g, &y, l, h);
        for (size_t e = 0; e < a.n * a.d; e++) most = fmax(most, (double)q_abs(a.v[e] - b.v[e]));
        sum->weights += a.n * a.d;
    }
    return most;
}

static inline void la_weights(la *t, la_tally *sum)
{
    for (size_t l = 0; l < t->f->nblocks; l++) {
        const pare_claim *const said = claim_at(&t->cert, PARE_ATTENTION_RATIO, l);
        double found = 0;
        assert_true(said->p[0] == (double)l);
        for (size_t i = 0; i < t->set.n; i++)
            for (size_t s = 0; s < t->set.in[i].batch; s++)
                found = fmax(found, la_layer(t, sum, l, &t->set.in[i], s));
        la_holds(t, "attention weights", found, said->value);
        sum->vacuous += said->value == INFINITY;
        if (found <= 1e-3) continue;
        sum->ratio = fmax(sum->ratio, found / said->value);
        sum->ratio_least = fmin(sum->ratio_least, found / said->value);
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

static inline void la_one(la_tally *sum, uint64_t seed)
{
    la t;
    la_open(&t, seed);
    la_prove(&t);
    la_outputs(&t, sum);
    la_weights(&t, sum);
    sum->models++;
    sum->by_method[t.method]++;
    sum->by_kind[seed / LA_METHODS % LA_KINDS]++;
    la_close(&t);
}

static inline void la_many(uint64_t first, uint64_t last)
{
    la_tally sum = {.least = 1, .ratio_least = 1};
    for (uint64_t seed = first; seed <= last; seed++) la_one(&sum, seed);
    print_message("seeds %llu to %llu: %zu models, %zu attention weights, 0 violations, %zu layers "
                  "inf\n",
                  (unsigned long long)first, (unsigned long long)last, sum.models, sum.weights,
                  sum.vacuous);
    print_message("found / proven: outputs %.9f to %.9f, ratios %.9f to %.9f, f32 up to %.3g; of "
                  "%zu rows %zu changed, %zu may have\n",
                  sum.least, sum.most, sum.ratio_least, sum.ratio, sum.rounding, sum.rows,
                  sum.changed, sum.uncertain);
    for (size_t k = 0; k < LA_KINDS; k++) assert_true(sum.by_kind[k] > 0);
    assert_true(sum.by_method[PARE_WIDTH_AUTO] && sum.by_method[PARE_WIDTH_QK] &&
                sum.by_method[PARE_WIDTH_SLICE] && sum.by_method[PARE_WIDTH_SVD]);
    assert_true(sum.uncertain * 20 <= sum.changed * 21); /* what is not a tie is told apart */
    assert_true(sum.most > 0.999999 && sum.ratio_least > 0.99);
}
#endif
