/* length_pack.c - pare length --pack: the inputs of a file through a model, as many in each call of
 * the engine as it holds (Yu 2025, Theorem 4.2), beside the same inputs one by one. */
#include "length_pack.h"
#include "backend.h"
#include "out.h"

#include <math.h>
#include <string.h>

typedef struct packed {
    const pack_opts *o;
    pare_model *m;
    pare_input *in; /* one sequence each */
    size_t n, tokens, shortest, longest;
    size_t rows, cols;            /* of all outputs */
    size_t heads, layers, dk, dv; /* widest head of the model */
    void *y, **each;              /* rows x cols; where the rows of each input begin */
    pare_oracle_caps caps;
    pare_oracle_count count; /* of the packed run */
    pare_pack_stats stats;
    pare_length_cert cert;
    uint64_t alone;    /* calls of the inputs one by one */
    double difference; /* largest of an output entry from that */
} packed;

/* ---- what is run ----------------------------------------------------------------------------- */

static pare_status read_inputs(cli *c, packed *p)
{
    pare_dataset d;
    pare_length_head *heads;
    const char *const path = p->o->data;
    if (p->m->pattern.kind == PARE_GRAPH)
        return pare_fail(&c->err, PARE_ERR_INPUT,
                         "%s attends over a graph: --pack is for sequences", c->operand[0]);
    pare_status st = pare_length_heads(&heads, &p->heads, c->arena, p->m, &c->err);
    for (size_t i = 0; i < p->heads && !st; i++) {
        p->layers += !i || heads[i].layer != heads[i - 1].layer;
        if (heads[i].dk > p->dk) p->dk = heads[i].dk;
        if (heads[i].dv > p->dv) p->dv = heads[i].dv;
    }
    if (!st && !p->heads)
        st = pare_fail(&c->err, PARE_ERR_INPUT, "%s has no softmax attention to pack",
                       c->operand[0]);
    if (st) return st;
    st = cli_name(c, pare_dataset_load(&d, c->arena, p->m, path, NULL, &c->err), path);
    if (!st && !d.inputs.n)
        st = pare_fail(&c->err, PARE_ERR_INPUT, "%s: no input in it suits the model", path);
    if (st) return st;
    size_t most = 0;
    for (size_t i = 0; i < d.inputs.n; i++) most += d.inputs.in[i].batch;
    p->in = pare_alloc(c->arena, most + 1, sizeof *p->in);
    p->each = pare_alloc(c->arena, most + 1, sizeof *p->each);
    if (!p->in || !p->each) return pare_no_memory(&c->err);
    for (size_t i = 0; i < d.inputs.n; i++)
        for (size_t b = 0; b < d.inputs.in[i].batch; b++) {
            pare_input *const in = &p->in[p->n++];
            *in = d.inputs.in[i];
            in->batch = 1;
            if (in->ids) in->ids += b * in->tokens;
            if (in->x) in->x += b * in->tokens * in->width;
            p->tokens += in->tokens;
            if (in->tokens > p->longest) p->longest = in->tokens;
            if (!p->shortest || in->tokens < p->shortest) p->shortest = in->tokens;
        }
    return PARE_OK;
}

/* ---- the two runs ---------------------------------------------------------------------------- */

static void *outputs(cli *c, packed *p)
{
    const size_t size = pare_dtype_size(p->caps.dtype);
    size_t count;
    p->rows = 0;
    p->cols = pare_model_outputs(p->m);
    for (size_t i = 0; i < p->n; i++) p->rows += pare_output_rows(p->m, &p->in[i]);
    char *const y =
        pare_mul(&count, p->rows, p->cols) ? pare_alloc(c->arena, count + 1, size) : NULL;
    for (size_t i = 0, at = 0; y && i < p->n; i++) {
        p->each[i] = y + at * p->cols * size;
        at += pare_output_rows(p->m, &p->in[i]);
    }
    return y;
}

static pare_status run_both(cli *c, packed *p)
{
    const pack_opts *const o = p->o;
    const pare_length_opts one = {.mode = pare_engine_is_strict(o->backend) ? PARE_LENGTH_STRICT
                                                                            : PARE_LENGTH_ZEROREF};
    pare_oracle inner = {0}, engine = {0};
    pare_status st = backend_open(c, &inner, o->backend, p->m, &o->engine, PARE_PIPE_TIMEOUT);
    if (!st) st = pare_oracle_counting(&engine, inner, &p->count, &c->err);
    if (st) return st;
    engine.ops->caps(engine.self, &p->caps);
    cli_phase(c, NULL, 50);
    if (!(p->y = outputs(c, p))) st = pare_no_memory(&c->err);
    if (!st)
        st = pare_length_pack_forward(
            p->each, &p->stats, o->penalty > 0 ? NULL : &p->cert,
            &(pare_length_pass){.oracle = &engine, .model = p->m, .in = p->in, .n = p->n},
            &(pare_pack_opts){.penalty = o->penalty, .rows = o->rows}, &c->exec, &c->err);
    const pare_oracle_count packed_only = p->count;
    void *const alone = st ? NULL : outputs(c, p);
    if (!st && !alone) st = pare_no_memory(&c->err);
    cli_phase(c, NULL, 50);
    for (size_t i = 0; i < p->n && !st; i++) {
        pare_length_stats s = {0};
        st = pare_length_forward(
            p->each[i], &s, &(pare_length_pass){.oracle = &engine, .model = p->m, .in = &p->in[i]},
            &one, &c->exec, &c->err);
        p->alone += s.calls + s.fallback_calls;
        if (!st) st = pare_progress(&c->exec, "one by one", i + 1, p->n, &c->err);
    }
    const bool f32 = p->caps.dtype == PARE_F32;
    for (size_t i = 0; i < p->rows * p->cols && !st; i++) {
        const double d = f32 ? fabs((double)((const float *)p->y)[i] - ((const float *)alone)[i])
                             : fabs(((const double *)p->y)[i] - ((const double *)alone)[i]);
        if (!(d <= p->difference)) p->difference = d;
    }
    p->count = packed_only;
    pare_oracle_free(&engine);
    if (!st && !(o->penalty > 0) && !p->cert.sound)
        st = pare_fail(&c->err, PARE_ERR_VERIFY,
                       "the run is not within its own bounds: measured %.3g, proven %.3g",
                       p->cert.measured, p->cert.proven);
    return st;
}

