/* cmd_fold.c - pare fold: the same function written with less, with its certificate. */
#include "reduce_command.h"
#include "show_cut.h"

#include <math.h>

static void print_shared(const pare_reduction *r)
{
    const pare_share_report *const s = &r->shared;
    char n[32], all[32], kept[32];
    out_row("cut", "%s of %s tokens share one row of the embedding", out_count(n, s->shared),
            out_count(all, s->rows));
    out_row("", "rows within %.3g of it%s; the farthest that became it: %.3g", s->limit,
            s->found ? ", where their distances have a gap" : "", s->farthest);
    if (s->kept)
        out_row("", "%s near tokens keep their rows, because they occur in the data",
                out_count(kept, s->kept));
}

static void print_text(const cli *c, const void *self)
{
    const reduction *const own = self;
    const pare_reduction *const r = &own->r;
    const pare_fold_report *const f = &r->fold;
    char n[32];
    show_results(c, r);
    if (own->o.share_rows) {
        print_shared(r);
        show_end(c, r);
        return;
    }
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
    const reduction *const own = self;
    const pare_reduction *const r = &own->r;
    const pare_fold_report *const f = &r->fold;
    const pare_share_report *const s = &r->shared;
    cJSON *const root = out_json_begin(c);
    bool ok = reduce_json_front(root, r);
    if (own->o.share_rows)
        ok = ok && pare_json_add_record(root, "shared_rows",
                                        "rows:z shared:z kept:z limit:g found:b farthest:g",
                                        s->rows, s->shared, s->kept, s->limit, s->found,
                                        s->farthest);
    else
        ok = ok && pare_json_add_record(root, "folded",
                                        "norms:z key_biases:z value_biases:z rounded:z", f->norms,
                                        f->key_biases, f->value_biases, f->rounded);
    return out_json(c, root, ok && reduce_json_end(root, r));
}

static pare_status check_options(cli *c, void *self)
{
    reduction *const r = self;
    if (cli_given(c, "distance") && !r->o.share_rows)
        return cli_usage_error(c, "--distance goes with --share-rows");
    if (r->o.share_rows && r->dtype)
        return cli_usage_error(c, "--dtype rounds all weights, and --share-rows changes none but "
                                  "rows of the embedding: run pare fold once more for it");
    return PARE_OK;
}

int cmd_fold(int argc, char **argv)
{
    reduction r = {.o = PARE_REDUCE_OPTS_DEFAULT(PARE_REDUCE_FOLD)};
    char usual[32];
    r.o.share_distance = -1;
    snprintf(usual, sizeof usual, "%d random inputs", PARE_RANDOM_INPUTS);
    const opt own[] = {
        opt_data(&r.o.data, "inputs that the certificate is proven on", usual),
        opt_split(&r.o.split),
        opt_column(&r.o.column),
        {.name = "share-rows", .kind = OPT_FLAG, .to = &r.o.share_rows,
         .help = "fold nothing: give tokens whose embedding rows are nearly the same (dead "
                 "vocabulary) one row; tokens of --data keep theirs"},
        {.name = "distance", .kind = OPT_REAL, .to = &r.o.share_distance, .metavar = "D",
         .unset = "before a gap in the distances", .high = 1e30,
         .help = "share the rows that are within D (euclidean) of the closest group of rows"},
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
            "them, drops key biases and merges value biases, where that is exact. With --share-rows\n"
            "it cuts: tokens of dead vocabulary get one row of the embedding. Writes OUT,\n"
            "OUT.cert.json (the proven cost of rounding) and OUT.run.json (sizes and times).",
        .examples =
            {"fold model.safetensors -o folded.safetensors",
             "fold gt.safetensors --data graph.npz --max-error 1e-3 -o gt.folded.safetensors"},
        .seeded = true,
        OPT_ROWS(own),
        .operands = (const char *const[]){"MODEL", NULL},
    };
    static const reduce_steps steps = {check_options, reduce_split_applies, print_text, print_json};
    return reduce_command(&spec, argc, argv, &r, &steps, &r);
}
