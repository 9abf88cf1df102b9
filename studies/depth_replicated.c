/* depth_replicated.c - small entries do not mean that a network is near one layer.
 *
 * W -> W (x) J_k / k and X -> X (x) 1_k is the same network on every coordinate, with entries k
 * times smaller (Wq: J_k / k^2, so that the scores stay). Two layers of width 1, (Wq Wk, Wv) =
 * (3, -2), (-3, 1), on |x| <= 2. */
#include "study_depth.h"
#include <math.h>

static const double layer_of[2][2] = {{3, -2}, {-3, 1}};
#define BOX 2.0

static pare_status replicated_model(pare_model **out, size_t k, pare_err *err)
{
    const san_shape shape = {.layers = 2, .heads = 1, .dim = k, .scale = 1, .draw = SAN_SAME};
    pare_rng rng = pare_rng_at(0, 0);
    const pare_status st = san_new(out, &shape, &rng, err);
    for (size_t l = 0; !st && l < 2; l++) {
        pare_attn *const a = &(*out)->blocks[l].attn;
        pare_weight *const weight[3] = {&a->wq, &a->wk, &a->wv};
        const double entry[3] = {layer_of[l][0] / ((double)k * (double)k), 1 / (double)k,
                                 layer_of[l][1] / (double)k};
        for (size_t i = 0; i < 3; i++) {
            double *const v = pare_alloc((*out)->arena, k * k, sizeof *v);
            if (!v) return pare_no_memory(err);
            for (size_t e = 0; e < k * k; e++) v[e] = entry[i];
            *weight[i] = (pare_weight){PARE_F64, k, k, v};
        }
    }
    return st;
}

static pare_status replication_run(trial *t)
{
    enum { SIDE = 7, TRIED = 4 };
    static const pare_collapse tried[TRIED] = {PARE_ONE_KEEP, PARE_ONE_PARALLEL, PARE_ONE_UNIFORM,
                                               PARE_ONE_PARALLEL_UNIFORM};
    const size_t k = t->s->full ? 1000 : 256;
    const double eta = 2 / (double)k; /* Wv of the first layer */
    pare_model *m = NULL;
    pare_input in[SIDE * SIDE];
    const pare_inputs grid = {SIDE * SIDE, in};
    compared c;
    double least = INFINITY, lower = NAN;
    double *x = pare_alloc(t->a, grid.n * 2 * k, sizeof *x);
    pare_status st = x ? replicated_model(&m, k, t->err) : pare_no_memory(t->err);
    /* pairs of tokens on a grid of the box, every coordinate alike */
    for (size_t i = 0; !st && i < grid.n; i++, x += 2 * k) {
        for (size_t e = 0; e < k; e++) {
            x[e] = BOX * (2 * (double)(i % SIDE) / (double)(SIDE - 1) - 1);
            x[k + e] = BOX * (2 * (double)(i / SIDE) / (double)(SIDE - 1) - 1);
        }
        in[i] = (pare_input){.batch = 1, .tokens = 2, .width = k, .x = x};
    }
    if (!st) st = compared_open(&c, t->a, m, &grid, NULL, t->err);
    for (size_t i = 0; !st && i < TRIED; i++) {
        double off = NAN;
        st = compared_collapse(&off, &c, tried[i], 1, san_largest);
        least = fmin(least, off);
        if (!st) st = trial_progress(t, i + 1, TRIED);
    }
    if (!st) st = pare_collapse_lower(&lower, layer_of, 2, BOX, t->s->full ? 96 : 48, t->err);
    const pare_collapse_printed p = pare_collapse_paper(eta, BOX, 1, 2);
    append_numbers(t,
                   (double[]){(double)k, eta, 2 * (double)k /* |Wv|_1 of the first layer */,
                              p.holds, p.bound, p.claim, least, lower},
                   8);
    pare_model_free(m);
    return st;
}

static void replication_table(table_writer *w, const numbers *part, size_t n)
{
    const double *const v = part[0].v;
    const char *const data = "2 layers";
    (void)n;
    begin_table(w, "large l1, small entries",
                "a network of width 1 written k times over: the largest entry falls as 1 / k and "
                "the hypotheses of the paper hold, the sum of the entries grows and the network is "
                "the same; no network of one layer is near it",
                -3);
    row_ours(w, data, "k, copies of the coordinate", v[0]);
    row_ours(w, data, "largest entry", v[1]);
    row_ours(w, data, "sum of |entries| of a Wv", v[2]);
    row_holds(w, data, "the hypotheses hold", v[3] == 1, v[3]);
    row_ours(w, data, "the paper's bound, computed here", v[4]);
    row_ours(w, data, "the paper's 2 A / L, computed here", v[5]);
    row_ours(w, data, "error of the best collapse here", v[6]);
    row_near(w, data, "every one-layer net, at least (proven)", 0.93, v[7], 0.1);
    row_shape(w, data, "no one-layer net meets the printed bound", v[7] > v[4], v[7] / v[4]);
}

const experiment replication = {.file_prefix = "replicated",
                                .parts = 1,
                                .cost = 4,
                                .run = replication_run,
                                .table = replication_table};
