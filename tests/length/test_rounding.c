/* Tests src/length/rounding.c term by term: bounds beside the formulas of docs/theory/length.md
 * (Rounding) in long double, with facts that let each term count. Below the formula a bound is
 * false, TIGHT above it needlessly large. test_rounding_runs.c has engines that round. */
#include "length/attend_plan.h"
#include "length/rounding.h"
#include "length_cases.h"

#define TIGHT 0x1p-33L

static void check_within(double got, long double want, long double tight, const char *what,
                         uint64_t seed)
{
    if ((long double)got >= want && (long double)got <= want * (1 + tight)) return;
    fail_msg("%s, seed %llu: %.17g, the formula says %.17Lg", what, (unsigned long long)seed, got,
             want);
}

static void check(double got, long double want, const char *what, uint64_t seed)
{
    check_within(got, want, TIGHT, what, seed);
}

/* ---- the formulas ---------------------------------------------------------------------------- */

typedef struct formula {
    long double factor, absent;
    long double tight; /* for absent, in which e^size may stand */
} formula;

static long double gamma_n(long double n, long double u)
{
    return n * u / (1 - n * u);
}

static formula formula_of(const pare_oracle_caps *c, const row_facts *f)
{
    const bool f32 = c->dtype == PARE_F32;
    const long double u = f32 ? 0x1p-24L : 0x1p-53L, tiny = f32 ? 0x1p-126L : 0x1p-1022L;
    const long double dk = f->dk, size = f->size, sums = gamma_n((long double)f->m + 4, u);
    const long double flush = isinf(c->exp_flush) ? 800 : (long double)c->exp_flush + 2;
    const long double lambda = gamma_n(dk + 4, u) * size + tiny * (long double)f->entries;
    const long double range = fminl((long double)f->range + 2 * lambda, flush);
    const long double delta =
        lambda + u * range + ((long double)c->exp_err + 1) * u * ((long double)f->m + 2);
    long double theta = 2 * delta + 2 * sums + lambda + 4 * u; /* a partial sum */
    theta += gamma_n(6 * (long double)f->parts + 8, 0x1p-53L) + 0x1p-53L * range; /* f64 merge */
    theta += (long double)f->merges * (6 * delta + 6 * sums + 10 * u * flush);
    formula out = {.factor = expm1l(2 * theta), .tight = TIGHT};
    const long double lost = fmaxl(tiny, expl(2 * delta - (long double)c->exp_flush));
    const long double off = size * (2 * out.factor + 8 * u) + 2 * lambda + 0x1p-30L;
    const long double near = expl(fminl((long double)f->max_logit, 0) - off);
    if (!f->native && near > (long double)c->w_min) out.tight += off * 0x1p-36L;
    if (f->native)
        out.absent =
            4 * ((long double)f->n + ((long double)f->m + 4) * (long double)f->parts) * lost;
    else
        out.absent = 4 * lost / fmaxl(near, (long double)c->w_min) *
                     ((long double)f->n +
                      ((long double)f->m + 4) * (long double)f->m * (long double)f->parts);
    return out;
}

static double any_size(pare_rng *r, double least, double most)
{
    return pare_rng_below(r, 4) ? least * exp(log(most / least) * pare_rng_uniform(r)) : 0;
}

