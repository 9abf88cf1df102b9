/* depth_large.c - E4: where one layer stops being enough, and what was to be seen of it in the
 * logits. Sizes and draws are those of our audit (docs/repro.md, "Depth"). */
#include "study_depth.h"
#include <pare/depth.h>
#include <math.h>

static const double gain[] = {.05, .1, .2, .4, .7, 1, 1.4, 2, 3, 5};
enum { SWEEP = sizeof gain / sizeof *gain };
static const pare_collapse lost_kinds[] = {
    PARE_ONE_KEEP,    PARE_ONE_KEEPBIAS,         PARE_ONE_PARALLEL,
    PARE_ONE_UNIFORM, PARE_ONE_PARALLEL_UNIFORM, PARE_ONE_RANKONE};
enum { LOST = 6, LOST_ROWS = LOST + 3 }; /* logit range, TV to uniform, TV to the mean query */

/* Adds to `sum` what each collapse of one random network loses, and what its attention is like. */
static pare_status large_net(double sum[LOST_ROWS], double gain_of, const trial *t,
                             const san_tokens *tokens, pare_rng *rng)
{
    const double size = gain_of / sqrt(32);
    const san_shape shape = {.layers = 6,
                             .heads = 4,
                             .dim = 32,
                             .scale = 1 / sqrt(32),
                             .size = size,
                             .values = size / 2,
                             .draw = SAN_NORMAL};
    compared c;
    pare_attention_stats ray;
    double whole = NAN;
    pare_status st = compared_new(&c, t->a, &shape, *tokens, 3 * tokens->n, rng, t->err);
    if (!st) st = compared_collapse(&whole, &c, PARE_ONE_IDENTITY, 0, san_distance);
    for (size_t k = 0; !st && k < LOST; k++) {
        const bool keeps = lost_kinds[k] == PARE_ONE_KEEP || lost_kinds[k] == PARE_ONE_KEEPBIAS;
        double least = INFINITY;
        for (size_t b = 0; !st && b < (keeps ? c.m->nblocks : 1); b++) { /* the best block */
            double off = NAN;
            st = compared_collapse(&off, &c, lost_kinds[k], b, san_distance);
            least = fmin(least, off);
        }
        sum[k] += least / whole;
    }
    if (!st)
        st = pare_depth_attention_stats(
            &ray, t->a, c.m, &(pare_input_split){.fit = c.calib, .heldout = c.in}, NULL, t->err);
    for (size_t h = 0; !st && h < ray.nheads; h++) {
        sum[LOST] += ray.heads[h].range_mean / (double)ray.nheads;
        sum[LOST + 1] += ray.heads[h].tv_uniform / (double)ray.nheads;
        sum[LOST + 2] += ray.heads[h].tv_meanq / (double)ray.nheads;
    }
    pare_model_free(c.own);
    return st;
}

static pare_status large_run(trial *t)
{
    const bool full = t->s->full;
    const size_t nets = full ? 8 : 2;
    pare_rng rng = pare_rng_at(t->s->seed, 400 + t->part);
    san_tokens tokens = {.n = full ? 8 : 3, .tokens = 32, .dim = 32, .normal = true, .spread = 1};
    double offset[32], sum[LOST_ROWS] = {0};
    pare_status st = PARE_OK;
    for (size_t i = 0; i < 32; i++) offset[i] = 2 * pare_rng_normal(&rng);
    if (t->part >= SWEEP) tokens.offset = offset;
    for (size_t i = 0; !st && i < nets; i++) {
        const pare_mark mark = pare_arena_mark(t->a);
        st = large_net(sum, gain[t->part % SWEEP], t, &tokens, &rng);
        pare_arena_reset(t->a, mark);
        if (!st) st = trial_progress(t, i + 1, nets);
    }
    for (size_t k = 0; !st && k < LOST_ROWS; k++) append_number(&t->out, sum[k] / (double)nets);
    return st;
}

/* Our audit at a = 0.1, 0.7, 1.4. */
static const size_t shown[3] = {1, 4, 6};
static const double lost_seen[2][3][LOST_ROWS] = {
    {{.871, .911, .163, .0142, .0006, .0143, .04, .004, .004},
     {.944, .984, .801, .408, .193, .415, 2.08, .194, .184},
     {.997, 1.008, .996, .955, .954, .958, 139.7, .851, .752}},
    {{.831, .0656, .178, .0027, .0004, .0011, .10, .010, .004},
     {.899, .192, .940, .217, .162, .0794, 6.72, .529, .167},
     {.979, .442, .977, .412, .415, .374, 185.7, .938, .181}}};
static const char *const lost_names[LOST_ROWS] = {"keep, the best block",
                                                  "keepbias, the best",
                                                  "parallel",
                                                  "uniform",
                                                  "parallel+uniform",
                                                  "rankone",
                                                  "mean logit range",
                                                  "mean TV from uniform",
                                                  "mean TV from mean query"};

/* Where a rising curve passes 1/2, on a logarithmic scale. */
static double middle_of(const double *y)
{
    for (size_t i = 1; i < SWEEP; i++)
        if (y[i - 1] < 0.5 && y[i] >= 0.5)
            return gain[i - 1] * pow(gain[i] / gain[i - 1], (0.5 - y[i - 1]) / (y[i] - y[i - 1]));
    return NAN;
}

static void large_group(table_writer *w, const numbers *part, size_t group)
{
    const char *const data = group ? "offset" : "zero mean";
    double y[LOST_ROWS][SWEEP], least = INFINITY;
    bool rises = true;
    for (size_t r = 0; r < LOST_ROWS; r++) {
        for (size_t i = 0; i < SWEEP; i++) y[r][i] = part[i].v[r];
        row_curve(w, data, lost_names[r], gain, y[r], SWEEP);
    }
    for (size_t g = 0; g < 3; g++)
        for (size_t r = 0; r < LOST_ROWS; r++)
            row_ratio(w, data, row_text(w, "%s, a = %g", lost_names[r], gain[shown[g]]),
                      lost_seen[group][g][r], y[r][shown[g]], 2);
    for (size_t i = 0; i < SWEEP; i++) least = fmin(least, y[0][i]);
    for (size_t i = 1; i <= 6; i++) rises = rises && y[3][i] > y[3][i - 1];
    row_shape(w, data, "keep never reproduces the network (loses above)", least > 0.6, least);
    if (group) return;
    row_shape(w, data, "uniform rises in the shape of an S, middle at a",
              rises && y[3][0] < 0.02 && y[3][7] > 0.8 && fabs(middle_of(y[3]) - 0.8) < 0.25,
              middle_of(y[3]));
}

static void large_table(table_writer *w, const numbers *part, size_t n)
{
    begin_table(
        w, "E4 large weights",
        "fraction of what the network does that one layer loses, |S - S'|_F / |S - X|_F, "
        "against the gain a, weights N(0, a^2 / d): an S with its middle near a = 0.8; keep "
        "is never good; 6 layers, 4 heads, width 32, 32 tokens",
        -3);
    if (n != 2 * SWEEP) return;
    large_group(w, part, 0);
    large_group(w, part + SWEEP, 1);
}

const experiment large = {
    .file_prefix = "large", .parts = 2 * SWEEP, .cost = 4, .run = large_run, .table = large_table};
