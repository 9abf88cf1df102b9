/* pare train: fresh models taught from files. */
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const train_kinds[] = {"graph", "mlp", "gcn", "gpt", "encoder", NULL};
static const char *const over_words[] = {"seed", "split", NULL};
static const char *const attention_words[] = {"exact", "poly", NULL};

#define DEFAULT_TOLERANCE 1e-3
#define MOST_WIDTH        ((size_t)1 << 20)
#define MOST_STEPS        ((size_t)1 << 40)

/* Of the graph kinds: those of Shirzad 2024, and the dropout they need (docs/train.md). */
#define GRAPH_RECIPE                                                                               \
    {                                                                                              \
        .dim = 64, .layers = 4, .heads = 1, .epochs = 200, .batch = 1, .window = 1, .lr = 0.01,    \
        .dropout = 0.3, .decay = 0.01, .decay_vectors = true                                       \
    }
const recipe train_recipes[] = {
    GRAPH_RECIPE,
    GRAPH_RECIPE,
    GRAPH_RECIPE,
    {.dim = 64,
     .layers = 4,
     .heads = 4,
     .steps = 2000,
     .warmup = 20,
     .batch = 16,
     .window = 64,
     .lr = 3e-3,
     .last_lr = 3e-4,
     .decay = 0.01,
     .clip = 1},
    {.dim = 64,
     .layers = 2,
     .heads = 4,
     .steps = 1000,
     .warmup = 20,
     .batch = 64,
     .window = 64,
     .lr = 1e-3,
     .last_lr = 1e-4,
     .decay = 0.01,
     .clip = 1},
};

/* ---- options ------------------------------------------------------------------------------- */

/* Kind and preset decide the defaults that help prints: they are looked for before anything is
 * parsed. `option`: with both dashes; 0 unless it is said. */
static size_t choice_said(bool *said, const char *option, const char *const *choices, int argc,
                          char **argv)
{
    const size_t n = strlen(option);
    *said = false;
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const bool here = strncmp(argv[i], option, n) == 0;
        const char *word = here && argv[i][n] == '='                    ? argv[i] + n + 1
                           : here && argv[i][n] == '\0' && i + 1 < argc ? argv[i + 1]
                                                                        : "";
        for (size_t k = 0; choices[k]; k++)
            if (strcmp(word, choices[k]) == 0) {
                *said = true;
                return k;
            }
    }
    return 0;
}

static train_opts defaults(size_t kind, bool said, size_t preset)
{
    const recipe *r = preset ? &train_presets[preset - 1] : &train_recipes[kind];
    return (train_opts){.kind = kind,
                        .has_kind = said,
                        .preset = preset,
                        .recipe = r,
                        .keep = NAN,
                        .source = SOURCE_NOT_SAID,
                        .dim = r->dim,
                        .layers = r->layers,
                        .heads = r->heads,
                        .warmup = WARMUP_NOT_SAID,
                        .batch = r->batch,
                        .window = r->window,
                        .lr = r->lr,
                        .last_lr = r->last_lr,
                        .dropout = r->dropout,
                        .decay = r->decay,
                        .clip = r->clip,
                        .runs = 1,
                        .distill = 0.5,
                        .temperature = 2,
                        .mark_tokens = 65536,
                        .act = ACT_AS_IT_IS,
                        .attention = ATTENTION_AS_IT_IS,
                        .tolerance = NAN};
}

static pare_status settle(cli *c, train_opts *o)
{
    const recipe *r = o->recipe;
    if (!o->has_kind) return pare_fail(&c->err, PARE_ERR_USAGE, "--kind K is missing");
    if (!o->data) return pare_fail(&c->err, PARE_ERR_USAGE, "--data F is missing");
    if (o->epochs && o->steps)
        return pare_fail(&c->err, PARE_ERR_USAGE, "--epochs and --steps: say one of them");
    if (!o->teacher && o->hidden > 0)
        return pare_fail(&c->err, PARE_ERR_USAGE, "--hidden needs a --teacher");
    if (!o->teacher) o->distill = 0;
    if (!isnan(o->tolerance) && o->attention != ATTENTION_POLY)
        return pare_fail(&c->err, PARE_ERR_USAGE, "--tol needs --attention poly");
    o->variant.has_act = o->act != ACT_AS_IT_IS;
    if (o->variant.has_act) o->variant.act = (pare_act)o->act;
    if (isnan(o->tolerance)) o->tolerance = DEFAULT_TOLERANCE;
    const pare_status st = popup_settle(c, o);
    if (st) return st;
    if (o->epochs || o->steps || (o->grid && strstr(o->grid, "epochs="))) return PARE_OK;
    o->epochs = r->epochs;
    o->steps = r->steps;
    return PARE_OK;
}

