/* pare run: one pass over an array, a text or a graph; or a text that goes on. */
#include "run.h"
#include "warn_text.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STDIN_CHUNK 65536

/* ---- inputs -------------------------------------------------------------------------------- */

static pare_status read_stdin(cli *c, const char **text, size_t *bytes)
{
    char *all = NULL;
    size_t n = 0, room = 0;
    for (;;) {
        if (room - n < STDIN_CHUNK) {
            char *more = pare_alloc(c->arena, room = 2 * room + 2 * STDIN_CHUNK, 1);
            if (!more) return pare_no_memory(&c->err);
            if (n) memcpy(more, all, n);
            all = more;
        }
        const size_t got = fread(all + n, 1, STDIN_CHUNK, stdin);
        n += got;
        if (got == 0) break;
    }
    if (ferror(stdin)) return pare_fail(&c->err, PARE_ERR_IO, "standard input: cannot be read");
    *text = all;
    *bytes = n;
    return PARE_OK;
}

static pare_status one_input(cli *c, run_state *s, pare_input in)
{
    s->set.in = pare_alloc(c->arena, 1, sizeof *s->set.in);
    if (!s->set.in) return pare_no_memory(&c->err);
    s->set.in[0] = in;
    s->set.n = 1;
    return PARE_OK;
}

static pare_status tokenizer(cli *c, run_state *s)
{
    const pare_model *m = s->m;
    if (s->tok) return PARE_OK;
    if (m->tokenizer == PARE_TOK_NONE)
        return pare_fail(&c->err, PARE_ERR_INPUT,
                         "%s: has no tokenizer for --text; `pare import --vocab` gives it one",
                         c->operand[0]);
    return pare_tokenizer_new(&s->tok, c->arena, m->tokenizer, m->vocab, m->vocab_bytes, &c->err);
}

pare_status run_encode(cli *c, run_state *s, const char *text, pare_input *in)
{
    size_t bytes = strlen(text), n = 0;
    int64_t *ids = NULL;
    pare_status st = tokenizer(c, s);
    const bool is_stdin = strcmp(text, "-") == 0;
    if (!st && is_stdin) st = read_stdin(c, &text, &bytes);
    if (!st) st = pare_encode(&ids, &n, c->arena, s->tok, text, bytes, &c->err);
    if (!st && s->o->prompts) { /* the file is looked at as a whole */
        pare_text_note_words(&s->notes, s->tok, text, bytes);
    } else if (!st) {
        pare_text_notes notes = {0};
        pare_text_note_utf8(&notes, text, bytes);
        pare_text_note_words(&notes, s->tok, text, bytes);
        warn_text(c, is_stdin ? "standard input" : "--text", &notes);
    }
    if (!st && n == 0) st = pare_fail(&c->err, PARE_ERR_INPUT, "--text: gives no token");
    if (st) return st;
    *in = (pare_input){.batch = 1, .tokens = n, .ids = ids};
    st = pare_input_check(s->m, in, &c->err);
    if (st == PARE_ERR_INPUT) pare_err_prefix(&c->err, s->o->prompts ? s->o->prompts : "--text");
    return st;
}

static pare_status text_input(cli *c, run_state *s)
{
    pare_input in;
    const pare_status st = run_encode(c, s, s->text, &in);
    if (st) return st;
    const bool pooled = s->m->top.pool != PARE_POOL_NONE;
    s->ndim = pooled ? 1 : 2;
    s->shape[0] = pooled ? pare_model_outputs(s->m) : in.tokens;
    s->shape[1] = pare_model_outputs(s->m);
    return one_input(c, s, in);
}

/* Several inputs become the first axis; they must be alike then. */
static pare_status data_input(cli *c, run_state *s)
{
    pare_dataset d = {0};
    const char *path = s->o->data;
    const pare_status st = pare_dataset_load(&d, c->arena, s->m, path, s->o->split, 0, &c->err);
    if (st) return cli_name(c, st, path);
    warn_text(c, path, &d.notes);
    s->set = d.inputs;
    if (s->set.n == 0) return pare_fail(&c->err, PARE_ERR_INPUT, "%s: holds no input", path);
    const size_t rows = pare_output_rows(s->m, &s->set.in[0]);
    for (size_t i = 1; i < s->set.n; i++)
        if (pare_output_rows(s->m, &s->set.in[i]) != rows)
            return pare_fail(&c->err, PARE_ERR_INPUT,
                             "%s: inputs 0 and %zu differ in length (%zu and %zu rows) and do not "
                             "fit into one array; `pare eval` takes them",
                             path, i, rows, pare_output_rows(s->m, &s->set.in[i]));
    if (s->set.n > 1) s->shape[s->ndim++] = s->set.n;
    if (s->m->top.pool == PARE_POOL_NONE || rows > 1) s->shape[s->ndim++] = rows;
    s->shape[s->ndim++] = pare_model_outputs(s->m);
    return PARE_OK;
}

