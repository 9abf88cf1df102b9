/* The length paper's errata, computed. What its algorithm does to data, whole, is the table
 * "errors" of `repro length`. */
#include "repro_errata.h"
#include <pare/length.h>
#include <math.h>

/* ---- masses ---------------------------------------------------------------------------------- */

static sides returned_mass(void)
{
    const double s = 1, c = 11, weight = s / (s + exp(c - 1));
    return (sides){s, weight, weight / (1 - weight) * exp(c - 1)};
}

/* All entries of X, Wq, Wk are b. */
static sides size_of_logits(void)
{
    const double d = 4, b = 2, q = d * b * b, logit = d * q * q;
    return (sides){d * b * b, logit, d * d * d * b * b * b * b};
}

static sides tiny_eps(void)
{
    return (sides){0x1p-1074, exp(-1076 * log(2)), NAN}; /* the least number of f64 */
}

static sides unions(void)
{
    const double m = 16, dominating = 1;
    return (sides){m, m + m + dominating, NAN};
}

static sides subtraction(void)
{
    const double eps = 1e-6, own = exp(60), other = 1, both = own + other;
    return (sides){eps / 10, fabs((both - own) - other) / other, NAN};
}

/* Weights off by eps either way: relative error of the sum. */
static sides mixed_signs(void)
{
    const double eps = 1e-6, t = 1e-3, v[] = {1, -1 - t}, a[] = {1 + eps, 1 - eps};
    const double sum = v[0] + v[1], got = a[0] * v[0] + a[1] * v[1];
    return (sides){eps, fabs(got - sum) / fabs(sum), eps * (fabs(v[0]) + fabs(v[1])) / fabs(sum)};
}

/* ---- calls, heads, orders -------------------------------------------------------------------- */

static sides pairs_of_blocks(void)
{
    const int blocks = 8;
    double once = 0;
    for (int s = 0; s < blocks; s++)
        for (int t = s; t < blocks; t++) once++;
    return (sides){(double)blocks * blocks, once, blocks * (blocks + 1) / 2.0};
}

/* One call of the paper's own oracle on two tokens of two numbers. */
static pare_status ask_paper(double *y, const double x[4], const pare_head_w *h, uint32_t wide,
                             pare_err *err)
{
    const pare_call c = {.kind = PARE_CALL_STRICT,
                         .u.s = {.x = x, .n = 2, .din = 2, .heads = h, .y = y, .dout = wide}};
    pare_oracle o;
    pare_status st = pare_oracle_paper(&o, PARE_F64, 2, 1, 1, PARE_ORC_FULL, NULL, err);
    if (st) return st;
    st = o.ops->evaluate(o.self, &c, 1, err);
    if (!st) st = o.ops->barrier(o.self, err);
    pare_oracle_free(&o);
    return st;
}

/* Uniform attention over (1, -1) with identity values. */
static pare_status attend_and_copy(sides *out, const erratum *e, pare_err *err)
{
    const double x[4] = {1, 0, -1, 0}, zero[2] = {0}, identity[4] = {1, 0, 0, 1};
    double y[4] = {NAN};
    const pare_head_w h = {zero, zero, identity, 2, 1, 2};
    (void)e;
    const pare_status st = ask_paper(y, x, &h, 2, err);
    *out = (sides){x[0], y[0], NAN};
    return st;
}

/* A look-up on the first of two chunks (1, 2), (3, 4), asked for the other chunk's first token:
 * what the paper's own oracle answers. */
static pare_status permuted(sides *out, const erratum *e, pare_err *err)
{
    const double x[4] = {1, -1, 2, 1}; /* the chunk with its codes */
    const double second[2] = {0, 512}, bit[2] = {0, 1}, value[2] = {1, 0};
    double y[2] = {NAN, NAN};
    const pare_head_w h = {second, bit, value, 2, 1, 1};
    (void)e;
    const pare_status st = ask_paper(y, x, &h, 1, err);
    *out = (sides){3, y[1], NAN};
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
        a ? pare_length_plan_make(&plan, a, h, HEADS, 4 * M, &full, NULL, &caps, &o, err)
          : pare_no_memory(err);
    const double calls = st ? NAN : (double)(plan.cost.calls - plan.cost.merge_calls);
    const double packed = (double)plan.cost.instances / calls;
    const sides s = {heads * layers, packed, (heads - 1) * layers};
    if (!st) *out = s;
    pare_arena_free(a);
    return st;
}

