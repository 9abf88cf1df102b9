/* depth_random_nets.c - E1 to E3: residual attention networks with random weights, and one layer in
 * their place. How the error grows with the weights and with the depth; and the rank of networks
 * without skips. Sizes and draws are those of our audit (docs/repro.md, "Depth"); the random
 * numbers are others. */
#include "study_depth.h"
#include <pare/depth.h>
#include <math.h>

static const pare_collapse kinds[] = {
    PARE_ONE_IDENTITY, PARE_ONE_KEEP,         PARE_ONE_KEEPBIAS,         PARE_ONE_PARALLEL,
    PARE_ONE_UNIFORM,  PARE_ONE_UNIFORM_KEEP, PARE_ONE_PARALLEL_UNIFORM, PARE_ONE_RANKONE};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- E1: orders ------------------------------------------------------------------------------ */

static const double etas[] = {1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1, 2e-1, 5e-1};
enum { ETAS = sizeof etas / sizeof *etas, SMALL_ETAS = 5, ETA_HUNDREDTH = 3 };

static pare_status orders_run(trial *t)
{
    pare_rng rng = pare_rng_at(t->s->seed, 100 + t->part);
    const san_shape shape = {.layers = 4, .heads = 2, .dim = 8, .scale = 1, .size = 1};
    san_tokens tokens = {.n = 6, .tokens = 16, .dim = 8, .spread = t->part ? 0.4 : 1};
    double common[8];
    pare_model *base = NULL;
    san_pair x;
    pare_status st = san_new(&base, &shape, &rng, t->err);
    if (!st && t->part) { /* tokens around a common one of signs */
        for (size_t i = 0; i < 8; i++) common[i] = pare_rng_u32(&rng) % 2 ? 0.6 : -0.6;
        tokens.offset = common;
    }
    if (!st) st = san_pairs(&x, t->a, tokens, 20, &rng, t->err);
    for (size_t e = 0; !st && e < ETAS; e++) {
        pare_model *m = NULL;
        compared c;
        st = san_scaled(&m, base, etas[e], etas[e], t->err);
        if (!st) st = compared_open(&c, t->a, m, &x.heldout, &x.fit, t->err);
        for (size_t k = 0; !st && k < KINDS; k++) {
            double off = NAN;
            st = compared_collapse(&off, &c, kinds[k], m->nblocks - 1, san_largest);
            append_number(&t->out, off);
        }
        pare_model_free(m);
        if (!st) st = trial_progress(t, e + 1, ETAS);
    }
    pare_model_free(base);
    return st;
}

/* Our audit: slopes, and errors at 0.01. */
static const double order_slope[2][KINDS] = {{1.01, 1.01, 1.01, 1.99, 3.00, 3.00, 4.01, 3.00},
                                             {1.01, 1.01, 1.07, 2.00, 3.01, 3.01, 4.00, 3.00}};
static const double order_error[2][KINDS] = {
    {2.3e-2, 2.2e-2, 2.7e-2, 5.8e-4, 1.2e-5, 9.2e-6, 1.2e-7, 1.2e-5},
    {4.4e-2, 3.2e-2, 3.9e-3, 1.0e-3, 1.5e-6, 1.2e-6, 3.4e-8, 7.0e-7}};
static const double order_law[KINDS] = {1, 1, 1, 2, 3, 3, 4, 3};