static pare_status read_input(cli *c, run_state *s)
{
    pare_input in = {0};
    if (s->text) return text_input(c, s);
    if (s->o->data) return data_input(c, s);
    const pare_status st =
        pare_input_read(&in, &s->ndim, s->shape, c->arena, s->m, s->o->input, &c->err);
    if (st) return cli_name(c, st, s->o->input);
    return one_input(c, s, in);
}

/* ---- the pass ------------------------------------------------------------------------------ */

static pare_status forward_all(cli *c, run_state *s, const pare_trace *trace)
{
    const size_t size = s->o->f64 ? sizeof(double) : sizeof(float);
    size_t count = 0, at = 0;
    s->cols = pare_model_outputs(s->m);
    for (size_t i = 0; i < s->set.n; i++) s->rows += pare_output_rows(s->m, &s->set.in[i]);
    s->out = pare_mul(&count, s->rows, s->cols) ? pare_alloc(c->arena, count, size) : NULL;
    if (!s->out) return pare_no_memory(&c->err);
    pare_status st = PARE_OK;
    const double start = pare_seconds();
    for (size_t i = 0; i < s->set.n && !st; i++) {
        const pare_input *in = &s->set.in[i];
        void *const to = (char *)s->out + at * size;
        st = s->o->oracle ? run_through(c, s, to, in, trace)
                          : pare_forward_by(to, s->o->f64 ? PARE_F64 : PARE_F32, s->m, in, NULL,
                                            trace, &c->exec, &c->err);
        at += pare_output_rows(s->m, in) * s->cols;
        pare_progress(&c->exec, "running", i + 1, s->set.n);
    }
    s->ms = 1e3 * (pare_seconds() - start);
    return st;
}

static pare_status forward_traced(cli *c, run_state *s)
{
    tracer t;
    pare_trace trace = {.self = s, .poly = run_poly};
    pare_status st = run_watch_poly(c, s);
    if (st) return st;
    if (!s->o->trace) return forward_all(c, s, s->layers ? &trace : NULL);
    if (s->set.n != 1)
        return pare_fail(&c->err, PARE_ERR_USAGE, "--trace takes one input, %s holds %zu",
                         s->o->data, s->set.n);
    if ((st = trace_open(&t, c, s->o->trace))) return st;
    s->layers = NULL; /* the trace listens */
    t.batch = s->set.in[0].batch;
    trace = (pare_trace){.fn = trace_tap, .self = &t};
    st = forward_all(c, s, &trace);
    if (!st) st = t.st;
    if (!st) cli_note(c, "wrote %zu arrays into %s", t.files, s->o->trace);
    return st;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Through a temporary file, because .npy is written whole and renamed, which stdout cannot be. */
static pare_status write_stdout(cli *c, const pare_array *a)
{
    const char *folder = getenv("TMPDIR");
    char *path = pare_sprintf(c->arena, "%s/pare-run-XXXXXX", folder && *folder ? folder : "/tmp");
    if (!path) return pare_no_memory(&c->err);
    const int fd = mkstemp(path);
    if (fd < 0) return pare_fail(&c->err, PARE_ERR_IO, "-o -: no temporary file");
    close(fd);
    pare_blob *b = NULL;
    pare_status st = pare_npy_write(path, a, true, &c->err);
    if (!st) st = pare_blob_open(&b, path, &c->err);
    unlink(path);
    if (!st && fwrite(b->data, 1, b->bytes, stdout) != b->bytes)
        st = pare_fail(&c->err, PARE_ERR_IO, "standard output: cannot be written");
    pare_blob_release(b);
    return st;
}

static pare_status write_result(cli *c, const run_state *s)
{
    char shape[128];
    pare_array a = {.dtype = s->o->f64 ? PARE_F64 : PARE_F32, .ndim = s->ndim, .data = s->out};
    memcpy(a.shape, s->shape, s->ndim * sizeof *a.shape);
    if (strcmp(c->out, "-") == 0) return write_stdout(c, &a);
    const pare_status st = pare_npy_write(c->out, &a, c->force, &c->err);
    if (!st)
        cli_note(c, "wrote %s, %s %s", c->out, pare_shape_text(shape, s->shape, s->ndim),
                 s->o->f64 ? "f64" : "f32");
    return st;
}

static pare_status check_options(cli *c, const run_opts *o)
{
    const int given =
        (o->input != NULL) + (o->texts.n > 0) + (o->data != NULL) + (o->prompts != NULL);
    if (given != 1)
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "give %s of --input, --text, --prompts and --data",
                         given ? "only one" : "one");
    if (o->attention == RUN_ATTENTION_POLY && o->f64)
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--attention poly is of the f32 engine; the f64 pass is exact");
    const bool arrays = c->out || o->f64 || o->trace, writes = o->texts.n > 1 || o->prompts;
    if (o->tokens != RUN_NOT_GIVEN && !(o->texts.n || o->prompts))
        return pare_fail(&c->err, PARE_ERR_USAGE, "--tokens goes with --text or --prompts");
    if ((writes || (o->tokens != RUN_NOT_GIVEN && o->tokens)) && arrays)
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "-o, --f64 and --trace belong to one pass over one text");
    if (writes && o->tokens == 0)
        return pare_fail(&c->err, PARE_ERR_USAGE, "--tokens 0 is one pass over one text");
    if (!c->out) return PARE_OK;
    if (strcmp(c->out, "-") != 0) {
        pare_status st = cli_may_write(c, c->out, o->input ? o->input : o->data);
        if (!st) st = cli_may_write(c, c->out, o->plan);
        return st ? st : cli_may_write(c, c->out, c->operand[0]);
    }
    if (c->json) return pare_fail(&c->err, PARE_ERR_USAGE, "-o - and --json both want stdout");
    if (isatty(STDOUT_FILENO))
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "-o -: stdout is a terminal, and the array is binary");
    return PARE_OK;
}

