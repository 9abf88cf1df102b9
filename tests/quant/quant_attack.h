/* quant_attack.h - small models are quantized in every way, the pair is proven, and what the
 * certificate says is held against both models evaluated with 113 bits. */
#ifndef QUANT_ATTACK_H
#define QUANT_ATTACK_H
#include "../width/lm_attack.h"
#include "quant/quant_internal.h"

typedef struct qa_tally {
    size_t models, rows, changed, uncertain;
    double least, most, kl; /* found / proven */
} qa_tally;

static inline void qa_quantize(la *t)
{
    pare_quant_report r;
    pare_quant_opts o = PARE_QUANT_OPTS_DEFAULT;
    const uint64_t k = t->seed;
    o.method = k % 3 ? PARE_QUANT_GPTQ : PARE_QUANT_RTN;
    o.bits = (double)(2 + k % 7);
    o.group = k / 7 % 4 * 3; /* 0: the whole row */
    o.affine = k / 2 % 2;
    if (k % 5) o.fit = &t->set;
    const pare_cert claimed = {.reduction = pare_quant_prover.reduction,
                               .data = {.kind = "random", .count = LA_INPUTS, .tokens = LA_TOKENS}};
    if (pare_quant(&t->g, &r, t->f, &o, NULL, &t->err))
        fail_msg("seed %llu: %s", (unsigned long long)k, t->err.msg);
    assert_true(r.n > 0);
    t->cert = claimed;
    assert_ok(pare_quant_prover.prove(&t->cert, t->a, &claimed, t->f, t->g, &t->set, NULL, &t->err),
              &t->err);
}

/* KL(f || g) of a row of logits. */
static inline double qa_kl(const quad *f, const quad *g, size_t n)
{
    quad sum[2] = {0}, top[2] = {f[0], g[0]}, kl = 0;
    for (size_t i = 1; i < n; i++) {
        if (f[i] > top[0]) top[0] = f[i];
        if (g[i] > top[1]) top[1] = g[i];
    }
    for (size_t i = 0; i < n; i++) {
        sum[0] += q_exp(f[i] - top[0]);
        sum[1] += q_exp(g[i] - top[1]);
    }
    for (size_t i = 0; i < n; i++) {
        const quad p = f[i] - top[0] - q_log(sum[0]), q = g[i] - top[1] - q_log(sum[1]);
        kl += q_exp(p) * (p - q);
    }
    return (double)kl;
}

static inline void qa_outputs(la *t, qa_tally *sum)
{
    double apart = 0, kl = 0, mean = 0;
    size_t rows = 0, changed = 0;
    const bool predicts = claims_of(&t->cert, PARE_KL_MOST) == 1;
    for (size_t i = 0; i < t->set.n; i++)
        for (size_t s = 0; s < t->set.in[i].batch; s++) {
            const qmat x = q_model(t->a, t->f, &t->set.in[i], s);
            const qmat y = q_model(t->a, t->g, &t->set.in[i], s);
            for (size_t e = 0; e < x.n * x.d; e++)
                apart = fmax(apart, (double)q_abs(x.v[e] - y.v[e]));
            for (size_t r = 0; r < x.n; r++) {
                const quad *const a = x.v + r * x.d, *const b = y.v + r * y.d;
                const double one = predicts ? qa_kl(a, b, x.d) : 0;
                changed += la_largest(a, x.d) != la_largest(b, y.d);
                kl = fmax(kl, one);
                mean += one;
            }
            rows += x.n;
        }
    const double share = claim_value(&t->cert, PARE_ROWS_CHANGED);
    const bool tied = t->temper == LA_TIES && la_near(t) == 0;
    la_holds(t, "an output", apart, t->cert.proven);
    la_holds(t, "rows whose largest entry changed", (double)changed / (double)rows, share);
    if (predicts) {
        la_holds(t, "KL divergence", kl, claim_value(&t->cert, PARE_KL_MOST));
        la_holds(t, "mean KL divergence", mean / (double)rows, claim_value(&t->cert, PARE_KL_MEAN));
        if (kl > 1e-6) sum->kl = fmin(sum->kl, kl / claim_value(&t->cert, PARE_KL_MOST));
    }
    sum->models++;
    sum->rows += rows;
    if (!tied) sum->uncertain += (size_t)(share * (double)rows + 0.5);
    if (!tied) sum->changed += changed;
    if (apart <= 1e-6) return;
    sum->least = fmin(sum->least, apart / t->cert.proven);
    sum->most = fmax(sum->most, apart / t->cert.proven);
}

static inline void qa_many(uint64_t first, uint64_t last)
{
    qa_tally sum = {.least = 1, .kl = 1};
    for (uint64_t seed = first; seed <= last; seed++) {
        la t;
        la_open(&t, seed);
        qa_quantize(&t);
        qa_outputs(&t, &sum);
        la_close(&t);
    }
    print_message("seeds %llu to %llu: %zu models, 0 violations; found / proven: outputs %.9f to "
                  "%.9f, KL at least %.6f; of %zu rows %zu changed, %zu may have\n",
                  (unsigned long long)first, (unsigned long long)last, sum.models, sum.least,
                  sum.most, sum.kl, sum.rows, sum.changed, sum.uncertain);
    assert_true(sum.uncertain * 20 <= sum.changed * 21); /* what is not a tie is told apart */
    assert_true(sum.most > 0.9999 && sum.least > 0.9 && sum.kl > 0.9);
}
#endif
