/* pare run --oracle M: attention by small calls of an engine, here or elsewhere. */
#include "out.h"
#include "run.h"

#include <string.h>
#include <unistd.h>

#define PIPE_WORD "pipe:"
#define ONNX_WORD "onnx:"

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_paper(const run_opts *o)
{
    return strcmp(o->backend, "paper") == 0;
}

pare_status run_check_length(cli *c, const run_opts *o)
{
    const char *const b = o->backend;
    if (!o->oracle) {
        if (o->mode || o->timeout != PARE_PIPE_TIMEOUT || strcmp(b, "cpu") != 0 || o->eps > 0)
            return pare_fail(&c->err, PARE_ERR_USAGE,
                             "--backend, --mode, --timeout and --eps go with --oracle M");
        return PARE_OK;
    }
    if (strcmp(b, "cpu") != 0 && strcmp(b, "mpi") != 0 && strcmp(b, "paper") != 0 &&
        !begins(b, PIPE_WORD) && !begins(b, ONNX_WORD))
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--backend: '%s' is none of cpu, paper, mpi, pipe:COMMAND, onnx:FILE", b);
    if (o->texts.n > 1 || o->prompts || (o->tokens && o->tokens != RUN_NOT_GIVEN))
        return pare_fail(&c->err, PARE_ERR_USAGE, "--oracle belongs to one pass over one input");
    return PARE_OK;
}

/* ---- which program -----------------------------------------------------------------------------
 */

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

static pare_status open_engine(cli *c, const run_state *s, pare_oracle *out)
{
    const char *const b = s->o->backend;
    const pare_dtype t = s->o->f64 ? PARE_F64 : PARE_F32;
    pare_pipe_opts p = {.length = (uint32_t)s->o->oracle, .dtype = t, .timeout = s->o->timeout};
    pare_status st = PARE_OK;
    if (is_paper(s->o))
        return pare_oracle_paper(out, t, p.length, 1, 1, PARE_ORC_FULL | PARE_ORC_CAUSAL, &c->exec,
                                 &c->err);
    if (!begins(b, PIPE_WORD) && !begins(b, ONNX_WORD))
        return pare_oracle_cpu(out, t, p.length, &c->exec, &c->err);
    p.command = b + strlen(PIPE_WORD);
    widest_head(s->m, &p);
    if (begins(b, ONNX_WORD)) st = onnx_command(c, &p.command, b + strlen(ONNX_WORD));
    return st ? st : pare_oracle_pipe(out, &p, &c->err);
}

/* ---- the pass ----------------------------------------------------------------------------------
 */

/* All ranks come along, or none does. */
pare_status run_open_oracle(cli *c, run_state *s)
{
    pare_oracle engine = {0};
    if (!s->o->oracle) return PARE_OK;
    pare_status st = open_engine(c, s, &engine);
    st = pare_ranks_agree(s->ranks, st, &c->err);
    if (st) {
        pare_oracle_free(&engine);
        return st;
    }
    if (pare_length_may_exceed(s->m)) s->m->context = 0;
    return pare_oracle_counting(&s->oracle, engine, &s->count, &c->err);
}

pare_status run_through(cli *c, run_state *s, void *out, const pare_input *in,
                        const pare_trace *trace)
{
    pare_length_stats l = {0};
    pare_length_opts o = {.mode = (pare_length_mode)s->o->mode,
                          .seed = c->seed,
                          .eps = s->o->eps,
                          .delta = s->o->delta};
    if (!o.mode && is_paper(s->o)) o.mode = PARE_LENGTH_STRICT; /* it takes no other calls */
    const pare_status st =
        pare_length_forward(out, &s->oracle, &o, s->ranks, s->m, in, &l, trace, &c->exec, &c->err);
    s->length.mode = l.mode;
    s->length.calls += l.calls;
    s->length.fallback_calls += l.fallback_calls;
    s->length.rounds += l.rounds;
    s->length.bad_rows += l.bad_rows;
    s->length.exact_rows += l.exact_rows;
    s->length.unproven_rows += l.unproven_rows;
    s->length.simulated = s->length.simulated || l.simulated;
    if (l.relative > s->length.relative) s->length.relative = l.relative;
    return st;
}

/* What went through the engines of all ranks. */
pare_status run_count_calls(cli *c, run_state *s)
{
    const size_t ranks = pare_ranks_size(s->ranks);
    if (!s->o->oracle || ranks < 2) return PARE_OK;
    pare_oracle_count *const all = pare_alloc(c->arena, ranks, sizeof *all);
    pare_status st = pare_ranks_agree(s->ranks, all ? PARE_OK : pare_no_memory(&c->err), &c->err);
    if (!st) st = pare_ranks_gather(s->ranks, all, &s->count, sizeof *all, &c->err);
    if (st) return st;
    s->count = (pare_oracle_count){0};
    for (size_t r = 0; r < ranks; r++) {
        s->count.calls += all[r].calls;
        s->count.bytes_in += all[r].bytes_in;
        s->count.bytes_out += all[r].bytes_out;
        if (all[r].max_len > s->count.max_len) s->count.max_len = all[r].max_len;
    }
    return PARE_OK;
}

void run_say_length(const run_state *s)
{
    char a[32], b[32];
    if (!s->o->oracle) return;
    out_row("engine", "%s of %zu tokens, %s: %s calls in %s rounds%s", s->o->backend, s->o->oracle,
            pare_length_mode_name(s->length.mode), out_count(a, s->count.calls),
            out_count(b, s->length.rounds),
            s->length.simulated ? "" : " (it takes the whole input)");
    if (s->length.mode == PARE_LENGTH_SAMPLE)
        out_row("", "%s rows computed exactly because no bound of a sample held, %s left unproven",
                out_count(a, s->length.exact_rows), out_count(b, s->length.unproven_rows));
    if (s->length.mode == PARE_LENGTH_CHUNK)
        out_row("", "each chunk has looked at itself alone: no bound at all");
    if (s->length.bad_rows)
        out_row("", "%s of them for %s rows that a first round could not settle",
                out_count(a, s->length.fallback_calls), out_count(b, s->length.bad_rows));
}

bool run_json_length(cJSON *root, const run_state *s)
{
    if (!s->o->oracle) return true;
    cJSON *const o = pare_json_add_object(root, "engine");
    return o && pare_json_add_string(o, "backend", s->o->backend) &&
           pare_json_add_size(o, "tokens", s->o->oracle) &&
           pare_json_add_string(o, "mode", pare_length_mode_name(s->length.mode)) &&
           pare_json_add_size(o, "calls", s->count.calls) &&
           pare_json_add_size(o, "rounds", s->length.rounds) &&
           pare_json_add_size(o, "longest", s->count.max_len) &&
           pare_json_add_size(o, "bytes_in", s->count.bytes_in) &&
           pare_json_add_size(o, "bytes_out", s->count.bytes_out) &&
           pare_json_add_size(o, "fallback_calls", s->length.fallback_calls) &&
           pare_json_add_size(o, "bad_rows", s->length.bad_rows) &&
           pare_json_add_size(o, "exact_rows", s->length.exact_rows) &&
           pare_json_add_size(o, "unproven_rows", s->length.unproven_rows);
}
