/* ticket_blocks.c - figure 6: blocks (attention, skip, a linear map made of two ReLU layers, skip),
 * one to four of them, n_MHA = n_FC = n; what the certificate says beside what is measured. The
 * target is random: Q, K, V, O of d_K = 8 merged, entries up to 3.
 *
 * The map W x of a block is found as A relu(B x): a unit that reads x_j with a positive weight
 * passes x_j+ on, one with a negative weight x_j-: each entry of W is two subset sums. The paper
 * deals units out in blocks whose halves are as large as chance has it; ours by sign. */
#include "study_ticket.h"
#include <pare/ticket.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const size_t widths[] = {8, 16, 24, 32, 40, 56, 72};
enum { WIDTHS = sizeof widths / sizeof *widths, D = 2, BLOCKS = 4, SOURCES = 12, SEQUENCES = 20 };
/* Beyond so many units blocks alone are far below what the maps err by. */
enum { DONATED = 32, DONORS = 8 };
enum { TOKENS = 4, MOST_UNITS = 72, PROVEN = 4 /* sequences the certificate speaks of */ };

typedef struct block_target {
    double g[4], v[4], w[4]; /* g: x G x'; v, w: y = W x */
} block_target;

static void targets_of(block_target t[BLOCKS], uint64_t seed)
{
    enum { DK = 8 };
    pare_rng r = pare_rng_at(seed, 0x6b);
    memset(t, 0, BLOCKS * sizeof *t);
    for (size_t b = 0; b < BLOCKS; b++) {
        double m[4][D * DK];
        for (size_t k = 0; k < 4; k++)
            for (size_t i = 0; i < D * DK; i++) m[k][i] = 2 * pare_rng_uniform(&r) - 1;
        for (size_t i = 0; i < D; i++)
            for (size_t j = 0; j < D; j++) {
                for (size_t c = 0; c < DK; c++) {
                    t[b].g[D * i + j] += m[0][i * DK + c] * m[1][j * DK + c];
                    t[b].v[D * i + j] += m[2][i * DK + c] * m[3][j * DK + c];
                }
                t[b].w[D * i + j] = 2 * pare_rng_uniform(&r) - 1;
            }
    }
}

/* ---- models ---------------------------------------------------------------------------------- */

/* A copy of v in the model; without memory *ok becomes false. */
static pare_weight stored(pare_model *m, const double *v, size_t rows, size_t cols, bool *ok)
{
    double *const to = pare_alloc(m->arena, rows * cols, sizeof *to);
    if (!to) *ok = false;
    if (to) memcpy(to, v, rows * cols * sizeof *to);
    return (pare_weight){PARE_F64, rows, cols, to};
}

/* A block of one head, whose queries are the rows themselves, and a map of `layers` layers that
 * the caller fills in. */
static bool add_block(pare_model *m, pare_block *b, const double *g, const double *v, size_t layers)
{
    static const double eye[4] = {1, 0, 0, 1};
    bool ok = true;
    b->attn = (pare_attn){.kind = PARE_ATTN_EXACT,
                          .din = D,
                          .dout = D,
                          .nheads = 1,
                          .heads = pare_alloc(m->arena, 1, sizeof *b->attn.heads),
                          .wq = stored(m, eye, D, D, &ok),
                          .wk = stored(m, g, D, D, &ok),
                          .wv = stored(m, v, D, D, &ok),
                          .skip = {PARE_SKIP_IDENTITY, {0}}};
    b->ffn = (pare_ffn){.kind = PARE_FFN_MLP,
                        .din = D,
                        .dout = D,
                        .nlayers = layers,
                        .layers = pare_alloc(m->arena, layers, sizeof *b->ffn.layers),
                        .act = PARE_ACT_RELU,
                        .skip = {PARE_SKIP_IDENTITY, {0}}};
    if (!ok || !b->attn.heads || !b->ffn.layers) return false;
    b->attn.heads[0] = (pare_head){.dk = D, .dv = D, .scale = 1};
    return true;
}

