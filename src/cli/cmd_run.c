/* cmd_run.c - pare run: generates text, or computes one forward pass over an array, a text or a
 * graph. */
#include "backend.h"
#include "run.h"
#include "warn_text.h"
#include "trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STDIN_CHUNK 65536

/* ---- inputs -------------------------------------------------------------------------------- */

pare_status run_encode(cli *c, run_state *s, const char *text, pare_input *in)
{
    const pare_model *const m = s->m;
    const bool is_stdin = strcmp(text, "-") == 0;
    size_t bytes = strlen(text), n = 0;
    int64_t *ids = NULL;
    pare_status st = PARE_OK;
    if (!m->embedding.ids)
        return pare_fail(&c->err, PARE_ERR_INPUT,
                         "%s takes vectors, not text: give them with --input or --data",
                         c->operand[0]);
    if (m->tokenizer == PARE_TOK_NONE)
        return pare_fail(&c->err, PARE_ERR_INPUT,
                         "%s has no tokenizer for text: `pare import MODEL --vocab FILE -o OUT` "
                         "gives it one, --input takes token ids",
                         c->operand[0]);
    if (!s->tok)
        st = pare_tokenizer_new(&s->tok, c->arena, m->tokenizer, m->vocab, m->vocab_bytes, &c->err);
    if (!st && is_stdin) {
        char *all = NULL;
        size_t capacity = 0, got = 1;
        for (bytes = 0; got > 0; bytes += got) {
            if (capacity - bytes < STDIN_CHUNK) {
                char *more = pare_alloc(c->arena, capacity = 2 * capacity + 2 * STDIN_CHUNK, 1);
                if (!more) return pare_no_memory(&c->err);
                if (bytes) memcpy(more, all, bytes);
                all = more;
            }
            got = fread(all + bytes, 1, STDIN_CHUNK, stdin);
        }
        if (ferror(stdin)) return pare_fail(&c->err, PARE_ERR_IO, "standard input: cannot be read");
        text = all;
    }
    if (!st) st = pare_encode(&ids, &n, c->arena, s->tok, text, bytes, &c->err);
    if (!st && s->o->prompts) { /* noted for the file as a whole */
        pare_text_note_words(&s->notes, s->tok, text, bytes);
    } else if (!st) {
        pare_text_notes notes = {0};
        pare_text_note_utf8(&notes, text, bytes);
        pare_text_note_words(&notes, s->tok, text, bytes);
        warn_text(c, is_stdin ? "standard input" : "--text", &notes);
    }
    if (!st && n == 0)
        st = pare_fail(&c->err, PARE_ERR_INPUT, "the text has no token the model knows");
    if (st) return st;
    *in = (pare_input){.batch = 1, .tokens = n, .ids = ids};
    st = pare_input_check(m, in, &c->err);
    if (st == PARE_ERR_INPUT) pare_err_prefix(&c->err, s->o->prompts ? s->o->prompts : "--text");
    return st;
}

