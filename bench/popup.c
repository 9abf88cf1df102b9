/* Edge-popup against dense training: steps of the same GPT, in turns, as a ratio.
 *
 *   bench/popup [THREADS]      CSV on stdout: milliseconds of a step, the best of several, and
 *                              how fast edge-popup is (1: as fast as dense training)
 *
 * A step is all that a run does between two marks: batch, forward, loss, back, AdamW; and for
 * edge-popup the transposed gradient and the new masks. It must not fall below 0.8. */
#include <pare/train.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TURNS = 4 };

static _Noreturn void stop(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(2);
}

static bool on_cpu; /* one thread: its own time, whoever else is at work */

static double seconds(void)
{
    return on_cpu ? (double)clock() / CLOCKS_PER_SEC : pare_seconds();
}

typedef struct shape {
    const char *name;
    size_t dim, layers, heads, vocab, window, batch;
    uint64_t steps; /* of a turn */
} shape;

static const shape shapes[] = {
    {"bytes d 64", 64, 2, 2, 256, 64, 16, 16},
    {"bytes d 128", 128, 4, 4, 256, 64, 16, 6},
    {"pairs d 256", 256, 4, 4, 8192, 128, 4, 2},
};

/* Random ids: a step takes as long as one on text. */
static pare_status batch(void *self, pare_batch *out, pare_arena *a, uint64_t seed, uint64_t step,
                         pare_err *err)
{
    const shape *const s = self;
    const size_t n = s->window * s->batch;
    pare_rng r = pare_rng_at(seed, step);
    int64_t *const ids = pare_alloc(a, n, sizeof *ids), *const label =
                                                            pare_alloc(a, n, sizeof *ids);
    pare_input *const in = pare_alloc(a, s->batch, sizeof *in);
    if (!ids || !label || !in) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        ids[i] = (int64_t)pare_rng_below(&r, s->vocab);
        label[i] = (int64_t)pare_rng_below(&r, s->vocab);
    }
    for (size_t i = 0; i < s->batch; i++)
        in[i] = (pare_input){.batch = 1, .tokens = s->window, .ids = ids + i * s->window};
    *out = (pare_batch){.in = {s->batch, in}, .label = label};
    return PARE_OK;
}

/* A mark costs nothing here. */
static pare_status score(void *self, double *out, const pare_model *m, pare_fold_part part,
                         const pare_exec *exec, pare_err *err)
{
    (void)self, (void)m, (void)part, (void)exec, (void)err;
    *out = 1;
    return PARE_OK;
}

typedef struct clocked { /* what the log has seen */
    double last, best;
} clocked;

/* The first step, which makes all memory, is not counted, nor the last, which is marked. */
static void look(void *self, const pare_train_log *line)
{
    clocked *const c = self;
    const double now = seconds();
    if (line->step > 1 && line->step < line->steps && now - c->last < c->best)
        c->best = now - c->last;
    c->last = now;
}

/* Seconds of the fastest step. */
static double turn(const pare_model *start, const shape *s, const pare_popup *popup, int threads)
{
    pare_err err = {0};
    pare_model *m = NULL;
    pare_train_result r;
    clocked c = {.best = 1e9};
    const shape own = *s;
    const pare_exec exec = {.threads = threads};
    const pare_task task = {
        .self = (void *)&own, .metric = "nats", .epoch = 1, .batch = batch, .score = score};
    const pare_train_opts o = {.steps = s->steps + 2,
                               .lr = 1e-3,
                               .clip = 1,
                               .adamw = PARE_ADAMW_OPTS_DEFAULT,
                               .popup = popup,
                               .log = look,
                               .log_self = &c};
    if (pare_train(&m, &r, start, &task, &o, &exec, &err)) stop(err.msg);
    pare_model_free(m);
    return c.best;
}

static void compare(const shape *s, int threads)
{
    pare_err err = {0};
    pare_model *m = NULL;
    const pare_popup popup = {.keep = 0.3};
    const pare_frozen_gpt from = {PARE_FROZEN_NORMAL, 1,
                                  pare_popup_theory_scale(s->dim / s->heads)};
    const pare_init o = {.kind = PARE_INIT_GPT,
                         .dim = s->dim,
                         .layers = s->layers,
                         .heads = s->heads,
                         .vocab = s->vocab,
                         .context = s->window,
                         .source = &from};
    double dense = 1e9, masked = 1e9;
    if (pare_init_model(&m, &o, &err)) stop(err.msg);
    for (int i = 0; i < TURNS; i++) {
        const double a = turn(m, s, NULL, threads), b = turn(m, s, &popup, threads);
        if (a < dense) dense = a;
        if (b < masked) masked = b;
    }
    printf("%s,%zu,%d,%.3f,%.3f,%.3f,0.8\n", s->name, (size_t)pare_model_size(m, 1, 0).parameters,
           threads, 1e3 * dense, 1e3 * masked, dense / masked);
    fflush(stdout);
    pare_model_free(m);
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    if (threads < 1) stop("THREADS is at least 1");
    on_cpu = threads == 1;
    printf("model,weights,threads,dense_ms,popup_ms,speed,at_least\n");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) compare(&shapes[i], threads);
    return 0;
}
