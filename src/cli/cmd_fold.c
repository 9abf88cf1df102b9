/* pare fold: the same function written with less, with its certificate. */
#include "show_cut.h"

#include <math.h>

typedef struct fold_opts {
    size_t split;
    reduction r;
    pare_fold_report report;
} fold_opts;

static void print_people(const cli *c, const pare_model *m, const void *self)
{
    const fold_opts *const o = self;
    const pare_fold_report *const f = &o->report;
    char n[32];
    (void)m;
    show_results(c, &o->r);
    out_row("cut",
            "norms folded into the maps around them: %zu; key biases dropped: %zu; value biases "
            "merged: %zu",
            f->norms, f->key_biases, f->value_biases);
    if (f->rounded)
        out_row("", "%s weights were rounded to f32 on the way", out_count(n, f->rounded));
    show_end(c, &o->r);
}

static bool json_folded(cJSON *to, const pare_fold_report *f)
{
    cJSON *o = pare_json_add_object(to, "folded");
    return o && pare_json_add_size(o, "norms", f->norms) &&
           pare_json_add_size(o, "key_biases", f->key_biases) &&
           pare_json_add_size(o, "value_biases", f->value_biases) &&
           pare_json_add_size(o, "rounded", f->rounded);
}

static pare_status print_json(cli *c, const void *self)
{
    const fold_opts *const o = self;
    cJSON *root = out_json_begin(c);
    return out_json(c, root,
                    reduce_json_front(root, &o->r) && json_folded(root, &o->report) &&
                        reduce_json_end(root, &o->r));
}

static pare_status cut(cli *c, void *self, const pare_model *m)
{
    fold_opts *const o = self;
    cert_inputs in;
    pare_model *folded = NULL;
    pare_status st = reduce_split_applies(c, m);
    if (!st) st = cli_inputs(c, &in, m, o->r.data, o->split);
    if (!st) st = pare_fold(&folded, &o->report, m, &c->err);
    cli_phase(c, NULL, 92);
    if (!st) st = reduce_publish(c, &o->r, m, &folded, &in, &pare_fold_prover);
    pare_model_free(folded);
    return st ? st : reduce_compare(c, &o->r, m, &in);
}

int cmd_fold(int argc, char **argv)
{
    fold_opts o = {.r.max_error = INFINITY};
    char usual[32];
    snprintf(usual, sizeof usual, "%d random inputs", CLI_RANDOM_INPUTS);
    const opt own[] = {
        opt_data(&o.r.data, "inputs that the certificate is proven on", usual),
        opt_split(&o.split),
        REDUCE_MAX_ERROR(o.r.max_error, ""),
    };
    static const char *const operands[] = {"MODEL", NULL};
    const opt_spec spec = {
        .command = "fold",
        .args = "MODEL [--data FILE] -o OUT",
        .about =
            "Writes the same function with fewer weights: folds norms into the maps around\n"
            "them, drops key biases and merges value biases, where that is exact. Writes OUT,\n"
            "OUT.cert.json (the proven cost of rounding) and OUT.run.json (sizes and times).",
        .examples =
            {"fold model.safetensors -o folded.safetensors",
             "fold gt.safetensors --data graph.npz --max-error 1e-3 -o gt.folded.safetensors"},
        .seeded = true,
        .own = own,
        .nown = sizeof own / sizeof *own,
        .operands = operands,
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MUST_OUT, REDUCE_OUT_HELP, argc, argv, &rc)) return rc;
    const reduce_steps steps = {NULL, cut, print_people, print_json};
    return cli_finish(&c, reduce_run(&c, &o.r, &steps, &o));
}
