/* cmd_export.c - pare export: writes a model, or the engine that a plan of small calls needs, for
 * other programs. */
#include "out.h"
#include "reduce_command.h"
#include "interrupt.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define CHECK_INPUTS    3
#define CHECK_TOKENS    16
#define CHECK_TOLERANCE 1e-5 /* weights and frequencies may have been rounded to f32 */
#define MOST_ROWS       (1u << 20)
#define MOST_BATCH      (1u << 16)

typedef struct export_opts {
    size_t oracle, batch;
    bool causal;
    size_t dtype; /* an index into dtype_names */
} export_opts;

typedef struct exported {
    const char *path, *kind;
    char in[96], out[96];
    uint64_t bytes;
    int opset;
    size_t integers; /* matrices that are integers in the file */
    double error;    /* of what is read back, relative to the largest output */
} exported;

/* A message about the model has its name before it; one about the disk does not. */
static pare_status name_model(cli *c, pare_status st)
{
    return st == PARE_ERR_INPUT ? cli_name(c, st, c->operand[0]) : st;
}

static pare_status export_engine(cli *c, exported *e, const pare_model *m, const export_opts *o)
{
    pare_engine_shape s = {0};
    pare_status st = pare_engine_for(&s, m, o->oracle, o->batch, &c->err);
    s.causal = o->causal;
    if (!st) st = pare_export_engine(&s, c->out, c->force, &e->bytes, &c->err);
    if (st) return name_model(c, st);
    e->kind = "engine";
    e->opset = 17;
    snprintf(e->in, sizeof e->in, "q, k f32 [%zu, %zu, %zu], v f32 [%zu, %zu, %zu]", s.batch,
             s.rows, s.dk, s.batch, s.rows, s.dv);
    snprintf(e->out, sizeof e->out, "%s f32 [%zu, %zu, %zu]", o->causal ? "causal_y" : "y", s.batch,
             s.rows, s.dv);
    return PARE_OK;
}

static pare_status export_model(cli *c, exported *e, const pare_model *m)
{
    const pare_status st = pare_export_onnx(m, c->out, c->force, &e->bytes, &c->err);
    if (st) return name_model(c, st);
    const bool pooled = m->head.pool != PARE_POOL_NONE;
    e->kind = "model";
    e->opset = 17;
    e->integers = m->nints;
    for (size_t i = 0; i < m->nints; i++)
        if (m->ints[i].bits <= 4) e->opset = 21;
    if (m->embedding.ids)
        snprintf(e->in, sizeof e->in, "ids i64 [batch, tokens]");
    else
        snprintf(e->in, sizeof e->in, "x f32 [batch, tokens, %zu]", m->embedding.width);
    snprintf(e->out, sizeof e->out, "y f32 [batch, %s%zu]", pooled ? "" : "tokens, ",
             pare_model_outputs(m));
    return PARE_OK;
}

static bool is_onnx(const char *path)
{
    const size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".onnx") == 0;
}

/* A folder for Hugging Face's names: not a file's name, and not where the model itself lies. */
static pare_status check_folder(cli *c)
{
    const char *const out = cli_folder_name(c, c->out);
    if (!out) return PARE_ERR_MEMORY;
    if (cli_has_ending(out) && !pare_is_dir(out))
        return cli_usage_error(
            c,
            "-o %s: the name must end in .onnx, or be that of a folder, without an "
            "ending",
            out);
    c->out = out;
    return cli_may_write_folder(c, out, (const char *const[]){c->operand[0]}, 1);
}

