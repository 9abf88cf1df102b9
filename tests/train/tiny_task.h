/* tiny_task.h - models of a few hundred numbers and tasks they learn in a second. */
#ifndef TINY_TASK_H
#define TINY_TASK_H
#include <pare/train.h>
#include <pare_test.h>

enum { TINY_VOCAB = 5, TINY_TOKENS = 6, TINY_INPUTS = 8 };

/* The next id is this one plus one; a node's class is the sign of its first feature. */
typedef struct tiny {
    pare_model *start;
    pare_arena *arena;
    pare_inputs set[3]; /* to learn, to validate, to test */
    pare_task task;
    bool same_batch;                /* in every step */
    uint64_t poison;                /* from this step on targets are infinite; 0: never */
    const double *marks;            /* said in place of the true ones; NULL: the true ones */
    size_t marked, tested;          /* marks so far: validation, test */
    char seen[40][PARE_SHA256_HEX]; /* what was marked */
} tiny;

static inline int64_t tiny_label(const pare_input *in, size_t row)
{
    if (in->ids) return (in->ids[row] + 1) % TINY_VOCAB;
    return in->x[row * in->width] > 0;
}

static inline pare_status tiny_batch(void *self, pare_batch *out, pare_arena *a, uint64_t seed,
                                     uint64_t step, pare_err *err)
{
    const tiny *const t = self;
    pare_rng g = pare_rng_at(seed, step);
    const size_t which = pare_rng_below(&g, TINY_INPUTS);
    pare_input *const in = &t->set[0].in[t->same_batch ? 0 : which];
    const size_t rows = in->batch * in->tokens, cols = pare_model_outputs(t->start);
    int64_t *const label = pare_alloc(a, rows, sizeof *label);
    double *const value = pare_alloc(a, rows * cols, sizeof *value);
    if (!label || !value) return pare_no_memory(err);
    for (size_t r = 0; r < rows; r++) label[r] = tiny_label(in, r);
    for (size_t i = 0; i < rows * cols; i++) value[i] = INFINITY;
    *out = (pare_batch){.in = {1, in}, .label = label};
    if (t->poison && step >= t->poison) *out = (pare_batch){.in = {1, in}, .value = value};
    return PARE_OK;
}

/* Mean cross entropy over a set. */
static inline pare_status tiny_nats(double *out, const tiny *t, const pare_model *m,
                                    const pare_inputs *set, const pare_exec *exec, pare_err *err)
{
    double sum = 0;
    for (size_t i = 0; i < set->n; i++) {
        const pare_input *const in = &set->in[i];
        float y[64 * TINY_VOCAB], dy[64 * TINY_VOCAB] = {0};
        int64_t label[64];
        double nats = 0;
        const pare_logits l = {PARE_F32, in->batch * in->tokens, pare_model_outputs(m), y};
        assert_true(l.rows <= 64 && l.cols <= TINY_VOCAB);
        pare_status st = pare_forward_f32(y, m, in, NULL, exec, err);
        for (size_t r = 0; r < l.rows; r++) label[r] = tiny_label(in, r);
        if (!st) st = pare_loss_cross_entropy(&nats, dy, &l, label, 0, exec, err);
        if (st) return st;
        sum += nats / (double)set->n;
    }
    (void)t;
    *out = sum;
    return PARE_OK;
}

static inline pare_status tiny_score(void *self, double *out, const pare_model *m,
                                     pare_fold_part part, const pare_exec *exec, pare_err *err)
{
    tiny *const t = self;
    const bool val = part == PARE_PART_VAL;
    pare_status st = tiny_nats(out, t, m, &t->set[val ? 1 : 2], exec, err);
    t->tested += val ? 0 : 1;
    if (st || !val || !t->marks) return st;
    *out = t->marks[t->marked];
    return pare_model_sha256(t->seen[t->marked++], m, err);
}

static inline void tiny_open(tiny *t, pare_random_kind kind, uint64_t seed)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_err err = {0};
    *t = (tiny){0};
    o.kind = kind, o.seed = seed, o.dim = 8, o.heads = 2, o.layers = 2, o.ffn = 12;
    o.vocab = TINY_VOCAB, o.context = TINY_TOKENS, o.features = 3, o.classes = 2;
    assert_ok(pare_random_model(&t->start, &o, &err), &err);
    t->arena = pare_arena_new();
    assert_non_null(t->arena);
    for (size_t i = 0; i < 3; i++)
        assert_ok(pare_inputs_random(&t->set[i], t->arena, t->start, TINY_INPUTS, TINY_TOKENS,
                                     100 + i, &err),
                  &err);
    t->task = (pare_task){.self = t,
                          .id = "tiny",
                          .metric = "nats",
                          .epoch = TINY_INPUTS,
                          .batch = tiny_batch,
                          .score = tiny_score};
}

static inline void tiny_close(tiny *t)
{
    pare_model_free(t->start);
    pare_arena_free(t->arena);
}

static inline pare_train_opts tiny_opts(uint64_t steps)
{
    return (pare_train_opts){.steps = steps,
                             .warmup = 2,
                             .eval_every = 4,
                             .checkpoint_every = 3,
                             .lr = 0.01,
                             .clip = 1,
                             .dropout = 0.1,
                             .adamw = PARE_ADAMW_OPTS_DEFAULT,
                             .seed = 11,
                             .temperature = 1};
}

/* The hash of a model that is then freed. */
static inline void tiny_hash(char hex[PARE_SHA256_HEX], pare_model *m)
{
    pare_err err = {0};
    assert_non_null(m);
    assert_ok(pare_model_sha256(hex, m, &err), &err);
    pare_model_free(m);
}
#endif
