/* Figure 5: the error against the number of tokens, for tickets of three widths; beside it our
 * Theorem B (docs/theory/ticket.md), which holds for any number of them. */
#include "study_ticket.h"
#include <pare/ticket_bounds.h>
#include <math.h>

static const size_t lengths[] = {4, 16, 64, 256, 1024}, widths[] = {12, 20, 28};
enum { LENGTHS = sizeof lengths / sizeof *lengths, WIDTHS = 3, SOURCES = 40, SEQUENCES = 50 };

static size_t lengths_parts(bool full)
{
    (void)full;
    return WIDTHS;
}

/* The head as a model of its own: x_i G x_k, V x_k. */
static void head_model(pare_model *m, pare_block *b, pare_head *h, double *room,
                       const circle_target *t)
{
    double *const eye = room, *const k = room + 4, *const v = room + 8;
    eye[0] = eye[3] = 1, eye[1] = eye[2] = 0;
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++) k[2 * i + j] = t->g[2 * i + j];
    for (size_t c = 0; c < t->d2; c++)
        for (size_t j = 0; j < 2; j++) v[2 * c + j] = t->v[j * t->d2 + c];
    *h = (pare_head){.dk = 2, .dv = t->d2, .scale = 1};
    *b = (pare_block){.attn = {.kind = PARE_ATTN_EXACT,
                               .din = 2,
                               .dout = t->d2,
                               .nheads = 1,
                               .heads = h,
                               .wq = {PARE_F64, 2, 2, eye},
                               .wk = {PARE_F64, 2, 2, k},
                               .wv = {PARE_F64, t->d2, 2, v}}};
    *m = (pare_model){.stem.width = 2, .nblocks = 1, .blocks = b};
}

static pare_status bound_of(double *out, const circle_target *f, const circle_target *g,
                            pare_err *err)
{
    pare_model m[2];
    pare_block b[2];
    pare_head h[2];
    double room[2][12];
    pare_ticket_layer t;
    head_model(&m[0], &b[0], &h[0], room[0], f);
    head_model(&m[1], &b[1], &h[1], room[1], g);
    const pare_status st = pare_ticket_layer_bound(&t, &m[0], &m[1], 0, 1, NULL, err);
    *out = t.free.v;
    return st;
}

static pare_status lengths_run(numbers *out, const setting *s, size_t part, const pare_exec *exec,
                               pare_err *err)
{
    circle_target f, g;
    double sum[LENGTHS] = {0}, bound = 0, worst = 0;
    pare_status st = circle_target_of(&f, 0, s->seed, err);
    for (size_t k = 0; !st && k < SOURCES; k++) {
        double b = 0;
        st = circle_ticket(&g, &f, widths[part], WAY_PAPER, s->seed + k, exec, err);
        if (!st) st = bound_of(&b, &f, &g, err);
        bound += b / SOURCES;
        for (size_t i = 0; !st && i < LENGTHS; i++) {
            double e = 0;
            st = circle_error(&e, &f, &g, lengths[i], SEQUENCES, s->seed, err);
            sum[i] += e / SOURCES;
            worst = fmax(worst, b > 0 ? e / b : e > 0 ? INFINITY : 0);
        }
    }
    for (size_t i = 0; i < LENGTHS; i++) number_put(out, sum[i]);
    number_put(out, bound);
    number_put(out, worst);
    return st;
}

static void lengths_table(table_writer *s, const numbers *part, size_t n, const setting *of)
{
    double x[LENGTHS];
    (void)of;
    for (size_t i = 0; i < LENGTHS; i++) x[i] = (double)lengths[i];
    begin_table(s, "figure 5", "error at the regression token against the tokens T", -3,
                (LENGTHS + 3) * n);
    for (size_t p = 0; p < n; p++) {
        const double *const v = part[p].v;
        const char *const data = pare_sprintf(s->r->arena, "n_K = %zu", widths[p]);
        if (!data && !s->st) s->st = pare_no_memory(s->err);
        for (size_t i = 0; !s->st && i < LENGTHS; i++)
            row_ours(s, data, pare_sprintf(s->r->arena, "T = %zu", lengths[i]), v[i]);
        if (s->st) return;
        row_ours(s, data, "our Theorem B, any T (mean over sources)", v[LENGTHS]);
        row_holds(s, data, "no source errs by more than its bound, at any T", v[LENGTHS + 1] <= 1,
                  v[LENGTHS + 1]);
        row_claim(s, data, "error at T = 1024 / error at T = 4", "does not grow",
                  v[LENGTHS - 1] / v[0], v[LENGTHS - 1] <= 1.2 * v[0] ? REPRODUCED : DIFFERS,
                  "at most 1.2");
        row_curve(s, data, "mean error", x, v, LENGTHS);
    }
}

const experiment ticket_lengths = {"lengths", lengths_parts, 10, false, lengths_run, lengths_table};
