/* E5 and E7: how far bounds are from what is seen, and which layers to keep. */
#include "study_depth.h"
#include <math.h>
#include <string.h>

/* ---- E5: bound / measured -------------------------------------------------------------------- */

static const double tight_eta[] = {1e-3, 1e-2, 5e-2, 2e-1};
static const size_t tight_shape[][3] = {{2, 1, 4}, {4, 2, 8}, {8, 4, 16}, {4, 4, 64}};
static const pare_collapse tight_kinds[] = {PARE_ONE_KEEP, PARE_ONE_UNIFORM, PARE_ONE_PARALLEL,
                                            PARE_ONE_PARALLEL_UNIFORM};
#define ONE_SIGN 0.001
enum { TIGHT = 4, SHAPES = 4, TIGHT_ETAS = 4, RANDOM_PARTS = SHAPES * TIGHT_ETAS };

static size_t tight_parts(bool full)
{
    (void)full;
    return RANDOM_PARTS + 1; /* the last: weights of one sign */
}

/* Inputs in the box |x| <= 1: random, signs, offset, ones, halves of one sign. */
static pare_status box_inputs(pare_inputs *out, pare_arena *a, size_t n, size_t d, pare_rng *rng,
                              pare_err *err)
{
    const san_tokens t = {.n = 12, .tokens = n, .dim = d, .spread = 1};
    const pare_status st = san_inputs(out, a, &t, rng, err);
    double *const x = pare_alloc(a, 12 * n * d, sizeof *x);
    if (st) return st;
    if (!x) return pare_no_memory(err);
    for (size_t i = 0; i < 12; i++) {
        double *const to = x + i * n * d;
        for (size_t k = 0; k < n * d; k++) {
            const double v = out->in[i].x[k], common = k % d % 3 ? 0.6 : -0.6;
            to[k] = i < 3    ? v
                    : i < 7  ? (v < 0 ? -1 : 1)
                    : i < 10 ? common + 0.4 * v
                    : i < 11 ? 1
                             : (k / d < n / 2 ? 1 : -1);
        }
        out->in[i].x = to;
    }
    return PARE_OK;
}

static pare_status ratio_of(numbers *out, const compared *c, pare_collapse kind, pare_err *err)
{
    pare_model *g = NULL;
    pare_collapse_bound b = {.bound = pare_ub_inf()};
    double seen = NAN;
    pare_status st = compared_make(&g, c->m, kind, c->m->nblocks - 1, NULL, err);
    if (!st) st = compared_model(&seen, c, g, san_largest);
    if (!st) st = pare_collapse_apriori(&b, c->m, g, 1, NULL, err);
    number_put(out, seen);
    number_put(out, b.bound.v / seen);
    pare_model_free(g);
    return st;
}

static pare_status tight_run(numbers *out, const setting *s, size_t part, const pare_exec *exec,
                             pare_err *err)
{
    const bool same = part == RANDOM_PARTS;
    const size_t *const shape = tight_shape[same ? 1 : part % SHAPES];
    const double eta = same ? ONE_SIGN : tight_eta[part / SHAPES];
    const san_shape net = {.layers = shape[0],
                           .heads = shape[1],
                           .dim = shape[2],
                           .scale = 1 / sqrt((double)shape[2]),
                           .size = eta,
                           .draw = same ? SAN_SAME : SAN_EVEN};
    pare_rng rng = pare_rng_at(s->seed, 500 + part);
    pare_arena *const a = pare_arena_new();
    pare_model *m = NULL;
    pare_inputs x;
    compared c;
    pare_status st = a ? san_new(&m, &net, &rng, err) : pare_no_memory(err);
    if (!st) st = box_inputs(&x, a, 16, shape[2], &rng, err);
    if (!st) st = compared_open(&c, a, m, &x, NULL, err);
    for (size_t k = 0; !st && k < TIGHT; k++) {
        st = ratio_of(out, &c, tight_kinds[k], err);
        if (!st) st = pare_progress(exec, "", k + 1, TIGHT, err);
    }
    const pare_collapse_printed p = pare_collapse_paper(eta, 1, shape[1], shape[0]);
    number_put(out, p.bound);
    number_put(out, p.holds ? 1 : 0);
    pare_model_free(m);
    pare_arena_free(a);
    return st;
}

/* Our audit: bound / measured of keep, uniform, parallel, parallel+uniform. */
static const double tight_seen[RANDOM_PARTS][TIGHT] = {
    {1.42, 7.61, 4.99, 80.8},  {4.30, 31.2, 18, 1.26e3},     {11.32, 103, 94.7, 1.14e4},
    {12.72, 289, 94, 3.64e4},  {1.58, 6.42, 4.48, 155},      {3.97, 45.3, 17.3, 1.14e3},
    {25.04, 358, 151, 1.58e4}, {24.38, 943, 88.6, 4.09e4},   {1.59, 6.7, 3.49, 80.8},
    {9.29, 99.1, 27.7, 1.4e3}, {185.2, 7.25e3, 510, 1.13e5}, {99.55, 3.79e3, 240, 7.66e4},
    {2.02, 6.76, 2.87, 79.1},  {28.45, 455, 58.3, 4.79e3},   {5425, 6.52e4, 6e3, 4.59e5},
    {240.5, 570, 326, 2.76e3}};

