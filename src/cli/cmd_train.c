/* cmd_train.c - pare train: trains models from files, or resumes a training (train.h). */
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const train_kinds[] = {"graph", "mlp", "gcn", "gpt", "encoder", NULL};
static const char *const over_words[] = {"seed", "split", NULL};
static const char *const parts_words[] = {"heldout", "shares", NULL};
static const char *const attention_words[] = {"exact", "poly", NULL};

#define DEFAULT_TOLERANCE 1e-3
#define MOST_WIDTH        ((size_t)1 << 20)
#define MOST_STEPS        ((size_t)1 << 40)

/* clang-format off */
/* Of the graph kinds: those of Shirzad 2024, and the dropout they need (docs/train.md). */
#define GRAPH_RECIPE                                                                               \
    {.dim = 64, .layers = 4, .heads = 1, .epochs = 200, .batch = 1, .window = 1,                   \
     .lr = 0.01, .dropout = 0.3, .decay = 0.01, .decay_vectors = true}
const recipe train_recipes[] = {
    GRAPH_RECIPE,
    GRAPH_RECIPE,
    GRAPH_RECIPE,
    {.dim = 64, .layers = 4, .heads = 4, .steps = 2000, .warmup = 20, .batch = 16, .window = 64,
     .lr = 3e-3, .last_lr = 3e-4, .decay = 0.01, .clip = 1},
    {.dim = 64, .layers = 2, .heads = 4, .steps = 1000, .warmup = 20, .batch = 64, .window = 64,
     .lr = 1e-3, .last_lr = 1e-4, .decay = 0.01, .clip = 1},
};
/* clang-format on */

/* ---- options ------------------------------------------------------------------------------- */

/* Kind and preset decide the defaults that help prints: they are looked for before anything is
 * parsed. `option`: with both dashes; 0 unless it is given. */
static size_t find_choice(bool *given, const char *option, const char *const *choices, int argc,
                          char **argv)
{
    const size_t n = strlen(option);
    *given = false;
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const bool here = strncmp(argv[i], option, n) == 0;
        const char *word = here && argv[i][n] == '='                    ? argv[i] + n + 1
                           : here && argv[i][n] == '\0' && i + 1 < argc ? argv[i + 1]
                                                                        : "";
        for (size_t k = 0; choices[k]; k++)
            if (strcmp(word, choices[k]) == 0) {
                *given = true;
                return k;
            }
    }
    return 0;
}

static train_opts defaults(size_t kind, bool given, size_t preset)
{
    const recipe *r = preset ? &train_presets[preset - 1] : &train_recipes[kind];
    return (train_opts){.kind = kind,
                        .has_kind = given,
                        .preset = preset,
                        .recipe = r,
                        .keep = NAN,
                        .source = SOURCE_DEFAULT,
                        .dim = r->dim,
                        .layers = r->layers,
                        .heads = r->heads,
                        .warmup = WARMUP_DEFAULT,
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
                        .eval_tokens = 65536,
                        .act = ACT_DEFAULT,
                        .attention = ATTENTION_UNCHANGED,
                        .tolerance = NAN};
}