static pare_status one_pass(cli *c, run_state *s)
{
    s->text = s->o->texts.n ? s->o->texts.v[0] : NULL;
    pare_status st = run_open_oracle(c, s);
    if (!st) st = read_input(c, s);
    if (!st) st = forward_traced(c, s);
    pare_oracle_free(&s->oracle);
    if (!st) st = run_count_calls(c, s);
    if (pare_ranks_rank(s->ranks) > 0) return st; /* the first speaks for all */
    if (!st && c->out) st = write_result(c, s);
    if (c->bar.drawn) pare_bar_clear(&c->bar);
    if (!st) run_say_poly(c, s);
    if (!st) run_check_finite(c, s);
    if (!st && c->json)
        st = run_print_json(c, s);
    else if (!st && !(c->out && strcmp(c->out, "-") == 0))
        run_print(c, s);
    return st;
}

/* Text goes on unless one pass is what was asked for, or all that the model has to offer. */
static pare_status run(cli *c, void *self, pare_ranks *ranks)
{
    run_opts own = *(const run_opts *)self; /* a plan has its say */
    const run_opts *const o = &own;
    run_state s = {.o = o, .ranks = ranks};
    pare_status st = check_options(c, o);
    if (!st) st = run_check_length(c, o);
    if (!st && o->plan) st = run_read_plan(c, &s, &own);
    if (!st) st = cli_load(c, &s.m, c->operand[0]);
    if (!st) st = run_set_attention(c, &s);
    if (!st) {
        const char *const why = run_cannot_generate(s.m);
        const bool asked =
            o->texts.n > 1 || o->prompts || (o->tokens && o->tokens != RUN_NOT_GIVEN);
        const bool text = o->texts.n || o->prompts;
        if (asked && why)
            st = pare_fail(&c->err, PARE_ERR_INPUT, "%s: cannot go on with a text: %s",
                           c->operand[0], why);
        else if (text && !why && o->tokens && !c->out && !o->f64 && !o->trace && !o->oracle)
            st = run_generate(c, &s);
        else
            st = one_pass(c, &s);
    }
    cJSON_Delete(s.plan);
    pare_model_free(s.m);
    return st;
}