static pare_status new_model(pare_model **out, size_t blocks, pare_err *err)
{
    pare_status st = pare_model_new(out, err);
    if (st) return st;
    (*out)->embedding.width = D;
    (*out)->nblocks = blocks;
    (*out)->blocks = pare_alloc((*out)->arena, blocks, sizeof *(*out)->blocks);
    return (*out)->blocks ? PARE_OK : pare_no_memory(err);
}

static pare_status target_model(pare_model **out, const block_target *t, size_t blocks,
                                pare_err *err)
{
    const pare_status st = new_model(out, blocks, err);
    bool ok = true;
    for (size_t b = 0; !st && ok && b < blocks; b++) {
        pare_block *const x = &(*out)->blocks[b];
        ok = add_block(*out, x, t[b].g, t[b].v, 1);
        if (ok) x->ffn.layers[0].w = stored(*out, t[b].w, D, D, &ok);
    }
    return st || ok ? st : pare_no_memory(err);
}

/* ---- the ReLU pair --------------------------------------------------------------------------- */

typedef struct relu_ticket {
    double a[D * MOST_UNITS], b[MOST_UNITS * D]; /* masked: A D x n, B n x D */
} relu_ticket;

/* Which input a unit reads; D: none. */
static void share_blocks(size_t own[MOST_UNITS], const int32_t *b, size_t n, bool by_sign)
{
    bool used[MOST_UNITS] = {false};
    for (size_t k = 0; k < n; k++) own[k] = k / (n / D) < D ? k / (n / D) : D;
    for (size_t turn = 0; by_sign && turn < n; turn++) {
        const size_t j = turn % (2 * D) / 2;
        const int sign = turn % 2 ? -1 : 1;
        size_t best = n;
        for (size_t k = 0; k < n; k++)
            if (!used[k] && sign * b[k * D + j] > 0 &&
                (best == n || labs(b[k * D + j]) > labs(b[best * D + j])))
                best = k;
        if (turn == 0)
            for (size_t k = 0; k < n; k++) own[k] = D;
        if (best < n) used[best] = true, own[best] = j;
    }
}

/* Each entry (i, j) of W by two subset sums: of the units of either sign that read j. */
static pare_status relu_fit(relu_ticket *t, const block_target *f, size_t n, bool by_sign,
                            uint64_t seed, uint64_t stream, pare_err *err)
{
    int32_t a[D * MOST_UNITS], b[MOST_UNITS * D];
    size_t own[MOST_UNITS];
    pare_status st = PARE_OK;
    *t = (relu_ticket){{0}, {0}};
    pare_source_weights(a, seed, stream, 0, D * n);
    pare_source_weights(b, seed, stream + 1, 0, n * D);
    share_blocks(own, b, n, by_sign);
    for (size_t k = 0; k < n; k++)
        if (own[k] < D) t->b[k * D + own[k]] = b[k * D + own[k]] * 0x1p-24;
    for (size_t sum = 0; !st && sum < 2 * D * D; sum++) {
        const size_t i = sum / (2 * D), j = sum / 2 % D;
        const int sign = sum % 2 ? 1 : -1;
        int64_t x[MOST_UNITS] = {0};
        size_t unit[MOST_UNITS], count = 0;
        uint64_t mask[2] = {0, 0};
        pare_subset best;
        for (size_t k = 0; k < n; k++)
            if (own[k] == j && sign * b[k * D + j] > 0) {
                unit[count] = k;
                x[count++] = (int64_t)a[i * n + k] * b[k * D + j];
            }
        st = pare_subset_sum(&best, mask, x, count, llrint(f->w[D * i + j] * 0x1p48), NULL, err);
        for (size_t k = 0; !st && k < count; k++)
            if (mask[k / 64] >> k % 64 & 1) t->a[i * n + unit[k]] = a[i * n + unit[k]] * 0x1p-24;
    }
    return st;
}