/* Options that would be ignored are refused; those that depend on the data: training_open. */
static pare_status check_options(cli *c, train_opts *o)
{
    const bool gpt = o->kind == PARE_INIT_GPT, poly = o->attention == ATTENTION_POLY;
    const bool softmax = o->kind != PARE_INIT_MLP && o->kind != PARE_INIT_GCN;
    const bool edges = o->kind == PARE_INIT_GRAPH || o->kind == PARE_INIT_GCN;
    const cli_rule rules[] = {
        {"distill,temperature,hidden", o->teacher, "--teacher MODEL"},
        {"temperature", o->distill > 0, "--distill above 0"},
        {"attention,oracle", softmax, "kinds with softmax attention: graph, gpt, encoder"},
        {"tol", poly, "--attention poly"},
        {"heads", o->kind != PARE_INIT_MLP, "kinds with attention"},
        {"self-loops,expander,full", edges, "--kind graph or gcn"},
        {"preset,popup", gpt, "--kind gpt"},
        {"keep,qk-scale,source", o->popup, "--popup"},
        {"over", o->runs > 1, "--runs above 1"},
        {"lr", !(o->grid && strstr(o->grid, "lr=")), "trainings without lr= in --grid"},
        {"dim,layers,heads,ffn,act,preset,vocab,expander,self-loops,full,no-skips,no-norms,no-"
         "biases",
         !o->from, "a fresh model, not with --from, which has its own shape"},
        {0},
    };
    pare_status st = cli_check_rules(c, rules);
    if (st) return st;
    if (!o->has_kind) return cli_usage_error(c, "--kind is given more than once: give it once");
    if (o->epochs && o->steps)
        return cli_usage_error(c,
                               "--epochs and --steps both say how long to train: give one of them");
    if (!o->teacher) o->distill = 0;
    o->variant.has_act = o->act != ACT_DEFAULT;
    if (o->variant.has_act) o->variant.act = (pare_act)o->act;
    if (isnan(o->tolerance)) o->tolerance = DEFAULT_TOLERANCE;
    if ((st = popup_check_options(c, o))) return st;
    if (o->epochs || o->steps || (o->grid && strstr(o->grid, "epochs="))) return PARE_OK;
    o->epochs = o->recipe->epochs;
    o->steps = o->recipe->steps;
    return PARE_OK;
}

/* ---- files --------------------------------------------------------------------------------- */

static pare_status check_files(cli *c, const train_opts *o)
{
    const char *const inputs[] = {o->data, o->val, o->test, o->vocab, o->from, o->teacher};
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < sizeof inputs / sizeof *inputs; i++)
        st = cli_is_there(c, inputs[i]);
    for (size_t i = 0; !st && i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i]) st = cli_may_write(c, c->out, inputs[i]);
    if (st || !o->log) return st;
    /* The log must not be the model or one of its checkpoints, by whatever path. */
    const char *slash = strrchr(c->out, '/'), *base = slash ? slash + 1 : c->out;
    const char *beside = pare_path_relative(c->arena, c->out, o->log);
    const size_t n = strlen(base);
    if (!beside) return pare_no_memory(&c->err);
    if (strcmp(beside, base) == 0)
        return cli_usage_error(c, "--log %s is the file of -o: choose another name", o->log);
    if (strncmp(beside, base, n) == 0 && strncmp(beside + n, ".checkpoint", 11) == 0)
        return cli_usage_error(c, "--log %s: checkpoints have such names: choose another one",
                               o->log);
    const bool force = c->force;
    c->force = force || o->resume; /* a log that is continued */
    for (size_t i = 0; !st && i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i]) st = cli_may_write(c, o->log, inputs[i]);
    c->force = force;
    return st;
}

/* Writes the model beside its final name, reads it back, and renames it if it has the same
 * score. */
static pare_status save_and_check(cli *c, const pare_task *l, pare_model *m, facts *f, double test)
{
    pare_model *again = NULL;
    double got = NAN;
    char *temporary = cli_fresh(c, c->out);
    if (!temporary) return PARE_ERR_MEMORY;
    pare_status st = pare_model_save(m, temporary, true, f->sha256, &c->err);
    if (!st) st = pare_model_load(&again, temporary, &c->err);
    if (!st) st = l->score(l->self, &got, again, PARE_PART_TEST, &c->exec, &c->err);
    if (!st && !(fabs(got - test) <= 1e-9 * (1 + fabs(test))))
        st = pare_fail(&c->err, PARE_ERR_VERIFY,
                       "%s: the model read back has a test %s of %.9g, not %.9g", c->out, l->metric,
                       got, test);
    if (!st) st = pare_file_move(temporary, c->out, c->force, &c->err);
    if (st) unlink(temporary);
    pare_model_free(again);
    return st;
}

/* ---- training ------------------------------------------------------------------------------ */