/* How often the forward and the reversed causal call let query i see key i. */
static sides reversed_orders(void)
{
    const int i = 2;
    double seen = 0;
    for (int j = 0; j < 4; j++) {
        seen += j == i && j <= i;         /* forward */
        seen += j == i && 3 - j <= 3 - i; /* both reversed */
    }
    return (sides){1, seen, 1};
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
    return (sides){wanted, returned, wanted};
}

/* Masses e^60 once, then 1: the window's, as a difference of prefixes; its relative error. */
static sides window_by_subtraction(void)
{
    const int i = 20, r = 8;
    double prefix = 0, before = 0, mass = 0;
    for (int j = 0; j <= i; j++) {
        const double a = j == 0 ? exp(60) : 1;
        prefix += a;
        if (j <= i - r) before += a;
        if (j > i - r) mass += a;
    }
    return (sides){1e-6, fabs((prefix - before) - mass) / mass, NAN};
}

static sides sinks_twice(void)
{
    const int r = 4, s = 3, i = 3;
    double twice = 0;
    for (int j = 0; j <= i; j++) twice += j < s && j + r > i;
    return (sides){0, twice, 0};
}

/* ---- sampling, packing, rounding ------------------------------------------------------------- */

static sides sample_size(void)
{
    const double n = 4096, eps = .5, d = 1;
    return (sides){n, 800 * log(40 * n) / (eps * eps * d * d), NAN};
}

static sides factor_cancels(void)
{
    const double a[3] = {1, 2, 4}, v[3] = {1, -1, 3}, factor = 8;
    double num = 0, den = 0, scaled_num = 0, scaled_den = 0;
    for (size_t i = 0; i < 3; i++) {
        num += a[i] * v[i], den += a[i];
        scaled_num += factor * a[i] * v[i], scaled_den += factor * a[i];
    }
    return (sides){factor, (scaled_num / scaled_den) / (num / den), 1};
}

/* One key of its own with value 0, one of another input, p below, with value 1: what leaks. */
static double leak(double p)
{
    const double a[] = {0, -p};
    double w[2];
    softmax_of(w, a, 2);
    return w[1];
}

static sides penalty(void)
{
    const double from = 16, to = 32; /* B = 4 and sqrt(32) */
    return (sides){sqrt(to) - sqrt(from), log(leak(from) / leak(to)), to - from};
}

static sides underflow(void)
{
    const float p = expf(-103.0f) / (1 + expf(-103.0f));
    const double truth = exp(-103.0) / (1 + exp(-103.0));
    return (sides){8 * 0x1p-24 * truth, fabs((double)(p * 1.0f) - truth), 2 * 0x1p-126};
}

/* ---- the list -------------------------------------------------------------------------------- */

