/* cmd_plan.c - pare plan: one budget, spent over the directions, explained and done. */
#include "backup_files.h"
#include "reduce_command.h"
#include "show_cut.h"
#include "warn_text.h"

#include "base/json.h"
#include <pare/cut.h>
#include <pare/plan.h>

#include <math.h>
#include <string.h>
#include <unistd.h>

enum {
    PLAN_WINDOWS = 64, /* inputs that cuts are fitted to */
    PLAN_SHOWN = 12    /* rows of the table; -v shows all */
};

/* Whatever is chosen, these are all the names it may take behind that of the model. */
static const char *const tails[] = {
    "",       ".cert.json",       ".run.json", ".chain.cert.json", ".chain.run.json",
    ".step1", ".step1.cert.json", ".step2",    ".step2.cert.json"};
enum { TAILS = sizeof tails / sizeof *tails };

typedef struct plan_opts {
    const char *data, *column, *directions;
    size_t split, max_bytes; /* 0: no such budget */
    size_t prove, proven_tokens;
    bool allow_larger;
    size_t dtype; /* an index into dtype_names */
    pare_plan_opts o;
    pare_heldout d;
    pare_plan plan;
    const pare_plan_try *chosen;
    const pare_files *files; /* that the model was read through */
    reduction r;             /* of the whole: from the model to -o */
} plan_opts;

/* ---- words ----------------------------------------------------------------------------------- */

static const char *try_words(char buf[160], const pare_plan_try *t)
{
    size_t at = 0;
    snprintf(buf, 160, "as it is");
    for (size_t i = 0; i < t->nsteps; i++) {
        char step[48];
        at += (size_t)snprintf(buf + at, 160 - at, "%s%s", i ? ", " : "",
                               pare_plan_step_name(step, &t->steps[i]));
    }
    return buf;
}

static void print_table(const cli *c, const plan_opts *o)
{
    char words[160], count[32];
    const size_t most = c->verbose ? o->plan.n : PLAN_SHOWN;
    const bool scored = o->plan.loss;
    char loss[32] = "";
    out_row("tried", "%zu cuts, the best first (error: the largest measured change of an output)",
            o->plan.n);
    if (scored) out_row("", "loss: %s", o->plan.loss);
    out_line("  %-44s %12s %10s %10s%s  %s", "cut", "bytes", "ms", "error",
             scored ? "       loss" : "", "budget");
    for (size_t i = 0; i < o->plan.n && i < most; i++) {
        const pare_plan_try *const t = &o->plan.tries[i];
        try_words(words, t);
        if (scored) snprintf(loss, sizeof loss, " %10.4f", t->loss);
        if (t->refused)
            out_line("  %-44s %s", words, t->refused);
        else if (t->over <= 1)
            out_line("  %-44s %12s %10.4g %10.4g%s  %s", words, out_count(count, t->bytes), t->ms,
                     t->error, loss, t == o->chosen ? "met, chosen" : "met");
        else
            out_line("  %-44s %12s %10.4g %10.4g%s  exceeded %.3gx", words,
                     out_count(count, t->bytes), t->ms, t->error, loss, t->over);
    }
    if (most < o->plan.n) out_line("  (%zu more with -v)", o->plan.n - most);
}

static pare_status print_json(cli *c, const plan_opts *o)
{
    cJSON *const root = out_json_begin(c);
    cJSON *const list = root ? pare_json_add_array(root, "tries") : NULL;
    bool ok = list != NULL;
    char words[160];
    for (size_t i = 0; ok && i < o->plan.n; i++) {
        const pare_plan_try *const t = &o->plan.tries[i];
        cJSON *const to = pare_json_add_object(list, NULL);
        ok = pare_json_add_values(to, "cut:s", try_words(words, t)) &&
             (t->refused ? pare_json_add_values(to, "refused:s", t->refused)
                         : pare_json_add_values(
                               to, "parameters:g bytes:g ms:g error:g loss:N fits:b over:g",
                               (double)t->parameters, (double)t->bytes, t->ms, t->error, t->loss,
                               t->over <= 1, t->over));
    }
    if (ok && o->chosen) {
        ok = pare_json_add_values(root, "chosen:s", try_words(words, o->chosen));
        if (ok && o->chosen->nsteps > 0)
            ok = reduce_json_front(root, &o->r.r) && reduce_json_end(root, &o->r.r);
    }
    return out_json(c, root, ok);
}

