/* pare fold: the same function written with less, with its certificate. */
#include "evaluate.h"
#include "out.h"

#include <math.h>
#include <string.h>

typedef struct fold_opts {
    const char *data;
    size_t split;
    double max_error;
} fold_opts;

typedef struct fold_result {
    pare_fold_report report;
    pare_cert cert;
    const char *cert_path, *run_path;
    facts before, after;
    double ms_before, ms_after, ms_reduction;
    bool has_metric;
    evaluation metric_before, metric_after;
} fold_result;

/* ---- results ------------------------------------------------------------------------------- */

static void print_people(const cli *c, const fold_result *r)
{
    char n[32];
    out_row("folded", "norms %zu, key biases %zu, value biases %zu; weights rounded %s",
            r->report.norms, r->report.key_biases, r->report.value_biases,
            out_count(n, r->report.rounded));
    out_tiers(&r->cert, c->verbose);
    out_before_after(&r->before, &r->after, r->ms_before, r->ms_after);
    if (r->has_metric)
        out_row(r->metric_before.metric, "%18.6g %18.6g", r->metric_before.value,
                r->metric_after.value);
    out_row("model", "%s", r->after.path);
    out_row("certificate", "%s", r->cert_path);
}

static bool json_times(cJSON *to, const fold_result *r)
{
    cJSON *o = pare_json_add_object(to, "time_ms");
    return o && pare_json_add_number(o, "before", r->ms_before) &&
           pare_json_add_number(o, "after", r->ms_after) &&
           pare_json_add_number(o, "reduction", r->ms_reduction);
}

static bool json_folded(cJSON *to, const pare_fold_report *f)
{
    cJSON *o = pare_json_add_object(to, "folded");
    return o && pare_json_add_size(o, "norms", f->norms) &&
           pare_json_add_size(o, "key_biases", f->key_biases) &&
           pare_json_add_size(o, "value_biases", f->value_biases) &&
           pare_json_add_size(o, "rounded", f->rounded);
}

static bool json_metric(cJSON *to, const fold_result *r)
{
    if (!r->has_metric) return true;
    cJSON *o = pare_json_add_object(to, "metric");
    return o && pare_json_add_string(o, "name", r->metric_before.metric) &&
           pare_json_add_number(o, "before", r->metric_before.value) &&
           pare_json_add_number(o, "after", r->metric_after.value);
}

static pare_status print_json(cli *c, const fold_result *r)
{
    cJSON *root = out_json_begin(c);
    return out_json(c, root,
                    root && out_json_facts(root, "input", &r->before) &&
                        out_json_facts(root, "output", &r->after) &&
                        out_json_cert(root, r->cert_path, &r->cert) &&
                        json_folded(root, &r->report) && json_metric(root, r) &&
                        json_times(root, r));
}

/* Times and host facts: what the certificate must not hold. */
static pare_status write_run_file(cli *c, const fold_result *r)
{
    cJSON *root = out_json_begin(c);
    char *text = NULL;
    pare_out *out = NULL;
    pare_status st = root && json_times(root, r) ? PARE_OK : pare_no_memory(&c->err);
    if (!st) st = pare_json_print(&text, NULL, c->arena, root, 2, &c->err);
    cJSON_Delete(root);
    if (!st) st = pare_out_open(&out, r->run_path, c->force, &c->err);
    if (st) return st;
    st = pare_out_printf(out, &c->err, "%s\n", text);
    if (!st) return pare_out_commit(out, &c->err);
    pare_out_abort(out);
    return st;
}

/* ---- the cut ------------------------------------------------------------------------------- */

static pare_status may_write_all(cli *c, const fold_opts *o, fold_result *r)
{
    r->cert_path = cli_suffixed(c, c->out, ".cert.json");
    r->run_path = cli_suffixed(c, c->out, ".run.json");
    if (!r->cert_path || !r->run_path) return PARE_ERR_MEMORY;
    pare_status st = cli_may_write(c, c->out, c->operand[0]);
    if (!st) st = cli_may_write(c, c->out, o->data);
    if (!st) st = cli_may_write(c, r->cert_path, NULL);
    if (!st) st = cli_may_write(c, r->run_path, NULL);
    return st;
}