static pare_status matrix_fit(double *out, const double *w, size_t n, bool ours, uint64_t seed,
                              uint64_t stream, const pare_exec *exec, pare_err *err)
{
    pare_mat to = pare_mat_of(out, D, D);
    double copy[D * D], most = 0;
    memcpy(copy, w, sizeof copy);
    const pare_mat from = pare_mat_of(copy, D, D);
    for (size_t i = 0; i < D * D; i++) most = fmax(most, fabs(w[i]));
    const pare_fit_opts o = {.seed = seed,
                             .left = stream,
                             .right = stream + 1,
                             .hidden = n,
                             .scale = ours && most > 1 ? exp2(ceil(log2(most))) : 1,
                             .best = ours && n <= DONATED,
                             .donors = DONORS};
    return pare_ticket_fit(&to, &from, &o, exec, err);
}

static pare_status ticket_model(pare_model **out, const block_target *t, size_t blocks, size_t n,
                                bool ours, uint64_t seed, const pare_exec *exec, pare_err *err)
{
    pare_status st = new_model(out, blocks, err);
    for (size_t b = 0; !st && b < blocks; b++) {
        pare_block *const x = &(*out)->blocks[b];
        double g[4], v[4];
        relu_ticket r;
        st = matrix_fit(g, t[b].g, n, ours, seed, 1000 * b + 1, exec, err);
        if (!st) st = matrix_fit(v, t[b].v, n, ours, seed, 1000 * b + 11, exec, err);
        if (!st) st = relu_fit(&r, &t[b], n, ours, seed, 1000 * b + 21, err);
        if (st) return st;
        bool ok = add_block(*out, x, g, v, 2);
        if (ok) x->ffn.layers[0].w = stored(*out, r.b, n, D, &ok);
        if (ok) x->ffn.layers[1].w = stored(*out, r.a, D, n, &ok);
        if (!ok) st = pare_no_memory(err);
    }
    return st;
}

/* ---- measuring ------------------------------------------------------------------------------- */

typedef struct measured_blocks {
    double mean, bound; /* over rows and sequences; of the first sequences */
    bool held;
} measured_blocks;

static pare_status compare(measured_blocks *out, const pare_model *f, const pare_model *g,
                           uint64_t seed, const pare_exec *exec, pare_err *err)
{
    static const double token[2] = {.6, .8};
    double x[SEQUENCES][D * (TOKENS + 1)], y[2][D * (TOKENS + 1)], worst = 0;
    pare_input in[SEQUENCES];
    pare_ticket_bound b;
    pare_status st = PARE_OK;
    out->mean = 0;
    for (size_t i = 0; !st && i < SEQUENCES; i++) {
        circle_sequence(x[i], token, TOKENS, seed, i);
        in[i] = (pare_input){.batch = 1, .tokens = TOKENS + 1, .width = D, .x = x[i]};
        st = pare_forward_f64(y[0], f, &in[i], NULL, exec, err);
        if (!st) st = pare_forward_f64(y[1], g, &in[i], NULL, exec, err);
        for (size_t t = 0; !st && t <= TOKENS; t++) {
            const double e = hypot(y[0][2 * t] - y[1][2 * t], y[0][2 * t + 1] - y[1][2 * t + 1]);
            out->mean += e / (SEQUENCES * (TOKENS + 1));
            if (i < PROVEN) worst = fmax(worst, e);
        }
    }
    const pare_inputs set = {PROVEN, in};
    if (!st) st = pare_ticket_bound_given(&b, f, g, &set, exec, err);
    out->bound = b.rows.v;
    out->held = worst <= b.rows.v * (1 + 1e-9) + 1e-12;
    return st;
}

