/* main.c - pare-repro: the tables and figures of the papers, made again (`pare repro` calls it). */
#include "cli/interrupt.h"
#include "cli/out.h"
#include "study.h"

#include <string.h>

typedef struct repro_opts {
    opt_texts data;
    study_opts o;
} repro_opts;

static void note(void *self, const char *line)
{
    cli_note(self, "%s", line);
}

/* What is said when it is stopped, with -q too. */
static void state(void *self, const char *line)
{
    static char text[400];
    cli *const c = self;
    snprintf(text, sizeof text, "stopped: %s; the same command continues", line);
    c->stopped = text;
}

static pare_status print_json(cli *c, const study *r)
{
    cJSON *repro = NULL;
    const pare_status st = study_json(&repro, r, &c->err);
    if (st) return st;
    cJSON *root = out_json_begin(c);
    const bool ok = root && pare_json_add_string(root, "line", c->line) &&
                    cJSON_AddItemToObject(root, "repro", repro);
    if (!ok) cJSON_Delete(repro);
    return out_json(c, root, ok);
}

static pare_status show(cli *c, const study *r)
{
    char *text = NULL;
    pare_status st = study_write(r, &c->err);
    cli_bar_end(c);
    if (!st && c->json) return print_json(c, r);
    if (!st) st = study_text(&text, c->arena, r, &c->err);
    if (!st) out_lines(text);
    if (!st)
        out_row("files", "%s/{tables.txt,tables.json,%sruns/}", r->folder,
                r->ncurves  ? "curves.csv,curves.svg,"
                : r->figure ? "figure.csv,figure.svg,"
                            : "");
    return st;
}

/* ---- all of them on one page ----------------------------------------------------------------- */

static pare_status write_page(cli *c, const study_set *all, const char *page)
{
    const char *file[STUDIES];
    pare_report_opts o = PARE_REPORT_OPTS_DEFAULT;
    o.title = "The four papers, made again";
    o.overwrite = true;
    for (size_t i = 0; i < all->n; i++) {
        file[i] = cli_suffixed(c, all->study[i]->folder, "/tables.json");
        if (!file[i]) return PARE_ERR_MEMORY;
    }
    return pare_report_write(page, file, all->n, &o, &c->err);
}

static pare_status print_all_json(cli *c, const study_set *all, const char *page)
{
    cJSON *root = out_json_begin(c);
    cJSON *list = NULL;
    pare_status st = PARE_OK;
    bool ok = root && pare_json_add_string(root, "line", c->line) &&
              pare_json_add_string(root, "page", page) &&
              (list = pare_json_add_array(root, "repros"));
    for (size_t i = 0; ok && !st && i < all->n; i++) {
        cJSON *one = NULL;
        st = study_json(&one, all->study[i], &c->err);
        ok = !st && cJSON_AddItemToArray(list, one);
        if (!ok) cJSON_Delete(one);
    }
    return out_json(c, root, ok);
}

static pare_status show_all(cli *c, const study_set *all, const char *folder)
{
    char *text = NULL;
    const char *const page = cli_suffixed(c, folder, "/report.html");
    if (!page) return PARE_ERR_MEMORY;
    pare_status st = write_page(c, all, page);
    cli_bar_end(c);
    if (!st && c->json) return print_all_json(c, all, page);
    if (!st) st = study_set_summary(&text, c->arena, all, &c->err);
    if (!st) out_lines(text);
    if (!st) out_row("page", "%s", page);
    if (!st) out_row("files", "%s/*/{tables.txt,tables.json,*.csv,*.svg,runs/}", folder);
    return st;
}

static pare_status make_all(cli *c, const study_opts *o, pare_ranks *ranks)
{
    study_set all;
    size_t runs = 0, found = 0;
    pare_status st = run_all_studies(&all, o, &c->exec, ranks, &c->err);
    for (size_t i = 0; !st && i < all.n; i++)
        runs += all.study[i]->jobs, found += all.study[i]->found;
    if (!st && pare_ranks_rank(ranks) == 0) {
        cli_note(c, "%zu runs, %zu of them were there already", runs, found);
        st = show_all(c, &all, o->folder);
    }
    study_set_free(&all);
    return st;
}

/* ---- one of them ----------------------------------------------------------------------------- */

static pare_status make_one(cli *c, const study_kind *kind, const study_opts *o, pare_ranks *ranks)
{
    study *r = NULL;
    pare_status st = check_parts(kind, o->only, &c->err);
    if (!st) st = run_study(&r, kind, o, &c->exec, ranks, &c->err);
    if (!st && pare_ranks_rank(ranks) == 0) {
        cli_note(c, "%zu runs, %zu of them were there already", r->jobs, r->found);
        st = show(c, r);
    }
    study_free(r);
    return st;
}

static const char *const studies[] = {"all", "width", "depth", "ticket", "length", "errata", NULL};

