/* depth_bounds.c - E5 and E7: how far bounds are from what is seen, and which layers to keep. */
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

static pare_status tight_run(trial *t)
{
    const bool same = t->part == RANDOM_PARTS;
    const size_t *const shape = tight_shape[same ? 1 : t->part % SHAPES];
    const double eta = same ? ONE_SIGN : tight_eta[t->part / SHAPES];
    const san_shape net = {.layers = shape[0],
                           .heads = shape[1],
                           .dim = shape[2],
                           .scale = 1 / sqrt((double)shape[2]),
                           .size = eta,
                           .draw = same ? SAN_SAME : SAN_EVEN};
    pare_rng rng = pare_rng_at(t->s->seed, 500 + t->part);
    pare_model *m = NULL;
    pare_inputs x;
    compared c;
    pare_status st = san_new(&m, &net, &rng, t->err);
    if (!st) st = box_inputs(&x, t->a, 16, shape[2], &rng, t->err);
    if (!st) st = compared_open(&c, t->a, m, &x, NULL, t->err);
    for (size_t k = 0; !st && k < TIGHT; k++) {
        pare_model *g = NULL;
        pare_collapse_bound b = {.bound = pare_ub_inf()};
        double seen = NAN;
        st = one_layer(&g, m, tight_kinds[k], m->nblocks - 1, NULL, t->err);
        if (!st) st = compared_model(&seen, &c, g, san_largest);
        if (!st) st = pare_collapse_apriori(&b, m, g, 1, NULL, t->err);
        append_numbers(t, (double[]){seen, b.bound.v / seen}, 2);
        pare_model_free(g);
        if (!st) st = trial_progress(t, k + 1, TIGHT);
    }
    const pare_collapse_printed p = pare_collapse_paper(eta, 1, shape[1], shape[0]);
    append_numbers(t, (double[]){p.bound, p.holds}, 2);
    pare_model_free(m);
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

static void tight_table(table_writer *w, const numbers *part, size_t n)
{
    bool sound = true;
    const double *const same = part[RANDOM_PARTS].v;
    begin_table(w, "E5 bounds",
                "proven bound / worst of 12 inputs, |x| <= 1: never below 1; about sqrt(d)^k above "
                "it for random weights, near 1 for weights of one sign",
                -3);
    for (size_t p = 0; p < RANDOM_PARTS && p < n; p++) {
        const size_t *const shape = tight_shape[p % SHAPES];
        const char *const data = row_text(w, "eta %g", tight_eta[p / SHAPES]);
        for (size_t k = 0; k < TIGHT; k++) {
            const double ratio = part[p].v[2 * k + 1];
            row_ratio(w, data,
                      row_text(w, "%s, %zu x %zu, d = %zu", pare_collapse_names[tight_kinds[k]],
                               shape[0], shape[1], shape[2]),
                      tight_seen[p][k], ratio, 6);
            if (!(ratio >= 1)) sound = false;
        }
    }
    row_holds(w, "random", "no bound is below what was seen", sound, NAN);
    for (size_t k = 0; k < TIGHT; k++) {
        static const double reference[TIGHT] = {1.00, 1 / .93, 1.00, NAN};
        row_ratio(w, "all +0.001", pare_collapse_names[tight_kinds[k]], reference[k],
                  same[2 * k + 1], k < 3 ? 1.5 : 4);
    }
    row_shape(w, "all +0.001", "keep and parallel are within 1.05",
              same[1] <= 1.05 && same[5] <= 1.05, fmax(same[1], same[5]));
    row_shape(w, "all +0.001", "the printed bound / keep, hypotheses hold: below 1",
              same[2 * TIGHT + 1] == 1 && same[2 * TIGHT] < same[0], same[2 * TIGHT] / same[0]);
}

const experiment tightness = {.file_prefix = "bounds",
                              .parts = RANDOM_PARTS + 1,
                              .cost = 2,
                              .run = tight_run,
                              .table = tight_table};

/* ---- E7: which layers to keep ---------------------------------------------------------------- */

enum { LAYERS = 8, SUBSETS = 1 << LAYERS, WAYS = 5 };
static const char *const way_names[WAYS] = {"greedy backward", "greedy forward", "additive (LOO)",
                                            "last k", "first k"};

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

/* Of the choices of k layers: greedy from all and from none, those whose removal alone costs most,
 * the last and the first; each one's cost over that of the best choice. */
static void put_choices(trial *t, const double cost[SUBSETS])
{
    size_t back[LAYERS + 1], forward[LAYERS + 1], additive = 0;
    back[LAYERS] = SUBSETS - 1;
    forward[0] = 0;
    for (size_t k = LAYERS; k-- > 0;) back[k] = step(cost, back[k + 1], false);
    for (size_t k = 1; k <= LAYERS; k++) forward[k] = step(cost, forward[k - 1], true);
    for (size_t k = 1; k < LAYERS; k++) {
        const size_t all = SUBSETS - 1, first = ((size_t)1 << k) - 1;
        size_t dearest = LAYERS;
        for (size_t l = 0; l < LAYERS; l++) {
            if (additive >> l & 1) continue;
            if (dearest == LAYERS ||
                cost[all - ((size_t)1 << l)] > cost[all - ((size_t)1 << dearest)])
                dearest = l;
        }
        additive |= (size_t)1 << dearest;
        double best = INFINITY;
        for (size_t set = 0; set < SUBSETS; set++)
            if (__builtin_popcountll(set) == (int)k) best = fmin(best, cost[set]);
        const size_t way[WAYS] = {back[k], forward[k], additive, first << (LAYERS - k), first};
        for (size_t w = 0; w < WAYS; w++) append_number(&t->out, cost[way[w]] / best);
    }
}

static pare_status subset_run(trial *t)
{
    static const double middle[8] = {.5, .5, .5, .5, .5, .5, .5, .5};
    const san_tokens tokens = {
        .n = 3, .tokens = 16, .dim = 8, .normal = true, .spread = 1, .offset = middle};
    pare_rng rng = pare_rng_at(t->s->seed, 700 + t->part);
    double gains[LAYERS], cost[SUBSETS];
    for (size_t l = 0; l < LAYERS; l++) gains[l] = exp(log(0.05) * (1 - pare_rng_uniform(&rng)));
    const san_shape shape = {.layers = LAYERS,
                             .heads = 2,
                             .dim = 8,
                             .scale = 1 / sqrt(8),
                             .size = 1 / sqrt(8),
                             .draw = SAN_NORMAL,
                             .gains = gains};
    compared c;
    pare_status st = compared_new(&c, t->a, &shape, tokens, 0, &rng, t->err);
    /* what keeping the layers of each subset costs */
    for (size_t set = 0; !st && set < SUBSETS; set++) {
        pare_block blocks[LAYERS];
        pare_model g = *c.m;
        g.blocks = blocks;
        memcpy(blocks, c.m->blocks, sizeof blocks);
        for (size_t l = 0; l < LAYERS; l++)
            if (!(set >> l & 1)) blocks[l].attn.kind = PARE_ATTN_NONE; /* the skip stays */
        st = compared_model(&cost[set], &c, &g, longest_row_of_8);
    }
    if (!st) put_choices(t, cost);
    if (!st) st = trial_progress(t, 1, 1);
    pare_model_free(c.own);
    return st;
}

/* Our audit, k = 1 .. 7. */
static const double way_seen[LAYERS - 1][WAYS] = {
    {1.000, 1.000, 1.021, 1.441, 1.341}, {1.000, 1.000, 1.071, 1.844, 1.983},
    {1.000, 1.000, 1.100, 2.017, 2.155}, {1.000, 1.000, 1.037, 2.030, 3.041},
    {1.078, 1.000, 1.078, 2.583, 3.866}, {1.066, 1.079, 1.073, 2.742, 3.671},
    {1.000, 1.082, 1.000, 2.188, 1.991}};

static void subset_table(table_writer *w, const numbers *part, size_t n)
{
    double worst = 0, last = INFINITY;
    begin_table(w, "E7 layers to keep",
                "error of keeping k of 8 layers / error of the best k of all choices, geometric "
                "mean over networks: greedy backward and LOO are near 1, the last k or the first k "
                "are far from it",
                -4);
    for (size_t k = 1; k < LAYERS; k++) {
        const char *const data = row_text(w, "k = %zu", k);
        for (size_t way = 0; way < WAYS; way++) {
            double sum = 0;
            for (size_t p = 0; p < n; p++) sum += log(part[p].v[(k - 1) * WAYS + way]);
            const double mean = exp(sum / (double)n);
            row_ratio(w, data, way_names[way], way_seen[k - 1][way], mean, way < 3 ? 1.25 : 2.75);
            if (way == 0 || way == 2) worst = fmax(worst, mean);
            if (way == 3) last = fmin(last, mean);
        }
    }
    row_shape(w, "all k", "greedy backward, LOO: worst mean", worst < 1.25, worst);
    row_shape(w, "all k", "last k: the least mean", last > 1.05, last);
}

const experiment subsets = {.file_prefix = "subset",
                            .parts = 6,
                            .parts_full = 30,
                            .cost = 2,
                            .run = subset_run,
                            .table = subset_table};
