/* pare repro: the tables and figures of the papers, made again. */
#include "interrupt.h"
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

static void state(void *self, const char *line)
{
    (void)self; /* said with -q too */
    interrupt_says("repro", line);
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
    if (!st) out_lines(text);
    if (!st)
        out_row("files", "%s/{tables.txt,tables.json,%sruns/}", r->folder,
                r->ncurves  ? "curves.csv,curves.svg,"
                : r->figure ? "figure.csv,figure.svg,"
                            : "");
    return st;
}

/* ---- all of them on one page ----------------------------------------------------------------- */

static pare_status write_page(cli *c, const pare_repro_set *all, const char *page)
{
    const char *file[PARE_REPRO_STUDIES];
    const pare_report_opts o = {.title = "The four papers, made again", .overwrite = true};
    for (size_t i = 0; i < all->n; i++) {
        file[i] = cli_suffixed(c, all->study[i]->folder, "/tables.json");
        if (!file[i]) return PARE_ERR_MEMORY;
    }
    return pare_report_write(page, file, all->n, &o, &c->err);
}

static pare_status print_all_json(cli *c, const pare_repro_set *all, const char *page)
{
    cJSON *root = out_json_begin(c);
    cJSON *list = NULL;
    pare_status st = PARE_OK;
    bool ok = root && pare_json_add_string(root, "line", c->line) &&
              pare_json_add_string(root, "page", page) &&
              (list = pare_json_add_array(root, "repros"));
    for (size_t i = 0; ok && !st && i < all->n; i++) {
        cJSON *one = NULL;
        st = pare_repro_json(&one, all->study[i], &c->err);
        ok = !st && cJSON_AddItemToArray(list, one);
        if (!ok) cJSON_Delete(one);
    }
    return out_json(c, root, ok);
}

static pare_status show_all(cli *c, const pare_repro_set *all, const char *folder)
{
    char *text = NULL;
    const char *const page = cli_suffixed(c, folder, "/report.html");
    if (!page) return PARE_ERR_MEMORY;
    pare_status st = write_page(c, all, page);
    if (c->bar.drawn) pare_bar_clear(&c->bar);
    if (!st && c->json) return print_all_json(c, all, page);
    if (!st) st = pare_repro_summary(&text, c->arena, all, &c->err);
    if (!st) out_lines(text);
    if (!st) out_row("page", "%s", page);
    if (!st) out_row("files", "%s/*/{tables.txt,tables.json,*.csv,*.svg,runs/}", folder);
    return st;
}

static pare_status make_all(cli *c, const pare_repro_opts *o, pare_ranks *ranks)
{
    pare_repro_set all;
    size_t jobs = 0, found = 0;
    pare_status st = pare_repro_all(&all, o, &c->exec, ranks, &c->err);
    for (size_t i = 0; !st && i < all.n; i++)
        jobs += all.study[i]->jobs, found += all.study[i]->found;
    if (!st && pare_ranks_rank(ranks) == 0) {
        cli_note(c, "%zu runs, %zu of them were there already", jobs, found);
        st = show_all(c, &all, o->folder);
    }
    pare_repro_set_free(&all);
    return st;
}

/* ---- one of them ----------------------------------------------------------------------------- */

static pare_status make_one(cli *c, const pare_repro_study *study, const pare_repro_opts *o,
                            pare_ranks *ranks)
{
    pare_repro *r = NULL;
    pare_status st = pare_repro_check(study, o->only, &c->err);
    if (!st) st = study->make(&r, o, &c->exec, ranks, &c->err);
    if (!st && pare_ranks_rank(ranks) == 0) {
        cli_note(c, "%zu runs, %zu of them were there already", r->jobs, r->found);
        st = show(c, r);
    }
    pare_repro_free(r);
    return st;
}

/* The first number that the study would not look at; NULL: there is none. */
static const char *unused_number(const pare_repro_study *s, const pare_repro_opts *o)
{
    const pare_repro_opts none = PARE_REPRO_OPTS_DEFAULT;
    if (!s->boards && o->large != none.large) return "large";
    if (!s->boards && o->small != none.small) return "runs";
    if (!s->boards && o->side != none.side) return "side";
    return !s->trains && o->epochs != none.epochs ? "epochs" : NULL;
}

/* What the study (NULL: all of them) would not look at is not taken in silence. */
static pare_status check_options(cli *c, const pare_repro_study *s, const repro_opts *o)
{
    const char *const name = s ? s->name : "all", *const number =
                                                      s ? unused_number(s, &o->o) : NULL;
    const bool depth = strcmp(name, "depth") == 0;
    if (number)
        return pare_fail(&c->err, PARE_ERR_USAGE, "--%s: repro %s does not look at it", number,
                         name);
    const bool made = strcmp(name, "length") == 0 || strcmp(name, "errata") == 0;
    if (o->data.n && made)
        return pare_fail(&c->err, PARE_ERR_USAGE, "--data: repro %s makes all its inputs", name);
    if (o->o.model && s && !depth)
        return pare_fail(&c->err, PARE_ERR_USAGE, "--model is for repro depth, not %s", name);
    return PARE_OK;
}

static pare_status repro(cli *c, void *self, pare_ranks *ranks)
{
    repro_opts *const o = self;
    const char *const name = c->operand[0];
    const pare_repro_study *const which = pare_repro_find(name);
    if (!which && strcmp(name, "all") != 0)
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "'%s': there are 'all', 'width', 'depth', 'ticket', 'length' and 'errata'",
                         name);
    const pare_status st = check_options(c, which, o);
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

int cmd_repro(int argc, char **argv)
{
    repro_opts o = {.o = PARE_REPRO_OPTS_DEFAULT};
    const opt own[] = {
        {.name = "data",
         .kind = OPT_TEXTS,
         .to = &o.data,
         .metavar = "G",
         .help = "width, all: graphs; depth: for the model; ticket: text",
         .unset = "generated"},
        {.name = "model",
         .kind = OPT_TEXT,
         .to = &o.o.model,
         .metavar = "M",
         .help = "depth: the trained model",
         .unset = "a small one is trained"},
        {.name = "only",
         .kind = OPT_TEXT,
         .to = &o.o.only,
         .metavar = "LIST",
         .help = "these parts alone: orders,rank,...",
         .unset = "all"},
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
        .args = "all|width|depth|ticket|length|errata [--data G]... [-o DIR]",
        .about =
            "Makes the tables and figures of the papers again, ours beside theirs; errata: what\n"
            "is false, loose or imprecise as printed, by class. all: on one page, "
            "DIR/report.html.\n"
            "Runs are kept in DIR: killed, the same command goes on; an mpirun shares them.",
        .examples = {"repro all --data tolokers.npz -o out"},
        .seeded = true,
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
