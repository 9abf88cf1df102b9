/* task_sentences.c - sentences with labels. They differ in length and there is no padding, so that
 * a batch has sentences of one length: a row is drawn, and the batch from the rows that are as
 * long. Every row is equally likely, as in the other tasks. */
#include "task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CLASSES = 1 << 20 };

typedef struct sentence {
    const int64_t *ids;
    size_t tokens, row; /* row: of the file, for a fixed order */
    int64_t label;
} sentence;

typedef struct part { /* by length, then as in the file */
    sentence *s;
    size_t n;
} part;

typedef struct sentence_task {
    size_t batch;
    part part[PARTS];
} sentence_task;

/* ---- reading ------------------------------------------------------------------------------- */

static int by_length(const void *x, const void *y)
{
    const sentence *a = x, *b = y;
    if (a->tokens != b->tokens) return a->tokens < b->tokens ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

static pare_status read_parts(sentence_task *l, pare_task_facts *f, pare_arena *a,
                              const pare_task_sentences_opts *o, pare_err *err)
{
    const char *const path[PARTS] = {o->train, o->val, o->test};
    part *const train = &l->part[TRAIN];
    pare_model m;
    pare_text_notes notes[PARTS] = {{0}};
    const size_t classes = o->outputs ? o->outputs : MAX_CLASSES;
    pare_status st = task_text_reader(&m, a, o->tokenizer, o->vocab, o->vocab_bytes, classes, err);
    if (st) return st;
    m.context = o->context;
    for (size_t p = 0; p < PARTS; p++) {
        pare_dataset d;
        part *const q = &l->part[p];
        if (!path[p]) continue;
        st = pare_dataset_load(&d, a, &m, path[p], NULL, err);
        if (!st && d.task != PARE_TASK_SENTENCE)
            st =
                pare_fail(err, PARE_ERR_INPUT,
                          "%s: sentences with labels are read from .tsv, .csv and .jsonl", path[p]);
        for (size_t i = 0; !st && i < d.inputs.n; i++)
            if (d.target[i][0] < 0)
                st = pare_fail(err, PARE_ERR_INPUT, "%s: there is no column `label`", path[p]);
        if (st) return st;
        notes[p] = d.notes;
        *q = (part){pare_alloc(a, d.inputs.n, sizeof *q->s), d.inputs.n};
        if (!q->s) return pare_no_memory(err);
        for (size_t i = 0; i < q->n; i++)
            q->s[i] = (sentence){d.inputs.in[i].ids, d.inputs.in[i].tokens, i, d.target[i][0]};
    }
    pare_rng r = pare_rng_at(0, o->split);
    for (size_t i = train->n; i > 1; i--) { /* shuffle */
        const size_t j = pare_rng_below(&r, i);
        const sentence t = train->s[j];
        train->s[j] = train->s[i - 1];
        train->s[i - 1] = t;
    }
    const size_t share = (size_t)(PARE_SERIES_SHARE * (double)train->n);
    *f = (pare_task_facts){.ids = m.embedding.vocab, .outputs = o->outputs, .notes = notes[TRAIN]};
    for (size_t p = PARTS; p-- > 0;) {
        part *const q = &l->part[p];
        if (!path[p]) { /* the end of the training rows */
            train->n -= share;
            *q = (part){train->s + train->n, share};
        }
        if (q->n == 0)
            return pare_fail(err, PARE_ERR_INPUT,
                             path[p] ? "%s: there are no %s sentences"
                                     : "%s: too few sentences to set a tenth aside for the %s part",
                             path[p] ? path[p] : o->train, task_part_name[p]);
        qsort(q->s, q->n, sizeof *q->s, by_length);
        for (size_t i = 0; i < q->n; i++) {
            if (q->s[i].tokens > f->tokens) f->tokens = q->s[i].tokens;
            if (!o->outputs && (size_t)q->s[i].label + 1 > f->outputs)
                f->outputs = (size_t)q->s[i].label + 1;
        }
    }
    f->pool = PARE_POOL_FIRST;
    f->train = train->n, f->val = l->part[VAL].n, f->test = l->part[TEST].n;
    return PARE_OK;
}

/* ---- batches and scores -------------------------------------------------------------------- */

/* The sentences as long as number i: [*from, *to). */
static void same_length(const part *p, size_t i, size_t *from, size_t *to)
{
    for (*from = i; *from > 0 && p->s[*from - 1].tokens == p->s[i].tokens;) --*from;
    for (*to = i + 1; *to < p->n && p->s[*to].tokens == p->s[i].tokens;) ++*to;
}

static pare_status batch(void *self, pare_batch *out, pare_arena *a, uint64_t seed, uint64_t step,
                         pare_err *err)
{
    const sentence_task *l = self;
    const part *p = &l->part[TRAIN];
    size_t from, to;
    pare_rng r = task_rng(seed, step);
    same_length(p, pare_rng_below(&r, p->n), &from, &to);
    const size_t tokens = p->s[from].tokens;
    int64_t *ids = pare_alloc(a, l->batch, tokens * sizeof *ids);
    int64_t *label = pare_alloc(a, l->batch, sizeof *label);
    if (!ids || !label) return pare_no_memory(err);
    for (size_t i = 0; i < l->batch; i++) {
        const sentence *s = &p->s[from + pare_rng_below(&r, to - from)];
        memcpy(ids + i * tokens, s->ids, tokens * sizeof *ids);
        label[i] = s->label;
    }
    *out = (pare_batch){.in = {.batch = l->batch, .tokens = tokens, .ids = ids}, .label = label};
    return PARE_OK;
}

static pare_status score(void *self, double *out, const pare_model *m, pare_fold_part which,
                         const pare_exec *exec, pare_err *err)
{
    const sentence_task *l = self;
    const part *p = &l->part[which == PARE_PART_VAL ? VAL : TEST];
    pare_scores scores = {0};
    task_eval e;
    bool diverged;
    task_eval_open(&e, m, exec, err);
    for (size_t i = 0, n; !e.work.st && i < p->n; i += n) {
        const size_t tokens = p->s[i].tokens;
        size_t from, to;
        same_length(p, i, &from, &to);
        n = to - i < l->batch ? to - i : l->batch;
        int64_t *ids = pare_work_alloc(&e.work, n, tokens * sizeof *ids);
        int64_t *label = pare_work_alloc(&e.work, n, sizeof *label);
        for (size_t k = 0; !e.work.st && k < n; k++) {
            memcpy(ids + k * tokens, p->s[i + k].ids, tokens * sizeof *ids);
            label[k] = p->s[i + k].label;
        }
        const pare_batch b = {.in = {.batch = n, .tokens = tokens, .ids = ids}, .label = label};
        task_eval_batch(&e, &b, n);
    }
    const pare_status st = task_eval_close(&e, &scores, &diverged);
    if (!st) *out = diverged ? NAN : scores.accuracy;
    return st;
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
    const char *id = pare_sprintf(a, "sentences %s %s split %zu batch %zu own %d%d",
                                  pare_tokenizer_name(o->tokenizer), vocab, o->split, o->batch,
                                  o->val != NULL, o->test != NULL);
    st = task_fingerprint(&id, a, path, PARTS, err);
    if (st) return st;
    *out = (pare_task){.self = l,
                       .id = id,
                       .metric = "accuracy",
                       .more_is_better = true,
                       .epoch = (l->part[TRAIN].n + l->batch - 1) / l->batch,
                       .batch = batch,
                       .score = score};
    return PARE_OK;
}
