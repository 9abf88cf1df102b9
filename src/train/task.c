/* What the lessons share. */
#include "task.h"

#include <math.h>
#include <string.h>

pare_status task_prefix_error(pare_status st, pare_err *err, const char *path)
{
    if (st && err && st != PARE_ERR_MEMORY && strncmp(err->msg, path, strlen(path)) != 0)
        pare_err_prefix(err, path);
    return st;
}

pare_status task_fingerprint(const char **out, pare_arena *a, const char *what,
                             const char *const *path, size_t paths, pare_err *err)
{
    char hex[PARE_SHA256_HEX];
    *out = what;
    for (size_t i = 0; i < paths; i++) {
        if (!path[i]) continue;
        const pare_status st = pare_sha256_file(hex, path[i], err);
        if (st) return st;
        *out = pare_sprintf(a, "%s %s", *out, hex);
        if (!*out) return pare_no_memory(err);
    }
    return PARE_OK;
}

pare_status task_text_reader(pare_model *m, pare_arena *a, pare_tokenizer_kind tokenizer,
                             const uint8_t *vocab, size_t vocab_bytes, size_t outputs,
                             pare_err *err)
{
    pare_tokenizer *t = NULL;
    const pare_status st = pare_tokenizer_new(&t, a, tokenizer, vocab, vocab_bytes, err);
    if (st) return st;
    *m = (pare_model){.tokenizer = tokenizer, .vocab = vocab, .vocab_bytes = vocab_bytes};
    m->stem.ids = true;
    m->stem.vocab = m->stem.embedding.rows = pare_tokenizer_size(t);
    m->stem.width = outputs ? outputs : 1; /* without a head the stream is the output */
    m->top.tied = outputs == 0;
    if (outputs) m->top.pool = PARE_POOL_FIRST;
    return PARE_OK;
}

pare_status task_forward(float **y, pare_arena *a, const pare_model *m, const pare_input *in,
                         const pare_exec *exec, pare_err *err)
{
    size_t n = 0;
    *y = NULL;
    if (pare_mul(&n, pare_output_rows(m, in), pare_model_outputs(m)))
        *y = pare_alloc(a, n ? n : 1, sizeof **y);
    return *y ? pare_forward_f32(*y, m, in, NULL, exec, err) : pare_no_memory(err);
}

pare_status task_score_status(pare_status st, double *mark, pare_err *err)
{
    if (st != PARE_ERR_NONFINITE) return st;
    *mark = NAN;
    if (err) *err = (pare_err){0};
    return PARE_OK;
}

size_t task_batch_limit(const pare_model *m, size_t rows, size_t batch)
{
    const size_t most = TASK_MAX_OUTPUTS / pare_model_outputs(m) / (rows ? rows : 1);
    return most < 1 ? 1 : most < batch ? most : batch;
}
