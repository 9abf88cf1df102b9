/* task_text.c - text: predict the next token. A batch is windows that begin anywhere in the
 * training text; scores look at fixed windows side by side, in which every token but the first of
 * a text is predicted once. */
#include "task.h"

#include <math.h>
#include <string.h>

typedef struct tokens {
    const int64_t *ids;
    size_t n;
    pare_text_notes notes;
} tokens;

typedef struct eval_windows {
    tokens text;
    size_t count, every; /* window k begins at k * every * window */
} eval_windows;

typedef struct text_task {
    size_t window, batch;
    tokens train;
    eval_windows part[2]; /* by pare_fold_part */
} text_task;

/* ---- reading ------------------------------------------------------------------------------- */

/* All texts of a file, one behind the other. */
static pare_status read_tokens(tokens *out, pare_arena *a, const pare_model *m, const char *path,
                               pare_err *err)
{
    pare_dataset d;
    pare_status st = pare_dataset_load(
        &d, a, m, path, &(pare_data_opts){.window = SIZE_MAX / 2, .whole = true}, err);
    if (!st && d.task != PARE_TASK_TEXT)
        st = pare_fail(err, PARE_ERR_INPUT, "%s: text is read from .txt, or ids from .npy", path);
    if (st) return st;
    size_t n = 0;
    for (size_t i = 0; i < d.inputs.n; i++) n += d.inputs.in[i].tokens;
    int64_t *ids = d.inputs.n == 1 ? NULL : pare_alloc(a, n, sizeof *ids);
    *out = (tokens){ids ? ids : d.inputs.in[0].ids, n, d.notes};
    if (d.inputs.n == 1) return PARE_OK;
    if (!ids) return pare_no_memory(err);
    for (size_t i = 0; i < d.inputs.n; i++) {
        memcpy(ids, d.inputs.in[i].ids, d.inputs.in[i].tokens * sizeof *ids);
        ids += d.inputs.in[i].tokens;
    }
    return PARE_OK;
}

/* Cuts the share of a text that had `all` tokens off its end. */
static tokens cut(tokens *t, size_t all)
{
    const size_t n = (size_t)(PARE_TEXT_SHARE * (double)all);
    t->n -= n;
    return (tokens){.ids = t->ids + t->n, .n = n};
}

/* At most as many windows as hold `most_tokens` (0: all), spread evenly over the text. */
static eval_windows choose_windows(tokens text, size_t window, size_t most_tokens)
{
    const size_t all = (text.n - 1 + window - 1) / window; /* windows with a target */
    const size_t most = most_tokens / window > 0 ? most_tokens / window : 1;
    eval_windows w = {text, all, 1};
    if (most_tokens == 0 || all <= most) return w;
    w.every = (all + most - 1) / most;
    w.count = (all + w.every - 1) / w.every;
    return w;
}

static pare_status check_length(const tokens *t, size_t least, const char *what, const char *path,
                                pare_err *err)
{
    if (t->n >= least) return PARE_OK;
    return pare_fail(err, PARE_ERR_INPUT,
                     "%s: %zu tokens of %s text, %zu are needed; give more text%s", path, t->n,
                     what, least, least > 2 ? ", or a smaller window" : "");
}

static pare_status read_parts(text_task *t, pare_task_facts *f, pare_arena *a,
                              const pare_task_text_opts *o, pare_err *err)
{
    pare_model m;
    tokens val, test;
    pare_status st = task_text_reader(&m, a, o->tokenizer, o->vocab, o->vocab_bytes, 0, err);
    if (!st) st = read_tokens(&t->train, a, &m, o->train, err);
    if (!st && o->test) st = read_tokens(&test, a, &m, o->test, err);
    if (!st && o->val) st = read_tokens(&val, a, &m, o->val, err);
    if (st) return st;
    const size_t all = t->train.n;
    if (!o->test) test = cut(&t->train, all);
    if (!o->val) val = cut(&t->train, all);
    st = check_length(&t->train, t->window + 1, "training", o->train, err);
    if (!st) st = check_length(&val, 2, "validation", o->val ? o->val : o->train, err);
    if (!st) st = check_length(&test, 2, "test", o->test ? o->test : o->train, err);
    if (st) return st;
    t->part[PARE_PART_VAL] = choose_windows(val, t->window, o->eval_tokens);
    t->part[PARE_PART_TEST] = choose_windows(test, t->window, o->eval_tokens);
    *f = (pare_task_facts){.ids = m.embedding.vocab,
                           .outputs = m.embedding.vocab,
                           .tokens = t->window,
                           .pool = PARE_POOL_NONE,
                           .train = t->train.n,
                           .val = val.n,
                           .test = test.n,
                           .notes = t->train.notes};
    return PARE_OK;
}

