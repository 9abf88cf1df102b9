/* cmd_info.c - pare info: what a model is. */
#include "describe.h"
#include "interrupt.h"
#include "out.h"

#include <string.h>

typedef struct info_opts {
    size_t tokens; /* 0: the default for the model */
    size_t edges;
} info_opts;

/* ---- tensors ------------------------------------------------------------------------------- */

/* `list`: a cJSON array to append to; NULL: print. */
static pare_status list_tensor(void *list, const char *name, pare_weight *w, bool vector,
                               pare_err *err)
{
    char sha[PARE_SHA256_HEX], shape_text[128];
    if (!pare_has(w)) return PARE_OK;
    const size_t shape[2] = {vector ? w->cols : w->rows, w->cols}, ndim = vector ? 1 : 2;
    const pare_status st =
        pare_sha256_of(sha, w->data, w->rows * w->cols * pare_dtype_size(w->dtype), err);
    if (st) return st;
    if (!list) {
        out_line("  %-28s %-4s %-16s %s", name, pare_dtype_name(w->dtype),
                 pare_shape_text(shape_text, shape, ndim), sha);
        return PARE_OK;
    }
    cJSON *const o = pare_json_add_object(list, NULL);
    const bool ok = pare_json_add_values(o, "name:s dtype:s", name, pare_dtype_name(w->dtype)) &&
                    out_json_shape(o, "shape", shape, ndim) &&
                    pare_json_add_values(o, "sha256:s", sha);
    return ok ? PARE_OK : pare_no_memory(err);
}

/* ---- text ---------------------------------------------------------------------------------- */

