/* popup_figures.c - figure 8: what edge-popup loses over the factor of queries and keys; figure 7:
 * with the factor of the theory, without, and dense training, over sizes. Byte-level GPTs instead
 * of GPT-2 on WikiText-103: shapes are compared, not values.
 *
 * A run is what `pare train` does with the options that the table names, so every number has a
 * command. */
#include "experiments.h"
#include "popup_figures.h"
#include "ticket_popup_text.h"
#include <math.h>
#include "base/json.h"
#include <pare/train.h>

enum {
    HEAD = 32,
    WINDOW = 64,
    BATCH = 16,
    MARKS = 10,
    MARK_TOKENS = 16384,
    SCALES = 6,
    SIZES = 3,
    SEEDS = 3
};
#define KEEP     0.3
#define POPUP_LR 3e-3 /* of scores; both fall to a tenth */
#define DENSE_LR 2e-3 /* of weights: above it some seeds do badly */

typedef struct size {
    size_t dim, layers;
} size;
static const size sizes[SIZES] = {{32, 2}, {64, 2}, {128, 4}};
enum { MIDDLE = 1 }; /* figure 8 is of this one */

/* 0: what the theory says; NAN: dense */
static const double scales[SCALES] = {1, 1.5, 0, 4, 6, 10};
static const double lines[] = {1, 0, NAN};
static const char *const line_names[] = {"factor 1", "factor of the theory", "dense"};
enum { LINES = 3 };

typedef struct training {
    size of;
    double scale;
    uint64_t seed, steps;
} training;

typedef struct popup {
    study_context *c;
    pare_task task;
    pare_task_facts facts;
    const char *text; /* the options that name it */
    size_t nsizes, seeds;
    uint64_t steps;
    jobs jobs; /* of figure 8, then of figure 7: seeds side by side */
} popup;

/* A mark looks at no more than a run learns from. */
static size_t eval_tokens(const popup *s)
{
    const uint64_t learned = s->steps * WINDOW * BATCH;
    return learned < MARK_TOKENS ? (size_t)learned : MARK_TOKENS;
}

static uint64_t eval_every(uint64_t steps)
{
    return steps < MARKS ? 1 : steps / MARKS;
}

static double factor_of(double scale)
{
    return scale == 0 ? pare_popup_theory_scale(HEAD) : scale;
}

/* ---- one run --------------------------------------------------------------------------------- */

static pare_status run_job(void *self, const job *j, cJSON *result, const pare_exec *exec,
                           pare_err *err)
{
    const popup *const s = self;
    const training *const t = j->own;
    const bool dense = isnan(t->scale);
    const double lr = dense ? DENSE_LR : POPUP_LR;
    const pare_popup scores = {.keep = KEEP};
    const pare_frozen_gpt frozen = {PARE_FROZEN_NORMAL, t->seed, factor_of(t->scale)};
    const pare_init init = {.kind = PARE_INIT_GPT,
                            .dim = t->of.dim,
                            .layers = t->of.layers,
                            .heads = t->of.dim / HEAD,
                            .vocab = 256,
                            .context = WINDOW,
                            .seed = t->seed,
                            .source = dense ? NULL : &frozen};
    const pare_train_opts o = {.steps = t->steps,
                               .warmup = t->steps / 50,
                               .eval_every = eval_every(t->steps),
                               .lr = lr,
                               .last_lr = lr / 10,
                               .clip = 1,
                               .adamw = PARE_ADAMW_OPTS_DEFAULT,
                               .seed = t->seed,
                               .popup = dense ? NULL : &scores};
    pare_model *start = NULL, *m = NULL;
    pare_train_result r;
    pare_status st = pare_init_model(&start, &init, err);
    if (!st) st = pare_train(&m, &r, start, &s->task, &o, exec, err);
    if (!st &&
        !(pare_json_add_number(result, "val", r.val) &&
          pare_json_add_number(result, "test", r.test) &&
          pare_json_add_size(result, "weights", (size_t)pare_model_size(m, 1, 0).parameters) &&
          pare_json_add_u64(result, "best_step", r.best_step)))
        st = pare_no_memory(err);
    pare_model_free(start);
    pare_model_free(m);
    return st;
}

/* ---- the list of them ------------------------------------------------------------------------ */