/* The input of one pass, and the shape of its outputs. */
static pare_status read_input(cli *c, run_state *s)
{
    if (s->o->data) {
        /* Several inputs become the first axis; they must be alike then. */
        pare_dataset d = {0};
        const char *path = s->o->data;
        const pare_status st = pare_dataset_load(&d, c->arena, s->m, path, NULL, &c->err);
        if (st) return cli_name(c, st, path);
        warn_text(c, path, &d.notes);
        s->set = d.inputs;
        if (s->set.n == 0) return pare_fail(&c->err, PARE_ERR_INPUT, "%s: holds no input", path);
        const size_t rows = pare_output_rows(s->m, &s->set.in[0]);
        for (size_t i = 1; i < s->set.n; i++)
            if (pare_output_rows(s->m, &s->set.in[i]) != rows)
                return pare_fail(
                    &c->err, PARE_ERR_INPUT,
                    "%s: inputs 0 and %zu differ in length (%zu and %zu rows) and do not "
                    "fit into one array; `pare eval` takes them",
                    path, i, rows, pare_output_rows(s->m, &s->set.in[i]));
        if (s->set.n > 1) s->shape[s->ndim++] = s->set.n;
        if (s->m->head.pool == PARE_POOL_NONE || rows > 1) s->shape[s->ndim++] = rows;
        s->shape[s->ndim++] = pare_model_outputs(s->m);
        return PARE_OK;
    }
    pare_input *const in = s->set.in = pare_alloc(c->arena, 1, sizeof *in);
    if (!in) return pare_no_memory(&c->err);
    s->set.n = 1;
    if (!s->text)
        return cli_name(
            c, pare_input_read(in, &s->ndim, s->shape, c->arena, s->m, s->o->input, &c->err),
            s->o->input);
    const bool pooled = s->m->head.pool != PARE_POOL_NONE;
    const pare_status st = run_encode(c, s, s->text, in);
    s->ndim = pooled ? 1 : 2;
    s->shape[0] = pooled ? pare_model_outputs(s->m) : in->tokens;
    s->shape[1] = pare_model_outputs(s->m);
    return st;
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
    enum { TOGETHER = 128 }; /* inputs between two looks at the progress */
    const bool alone = s->o->oracle || s->o->f64 || trace;
    for (size_t i = 0, n; i < s->set.n && !st; i += n) {
        const pare_input *in = &s->set.in[i];
        void *const to = (char *)s->out + at * size;
        const size_t left = s->set.n - i;
        n = alone ? 1 : left < TOGETHER ? left : TOGETHER;
        const pare_inputs some = {n, s->set.in + i};
        if (s->o->oracle)
            st = run_by_oracle(c, s, to, in, trace);
        else if (s->o->f64)
            st = pare_forward_f64(to, s->m, in, trace, &c->exec, &c->err);
        else if (trace)
            st = pare_forward_f32(to, s->m, in, trace, &c->exec, &c->err);
        else
            st = pare_forward_set(to, PARE_F32, s->m, &some, &c->exec, &c->err);
        for (size_t k = 0; k < n; k++) at += pare_output_rows(s->m, &in[k]) * s->cols;
        if (!st) st = pare_progress(&c->exec, "running", i + n, s->set.n, &c->err);
    }
    s->ms = 1e3 * (pare_seconds() - start);
    return st;
}

/* What the engine's rounding has cost on these inputs, proven. */
static pare_status prove_distance(cli *c, run_state *s)
{
    pare_model *numbers = NULL;
    const float *y = s->out;
    c->packed = false;
    pare_status st = cli_load(c, &numbers, c->operand[0]);
    for (size_t i = 0; i < s->set.n && !st; i++) {
        double d;
        st = pare_engine_distance(&d, numbers, &s->set.in[i], y, &c->exec, &c->err);
        s->distance = fmax(s->distance, d);
        y += pare_output_rows(numbers, &s->set.in[i]) * s->cols;
    }
    pare_model_free(numbers);
    return st;
}

/* ---- results --------------------------------------------------------------------------------- */

/* To stdout through a temporary file, because .npy is written whole and renamed, which stdout
 * cannot be. */
static pare_status write_result(cli *c, const run_state *s)
{
    char shape[128];
    pare_array a = {.dtype = s->o->f64 ? PARE_F64 : PARE_F32, .ndim = s->ndim, .data = s->out};
    memcpy(a.shape, s->shape, s->ndim * sizeof *a.shape);
    if (strcmp(c->out, "-") != 0) {
        const pare_status st = pare_npy_write(c->out, &a, c->force, &c->err);
        if (!st)
            cli_note(c, "wrote %s, %s %s", c->out, pare_shape_text(shape, s->shape, s->ndim),
                     s->o->f64 ? "f64" : "f32");
        return st;
    }
    const char *const folder = getenv("TMPDIR");
    char *path = pare_sprintf(c->arena, "%s/pare-run-XXXXXX", folder && *folder ? folder : "/tmp");
    if (!path) return pare_no_memory(&c->err);
    const int fd = mkstemp(path);
    if (fd < 0) return pare_fail(&c->err, PARE_ERR_IO, "-o -: no temporary file");
    close(fd);
    pare_blob *b = NULL;
    pare_status st = pare_npy_write(path, &a, true, &c->err);
    if (!st) st = pare_blob_open(&b, path, &c->err);
    unlink(path);
    if (!st && fwrite(b->data, 1, b->bytes, stdout) != b->bytes)
        st = pare_fail(&c->err, PARE_ERR_IO, "standard output: cannot be written");
    pare_blob_release(b);
    return st;
}

