/* task.c - what the training tasks share: messages, fingerprints, parts, scores. */
#include "task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const task_part_name[PARTS] = {"training", "validation", "test"};

pare_status task_prefix_error(pare_status st, pare_err *err, const char *path)
{
    if (st && err && st != PARE_ERR_MEMORY && strncmp(err->msg, path, strlen(path)) != 0)
        pare_err_prefix(err, path);
    return st;
}

pare_status task_fingerprint(const char **what, pare_arena *a, const char *const *path,
                             size_t paths, pare_err *err)
{
    char hex[PARE_SHA256_HEX];
    for (size_t i = 0; *what && i < paths; i++) {
        if (!path[i]) continue;
        const pare_status st = pare_sha256_file(hex, path[i], err);
        if (st) return st;
        *what = pare_sprintf(a, "%s %s", *what, hex);
    }
    return *what ? PARE_OK : pare_no_memory(err);
}

pare_status task_text_reader(pare_model *m, pare_arena *a, pare_tokenizer_kind tokenizer,
                             const uint8_t *vocab, size_t vocab_bytes, size_t outputs,
                             pare_err *err)
{
    pare_tokenizer *t = NULL;
    const pare_status st = pare_tokenizer_new(&t, a, tokenizer, vocab, vocab_bytes, err);
    if (st) return st;
    *m = (pare_model){.tokenizer = tokenizer, .vocab = vocab, .vocab_bytes = vocab_bytes};
    m->embedding.ids = true;
    m->embedding.vocab = m->embedding.table.rows = pare_tokenizer_size(t);
    m->embedding.width = outputs ? outputs : 1; /* without a head the stream is the output */
    m->head.tied = outputs == 0;
    if (outputs) m->head.pool = PARE_POOL_FIRST;
    return PARE_OK;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

pare_status task_draw_parts(task_parts *out, pare_arena *a, const pare_inputs *all, bool val,
                            bool test, uint64_t seed, const char *path, pare_err *err)
{
    pare_heldout_draw d;
    pare_status st = pare_heldout_draw_make(&d, a, all, PARE_HELDOUT_INPUTS, false, seed, err);
    if (st) return st;
    *out = (task_parts){.documents = d.documents, .of = d.n};
    const size_t tests = test ? d.held : 0, vals = val ? d.held : 0;
    if (tests + vals >= d.n)
        return pare_fail(
            err, PARE_ERR_INPUT,
            "%s: too few inputs (%zu) to train on some and to set others aside; give "
            "more data, of text a smaller window, or files of their own for validation "
            "and testing",
            path, d.n);
    const size_t from[PARTS] = {tests + vals, tests, 0},
                 count[PARTS] = {d.n - tests - vals, vals, tests};
    for (size_t p = 0; p < PARTS && !st; p++) {
        out->drawn[p] = count[p];
        st =
            pare_heldout_numbers(&out->number[p], &out->n[p], a, &d, from[p], count[p], false, err);
    }
    if (!st) qsort(out->number[TRAIN], out->n[TRAIN], sizeof *out->number[TRAIN], by_number);
    return st;
}

void task_share_parts(task_parts *out, size_t *order, size_t n, size_t share, bool val, bool test)
{
    *out = (task_parts){0};
    const bool wanted[PARTS] = {false, val, test};
    for (size_t p = PARTS - 1; p > 0; p--) {
        out->n[p] = wanted[p] ? share : 0;
        n -= out->n[p];
        out->number[p] = order + n;
    }
    out->number[TRAIN] = order;
    out->n[TRAIN] = n;
}

static size_t count_targets(const pare_dataset *d)
{
    size_t n = d->inputs.n * d->nvalues; /* 0 but for values */
    for (size_t i = 0; i < d->inputs.n && d->target; i++) {
        const size_t rows = d->task == PARE_TASK_SENTENCE ? 1 : d->inputs.in[i].tokens;
        for (size_t k = 0; k < rows; k++) n += d->target[i][k] >= 0;
    }
    return n;
}

void task_note_part(pare_task_facts *f, const pare_dataset *d, const task_parts *p, size_t part)
{
    pare_scored_part *const on = &f->on[part == TEST ? PARE_PART_TEST : PARE_PART_VAL];
    *on = (pare_scored_part){.inputs = d->inputs.n, .counted = count_targets(d)};
    if (!p || !p->of) return;
    on->inputs = p->drawn[part];
    on->of = p->of;
    on->documents = p->documents;
}

/* ---- scores ---------------------------------------------------------------------------------- */

pare_status task_score(double *out, const pare_model *m, const pare_dataset *d,
                       const pare_exec *exec, pare_err *err)
{
    pare_evaluation e;
    pare_model silent = *m;
    silent.tokenizer = PARE_TOK_NONE; /* nobody asks for nats per byte */
    pare_status st = pare_evaluate(&e, &silent, d, false, exec, err);
    if (!st) *out = d->task == PARE_TASK_TEXT ? e.scores.nats : e.value;
    if (st != PARE_ERR_NONFINITE) return st;
    *out = NAN;
    if (err) *err = (pare_err){0};
    return PARE_OK;
}