/* Facts of any order of magnitude; theta up to about 1. */
static void every_term_counts(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        pare_rng r = pare_rng_at(seed, 9);
        const bool f32 = pare_rng_below(&r, 2);
        const double u = f32 ? 0x1p-24 : 0x1p-53;
        const pare_oracle_caps c = {.dtype = f32 ? PARE_F32 : PARE_F64,
                                    .exp_err = any_size(&r, 1, 0.01 / u),
                                    .exp_flush =
                                        pare_rng_below(&r, 4) ? any_size(&r, 1, 800) : INFINITY,
                                    .w_min = 1e-30 + any_size(&r, 1e-30, 1)};
        const double m = 1 + floor(any_size(&r, 1, f32 ? 1e5 : 1e9));
        const row_facts f = {.dk = (size_t)any_size(&r, 1, f32 ? 1e6 : 1e12),
                             .size = any_size(&r, 1e-3, f32 ? 30 : 1e6),
                             .entries = any_size(&r, 1, f32 ? 0x1p120 : 0x1p1015),
                             .range = any_size(&r, 1, f32 ? 1e4 : 1e9),
                             .max_logit =
                                 pare_rng_below(&r, 2) ? -any_size(&r, 1, 40) : any_size(&r, 1, 40),
                             .n = 1 + floor(any_size(&r, 1, 1e8)),
                             .m = m,
                             .parts = floor(any_size(&r, 1, f32 ? 1e9 : 1e12)),
                             .merges = floor(any_size(&r, 1, 30)),
                             .native = pare_rng_below(&r, 2)};
        const formula want = formula_of(&c, &f);
        if (!(want.factor < 20)) continue;
        const rounding got = rounding_of(&c, &f);
        check(got.factor, want.factor, "factor", seed);
        check_within(got.absent, want.absent, want.tight, "absent", seed);
        const double mean = any_size(&r, 1e-3, 1e3), v = mean + any_size(&r, 1e-3, 1e3);
        check_within(rounding_bound(&got, mean, v),
                     want.factor * (long double)mean + want.absent * (1 + (long double)v),
                     want.tight, "bound", seed);
    }
}

/* One source of error each, within a percent of what it alone makes. */
static void each_error_alone(void **state)
{
    (void)state;
    const double u = 0x1p-24;
    const pare_oracle_caps f32 = {.dtype = PARE_F32, .exp_flush = 104, .w_min = 1};
    const pare_oracle_caps f64 = {.dtype = PARE_F64, .exp_flush = 746, .w_min = 1};
    pare_oracle_caps coarse = f32;
    coarse.exp_err = 1e5;
    const struct {
        const char *what;
        const pare_oracle_caps *caps;
        row_facts f;
        double theta;
    } cases[] = {
        /* gamma_(dk+4) size, in both weights of a quotient and in the maximum of a call */
        {"logits", &f32, {.dk = 99996, .size = 1, .m = 1}, 3 * (1e5 * u / (1 - 1e5 * u))},
        /* tiny entries: 2^-126 2^120, three times */
        {"lost entries", &f32, {.entries = 0x1p120, .m = 1}, 3 * 0x1p-6},
        /* u min(range, flush), twice */
        {"range", &f32, {.range = 100, .m = 1}, 2 * 100 * u},
        {"range beyond flush", &f32, {.range = 1e9, .m = 1}, 2 * 106 * u},
        {"exp", &coarse, {.m = 8}, 2 * 1e5 * 10 * u},
        {"sums", &f32, {.m = 99996}, 2 * 1e5 * u + 2 * (1e5 * u / (1 - 1e5 * u))},
        {"merges in f64", &f64, {.m = 1, .parts = 1e12}, 6e12 * 0x1p-53},
        {"merges by calls", &f32, {.m = 1, .merges = 1e3}, 1e3 * (6 * 3 + 6 * 5 + 10 * 106) * u},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        /* what stands beside every one of them: exp, sums and the result of a call of m rows */
        const double v = cases[i].caps->dtype == PARE_F32 ? u : 0x1p-53;
        const double beside = cases[i].f.m == 1 ? (2 * 3 + 2 * 5 + 4) * v + 8 * 0x1p-53 : 0;
        const double got = rounding_of(cases[i].caps, &cases[i].f).factor;
        const double want = expm1(2 * (cases[i].theta + beside));
        if (!(fabs(got - want) <= 0.01 * want))
            fail_msg("%s: %g, expected %g", cases[i].what, got, want);
    }
}