static void tight_row(table_writer *s, const numbers *n, size_t part, bool *sound)
{
    const size_t *const shape = tight_shape[part % SHAPES];
    char *const data = s->st ? NULL : pare_sprintf(s->r->arena, "eta %g", tight_eta[part / SHAPES]);
    if (!s->st && !data) s->st = pare_no_memory(s->err);
    for (size_t k = 0; k < TIGHT && !s->st; k++) {
        row_ratio(s, data,
                  pare_sprintf(s->r->arena, "%s, %zu x %zu, d = %zu",
                               pare_collapse_names[tight_kinds[k]], shape[0], shape[1], shape[2]),
                  tight_seen[part][k], n->v[2 * k + 1], 6);
        if (!(n->v[2 * k + 1] >= 1)) *sound = false;
    }
}

static void tight_table(table_writer *s, const numbers *part, size_t n, const setting *of)
{
    bool sound = true;
    const double *const same = part[RANDOM_PARTS].v;
    (void)of;
    begin_table(s, "E5 bounds",
                "proven bound / worst of 12 inputs, |x| <= 1: never below 1; about sqrt(d)^k above "
                "it for random weights, near 1 for weights of one sign",
                -3, RANDOM_PARTS * TIGHT + 8);
    for (size_t p = 0; p < RANDOM_PARTS && p < n; p++) tight_row(s, &part[p], p, &sound);
    row_holds(s, "random", "no bound is below what was seen", sound, NAN);
    for (size_t k = 0; k < TIGHT && !s->st; k++) {
        static const double reference[TIGHT] = {1.00, 1 / .93, 1.00, NAN};
        row_ratio(s, "all +0.001", pare_collapse_names[tight_kinds[k]], reference[k],
                  same[2 * k + 1], k < 3 ? 1.5 : 4);
    }
    row_shape(s, "all +0.001", "keep and parallel are within 1.05",
              same[1] <= 1.05 && same[5] <= 1.05, fmax(same[1], same[5]));
    row_shape(s, "all +0.001", "the printed bound / keep, hypotheses hold: below 1",
              same[2 * TIGHT + 1] == 1 && same[2 * TIGHT] < same[0], same[2 * TIGHT] / same[0]);
}

const experiment tightness = {
    .stem = "bounds", .parts = tight_parts, .cost = 2, .run = tight_run, .table = tight_table};

/* ---- E7: which layers to keep
 * -------------------------------------------------------------------- */

enum { LAYERS = 8, SUBSETS = 1 << LAYERS, WAYS = 5 };
static const char *const way_names[WAYS] = {"greedy backward", "greedy forward", "additive (LOO)",
                                            "last k", "first k"};

static size_t subset_parts(bool full)
{
    return full ? 30 : 6;
}

/* Largest euclidean length of a token's difference. */
static double longest_token(const double *a, const double *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i += 8) most = fmax(most, san_distance(a + i, b + i, 8));
    return most;
}

/* What keeping the layers of each subset costs. */
static pare_status cost_of_all(double cost[SUBSETS], const compared *c)
{
    pare_block blocks[LAYERS];
    pare_model g = *c->m;
    pare_status st = PARE_OK;
    g.blocks = blocks;
    for (size_t set = 0; !st && set < SUBSETS; set++) {
        memcpy(blocks, c->m->blocks, sizeof blocks);
        for (size_t l = 0; l < LAYERS; l++)
            if (!(set >> l & 1)) blocks[l].attn.kind = PARE_ATTN_NONE; /* the skip stays */
        st = compared_model(&cost[set], c, &g, longest_token);
    }
    return st;
}

static size_t size_of(size_t set)
{
    size_t n = 0;
    for (; set; set &= set - 1) n++;
    return n;
}

/* Of the sets that differ from `set` by one layer more or less, the cheapest. */
static size_t step(const double *cost, size_t set, bool add)
{
    size_t best = SIZE_MAX;
    for (size_t l = 0; l < LAYERS; l++) {
        const size_t next = set ^ (size_t)1 << l;
        if ((next > set) != add) continue;
        if (best == SIZE_MAX || cost[next] < cost[best]) best = next;
    }
    return best;
}

