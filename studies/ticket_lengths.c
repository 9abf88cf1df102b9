/* ticket_lengths.c - figure 5: the error against the number of tokens, for tickets of three widths;
 * beside it our Theorem B (docs/theory/ticket.md), which holds for any number of them. */
#include "study_ticket.h"
#include <pare/ticket.h>
#include <math.h>
#include <string.h>

static const size_t lengths[] = {4, 16, 64, 256, 1024}, widths[] = {12, 20, 28};
enum { LENGTHS = sizeof lengths / sizeof *lengths, WIDTHS = 3, SOURCES = 40, SEQUENCES = 50 };

/* One head as a model of its own: x_i G x_k, V x_k. */
typedef struct head_model {
    pare_model m;
    pare_block b;
    pare_head h;
    double eye[4], k[4], v[4];
} head_model;

static void build_head(head_model *to, const circle_target *t)
{
    to->eye[0] = to->eye[3] = 1, to->eye[1] = to->eye[2] = 0;
    memcpy(to->k, t->g, sizeof to->k);
    for (size_t c = 0; c < t->d2; c++)
        for (size_t j = 0; j < 2; j++) to->v[2 * c + j] = t->v[j * t->d2 + c];
    to->h = (pare_head){.dk = 2, .dv = t->d2, .scale = 1};
    to->b = (pare_block){.attn = {.kind = PARE_ATTN_EXACT,
                                  .din = 2,
                                  .dout = t->d2,
                                  .nheads = 1,
                                  .heads = &to->h,
                                  .wq = {PARE_F64, 2, 2, to->eye},
                                  .wk = {PARE_F64, 2, 2, to->k},
                                  .wv = {PARE_F64, t->d2, 2, to->v}}};
    to->m = (pare_model){.embedding.width = 2, .nblocks = 1, .blocks = &to->b};
}

static pare_status lengths_run(trial *t)
{
    const uint64_t seed = t->s->seed;
    circle_target f, g;
    double sum[LENGTHS] = {0}, bound = 0, worst = 0;
    head_model target, ticket;
    pare_ticket_layer proven;
    pare_status st = PARE_OK;
    circle_target_of(&f, 0, seed);
    build_head(&target, &f);
    for (size_t k = 0; !st && k < SOURCES; k++) {
        st = circle_ticket(&g, &f, widths[t->part], WAY_PAPER, seed + k, t->exec, t->err);
        if (st) break;
        build_head(&ticket, &g);
        st = pare_ticket_layer_bound(&proven, &target.m, &ticket.m, 0, 1, NULL, t->err);
        const double b = proven.free.v;
        bound += b / SOURCES;
        for (size_t i = 0; !st && i < LENGTHS; i++) {
            double e = 0;
            st = circle_error(&e, &f, &g, lengths[i], SEQUENCES, seed, t->err);
            sum[i] += e / SOURCES;
            worst = fmax(worst, b > 0 ? e / b : e > 0 ? INFINITY : 0);
        }
    }
    append_numbers(t, sum, LENGTHS);
    append_numbers(t, (double[]){bound, worst}, 2);
    return st;
}

static void lengths_table(table_writer *w, const numbers *part, size_t n)
{
    double x[LENGTHS];
    for (size_t i = 0; i < LENGTHS; i++) x[i] = (double)lengths[i];
    begin_table(w, "figure 5", "error at the regression token against the tokens T", -3);
    for (size_t p = 0; p < n; p++) {
        const double *const v = part[p].v;
        const char *const data = row_text(w, "n_K = %zu", widths[p]);
        for (size_t i = 0; i < LENGTHS; i++)
            row_ours(w, data, row_text(w, "T = %zu", lengths[i]), v[i]);
        row_ours(w, data, "our Theorem B, any T (mean over sources)", v[LENGTHS]);
        row_holds(w, data, "no source errs by more than its bound, at any T", v[LENGTHS + 1] <= 1,
                  v[LENGTHS + 1]);
        row_printed(w, data, "error at T = 1024 / error at T = 4", NAN, "does not grow",
                    v[LENGTHS - 1] / v[0], v[LENGTHS - 1] <= 1.2 * v[0] ? REPRODUCED : DIFFERS,
                    "at most 1.2");
        row_curve(w, data, "mean error", x, v, LENGTHS);
    }
}

const experiment ticket_lengths = {"lengths", WIDTHS, 0, 10, false, lengths_run, lengths_table};