static void what_cannot_be_bounded_is_infinite(void **state)
{
    (void)state;
    const pare_oracle_caps c = {.dtype = PARE_F32, .exp_flush = 104, .w_min = 0.5};
    const row_facts huge = {.dk = 0xfffffc, .m = 2}; /* gamma of 2^24 is none */
    assert_true(isinf(rounding_of(&c, &huge).factor) && isinf(rounding_of(&c, &huge).absent));
    const row_facts beyond = {.dk = 3 << 23, .size = 1, .m = 2};
    assert_true(isinf(rounding_of(&c, &beyond).factor));
    const row_facts nearly = {.dk = 0xfffffb, .m = 2};
    assert_true(isfinite(rounding_of(&c, &nearly).factor));
    const row_facts none = {.size = NAN, .m = 2};
    assert_true(isinf(rounding_of(&c, &none).factor) && isinf(rounding_of(&c, &none).absent));
    assert_true(rounding_bound(&(rounding){0, 0}, 1, 1) == 0);
    assert_true(isinf(rounding_bound(&(rounding){NAN, 0}, 1, 1)));
    /* where the reference may be far above all logits, w_min is all that is known */
    const row_facts below = {.m = 2, .n = 3, .parts = 5, .max_logit = -INFINITY};
    check(rounding_of(&c, &below).absent, 4 * (3 + 6 * 2 * 5) * 0x1p-126L / 0.5L, "absent", 0);
}

/* ---- the facts of a row ---------------------------------------------------------------------- */

/* m, parts and merges as the plan has them. */
typedef struct sizes {
    double m, parts, merges;
    bool native;
} sizes;

static void facts_of(row_facts *f, long double *mean, double *largest, const length_case *c,
                     double scale, const pare_keys *keys, size_t i, const sizes *s)
{
    long double top = -INFINITY, low = INFINITY, size = 0, entries = 0, most = 0;
    long double *const l = calloc(keys->count, sizeof *l), sum = 0;
    assert_non_null(l);
    for (size_t x = 0; x < keys->count; x++) {
        long double a = 0, e = 0;
        for (size_t k = 0; k < c->dk; k++) {
            const long double q = (long double)scale * (long double)c->q[i * c->dk + k],
                              key = c->k[pare_key(keys, x) * c->dk + k];
            l[x] += q * key, a += fabsl(q * key), e += fabsl(q) + fabsl(key);
        }
        top = fmaxl(top, l[x]), low = fminl(low, l[x]);
        size = fmaxl(size, a), entries = fmaxl(entries, e);
    }
    for (size_t x = 0; x < keys->count; x++) sum += l[x] = expl(l[x] - top);
    *largest = 0;
    for (size_t k = 0; k < c->dv; k++) {
        long double y = 0;
        for (size_t x = 0; x < keys->count; x++) {
            const double v = fabs(c->v[pare_key(keys, x) * c->dv + k]);
            y += l[x] * (long double)v, *largest = fmax(*largest, v);
        }
        most = fmaxl(most, y / sum);
    }
    free(l);
    *mean = most;
    *f = (row_facts){.dk = c->dk + 1, /* calls have one column more */
                     .size = (double)size,
                     .entries = (double)entries,
                     .range = (double)(fmaxl(top, 0) - fminl(low, 0)),
                     .max_logit = (double)top,
                     .n = (double)keys->count,
                     .m = s->m,
                     .parts = s->parts,
                     .merges = s->merges,
                     .native = s->native};
}

/* A last digit less, for facts that are rounded to f64 here. */
static long double less(long double x)
{
    return x * (1 - 0x1p-45L);
}

static void check_rows(length_case *c, double scale, const pare_pattern *p,
                       const pare_oracle_caps *caps, const pare_length_opts *o, const sizes *s,
                       uint64_t seed)
{
    pare_length_job job = job_of(c, caps->dtype);
    double *const bound = doubles(c->a, c->n);
    pare_err err = {0};
    job.scale = scale;
    assert_ok(pare_length_rounding(bound, &job, p, NULL, caps, o, NULL, &err), &err);
    for (size_t i = 0; i < c->n; i++) {
        const pare_keys keys = pare_visible(p, NULL, c->n, i);
        row_facts f;
        long double mean;
        double largest;
        facts_of(&f, &mean, &largest, c, scale, &keys, i, s);
        const formula e = formula_of(caps, &f);
        check_within(bound[i], less(e.factor * mean + e.absent * ((long double)largest + 1)),
                     e.tight, "row", seed * 1000 + i);
    }
}