static pare_status print_text(cli *c, pare_model *m, const facts *f, const char *format)
{
    char text[DESCRIBE_BYTES], next[DESCRIBE_BYTES], bytes[64], count[32];
    const char *const task = describe_task(m), *const name = m->name && *m->name ? m->name : NULL;
    const bool graph = m->pattern.kind == PARE_GRAPH;
    if (name && strcmp(name, task) == 0)
        out_row("model", "%s", task);
    else
        out_row("model", "%s: %s", name ? name : "(no name)", task);
    out_row("file", "%s (%s)", f->path, format);
    out_row("parameters", "%s", out_count(count, f->size.parameters));
    out_row("bytes", "%s of weights%s", out_bytes(bytes, f->size.bytes),
            f->dtype == PARE_F16    ? ", most in f16"
            : f->dtype == PARE_BF16 ? ", most in bf16"
            : f->dtype == PARE_F64  ? ", most in f64"
                                    : "");
    out_row("MACs", "%s multiply-adds for %zu %s", out_count(count, f->size.macs), f->tokens,
            f->tokens == 1 ? (graph ? "node" : "token") : (graph ? "nodes" : "tokens"));
    describe_input(text, m);
    out_row("input", "%s", text);
    if (m->context)
        out_row("context", "at most %zu tokens", m->context);
    else
        out_row("context", "any length");
    describe_pattern(text, m);
    out_row("attention", "%s", text);
    describe_positions(text, m);
    out_row("positions", "%s", text);
    if (m->nblocks == 0) out_row("blocks", "none");
    for (size_t from = 0, to; from < m->nblocks; from = to) { /* equal blocks on one line */
        describe_block(text, &m->blocks[from]);
        for (to = from + 1; to < m->nblocks; to++) {
            describe_block(next, &m->blocks[to]);
            if (strcmp(text, next) != 0) break;
        }
        out_row(from ? "" : "blocks", "%zu x %s", to - from, text);
    }
    describe_head(text, m);
    out_row("head", "%s", text);
    if (m->vocab_bytes)
        out_row("tokenizer", "%s, %zu bytes of vocabulary", pare_tokenizer_name(m->tokenizer),
                m->vocab_bytes);
    else
        out_row("tokenizer", "%s", pare_tokenizer_name(m->tokenizer));
    if (!c->verbose) return PARE_OK;
    puts("tensors");
    return pare_model_each_weight(m, list_tensor, NULL, &c->err);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static bool add_block(cJSON *list, const pare_block *b)
{
    char text[DESCRIBE_BYTES];
    const pare_attn *const a = &b->attn;
    const pare_ffn *const f = &b->ffn;
    describe_block(text, b);
    cJSON *const o = pare_json_add_object(list, NULL);
    if (!pare_json_add_values(o, "text:s", text)) return false;
    cJSON *const attention = pare_json_add_object(o, "attention");
    bool ok = pare_json_add_values(
        attention, "kind:s in:z out:z heads:z kv_heads:z pre_norm:s post_norm:s skip:s",
        pare_attn_name(a->kind), a->din, a->dout, a->nheads, describe_kv_heads(a),
        pare_norm_name(a->in_norm.kind), pare_norm_name(a->out_norm.kind),
        pare_skip_name(a->skip.kind));
    cJSON *const dk = ok ? pare_json_add_array(attention, "dk") : NULL;
    cJSON *const dv = dk ? pare_json_add_array(attention, "dv") : NULL;
    ok = dv != NULL;
    for (size_t h = 0; ok && h < a->nheads; h++)
        ok = pare_json_add_size(dk, NULL, a->heads[h].dk) &&
             pare_json_add_size(dv, NULL, a->heads[h].dv);
    cJSON *const ffn = ok ? pare_json_add_object(o, "ffn") : NULL;
    cJSON *const widths = ffn ? pare_json_add_array(ffn, "widths") : NULL;
    ok = widths && pare_json_add_size(widths, NULL, f->din);
    for (size_t l = 0; ok && l < f->nlayers; l++)
        ok = pare_json_add_size(widths, NULL, f->layers[l].w.rows);
    return ok && pare_json_add_values(
                     ffn, "kind:s activation:s pre_norm:s post_norm:s skip:s",
                     pare_ffn_name(f->kind), pare_act_name(f->act), pare_norm_name(f->in_norm.kind),
                     pare_norm_name(f->out_norm.kind), pare_skip_name(f->skip.kind));
}

static pare_status print_json(cli *c, pare_model *m, const facts *f, const char *format)
{
    cJSON *const root = out_json_begin(c);
    const pare_embedding *const e = &m->embedding;
    bool ok = root && out_json_facts(root, "input", f) &&
              pare_json_add_values(
                  root,
                  "name:s format:s input_kind:s input_width:z vocab:z context:z pattern:s "
                  "positions:s outputs:z pool:s tied:b normalize:b tokenizer:s",
                  m->name ? m->name : "", format, e->ids ? "ids" : "vectors", e->width, e->vocab,
                  m->context, pare_pattern_name(m->pattern.kind), pare_position_name(e->pos.kind),
                  pare_model_outputs(m), pare_pool_name(m->head.pool), m->head.tied,
                  m->head.normalize, pare_tokenizer_name(m->tokenizer));
    if (e->rows) ok = ok && pare_json_add_size(root, "shared_tokens", e->vocab + 1 - e->table.rows);
    cJSON *blocks = ok ? pare_json_add_array(root, "blocks") : NULL;
    ok = blocks != NULL;
    for (size_t b = 0; ok && b < m->nblocks; b++) ok = add_block(blocks, &m->blocks[b]);
    cJSON *const tensors = ok && c->verbose ? pare_json_add_array(root, "tensors") : NULL;
    if (tensors) {
        const pare_status st = pare_model_each_weight(m, list_tensor, tensors, &c->err);
        if (st) {
            cJSON_Delete(root);
            return st;
        }
    }
    return out_json(c, root, ok && (tensors || !c->verbose));
}

/* -------------------------------------------------------------------------------------------- */

static pare_status info(cli *c, void *self)
{
    const info_opts *const o = self;
    pare_model *m = NULL;
    facts f;
    const char *const path = c->operand[0];
    pare_files *const files = pare_files_new_unhashed();
    interrupt_at_once(); /* nothing here looks at the stop flag */
    if (!files) return pare_no_memory(&c->err);
    pare_status st = cli_load_files(c, &m, path, files);
    if (!st)
        st = cli_only(c, "edges", m->pattern.kind == PARE_GRAPH,
                      "a model that attends over a graph");
    if (!st) st = cli_facts(c, &f, path, m, NULL, c->json);
    if (!st) {
        const char *const format = describe_format(files, path);
        if (o->tokens) f.tokens = o->tokens;
        f.size = pare_model_size(m, f.tokens, o->edges);
        st = c->json ? print_json(c, m, &f, format) : print_text(c, m, &f, format);
    }
    pare_files_free(files);
    pare_model_free(m);
    return st;
}

/* clang-format off */
int cmd_info(int argc, char **argv)
{
    info_opts o = {0};
    char usual[48];
    snprintf(usual, sizeof usual, "the context, at most %d", PARE_RANDOM_TOKENS);
    const opt own[] = {
        {.name = "tokens", .kind = OPT_SIZE, .to = &o.tokens, .metavar = "N", .unset = usual, .min = 1, .max = 1u << 30,
         .help = "count the multiply-adds of a forward pass over N tokens"},
        {.name = "edges", .kind = OPT_SIZE, .to = &o.edges, .metavar = "E", .max = (size_t)1 << 40, .rare = true,
         .help = "graph transformers: count attention over this many directed edges"},
    };
    const opt_spec spec = {
        .command = "info",
        .args = "MODEL",
        .about = "Shows what a model is: parameters, bytes, multiply-adds, and its parts. -v lists\n"
                 "every tensor with its shape and SHA-256. MODEL is any file or folder that pare\n"
                 "reads (see pare import --help).",
        .examples = {"info model.safetensors", "info model.safetensors --tokens 16 -v"},
        OPT_ROWS(own),
        .operands = (const char *const[]){"MODEL", NULL},
    };
    return cli_command(&spec, CLI_NO_OUT, NULL, argc, argv, info, &o);
}
/* clang-format on */
