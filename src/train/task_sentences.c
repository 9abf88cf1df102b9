/* task_sentences.c - sentences with labels. A batch is rows drawn with repetition; they differ in length
 * and lie side by side without padding. */
#include "task.h"

#include <string.h>

enum { MAX_CLASSES = 1 << 20 };

typedef struct sentence_task {
    size_t batch;
    pare_dataset part[PARTS];
} sentence_task;

/* ---- reading ------------------------------------------------------------------------------- */

static pare_status read_file(pare_dataset *d, pare_arena *a, const pare_model *m, const char *path,
                             pare_err *err)
{
    pare_status st = pare_dataset_load(d, a, m, path, NULL, err);
    if (!st && d->task != PARE_TASK_SENTENCE)
        st = pare_fail(err, PARE_ERR_INPUT,
                       "%s: sentences with labels are read from .tsv, .csv and .jsonl", path);
    for (size_t i = 0; !st && i < d->inputs.n; i++)
        if (d->target[i][0] < 0)
            st = pare_fail(err, PARE_ERR_INPUT, "%s: there is no column `label`", path);
    return st;
}

/* Rows in the order of a shuffle by the split alone: fixed shares of it are the parts. */
static pare_status share_rows(task_parts *out, pare_arena *a, size_t n,
                              const pare_task_sentences_opts *o, pare_err *err)
{
    size_t *const order = pare_alloc(a, n, sizeof *order);
    if (!order) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) order[i] = i;
    pare_rng r = pare_rng_at(0, o->split);
    for (size_t i = n; i > 1; i--) {
        const size_t k = (size_t)pare_rng_below(&r, i), t = order[k];
        order[k] = order[i - 1];
        order[i - 1] = t;
    }
    task_share_parts(out, order, n, (size_t)(PARE_SERIES_SHARE * (double)n), !o->val, !o->test);
    return PARE_OK;
}

static pare_status split_rows(sentence_task *l, pare_task_facts *f, pare_arena *a,
                              const pare_task_sentences_opts *o, pare_err *err)
{
    const pare_dataset all = l->part[TRAIN];
    const char *const path[PARTS] = {o->train, o->val, o->test};
    task_parts parts;
    pare_status st =
        o->shares || (o->val && o->test)
            ? share_rows(&parts, a, all.inputs.n, o, err)
            : task_draw_parts(&parts, a, &all.inputs, !o->val, !o->test, o->seed, o->train, err);
    for (size_t p = 0; p < PARTS && !st; p++) {
        const bool own = p != TRAIN && path[p];
        if (!own) st = pare_dataset_pick(&l->part[p], a, &all, parts.number[p], parts.n[p], err);
        if (!st && l->part[p].inputs.n == 0)
            st = pare_fail(err, PARE_ERR_INPUT,
                           own ? "%s: there are no %s sentences"
                               : "%s: too few sentences to set a tenth aside for the %s part",
                           own ? path[p] : o->train, task_part_name[p]);
        if (!st && p != TRAIN) task_note_part(f, &l->part[p], own ? NULL : &parts, p);
    }
    return st;
}

static pare_status read_parts(sentence_task *l, pare_task_facts *f, pare_arena *a,
                              const pare_task_sentences_opts *o, pare_err *err)
{
    const char *const path[PARTS] = {o->train, o->val, o->test};
    pare_model m;
    const size_t classes = o->outputs ? o->outputs : MAX_CLASSES;
    pare_status st = task_text_reader(&m, a, o->tokenizer, o->vocab, o->vocab_bytes, classes, err);
    if (st) return st;
    m.context = o->context;
    for (size_t p = 0; p < PARTS && !st; p++)
        if (path[p]) st = read_file(&l->part[p], a, &m, path[p], err);
    if (st) return st;
    *f = (pare_task_facts){.ids = m.embedding.vocab,
                           .outputs = o->outputs,
                           .pool = PARE_POOL_FIRST,
                           .notes = l->part[TRAIN].notes};
    st = split_rows(l, f, a, o, err);
    if (st) return st;
    for (size_t p = 0; p < PARTS; p++)
        for (size_t i = 0; i < l->part[p].inputs.n; i++) {
            const size_t tokens = l->part[p].inputs.in[i].tokens;
            const size_t label = (size_t)l->part[p].target[i][0];
            if (tokens > f->tokens) f->tokens = tokens;
            if (!o->outputs && label + 1 > f->outputs) f->outputs = label + 1;
        }
    f->train = l->part[TRAIN].inputs.n;
    f->val = l->part[VAL].inputs.n;
    f->test = l->part[TEST].inputs.n;
    return PARE_OK;
}

/* ---- batches and scores -------------------------------------------------------------------- */

static pare_status batch(void *self, pare_batch *out, pare_arena *a, uint64_t seed, uint64_t step,
                         pare_err *err)
{
    const sentence_task *l = self;
    const pare_dataset *p = &l->part[TRAIN];
    pare_rng r = task_rng(seed, step);
    pare_input *in = pare_alloc(a, l->batch, sizeof *in);
    int64_t *label = pare_alloc(a, l->batch, sizeof *label);
    if (!in || !label) return pare_no_memory(err);
    for (size_t i = 0; i < l->batch; i++) {
        const size_t row = (size_t)pare_rng_below(&r, p->inputs.n);
        in[i] = p->inputs.in[row];
        label[i] = p->target[row][0];
    }
    *out = (pare_batch){.in = {l->batch, in}, .label = label};
    return PARE_OK;
}

static pare_status score(void *self, double *out, const pare_model *m, pare_fold_part which,
                         const pare_exec *exec, pare_err *err)
{
    const sentence_task *l = self;
    return task_score(out, m, &l->part[which == PARE_PART_VAL ? VAL : TEST], exec, err);
}

pare_status pare_task_sentences(pare_task *out, pare_task_facts *facts, pare_arena *a,
                                const pare_task_sentences_opts *o, pare_err *err)
{
    const char *const path[PARTS] = {o->train, o->val, o->test};
    char vocab[PARE_SHA256_HEX] = "-";
    if (o->batch == 0) return pare_fail(err, PARE_ERR_USAGE, "batch must be at least 1");
    sentence_task *l = pare_alloc(a, 1, sizeof *l);
    if (!l) return pare_no_memory(err);
    l->batch = o->batch;
    pare_status st = read_parts(l, facts, a, o, err);
    if (!st && o->vocab) st = pare_sha256_of(vocab, o->vocab, o->vocab_bytes, err);
    if (st) return st;
    const unsigned long long draw = o->shares ? o->split : o->seed;
    const char *id = pare_sprintf(
        a, "sentences %s %s %s %llu batch %zu own %d%d", pare_tokenizer_name(o->tokenizer), vocab,
        o->shares ? "split" : "seed", draw, o->batch, o->val != NULL, o->test != NULL);
    st = task_fingerprint(&id, a, path, PARTS, err);
    if (st) return st;
    *out = (pare_task){.self = l,
                       .id = id,
                       .metric = "accuracy",
                       .more_is_better = true,
                       .epoch = (facts->train + l->batch - 1) / l->batch,
                       .batch = batch,
                       .score = score};
    return PARE_OK;
}