static pare_oracle_caps drawn_caps(pare_rng *r, pare_dtype t, uint32_t m)
{
    return (pare_oracle_caps){
        .size = sizeof(pare_oracle_caps),
        .features = QKV_FULL | QKV_CAUSAL | PARE_ORC_PARTIAL | PARE_ORC_STRICT,
        .max_len = m,
        .dtype = t,
        .exp_flush = pare_rng_below(r, 2) ? 104 : 10 + 30 * pare_rng_uniform(r),
        .exp_err = any_size(r, 1, t == PARE_F32 ? 1e4 : 1e12),
        .w_min = any_size(r, 1e-14, 5e-13)};
}

/* 2 ceil(n / (m - 1)) + 64 parts; strict: so many levels of trees of m - 1 leaves. */
static const struct {
    size_t n;
    uint32_t max_len;
    pare_length_opts o;
    sizes s;
} plans[] = {
    {20, 5, {.mode = PARE_LENGTH_NATIVE}, {5, 2 * 5 + 64, 0, true}},
    {7, 1, {.mode = PARE_LENGTH_NATIVE}, {1, 2 * 7 + 64, 0, true}},
    {9, 30, {.mode = PARE_LENGTH_NATIVE}, {10, 2 * 1 + 64, 0, true}},
    {20, 6, {.mode = PARE_LENGTH_ZEROREF}, {6, 2 * 4 + 64, 0, false}},
    {20, 2, {.mode = PARE_LENGTH_ZEROREF}, {2, 2 * 20 + 64, 0, false}},
    {9, 30, {.mode = PARE_LENGTH_ZEROREF}, {10, 2 * 1 + 64, 0, true}}, /* one call */
    {9,
     30,
     {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL | PARE_ORC_STATIC},
     {30, 66, 0, false}},
    {20, 6, {.mode = PARE_LENGTH_ZEROREF, .one_vector = true}, {6, 2 * (2 * 4 + 64), 0, false}},
    {20, 6, {.mode = PARE_LENGTH_STRICT}, {6, 72, 3, false}},  /* 72 <= 5^3 */
    {64, 3, {.mode = PARE_LENGTH_STRICT}, {3, 128, 7, false}}, /* 128 = 2^7 */
    {33, 2, {.mode = PARE_LENGTH_STRICT}, {2, 130, 8, false}}, /* as if of 2 */
};

static void rows_are_judged_by_their_own_numbers(void **state)
{
    (void)state;
    static const pare_pattern full = {.kind = PARE_FULL};
    for (uint64_t seed = 0; seed < 220; seed++) {
        const size_t x = seed % (sizeof plans / sizeof *plans);
        pare_rng r = pare_rng_at(seed, 5);
        length_case c = length_case_new(plans[x].n, 2 + pare_rng_below(&r, 5), 2,
                                        (regime)(seed % REGIMES), seed);
        const pare_dtype t = seed / 11 % 2 ? PARE_F32 : PARE_F64;
        const pare_oracle_caps caps = drawn_caps(&r, t, plans[x].max_len);
        check_rows(&c, seed % 3 ? 1 : -0.7, &full, &caps, &plans[x].o, &plans[x].s, seed);
        length_case_free(&c);
    }
}

