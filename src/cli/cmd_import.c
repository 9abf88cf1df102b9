/* cmd_import.c - pare import: writes any model that pare can read as a pare file, checked by
 * running both. */
#include "out.h"
#include "reduce_command.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define CHECK_INPUTS 3
#define CHECK_TOKENS 16

typedef struct import_opts {
    const char *vocab;
    size_t dtype; /* an index into dtype_names */
} import_opts;

static void note_lines(cli *c, const char *path, const char *lines)
{
    while (lines && *lines) {
        const size_t n = strcspn(lines, "\n");
        cli_note(c, "note: %s: %.*s", path, (int)n, lines);
        lines += n + (lines[n] == '\n');
    }
}

/* Puts the vocabulary file into the model after trying it. */
static pare_status add_vocab(cli *c, pare_model *m, const char *path)
{
    pare_vocab v;
    pare_tokenizer *t = NULL;
    if (!m->embedding.ids)
        return pare_fail(&c->err, PARE_ERR_INPUT,
                         "--vocab %s: the model takes vectors, not text: leave it out", path);
    pare_status st = pare_vocab_read(&v, m->arena, path, &c->err);
    if (!st) st = pare_tokenizer_new(&t, c->arena, v.kind, v.data, v.bytes, &c->err);
    if (!st && pare_tokenizer_size(t) > m->embedding.vocab)
        st = pare_fail(&c->err, PARE_ERR_INPUT,
                       "%s has %zu tokens, but the model's embedding only %zu", path,
                       pare_tokenizer_size(t), m->embedding.vocab);
    if (!st && pare_tokenizer_size(t) < m->embedding.vocab)
        cli_note(c, "warning: %s has %zu tokens, the model's embedding %zu", path,
                 pare_tokenizer_size(t), m->embedding.vocab);
    if (st) return cli_name(c, st, path);
    note_lines(c, path, v.notes);
    note_lines(c, path, pare_tokenizer_notes(t));
    m->tokenizer = v.kind;
    m->vocab = v.data;
    m->vocab_bytes = v.bytes;
    return PARE_OK;
}

/* A model on a few random inputs by the f64 reference. */
typedef struct outputs {
    double *y[CHECK_INPUTS];
    size_t n[CHECK_INPUTS];
} outputs;

static pare_status run_random_inputs(cli *c, outputs *s, const pare_model *m)
{
    pare_inputs set;
    const size_t context = m->context ? m->context : CHECK_TOKENS;
    const size_t tokens = context < CHECK_TOKENS ? context : CHECK_TOKENS;
    pare_status st = pare_inputs_random(&set, c->arena, m, CHECK_INPUTS, tokens, c->seed, &c->err);
    for (size_t i = 0; i < CHECK_INPUTS && !st; i++) {
        s->n[i] = pare_output_rows(m, &set.in[i]) * pare_model_outputs(m);
        s->y[i] = pare_alloc(c->arena, s->n[i], sizeof *s->y[i]);
        st = s->y[i] ? pare_forward_f64(s->y[i], m, &set.in[i], NULL, &c->exec, &c->err)
                     : pare_no_memory(&c->err);
        if (!st) st = pare_progress(&c->exec, "checking", i + 1, CHECK_INPUTS, &c->err);
    }
    return st;
}

/* Written under a name beside the final one, and renamed only when it was read back and agrees:
 * a file that -f replaces is not lost to a bad one. The imported model is freed in between, so that
 * memory holds one model at a time. */
static pare_status save_checked(cli *c, pare_model **m, pare_model **again, char *sha)
{
    outputs want = {0}, got = {0};
    const uint64_t parameters = pare_model_size(*m, 1, 0).parameters;
    char *temporary = cli_fresh(c, c->out);
    if (!temporary) return PARE_ERR_MEMORY;
    cli_phase(c, NULL, 50);
    pare_status st = run_random_inputs(c, &want, *m);
    cli_phase(c, NULL, 50);
    if (!st) st = pare_model_save(*m, temporary, true, sha, &c->err);
    pare_model_free(*m);
    *m = NULL;
    if (!st) st = pare_model_load(again, temporary, &c->err);
    if (!st) st = run_random_inputs(c, &got, *again);
    bool same = !st && pare_model_size(*again, 1, 0).parameters == parameters;
    for (size_t i = 0; same && i < CHECK_INPUTS; i++)
        same = want.n[i] == got.n[i] &&
               memcmp(want.y[i], got.y[i], want.n[i] * sizeof *want.y[i]) == 0;
    if (!st && !same)
        st = pare_fail(&c->err, PARE_ERR_VERIFY,
                       "%s: the model read back gives other outputs than the one imported", c->out);
    if (!st) st = pare_file_move(temporary, c->out, c->force, &c->err);
    if (st) unlink(temporary);
    return st;
}