/* What the study (NULL: all of them) would not look at is not taken in silence. */
static pare_status check_options(cli *c, const study_kind *s, const repro_opts *o)
{
    const char *const name = s ? s->name : "all";
    const bool made = strcmp(name, "length") == 0 || strcmp(name, "errata") == 0;
    pare_status st = cli_only(c, "large,runs,side", !s || s->boards, "repro width and repro all");
    if (!st) st = cli_only(c, "epochs", !s || s->trains, "studies that train a model");
    if (!st)
        st = cli_only(c, "model", !s || strcmp(name, "depth") == 0, "repro depth and repro all");
    if (!st && o->data.n && made)
        st = pare_fail(&c->err, PARE_ERR_USAGE,
                       "--data has no effect here: repro %s makes all its inputs itself", name);
    return st;
}

static pare_status repro(cli *c, void *self, pare_ranks *ranks)
{
    repro_opts *const o = self;
    const char *const name = c->operand[0];
    const study_kind *const which = find_study(name);
    size_t at;
    pare_status st = cli_choose(c, &at, "study", name, studies);
    if (!st) st = check_options(c, which, o);
    for (size_t i = 0; i < o->data.n && !st; i++) st = cli_is_there(c, o->data.v[i]);
    if (!st) st = cli_is_there(c, o->o.model);
    if (st) return st;
    o->o.folder = c->out ? c->out : cli_suffixed(c, "repro-", name);
    if (!o->o.folder) return PARE_ERR_MEMORY;
    o->o.data = o->data.v;
    o->o.ndata = o->data.n;
    o->o.seed = c->seed;
    o->o.again = c->force;
    o->o.note = note;
    o->o.state = state;
    o->o.self = c;
    return which ? make_one(c, which, &o->o, ranks) : make_all(c, &o->o, ranks);
}

static int run(int argc, char **argv)
{
    repro_opts o = {.o = STUDY_OPTS_DEFAULT};
    /* clang-format off */
    const opt own[] = {
        {.name = "full", .kind = OPT_FLAG, .to = &o.o.full, .group = "How much",
         .help = "at the paper's size: width trains 20 large and 100 small models and the grid of "
                 "hyperparameters, the others draw more; takes hours"},
        {.name = "only", .kind = OPT_TEXT, .to = &o.o.only, .metavar = "LIST", .unset = "all parts",
         .help = "only these parts of a study, as in orders,rank; a wrong name lists them"},
        {.name = "large", .kind = OPT_SIZE, .to = &o.o.large, .metavar = "N", .min = 1, .max = 10000, .rare = true,
         .unset = "1 or 2 by graph; 20 with --full", .help = "width: training runs of the model with 64 dimensions"},
        {.name = "runs", .kind = OPT_SIZE, .to = &o.o.small, .metavar = "N", .min = 1, .max = 10000, .rare = true,
         .unset = "4 or 6 by graph; 100 with --full", .help = "width: training runs of the model with 4 dimensions"},
        {.name = "epochs", .kind = OPT_SIZE, .to = &o.o.epochs, .metavar = "N", .min = 1, .max = 1u << 20, .rare = true,
         .unset = "as the papers train", .help = "at most so many epochs in every training"},
        {.name = "data", .kind = OPT_TEXTS, .to = &o.data, .metavar = "FILE", .group = "On what",
         .unset = "generated", .help = "width and all: graphs (.npz), may be repeated; depth: data of --model; "
                                       "ticket: a text to train on"},
        {.name = "model", .kind = OPT_TEXT, .to = &o.o.model, .metavar = "MODEL", .rare = true,
         .unset = "a small one is trained", .help = "depth: the trained model to study"},
        {.name = "side", .kind = OPT_SIZE, .to = &o.o.side, .metavar = "N", .min = 4, .max = 1000, .rare = true,
         .help = "width: the generated Minesweeper board has N x N cells"},
    };
    static const char *const operands[] = {"STUDY", NULL};
    const opt_spec spec = {
        .command = "repro",
        .args = "all|width|depth|ticket|length|errata [-o DIR]",
        .about = "Makes the tables and figures of the four papers again, ours beside theirs\n"
                 "(docs/papers.md names them). errata: what is false, loose or imprecise as\n"
                 "printed. all: everything on one page, DIR/report.html. Finished runs are kept in\n"
                 "DIR: after an interrupt the same command continues; under mpirun the processes\n"
                 "share the runs.",
        .examples = {"repro errata", "repro all -o out"},
        .seeded = true,
        .own = own,
        .nown = sizeof own / sizeof *own,
        .operands = operands,
        .words = studies,
    };
    /* clang-format on */
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MAY_OUT,
                   "the folder of tables, figures and runs; default: repro-STUDY", argc, argv, &rc))
        return rc;
    return cli_ranked(&c, repro, &o);
}

int main(int argc, char **argv)
{
    interrupt_file_size();
    return cli_end(run(argc - 1, argv + 1));
}