/* Scores, saves and prints the best model: on the first rank only. */
static pare_status finish(training *tr, pare_model *m, train_result *r)
{
    cli *c = tr->c;
    char sha[PARE_SHA256_HEX];
    const pare_runs_result *const runs = r->runs;
    const pare_train_result *best = &runs->each[runs->setting * runs->runs + runs->best];
    const pare_task *const full = &tr->full_text;
    facts *f = &r->model;
    size_t diverged = 0;
    for (size_t i = 0; i < runs->runs * runs->settings; i++) diverged += runs->each[i].diverged;
    if (best->diverged)
        return pare_fail(
            &c->err, PARE_ERR_NUMERIC,
            "the training diverged: the loss was not finite after step %llu; try a smaller --lr "
            "than %g",
            (unsigned long long)best->best_step, tr->setting[runs->setting].lr);
    if (diverged) cli_note(c, "%zu of %zu runs diverged", diverged, runs->runs * runs->settings);
    r->full_val = r->full_test = NAN;
    pare_status st = PARE_OK;
    if (full->self) st = full->score(full->self, &r->full_val, m, PARE_PART_VAL, &c->exec, &c->err);
    if (full->self && !st)
        st = full->score(full->self, &r->full_test, m, PARE_PART_TEST, &c->exec, &c->err);
    if (!st && tr->o->popup) {
        const pare_frozen_gpt from = popup_source(tr->o, training_seed(tr, runs->best));
        st = pare_popup_code(m, &from, &c->err);
    }
    if (!st) st = save_and_check(c, training_task(tr, runs->best), m, f, best->test);
    if (st) return st;
    memcpy(sha, f->sha256, sizeof sha);
    st = cli_facts(c, f, c->out, m, NULL, false);
    memcpy(f->sha256, sha, sizeof sha);
    r->name = m->name ? m->name : "";
    cli_bar_end(c);
    if (!st) st = train_show(tr, r);
    for (size_t i = 0; i < tr->settings * tr->runs; i++) unlink(tr->checkpoint[i]);
    return st;
}

static pare_status train_all(training *tr)
{
    cli *c = tr->c;
    pare_model *m = NULL;
    pare_runs_result *runs = NULL;
    train_result r = {0};
    const pare_run_source source = {.self = tr,
                                    .runs = tr->runs,
                                    .settings = tr->settings,
                                    .open = training_open_run,
                                    .close = training_close_run};
    cli_phase(c, NULL, TRAIN_SHARE);
    const pare_exec silent = pare_exec_silent(&c->exec); /* the log draws the bar */
    const double start = pare_seconds();
    pare_status st = pare_runs(&m, &runs, &source, &silent, tr->ranks, &c->err);
    r.seconds = pare_seconds() - start;
    r.runs = runs;
    c->bar.note[0] = '\0'; /* what follows is no step */
    cli_phase(c, "score the best model", 100 - TRAIN_SHARE);
    if (st == PARE_ERR_STOPPED) {
        /* What was saved, and how to continue. */
        size_t saved = 0;
        for (size_t i = 0; i < tr->settings * tr->runs; i++)
            saved += pare_file_exists(tr->checkpoint[i]);
        const char *const more = tr->o->resume ? "" : " --resume";
        if (saved == 0)
            c->stopped = "stopped before the first step; nothing was written";
        else if (tr->settings * tr->runs == 1)
            c->stopped = pare_sprintf(c->arena, "stopped at step %llu of %llu; continue with: %s%s",
                                      (unsigned long long)tr->done, (unsigned long long)tr->total,
                                      c->line, more);
        else
            c->stopped = pare_sprintf(
                c->arena, "stopped; %zu of %zu runs have a checkpoint; continue with: %s%s", saved,
                tr->settings * tr->runs, c->line, more);
    }
    const pare_status logged = log_close(tr);
    if (st == PARE_ERR_INPUT && tr->o->resume && strstr(c->err.msg, "of another run"))
        st = pare_fail(&c->err, st,
                       "%s; give the options of that run, or start anew with -f instead of "
                       "--resume",
                       c->err.msg);
    st = pare_ranks_agree(tr->ranks, st ? st : logged, &c->err);
    if (!st) st = oracle_sum_calls(tr);
    if (!st && pare_ranks_rank(tr->ranks) == 0) st = finish(tr, m, &r);
    pare_model_free(m);
    pare_runs_free(runs);
    return st;
}

