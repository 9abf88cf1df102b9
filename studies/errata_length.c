/* errata_length.c - the errata of Yu 2025, computed. What its algorithm does to data, whole, is the
 * table "errors" of `repro length`. */
#include "study_errata.h"
#include <pare/length.h>
#include <math.h>

#define PAPER "Yu 2025"

/* One call of the oracle of the paper, as pare has it. */
static pare_status ask_paper(const pare_call_strict *s, pare_err *err)
{
    const pare_call c = {.kind = PARE_CALL_STRICT, .u.s = *s};
    pare_oracle o;
    pare_status st =
        pare_oracle_paper(&o,
                          &(pare_oracle_caps){.max_len = s->n,
                                              .layers = 1,
                                              .heads = 1,
                                              .features = PARE_ORC_FULL | PARE_ORC_CAUSAL,
                                              .dtype = PARE_F64},
                          NULL, err);
    if (st) return st;
    st = o.ops->evaluate(o.self, &c, 1, err);
    if (!st) st = o.ops->barrier(o.self, err);
    pare_oracle_free(&o);
    return st;
}

/* ---- masses ---------------------------------------------------------------------------------- */

/* A token with logit 0 and value 1, and the dominating one with logit C - 1 = 10 and value 0: the
 * oracle's answer to the first. */
static pare_status returned_mass(sides *out, const erratum *e, pare_err *err)
{
    const double c = e->at[0], x[] = {1, 0, 1, c - 1}, first[] = {1, 0}, second[] = {0, 1};
    const double value[] = {1, -1 / (c - 1)};
    double y[2] = {NAN, NAN};
    const pare_head_w h = {first, second, value, 2, 1, 1};
    const pare_call_strict s = {.x = x, .n = 2, .din = 2, .heads = &h, .y = y, .dout = 1};
    const pare_status st = ask_paper(&s, err);
    *out = (sides){1, y[0], y[0] / (1 - y[0]) * exp(c - 1), false};
    return st;
}

/* All entries of X, Wq, Wk are b. */
static sides size_of_logits(void)
{
    const double d = 4, b = 2, q = d * b * b, logit = d * q * q;
    return (sides){d * b * b, logit, d * d * d * b * b * b * b, false};
}

/* N = 64: 4 log2 N = 24 bits are those of f32. log2 of how far the nearest number is from 1/3, the
 * mean of (1, 0, 0), relative to it. */
static sides tiny_eps(void)
{
    const double n = 64, third = 1 / 3.0;
    return (sides){-n, log2(fabs((double)(float)third - third) / third), NAN, false};
}

static sides unions(void)
{
    const double m = 16, dominating = 1;
    return (sides){m, m + m + dominating, NAN, false};
}

/* Both masses known up to a factor 1 +- eps / 10: what their difference may be off by. */
static sides subtraction(void)
{
    const double eps = 1e-6, up = 1 + eps / 10, down = 1 - eps / 10, own = exp(60), other = 1;
    const double difference = up * (own + other) - down * own;
    return (sides){eps / 10, fabs(difference - other) / other, NAN, false};
}

/* Weights off by eps either way: relative error of the sum. */
static sides mixed_signs(void)
{
    const double eps = 1e-6, t = 1e-3, v[] = {1, -1 - t}, a[] = {1 + eps, 1 - eps};
    const double sum = v[0] + v[1], got = a[0] * v[0] + a[1] * v[1];
    return (sides){eps, fabs(got - sum) / fabs(sum), eps * (fabs(v[0]) + fabs(v[1])) / fabs(sum),
                   false};
}

/* ---- calls, heads, orders -------------------------------------------------------------------- */

/* Uniform attention over (1, -1) with identity values. */
static pare_status attend_and_copy(sides *out, const erratum *e, pare_err *err)
{
    const double x[4] = {1, 0, -1, 0}, zero[2] = {0}, identity[4] = {1, 0, 0, 1};
    double y[4] = {NAN};
    const pare_head_w h = {zero, zero, identity, 2, 1, 2};
    const pare_call_strict s = {.x = x, .n = 2, .din = 2, .heads = &h, .y = y, .dout = 2};
    (void)e;
    const pare_status st = ask_paper(&s, err);
    *out = (sides){x[0], y[0], NAN, false};
    return st;
}

/* A look-up on the first of two chunks (1, 2), (3, 4), asked for the other chunk's first token. */
static pare_status permuted(sides *out, const erratum *e, pare_err *err)
{
    const double x[4] = {1, -1, 2, 1}; /* the chunk with its codes */
    const double second[2] = {0, 512}, bit[2] = {0, 1}, value[2] = {1, 0};
    double y[2] = {NAN, NAN};
    const pare_head_w h = {second, bit, value, 2, 1, 1};
    const pare_call_strict s = {.x = x, .n = 2, .din = 2, .heads = &h, .y = y, .dout = 1};
    (void)e;
    const pare_status st = ask_paper(&s, err);
    *out = (sides){3, y[1], NAN, false};
    return st;
}

