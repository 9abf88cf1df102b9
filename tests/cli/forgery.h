/* forgery.h - one certificate of each kind of cut, written by the command, and every change of each
 * of its fields (forge.h). */
#ifndef CLI_FORGERY_H
#define CLI_FORGERY_H
#include "../depth/depth_nets.h"
#include <command.h>
#include <forge.h>
#include "data/graph_data.h"
#include <pare/depth.h>
#include <pare/fold.h>
#include <pare/quant.h>
#include <pare/ticket.h>
#include <pare/width.h>

/* As src/plan/verify_file.c loads them. */
static inline pare_status forgery_load(pare_inputs *out, pare_arena *a, const pare_model *m,
                                       const char *path, const pare_data_opts *o, pare_files *files,
                                       pare_err *err)
{
    pare_dataset d = {0};
    const pare_status st = pare_dataset_load_files(&d, a, m, path, o, files, err);
    *out = d.inputs;
    return st;
}

typedef struct forgery_case {
    const char *name; /* of the certificate */
    const char *line; /* the command that writes it; OUT stands for the name */
} forgery_case;

/* Models and data first, then each certificate; those without a name are not forged. */
static const forgery_case forgery_cases[] = {
    {NULL, "data model --kind gpt --dim 4 --heads 2 --layers 1 --context 4 --vocab 6 --ffn 4 -o m"},
    {NULL,
     "data model --kind bert --dim 4 --heads 2 --layers 1 --context 6 --vocab 6 --ffn 4 -o b"},
    {NULL, "data model --kind graph --dim 4 --heads 1 --layers 1 -o g"},
    {NULL, "data random --count 40 --tokens 4 --vocab 6 --seed 3 -o t.npy"},
    {NULL, "data random --count 39 --tokens 6 --vocab 6 --seed 104 -o h.npy"},
    {NULL, "data random --count 20 --tokens 6 --vocab 6 --seed 5 -o u.npy"},
    {NULL, "data random --count 2 --tokens 3 --vocab 0 --width 4 -o v.npy"}, /* vectors */
    {NULL, "data minesweeper --side 4 --seed 1 -o a.npz"},
    {NULL, "data minesweeper --side 4 --seed 2 -o c.npz"},
    {"fold", "fold m -o OUT"},
    {"fold_graph", "fold g --data a.npz -o OUT"},
    {"width_exact", "width g --method exact --data a.npz -o OUT"},
    {"width_lowrank", "width g --method lowrank --dim 3 --data a.npz -o OUT"},
    {"width_leverage", "width g --method leverage --dim 3 --data a.npz -o OUT"},
    {"width_jl", "width g --method jl --qk-dim 2 --data a.npz -o OUT"},
    {"width_qk", "width g --method qk --qk-dim 2 --data a.npz -o OUT"},
    {"width_auto", "width g --method auto --dim 3 --data a.npz -o OUT"},
    {"width_near", "width g --method lowrank --dim 3 --data a.npz --heldout c.npz --ball 0.01 "
                   "--edits -o OUT"},
    {"text_auto", "width m --method auto --keep 0.8 --data t.npy -o OUT"},
    {"text_qk", "width m --method qk --qk-dim 1 --data t.npy -o OUT"},
    {"text_slice", "width m --method slice --dim 3 --data t.npy -o OUT"},
    {"text_svd", "width m --method svd --dim 3 -o OUT"},
    {"depth_ball", "depth m --kind uniform --layers 0 --ball 0.01 -o OUT"},
    {"depth_part", "depth m --kind affmix --layers 0 --data t.npy -o OUT"},
    {"depth_heldout", "depth b --kind affmix --layers 0 --data u.npy --heldout h.npy -o OUT"},
    {"depth_new", "depth b --kind uniform --layers 0 --data h.npy -o OUT"},
    {"depth_diam", "depth skip --kind uniform --layers 0 --input-diam 0.25 --data v.npy -o OUT"},
    {"depth_bare", "depth bare --kind uniform --layers 0 --input-diam 0.25 --ball 0.1 --data v.npy "
                   "-o OUT"},
    {"one_layer", "depth skip --one-layer uniform --ball 0.01 --data v.npy -o OUT"},
    {"ticket", "ticket m --bits 12 --allow-larger -o OUT"},
    {"ticket_graph", "ticket g --bits 12 --data a.npz --allow-larger -o OUT"},
    {"quant", "quant m --bits 4 --group 2 --allow-larger -o OUT"},
    {"quant_new", "quant b --bits 4 --group 4 --data u.npy --heldout h.npy --allow-larger -o OUT"},
    {"quant_graph", "quant g --bits 3 --affine --data a.npz --allow-larger -o OUT"},
    {NULL, "depth fold --kind uniform --layers 0 -o d2"},
    {NULL, "fold b --data h.npy -o fb"},
    {NULL, "depth fb --kind uniform --layers 0 --data h.npy -o d3"},
    {"chain_random", "compose fold.cert.json d2.cert.json -o OUT.cert.json"},
    {"chain_file", "compose fb.cert.json d3.cert.json -o OUT.cert.json"},
};
enum { FORGERY_CASES = sizeof forgery_cases / sizeof *forgery_cases };