/* ---- files --------------------------------------------------------------------------------- */

/* The log must not be the model or one of its checkpoints, by whatever path. */
static pare_status log_apart(cli *c, const char *log)
{
    const char *slash = strrchr(c->out, '/'), *base = slash ? slash + 1 : c->out;
    const char *beside = pare_path_relative(c->arena, c->out, log);
    const size_t n = strlen(base);
    if (!beside) return pare_no_memory(&c->err);
    if (strncmp(beside, base, n) != 0) return PARE_OK;
    if (beside[n] == '\0')
        return pare_fail(&c->err, PARE_ERR_USAGE, "--log %s is the output itself", log);
    if (strncmp(beside + n, ".checkpoint", 11) == 0)
        return pare_fail(&c->err, PARE_ERR_USAGE, "--log %s: such names are of checkpoints", log);
    return PARE_OK;
}

static pare_status may_write_all(cli *c, const train_opts *o)
{
    const char *const inputs[] = {o->data, o->val, o->test, o->vocab, o->from, o->teacher};
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i]) st = cli_may_write(c, c->out, inputs[i]);
    if (st || !o->log) return st;
    st = log_apart(c, o->log);
    const bool force = c->force;
    c->force = force || o->resume; /* a log that is gone on with */
    for (size_t i = 0; !st && i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i]) st = cli_may_write(c, o->log, inputs[i]);
    c->force = force;
    return st;
}

/* Written beside the final name and renamed when it was read back and does what was seen. */
static pare_status save_checked(cli *c, const pare_lesson *l, pare_model *m, facts *f, double test)
{
    pare_model *again = NULL;
    double got = NAN;
    char *fresh = cli_fresh(c, c->out);
    if (!fresh) return PARE_ERR_MEMORY;
    pare_status st = pare_model_save(m, fresh, true, f->sha256, &c->err);
    if (!st) st = pare_model_load(&again, fresh, &c->err);
    if (!st) st = l->score(l->self, &got, again, PARE_PART_TEST, &c->exec, &c->err);
    if (!st && !(fabs(got - test) <= 1e-9 * (1 + fabs(test))))
        st = pare_fail(&c->err, PARE_ERR_VERIFY,
                       "%s: read back, it gives a test %s of %.9g, not %.9g", c->out, l->metric,
                       got, test);
    if (!st) st = pare_file_move(fresh, c->out, c->force, &c->err);
    if (st) unlink(fresh);
    pare_model_free(again);
    return st;
}

static void drop_checkpoints(const plan *p)
{
    for (size_t i = 0; i < p->settings * p->runs; i++) unlink(p->checkpoint[i]);
}

/* ---- training ------------------------------------------------------------------------------ */

static pare_status not_diverged(plan *p, const pare_runs_result *r)
{
    size_t diverged = 0;
    for (size_t i = 0; i < r->runs * r->settings; i++) diverged += r->each[i].diverged;
    const pare_train_result *best = &r->each[r->setting * r->runs + r->best];
    if (best->diverged)
        return pare_fail(
            &p->c->err, PARE_ERR_NUMERIC,
            "diverged: a loss was not finite after step %llu; try a smaller --lr than %g",
            (unsigned long long)best->best_step, p->setting[r->setting].lr);
    if (diverged) cli_note(p->c, "%zu of %zu runs diverged", diverged, r->runs * r->settings);
    return PARE_OK;
}

static pare_status whole_texts(plan *p, train_result *r, const pare_model *m)
{
    cli *c = p->c;
    const pare_lesson *l = &p->whole;
    r->whole_val = r->whole_test = NAN;
    if (!l->self) return PARE_OK;
    pare_status st = l->score(l->self, &r->whole_val, m, PARE_PART_VAL, &c->exec, &c->err);
    if (!st) st = l->score(l->self, &r->whole_test, m, PARE_PART_TEST, &c->exec, &c->err);
    return st;
}

/* What only the first rank does. */
static pare_status publish(plan *p, pare_model *m, train_result *r)
{
    cli *c = p->c;
    char sha[PARE_SHA256_HEX];
    const pare_train_result *best =
        &r->runs->each[r->runs->setting * r->runs->runs + r->runs->best];
    facts *f = &r->model;
    pare_status st = not_diverged(p, r->runs);
    if (!st) st = whole_texts(p, r, m);
    if (!st && p->o->popup) {
        const pare_frozen_gpt from = popup_source(p->o, plan_seed(p, r->runs->best));
        st = pare_popup_code(m, &from, &c->err);
    }
    if (!st) st = save_checked(c, plan_lesson(p, r->runs->best), m, f, best->test);
    if (st) return st;
    memcpy(sha, f->sha256, sizeof sha);
    st = cli_facts(c, f, c->out, m, NULL, false);
    memcpy(f->sha256, sha, sizeof sha);
    r->name = m->name ? m->name : "";
    if (c->bar.drawn) pare_bar_clear(&c->bar);
    if (!st) st = train_show(p, r);
    drop_checkpoints(p);
    return st;
}

