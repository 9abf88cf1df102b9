/* engine.c - attention engines by name (pare/length.h). */
#include "backend.h"

#include <string.h>

#define PIPE_WORD "pipe:"
#define ONNX_WORD "onnx:"

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

bool pare_engine_is_strict(const char *name)
{
    return strcmp(name, "paper") == 0;
}

pare_status pare_engine_check(const char *name, pare_err *err)
{
    if (strcmp(name, "cpu") == 0 || strcmp(name, "mpi") == 0 || pare_engine_is_strict(name) ||
        begins(name, PIPE_WORD) || begins(name, ONNX_WORD))
        return PARE_OK;
    return pare_fail(err, PARE_ERR_USAGE,
                     "engine: '%s' is none of cpu, paper, mpi, pipe:COMMAND, onnx:FILE", name);
}

/* Quoted for the shell. */
static char *quoted(pare_arena *a, const char *text)
{
    char *const q = pare_alloc(a, 4 * strlen(text) + 3, 1), *at = q;
    if (!q) return NULL;
    *at++ = '\'';
    for (; *text; text++) {
        if (*text == '\'') {
            memcpy(at, "'\\'", 3);
            at += 3;
        }
        *at++ = *text;
    }
    *at = '\'';
    return q;
}

static pare_status open_onnx(pare_oracle *out, pare_pipe_opts *p, const char *client,
                             const char *file, pare_err *err)
{
    if (!client)
        return pare_fail(err, PARE_ERR_IO, "engine onnx: the program onnx.js was not found");
    if (!pare_file_exists(file))
        return pare_fail(err, PARE_ERR_IO, "%s: there is no such file", file);
    pare_arena *const a = pare_arena_new();
    const char *const q = a ? quoted(a, client) : NULL, *const f = q ? quoted(a, file) : NULL;
    p->command = f ? pare_sprintf(a, "exec node %s %s", q, f) : NULL;
    const pare_status st = p->command ? pare_oracle_pipe(out, p, err) : pare_no_memory(err);
    pare_arena_free(a);
    return st;
}

pare_status pare_engine_open(pare_oracle *out, const pare_engine *e, const pare_model *m,
                             const pare_oracle_caps *like, const pare_exec *exec, pare_err *err)
{
    if (pare_engine_is_strict(e->name)) return pare_oracle_paper(out, like, exec, err);
    const bool onnx = begins(e->name, ONNX_WORD);
    if (!onnx && !begins(e->name, PIPE_WORD))
        return pare_oracle_cpu(out, like->dtype, like->max_len, exec, err);
    pare_pipe_opts p = {.command = e->name + strlen(PIPE_WORD),
                        .length = like->max_len,
                        .dtype = like->dtype,
                        .timeout = e->timeout > 0 ? e->timeout : PARE_PIPE_TIMEOUT};
    for (size_t b = 0; b < m->nblocks; b++)
        for (size_t h = 0; h < m->blocks[b].attn.nheads; h++) {
            const pare_head *const head = &m->blocks[b].attn.heads[h];
            if (head->dk > p.dk) p.dk = (uint32_t)head->dk;
            if (head->dv > p.dv) p.dv = (uint32_t)head->dv;
        }
    if (onnx) return open_onnx(out, &p, e->onnx_client, e->name + strlen(ONNX_WORD), err);
    return pare_oracle_pipe(out, &p, err);
}