static void orders_table(table_writer *w, const numbers *part, size_t n)
{
    begin_table(w, "E1 orders",
                "error of one layer against the size eta of the weights: straight lines of slope 1 "
                "(identity, keep: the paper's), 2 (parallel), 3 (uniform), 4 (parallel+uniform) "
                "that meet near eta 0.5; 4 layers, 2 heads, width 8, 16 tokens",
                -3);
    for (size_t p = 0; p < n; p++) {
        const char *const data = p ? "offset" : "zero mean";
        double slope[KINDS], least = INFINITY, most = 0;
        bool straight = true;
        for (size_t k = 0; k < KINDS; k++) {
            double y[ETAS];
            for (size_t e = 0; e < ETAS; e++) y[e] = part[p].v[e * KINDS + k];
            slope[k] = log_slope(etas, y, SMALL_ETAS);
            /* Keeping one layer with the means of the others meets a floor of its own: no law. */
            if (kinds[k] != PARE_ONE_KEEPBIAS && !(fabs(slope[k] - order_law[k]) <= 0.1))
                straight = false;
            least = fmin(least, y[ETAS - 1]);
            most = fmax(most, y[ETAS - 1]);
            row_curve(w, data, pare_collapse_names[kinds[k]], etas, y, ETAS);
        }
        for (size_t k = 0; k < KINDS; k++)
            row_near(w, data, row_text(w, "%s: slope", pare_collapse_names[kinds[k]]),
                     order_slope[p][k], slope[k], 0.1);
        for (size_t k = 0; k < KINDS; k++)
            row_ratio(w, data, row_text(w, "%s: error at 0.01", pare_collapse_names[kinds[k]]),
                      order_error[p][k], part[p].v[ETA_HUNDREDTH * KINDS + k], 3);
        row_shape(w, data, "slopes are 1, 2, 3, 4 within 0.1", straight, NAN);
        row_shape(w, data, "at 0.5 the worst is at most so many times the best", most <= 40 * least,
                  most / least);
    }
}

const experiment orders = {
    .file_prefix = "orders", .parts = 2, .cost = 1, .run = orders_run, .table = orders_table};

/* ---- E2: against the depth ------------------------------------------------------------------- */

static const double depths[] = {1, 2, 4, 8, 16, 32, 64};
enum { DEPTHS = sizeof depths / sizeof *depths };
static const pare_collapse deep_kinds[] = {PARE_ONE_KEEP, PARE_ONE_PARALLEL, PARE_ONE_UNIFORM,
                                           PARE_ONE_PARALLEL_UNIFORM};
enum { DEEP = 4, DEEP_ROWS = DEEP + 3 }; /* bounds of keep and uniform, the printed one */

static pare_status lscale_run(trial *t)
{
    static const double middle[8] = {.6, .6, .6, .6, .6, .6, .6, .6};
    const san_tokens tokens = {.n = 4, .tokens = 16, .dim = 8, .spread = 0.4, .offset = middle};
    pare_rng draws = pare_rng_at(t->s->seed, 210 + t->part);
    pare_inputs x;
    pare_status st = san_inputs(&x, t->a, &tokens, &draws, t->err);
    for (size_t i = 0; !st && i < DEPTHS; i++) {
        const size_t layers = (size_t)depths[i];
        const double eta = 1 / (2.0 * 8 * (double)layers);
        const san_shape shape = {.layers = layers,
                                 .heads = 2,
                                 .dim = 8,
                                 .scale = 1,
                                 .size = eta,
                                 .draw = t->part == 0 ? SAN_SAME : SAN_EVEN};
        pare_rng weights = pare_rng_at(t->s->seed, 200);
        pare_model *m = NULL;
        compared c;
        st = san_new(&m, &shape, &weights, t->err);
        if (!st) st = compared_open(&c, t->a, m, &x, &x, t->err);
        for (size_t k = 0; !st && k < DEEP; k++) {
            double off = NAN;
            st = compared_collapse(&off, &c, deep_kinds[k], layers - 1, san_largest);
            append_number(&t->out, off);
        }
        for (size_t k = 0; !st && k < DEEP; k += 2) { /* keep, uniform */
            pare_collapse_bound b = {.bound = {NAN}};
            pare_model *g = NULL;
            st = one_layer(&g, m, deep_kinds[k], layers - 1, &x, t->err);
            if (!st) st = pare_collapse_apriori(&b, m, g, 1, NULL, t->err);
            append_number(&t->out, b.bound.v);
            pare_model_free(g);
        }
        append_number(&t->out, pare_collapse_paper(eta, 1, 2, layers).bound);
        pare_model_free(m);
        if (!st) st = trial_progress(t, i + 1, DEPTHS);
    }
    return st;
}