/* One line for each try, as it is made: it may take a while. */
static void note_try(void *self, const pare_plan_try *t)
{
    cli *const c = self;
    char words[160], count[32];
    if (c->bar.drawn) pare_bar_clear(&c->bar);
    try_words(words, t);
    if (t->refused)
        cli_note(c, "%s: %s", words, t->refused);
    else
        cli_note(c, "%s: %s bytes, %.3g ms, error %.3g", words, out_count(count, t->bytes), t->ms,
                 t->error);
}

/* ---- doing it -------------------------------------------------------------------------------- */

/* Where the model after step i goes: the last one to -o, the others beside it. */
static char *stage_path(cli *c, const pare_plan_try *t, size_t i)
{
    if (i + 1 == t->nsteps) return pare_strdup(c->arena, c->out);
    return pare_sprintf(c->arena, "%s.step%zu", c->out, i + 1);
}

/* One link, from file to file. `first`: from the model that the user has named. */
static pare_status make_step(cli *c, plan_opts *o, const pare_plan_step *s, bool first)
{
    pare_model *m = NULL, *small = NULL;
    const char *const from = o->r.o.from;
    pare_status st =
        first ? cli_load(c, &m, from) : cli_name(c, pare_model_load(&m, from, &c->err), from);
    o->r.r =
        (pare_reduction){.from = o->r.o.from, .to = o->r.o.to, .inputs = o->d, .output_error = NAN};
    o->r.o.prover = pare_plan_prover(s);
    cli_phase(c, "cut", 4);
    if (!st) st = pare_plan_make(&small, s, m, &o->d.fit, c->seed, &c->exec, &c->err);
    cli_phase(c, NULL, 4);
    if (!st) st = pare_reduce_publish(&o->r.r, c->arena, m, &small, &o->r.o, &c->exec, &c->err);
    pare_model_free(small);
    pare_model_free(m);
    return st;
}

static void begin_cut(cli *c, plan_opts *o)
{
    const bool folder = o->r.o.folder;
    o->r.c = c;
    o->r.o = (pare_reduce_opts){.from = c->operand[0],
                                .files = o->files,
                                .folder = folder,
                                .dtype = dtype_of(o->dtype),
                                .max_error = INFINITY,
                                .overwrite = c->force,
                                .allow_larger = true, /* the end of the chain is compared */
                                .seed = c->seed,
                                .started = pare_seconds(),
                                .event = reduce_on_event,
                                .self = &o->r};
}

/* The chain is made from the files on; what was promised is compared with what is true of them. */
static pare_status perform(cli *c, plan_opts *o, const pare_plan_try *t, const pare_model *m)
{
    char *certs[PARE_PLAN_DIRECTIONS];
    pare_reduction *const r = &o->r.r;
    const char *const whole =
        cli_suffixed(c, c->out, t->nsteps > 1 ? ".chain.cert.json" : ".cert.json");
    begin_cut(c, o);
    pare_status st = whole ? reduce_paths(&o->r, whole) : PARE_ERR_MEMORY;
    for (size_t i = 0; i < t->nsteps && !st; i++) {
        if (i > 0) o->r.o.from = o->r.o.to;
        if (i > 0) o->r.o.files = NULL;
        o->r.o.to = stage_path(c, t, i);
        certs[i] = o->r.o.to ? cli_suffixed(c, o->r.o.to, ".cert.json") : NULL;
        if (!certs[i]) return pare_no_memory(&c->err);
        st = make_step(c, o, &t->steps[i], i == 0);
        r->cert_path = whole;
    }
    if (st) return st;
    cli_phase(c, "measure speed and quality", 100); /* what is left of the bar */
    if (t->nsteps > 1) {
        o->r.o.started = 0;
        o->r.o.to = whole;
        o->r.o.files = o->files;
        st = pare_reduce_chain(r, c->arena, certs, t->nsteps, &o->r.o, &c->exec, &c->err);
    } else {
        r->held_out = o->d.apart;
        st = pare_reduce_measure(r, c->arena, m, &o->r.o, &c->exec, &c->err);
    }
    if (!st && r->no_metric) cli_note(c, "quality is not measured: %s", r->no_metric);
    return st ? st : reduce_write_run_file(&o->r);
}

/* Of a folder: all steps are made in memory, and one certificate is proven from the folder that came
 * in to the one that goes out. It is made beside its place, where it waits until it has kept its
 * promise. */
