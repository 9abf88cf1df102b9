/* What all cuts share on the command line (reduce.h). */
#include "bench.h"
#include "reduce.h"

#include <math.h>
#include <pare/outputs.h>
#include <string.h>
#include <sys/stat.h>

/* ---- results ------------------------------------------------------------------------------- */

static bool json_times(cJSON *to, const reduction *r)
{
    cJSON *o = pare_json_add_object(to, "time_ms");
    return o && pare_json_add_number(o, "before", r->ms_before) &&
           pare_json_add_number(o, "after", r->ms_after) &&
           (!r->time_attention || (pare_json_add_number(o, "attention_before", r->attn_before) &&
                                   pare_json_add_number(o, "attention_after", r->attn_after))) &&
           pare_json_add_number(o, "reduction", r->ms_reduction);
}

static bool json_metric(cJSON *to, const reduction *r)
{
    if (!r->has_metric) return true;
    cJSON *o = pare_json_add_object(to, "metric");
    return o && pare_json_add_string(o, "name", r->metric_before.metric) &&
           pare_json_add_number(o, "before", r->metric_before.value) &&
           pare_json_add_number(o, "after", r->metric_after.value) &&
           (r->task != PARE_TASK_TEXT ||
            (pare_json_add_number(o, "perplexity_before", r->metric_before.scores.perplexity) &&
             pare_json_add_number(o, "perplexity_after", r->metric_after.scores.perplexity))) &&
           pare_json_add_size(o, "counted", r->metric_before.scores.counted) &&
           pare_json_add_size(o, "inputs", r->metric_inputs) &&
           pare_json_add_bool(o, "held_out", r->held_out);
}

bool reduce_json_front(cJSON *root, const reduction *r)
{
    return root && out_json_facts(root, "input", &r->before) &&
           out_json_facts(root, "output", &r->after) && out_json_cert(root, r->cert_path, &r->cert);
}

/* Beside it a bound can be called vacuous. */
static bool json_largest(cJSON *root, const reduction *r)
{
    return isnan(r->largest_output) ||
           pare_json_add_number(root, "largest_output", r->largest_output);
}

bool reduce_json_end(cJSON *root, const reduction *r)
{
    return json_metric(root, r) && json_largest(root, r) && json_times(root, r);
}

/* What wrote it, and where its times were measured. */
static bool json_machine(cJSON *root)
{
    bench_machine m;
    bench_machine_look(&m);
    cJSON *const o = pare_json_add_string(root, "version", pare_version())
                         ? pare_json_add_object(root, "machine")
                         : NULL;
    return o && pare_json_add_string(o, "cpu", m.cpu) &&
           pare_json_add_size(o, "cores", (size_t)m.cores);
}

/* What the certificate must not hold: times, host facts, the command; and the sizes, so that a
 * report needs no model. */
static pare_status write_run_file(cli *c, const reduction *r)
{
    cJSON *root = out_json_begin(c);
    /* Folders too, by the hash that the certificate has: a report compares them. */
    facts before = r->before, after = r->after;
    memcpy(before.sha256, r->cert.input.sha256, sizeof before.sha256);
    memcpy(after.sha256, r->cert.output.sha256, sizeof after.sha256);
    const bool ok = root && pare_json_add_string(root, "line", c->line) && json_machine(root) &&
                    out_json_facts(root, "input", &before) &&
                    out_json_facts(root, "output", &after) && json_metric(root, r) &&
                    json_largest(root, r) && json_times(root, r);
    return out_json_file(c, root, ok, r->run_path);
}

/* ---- the way through ----------------------------------------------------------------------- */

static pare_status begin(cli *c, reduction *r)
{
    r->started = pare_seconds();
    r->from = c->operand[0];
    r->to = c->out;
    r->cert_path = cli_suffixed(c, c->out, ".cert.json");
    r->run_path = cli_suffixed(c, c->out, ".run.json");
    if (!r->cert_path || !r->run_path) return PARE_ERR_MEMORY;
    pare_status st = cli_may_write(c, c->out, c->operand[0]);
    if (!st) st = cli_may_write(c, c->out, r->data);
    if (!st) st = cli_may_write(c, r->cert_path, NULL);
    if (!st) st = cli_may_write(c, r->run_path, NULL);
    return st;
}