int cmd_run(int argc, char **argv)
{
    static const char *const attentions[] = {"model", "exact", "poly", NULL};
    static const char *const modes[] = {"auto",  "native", "zeroref", "strict",
                                        "paper", "sample", "chunk",   NULL};
    run_opts o = {.tokens = RUN_NOT_GIVEN,
                  .sample = PARE_SAMPLE_DEFAULT,
                  .tolerance = RUN_TOLERANCE,
                  .backend = "cpu",
                  .timeout = PARE_PIPE_TIMEOUT,
                  .delta = RUN_DELTA};
    char unset_tokens[32];
    snprintf(unset_tokens, sizeof unset_tokens, "%d", RUN_TOKENS);
    const opt own[] = {
        {.name = "input",
         .kind = OPT_TEXT,
         .to = &o.input,
         .metavar = "X.npy",
         .help = "ids [T] or [B,T], vectors [T,d] or [B,T,d]"},
        {.name = "text",
         .kind = OPT_TEXTS,
         .to = &o.texts,
         .metavar = "TEXT",
         .help = "goes on with it; - is stdin; may be repeated"},
        {.name = "tokens",
         .kind = OPT_SIZE,
         .to = &o.tokens,
         .metavar = "N",
         .help = "to write; 0: one pass over the text",
         .unset = unset_tokens,
         .max = 1u << 30},
        {.name = "temperature",
         .kind = OPT_REAL,
         .to = &o.sample.temperature,
         .metavar = "T",
         .help = "0: always the likeliest token",
         .high = RUN_MOST_HEAT},
        {.name = "top-p",
         .kind = OPT_REAL,
         .to = &o.sample.top_p,
         .metavar = "P",
         .help = "only the likeliest that reach this mass",
         .low = RUN_LEAST_MASS,
         .high = 1},
        {.name = "data",
         .kind = OPT_TEXT,
         .to = &o.data,
         .metavar = "G.npz",
         .help = "a graph, or inputs of one length"},
        {.name = "attention",
         .kind = OPT_CHOICE,
         .to = &o.attention,
         .choices = attentions,
         .metavar = "KIND",
         .help = ""},
        /* on one line of the help: a screen is full */
        {.name = "prompts", .kind = OPT_TEXT, .to = &o.prompts, .metavar = "F", .help = "also"},
        {.name = "trace", .kind = OPT_TEXT, .to = &o.trace, .metavar = "DIR", .help = ""},
        {.name = "plan", .kind = OPT_TEXT, .to = &o.plan, .metavar = "F", .help = ""},
        {.name = "split",
         .kind = OPT_SIZE,
         .to = &o.split,
         .metavar = "K",
         .help = "",
         .max = 1u << 20},
        {.name = "tol",
         .kind = OPT_REAL,
         .to = &o.tolerance,
         .metavar = "T",
         .help = "",
         .low = 1e-7,
         .high = 1},
        {.name = "oracle",
         .kind = OPT_SIZE,
         .to = &o.oracle,
         .metavar = "M",
         .help = "engine",
         .unset = "all",
         .min = 1,
         .max = 1u << 30},
        {.name = "backend", .kind = OPT_TEXT, .to = &o.backend, .metavar = "B", .help = ""},
        {.name = "mode",
         .kind = OPT_CHOICE,
         .to = &o.mode,
         .choices = modes,
         .metavar = "W",
         .help = ""},
        {.name = "timeout",
         .kind = OPT_REAL,
         .to = &o.timeout,
         .metavar = "S",
         .help = "",
         .low = 1e-3,
         .high = 1e6},
        {.name = "eps",
         .kind = OPT_REAL,
         .to = &o.eps,
         .metavar = "E",
         .help = "",
         .unset = "by mode",
         .low = 1e-12,
         .high = 1},
        {.name = "delta",
         .kind = OPT_REAL,
         .to = &o.delta,
         .metavar = "P",
         .help = "",
         .low = 1e-12,
         .high = 1},
        {.name = "f64", .kind = OPT_FLAG, .to = &o.f64, .help = "the f64 reference pass"},
    };
    static const char *const operands[] = {"MODEL", NULL};
    const opt_spec spec = {
        .command = "run",
        .args = "MODEL --text TEXT | --input X.npy | --data G.npz  [-o Y.npy]",
        .about = "A language model goes on with the text. Else, or with -o, --f64 or --trace, one "
                 "pass:\n"
                 "[T,V], [B,T,V], pooled [C] or [B,C], graph [n,C]; likeliest tokens or classes.",
        .examples = {"run model.safetensors --text \"Once upon a time\" --seed 1"},
        .seeded = true,
        .own = own,
        .nown = sizeof own / sizeof *own,
        .operands = operands,
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MAY_OUT, "the output as .npy (- is stdout)", argc, argv, &rc))
        return rc;
    if (o.oracle || o.plan) return cli_ranked(&c, run, &o);
    return cli_finish(&c, run(&c, &o, NULL));
}