static pare_status blocks_run(trial *t)
{
    const size_t blocks = t->part + 1;
    block_target target[BLOCKS];
    pare_model *f = NULL;
    targets_of(target, t->s->seed + 9);
    pare_status st = target_model(&f, target, blocks, t->err);
    for (int ours = 0; ours < 2; ours++)
        for (size_t i = 0; !st && i < WIDTHS; i++) {
            double mean = 0, bound[SOURCES], held = 0;
            for (size_t k = 0; !st && k < SOURCES; k++) {
                const uint64_t seed = t->s->seed + k;
                measured_blocks m = {0, 0, false};
                pare_model *g = NULL;
                st = ticket_model(&g, target, blocks, widths[i], ours, seed, t->exec, t->err);
                if (!st) st = compare(&m, f, g, seed, t->exec, t->err);
                pare_model_free(g);
                mean += m.mean / SOURCES;
                bound[k] = m.bound;
                held += m.held;
            }
            append_numbers(t, (double[]){mean, median_of(bound, SOURCES), held / SOURCES}, 3);
        }
    pare_model_free(f);
    return st;
}

/* R^2 of gamma e^(-delta n) with this delta. */
static double r2_with(const double *x, const double *y, size_t n, double delta)
{
    double xy = 0, xx = 0, mean = 0, off = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        xy += exp(-delta * x[i]) * y[i], xx += exp(-2 * delta * x[i]);
        mean += y[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        const double e = y[i] - xy / xx * exp(-delta * x[i]);
        off += e * e, all += (y[i] - mean) * (y[i] - mean);
    }
    return 1 - off / all;
}

double shared_delta(double *r2, const double *n, const double *y, size_t curves, size_t count)
{
    double best = NAN, most = -INFINITY;
    for (int i = 1; i <= 5000; i++) {
        const double delta = i * 2e-4;
        double least = INFINITY;
        for (size_t c = 0; c < curves; c++)
            least = fmin(least, r2_with(n, y + c * count, count, delta));
        if (least > most) most = least, best = delta;
    }
    for (size_t c = 0; c < curves; c++) r2[c] = r2_with(n, y + c * count, count, best);
    return best;
}

static void blocks_table(table_writer *w, const numbers *part, size_t n)
{
    double x[WIDTHS], y[2][BLOCKS][WIDTHS], r2[BLOCKS], held = 1, least = INFINITY;
    begin_table(w, "figure 6", "mean error of all tokens against n, 1 to 4 blocks", -3);
    for (size_t b = 0; b < n; b++)
        for (size_t i = 0; i < 2 * WIDTHS; i++) {
            x[i % WIDTHS] = (double)widths[i % WIDTHS];
            y[i / WIDTHS][b][i % WIDTHS] = part[b].v[3 * i];
            held = fmin(held, part[b].v[3 * i + 2]);
        }
    const double delta = shared_delta(r2, x, y[0][0], n, WIDTHS);
    for (size_t b = 0; b < n; b++) {
        const char *const data = row_text(w, "%zu block%s", b + 1, b ? "s" : "");
        row_ours(w, data, "mean error at n = 40, the paper's way", y[0][b][4]);
        row_ours(w, data, "mean error at n = 40, our way", y[1][b][4]);
        row_ours(w, data, "bound at n = 40, the paper's way (median)", part[b].v[3 * 4 + 1]);
        row_ours(w, data, "delta of the fit to the means", decay_of(x, y[0][b], WIDTHS).delta);
        row_ours(w, data, "R^2 with one delta for all", r2[b]);
        row_curve(w, data, "mean error, the paper's", x, y[0][b], WIDTHS);
        row_curve(w, data, "mean error, ours", x, y[1][b], WIDTHS);
        least = fmin(least, r2[b]);
    }
    row_printed(w, "all", "one delta for all: the least R^2", NAN,
                "only gamma changes", /* what Otsuka 2025 says of figure 6 */
                least, least >= SHARED_R2 ? REPRODUCED : DIFFERS,
                row_text(w,
                         "delta %.3g, a gamma each: every R^2 at least %g; one random target, %d "
                         "sources",
                         delta, SHARED_R2, SOURCES));
    row_holds(w, "all", "the certificate holds in every run", held == 1, held);
}

const experiment ticket_blocks = {"blocks", BLOCKS, 0, 40, false, blocks_run, blocks_table};