/* Our audit at L = 2, 64: keep, parallel, uniform, parallel+uniform, bounds, printed. */
static const double deep_two[2][DEEP_ROWS] = {{.48, .16, 3.7e-3, 1.1e-3, 1.0, .90, 1.4},
                                              {.14, 8.4e-3, 2.3e-5, 1.8e-6, .41, 3.7e-2, 1.4}};
static const double deep_many[2][DEEP_ROWS] = {
    {1.1, .44, 5.9e-6, 3.4e-6, 1.7, 1.3e-3, 3.6e-2},
    {1.5e-2, 1.6e-4, 5.2e-9, 5.5e-11, .80, 4.3e-5, 3.6e-2}};
static const char *const deep_names[DEEP_ROWS] = {
    "keep (the paper's)", "parallel",        "uniform",      "parallel+uniform",
    "keep, proven",       "uniform, proven", "printed bound"};

static void lscale_table(table_writer *w, const numbers *part, size_t n)
{
    begin_table(w, "E2 depth",
                "error against the number of layers at eta = 1 / (H L d): the paper's layer stays "
                "wrong, uniform falls as 1 / L^2, and the printed bound falls as 1 / L: below the "
                "error that it claims to bound; 2 heads, width 8, 16 tokens",
                -3);
    for (size_t p = 0; p < n; p++) {
        const char *const data = p ? "random" : "all +eta";
        double y[DEEP_ROWS][DEPTHS], crossed = NAN;
        for (size_t r = 0; r < DEEP_ROWS; r++) {
            for (size_t i = 0; i < DEPTHS; i++) y[r][i] = part[p].v[i * DEEP_ROWS + r];
            row_curve(w, data, deep_names[r], depths, y[r], DEPTHS);
        }
        for (size_t r = 0; r < DEEP_ROWS; r++) {
            row_ratio(w, data, row_text(w, "%s, L = 2", deep_names[r]), deep_two[p][r], y[r][1],
                      p ? 4 : 1.5);
            row_ratio(w, data, row_text(w, "%s, L = 64", deep_names[r]), deep_many[p][r],
                      y[r][DEPTHS - 1], p ? 4 : 1.5);
        }
        row_near(w, data, "uniform: slope over L = 8 .. 64", p ? -2.4 : -2,
                 log_slope(depths + 3, y[2] + 3, 4), p ? 0.3 : 0.1);
        row_near(w, data, "printed: slope over L = 8 .. 64", -1, log_slope(depths + 3, y[6] + 3, 4),
                 0.1);
        if (p) continue;
        row_shape(w, data, "keep does not fall with L", y[0][DEPTHS - 1] >= y[0][2], NAN);
        for (size_t i = DEPTHS; i-- > 0 && y[6][i] < y[0][i];) crossed = depths[i];
        row_shape(w, data, "the printed bound is below the truth from L on", crossed <= 8, crossed);
    }
}

const experiment lscale = {
    .file_prefix = "lscale", .parts = 2, .cost = 3, .run = lscale_run, .table = lscale_table};

/* ---- E3: rank -------------------------------------------------------------------------------- */

static const double rank_gain[] = {.5, 1, 2, 4};
enum { GAINS = 4, RANK_LAYERS = 8 };

/* Without and with skips: log10 |Res|_max of the stream before each layer; then what is proven of
 * it, where there is no skip. */