/* ---- results --------------------------------------------------------------------------------- */

static pare_status print_json(cli *c, const packed *p)
{
    const pare_pack_stats *const s = &p->stats;
    cJSON *const root = out_json_begin(c);
    cJSON *const o = root ? pare_json_add_object(root, "pack") : NULL;
    bool ok =
        pare_json_add_values(o, "inputs:z tokens:z longest_input:z backend:s oracle:z dtype:s",
                             p->n, p->tokens, p->longest, p->o->backend, (size_t)p->caps.max_len,
                             pare_dtype_name(p->caps.dtype)) &&
        pare_json_add_values(o, "layers:z heads:z calls:z calls_one_by_one:z max_len:z", p->layers,
                             p->heads, (size_t)s->calls, p->alone, (size_t)p->count.max_len) &&
        pare_json_add_values(o, "d_k:z d_v:z d_token:z code:z penalty:g leak:g difference:g",
                             (size_t)s->dk, (size_t)s->dv, (size_t)s->d_token, (size_t)s->code,
                             s->penalty, s->leak, p->difference);
    if (ok && p->cert.rows)
        ok = pare_json_add_values(o, "proven:g measured:g rows:z", p->cert.proven, p->cert.measured,
                                  (size_t)p->cert.rows);
    return out_json(c, root, ok && (!c->out || pare_json_add_values(root, "output:s", c->out)));
}

pare_status length_pack(cli *c, const pack_opts *o)
{
    packed p = {.o = o};
    pare_status st =
        o->data ? backend_check(c, o->backend)
                : cli_usage_error(c, "--pack runs the inputs of a file: give it with --data FILE");
    if (!st && strcmp(o->backend, "mpi") == 0)
        st = cli_usage_error(c, "--pack works in one process: give --backend cpu, not mpi");
    if (!st) st = cli_check_files(c, (const char *const[]){c->operand[0], o->data}, 2);
    if (!st) st = cli_load(c, &p.m, c->operand[0]);
    if (!st) st = read_inputs(c, &p);
    if (!st) st = run_both(c, &p);
    if (!st && c->out) {
        /* As `pare run` has them where all inputs are equally long, else all rows in one. */
        const size_t rows = p.n ? p.rows / p.n : 0;
        bool same_rows = p.m->head.pool == PARE_POOL_NONE && p.n > 1;
        for (size_t i = 0; i < p.n; i++)
            same_rows = same_rows && pare_output_rows(p.m, &p.in[i]) == rows;
        pare_array a = {p.caps.dtype, 2, {p.rows, p.cols}, .data = p.y};
        if (same_rows) a = (pare_array){p.caps.dtype, 3, {p.n, rows, p.cols}, .data = p.y};
        char shape[128];
        st = pare_npy_write(c->out, &a, c->force, &c->err);
        if (!st) cli_note(c, "wrote %s, %s", c->out, pare_shape_text(shape, a.shape, a.ndim));
    }
    cli_bar_end(c);
    if (!st && c->json)
        st = print_json(c, &p);
    else if (!st) {
        const pare_pack_stats *const s = &p.stats;
        char a[32], b[32], e[64];
        out_row("inputs", "%zu of %zu to %zu tokens, %s in all", p.n, p.shortest, p.longest,
                out_count(a, p.tokens));
        out_row("engine", "%s of %u tokens, %s", p.o->backend, (unsigned)p.caps.max_len,
                p.caps.dtype == PARE_F64 ? "f64" : "f32");
        out_row("calls", "%s instead of %s for the inputs one by one (%zu layers, %zu heads)",
                out_count(a, s->calls), out_count(b, p.alone), p.layers, p.heads);
        out_row("difference", "outputs differ by at most %.3g from those of the inputs one by one",
                p.difference);
        if (s->leak > 0)
            out_row("leak", "proven: other inputs move a head's output by at most %s (Theorem 4.2)",
                    pare_ub_format(e, pare_ub_of(s->leak), 4));
        else
            out_row("leak", "0, proven: no attention weight passes from one input to another");
        if (p.cert.rows)
            out_row("rounding", "proven: at most %s in a head's output; measured %.3g on %zu rows",
                    pare_ub_format(e, pare_ub_of(p.cert.proven), 4), p.cert.measured, p.cert.rows);
        out_row(
            "call size",
            "at most %llu rows; queries and keys of %u numbers (%zu and a code of %u), values of "
            "%u",
            (unsigned long long)p.count.max_len, (unsigned)s->dk, p.dk, (unsigned)s->code,
            (unsigned)s->dv);
        out_row("penalty", "scores between two inputs are lowered by %g", s->penalty);
    }
    pare_model_free(p.m);
    return st;
}