static const erratum list[] = {
    {"Lemma 3.1, step 1", "the oracle returns the mass S", "S = 1, C = 11: S / (S + e^(C-1))",
     "multiplied back by e^(C-1); our reference needs no constant",
     "benign_data_is_within_its_promise", EQUAL, .hand = returned_mass},
    {"Lemma 3.1", "subtracting gives the other block's mass up to eps / 10, relative",
     "masses e^60 and 1, eps = 1e-6", "the error is relative to the union",
     "length_lemma_3_1_subtraction_loses_every_digit", AT_MOST, .hand = subtraction},
    {"Lemma 3.1, step 2", "sum a v up to a factor 1 + eps", "a = (1, 1), v = (1, -1.001)",
     "relative to sum a |v|", "every_row_is_within_its_bound", AT_MOST, .hand = mixed_signs},
    {"Lemma 3.1", "C >= ... + d B^2 covers the logits", "d = 4, B = 2, all entries B", "d^3 B^4",
     "length_logits_grow_with_the_cube_of_the_width", AT_MOST, .hand = size_of_logits},
    {"Lemma 3.1", "eps = 2^-N is a number of O(log N) bits", "e^-C in f64, N = 1076",
     "the error is rounding, with a bound", "length_eps_of_two_to_the_minus_n_underflows", AT_LEAST,
     .hand = tiny_eps},
    {"Lemma 3.1", "unions of two blocks of M tokens are calls of length M", "M = 16",
     "blocks of floor((M-1)/2), or tokens that carry a query and another one's key",
     "benign_data_is_within_its_promise", AT_MOST, .hand = unions},
    {"Lemma 3.1", "step 1 needs (N/M)^2 calls", "8 blocks: unions are symmetric", "T(T+1)/2",
     "the_table_of_the_spec", AT_LEAST, .hand = pairs_of_blocks},
    {"Lemma 3.3", "a head attends and passes other columns on: what arrives of 1",
     "two tokens, 1 and -1, uniform attention", "copy heads, or a residual stream",
     "length_lemma_3_3_a_head_cannot_attend_and_copy", EQUAL, .look = attend_and_copy},
    {"Lemma 3.3", "H'L' instances in a call", "H' = 3, L' = 2, no residual stream: our plan",
     "not reached by our constructions; at most (H'-1)L' with a wide head",
     "the_oracle_does_everything", AT_LEAST, .look = instances, .open = true},
    {"Theorem 3.5, type 1", "with both orders reversed every pair is covered once",
     "M = 4: query 2 and key 2", "a forward staircase and a strict reversed one",
     "every_pair_is_covered_once", EQUAL, .hand = reversed_orders},
    {"Theorem 4.1", "M >= 800 ln(40N) / (eps D)^2 is fewer than all keys",
     "N = 4,096, eps = 1/2, D = 1", "a bound for each row, from its observed denominator",
     "length_theorem_4_1_asks_for_more_than_all_keys", AT_MOST, .hand = sample_size},
    {"Theorem 4.1", "one call for each chunk permutes tokens (Lemma A.3): chunk 1 gives 3",
     "chunks (1, 2) and (3, 4)", "the permutation moves data; calls see the drawn keys",
     "length_theorem_4_1_cannot_permute_across_chunks", EQUAL, .look = permuted},
    {"Theorem 4.1", "the factor N/M changes the estimate", "three sampled keys, N/M = 8",
     "it cancels: the softmax over the sampled keys", "length_theorem_4_1_factor_cancels", EQUAL,
     .hand = factor_cancels},
    {"Theorem 4.2", "a penalty of B^2 leaves e^-B: what doubling it gains, in e-folds",
     "penalties 16 and 32", "2 C2 (G - 1) e^(2 C1 - P)", "a_small_penalty_leaks_what_is_said",
     EQUAL, .hand = penalty},
    {"Theorem 5.1", "Claim B.6 returns the mass up to i - r for query i", "masses 1, i = 10, r = 4",
     "queries shifted by r against keys", "benign_data_is_within_its_promise", EQUAL,
     .hand = shifted_prefix},
    {"Theorem 5.1", "a window is a prefix minus a prefix, up to eps",
     "f64, a key of e^60 has left the window, eps = 1e-6", "two triangles, no subtraction",
     "windows_by_subtraction_are_wrong", AT_MOST, .hand = window_by_subtraction},
    {"Theorem 5.1", "sinks are added: keys that are counted twice", "r = 4, s = 3, row 3",
     "only those below i - r + 1", "length_theorem_5_1_counts_sinks_twice", AT_MOST,
     .hand = sinks_twice},
    {"rounding", "merged results are off by relative terms only", "f32, logits (0, -103)",
     "an absolute term for underflow", "length_relative_rounding_bounds_miss_underflow", AT_MOST,
     .hand = underflow},
};

const errata errata_length = {list, sizeof list / sizeof *list};