static pare_status perform_folder(cli *c, plan_opts *o, const pare_plan_try *t, const pare_model *m,
                                  const char *waiting)
{
    pare_model *small = NULL;
    pare_reduction *const r = &o->r.r;
    const char *const cert = cli_suffixed(c, waiting, "/pare.cert.json");
    begin_cut(c, o);
    o->r.o.to = waiting;
    o->r.o.overwrite = false;
    o->r.o.prover = pare_plan_prover(&t->steps[t->nsteps - 1]);
    *r = (pare_reduction){.from = o->r.o.from,
                          .to = waiting,
                          .inputs = o->d,
                          .held_out = o->d.apart,
                          .output_error = NAN};
    pare_status st = cert ? reduce_paths(&o->r, cert) : PARE_ERR_MEMORY;
    cli_phase(c, "cut", 4);
    for (size_t i = 0; i < t->nsteps && !st; i++) {
        pare_model *next = NULL;
        st = pare_plan_make(&next, &t->steps[i], small ? small : m, &o->d.fit, c->seed, &c->exec,
                            &c->err);
        pare_model_free(small);
        small = next;
    }
    cli_phase(c, NULL, 4);
    if (!st) st = pare_reduce_publish(r, c->arena, m, &small, &o->r.o, &c->exec, &c->err);
    pare_model_free(small);
    cli_phase(c, "measure speed and quality", 100);
    if (!st) st = pare_reduce_measure(r, c->arena, m, &o->r.o, &c->exec, &c->err);
    if (!st && r->no_metric) cli_note(c, "quality is not measured: %s", r->no_metric);
    /* From here on under the name that it will have. */
    const char *const run = o->r.run_path, *const place =
                                               cli_suffixed(c, c->out, "/pare.cert.json");
    r->to = r->after.path = c->out;
    if (!st && !place) st = PARE_ERR_MEMORY;
    if (!st) st = reduce_paths(&o->r, place);
    o->r.run_path = run;
    return st ? st : reduce_write_run_file(&o->r);
}

/* A clock varies: a cut that misses by less than this may yet meet the budget when it is made. */
#define PLAN_NEAR_MISS 1.05

static bool is_smaller(const pare_reduction *r)
{
    return pare_compare_files(r->before.file_bytes) ? r->after.file_bytes < r->before.file_bytes
                                                    : r->after.size.bytes < r->before.size.bytes;
}

static pare_status remove_files(cli *c, const plan_opts *o, const pare_plan_try *t)
{
    for (size_t k = 0; k < t->nsteps; k++) {
        const char *const path = stage_path(c, t, k);
        const char *const cert = path ? cli_suffixed(c, path, ".cert.json") : NULL;
        if (!cert) return pare_no_memory(&c->err);
        unlink(path);
        unlink(cert);
    }
    unlink(o->r.r.cert_path);
    unlink(o->r.run_path);
    return PARE_OK;
}

/* Down the list until one keeps its promise when it is done: proofs add a little to what was
 * measured. */