pare_status reduce_run(cli *c, reduction *r, const reduce_steps *s, void *o)
{
    pare_model *m = NULL;
    pare_status st = begin(c, r);
    if (!st && s->settle) st = s->settle(c, o);
    if (!st && !(r->files = pare_files_new())) st = pare_no_memory(&c->err);
    if (!st)
        st =
            cli_name(c, pare_model_load_files(&m, c->operand[0], r->files, &c->err), c->operand[0]);
    if (!st) st = s->cut(c, o, m);
    cli_bar_end(c);
    if (!st && c->json)
        st = s->json(c, o);
    else if (!st)
        s->people(c, m, o);
    pare_model_free(m);
    pare_files_free(r->files);
    return st;
}

pare_status reduce_split_applies(cli *c, const pare_model *m)
{
    return cli_only(c, "split", !m->stem.ids, "graphs, and this model takes tokens");
}

/* A long proof says so where there is no bar. The rate is of one core; a proof is some ten passes,
 * and one in double-double where that may be needed. */
static void announce(cli *c, const pare_model *f, const pare_model *g, const pare_inputs *set)
{
    const double long_time = 10, rate = 1.5e8;
    const double seconds = pare_passes_work(f, g, set) / rate / fmin((double)c->threads, 8);
    if (c->bar.tty || !(seconds > long_time)) return;
    cli_note(c, "proving on %zu input%s, which takes about %.0f %s", set->n, set->n == 1 ? "" : "s",
             seconds < 120 ? seconds : seconds / 60, seconds < 120 ? "seconds" : "minutes");
}

pare_status reduce_publish(cli *c, reduction *r, const pare_model *m, pare_model **out,
                           const cert_inputs *in, const pare_prover *prover)
{
    const pare_publish_opts p = {
        .in_path = r->from,
        .in_files = r->files,
        .out_path = r->to,
        .overwrite = c->force,
        .max_error = r->max_error,
        .seed = c->seed,
        .data_path = in->path,
        .data_sha256 = in->sha256,
        .split = in->split,
        .tokens = in->tokens,
        .part = in->part,
        .first = in->first,
        .set = &in->set,
        .new_inputs = r->new_inputs,
        .fitted = r->fitted,
        .fitted_tokens = r->fitted_tokens,
        .prover = prover,
        .ask = r->ask,
        .nask = r->nask,
        .exec = &c->exec,
    };
    announce(c, m, *out, &in->set);
    const pare_status st = pare_publish(&r->cert, c->arena, m, out, &p, &c->err);
    if (!st)
        c->stopped =
            "stopped before speed and quality were measured; the model and its certificate "
            "are written";
    r->ms_reduction = 1e3 * (pare_seconds() - r->started);
    if (!st && r->no_next) cli_note(c, "%s", r->no_next);
    if (st != PARE_ERR_PROMISE) return st;
    char proven[40];
    return pare_fail(&c->err, st,
                     "the proven bound is %s, larger than --max-error %g; nothing was written; cut "
                     "less or allow a larger error",
                     pare_ub_format(proven, pare_ub_exact(r->cert.proven), 3), r->max_error);
}

/* The quality of a text model is its loss in nats per token, in every command. */
static void in_nats(evaluation *e)
{
    if (strcmp(e->metric, "perplexity") != 0) return;
    e->metric = "nats";
    e->value = e->scores.nats;
}

/* The f32 engine may overflow where the proof does not need it: then there is no metric to show,
 * but the model and its certificate stand. */
static pare_status metric(cli *c, reduction *r, const pare_model *m, const pare_model *g,
                          const cert_inputs *in)
{
    pare_status st = evaluate(c, &r->metric_before, m, &in->data, false, NULL, NULL, NULL);
    if (!st) st = evaluate(c, &r->metric_after, g, &in->data, false, NULL, NULL, NULL);
    r->has_metric = !st;
    if (st == PARE_ERR_NONFINITE) {
        cli_note(c, "quality is not measured: %s", c->err.msg);
        return PARE_OK;
    }
    if (st) return st;
    in_nats(&r->metric_before);
    in_nats(&r->metric_after);
    r->task = in->data.task;
    r->metric_inputs = in->data.inputs.n;
    return PARE_OK;
}