/* Keys that a row does not see are nothing to it; a row that sees none has no error. */
static void only_visible_keys_count(void **state)
{
    (void)state;
    static const pare_pattern window = {.kind = PARE_WINDOW, .window = 3, .sinks = 1};
    static const size_t ptr[] = {0, 0, 1};
    static const uint32_t idx[] = {1};
    const pare_graph g = {2, ptr, idx};
    pare_rng r = pare_rng_at(3, 5);
    length_case c = length_case_new(20, 3, 2, PEAKY, 3), two = length_case_new(2, 2, 1, BENIGN, 3);
    const pare_oracle_caps caps = drawn_caps(&r, PARE_F32, 5);
    check_rows(&c, 1, &window, &caps, &plans[0].o, &plans[0].s, 0);
    const pare_length_job job = job_of(&two, PARE_F32);
    double bound[2] = {NAN, NAN};
    pare_err err = {0};
    assert_ok(pare_length_rounding(bound, &job, &(pare_pattern){.kind = PARE_GRAPH}, &g, &caps,
                                   &plans[0].o, NULL, &err),
              &err);
    assert_true(bound[0] == 0 && bound[1] > 0);
    length_case_free(&two);
    length_case_free(&c);
}

/* ---- the roundings of the bound itself ------------------------------------------------------- */

static const pare_oracle_caps exact_f64 = {.size = sizeof exact_f64,
                                           .features = QKV_FULL | PARE_ORC_PARTIAL,
                                           .max_len = 5,
                                           .dtype = PARE_F64,
                                           .exp_flush = INFINITY,
                                           .w_min = 0x1p-900};

/* Bound and a-priori bound of row 0 of a native plan. */
static void judge(double *bound, double *apriori, length_case *c, double scale,
                  const pare_oracle_caps *caps)
{
    const pare_length_plan plan = {
        .pattern = {.kind = PARE_FULL}, .caps = *caps, .opts = {.mode = PARE_LENGTH_NATIVE}};
    pare_length_job job = job_of(c, caps->dtype);
    pare_err err = {0};
    job.scale = scale;
    assert_ok(rounding_row(bound, apriori, &plan, &job, 0, 0, &err), &err);
}

static void fill(double *x, size_t n, double first, double others)
{
    for (size_t i = 0; i < n; i++) x[i] = i ? others : first;
}

enum { LONG = 1 << 17 };

/* 1 and very many numbers that f64 loses when it adds them to 1. */
static void sums_are_taken_up(void **state)
{
    (void)state;
    length_case c = length_case_new(2, LONG, 1, BENIGN, 1);
    double bound, apriori;
    row_facts f = {.dk = LONG + 1, .n = 2, .m = 3, .parts = 66, .native = true};
    const long double all = 1 + LONG * 0x1p-53L; /* of what f64 takes for 1 */
    fill(c.v, 2, 1, 1);

    fill(c.q, (size_t)2 * LONG, 1, 1);
    fill(c.k, LONG, 1, 0x1p-53), fill(c.k + LONG, LONG, 1, 0x1p-53);
    judge(&bound, &apriori, &c, 1, &exact_f64);
    f.size = (double)all, f.range = 1, f.entries = 2 * LONG;
    check_within(bound, less(formula_of(&exact_f64, &f).factor), 0x1p-38L, "products", 0);

    fill(c.q, (size_t)2 * LONG, 0, 0);
    fill(c.k, LONG, 0x1p1000, 0x1p947), fill(c.k + LONG, LONG, 0x1p1000, 0x1p947);
    judge(&bound, &apriori, &c, 1, &exact_f64);
    f.size = f.range = 0, f.entries = (double)(0x1p1000L * all);
    check_within(bound, less(formula_of(&exact_f64, &f).factor), 0x1p-38L, "entries", 0);

    /* a query and keys that have no column in common; the key of more is the first */
    fill(c.q, (size_t)2 * LONG, 0x1p1000, 0);
    fill(c.k, (size_t)2 * LONG, 0, 0);
    c.k[1] = 0x1p1001, c.k[LONG + 1] = 0x1p1000;
    judge(&bound, &apriori, &c, -0.25, &exact_f64);
    f.entries = 2.25 * 0x1p1000;
    check_within(bound, less(formula_of(&exact_f64, &f).factor), 0x1p-35L, "entries of both", 0);

    const double x = nextafter(sqrt(0x1p-53), 0); /* squares */
    fill(c.q, LONG, 1, x), fill(c.q + LONG, LONG, 1, x);
    fill(c.k, LONG, 1, x), fill(c.k + LONG, LONG, 1, x);
    judge(&bound, &apriori, &c, 1, &exact_f64);
    f.size = (double)all, f.range = 2 * f.size, f.entries = 2 * sqrt(LONG);
    check_within(apriori, less(formula_of(&exact_f64, &f).factor), 0x1p-38L, "norms", 0);
    length_case_free(&c);
}