/* Options that would be ignored are refused. What is known only of the model: run(). */
static pare_status check_options(cli *c, const run_opts *o)
{
    const bool text = o->texts.n || o->prompts, calls = o->oracle || o->plan;
    const bool sample = o->mode == PARE_LENGTH_SAMPLE, poly = o->attention == RUN_ATTENTION_POLY;
    const bool arrays = c->out || o->f64 || o->trace || o->distance,
               writes = o->texts.n > 1 || o->prompts;
    const bool one = o->tokens == 0 || arrays || calls;
    const bool program =
        strncmp(o->backend, "pipe:", 5) == 0 || strncmp(o->backend, "onnx:", 5) == 0;
    const int given =
        (o->input != NULL) + (o->texts.n > 0) + (o->data != NULL) + (o->prompts != NULL);
    if (given != 1)
        return cli_usage_error(
            c, given ? "more than one input: give only one of --text, --prompts, --input "
                       "and --data"
                     : "there is no input: give one of --text, --prompts, --input and "
                       "--data");
    const cli_rule rules[] = {
        {"tokens,temperature,top-p", text, "--text or --prompts"},
        {"temperature,top-p", !one,
         "generated text, not with one forward pass (--tokens 0, -o, --f64, --trace, --oracle, "
         "--plan)"},
        {"top-p", o->sample.temperature > 0, "a --temperature above 0"},
        {"tol", poly, "--attention poly"},
        {"backend", calls, "--oracle M or --plan PLAN"},
        {"oracle,mode,eps,delta,f64", !o->plan, "a run without --plan: the plan says it"},
        {"mode,eps,delta", calls, "--oracle M"},
        {"timeout", calls && program, "--backend pipe:COMMAND or onnx:FILE"},
        {"eps", sample || o->mode == PARE_LENGTH_PAPER, "--mode sample or --mode paper"},
        {"delta", sample, "--mode sample"},
        {"distance", !o->f64 && !calls && !poly,
         "the fast engine (without --f64, --oracle, --plan, --attention poly)"},
        {"engine", !o->f64 && !calls, "the fast engine (without --f64, --oracle, --plan)"},
        {0},
    };
    pare_status st = cli_check_rules(c, rules);
    if (st) return st;
    if (poly && o->f64)
        return cli_usage_error(c, "--attention poly works in single precision: leave --f64 out");
    if ((writes || (o->tokens != RUN_NOT_GIVEN && o->tokens)) && arrays)
        return cli_usage_error(
            c, "-o, --f64 and --trace belong to one forward pass over one text: give one "
               "--text and --tokens 0, or leave them out to generate text");
    if (writes && o->tokens == 0)
        return cli_usage_error(c, "--tokens 0 is one forward pass over one text: give one --text");
    const char *const inputs[] = {c->operand[0], o->input, o->data, o->prompts, o->plan};
    const size_t n = sizeof inputs / sizeof *inputs;
    if (c->out && strcmp(c->out, "-") != 0) {
        st = cli_check_files(c, inputs, n);
        const char *const slash = strrchr(c->out, '/'), *const end = strrchr(c->out, '.');
        if (!st && end && (!slash || end > slash) && strcmp(end, ".npy") != 0)
            st = cli_usage_error(
                c, "-o %s: the outputs are written as an array, and its name must end in .npy",
                c->out);
        return st;
    }
    for (size_t i = 0; i < n && !st; i++) st = cli_is_there(c, inputs[i]);
    if (st || !c->out) return st;
    if (c->json)
        return cli_usage_error(c, "-o - and --json both write to standard output: give -o a file");
    if (isatty(STDOUT_FILENO))
        return cli_usage_error(
            c, "-o -: standard output is a terminal and the array is binary: redirect it "
               "or give -o a file");
    return PARE_OK;
}

static pare_status one_pass(cli *c, run_state *s)
{
    tracer t = {0};
    pare_trace trace = {.self = s, .poly = run_add_poly};
    s->text = s->o->texts.n ? s->o->texts.v[0] : NULL;
    pare_status st = run_open_oracle(c, s);
    if (!st) st = read_input(c, s);
    if (!st) st = run_collect_poly(c, s);
    if (!st && s->o->trace && s->set.n != 1)
        st = cli_usage_error(c, "--trace takes one input, but %s holds %zu", s->o->data, s->set.n);
    if (!st && s->o->trace) {
        st = trace_open(&t, c, s->o->trace);
        s->layers = NULL; /* the trace listens */
        t.batch = s->set.in[0].batch;
        trace = (pare_trace){.fn = trace_tap, .self = &t};
    }
    if (!st) st = forward_all(c, s, s->layers || s->o->trace ? &trace : NULL);
    if (!st) st = t.st;
    if (!st && s->o->distance) st = prove_distance(c, s);
    if (!st && s->o->trace)
        cli_note(c, "wrote %zu arrays into the folder %s", t.files, s->o->trace);
    pare_oracle_free(&s->oracle);
    if (!st) st = run_count_calls(c, s);
    if (pare_ranks_rank(s->ranks) > 0) return st; /* the first speaks for all */
    if (!st && c->out) st = write_result(c, s);
    cli_bar_end(c);
    if (st) return st;
    run_note_poly(c, s);
    run_check_finite(c, s);
    if (c->json) return run_print_json(c, s);
    if (!c->out || strcmp(c->out, "-") != 0) run_print(c, s);
    return PARE_OK;
}