static pare_status add_job(popup *s, size of, double scale, size_t run)
{
    study_context *const c = s->c;
    pare_arena *const a = c->r->arena;
    training *const t = pare_alloc(a, 1, sizeof *t);
    job *const j = &s->jobs.job[s->jobs.n++];
    if (!t) return pare_no_memory(c->err);
    *t = (training){of, scale, c->o->seed + run, s->steps};
    j->own = t;
    j->cost = (double)(of.dim * of.dim * of.layers) * (double)s->steps;
    j->name = isnan(scale) ? pare_sprintf(a, "popup-d%zu-dense-%zu", of.dim, run)
                           : pare_sprintf(a, "popup-d%zu-x%.2f-%zu", of.dim, factor_of(scale), run);
    j->what =
        pare_sprintf(a, "repro popup 1: %s, seed %llu, %llu steps, keep %g, %s", j->name,
                     (unsigned long long)t->seed, (unsigned long long)t->steps, KEEP, s->task.id);
    return j->name && j->what ? PARE_OK : pare_no_memory(c->err);
}

static pare_status list_jobs(popup *s)
{
    pare_status st = new_jobs(s->c, &s->jobs, (SCALES + LINES * s->nsizes) * s->seeds);
    for (size_t i = 0; !st && i < SCALES * s->seeds; i++)
        st = add_job(s, sizes[MIDDLE], scales[i / s->seeds], i % s->seeds);
    for (size_t i = 0; !st && i < s->nsizes; i++)
        for (size_t l = 0; !st && l < LINES * s->seeds; l++)
            st = add_job(s, sizes[i], lines[l / s->seeds], l % s->seeds);
    s->jobs.title = "edge-popup";
    s->jobs.run = run_job;
    s->jobs.self = s;
    return st;
}

/* ---- what came of it ------------------------------------------------------------------------- */

typedef struct average { /* of the runs of one setting */
    double mean, std;    /* of the test loss at the best validation */
    size_t weights;
} average;

static average average_of(table_writer *w, const popup *s, size_t first)
{
    double sum = 0, square = 0, weights = 0;
    for (size_t r = 0; r < s->seeds && !w->st; r++) {
        const cJSON *const is = s->jobs.job[first + r].result;
        const cJSON *const test = cJSON_GetObjectItemCaseSensitive(is, "test");
        const cJSON *const count = cJSON_GetObjectItemCaseSensitive(is, "weights");
        if (!cJSON_IsNumber(test) || !cJSON_IsNumber(count)) {
            w->st = pare_fail(w->err, PARE_ERR_INPUT, "%s.json: no test loss",
                              s->jobs.job[first + r].file_prefix);
            break;
        }
        sum += test->valuedouble;
        square += test->valuedouble * test->valuedouble;
        weights = count->valuedouble;
    }
    const double n = (double)s->seeds, mean = sum / n;
    const double var = n > 1 ? (square - n * mean * mean) / (n - 1) : 0;
    return (average){mean, sqrt(var > 0 ? var : 0), (size_t)weights};
}

static const char *command_of(const popup *s, size of, double scale)
{
    pare_arena *const a = s->c->r->arena;
    const char *const how = isnan(scale)
                                ? pare_sprintf(a, " --lr %g --last-lr %g", DENSE_LR, DENSE_LR / 10)
                            : scale == 0 ? " --popup --qk-scale theory"
                                         : pare_sprintf(a, " --popup --qk-scale %g", scale);
    return how ? pare_sprintf(a,
                              "pare train --kind gpt%s %s --dim %zu --layers %zu --heads %zu "
                              "--steps %llu --warmup %llu --eval-every %llu --eval-tokens %zu "
                              "--seed %llu --runs %zu",
                              how, s->text, of.dim, of.layers, of.dim / HEAD,
                              (unsigned long long)s->steps, (unsigned long long)s->steps / 50,
                              (unsigned long long)eval_every(s->steps), eval_tokens(s),
                              (unsigned long long)s->c->o->seed, s->seeds)
               : NULL;
}

static void put_average(table_writer *w, const popup *s, const char *data, const char *what,
                        const average *is, const char *command)
{
    table_row row = row_of(data, what, is->mean);
    row.ours_std = is->std;
    row.runs = s->seeds;
    row.parameters = is->weights;
    row.from = row.command = command;
    add_row(w, row);
}

row_verdict popup_verdict(double by, double spread, bool full)
{
    if (!full || !(fabs(by) > 2 * spread)) return UNDECIDED;
    return by > 0 ? REPRODUCED : DIFFERS;
}

/* A statement of the figure: `less` has the smaller loss. */
static void put_claim(table_writer *w, const popup *s, const char *what, const average *less,
                      const average *more)
{
    const bool full = s->c->o->full;
    const double spread = less->std > more->std ? less->std : more->std;
    const row_verdict verdict = popup_verdict(more->mean - less->mean, spread, full);
    row_printed(w, "claim", what, NAN, "is better", more->mean - less->mean, verdict,
                !full                  ? "nats lost less; not decided at this size: --full"
                : verdict == UNDECIDED ? "nats lost less; within twice the larger spread"
                                       : "nats lost less");
}

