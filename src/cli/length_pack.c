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

static pare_status add_inputs(cli *c, packed *p, const pare_inputs *set)
{
    size_t most = 0;
    for (size_t i = 0; i < set->n; i++) most += set->in[i].batch;
    p->in = pare_alloc(c->arena, most + 1, sizeof *p->in);
    p->each = pare_alloc(c->arena, most + 1, sizeof *p->each);
    if (!p->in || !p->each) return pare_no_memory(&c->err);
    for (size_t i = 0; i < set->n; i++)
        for (size_t b = 0; b < set->in[i].batch; b++) {
            pare_input *const in = &p->in[p->n++];
            *in = set->in[i];
            in->batch = 1;
            if (in->ids) in->ids += b * in->tokens;
            if (in->x) in->x += b * in->tokens * in->width;
            p->tokens += in->tokens;
            if (in->tokens > p->longest) p->longest = in->tokens;
            if (!p->shortest || in->tokens < p->shortest) p->shortest = in->tokens;
        }
    return PARE_OK;
}

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
    st = cli_name(c, pare_dataset_load(&d, c->arena, p->m, path, 0, 0, &c->err), path);
    if (!st && !d.inputs.n)
        st = pare_fail(&c->err, PARE_ERR_INPUT, "%s: no input in it suits the model", path);
    return st ? st : add_inputs(c, p, &d.inputs);
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

static pare_status run_alone(cli *c, packed *p, const pare_oracle *engine)
{
    const pare_length_opts o = {.mode = pare_engine_is_strict(p->o->backend) ? PARE_LENGTH_STRICT
                                                                             : PARE_LENGTH_ZEROREF};
    pare_status st = PARE_OK;
    for (size_t i = 0; i < p->n && !st; i++) {
        pare_length_stats s = {0};
        st = pare_length_forward(p->each[i], engine, &o, NULL, p->m, &p->in[i], &s, NULL, &c->exec,
                                 &c->err);
        p->alone += s.calls + s.fallback_calls;
        if (!st) st = pare_progress(&c->exec, "one by one", i + 1, p->n, &c->err);
    }
    return st;
}

static double largest_difference(pare_dtype t, const void *a, const void *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = t == PARE_F32 ? fabs((double)((const float *)a)[i] - ((const float *)b)[i])
                                       : fabs(((const double *)a)[i] - ((const double *)b)[i]);
        if (!(d <= most)) most = d;
    }
    return most;
}

static pare_status run_both(cli *c, packed *p)
{
    const pack_opts *const o = p->o;
    pare_oracle inner = {0}, engine = {0};
    pare_status st = backend_open(c, &inner, o->backend, p->m, &o->engine, PARE_PIPE_TIMEOUT);
    if (!st) st = pare_oracle_counting(&engine, inner, &p->count, &c->err);
    if (st) return st;
    engine.ops->caps(engine.self, &p->caps);
    cli_phase(c, NULL, 50);
    if (!(p->y = outputs(c, p))) st = pare_no_memory(&c->err);
    if (!st)
        st = pare_length_pack_forward(p->each, &engine, p->m, p->in, p->n, o->penalty, o->rows,
                                      &p->stats, o->penalty > 0 ? NULL : &p->cert, &c->exec,
                                      &c->err);
    const pare_oracle_count packed_only = p->count;
    void *const alone = st ? NULL : outputs(c, p);
    if (!st && !alone) st = pare_no_memory(&c->err);
    cli_phase(c, NULL, 50);
    if (!st) st = run_alone(c, p, &engine);
    if (!st) p->difference = largest_difference(p->caps.dtype, p->y, alone, p->rows * p->cols);
    p->count = packed_only;
    pare_oracle_free(&engine);
    if (!st && !(o->penalty > 0) && !p->cert.sound)
        st = pare_fail(&c->err, PARE_ERR_VERIFY,
                       "the run is not within its own bounds: measured %.3g, proven %.3g",
                       p->cert.measured, p->cert.proven);
    return st;
}

/* ---- results --------------------------------------------------------------------------------- */

/* As `pare run` has them where all inputs are alike, else the rows one below the other. */
static pare_status write_outputs(cli *c, const packed *p)
{
    const size_t rows = p->n ? p->rows / p->n : 0;
    bool alike = true;
    for (size_t i = 0; i < p->n; i++) alike = alike && pare_output_rows(p->m, &p->in[i]) == rows;
    pare_array a = {.dtype = p->caps.dtype, .ndim = 2, .data = p->y};
    a.shape[0] = p->rows, a.shape[1] = p->cols;
    if (alike && p->m->top.pool == PARE_POOL_NONE && p->n > 1) {
        a.ndim = 3;
        a.shape[0] = p->n, a.shape[1] = rows, a.shape[2] = p->cols;
    }
    char shape[128];
    const pare_status st = pare_npy_write(c->out, &a, c->force, &c->err);
    if (!st) cli_note(c, "wrote %s, %s", c->out, pare_shape_text(shape, a.shape, a.ndim));
    return st;
}

