/* E4: where one layer stops being enough, and what was to be seen of it in the logits. Sizes and
 * draws are those of our audit (docs/repro.md, "Depth"). */
#include "study_depth.h"
#include <pare/xray.h>
#include <math.h>

/* ---- E4: large weights ----------------------------------------------------------------------- */

static const double gain[] = {.05, .1, .2, .4, .7, 1, 1.4, 2, 3, 5};
enum { SWEEP = sizeof gain / sizeof *gain };
static const pare_collapse lost_kinds[] = {
    PARE_ONE_KEEP,    PARE_ONE_KEEPBIAS,         PARE_ONE_PARALLEL,
    PARE_ONE_UNIFORM, PARE_ONE_PARALLEL_UNIFORM, PARE_ONE_RANKONE};
enum { LOST = 6, LOST_ROWS = LOST + 3 }; /* logit range, TV to uniform, TV to the mean query */

static size_t large_parts(bool full)
{
    (void)full;
    return 2 * SWEEP;
}

/* The best block where one is kept. */
static pare_status lost_by(double *out, const compared *c, pare_collapse kind)
{
    const bool keeps = kind == PARE_ONE_KEEP || kind == PARE_ONE_KEEPBIAS;
    pare_status st = PARE_OK;
    *out = INFINITY;
    for (size_t k = 0; !st && k < (keeps ? c->m->nblocks : 1); k++) {
        double off = NAN;
        st = compared_collapse(&off, c, kind, k, san_distance);
        *out = fmin(*out, off);
    }
    return st;
}

static pare_status large_net(double sum[LOST_ROWS], double a, const san_tokens *t, pare_rng *rng,
                             pare_err *err)
{
    const double s = a / sqrt(32);
    const san_shape shape = {.layers = 6,
                             .heads = 4,
                             .dim = 32,
                             .scale = 1 / sqrt(32),
                             .size = s,
                             .values = s / 2,
                             .draw = SAN_NORMAL};
    pare_arena *const arena = pare_arena_new();
    pare_model *m = NULL;
    san_pair x;
    compared c;
    pare_xray ray;
    double whole = NAN, off = NAN;
    pare_status st = arena ? san_new(&m, &shape, rng, err) : pare_no_memory(err);
    if (!st) st = san_pairs(&x, arena, *t, 3 * t->n, rng, err);
    if (!st) st = compared_open(&c, arena, m, &x.look, &x.fit, err);
    if (!st) st = compared_collapse(&whole, &c, PARE_ONE_IDENTITY, 0, san_distance);
    for (size_t k = 0; !st && k < LOST; k++) {
        st = lost_by(&off, &c, lost_kinds[k]);
        sum[k] += off / whole;
    }
    if (!st) st = pare_depth_xray(&ray, arena, m, &x.fit, &x.look, NULL, err);
    for (size_t h = 0; !st && h < ray.nheads; h++) {
        sum[LOST] += ray.heads[h].range_mean / (double)ray.nheads;
        sum[LOST + 1] += ray.heads[h].tv_uniform / (double)ray.nheads;
        sum[LOST + 2] += ray.heads[h].tv_meanq / (double)ray.nheads;
    }
    pare_model_free(m);
    pare_arena_free(arena);
    return st;
}

static pare_status large_run(numbers *out, const setting *s, size_t part, const pare_exec *exec,
                             pare_err *err)
{
    const size_t nets = s->full ? 8 : 2;
    pare_rng rng = pare_rng_at(s->seed, 400 + part);
    san_tokens t = {.n = s->full ? 8 : 3, .tokens = 32, .dim = 32, .normal = true, .spread = 1};
    double offset[32], sum[LOST_ROWS] = {0};
    pare_status st = PARE_OK;
    for (size_t i = 0; i < 32; i++) offset[i] = 2 * pare_rng_normal(&rng);
    if (part >= SWEEP) t.offset = offset;
    for (size_t i = 0; !st && i < nets; i++) {
        st = large_net(sum, gain[part % SWEEP], &t, &rng, err);
        if (!st) st = pare_progress(exec, "", i + 1, nets, err);
    }
    for (size_t k = 0; !st && k < LOST_ROWS; k++) number_put(out, sum[k] / (double)nets);
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

static void large_group(table_writer *s, const numbers *part, size_t group)
{
    const char *const data = group ? "offset" : "zero mean";
    double y[LOST_ROWS][SWEEP], least = INFINITY;
    bool rises = true;
    for (size_t r = 0; r < LOST_ROWS; r++) {
        for (size_t i = 0; i < SWEEP; i++) y[r][i] = part[i].v[r];
        row_curve(s, data, lost_names[r], gain, y[r], SWEEP);
    }
    for (size_t g = 0; g < 3; g++)
        for (size_t r = 0; r < LOST_ROWS && !s->st; r++)
            row_ratio(s, data,
                      pare_sprintf(s->r->arena, "%s, a = %g", lost_names[r], gain[shown[g]]),
                      lost_seen[group][g][r], y[r][shown[g]], 2);
    for (size_t i = 0; i < SWEEP; i++) least = fmin(least, y[0][i]);
    for (size_t i = 1; i <= 6; i++) rises = rises && y[3][i] > y[3][i - 1];
    row_shape(s, data, "keep never reproduces the network (loses above)", least > 0.6, least);
    if (group) return;
    row_shape(s, data, "uniform rises in the shape of an S, middle at a",
              rises && y[3][0] < 0.02 && y[3][7] > 0.8 && fabs(middle_of(y[3]) - 0.8) < 0.25,
              middle_of(y[3]));
}

static void large_table(table_writer *s, const numbers *part, size_t n, const setting *of)
{
    (void)of;
    begin_table(
        s, "E4 large weights",
        "fraction of what the network does that one layer loses, |S - S'|_F / |S - X|_F, "
        "against the gain a, weights N(0, a^2 / d): an S with its middle near a = 0.8; keep "
        "is never good; 6 layers, 4 heads, width 32, 32 tokens",
        -3, 2 * (3 * LOST_ROWS + 2));
    if (n != 2 * SWEEP) return;
    large_group(s, part, 0);
    large_group(s, part + SWEEP, 1);
}

const experiment large = {
    .stem = "large", .parts = large_parts, .cost = 4, .run = large_run, .table = large_table};