/* Pieces of attention that a plan puts into one call of 3 heads and 2 layers, one head wide; 24
 * heads of its length. */
static pare_status instances(sides *out, const erratum *e, pare_err *err)
{
    enum { HEADS = 24, M = 9 };
    const double heads = 3, layers = 2;
    const pare_oracle_caps caps = {.max_len = M,
                                   .layers = 2,
                                   .heads = 3,
                                   .features = PARE_ORC_STRICT | PARE_ORC_FULL | PARE_ORC_WIDE_HEAD,
                                   .dtype = PARE_F64,
                                   .exp_flush = 746,
                                   .w_min = 0x1p-900};
    const pare_length_opts o = {.mode = PARE_LENGTH_STRICT};
    const pare_pattern full = {.kind = PARE_FULL};
    pare_length_head h[HEADS];
    pare_length_plan plan = {0};
    pare_arena *const a = pare_arena_new();
    (void)e;
    for (size_t i = 0; i < HEADS; i++) h[i] = (pare_length_head){0, 2, 2};
    const pare_status st =
        a ? pare_length_plan_make(
                &plan, a,
                &(pare_length_shape){.heads = h, .count = HEADS, .tokens = 4 * M, .pattern = &full},
                &caps, &o, err)
          : pare_no_memory(err);
    const double calls = st ? NAN : (double)(plan.cost.calls - plan.cost.merge_calls);
    const double packed = (double)plan.cost.instances / calls;
    const sides s = {heads * layers, packed, (heads - 1) * layers, false};
    if (!st) *out = s;
    pare_arena_free(a);
    return st;
}

/* How often the causal calls on four tokens in both orders let query 2 see key 2: its share of a
 * uniform mean times the number of keys. */