static pare_status rank_run(trial *t)
{
    pare_rng draws = pare_rng_at(t->s->seed, 300 + t->part);
    const san_tokens tokens = {.n = 1, .tokens = 32, .dim = 16, .normal = true, .spread = 1};
    pare_inputs x;
    pare_status st = san_inputs(&x, t->a, &tokens, &draws, t->err);
    for (size_t skip = 0; !st && skip < 2; skip++) {
        const san_shape shape = {.layers = RANK_LAYERS,
                                 .heads = 1,
                                 .dim = 16,
                                 .scale = 0.25,
                                 .size = rank_gain[t->part] / 4,
                                 .draw = SAN_NORMAL,
                                 .no_skip = !skip};
        const double phi = san_largest(x.in[0].x, NULL, 32 * 16);
        const double diam = widest_column(x.in[0].x, 32, 16);
        pare_rng weights = pare_rng_at(t->s->seed, 310 + t->part);
        pare_model *m = NULL;
        pare_attention_stats ray;
        st = san_new(&m, &shape, &weights, t->err);
        if (!st)
            st = pare_depth_attention_stats(
                &ray, t->a, m, &(pare_input_split){.fit = &x, .heldout = &x}, NULL, t->err);
        for (size_t l = 0; !st && l < RANK_LAYERS; l++)
            append_number(&t->out, log10(fmax(ray.layers[l].res_x, 1e-99)));
        for (size_t l = 0; !st && l < RANK_LAYERS; l++) {
            pare_model first = *m;
            double log_diam = NAN;
            first.nblocks = l + 1;
            if (!skip) st = pare_collapse_rank(&log_diam, &first, phi, diam, NULL, t->err);
            append_number(&t->out, (log_diam - log(2)) / log(10)); /* |Res|_max is half of it */
        }
        pare_model_free(m);
        if (!st) st = trial_progress(t, skip + 1, 2);
    }
    return st;
}

/* Our audit, before layers 1, 2, 3. */
static const double rank_seen[GAINS][2][3] = {{{-.81, -4.32, -14.84}, {.45, .44, .43}},
                                              {{-.11, -1.61, -5.92}, {.45, .55, .59}},
                                              {{.71, 1.09, 1.27}, {.86, 1.23, 1.48}},
                                              {{.95, 1.65, 2.16}, {.99, 1.68, 2.29}}};

#define ROUNDING -14 /* log10: below it what is seen is rounding */

static void rank_table(table_writer *w, const numbers *part, size_t n)
{
    double at[RANK_LAYERS];
    for (size_t l = 0; l < RANK_LAYERS; l++) at[l] = (double)l;
    begin_table(w, "E3 rank",
                "log10 |Res|_max of the tokens after each layer, weights N(0, a^2 / d): without "
                "skips it falls doubly exponentially for small a and not at all for large a; with "
                "skips it never falls; 1 head, width 16, 32 tokens",
                -3);
    for (size_t p = 0; p < n; p++) {
        const double *const bare = part[p].v, *const skip = part[p].v + 2 * RANK_LAYERS;
        const double *const bound = bare + RANK_LAYERS;
        const char *const data = row_text(w, "a = %g", rank_gain[p]);
        bool proven = true;
        row_curve(w, data, "no skip", at, bare, RANK_LAYERS);
        row_curve(w, data, "skip", at, skip, RANK_LAYERS);
        row_curve(w, data, "no skip, proven", at + 1, bound, RANK_LAYERS - 1);
        for (size_t l = 1; l <= 3; l++) {
            const char *const what = row_text(w, "no skip, after layer %zu", l);
            if (bare[l] > ROUNDING)
                row_near(w, data, what, rank_seen[p][0][l - 1], bare[l],
                         p < 2 ? 0.7 * (double)l : 0.6);
            else
                row_ours(w, data, what, bare[l]);
        }
        for (size_t l = 0; l + 1 < RANK_LAYERS; l++)
            if (bare[l + 1] > ROUNDING && !(bare[l + 1] <= bound[l] + 1e-9)) proven = false;
        row_holds(w, data, "no skip: never above the proven bound", proven, NAN);
        if (p == 0) {
            const double ratio = (bare[3] - bare[2]) / (bare[2] - bare[1]);
            row_shape(w, data, "no skip: gone (below 1e-12) after layer 3", bare[3] < -12, bare[3]);
            row_shape(w, data, "no skip: the fall triples from layer to layer", fabs(ratio - 3) < 1,
                      ratio);
        }
        if (p == 3) row_shape(w, data, "no skip: does not fall", bare[3] > bare[0], bare[3]);
        row_shape(w, data, "skip: does not fall", skip[7] > skip[0] - 0.3, skip[7]);
    }
}

const experiment rank_collapse = {
    .file_prefix = "rank", .parts = GAINS, .cost = 1, .run = rank_run, .table = rank_table};