static pare_status run(plan *p)
{
    cli *c = p->c;
    pare_model *m = NULL;
    pare_runs_result *runs = NULL;
    train_result r = {0};
    const pare_run_source source = {.self = p, .open = plan_start, .close = plan_stop};
    const pare_exec silent = {.threads = c->exec.threads}; /* the log draws the bar */
    const double start = pare_seconds();
    pare_status st =
        pare_runs(&m, &runs, &source, p->runs, p->settings, &silent, p->ranks, &c->err);
    r.seconds = pare_seconds() - start;
    r.runs = runs;
    c->bar.note[0] = '\0'; /* what follows is no step */
    const pare_status logged = log_close(p);
    st = pare_ranks_agree(p->ranks, st ? st : logged, &c->err);
    if (!st) st = oracle_count(p);
    if (!st && pare_ranks_rank(p->ranks) == 0) st = publish(p, m, &r);
    pare_model_free(m);
    pare_runs_free(runs);
    return st;
}

static pare_status train(cli *c, void *self, pare_ranks *ranks)
{
    train_opts *const o = self;
    plan p = {0};
    const bool first = pare_ranks_rank(ranks) == 0;
    pare_status st = settle(c, o);
    if (!st) st = may_write_all(c, o);
    if (!st) st = plan_open(&p, c, o, ranks);
    /* The first rank makes what the others would take for leftovers, or append to: after all of
     * them have looked. */
    st = pare_ranks_agree(ranks, st, &c->err);
    if (!st && first) st = log_open(&p);
    st = pare_ranks_agree(ranks, st, &c->err);
    if (!st) st = pare_ranks_agree(ranks, first ? PARE_OK : log_open(&p), &c->err);
    if (!st) st = run(&p);
    plan_close(&p);
    return st;
}

/* ---- the table ----------------------------------------------------------------------------- */

#define SIZE_ROW(word, field, var, least, most, more)                                              \
    .name = word, .kind = OPT_SIZE, .to = &o.field, .metavar = var, .min = least, .max = most
#define REAL_ROW(word, field, least, most, more)                                                   \
    .name = word, .kind = OPT_REAL, .to = &o.field, .metavar = "X", .low = least, .high = most
#define TEXT_ROW(word, field, var, more)                                                           \
    .name = word, .kind = OPT_TEXT, .to = &o.field, .metavar = var
#define FLAG_ROW(word, field, more) .name = word, .kind = OPT_FLAG, .to = &o.field