/* A text is continued unless one forward pass is asked for, or all that the model can do. */
static pare_status run(cli *c, void *self, pare_ranks *ranks)
{
    run_opts own = *(const run_opts *)self; /* a plan sets some of them */
    const run_opts *const o = &own;
    run_state s = {.o = o, .ranks = ranks};
    pare_status st = check_options(c, o);
    if (!st) st = run_check_length(c, o);
    if (!st && o->plan) st = run_read_plan(c, &s, &own);
    /* One pass that is written has the bits of the engine that certificates speak of, which reads
     * numbers, and so do small calls. */
    const bool reads = o->texts.n || o->prompts,
               writes = c->out || o->trace || o->distance || o->tokens == 0;
    c->packed =
        o->engine == CLI_ENGINE_INT8 || (reads && !writes && !o->oracle && !o->plan && !o->f64);
    if (!st) st = cli_load(c, &s.m, c->operand[0]);
    if (!st) st = cli_engine(c, o->engine, s.m);
    if (!st) st = run_set_attention(c, &s);
    if (!st) {
        const char *const why = pare_generate_refuses(s.m);
        const bool asked =
            o->texts.n > 1 || o->prompts || (o->tokens && o->tokens != RUN_NOT_GIVEN);
        const bool text = o->texts.n || o->prompts;
        if (asked && why)
            st = pare_fail(&c->err, PARE_ERR_INPUT, "%s: cannot generate text: %s", c->operand[0],
                           why);
        else if (why && (st = cli_only(c, "temperature,top-p", false, "a language model")))
            ;
        else if (text && !why && o->tokens && !c->out && !o->f64 && !o->distance && !o->trace &&
                 !o->oracle)
            st = run_generate(c, &s);
        else
            st = one_pass(c, &s);
    }
    pare_model_free(s.m);
    return st;
}