/* sum p |v| is computed in f64, which may lose some of it; but it is at most max |v|. */
static void means_are_taken_up(void **state)
{
    (void)state;
    const pare_oracle_caps own = {.dtype = PARE_F64, .exp_err = 2, .exp_flush = INFINITY};
    double bound, apriori, largest;
    long double mean;
    row_facts f;
    length_case many = length_case_new(1 << 15, 2, 1, BENIGN, 1);
    const pare_keys keys = pare_visible(&(pare_pattern){.kind = PARE_FULL}, NULL, many.n, 0);
    judge(&bound, &apriori, &many, 1, &exact_f64);
    facts_of(&f, &mean, &largest, &many, 1, &keys, 0, &(sizes){(double)many.n, 0, 0, true});
    const formula mine = formula_of(&own, &f);
    f.m = 5, f.parts = 2 * (1 << 13) + 64;
    const formula e = formula_of(&exact_f64, &f);
    check_within(bound, less(e.factor * mean * (1 + mine.factor)), 0x1p-38L, "mean", 0);
    length_case_free(&many);

    /* f64 may lose such values, and weights beside values of any size */
    for (int huge = 0; huge < 2; huge++) {
        length_case tiny = length_case_new(4, 2, 1, BENIGN, 1);
        pare_oracle_caps coarse = exact_f64;
        coarse.exp_err = 1.3 / 0x1p-53 / 2;
        fill(tiny.v, 4, 0x1p-1021, 0x1p-1021);
        tiny.v[3] = huge ? 0x1p1000 : 0x1p-1010;
        tiny.k[6] = -1e3 * tiny.q[0], tiny.k[7] = -1e3 * tiny.q[1]; /* a key without weight */
        const pare_keys four = pare_visible(&(pare_pattern){.kind = PARE_FULL}, NULL, 4, 0);
        judge(&bound, &apriori, &tiny, 1, &coarse);
        facts_of(&f, &mean, &largest, &tiny, 1, &four, 0, &(sizes){4, 0, 0, true});
        const formula lost = formula_of(&own, &f);
        f.m = 5, f.parts = 66;
        const formula most = formula_of(&coarse, &f);
        assert_true(most.factor > 1e4L);
        check_within(bound,
                     less(most.factor * (mean + lost.absent * (1 + (long double)largest)) +
                          most.absent * (1 + (long double)largest)),
                     0x1p-33L, "lost", (uint64_t)huge);
        length_case_free(&tiny);
    }
}

