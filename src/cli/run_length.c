/* run_length.c - pare run --oracle M: attention by small calls of an engine, here or elsewhere. */
#include "backend.h"
#include "out.h"
#include "run.h"

pare_status run_check_length(cli *c, const run_opts *o)
{
    if (!o->oracle && !o->plan) return PARE_OK;
    const pare_status st = backend_check(c, o->backend);
    if (st) return st;
    if (o->texts.n > 1 || o->prompts || (o->tokens && o->tokens != RUN_NOT_GIVEN))
        return cli_usage_error(
            c, "--oracle and --plan are for one forward pass over one input: they do not "
               "generate text");
    return PARE_OK;
}

/* ---- a plan from its file ---------------------------------------------------------------------
 */

/* The plan's engine, numbers and mode replace the options. */
pare_status run_read_plan(cli *c, run_state *s, run_opts *o)
{
    const pare_status st = pare_length_plan_read(&s->plan, c->arena, o->plan, &c->err);
    if (st) return st;
    s->engine = s->plan.engine;
    o->f64 = s->engine.dtype == PARE_F64;
    o->oracle = s->engine.max_len;
    o->mode = (size_t)s->plan.mode;
    return PARE_OK;
}

/* The plan must be for this model and this input. */
static pare_status read_plan_options(cli *c, const run_state *s, const pare_input *in,
                                     pare_length_opts *o)
{
    pare_length_plan plan;
    pare_graph graph, *whole = NULL;
    pare_status st = PARE_OK;
    /* Before its calls are counted: there may be any number. A graph has a word of its own. */
    if (!st && s->m->pattern.kind != PARE_GRAPH && s->plan.tokens != in->tokens)
        st = pare_fail(&c->err, PARE_ERR_INPUT, "%s: the plan is for %zu tokens, the input has %zu",
                       s->o->plan, s->plan.tokens, in->tokens);
    if (st) return st;
    if (s->m->pattern.kind == PARE_GRAPH) {
        whole = &graph;
        st = pare_graph_complete(whole, c->arena, in->graph, &s->m->pattern, &c->err);
    }
    if (!st) st = pare_length_plan_open(&plan, c->arena, &s->plan, whole, &c->err);
    if (!st) st = pare_length_plan_fits(&plan, c->arena, s->m, &c->err);
    if (st) return cli_name(c, st, s->o->plan);
    *o = plan.opts;
    o->features = plan.caps.features;
    return PARE_OK;
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* All ranks come along, or none does. */
pare_status run_open_oracle(cli *c, run_state *s)
{
    pare_oracle engine = {0};
    if (!s->o->oracle) return PARE_OK;
    if (!s->plan.text)
        s->engine = (pare_oracle_caps){.max_len = (uint32_t)s->o->oracle,
                                       .dtype = s->o->f64 ? PARE_F64 : PARE_F32};
    pare_status st = backend_open(c, &engine, s->o->backend, s->m, &s->engine, s->o->timeout);
    st = pare_ranks_agree(s->ranks, st, &c->err);
    if (st) {
        pare_oracle_free(&engine);
        return st;
    }
    if (pare_length_may_exceed(s->m)) s->m->context = 0;
    return pare_oracle_counting(&s->oracle, engine, &s->count, &c->err);
}

pare_status run_by_oracle(cli *c, run_state *s, void *out, const pare_input *in,
                          const pare_trace *trace)
{
    pare_length_stats l = {0};
    pare_length_opts o = {.mode = (pare_length_mode)s->o->mode,
                          .seed = c->seed,
                          .eps = s->o->eps,
                          .delta = s->o->delta};
    if (!o.mode && pare_engine_is_strict(s->o->backend)) /* it takes no other calls */
        o.mode = PARE_LENGTH_STRICT;
    pare_status st = s->plan.text ? read_plan_options(c, s, in, &o) : PARE_OK;
    if (!st)
        st = pare_length_forward(
            out, &l,
            &(pare_length_pass){
                .oracle = &s->oracle, .model = s->m, .in = in, .trace = trace, .ranks = s->ranks},
            &o, &c->exec, &c->err);
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

void run_print_length(const run_state *s)
{
    char a[32], b[32];
    if (!s->o->oracle) return;
    out_row("engine", "%s of %zu tokens, mode %s: %s calls in %s rounds%s", s->o->backend,
            s->o->oracle, pare_length_mode_name(s->length.mode), out_count(a, s->count.calls),
            out_count(b, s->length.rounds),
            s->length.simulated ? "" : " (it takes the whole input)");
    if (s->length.mode == PARE_LENGTH_SAMPLE)
        out_row("",
                "%s rows were computed exactly because no bound held for their sample, %s have "
                "no bound",
                out_count(a, s->length.exact_rows), out_count(b, s->length.unproven_rows));
    if (s->length.mode == PARE_LENGTH_CHUNK)
        out_row("", "each chunk attends to itself only: there is no error bound");
    if (s->length.bad_rows)
        out_row("", "%s of the calls repeat %s rows whose first result was too inaccurate",
                out_count(a, s->length.fallback_calls), out_count(b, s->length.bad_rows));
}

bool run_json_length(cJSON *root, const run_state *s)
{
    const pare_length_stats *const l = &s->length;
    const pare_oracle_count *const n = &s->count;
    return !s->o->oracle ||
           out_json_add_object(
               root, "engine",
               "backend:s tokens:z mode:s calls:z rounds:z longest:z bytes_in:z bytes_out:z "
               "fallback_calls:z bad_rows:z exact_rows:z unproven_rows:z",
               s->o->backend, s->o->oracle, pare_length_mode_name(l->mode), n->calls, l->rounds,
               (size_t)n->max_len, n->bytes_in, n->bytes_out, l->fallback_calls, l->bad_rows,
               l->exact_rows, l->unproven_rows);
}