static pare_status cut(cli *c, const fold_opts *o, fold_result *r, const pare_model *m,
                       const cert_inputs *in)
{
    pare_model *folded = NULL;
    const double start = pare_seconds();
    pare_status st = pare_fold(&folded, &r->report, m, &c->err);
    const pare_publish_opts p = {
        .in_path = c->operand[0],
        .out_path = c->out,
        .overwrite = c->force,
        .max_error = o->max_error,
        .seed = c->seed,
        .data_path = in->path,
        .split = in->split,
        .tokens = in->tokens,
        .set = &in->set,
        .prover = &pare_fold_prover,
        .exec = &c->exec,
    };
    if (!st) st = pare_publish(&r->cert, c->arena, m, &folded, &p, &c->err);
    pare_model_free(folded);
    r->ms_reduction = 1e3 * (pare_seconds() - start);
    return st;
}

/* The f32 engine may overflow where the proof does not need it: then there is no metric to show,
 * but the model and its certificate stand. */
static pare_status metric(cli *c, fold_result *r, const pare_model *m, const pare_model *g,
                          const cert_inputs *in)
{
    pare_status st = evaluate(c, &r->metric_before, m, &in->data, false, NULL, NULL, NULL);
    if (!st) st = evaluate(c, &r->metric_after, g, &in->data, false, NULL, NULL, NULL);
    r->has_metric = !st;
    if (st != PARE_ERR_NONFINITE) return st;
    cli_note(c, "no metric: %s", c->err.msg);
    return PARE_OK;
}

/* Sizes, times and the metric of what is on the disk now. */
static pare_status compare(cli *c, fold_result *r, const pare_model *m, const cert_inputs *in)
{
    pare_model *g = NULL;
    const pare_input *one = &in->set.in[0];
    pare_status st = cli_load(c, &g, c->out);
    if (!st) st = cli_facts(c, &r->before, c->operand[0], m, one, false);
    if (!st) st = cli_facts(c, &r->after, c->out, g, one, false);
    if (!st) st = cli_time_ms(c, &r->ms_before, &r->ms_after, m, g, one);
    if (!st && in->path) st = metric(c, r, m, g, in);
    memcpy(r->before.sha256, r->cert.input.sha256, PARE_SHA256_HEX);
    memcpy(r->after.sha256, r->cert.output.sha256, PARE_SHA256_HEX);
    pare_model_free(g);
    return st;
}

static pare_status fold(cli *c, const fold_opts *o)
{
    fold_result r = {0};
    cert_inputs in;
    pare_model *m = NULL;
    pare_status st = may_write_all(c, o, &r);
    if (!st) st = cli_load(c, &m, c->operand[0]);
    if (!st) st = cli_inputs(c, &in, m, o->data, o->split);
    if (!st) st = cut(c, o, &r, m, &in);
    if (!st) st = compare(c, &r, m, &in);
    if (!st) st = write_run_file(c, &r);
    if (c->bar.drawn) pare_bar_clear(&c->bar);
    if (!st && c->json)
        st = print_json(c, &r);
    else if (!st)
        print_people(c, &r);
    pare_model_free(m);
    return st;
}

int cmd_fold(int argc, char **argv)
{
    fold_opts o = {.max_error = INFINITY};
    char usual[32];
    snprintf(usual, sizeof usual, "%d random ones", CLI_RANDOM_INPUTS);
    const opt own[] = {
        {.name = "data",
         .kind = OPT_TEXT,
         .to = &o.data,
         .metavar = "D",
         .help = "inputs of the certificate",
         .unset = usual},
        {.name = "split",
         .kind = OPT_SIZE,
         .to = &o.split,
         .metavar = "K",
         .help = "which split of a graph",
         .max = 1u << 20},
        {.name = "max-error",
         .kind = OPT_REAL,
         .to = &o.max_error,
         .metavar = "E",
         .help = "write nothing if the proven bound is larger",
         .low = 0,
         .high = INFINITY},
    };
    static const char *const operands[] = {"MODEL", NULL};
    const opt_spec spec = {
        .command = "fold",
        .args = "MODEL -o OUT [--data D] [--max-error E]",
        .about = "Writes the same function with less: norms folded into the maps around them, key\n"
                 "biases dropped, value biases merged, each only where that is exact. OUT comes\n"
                 "with OUT.cert.json (what its rounding costs, proven) and OUT.run.json (times).",
        .example = "fold model.safetensors -o folded.safetensors --max-error 1e-3",
        .own = own,
        .nown = sizeof own / sizeof *own,
        .operands = operands,
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MUST_OUT, "the model; its certificate goes beside it", argc, argv,
                   &rc))
        return rc;
    return cli_finish(&c, fold(&c, &o));
}