/* Norms in the place of the row's own sums. */
static void norms_bound_every_row(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        length_case c = length_case_new(6, 2 + seed % 3, 2, (regime)(seed % REGIMES), seed);
        pare_rng r = pare_rng_at(seed, 6);
        const pare_oracle_caps caps = drawn_caps(&r, seed % 2 ? PARE_F32 : PARE_F64, 4);
        const bool strict = seed % 3 == 0;
        const size_t rows = seed % 5 == 2 ? 40 : seed % 5; /* of a call; 4 and below: as planned */
        const pare_length_plan plan = {
            .pattern = {.kind = PARE_FULL},
            .caps = caps,
            .opts = {.mode = strict ? PARE_LENGTH_STRICT : PARE_LENGTH_ZEROREF}};
        /* numbers below 1; queries, or keys, so large that lost entries of the others count */
        const float by_q = seed % 8 == 1 ? 0 : seed % 8 == 3 ? 0x1p120F : 0.125F;
        const float by_k = seed % 8 == 3 ? 0 : seed % 8 == 1 ? 0x1p120F : 0.125F;
        for (size_t i = 0; i < c.n * c.dk; i++) {
            c.q[i] = (double)(c.qf[i] *= by_q), c.k[i] = (double)(c.kf[i] *= by_k);
            if (i < c.n * c.dv) c.v[i] = (double)(c.vf[i] *= 0.125F);
        }
        c.q[c.n * c.dk] = c.k[c.n * c.dk] = c.v[c.n * c.dv] = 0x1p125; /* nobody's */
        c.qf[c.n * c.dk] = c.kf[c.n * c.dk] = c.vf[c.n * c.dv] = 0x1p125F;
        pare_length_job job = job_of(&c, caps.dtype);
        pare_err err = {0};
        double bound, apriori, v = 0;
        long double q = 0, k = 0;
        job.scale = -0.3;
        assert_ok(rounding_row(&bound, &apriori, &plan, &job, seed % 6, rows, &err), &err);
        for (size_t i = 0; i < c.n; i++) {
            long double a = 0, b = 0;
            for (size_t e = 0; e < c.dk; e++) {
                const long double x = c.q[i * c.dk + e], y = c.k[i * c.dk + e];
                a += x * x, b += y * y;
            }
            q = fmaxl(q, (long double)0.3 * sqrtl(a)), k = fmaxl(k, sqrtl(b));
            for (size_t e = 0; e < c.dv; e++) v = fmax(v, fabs(c.v[i * c.dv + e]));
        }
        const row_facts f = {.dk = c.dk + 1,
                             .size = (double)(q * k),
                             .entries = (double)(sqrtl(c.dk) * (q + k)),
                             .range = (double)(2 * q * k),
                             .max_logit = (double)(-q * k),
                             .n = 6,
                             .m = rows > 4 ? (double)rows : 4,
                             .parts = 2 * 2 + 64,
                             .merges = strict ? 4 : 0}; /* 68 <= 3^4 */
        const formula e = formula_of(&caps, &f);
        check_within(apriori, less(e.factor * (long double)v + e.absent * (1 + (long double)v)),
                     e.tight, "apriori", seed);
        assert_le(bound, apriori);
        length_case_free(&c);
    }
}

/* Modes that have other bounds, or none. */
static void only_modes_that_round_have_a_bound(void **state)
{
    (void)state;
    const pare_length_opts o = {.mode = PARE_LENGTH_SAMPLE};
    length_case c = length_case_new(8, 2, 1, BENIGN, 1);
    const pare_length_job job = job_of(&c, PARE_F64);
    double bound[8];
    pare_err err = {0};
    pare_rng r = pare_rng_at(1, 5);
    const pare_oracle_caps caps = drawn_caps(&r, PARE_F64, 4);
    assert_status(pare_length_rounding(bound, &job, &(pare_pattern){.kind = PARE_FULL}, NULL, &caps,
                                       &o, NULL, &err),
                  PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "has no rounding bound");
    /* without options: with a reference, where the engine has no partial results */
    pare_oracle_caps softmax = caps;
    double again[8];
    softmax.features = QKV_FULL;
    assert_ok(pare_length_rounding(bound, &job, &(pare_pattern){.kind = PARE_FULL}, NULL, &softmax,
                                   NULL, NULL, &err),
              &err);
    assert_ok(pare_length_rounding(again, &job, &(pare_pattern){.kind = PARE_FULL}, NULL, &softmax,
                                   &(pare_length_opts){.mode = PARE_LENGTH_ZEROREF}, NULL, &err),
              &err);
    assert_memory_equal(bound, again, sizeof bound);
    length_case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_term_counts),
        cmocka_unit_test(each_error_alone),
        cmocka_unit_test(what_cannot_be_bounded_is_infinite),
        cmocka_unit_test(rows_are_judged_by_their_own_numbers),
        cmocka_unit_test(only_visible_keys_count),
        cmocka_unit_test(sums_are_taken_up),
        cmocka_unit_test(means_are_taken_up),
        cmocka_unit_test(norms_bound_every_row),
        cmocka_unit_test(only_modes_that_round_have_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