static inline void forgery_nets(const char *dir)
{
    pare_err err = {0};
    for (int bare = 0; bare < 2; bare++) {
        pare_rng r = pare_rng_at(1, 0);
        const net_shape s = {
            .layers = 2, .heads = 1, .d = 4, .eta = .1, .beta = 1, .no_skip = bare != 0};
        char path[300];
        pare_model *const m = net_of(&r, &s);
        assert_ok(
            pare_model_save(m, test_path(path, dir, bare ? "bare" : "skip"), false, NULL, &err),
            &err);
        pare_model_free(m);
    }
}

/* Every step-th change of every certificate. */
static inline void forgery(size_t step, size_t first, bool print)
{
    char dir[200];
    pare_prover provers[4 + PARE_WIDTH_METHODS] = {pare_fold_prover, pare_depth_prover,
                                                   pare_ticket_prover, pare_quant_prover};
    memcpy(provers + 4, pare_width_provers, sizeof pare_width_provers);
    const pare_verify_opts opts = {.provers = provers,
                                   .nprovers = sizeof provers / sizeof *provers,
                                   .load = forgery_load,
                                   .evidence = true};
    size_t tried = 0, survived[FORGE_CLASSES] = {0}, broken = 0;
    test_mkdir(dir);
    forgery_nets(dir);
    for (size_t i = 0; i < FORGERY_CASES; i++) {
        const forgery_case *const c = &forgery_cases[i];
        char line[400], cert[300], file[100];
        const char *const out = strstr(c->line, "OUT");
        snprintf(line, sizeof line, "%.*s%s%s", (int)(out ? out - c->line : 300), c->line,
                 out ? c->name : "", out ? out + 3 : "");
        command(dir, "%s", line);
        if (!c->name) continue;
        snprintf(file, sizeof file, "%s.cert.json", c->name);
        forge f = {.print = print};
        forge_all(&f, test_path(cert, dir, file), &opts, step, first + i);
        print_message("%-15s %5zu changes, %5zu refused;", c->name, f.tried, f.refused);
        for (size_t k = 0; k < FORGE_CLASSES; k++) {
            print_message(" %s %zu", forge_class_names[k], f.survived[k]);
            survived[k] += f.survived[k];
        }
        print_message("\n");
        tried += f.tried;
        broken += f.broken;
    }
    print_message("all: %zu changes;", tried);
    for (size_t k = 0; k < FORGE_CLASSES; k++)
        print_message(" %s %zu", forge_class_names[k], survived[k]);
    print_message("\n");
    assert_int_equal(broken, 0);
    assert_true(survived[FORGE_WEAKER] * step > 300); /* what is true is not refused */
    test_rmdir(dir);
}
#endif