static pare_status print(cli *c, const facts *before, const facts *after, const pare_model *m)
{
    char b[32], a[32];
    if (!c->json) {
        out_row("wrote", "%s, %s bytes", after->path, out_count(a, after->file_bytes));
        out_row("imported", "%s, %s, %s bytes", before->path, m->name ? m->name : "",
                out_count(b, before->file_bytes));
        out_row("parameters", "%s", out_count(b, after->size.parameters));
        out_row("tokenizer", "%s", pare_tokenizer_name(m->tokenizer));
        out_row("check", "read back: the same outputs, bit for bit, on %d random inputs in f64",
                CHECK_INPUTS);
        return PARE_OK;
    }
    cJSON *root = out_json_begin(c);
    return out_json(c, root,
                    root && out_json_facts(root, "input", before) &&
                        out_json_facts(root, "output", after) &&
                        pare_json_add_values(root, "name:s tokenizer:s", m->name ? m->name : "",
                                             pare_tokenizer_name(m->tokenizer)));
}

static pare_status import(cli *c, void *self)
{
    const import_opts *const o = self;
    const char *path = c->operand[0];
    pare_model *m = NULL, *again = NULL;
    facts before, after;
    char sha[PARE_SHA256_HEX] = "";
    const bool folder = c->out[0] && c->out[strlen(c->out) - 1] == '/';
    pare_status st = cli_is_there(c, path);
    if (!st) st = cli_is_there(c, o->vocab);
    if (!st && folder) {
        st = cli_only(c, "vocab", false, "-o FILE");
        if (!st && !pare_is_dir(path))
            st = cli_usage_error(c, "-o %s: %s is a file; pare export writes a folder of it",
                                 c->out, path);
        c->out = st ? c->out : cli_folder_name(c, c->out);
        if (!st && !c->out) st = PARE_ERR_MEMORY;
        if (!st) st = cli_may_write_folder(c, c->out, (const char *const[]){path}, 1);
        return st ? st : cli_copy_folder(c);
    }
    if (!st) st = cli_may_write(c, c->out, path);
    if (!st && o->vocab) st = cli_may_write(c, c->out, o->vocab);
    if (!st) st = cli_load(c, &m, path);
    if (!st && o->vocab) st = add_vocab(c, m, o->vocab);
    if (!st) st = cli_facts(c, &before, path, m, NULL, c->json);
    if (!st && o->dtype) st = pare_model_round(m, NULL, dtype_of(o->dtype), &c->err);
    if (!st) st = save_checked(c, &m, &again, sha);
    if (!st) st = cli_facts(c, &after, c->out, again, NULL, false);
    if (!st) {
        memcpy(after.sha256, sha, sizeof sha);
        note_larger(c, &before, &after);
        st = print(c, &before, &after, again);
    }
    pare_model_free(m);
    pare_model_free(again);
    return st;
}

int cmd_import(int argc, char **argv)
{
    import_opts o = {0};
    /* clang-format off */
    const opt own[] = {
        {.name = "vocab", .kind = OPT_TEXT, .to = &o.vocab, .metavar = "FILE", .group = "What to read",
         .help = "tokenizer to put into the model: tokenizer.json, a folder with one of Hugging Face's "
                 "tokenizers, vocab.bpe of GPT-2, tokenizer.bin of llama2.c, or a list of words, "
                 "one a line",
         .unset = "the model has none, or its own"},
        {.name = "dtype", .kind = OPT_CHOICE, .to = &o.dtype, .metavar = "W", .choices = dtype_names, .group = "What to write",
         .help = "write all weights in this precision"},
    };
    const opt_spec spec = {
        .command = "import",
        .args = "MODEL [--vocab FILE] -o OUT",
        .about = "Reads a model of another program and writes it as a pare file: Hugging Face\n"
                 "GPT-2, Llama and BERT (file or folder), llama2.c .bin, per-head tensors, graph\n"
                 "transformers, Moonshine, .npz. The new file is read back, and both models are\n"
                 "run on random inputs, before it appears. All commands read these formats, too.\n"
                 "With -o NAME/ a Hugging Face folder stays one: weights and config byte for byte.",
        .examples = {"import stories260K.bin --vocab tok512.bin -o stories.safetensors",
                     "import bert-folder/ -o bert.safetensors"},
        .seeded = true, /* the inputs of the self-check */
        OPT_ROWS(own),
        .operands = (const char *const[]){"MODEL", NULL},
    };
    /* clang-format on */
    return cli_command(&spec, CLI_MUST_OUT, "where the pare file goes", argc, argv, import, &o);
}