/* ---- batches and scores -------------------------------------------------------------------- */

static pare_status batch(void *self, pare_batch *out, pare_arena *a, uint64_t seed, uint64_t step,
                         pare_err *err)
{
    const text_task *t = self;
    const size_t w = t->window;
    int64_t *ids = pare_alloc(a, t->batch, w * sizeof *ids);
    int64_t *label = pare_alloc(a, t->batch, w * sizeof *label);
    if (!ids || !label) return pare_no_memory(err);
    pare_rng r = task_rng(seed, step);
    for (size_t b = 0; b < t->batch; b++) {
        const int64_t *from = t->train.ids + pare_rng_below(&r, t->train.n - w);
        memcpy(ids + b * w, from, w * sizeof *ids);
        memcpy(label + b * w, from + 1, w * sizeof *label);
    }
    *out = (pare_batch){.in = {.batch = t->batch, .tokens = w, .ids = ids}, .label = label};
    return PARE_OK;
}

static pare_status score(void *self, double *out, const pare_model *m, pare_fold_part part,
                         const pare_exec *exec, pare_err *err)
{
    const text_task *t = self;
    const eval_windows *k = &t->part[part];
    const size_t most = task_eval_limit(m, t->window, t->batch);
    pare_scores scores = {0};
    task_eval e;
    bool diverged;
    task_eval_open(&e, m, exec, err);
    for (size_t i = 0, n; !e.work.st && i < k->count; i += n) {
        for (n = 0; n < most && i + n < k->count; n++) /* so many are whole */
            if (((i + n) * k->every + 1) * t->window > k->text.n) break;
        if (n == 0) n = 1; /* the last of the text, which comes alone */
        const size_t begin = i * k->every * t->window, left = k->text.n - begin;
        const size_t w = left < t->window ? left : t->window;
        int64_t *ids = pare_work_alloc(&e.work, n * w, sizeof *ids);
        int64_t *label = pare_work_alloc(&e.work, n * w, sizeof *label);
        for (size_t j = 0; !e.work.st && j < n * w; j++) {
            const size_t at = begin + j / w * k->every * t->window + j % w;
            ids[j] = k->text.ids[at];
            label[j] = at + 1 < k->text.n ? k->text.ids[at + 1] : -1;
        }
        const pare_batch b = {.in = {.batch = n, .tokens = w, .ids = ids}, .label = label};
        task_eval_batch(&e, &b, n * w);
    }
    const pare_status st = task_eval_close(&e, &scores, &diverged);
    if (!st) *out = diverged ? NAN : scores.nats;
    return st;
}

pare_status pare_task_text(pare_task *out, pare_task_facts *facts, pare_arena *a,
                           const pare_task_text_opts *o, pare_err *err)
{
    const char *const path[PARTS] = {o->train, o->val, o->test};
    char vocab[PARE_SHA256_HEX] = "-";
    if (o->window == 0 || o->batch == 0)
        return pare_fail(err, PARE_ERR_USAGE, "window and batch must be at least 1");
    text_task *t = pare_alloc(a, 1, sizeof *t);
    if (!t) return pare_no_memory(err);
    t->window = o->window;
    t->batch = o->batch;
    pare_status st = read_parts(t, facts, a, o, err);
    if (!st && o->vocab) st = pare_sha256_of(vocab, o->vocab, o->vocab_bytes, err);
    if (st) return st;
    const char *id = pare_sprintf(a, "text %s %s own %d%d window %zu batch %zu eval-tokens %zu",
                                  pare_tokenizer_name(o->tokenizer), vocab, o->val != NULL,
                                  o->test != NULL, o->window, o->batch, o->eval_tokens);
    st = task_fingerprint(&id, a, path, PARTS, err);
    if (st) return st;
    const size_t step_tokens = t->window * t->batch;
    *out = (pare_task){.self = t,
                       .id = id,
                       .metric = "nats",
                       .epoch = (t->train.n + step_tokens - 1) / step_tokens,
                       .batch = batch,
                       .score = score};
    return PARE_OK;
}