/* The k layers whose removal alone costs most. */
static size_t additive(const double *cost, size_t k)
{
    size_t set = 0;
    for (size_t i = 0; i < k; i++) {
        size_t best = LAYERS;
        for (size_t l = 0; l < LAYERS; l++) {
            if (set >> l & 1) continue;
            const size_t without = SUBSETS - 1 - ((size_t)1 << l);
            if (best == LAYERS || cost[without] > cost[SUBSETS - 1 - ((size_t)1 << best)]) best = l;
        }
        set |= (size_t)1 << best;
    }
    return set;
}

static void put_ways(numbers *out, const double cost[SUBSETS])
{
    size_t back[LAYERS + 1], forward[LAYERS + 1];
    back[LAYERS] = SUBSETS - 1;
    forward[0] = 0;
    for (size_t k = LAYERS; k-- > 0;) back[k] = step(cost, back[k + 1], false);
    for (size_t k = 1; k <= LAYERS; k++) forward[k] = step(cost, forward[k - 1], true);
    for (size_t k = 1; k < LAYERS; k++) {
        double best = INFINITY;
        for (size_t set = 0; set < SUBSETS; set++)
            if (size_of(set) == k) best = fmin(best, cost[set]);
        const size_t first = ((size_t)1 << k) - 1;
        const size_t way[WAYS] = {back[k], forward[k], additive(cost, k), first << (LAYERS - k),
                                  first};
        for (size_t w = 0; w < WAYS; w++) number_put(out, cost[way[w]] / best);
    }
}

static pare_status subset_run(numbers *out, const setting *s, size_t part, const pare_exec *exec,
                              pare_err *err)
{
    static const double middle[8] = {.5, .5, .5, .5, .5, .5, .5, .5};
    const san_tokens t = {
        .n = 3, .tokens = 16, .dim = 8, .normal = true, .spread = 1, .offset = middle};
    pare_rng rng = pare_rng_at(s->seed, 700 + part);
    double gains[LAYERS], cost[SUBSETS];
    for (size_t l = 0; l < LAYERS; l++) gains[l] = exp(log(0.05) * (1 - pare_rng_uniform(&rng)));
    const san_shape shape = {.layers = LAYERS,
                             .heads = 2,
                             .dim = 8,
                             .scale = 1 / sqrt(8),
                             .size = 1 / sqrt(8),
                             .draw = SAN_NORMAL,
                             .gains = gains};
    pare_arena *const a = pare_arena_new();
    pare_model *m = NULL;
    pare_inputs x;
    compared c;
    pare_status st = a ? san_new(&m, &shape, &rng, err) : pare_no_memory(err);
    if (!st) st = san_inputs(&x, a, &t, &rng, err);
    if (!st) st = compared_open(&c, a, m, &x, NULL, err);
    if (!st) st = cost_of_all(cost, &c);
    if (!st) put_ways(out, cost);
    if (!st) st = pare_progress(exec, "", 1, 1, err);
    pare_model_free(m);
    pare_arena_free(a);
    return st;
}

/* Our audit, k = 1 .. 7. */
static const double way_seen[LAYERS - 1][WAYS] = {
    {1.000, 1.000, 1.021, 1.441, 1.341}, {1.000, 1.000, 1.071, 1.844, 1.983},
    {1.000, 1.000, 1.100, 2.017, 2.155}, {1.000, 1.000, 1.037, 2.030, 3.041},
    {1.078, 1.000, 1.078, 2.583, 3.866}, {1.066, 1.079, 1.073, 2.742, 3.671},
    {1.000, 1.082, 1.000, 2.188, 1.991}};

static void subset_table(table_writer *s, const numbers *part, size_t n, const setting *of)
{
    double worst = 0, last = INFINITY;
    (void)of;
    begin_table(s, "E7 layers to keep",
                "error of keeping k of 8 layers / error of the best k of all choices, geometric "
                "mean over networks: greedy backward and LOO are near 1, the last k or the first k "
                "are far from it",
                -4, (LAYERS - 1) * WAYS + 2);
    for (size_t k = 1; k < LAYERS && !s->st; k++) {
        char *const data = pare_sprintf(s->r->arena, "k = %zu", k);
        if (!data) s->st = pare_no_memory(s->err);
        for (size_t w = 0; w < WAYS && !s->st; w++) {
            double sum = 0;
            for (size_t p = 0; p < n; p++) sum += log(part[p].v[(k - 1) * WAYS + w]);
            const double mean = exp(sum / (double)n);
            row_ratio(s, data, way_names[w], way_seen[k - 1][w], mean, w < 3 ? 1.25 : 2.75);
            if (w == 0 || w == 2) worst = fmax(worst, mean);
            if (w == 3) last = fmin(last, mean);
        }
    }
    row_shape(s, "all k", "greedy backward, LOO: worst mean", worst < 1.25, worst);
    row_shape(s, "all k", "last k: the least mean", last > 1.05, last);
}

const experiment subsets = {
    .stem = "subset", .parts = subset_parts, .cost = 2, .run = subset_run, .table = subset_table};