static pare_status reversed_orders(sides *out, const erratum *e, pare_err *err)
{
    const double forward[] = {0, 0, 1, 0}, reversed[] = {0, 1, 0, 0}, zero = 0, one = 1;
    const pare_head_w h = {&zero, &zero, &one, 1, 1, 1};
    double y[4], z[4];
    pare_call_strict s = {
        .x = forward, .n = 4, .din = 1, .causal = true, .heads = &h, .y = y, .dout = 1};
    (void)e;
    pare_status st = ask_paper(&s, err);
    s.x = reversed;
    s.y = z;
    if (!st) st = ask_paper(&s, err);
    if (!st) *out = (sides){1, 3 * y[2] + 2 * z[1], 1, false};
    return st;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* All masses 1. */
static sides shifted_prefix(void)
{
    const int i = 10, r = 4;
    double wanted = 0, returned = 0;
    for (int j = 0; j <= i; j++) {
        wanted += j <= i - r;
        returned += 1;
    }
    return (sides){wanted, returned, wanted, false};
}

/* Masses e^60 once, then 1; both prefixes known up to a factor 1 +- eps: what their difference, the
 * window's mass, may be off by. */
static sides window_by_subtraction(void)
{
    const double eps = 1e-6;
    const int i = 20, r = 8;
    double prefix = 0, before = 0, mass = 0;
    for (int j = 0; j <= i; j++) {
        const double a = j == 0 ? exp(60) : 1;
        prefix += a;
        if (j <= i - r) before += a;
        if (j > i - r) mass += a;
    }
    return (sides){eps, fabs((1 + eps) * prefix - (1 - eps) * before - mass) / mass, NAN, false};
}

static sides sinks_twice(void)
{
    const int r = 4, s = 3, i = 3;
    double twice = 0;
    for (int j = 0; j <= i; j++) twice += j < s && j + r > i;
    return (sides){0, twice, NAN, false};
}

/* ---- packing --------------------------------------------------------------------------------- */

/* One key of its own with value 0, one of another input, B^2 below, with value 1: what leaks. */
static sides penalty(void)
{
    const double b = 4, a[] = {0, -b * b};
    double w[2];
    softmax_of(w, a, 2);
    return (sides){exp(-b), w[1], 2 * exp(-b * b), false};
}

/* ---- the list -------------------------------------------------------------------------------- */

static const erratum list[] = {
    {PAPER, "Lemma 3.1, step 1", "the oracle returns the mass S",
     "S = 1, C = 11: it returns S / (S + e^(C-1))",
     "multiplied back by e^(C-1), or no constant at all", "length_lemma_3_1_oracle_returns_a_share",
     STEP_FALSE, EQUAL, .evaluate = returned_mass, .at = {11}},
    {PAPER, "Lemma 3.1, step 1", "C >= ... + d B^2 covers the logits",
     "d = 4, B = 2, all entries of X and W are B", "d^3 B^4",
     "length_logits_grow_with_the_cube_of_the_width", STEP_FALSE, AT_MOST, .hand = size_of_logits},
    {PAPER, "Lemma 3.1, step 1", "unions of two blocks of M tokens are calls of length M", "M = 16",
     "blocks of floor((M-1)/2), or tokens that carry a query and another one's key",
     "length_lemma_3_1_unions_are_too_long", STEP_FALSE, AT_MOST, .hand = unions},
    {PAPER, "Lemma 3.1, step 1",
     "subtracting gives the other block's mass up to eps / 10, relative",
     "masses e^60 and 1, eps = 1e-6",
     "relative to the union, which is enough where the result contains it",
     "length_lemma_3_1_subtraction_loses_every_digit", STEP_FALSE, AT_MOST, .hand = subtraction},
    {PAPER, "Lemma 3.1, step 2", "sum a v up to a factor 1 + eps", "a = (1, 1), v = (1, -1.001)",
     "relative to sum a |v|", "length_lemma_3_1_sums_of_mixed_signs_are_not_relative", STEP_FALSE,
     AT_MOST, .hand = mixed_signs},
    {PAPER, "Lemma 3.3, proof", "a head attends and passes other columns on: what arrives of 1",
     "two tokens, 1 and -1, uniform attention", "copy heads, or a residual stream",
     "length_lemma_3_3_a_head_cannot_attend_and_copy", STEP_FALSE, EQUAL,
     .evaluate = attend_and_copy},
    {PAPER, "Lemma 3.3", "H'L' instances in a call", "H' = 3, L' = 2, no residual stream: our plan",
     "open: our plans reach (H'-1)L' with a wide head, floor(H'/2)L' with equal ones",
     "length_lemma_3_3_our_plans_hold_fewer_instances", STEP_FALSE, AT_LEAST, .evaluate = instances,
     .stands = true},
    {PAPER, "Theorem 3.5, type 1", "with both orders reversed every pair is covered once",
     "four tokens: query 2 and key 2", "a forward staircase and a strict reversed one",
     "length_theorem_3_5_counts_the_diagonal_twice", STEP_FALSE, EQUAL,
     .evaluate = reversed_orders},
    {PAPER, "Theorem 4.1, proof",
     "one call for each chunk permutes tokens (Lemma A.3): chunk 1 gives 3",
     "chunks (1, 2) and (3, 4)", "the permutation moves data; calls see the drawn keys",
     "length_theorem_4_1_cannot_permute_across_chunks", STEP_FALSE, EQUAL, .evaluate = permuted},
    {PAPER, "Theorem 5.1, proof", "Claim B.6 returns the mass up to i - r for query i",
     "masses 1, i = 10, r = 4", "queries shifted by r against keys",
     "length_theorem_5_1_prefix_is_not_shifted", STEP_FALSE, EQUAL, .hand = shifted_prefix},
    {PAPER, "Theorem 5.1, proof", "a window is a prefix minus a prefix, up to eps",
     "a key of e^60 has left the window, eps = 1e-6", "two triangles, no subtraction",
     "length_theorem_5_1_windows_lose_every_digit", STEP_FALSE, AT_MOST,
     .hand = window_by_subtraction},
    {PAPER, "Theorem 5.1, proof", "sinks are added: keys that are counted twice",
     "r = 4, s = 3, row 3", "only those below i - r + 1", "length_theorem_5_1_counts_sinks_twice",
     STEP_FALSE, AT_MOST, .hand = sinks_twice},
    {PAPER, "Lemma 3.1, setting", "an error of 2^-N from numbers of O(log N) bits: its log2",
     "N = 64, 24 bits: the mean of (1, 0, 0)",
     "O(log N) bits carry 1/poly(N); our error is rounding, with a bound",
     "length_few_bits_do_not_carry_two_to_the_minus_n", IMPRECISE, AT_MOST, .hand = tiny_eps},
    {PAPER, "Theorem 4.2", "a penalty of B^2 leaves e^-B",
     "B = 4, one key of another input: it holds", "2 C2 (G - 1) e^(2 C1 - B^2)",
     "length_theorem_4_2_penalty_leaves_far_less", IMPRECISE, AT_MOST, .hand = penalty,
     .stands = true},
};

const errata errata_length = {list, sizeof list / sizeof *list};
