/* Small entries that say nothing about a network. */
#include "study_depth.h"
#include <math.h>

/* ---- small entries, large network
 * ---------------------------------------------------------------- */

/* W -> W (x) J_k / k and X -> X (x) 1_k is the same network on every coordinate, with entries k
 * times smaller (Wq: J_k / k^2, so that the scores stay). Two layers of width 1, (Wq Wk, Wv) =
 * (3, -2), (-3, 1), on |x| <= 2. */
static const double layer_of[2][2] = {{3, -2}, {-3, 1}};
#define BOX 2.0

static size_t one_part(bool full)
{
    (void)full;
    return 1;
}

static size_t copies(const setting *s)
{
    return s->full ? 1000 : 256;
}

static pare_status replicated(pare_model **out, size_t k, pare_err *err)
{
    const san_shape shape = {.layers = 2, .heads = 1, .dim = k, .scale = 1, .draw = SAN_SAME};
    pare_rng rng = pare_rng_at(0, 0);
    const pare_status st = san_new(out, &shape, &rng, err);
    for (size_t l = 0; !st && l < 2; l++) {
        pare_attn *const a = &(*out)->blocks[l].attn;
        const double each[3] = {layer_of[l][0] / ((double)k * (double)k), 1 / (double)k,
                                layer_of[l][1] / (double)k};
        for (size_t i = 0; i < 3; i++) {
            double *const v = pare_alloc((*out)->arena, k * k, sizeof *v);
            if (!v) return pare_no_memory(err);
            for (size_t e = 0; e < k * k; e++) v[e] = each[i];
            pare_weight *const w = i == 0 ? &a->wq : i == 1 ? &a->wk : &a->wv;
            *w = (pare_weight){PARE_F64, k, k, v};
        }
    }
    return st;
}

/* Pairs of tokens on a grid of the box, every coordinate alike. */
static pare_status grid_inputs(pare_inputs *out, pare_arena *a, size_t k, size_t side,
                               pare_err *err)
{
    out->n = side * side;
    out->in = pare_alloc(a, out->n, sizeof *out->in);
    double *x = pare_alloc(a, out->n * 2 * k, sizeof *x);
    if (!out->in || !x) return pare_no_memory(err);
    for (size_t i = 0; i < out->n; i++, x += 2 * k) {
        for (size_t c = 0; c < k; c++) {
            x[c] = BOX * (2 * (double)(i % side) / (double)(side - 1) - 1);
            x[k + c] = BOX * (2 * (double)(i / side) / (double)(side - 1) - 1);
        }
        out->in[i] = (pare_input){.batch = 1, .tokens = 2, .width = k, .x = x};
    }
    return PARE_OK;
}

static pare_status replication_run(numbers *out, const setting *s, size_t part,
                                   const pare_exec *exec, pare_err *err)
{
    static const pare_collapse tried[] = {PARE_ONE_KEEP, PARE_ONE_PARALLEL, PARE_ONE_UNIFORM,
                                          PARE_ONE_PARALLEL_UNIFORM};
    const size_t k = copies(s);
    pare_arena *const a = pare_arena_new();
    pare_model *m = NULL;
    pare_inputs x;
    compared c;
    double least = INFINITY, lower = NAN;
    (void)part;
    pare_status st = a ? replicated(&m, k, err) : pare_no_memory(err);
    if (!st) st = grid_inputs(&x, a, k, 7, err);
    if (!st) st = compared_open(&c, a, m, &x, NULL, err);
    for (size_t i = 0; !st && i < sizeof tried / sizeof *tried; i++) {
        double off = NAN;
        st = compared_collapse(&off, &c, tried[i], 1, san_largest);
        least = fmin(least, off);
        if (!st) st = pare_progress(exec, "", i + 1, sizeof tried / sizeof *tried, err);
    }
    if (!st) st = pare_collapse_lower(&lower, layer_of, 2, BOX, s->full ? 96 : 48, err);
    const double eta = 2 / (double)k; /* Wv of the first layer */
    const pare_collapse_printed p = pare_collapse_paper(eta, BOX, 1, 2);
    number_put(out, (double)k);
    number_put(out, eta);
    number_put(out, 2 * (double)k); /* |Wv|_1 of the first layer */
    number_put(out, p.holds ? 1 : 0);
    number_put(out, p.bound);
    number_put(out, p.claim);
    number_put(out, least);
    number_put(out, lower);
    pare_model_free(m);
    pare_arena_free(a);
    return st;
}

static void replication_table(table_writer *s, const numbers *part, size_t n, const setting *of)
{
    const double *const v = part[0].v;
    const char *const data = "2 layers";
    (void)n;
    (void)of;
    begin_table(s, "large l1, small entries",
                "a network of width 1 written k times over: the largest entry falls as 1 / k and "
                "the hypotheses of the paper hold, the sum of the entries grows and the network is "
                "the same; no network of one layer is near it",
                -3, 9);
    row_ours(s, data, "k, copies of the coordinate", v[0]);
    row_ours(s, data, "largest entry", v[1]);
    row_ours(s, data, "sum of |entries| of a Wv", v[2]);
    row_holds(s, data, "the hypotheses hold", v[3] == 1, v[3]);
    row_ours(s, data, "the paper's bound, computed here", v[4]);
    row_ours(s, data, "the paper's 2 A / L, computed here", v[5]);
    row_ours(s, data, "error of the best collapse here", v[6]);
    row_near(s, data, "every one-layer net, at least (proven)", 0.93, v[7], 0.1);
    row_shape(s, data, "no one-layer net meets the printed bound", v[7] > v[4], v[7] / v[4]);
}

const experiment replication = {.stem = "replicated",
                                .parts = one_part,
                                .cost = 4,
                                .run = replication_run,
                                .table = replication_table};