static pare_status train(cli *c, void *self, pare_ranks *ranks)
{
    train_opts *const o = self;
    training tr = {0};
    const bool first = pare_ranks_rank(ranks) == 0;
    pare_status st = check_options(c, o);
    if (!st) st = check_files(c, o);
    if (!st) st = training_open(&tr, c, o, ranks);
    /* The first rank creates the log after all ranks have checked for old files; the others then
     * append to it. */
    st = pare_ranks_agree(ranks, st, &c->err);
    if (!st && first) st = log_open(&tr);
    st = pare_ranks_agree(ranks, st, &c->err);
    if (!st) st = pare_ranks_agree(ranks, first ? PARE_OK : log_open(&tr), &c->err);
    if (!st) st = train_all(&tr);
    training_close(&tr);
    return st;
}

/* ---- the table ----------------------------------------------------------------------------- */

/* clang-format off */
#define SIZE(word, field, var, least, most) .name = word, .kind = OPT_SIZE, .to = &o.field, .metavar = var, .min = least, .max = most
#define REAL(word, field, least, most) .name = word, .kind = OPT_REAL, .to = &o.field, .metavar = "X", .low = least, .high = most
#define TEXT(word, field, var) .name = word, .kind = OPT_TEXT, .to = &o.field, .metavar = var
#define FLAG(word, field) .name = word, .kind = OPT_FLAG, .to = &o.field
#define CHOICE(word, field, var, words) .name = word, .kind = OPT_CHOICE, .to = &o.field, .metavar = var, .choices = words