static void print_text(const packed *p)
{
    const pare_pack_stats *const s = &p->stats;
    char a[32], b[32], e[64];
    out_row("inputs", "%zu of %zu to %zu tokens, %s in all", p->n, p->shortest, p->longest,
            out_count(a, p->tokens));
    out_row("engine", "%s of %u tokens, %s", p->o->backend, (unsigned)p->caps.max_len,
            p->caps.dtype == PARE_F64 ? "f64" : "f32");
    out_row("calls", "%s instead of %s for the inputs one by one (%zu layers, %zu heads)",
            out_count(a, s->calls), out_count(b, p->alone), p->layers, p->heads);
    out_row("difference", "outputs differ by at most %.3g from those of the inputs one by one",
            p->difference);
    if (s->leak > 0)
        out_row("leak", "proven: other inputs move a head's output by at most %s (Theorem 4.2)",
                pare_ub_format(e, pare_ub_of(s->leak), 4));
    else
        out_row("leak", "0, proven: no attention weight passes from one input to another");
    if (p->cert.rows)
        out_row("rounding", "proven: at most %s in a head's output; measured %.3g on %zu rows",
                pare_ub_format(e, pare_ub_of(p->cert.proven), 4), p->cert.measured, p->cert.rows);
    out_row("call size",
            "at most %llu rows; queries and keys of %u numbers (%zu and a code of %u), values of "
            "%u",
            (unsigned long long)p->count.max_len, (unsigned)s->dk, p->dk, (unsigned)s->code,
            (unsigned)s->dv);
    out_row("penalty", "scores between two inputs are lowered by %g", s->penalty);
}

static pare_status print_json(cli *c, const packed *p)
{
    const pare_pack_stats *const s = &p->stats;
    cJSON *const root = out_json_begin(c), *const o =
                                               root ? pare_json_add_object(root, "pack") : NULL;
    bool ok =
        o && pare_json_add_size(o, "inputs", p->n) && pare_json_add_size(o, "tokens", p->tokens) &&
        pare_json_add_size(o, "longest_input", p->longest) &&
        pare_json_add_string(o, "backend", p->o->backend) &&
        pare_json_add_size(o, "oracle", p->caps.max_len) &&
        pare_json_add_string(o, "dtype", pare_dtype_name(p->caps.dtype)) &&
        pare_json_add_size(o, "layers", p->layers) && pare_json_add_size(o, "heads", p->heads) &&
        pare_json_add_size(o, "calls", s->calls) &&
        pare_json_add_size(o, "calls_one_by_one", p->alone) &&
        pare_json_add_size(o, "max_len", p->count.max_len) && pare_json_add_size(o, "d_k", s->dk) &&
        pare_json_add_size(o, "d_v", s->dv) && pare_json_add_size(o, "d_token", s->d_token) &&
        pare_json_add_size(o, "code", s->code) && pare_json_add_number(o, "penalty", s->penalty) &&
        pare_json_add_number(o, "leak", s->leak) &&
        pare_json_add_number(o, "difference", p->difference);
    if (ok && p->cert.rows)
        ok = pare_json_add_number(o, "proven", p->cert.proven) &&
             pare_json_add_number(o, "measured", p->cert.measured) &&
             pare_json_add_size(o, "rows", p->cert.rows);
    return out_json(c, root, ok && (!c->out || pare_json_add_string(root, "output", c->out)));
}

pare_status length_pack(cli *c, const pack_opts *o)
{
    packed p = {.o = o};
    pare_status st =
        o->data ? PARE_OK
                : cli_usage_error(c, "--pack runs the inputs of a file: give it with --data FILE");
    if (!st) st = backend_check(c, o->backend);
    if (!st && strcmp(o->backend, "mpi") == 0)
        st = cli_usage_error(c, "--pack works in one process: give --backend cpu, not mpi");
    if (!st) st = cli_is_there(c, c->operand[0]);
    if (!st) st = cli_is_there(c, o->data);
    if (!st && c->out) st = cli_may_write(c, c->out, c->operand[0]);
    if (!st && c->out) st = cli_may_write(c, c->out, o->data);
    if (!st) st = cli_load(c, &p.m, c->operand[0]);
    if (!st) st = read_inputs(c, &p);
    if (!st) st = run_both(c, &p);
    if (!st && c->out) st = write_outputs(c, &p);
    cli_bar_end(c);
    if (!st && c->json)
        st = print_json(c, &p);
    else if (!st)
        print_text(&p);
    pare_model_free(p.m);
    return st;
}
