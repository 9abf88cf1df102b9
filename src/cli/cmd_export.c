/* pare export: a model, or the one engine that a plan of small calls needs, for other programs. */
#include "out.h"

#include <string.h>

#define MOST_ROWS  (1u << 20)
#define MOST_BATCH (1u << 16)

typedef struct export_opts {
    size_t oracle, batch;
} export_opts;

typedef struct exported {
    const char *kind;
    char in[96], out[96];
    uint64_t bytes;
} exported;

static pare_status export_engine(cli *c, exported *e, const pare_model *m, const export_opts *o)
{
    pare_engine_shape s;
    pare_status st = pare_engine_for(&s, m, o->oracle, o->batch, &c->err);
    if (!st) st = pare_export_engine(&s, c->out, c->force, &e->bytes, &c->err);
    if (st) return cli_name(c, st, c->operand[0]);
    e->kind = "engine";
    snprintf(e->in, sizeof e->in, "q, k f32 [%zu, %zu, %zu], v f32 [%zu, %zu, %zu]", s.batch,
             s.rows, s.dk, s.batch, s.rows, s.dv);
    snprintf(e->out, sizeof e->out, "y f32 [%zu, %zu, %zu]", s.batch, s.rows, s.dv);
    return PARE_OK;
}

static pare_status export_model(cli *c, exported *e, const pare_model *m)
{
    const pare_status st = pare_export_onnx(m, c->out, c->force, &e->bytes, &c->err);
    if (st) return cli_name(c, st, c->operand[0]);
    const bool pooled = m->top.pool != PARE_POOL_NONE;
    e->kind = "model";
    if (m->stem.ids)
        snprintf(e->in, sizeof e->in, "ids i64 [batch, tokens]");
    else
        snprintf(e->in, sizeof e->in, "x f32 [batch, tokens, %zu]", m->stem.width);
    snprintf(e->out, sizeof e->out, "y f32 [batch, %s%zu]", pooled ? "" : "tokens, ",
             pare_model_outputs(m));
    return PARE_OK;
}

static pare_status print(cli *c, const exported *e)
{
    char b[64];
    if (!c->json) {
        out_row("wrote", "%s, ONNX opset 17, %s bytes", c->out, out_bytes(b, e->bytes));
        out_row("in", "%s", e->in);
        out_row("out", "%s", e->out);
        return PARE_OK;
    }
    cJSON *root = out_json_begin(c);
    return out_json(c, root,
                    root && pare_json_add_string(root, "kind", e->kind) &&
                        pare_json_add_string(root, "output", c->out) &&
                        pare_json_add_size(root, "bytes", e->bytes) &&
                        pare_json_add_string(root, "in", e->in) &&
                        pare_json_add_string(root, "out", e->out));
}

static void say_what_changed(cli *c, const pare_model *m)
{
    for (size_t b = 0; b < m->nblocks; b++)
        if (m->blocks[b].attn.kind == PARE_ATTN_POLY) {
            cli_note(c, "polynomial attention is written as the exact attention it approximates");
            return;
        }
}

static pare_status export(cli *c, const export_opts *o)
{
    pare_model *m = NULL;
    exported e = {0};
    pare_status st = cli_may_write(c, c->out, c->operand[0]);
    if (!st) st = cli_load(c, &m, c->operand[0]);
    if (!st) st = o->oracle ? export_engine(c, &e, m, o) : export_model(c, &e, m);
    if (!st && !o->oracle) say_what_changed(c, m);
    if (!st) st = print(c, &e);
    pare_model_free(m);
    return st;
}

int cmd_export(int argc, char **argv)
{
    export_opts o = {.batch = 1};
    const opt own[] = {
        {.name = "oracle",
         .kind = OPT_SIZE,
         .to = &o.oracle,
         .metavar = "M",
         .help = "not the model but an engine of M tokens for all its calls",
         .unset = "the model",
         .min = 2,
         .max = MOST_ROWS},
        {.name = "batch",
         .kind = OPT_SIZE,
         .to = &o.batch,
         .metavar = "B",
         .help = "calls that the engine takes at once",
         .min = 1,
         .max = MOST_BATCH},
    };
    static const char *const operands[] = {"MODEL", NULL};
    const opt_spec spec = {
        .command = "export",
        .args = "MODEL [--oracle M] -o OUT.onnx",
        .about =
            "Writes a model of sequences as ONNX, batch and length free. With --oracle, the one\n"
            "small engine with fixed shapes that serves every call of a plan.",
        .example = "export model.safetensors -o model.onnx",
        .own = own,
        .nown = sizeof own / sizeof *own,
        .operands = operands,
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MUST_OUT, "the ONNX file", argc, argv, &rc)) return rc;
    return cli_finish(&c, export(&c, &o));
}