/* What a bound is to be compared with: a model that always returns 0 is off by the largest output
 * and no more. */
static pare_status largest_output(cli *c, double *out, const pare_model *m, const pare_inputs *set)
{
    pare_status st = PARE_OK;
    double most = 0;
    for (size_t i = 0; !st && i < set->n; i++) {
        const pare_mark mark = pare_arena_mark(c->arena);
        const size_t n = pare_output_rows(m, &set->in[i]) * pare_model_outputs(m);
        float *const y = pare_alloc(c->arena, n, sizeof *y);
        st = y ? forward_floats(c, y, m, &set->in[i], false) : pare_no_memory(&c->err);
        for (size_t k = 0; !st && k < n; k++)
            most = isfinite(y[k]) ? fmax(most, fabs((double)y[k])) : NAN;
        pare_arena_reset(c->arena, mark);
        if (isnan(most)) break;
    }
    *out = st == PARE_ERR_NONFINITE ? NAN : most;
    return st == PARE_ERR_NONFINITE ? PARE_OK : st;
}

/* A folder is as large as the files that were read from it. */
static uint64_t folder_bytes(const pare_files *files)
{
    uint64_t sum = 0;
    struct stat one;
    for (size_t i = 0; files && i < pare_files_count(files); i++)
        if (stat(pare_files_path(files, i), &one) == 0) sum += (uint64_t)one.st_size;
    return sum;
}

/* Whether none of these is cut to its first tokens. */
static bool whole_inputs(const pare_inputs *set, const pare_inputs *all)
{
    bool whole = set->n <= all->n;
    for (size_t i = 0; whole && i < set->n; i++) whole = set->in[i].tokens == all->in[i].tokens;
    return whole;
}

/* What the printer and the JSON object say of both models beside their sizes. */
static pare_status look_at_both(cli *c, reduction *r, const pare_model *m, const pare_model *g,
                                const cert_inputs *in)
{
    if (r->before.file_bytes == 0) r->before.file_bytes = folder_bytes(r->files);
    cut_shape_of(&r->shape_before, m);
    cut_shape_of(&r->shape_after, g);
    r->rows = out_rows(m, &in->set);
    r->row_word = m->pattern.kind == PARE_GRAPH   ? "node"
                  : m->top.pool != PARE_POOL_NONE ? "input"
                                                  : "position";
    r->all_tokens = in->part && whole_inputs(&in->set, &in->data.inputs);
    r->no_splits = in->path && in->data.task != PARE_TASK_NODES;
    r->of_inputs = in->part && in->data.inputs.n > in->set.n ? in->data.inputs.n : 0;
    return largest_output(c, &r->largest_output, m, &in->set);
}

pare_status reduce_compare(cli *c, reduction *r, const pare_model *m, const cert_inputs *in)
{
    pare_model *g = NULL;
    double ms[2] = {NAN, NAN};
    const pare_input *one = &in->set.in[0];
    cli_phase(c, "measure speed and quality", 100); /* what is left of the bar */
    pare_status st = cli_load(c, &g, r->to);
    if (!st) st = cli_facts(c, &r->before, r->from, m, one, false);
    if (!st) st = cli_facts(c, &r->after, r->to, g, one, false);
    if (!st)
        st = pare_forward_ms(ms, (const pare_model *const[]){m, g}, 2, one, c->arena, &c->exec,
                             &c->err);
    r->ms_before = ms[0];
    r->ms_after = ms[1];
    if (!st && r->time_attention)
        st = cli_attention_ms(c, &r->attn_before, &r->attn_after, m, g, one);
    if (!st && in->path && has_targets(m, &in->data)) st = metric(c, r, m, g, in);
    if (!st) st = look_at_both(c, r, m, g, in);
    memcpy(r->before.sha256, r->cert.input.sha256, PARE_SHA256_HEX);
    memcpy(r->after.sha256, r->cert.output.sha256, PARE_SHA256_HEX);
    pare_model_free(g);
    return st ? st : write_run_file(c, r);
}
