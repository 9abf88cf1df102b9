/* pare repro: the tables and figures of the papers, made again. */
#include "out.h"

#include <string.h>

typedef struct repro_opts {
    opt_texts data;
    pare_repro_opts o;
} repro_opts;

static void note(void *self, const char *line)
{
    cli_note(self, "%s", line);
}

static pare_status print_json(cli *c, const pare_repro *r)
{
    cJSON *repro = NULL;
    const pare_status st = pare_repro_json(&repro, r, &c->err);
    if (st) return st;
    cJSON *root = out_json_begin(c);
    const bool ok = root && pare_json_add_string(root, "line", c->line) &&
                    cJSON_AddItemToObject(root, "repro", repro);
    if (!ok) cJSON_Delete(repro);
    return out_json(c, root, ok);
}

static pare_status show(cli *c, const pare_repro *r)
{
    char *text = NULL;
    pare_status st = pare_repro_write(r, &c->err);
    if (c->bar.drawn) pare_bar_clear(&c->bar);
    if (!st && c->json) return print_json(c, r);
    if (!st) st = pare_repro_text(&text, c->arena, r, &c->err);
    if (!st) fputs(text, stdout);
    if (!st)
        out_row("files", "%s/{tables.txt,tables.json,%s,runs/}", r->folder,
                r->ncurves ? "curves.csv,curves.svg" : "figure.csv,figure.svg");
    return st;
}

typedef struct study {
    const char *name, *folder;
    pare_status (*make)(pare_repro **out, const pare_repro_opts *o, const pare_exec *exec,
                        const pare_ranks *ranks, pare_err *err);
} study;
static const study studies[] = {{"width", "repro-width", pare_repro_width},
                                {"depth", "repro-depth", pare_repro_depth},
                                {"ticket", "repro-ticket", pare_repro_ticket},
                                {"length", "repro-length", pare_repro_length}};

static const study *study_of(const char *name)
{
    for (size_t i = 0; i < sizeof studies / sizeof *studies; i++)
        if (strcmp(studies[i].name, name) == 0) return &studies[i];
    return NULL;
}

static pare_status repro(cli *c, void *self, pare_ranks *ranks)
{
    repro_opts *const o = self;
    pare_repro *r = NULL;
    const study *const which = study_of(c->operand[0]);
    if (!which)
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "'%s': there are 'width', 'depth', 'ticket' and 'length'", c->operand[0]);
    o->o.folder = c->out ? c->out : which->folder;
    o->o.data = o->data.v;
    o->o.ndata = o->data.n;
    o->o.seed = c->seed;
    o->o.again = c->force;
    o->o.note = note;
    o->o.self = c;
    pare_status st = which->make(&r, &o->o, &c->exec, ranks, &c->err);
    if (!st && pare_ranks_rank(ranks) == 0) {
        cli_note(c, "%zu runs, %zu of them were there already", r->jobs, r->found);
        st = show(c, r);
    }
    pare_repro_free(r);
    return st;
}

int cmd_repro(int argc, char **argv)
{
    repro_opts o = {.o = PARE_REPRO_OPTS_DEFAULT};
    const opt own[] = {
        {.name = "data",
         .kind = OPT_TEXTS,
         .to = &o.data,
         .metavar = "G",
         .help = "width: graphs; depth: for the model; ticket: text",
         .unset = "generated"},
        {.name = "model",
         .kind = OPT_TEXT,
         .to = &o.o.model,
         .metavar = "M",
         .help = "depth: the trained model",
         .unset = "a small one is trained"},
        {.name = "full",
         .kind = OPT_FLAG,
         .to = &o.o.full,
         .help = "width: 20 + 100 runs, and the grid; others: more draws"},
        {.name = "large",
         .kind = OPT_SIZE,
         .to = &o.o.large,
         .metavar = "N",
         .help = "runs with D = 64",
         .unset = "2, 1, 2; full 20",
         .min = 1,
         .max = 10000},
        {.name = "runs",
         .kind = OPT_SIZE,
         .to = &o.o.small,
         .metavar = "N",
         .help = "runs with d = 4",
         .unset = "6, 4, 6; full 100",
         .min = 1,
         .max = 10000},
        {.name = "epochs",
         .kind = OPT_SIZE,
         .to = &o.o.epochs,
         .metavar = "N",
         .help = "at most, of each training",
         .unset = "as the recipes say",
         .min = 1,
         .max = 1u << 20},
        {.name = "side",
         .kind = OPT_SIZE,
         .to = &o.o.side,
         .metavar = "N",
         .help = "of the board that is generated",
         .min = 4,
         .max = 1000},
    };
    static const char *const operands[] = {"NAME", NULL};
    const opt_spec spec = {
        .command = "repro",
        .args = "width|depth|ticket|length [--data G]... [-o DIR]",
        .about = "Makes the tables and figures of the papers again, ours beside theirs. Runs are\n"
                 "kept in DIR: killed, the same command goes on; an mpirun shares them.",
        .example = "repro width --data tolokers.npz -o out",
        .own = own,
        .nown = sizeof own / sizeof *own,
        .operands = operands,
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MAY_OUT, "the folder (else repro-NAME)", argc, argv, &rc))
        return rc;
    return cli_ranked(&c, repro, &o);
}