/* The largest difference of two models on a few random inputs, relative to the largest output. */
static pare_status compare_models(cli *c, double *error, const pare_model *a, const pare_model *b)
{
    pare_inputs set;
    const size_t tokens = a->context && a->context < CHECK_TOKENS ? a->context : CHECK_TOKENS;
    pare_status st = pare_inputs_random(&set, c->arena, a, CHECK_INPUTS, tokens, c->seed, &c->err);
    double largest = 0, worst = 0;
    for (size_t i = 0; i < CHECK_INPUTS && !st; i++) {
        const size_t n = pare_output_rows(a, &set.in[i]) * pare_model_outputs(a);
        double *const y = pare_alloc(c->arena, n, sizeof *y);
        double *const z = pare_alloc(c->arena, n, sizeof *z);
        if (!y || !z) return pare_no_memory(&c->err);
        st = pare_forward_f64(y, a, &set.in[i], NULL, &c->exec, &c->err);
        if (!st) st = pare_forward_f64(z, b, &set.in[i], NULL, &c->exec, &c->err);
        for (size_t j = 0; j < n; j++) {
            if (fabs(y[j]) > largest) largest = fabs(y[j]);
            if (!(fabs(y[j] - z[j]) <= worst)) worst = fabs(y[j] - z[j]);
        }
    }
    *error = largest > 0 ? worst / largest : worst;
    return st;
}

/* A Hugging Face folder. The importer reads it back under a temporary name; what it reads must be
 * the same model, or the folder is removed again. */
static pare_status export_hf(cli *c, exported *e, const pare_model *m)
{
    pare_model *again = NULL;
    const char *const temporary = cli_fresh(c, c->out);
    if (!temporary) return PARE_ERR_MEMORY;
    pare_folder_remove(temporary); /* of a process of our number that was killed */
    pare_status st = pare_export_hf(m, temporary, false, &c->err);
    if (st == PARE_ERR_INPUT && m->pattern.kind != PARE_GRAPH)
        cli_note(c, "ONNX takes any shape: try -o NAME.onnx");
    if (st) return name_model(c, st);
    st = pare_model_load(&again, temporary, &c->err);
    if (!st && (pare_model_outputs(again) != pare_model_outputs(m) || again->nblocks != m->nblocks))
        st = pare_fail(&c->err, PARE_ERR_VERIFY, "%s: read back, it is another model", c->out);
    if (!st) st = compare_models(c, &e->error, m, again);
    if (!st && !(e->error <= CHECK_TOLERANCE))
        st = pare_fail(&c->err, PARE_ERR_VERIFY,
                       "%s: read back, it gives outputs that differ by %.2g of the largest", c->out,
                       e->error);
    if (!st) {
        const pare_size size = pare_model_size(again, 1, 0);
        e->kind = again->embedding.pos.kind == PARE_POS_ROTARY ? "Llama"
                  : again->pattern.kind == PARE_CAUSAL         ? "GPT-2"
                                                               : "BERT";
        e->bytes = size.bytes;
    }
    pare_model_free(again);
    if (!st) st = pare_folder_move(temporary, c->out, c->force, &c->err);
    if (st) pare_folder_remove(temporary);
    return st;
}

static pare_status print(cli *c, const exported *e)
{
    char b[64];
    if (c->json) {
        cJSON *const root = out_json_begin(c);
        return out_json(c, root,
                        pare_json_add_values(root, "kind:s output:s bytes:z in:s out:s", e->kind,
                                             e->path, (size_t)e->bytes, e->in, e->out));
    }
    if (is_onnx(c->out)) {
        out_row("wrote", "%s, ONNX opset %d, %s bytes", c->out, e->opset, out_count(b, e->bytes));
        if (e->integers)
            out_row("", "%zu matri%s integers with scales (DequantizeLinear)%s", e->integers,
                    e->integers == 1 ? "x is" : "ces are",
                    e->opset > 17 ? "; those of 4 bits need ONNX Runtime 1.18" : "");
        out_row("input", "%s", e->in);
        out_row("output", "%s", e->out);
        return PARE_OK;
    }
    out_row("wrote",
            "%s, a Hugging Face %s: config.json and model.safetensors, %s bytes of weights", c->out,
            e->kind, out_count(b, e->bytes));
    out_row("check", "read back: %s on %d random inputs in f64",
            e->error == 0 ? "the same outputs, bit for bit,"
                          : "equal outputs up to the rounding of weights",
            CHECK_INPUTS);
    return PARE_OK;
}