static void figure_8(table_writer *w, const popup *s)
{
    double x[SCALES], y[SCALES];
    average is[SCALES];
    size_t best = 0;
    begin_table(w, "figure 8",
                "edge-popup keeping 0.3 of a random GPT, byte level, width 64, 2 blocks: nats per "
                "byte over the factor of queries and keys",
                4);
    for (size_t i = 0; i < SCALES; i++) {
        is[i] = average_of(w, s, i * s->seeds);
        x[i] = factor_of(scales[i]), y[i] = is[i].mean;
        if (y[i] < y[best]) best = i;
        put_average(w, s, "test loss",
                    row_text(w, scales[i] == 0 ? "factor %.3g (theory)" : "factor %.3g", x[i]),
                    &is[i], command_of(s, sizes[MIDDLE], scales[i]));
    }
    put_claim(w, s, "the theory's factor against 1", &is[2], &is[0]);
    table_row row = row_of(
        "claim", row_text(w, "the theory's against the best here (%.3g)", x[best]), y[best] - y[2]);
    row.note = "nats lost less";
    add_row(w, row);
    row_curve(w, "test loss", "edge-popup", x, y, SCALES);
}

static void figure_7(table_writer *w, const popup *s)
{
    double x[SIZES], y[LINES][SIZES];
    begin_table(w, "figure 7",
                "edge-popup without and with the factor of the theory, and dense training, over "
                "sizes: nats per byte",
                4);
    for (size_t i = 0; i < s->nsizes; i++) {
        average is[LINES];
        const char *const data = row_text(w, "d %zu, %zu", sizes[i].dim, sizes[i].layers);
        for (size_t l = 0; l < LINES; l++) {
            is[l] = average_of(w, s, (SCALES + i * LINES + l) * s->seeds);
            y[l][i] = is[l].mean;
            put_average(w, s, data, line_names[l], &is[l], command_of(s, sizes[i], lines[l]));
        }
        x[i] = (double)is[0].weights;
        put_claim(w, s, row_text(w, "%s: the factor against 1", data ? data : ""), &is[1], &is[0]);
    }
    for (size_t l = 0; l < LINES; l++) row_curve(w, "test loss", line_names[l], x, y[l], s->nsizes);
}

/* ---- the study ------------------------------------------------------------------------------- */

static pare_status open_text(popup *s, const char *const text[3])
{
    study_context *const c = s->c;
    pare_arena *const a = c->r->arena;
    pare_task_text_opts o = {.train = text[0],
                             .val = text[1],
                             .test = text[2],
                             .shares = true, /* as the figures were made */
                             .tokenizer = PARE_TOK_BYTES,
                             .window = WINDOW,
                             .batch = BATCH,
                             .eval_tokens = eval_tokens(s)};
    pare_status st = PARE_OK;
    if (!o.train) {
        o.train = pare_sprintf(a, "%s/text.txt", c->r->folder);
        st = !o.train           ? pare_no_memory(c->err)
             : is_first_rank(c) ? popup_text(o.train, c->o->seed, c->err)
                                : PARE_OK;
        st = pare_ranks_agree(c->ranks, st, c->err);
    }
    if (!st) st = pare_task_text(&s->task, &s->facts, a, &o, c->err);
    s->text =
        st ? NULL
           : pare_sprintf(a, "--data %s%s%s%s%s --parts shares", o.train, o.val ? " --val " : "",
                          o.val ? o.val : "", o.test ? " --test " : "", o.test ? o.test : "");
    return st || s->text ? st : pare_no_memory(c->err);
}

pare_status popup_study(study_context *c, const char *const text[3])
{
    const bool full = c->o->full;
    popup s = {.c = c, .nsizes = full ? 3 : 2, .seeds = SEEDS, .steps = full ? 1000 : 400};
    table_writer w = {.r = c->r, .err = c->err};
    if (c->o->epochs && c->o->epochs < s.steps) s.steps = c->o->epochs;
    pare_status st = open_text(&s, text);
    if (!st) st = list_jobs(&s);
    st = do_jobs(c, &s.jobs, st);
    if (!st) {
        figure_7(&w, &s);
        figure_8(&w, &s);
        st = w.st;
    }
    if (!st && !text[0])
        st = add_note(c, "figures 7 and 8 learn from a made-up text; with WikiText-2 (--data "
                         "TRAIN.txt --data VAL.txt --data TEST.txt) they are those of "
                         "docs/popup.md");
    if (!st)
        st = add_note(c, "the spread of the logits at the start is 0.307 keep factor^2, whatever "
                         "the head's width: a gain by the factor does not show that the theory's "
                         "exponent is right");
    jobs_close(&s.jobs);
    return st;
}