int cmd_train(int argc, char **argv)
{
    static const char *const kind_help[] = {
        "transformer on the nodes of a graph: attention over the edges",
        "the same without attention",
        "the same with uniform attention: the mean over the neighbors",
        "language model: causal attention, learned positions, tied output layer",
        "encoder of sequences, sentences or vectors: full attention",
        NULL};
    static const char *const preset_help[] = {
        "the defaults of the kind", "width 768, 4 layers", "width 768, 12 layers", "width 1024, 24 layers", NULL};
    static const char *const source_help[] = {"normally distributed weights", "one size, random signs", NULL};
    static const char *const parts_help[] = {
        "what --seed holds out, as for all commands, is for testing, and as much again for validation",
        "fixed shares: of text the last 5 % of the tokens each, of sequences and sentences a tenth of a shuffle by --split",
        NULL};
    static const char *const over_help[] = {"run r has the seed S + r", "run r also has the data split K + r", NULL};
    static const char *const attention_help[] = {
        "softmax", "polynomials instead of exp where that is faster and proven to be within --tol", NULL};
    bool kind_given, preset_given;
    const size_t kind = find_choice(&kind_given, "--kind", train_kinds, argc, argv);
    const size_t preset = find_choice(&preset_given, "--preset", train_preset_names, argc, argv);
    train_opts o = defaults(kind, kind_given, preset);
    const recipe *r = o.recipe;
    const bool nodes = kind <= PARE_INIT_GCN;
    char epochs[32] = "by --steps", steps[32] = "by --epochs", warmup[64], tolerance[32], keep[32], group[80];
    snprintf(tolerance, sizeof tolerance, "%g", DEFAULT_TOLERANCE);
    snprintf(keep, sizeof keep, "%g", TRAIN_KEEP);
    snprintf(warmup, sizeof warmup, r->warmup ? "%zu, at most a tenth of the steps" : "%zu", r->warmup);
    snprintf(group, sizeof group, "What to train (defaults below: those of --kind %s)", train_kinds[kind]);
    if (r->epochs) snprintf(epochs, sizeof epochs, "%zu", r->epochs);
    if (r->steps) snprintf(steps, sizeof steps, "%zu", r->steps);
    const opt own[] = {
        {CHOICE("kind", kind, "KIND", train_kinds), .required = true, .choice_help = kind_help, .group = group,
         .help = "kind of model"},
        {TEXT("data", data, "FILE"), .required = true,
         .help = "what to learn from: a graph (.npz), text (.txt, token ids .npy), sequences (.npz with inputs and "
                 "targets or values), sentences with labels (.tsv)"},
        {TEXT("val", val, "FILE"), .unset = "held-out part of --data",
         .help = "choose the best model by its score on this file"},
        {TEXT("test", test, "FILE"), .unset = "held-out part of --data", .help = "report the best model's score on this file"},
        {TEXT("vocab", vocab, "FILE"), .unset = "bytes", .rare = true,
         .help = "tokenizer of text: GPT-2's vocab.bpe, llama2.c's tokenizer.bin or a list of words"},
        {SIZE("split", split, "K", 0, (size_t)1 << 20), .rare = true,
         .help = "which split of a graph is used; of sequences and sentences: hold out what seed S + K does"},
        {CHOICE("parts", parts, "RULE", parts_words), .choice_help = parts_help, .rare = true,
         .help = "without --val and --test: which inputs of --data are set aside"},
        {FLAG("whole", whole), .rare = true,
         .help = "a .txt is one document, also where blank lines or <|endoftext|> separate parts of it (as WikiText is usually scored)"},
        {FLAG("largest-component", largest_component), .rare = true,
         .help = "train on the largest connected component of the graph only"},
        {TEXT("from", from, "MODEL"), .help = "start from the weights of this model instead of random ones"},

        {SIZE("dim", dim, "D", 1, MOST_WIDTH), .group = "Shape of a new model", .help = "width of the residual stream"},
        {SIZE("layers", layers, "L", 1, 4096), .help = "number of transformer blocks"},
        {SIZE("heads", heads, "H", 1, 4096), .help = "attention heads of each block; must divide D"},
        {SIZE("ffn", ffn, "F", 1, MOST_WIDTH), .unset = nodes ? "D" : "4 D", .help = "hidden units of each feed-forward layer"},
        {CHOICE("act", act, "ACT", pare_act_names), .rare = true, .help = "activation of the feed-forward layers",
         .unset = nodes ? "relu" : kind == PARE_INIT_GPT ? "gelu_tanh" : "gelu"},
        {CHOICE("attention", attention, "KIND", attention_words), .choice_help = attention_help, .rare = true, .unset = "exact",
         .help = "how softmax attention is computed"},
        {REAL("tol", tolerance, 1e-9, 1), .unset = tolerance, .rare = true,
         .help = "with --attention poly: largest allowed error, as a share of the range of the values"},
        {FLAG("self-loops", self_loops), .rare = true, .help = "graph: every node attends to itself as well"},
        {SIZE("expander", expander, "DEG", 0, PARE_MAX_EXPANDER), .rare = true,
         .help = "graph: add a random graph in which every node has this many edges (an even number)"},
        {FLAG("full", full), .rare = true, .help = "graph: every node attends to all nodes, not only to its neighbors"},
        {FLAG("no-skips", variant.no_skips), .rare = true, .help = "leave out the skip connections"},
        {FLAG("no-norms", variant.no_norms), .rare = true, .help = "leave out the normalization layers"},
        {FLAG("no-biases", variant.no_biases), .rare = true, .help = "leave out all biases"},
        {CHOICE("preset", preset, "SIZE", train_preset_names), .choice_help = preset_help, .unset = "none", .rare = true,
         .help = "gpt: one of the sizes of GPT-2, with windows of 1024 tokens and the schedule of Otsuka 2025"},

        {SIZE("epochs", epochs, "N", 1, MOST_STEPS), .unset = epochs, .group = "Training (AdamW)",
         .help = "how often to go through the training data"},
        {SIZE("steps", steps, "N", 1, MOST_STEPS), .unset = steps, .help = "number of optimizer steps, instead of --epochs"},
        {SIZE("batch", batch, "B", 1, MOST_WIDTH), .unset = nodes ? "all nodes" : NULL, .help = "sequences in each step; a graph is always one batch"},
        {SIZE("window", window, "T", 1, MOST_WIDTH), .unset = kind == PARE_INIT_GPT ? NULL : "text only", .help = "text: tokens of each sequence, and the context of a new model"},
        {REAL("lr", lr, 0, 1e9), .help = "learning rate after the warm-up"},
        {REAL("last-lr", last_lr, 0, 1e9), .rare = true, .help = "learning rate at the end of the cosine schedule"},
        {SIZE("warmup", warmup, "N", 0, MOST_STEPS), .unset = warmup, .rare = true,
         .help = "steps during which the learning rate rises to --lr"},
        {REAL("dropout", dropout, 0, 0.99), .help = "share of activations set to 0 in each step"},
        {REAL("decay", decay, 0, 1e3), .rare = true, .help = "weight decay of AdamW"},
        {REAL("clip", clip, 0, 1e9), .rare = true, .help = "scale gradients down to this norm; 0: never"},
        {SIZE("oracle", oracle, "M", 1, MOST_WIDTH), .unset = "all tokens at once", .rare = true,
         .help = "compute attention, forward and backward, by calls of at most M tokens"},

        {SIZE("eval-every", eval_every, "N", 1, MOST_STEPS), .unset = nodes ? "1" : "a 20th of all steps", .group = "Scores and files",
         .help = "steps between two scores on the validation part; the best model is kept"},
        {SIZE("eval-tokens", eval_tokens, "N", 0, MOST_STEPS), .rare = true,
         .help = "text: tokens of a score during training, spread evenly; 0: all. The final scores always use all"},
        {TEXT("log", log, "FILE.csv"), .help = "write loss, learning rate and scores of every step"},
        {FLAG("resume", resume), .help = "continue from the checkpoint of the same command that was stopped"},
        {SIZE("keep-every", checkpoint_every, "N", 1, MOST_STEPS), .unset = "a 20th of all steps", .rare = true,
         .help = "steps between two checkpoints"},

        {SIZE("runs", runs, "R", 1, TRAIN_MOST_RUNS), .group = "Several runs", .help = "train R times and keep the best model"},
        {CHOICE("over", over, "WHAT", over_words), .choice_help = over_help, .rare = true, .unset = "seed",
         .help = "what differs between the runs"},
        {TEXT("grid", grid, "lr=X,X;epochs=N,N"), .rare = true,
         .help = "train with all combinations and keep the one with the best mean validation score"},

        {TEXT("teacher", teacher, "MODEL"), .group = "Distillation", .help = "also learn from the outputs of this model"},
        {REAL("distill", distill, 0, 1), .rare = true, .help = "weight of the teacher's outputs in the loss; the labels have the rest"},
        {REAL("temperature", temperature, 0.01, 1e3), .rare = true, .help = "temperature that softens both outputs before they are compared"},
        {REAL("hidden", hidden, 0, 1e6), .rare = true, .help = "weight of the difference of the hidden states, where widths are equal"},

        {FLAG("popup", popup), .group = "Edge-popup (Otsuka 2025)", .rare = true,
         .help = "gpt: leave the random weights as they are and learn which of them to keep; the file holds a seed and bit masks"},
        {.name = "keep", .kind = OPT_SHARE, .to = &o.keep, .metavar = "SHARE", .low = 1e-6, .high = 1, .unset = keep, .rare = true,
         .help = "share of the weights that is kept"},
        {TEXT("qk-scale", qk_scale, "X|theory"), .unset = "theory", .rare = true,
         .help = "factor on query and key weights, a number or the one of the theory"},
        {CHOICE("source", source, "KIND", train_source_names), .choice_help = source_help, .unset = "normal", .rare = true,
         .help = "distribution of the random weights"},
    };
    const opt_spec spec = {
        .command = "train",
        .args = "--kind KIND --data FILE -o MODEL",
        .about = "Trains a model and keeps the one with the best validation score, or resumes a\n"
                 "training that was stopped (--resume).",
        .examples = {"train --kind graph --data board.npz --epochs 40 -o gt.safetensors",
                     "train --kind gpt --data text.txt --steps 500 -o gpt.safetensors"},
        .seeded = true,
        OPT_ROWS(own),
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MUST_OUT, "write the trained model here", argc, argv, &rc)) return rc;
    o.has_kind = o.has_kind && o.kind == kind;
    return cli_ranked(&c, train, &o);
}
/* clang-format on */