int cmd_train(int argc, char **argv)
{
    bool said, preset_said;
    const size_t kind = choice_said(&said, "--kind", train_kinds, argc, argv);
    const size_t preset = choice_said(&preset_said, "--preset", train_preset_names, argc, argv);
    train_opts o = defaults(kind, said, preset);
    const recipe *r = o.recipe;
    const bool nodes = kind <= PARE_INIT_GCN;
    char epochs[32] = "-", steps[32] = "-", warmup[32], tolerance[32], keep[32];
    snprintf(tolerance, sizeof tolerance, "%g", DEFAULT_TOLERANCE);
    snprintf(keep, sizeof keep, "%g", TRAIN_KEEP);
    snprintf(warmup, sizeof warmup, "%zu", r->warmup);
    if (r->epochs) snprintf(epochs, sizeof epochs, "%zu", r->epochs);
    if (r->steps) snprintf(steps, sizeof steps, "%zu", r->steps);
    const opt own[] = {
        {.name = "kind",
         .kind = OPT_CHOICE,
         .to = &o.kind,
         .metavar = "K",
         .help = "",
         .unset = "must be said; it sets the defaults below",
         .choices = train_kinds},
        {TEXT_ROW("data", data, "F.npz|F.txt|F.npy", true), .help = "data"},
        {TEXT_ROW("val", val, "F", true)},
        {TEXT_ROW("test", test, "F", true)},
        {TEXT_ROW("vocab", vocab, "F", true)},
        {SIZE_ROW("split", split, "K", 0, (size_t)1 << 20, true)},
        {FLAG_ROW("largest-component", largest_component, false)},
        {.name = "preset",
         .kind = OPT_CHOICE,
         .to = &o.preset,
         .metavar = "P",
         .help = "gpt",
         .choices = train_preset_names,
         .unset = "none"},
        {FLAG_ROW("popup", popup, true)},
        {REAL_ROW("keep", keep, 0, 1, true), .unset = keep},
        {TEXT_ROW("qk-scale", qk_scale, "S|theory", true), .unset = "theory"},
        {.name = "source",
         .kind = OPT_CHOICE,
         .to = &o.source,
         .metavar = "normal|signed",
         .choices = train_source_names,
         .unset = "normal"},
        {SIZE_ROW("dim", dim, "D", 1, MOST_WIDTH, true), .help = "shape"},
        {SIZE_ROW("layers", layers, "L", 1, 4096, true)},
        {SIZE_ROW("heads", heads, "H", 1, 4096, true)},
        {SIZE_ROW("ffn", ffn, "F", 1, MOST_WIDTH, true), .unset = nodes ? "D" : "4D"},
        {.name = "attention",
         .kind = OPT_CHOICE,
         .to = &o.attention,
         .metavar = "exact|poly",
         .choices = attention_words,
         .unset = "exact"},
        {REAL_ROW("tol", tolerance, 1e-9, 1, false), .unset = tolerance},
        {SIZE_ROW("epochs", epochs, "N", 1, MOST_STEPS, true), .help = "steps", .unset = epochs},
        {SIZE_ROW("steps", steps, "N", 1, MOST_STEPS, true), .unset = steps},
        {SIZE_ROW("batch", batch, "B", 1, MOST_WIDTH, true)},
        {SIZE_ROW("window", window, "T", 1, MOST_WIDTH, true)},
        {SIZE_ROW("oracle", oracle, "M", 1, MOST_WIDTH, false), .unset = "all tokens"},
        {REAL_ROW("lr", lr, 0, 1e9, true), .help = "AdamW"},
        {REAL_ROW("last-lr", last_lr, 0, 1e9, true)},
        {SIZE_ROW("warmup", warmup, "N", 0, MOST_STEPS, true), .unset = warmup},
        {REAL_ROW("dropout", dropout, 0, 0.99, true)},
        {REAL_ROW("decay", decay, 0, 1e3, true)},
        {REAL_ROW("clip", clip, 0, 1e9, false)},
        {FLAG_ROW("self-loops", self_loops, true), .help = "net"},
        {SIZE_ROW("expander", expander, "DEG", 0, PARE_MAX_EXPANDER, true)},
        {FLAG_ROW("full", full, true)},
        {FLAG_ROW("no-skips", variant.no_skips, true)},
        {FLAG_ROW("no-norms", variant.no_norms, true)},
        {FLAG_ROW("no-biases", variant.no_biases, true)},
        {.name = "act",
         .kind = OPT_CHOICE,
         .to = &o.act,
         .metavar = "A",
         .choices = pare_act_names,
         .unset = nodes                   ? "relu"
                  : kind == PARE_INIT_GPT ? "gelu_tanh"
                                          : "gelu"},
        {SIZE_ROW("runs", runs, "R", 1, TRAIN_MOST_RUNS, true), .help = "runs"},
        {.name = "over",
         .kind = OPT_CHOICE,
         .to = &o.over,
         .metavar = "W",
         .choices = over_words,
         .unset = "seed, or split"},
        {TEXT_ROW("grid", grid, "lr=X,X;epochs=N,N", false)},
        {TEXT_ROW("teacher", teacher, "MODEL", true), .help = "distil"},
        {REAL_ROW("distill", distill, 0, 1, true)},
        {REAL_ROW("temperature", temperature, 0.01, 1e3, true)},
        {REAL_ROW("hidden", hidden, 0, 1e6, false)},
        {TEXT_ROW("from", from, "MODEL", true), .help = "go on"},
        {FLAG_ROW("resume", resume, true)},
        {SIZE_ROW("keep-every", keep_every, "N", 1, MOST_STEPS, false), .unset = "a 20th"},
        {SIZE_ROW("mark-every", mark_every, "N", 1, MOST_STEPS, true), .help = "marks",
         .unset = nodes ? "1" : "a 20th"},
        {SIZE_ROW("mark-tokens", mark_tokens, "N", 0, MOST_STEPS, true)},
        {TEXT_ROW("log", log, "FILE.csv", false)},
    };
    const opt_spec spec = {
        .command = "train",
        .args = "--kind K --data F -o MODEL",
        .about = "Trains a model, keeps the best by validation. Killed, it goes on with --resume.",
        .examples = {"train --kind graph --data board.npz --runs 4 -o gt.safetensors"},
        .seeded = true,
        .own = own,
        .nown = sizeof own / sizeof *own,
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MUST_OUT, "the model", argc, argv, &rc)) return rc;
    o.has_kind = o.has_kind && o.kind == kind;
    return cli_ranked(&c, train, &o);
}
