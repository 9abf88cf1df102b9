/* Engines by name: our own kernels, the strict referee, or another program. */
#include "engine.h"

#include <string.h>
#include <unistd.h>

#define PIPE_WORD "pipe:"
#define ONNX_WORD "onnx:"

const char *const engine_modes[] = {"auto",  "native", "zeroref", "strict",
                                    "paper", "sample", "chunk",   NULL};
const char *const engine_mode_help[] = {
    "native if the engine returns partial softmax sums, else zeroref",
    "exact; calls return partial softmax sums that are merged outside",
    "exact; plain softmax calls with one more key of zeros, merged outside",
    "exact; calls merge the results as well, nothing is computed outside",
    "the algorithm of Yu 2025 as printed, for comparison; it may fail and says so",
    "approximate; a random sample of the keys, with an error bound for each row",
    "approximate; each chunk attends to itself only, without any error bound",
    NULL};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

bool engine_is_strict(const char *name)
{
    return strcmp(name, "paper") == 0;
}

pare_status engine_check(cli *c, const char *name)
{
    if (strcmp(name, "cpu") == 0 || strcmp(name, "mpi") == 0 || engine_is_strict(name) ||
        begins(name, PIPE_WORD) || begins(name, ONNX_WORD))
        return PARE_OK;
    return pare_fail(&c->err, PARE_ERR_USAGE,
                     "--backend: '%s' is none of cpu, paper, mpi, pipe:COMMAND, onnx:FILE", name);
}

/* ---- which program --------------------------------------------------------------------------- */

/* Our own client of ONNX Runtime: beside the command, as installed or as built. */
static char *find_client(cli *c)
{
    static const char *const places[] = {"../share/pare/onnx.js", "../examples/pipe/onnx.js"};
    char self[4096];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) return NULL;
    self[n] = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *const path = pare_path_beside(c->arena, self, places[i]);
        if (path && pare_file_exists(path)) return path;
    }
    return NULL;
}

/* Quoted for the shell. */
static char *quoted(cli *c, const char *text)
{
    char *const q = pare_alloc(c->arena, 4 * strlen(text) + 3, 1), *at = q;
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

static pare_status onnx_command(cli *c, const char **out, const char *file)
{
    const char *const client = find_client(c);
    if (!client)
        return pare_fail(&c->err, PARE_ERR_IO,
                         "--backend onnx: the client onnx.js is not beside this command");
    if (!pare_file_exists(file))
        return pare_fail(&c->err, PARE_ERR_IO, "%s: there is no such file", file);
    const char *const a = quoted(c, client), *const b = quoted(c, file);
    *out = a && b ? pare_sprintf(c->arena, "exec node %s %s", a, b) : NULL;
    return *out ? PARE_OK : pare_no_memory(&c->err);
}

static void widest_head(const pare_model *m, pare_pipe_opts *p)
{
    for (size_t b = 0; b < m->nblocks; b++)
        for (size_t h = 0; h < m->blocks[b].attn.nheads; h++) {
            const pare_head *const head = &m->blocks[b].attn.heads[h];
            if (head->dk > p->dk) p->dk = (uint32_t)head->dk;
            if (head->dv > p->dv) p->dv = (uint32_t)head->dv;
        }
}

pare_status engine_open(cli *c, pare_oracle *out, const char *name, const pare_model *m,
                        const pare_oracle_caps *like, double timeout)
{
    pare_pipe_opts p = {.length = like->max_len, .dtype = like->dtype, .timeout = timeout};
    pare_status st = PARE_OK;
    if (engine_is_strict(name))
        return pare_oracle_paper(out, like->dtype, like->max_len, like->layers ? like->layers : 1,
                                 like->heads ? like->heads : 1,
                                 like->features ? like->features : PARE_ORC_FULL | PARE_ORC_CAUSAL,
                                 &c->exec, &c->err);
    if (!begins(name, PIPE_WORD) && !begins(name, ONNX_WORD))
        return pare_oracle_cpu(out, like->dtype, like->max_len, &c->exec, &c->err);
    p.command = name + strlen(PIPE_WORD);
    widest_head(m, &p);
    if (begins(name, ONNX_WORD)) st = onnx_command(c, &p.command, name + strlen(ONNX_WORD));
    return st ? st : pare_oracle_pipe(out, &p, &c->err);
}