static pare_status perform_best(cli *c, plan_opts *o, const pare_model *m)
{
    const char *const waiting = o->o.folder ? cli_fresh(c, c->out) : NULL;
    const pare_plan_try *near = NULL; /* of what was done, or else of what was tried */
    const pare_reduction *const r = &o->r.r;
    double least = INFINITY;
    if (o->o.folder && !waiting) return PARE_ERR_MEMORY;
    for (size_t i = 0; i < o->plan.n && o->plan.tries[i].over <= PLAN_NEAR_MISS; i++) {
        const pare_plan_try *const t = &o->plan.tries[i];
        if (t->nsteps == 0 && t->over > 1) continue; /* the model itself: nothing changes it */
        o->chosen = t;
        if (t->nsteps == 0) return PARE_OK;
        if (waiting) pare_folder_remove(waiting);
        pare_status st = waiting ? perform_folder(c, o, t, m, waiting) : perform(c, o, t, m);
        /* Of the files on the disk: their proof or what was measured, their bytes, their pass timed
         * again. */
        const double error = o->o.seen ? r->cert.measured : r->cert.proven;
        const double over =
            st ? INFINITY : pare_plan_over(&o->o, error, r->after.file_bytes, r->ms_after);
        const bool kept = over <= 1 && (o->allow_larger || is_smaller(r));
        if (kept && waiting) st = pare_folder_move(waiting, c->out, c->force, &c->err);
        if (kept && !st) return PARE_OK;
        if (waiting)
            pare_folder_remove(waiting);
        else if (remove_files(c, o, t))
            return st ? st : PARE_ERR_MEMORY;
        c->stopped = NULL; /* nothing is left of it */
        if (st) return st;
        if (over < least) near = t;
        least = fmin(least, over);
    }
    o->chosen = NULL;
    if (!near && o->plan.fit < o->plan.n && !o->plan.tries[o->plan.fit].refused) {
        near = &o->plan.tries[o->plan.fit];
        least = near->over;
    }
    char words[160] = "nothing";
    if (near) try_words(words, near);
    return pare_fail(&c->err, PARE_ERR_PROMISE,
                     "no cut meets the budget; the nearest of the %zu that were tried is \"%s\", "
                     "which exceeds it %.3g times; nothing was written",
                     o->plan.n, words, least);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* "width,ticket" */
static pare_status read_directions(cli *c, plan_opts *o)
{
    const char *at = o->directions;
    if (!at) return PARE_OK;
    o->o.directions = 0;
    do {
        const size_t n = strcspn(at, ",");
        int direction = 0;
        while (direction < PARE_PLAN_DIRECTIONS &&
               (strlen(pare_plan_direction_names[direction]) != n ||
                strncmp(at, pare_plan_direction_names[direction], n) != 0))
            direction++;
        if (direction == PARE_PLAN_DIRECTIONS)
            return cli_usage_error(c,
                                   "--directions: '%.*s' is not a direction; give width, depth, "
                                   "ticket and quant, separated by commas",
                                   (int)n, at);
        o->o.directions |= 1u << direction;
        at += n;
    } while (*at++ == ',');
    return PARE_OK;
}

static pare_status check_options(cli *c, plan_opts *o)
{
    o->o.max_bytes = o->max_bytes ? o->max_bytes : UINT64_MAX;
    o->o.seed = c->seed;
    o->o.dtype = dtype_of(o->dtype);
    o->o.note = note_try;
    o->o.self = c;
    if (isinf(o->o.eps) && isinf(o->o.max_ms) && !o->max_bytes)
        return cli_usage_error(
            c, "a budget is needed: give --max-bytes B, --max-ms T or --max-error E");
    pare_status st = cli_only(c, "measured", isfinite(o->o.eps), "--max-error E");
    if (!st) st = read_directions(c, o);
    if (!st)
        st = cli_only(c, "mixtures",
                      o->o.mixtures == 0 || (o->o.directions & (o->o.directions - 1)) != 0,
                      "several directions in --directions");
    o->r.o.from = c->operand[0];
    o->r.o.data = o->data;
    reduce_choose_form(c, &o->r, o->r.any_shape);
    for (int d = PARE_PLAN_WEIGHTS; !st && d <= PARE_PLAN_QUANT; d++)
        if (o->r.o.folder && o->directions && o->o.directions >> d & 1)
            st = cli_usage_error(c,
                                 "-o %s: a %s is a file; leave it out of --directions, or give "
                                 "--any-shape and the name of a file",
                                 c->out,
                                 d == PARE_PLAN_QUANT ? "model of integers with scales" : "ticket");
    if (!st) st = cli_is_there(c, c->operand[0]);
    if (!st && o->r.o.folder) return reduce_may_write_folder(c, &o->r);
    if (!st) st = reduce_any_shape_applies(c, &o->r);
    /* Whatever will be chosen: nothing that is there now is written over. */
    for (size_t i = 0; !st && i < TAILS; i++) {
        const char *const path = cli_suffixed(c, c->out, tails[i]);
        st = path ? cli_may_write(c, path, c->operand[0]) : PARE_ERR_MEMORY;
        if (!st) st = cli_may_write(c, path, o->data);
    }
    return st;
}

static pare_status plan(cli *c, void *self)
{
    plan_opts *const o = self;
    const pare_heldout_opts limits = {.data = o->data,
                                      .seed = c->seed,
                                      .split = o->split,
                                      .column = o->column,
                                      .exec = &c->exec,
                                      .most_fitted = PLAN_WINDOWS,
                                      .prove = o->prove ? o->prove : PARE_HELDOUT_INPUTS,
                                      .proven_tokens = o->proven_tokens};
    pare_model *m = NULL;
    pare_files *const files = pare_files_new();
    pare_status st = files ? check_options(c, o) : pare_no_memory(&c->err);
    if (!st) st = cli_load_files(c, &m, c->operand[0], files);
    if (!st) st = reduce_split_applies(c, NULL, m);
    if (!st) st = pare_heldout_load(&o->d, c->arena, m, &limits, &c->err);
    if (!st && o->data) warn_text(c, o->data, &o->d.held.data.notes);
    if (!st) {
        o->files = o->o.files = files;
        o->o.folder = o->r.o.folder ? c->operand[0] : NULL;
        o->o.scored = o->d.held.path ? &o->d.held.data : NULL;
        cli_phase(c, NULL, 85);
        st = pare_plan_search(&o->plan, c->arena, m,
                              &(pare_input_split){.fit = &o->d.fit, .heldout = &o->d.held.set},
                              &o->o, &c->exec, &c->err);
    }
    if (!st) { /* an error, or a model that is good as it is, leaves everything as it was */
        backup old;
        const size_t most = o->o.folder ? 0 : TAILS; /* a folder is exchanged in one step */
        st = backup_begin(c, &old, tails, most);
        if (!st) st = perform_best(c, o, m);
        const pare_status ended = backup_end(c, &old, st || o->chosen->nsteps == 0);
        if (!st) st = ended;
    }
    pare_model_free(m);
    pare_files_free(files);
    cli_bar_end(c);
    if (st && st != PARE_ERR_PROMISE) return reduce_reword(c, st);
    const pare_err why = c->err;
    if (c->json) {
        const pare_status printed = print_json(c, o);
        return printed ? printed : (c->err = why, st);
    }
    if (!st && o->chosen->nsteps == 0) {
        out_row("result", "the model meets the budget as it is; nothing is written: use %s itself",
                c->operand[0]);
        if (isinf(o->o.eps)) out_row("", "(--max-error E finds the smallest file within an error)");
        if (o->plan.n > 1) print_table(c, o);
        return st;
    }
    char words[160];
    if (!st) show_results(c, &o->r.r);
    if (!st) show_shapes(&o->r.r, try_words(words, o->chosen));
    print_table(c, o);
    if (!st) show_end(c, &o->r.r);
    return st;
}

int cmd_plan(int argc, char **argv)
{
    plan_opts o = {.o = PARE_PLAN_OPTS_DEFAULT, .proven_tokens = PARE_PROVEN_TOKENS};
    char usual[32];
    snprintf(usual, sizeof usual, "%d random inputs", PARE_RANDOM_INPUTS);
    opt data = opt_data(&o.data, "inputs that cuts are fitted to, measured and proven on", usual);
    data.group = "Data";
    /* clang-format off */
    const opt own[] = {
        {.name = "max-bytes", .kind = OPT_SIZE, .to = &o.max_bytes, .metavar = "B", .unset = "any", .min = 1, .max = SIZE_MAX, .group = "Budget",
         .help = "largest file, e.g. 200k or 10M; the cut with the smallest loss wins, without labels that with the smallest error"},
        {.name = "max-ms", .kind = OPT_REAL, .to = &o.o.max_ms, .metavar = "T", .unset = "any", .high = INFINITY,
         .help = "longest time of one pass on this machine, in ms; the same cut wins"},
        {.name = "max-error", .kind = OPT_REAL, .to = &o.o.eps, .metavar = "E", .unset = "any", .high = INFINITY,
         .help = "largest proven change of an output; the smallest file wins"},
        {.name = "measured", .kind = OPT_FLAG, .to = &o.o.seen,
         .help = "compare --max-error with the measured change, not with the proven one"},
        data,
        opt_split(&o.split),
        opt_column(&o.column),
        REDUCE_PROVE(o.prove),
        REDUCE_TOKENS(o.proven_tokens),
        {.name = "directions", .kind = OPT_TEXT, .to = &o.directions, .metavar = "LIST", .unset = "width,depth,ticket,quant", .group = "Search",
         .help = "directions to try; for a folder width and depth, as far as its config can express them"},
        {.name = "mixtures", .kind = OPT_SIZE, .to = &o.o.mixtures, .metavar = "N", .max = 1000,
         .help = "try at most so many combinations of several directions"},
        REDUCE_DTYPE(o.dtype),
        REDUCE_ANY_SHAPE(o.r.any_shape),
        REDUCE_ALLOW_LARGER(o.allow_larger),
    };
    /* clang-format on */
    const opt_spec spec = {
        .command = "plan",
        .args = "MODEL (--max-bytes B | --max-ms T | --max-error E) [--data FILE] -o OUT",
        .about =
            "Finds a cut that meets a budget: tries width, depth, ticket and quant, alone and\n"
            "combined, shows what each costs, makes the best one and certifies it. Exit 3,\n"
            "with the nearest cut that was found, if no cut meets the budget.",
        .examples =
            {"plan models/sort.safetensors --data sort.npz --max-bytes 200k -o small.safetensors",
             "plan minilm/ --data texts.txt --max-bytes 35M -o smaller/"},
        .seeded = true,
        OPT_ROWS(own),
        .operands = (const char *const[]){"MODEL", NULL},
    };
    return cli_command(&spec, CLI_MUST_OUT, REDUCE_OUT_HELP, argc, argv, plan, &o);
}
