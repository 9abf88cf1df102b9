/* task.c - what the training tasks share: messages, fingerprints, evaluation. */
#include "task.h"

#include <math.h>
#include <string.h>

enum { MAX_OUTPUTS = 1 << 22 }; /* numbers that one evaluation pass computes */

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

/* ---- evaluation ---------------------------------------------------------------------------- */

void task_eval_open(task_eval *e, const pare_model *m, const pare_exec *exec, pare_err *err)
{
    *e = (task_eval){.work = {.arena = pare_arena_new(), .exec = exec, .err = err},
                     .m = m,
                     .metric_arena = pare_arena_new()};
    e->work.st = e->work.arena && e->metric_arena
                     ? pare_metric_new(&e->metric, e->metric_arena, pare_model_outputs(m), err)
                     : pare_no_memory(err);
    if (!e->work.st) e->empty = pare_arena_mark(e->work.arena);
}

void task_eval_batch(task_eval *e, const pare_batch *b, size_t count)
{
    pare_work *const w = &e->work;
    size_t n = 0;
    if (w->st) return;
    if (!pare_mul(&n, pare_output_rows(e->m, &b->in), pare_model_outputs(e->m))) n = SIZE_MAX;
    float *const y = pare_work_alloc(w, n, sizeof *y);
    if (!w->st) w->st = pare_forward_f32(y, e->m, &b->in, NULL, w->exec, w->err);
    if (!w->st && b->label) w->st = pare_metric_add(e->metric, y, b->label, count, w->err);
    for (size_t i = 0; !w->st && !b->label && i < count; i++) {
        const double d = (double)y[i] - b->value[i];
        if (!isfinite(y[i])) pare_work_fail(w, PARE_ERR_NONFINITE, "an output is %g", (double)y[i]);
        e->squares += d * d;
    }
    pare_arena_reset(w->arena, e->empty);
}

pare_status task_eval_close(task_eval *e, pare_scores *scores, bool *diverged)
{
    pare_work *const w = &e->work;
    if (!w->st && scores) w->st = pare_metric_scores(scores, e->metric, w->err);
    pare_arena_free(w->arena);
    pare_arena_free(e->metric_arena);
    *diverged = w->st == PARE_ERR_NONFINITE;
    if (!*diverged) return w->st;
    if (w->err) *w->err = (pare_err){0};
    return PARE_OK;
}

size_t task_eval_limit(const pare_model *m, size_t rows, size_t batch)
{
    const size_t most = MAX_OUTPUTS / pare_model_outputs(m) / (rows ? rows : 1);
    return most < 1 ? 1 : most < batch ? most : batch;
}