static pare_status export(cli *c, const export_opts *o)
{
    pare_model *m = NULL;
    exported e = {.path = c->out};
    facts before, after;
    pare_status st = cli_only(c, "batch,causal", o->oracle > 0, "--oracle M");
    if (!st) st = cli_only(c, "dtype", !is_onnx(c->out), "folders; an ONNX file is f32");
    if (!st && o->oracle && !is_onnx(c->out))
        st = cli_usage_error(
            c, "-o %s: the engine of --oracle is an ONNX file; its name must end in .onnx", c->out);
    if (!st) st = cli_is_there(c, c->operand[0]);
    if (!st) st = is_onnx(c->out) ? cli_may_write(c, c->out, c->operand[0]) : check_folder(c);
    const bool copy = !is_onnx(c->out) && pare_is_dir(c->operand[0]);
    if (!st && copy) return cli_copy_folder(c);
    if (!st) st = cli_load(c, &m, c->operand[0]);
    if (!st) st = cli_facts(c, &before, c->operand[0], m, NULL, false);
    if (!st && o->dtype) st = pare_model_round(m, NULL, dtype_of(o->dtype), &c->err);
    if (!st)
        st = o->oracle         ? export_engine(c, &e, m, o)
             : is_onnx(c->out) ? export_model(c, &e, m)
                               : export_hf(c, &e, m);
    if (!st && !o->oracle) {
        bool poly = false;
        for (size_t b = 0; b < m->nblocks; b++) poly |= m->blocks[b].attn.kind == PARE_ATTN_POLY;
        if (m->tokenizer != PARE_TOK_NONE && m->tokenizer != PARE_TOK_BYTES)
            cli_note(c,
                     "the tokenizer is not written: other programs keep it in files of their own");
        if (poly)
            cli_note(c, "polynomial attention is written as the exact attention it approximates");
    }
    if (!st) st = print(c, &e);
    if (!st && !o->oracle) st = cli_facts(c, &after, c->out, m, NULL, false);
    if (!st && !o->oracle) {
        after.size.bytes = is_onnx(c->out) ? 4 * after.size.parameters : e.bytes;
        if (is_onnx(c->out)) after.dtype = PARE_F32;
        if (m->embedding.rows && !is_onnx(c->out))
            cli_note(c,
                     "tokens that share a row of the embedding have rows of their own in a folder");
        else
            note_larger(c, &before, &after);
    }
    pare_model_free(m);
    return st;
}

int cmd_export(int argc, char **argv)
{
    export_opts o = {.batch = 1};
    /* clang-format off */
    const opt own[] = {
        {.name = "oracle", .kind = OPT_SIZE, .to = &o.oracle, .metavar = "M", .min = 2, .max = MOST_ROWS,
         .group = "What to write", .unset = "write the model",
         .help = "write no model but the small attention engine with fixed shapes that serves every call "
                 "of M tokens in a plan of pare length"},
        {.name = "batch", .kind = OPT_SIZE, .to = &o.batch, .metavar = "B", .min = 1, .max = MOST_BATCH, .rare = true,
         .help = "with --oracle: calls that the engine takes at once"},
        {.name = "causal", .kind = OPT_FLAG, .to = &o.causal, .rare = true,
         .help = "with --oracle: the engine masks later tokens itself, which saves calls of causal models"},
        {.name = "dtype", .kind = OPT_CHOICE, .to = &o.dtype, .metavar = "W", .choices = dtype_names,
         .help = "for a folder: write all weights in this precision"},
    };
    const opt_spec spec = {
        .command = "export",
        .args = "MODEL -o OUT.onnx | -o FOLDER",
        .about = "Writes a model for other programs: an ONNX file with free batch and length, or,\n"
                 "where its shapes are standard, a folder under Hugging Face's names (GPT-2,\n"
                 "Llama, BERT). A folder is read back and run on random inputs before it is kept.\n"
                 "A model that is such a folder already goes out as it came in, byte for byte.",
        .examples = {"export model.safetensors -o model.onnx",
                     "export model.safetensors --oracle 128 -o engine.onnx"},
        .seeded = true, /* the inputs of the self-check */
        OPT_ROWS(own),
        .operands = (const char *const[]){"MODEL", NULL},
    };
    /* clang-format on */
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MUST_OUT,
                   "a name that ends in .onnx, or a folder for Hugging Face files", argc, argv,
                   &rc))
        return rc;
    interrupt_at_once(); /* nothing here looks at the stop flag */
    return cli_finish(&c, export(&c, &o));
}