/* clang-format off */
int cmd_run(int argc, char **argv)
{
    static const char *const attentions[] = {"model", "exact", "poly", NULL};
    static const char *const attention_help[] = {"as the model file says",
                                                 "exact softmax attention in every layer",
                                                 "polynomials instead of exp where that is faster and proven to be within --tol",
                                                 NULL};
    run_opts o = {.tokens = RUN_NOT_GIVEN,
                  .sample = PARE_SAMPLE_OPTS_DEFAULT,
                  .tolerance = RUN_TOLERANCE,
                  .backend = "cpu",
                  .timeout = PARE_PIPE_TIMEOUT,
                  .delta = RUN_DELTA};
    char unset_tokens[32];
    snprintf(unset_tokens, sizeof unset_tokens, "%d", RUN_TOKENS);
    const opt own[] = {
        {.name = "text", .kind = OPT_TEXTS, .to = &o.texts, .metavar = "TEXT", .group = "Input (give one)",
         .help = "a language model continues this text, others compute their outputs for it; - reads standard input; "
                 "may be repeated to continue several texts"},
        {.name = "prompts", .kind = OPT_TEXT, .to = &o.prompts, .metavar = "FILE",
         .help = "continue every line of this text file"},
        {.name = "input", .kind = OPT_TEXT, .to = &o.input, .metavar = "X.npy",
         .help = "an array for one forward pass: token ids [T] or [B,T], vectors [T,d] or [B,T,d]"},
        {.name = "data", .kind = OPT_TEXT, .to = &o.data, .metavar = "FILE",
         .help = "a graph (.npz), or inputs of equal length (.npz, .npy, .tsv), for one forward pass"},
        {.name = "tokens", .kind = OPT_SIZE, .to = &o.tokens, .metavar = "N", .group = "Generating text",
         .help = "tokens to generate for each text; 0: no text, but one forward pass over the prompt",
         .unset = unset_tokens, .max = 1u << 30},
        {.name = "temperature", .kind = OPT_REAL, .to = &o.sample.temperature, .metavar = "T",
         .help = "randomness of the choice of tokens; 0 always takes the most likely one", .high = RUN_MOST_HEAT},
        {.name = "top-p", .kind = OPT_REAL, .to = &o.sample.top_p, .metavar = "P",
         .help = "choose only among the most likely tokens whose probabilities add up to P",
         .low = RUN_LEAST_MASS, .high = 1},
        {.name = "f64", .kind = OPT_FLAG, .to = &o.f64, .group = "One forward pass",
         .help = "compute in double precision instead of single precision"},
        {.name = "engine", .kind = OPT_CHOICE, .to = &o.engine, .metavar = "ENGINE",
         .help = "what products are computed in", .choices = cli_engine_words, .choice_help = cli_engine_help},
        {.name = "distance", .kind = OPT_FLAG, .to = &o.distance, .rare = true,
         .help = "also prove how far the outputs are from the exact function of the weights, on these inputs: what the engine's rounding has cost"},
        {.name = "trace", .kind = OPT_TEXT, .to = &o.trace, .metavar = "DIR", .rare = true,
         .help = "also write the activations of every layer into this folder, as .npy arrays"},
        {.name = "attention", .kind = OPT_CHOICE, .to = &o.attention, .metavar = "KIND", .rare = true,
         .help = "how softmax attention is computed", .choices = attentions, .choice_help = attention_help},
        {.name = "tol", .kind = OPT_REAL, .to = &o.tolerance, .metavar = "T", .rare = true,
         .help = "with --attention poly: largest allowed error, as a share of the range of the values",
         .low = 1e-7, .high = 1},
        {.name = "oracle", .kind = OPT_SIZE, .to = &o.oracle, .metavar = "M", .group = "Attention in small calls",
         .help = "compute attention by calls of an engine that takes at most M tokens (Yu 2025 calls this engine an oracle)",
         .unset = "all tokens at once", .min = 1, .max = 1u << 30},
        {.name = "plan", .kind = OPT_TEXT, .to = &o.plan, .metavar = "PLAN",
         .help = "make the calls of this plan, which `pare length` has written"},
        {.name = "backend", .kind = OPT_TEXT, .to = &o.backend, .metavar = "ENGINE",
         .help = "the engine of --oracle or --plan: cpu (built in), mpi (all processes of an mpirun), paper (slow "
                 "reference of Yu 2025), onnx:FILE, or pipe:COMMAND (your own program)"},
        {.name = "mode", .kind = OPT_CHOICE, .to = &o.mode, .metavar = "MODE", .rare = true,
         .help = "how the calls of --oracle make up the whole", .choices = backend_modes, .choice_help = backend_mode_help},
        {.name = "timeout", .kind = OPT_REAL, .to = &o.timeout, .metavar = "SECONDS", .rare = true,
         .help = "how long a pipe: or onnx: engine may take for an answer", .low = 1e-3, .high = 1e6},
        {.name = "eps", .kind = OPT_REAL, .to = &o.eps, .metavar = "E", .rare = true,
         .help = "accuracy asked of --mode sample or paper", .unset = "sample 0.5, paper 1e-6", .low = 1e-12, .high = 1},
        {.name = "delta", .kind = OPT_REAL, .to = &o.delta, .metavar = "P", .rare = true,
         .help = "with --mode sample: probability that the bounds of a layer may fail", .low = 1e-12, .high = 1},
    };
    const opt_spec spec = {
        .command = "run",
        .args = "MODEL --text TEXT | --input X.npy | --data FILE  [-o Y.npy]",
        .about = "Generates text with a language model, or computes one forward pass and shows or\n"
                 "writes its outputs. With -o, --f64, --trace, --oracle or --plan it is always one\n"
                 "forward pass.",
        .examples = {"run model.safetensors --text \"Once upon a time\" --tokens 64",
                     "run model.safetensors --input ids.npy -o logits.npy"},
        .seeded = true,
        OPT_ROWS(own),
        .operands = (const char *const[]){"MODEL", NULL},
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MAY_OUT, "write the outputs of one forward pass as a .npy array; - is standard output",
                   argc, argv, &rc))
        return rc;
    if (o.oracle || o.plan) return cli_ranked(&c, run, &o);
    return cli_finish(&c, run(&c, &o, NULL));
}
/* clang-format on */
