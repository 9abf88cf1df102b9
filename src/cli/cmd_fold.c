/* cmd_fold.c - pare fold: the same function written with less, with its certificate. */
#include "reduce_command.h"
#include "show_cut.h"

#include <math.h>

static void print_text(const cli *c, const void *self)
{
    const pare_reduction *const r = &((const reduction *)self)->r;
    const pare_fold_report *const f = &r->fold;
    char n[32];
    show_results(c, r);
    out_row("cut",
            "norms folded into the maps around them: %zu; key biases dropped: %zu; value biases "
            "merged: %zu",
            f->norms, f->key_biases, f->value_biases);
    if (f->rounded)
        out_row("", "%s weights were rounded to f32 on the way", out_count(n, f->rounded));
    show_end(c, r);
}

static pare_status print_json(cli *c, const void *self)
{
    const pare_reduction *const r = &((const reduction *)self)->r;
    const pare_fold_report *const f = &r->fold;
    cJSON *const root = out_json_begin(c);
    return out_json(
        c, root,
        reduce_json_front(root, r) &&
            pare_json_add_record(root, "folded", "norms:z key_biases:z value_biases:z rounded:z",
                                 f->norms, f->key_biases, f->value_biases, f->rounded) &&
            reduce_json_end(root, r));
}

int cmd_fold(int argc, char **argv)
{
    reduction r = {.o = PARE_REDUCE_OPTS_DEFAULT(PARE_REDUCE_FOLD)};
    char usual[32];
    snprintf(usual, sizeof usual, "%d random inputs", PARE_RANDOM_INPUTS);
    const opt own[] = {
        opt_data(&r.o.data, "inputs that the certificate is proven on", usual),
        opt_split(&r.o.split),
        opt_column(&r.o.column),
        REDUCE_PROVE(r.o.prove),
        REDUCE_TOKENS(r.o.proven_tokens),
        REDUCE_MAX_ERROR(r.o.max_error, ""),
        REDUCE_DTYPE(r.dtype),
        REDUCE_ANY_SHAPE(r.any_shape),
    };
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
        OPT_ROWS(own),
        .operands = (const char *const[]){"MODEL", NULL},
    };
    static const reduce_steps steps = {NULL, reduce_split_applies, print_text, print_json};
    return reduce_command(&spec, argc, argv, &r, &steps, &r);
}
