/* train_setup.c - what a training command means: data, models, settings, runs (train.h). */
#include "interrupt.h"
#include "warn_text.h"
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one run and one setting ---------------------------------------------------------------- */

const pare_task *training_task(const training *tr, size_t run)
{
    return &tr->task[tr->o->over == OVER_SPLIT ? run : 0];
}

uint64_t training_steps(const training *tr, size_t at)
{
    const uint64_t epochs = tr->setting[at].epochs;
    return epochs ? epochs * tr->task[0].epoch : tr->o->steps;
}

uint64_t training_seed(const training *tr, size_t run)
{
    return tr->c->seed + run;
}

size_t training_split(const training *tr, size_t run)
{
    return tr->o->split + (tr->o->over == OVER_SPLIT ? run : 0);
}

uint64_t training_heldout_seed(const training *tr, size_t run)
{
    return tr->c->seed + training_split(tr, run);
}

static bool on_nodes(const train_opts *o)
{
    return o->kind <= PARE_INIT_GCN;
}

/* ---- data ------------------------------------------------------------------------------- */

typedef enum data_kind { DATA_GRAPH, DATA_SERIES, DATA_TEXT, DATA_SENTENCES } data_kind;

static bool ends_with(const char *s, const char *tail)
{
    const size_t n = strlen(s), t = strlen(tail);
    return n >= t && strcmp(s + n - t, tail) == 0;
}

static pare_status find_data_kind(training *tr, data_kind *out, const char *path)
{
    cli *c = tr->c;
    pare_npz *z = NULL;
    *out = DATA_TEXT;
    if (ends_with(path, ".txt") || ends_with(path, ".npy")) return PARE_OK;
    if (ends_with(path, ".tsv")) {
        *out = DATA_SENTENCES;
        return PARE_OK;
    }
    if (!ends_with(path, ".npz"))
        return pare_fail(&c->err, PARE_ERR_INPUT,
                         "%s: unknown kind of data; train reads .npz (graphs, sequences), .tsv "
                         "(sentences with labels), .txt and .npy of token ids",
                         path);
    const pare_mark mark = pare_arena_mark(c->arena);
    const pare_status st = pare_npz_open(&z, c->arena, path, &c->err);
    if (st) return st;
    *out = pare_npz_has(z, "inputs") ? DATA_SERIES : DATA_GRAPH;
    pare_npz_close(z);
    pare_arena_reset(c->arena, mark);
    return PARE_OK;
}

/* Tokens of the windows that `pare eval` cuts text into. */
static size_t usual_window(size_t context)
{
    enum { MOST = 512 };
    return context && context < MOST ? context : MOST;
}

static pare_status open_task(training *tr, data_kind d, pare_task *l, size_t split)
{
    cli *c = tr->c;
    const train_opts *o = tr->o;
    const pare_model *m = tr->from;
    const bool first_rank = pare_ranks_rank(tr->ranks) == 0, shares = o->parts == PARTS_SHARES;
    const uint64_t seed = c->seed + split;
    const uint8_t *const vocab = m ? m->vocab : tr->vocab ? tr->vocab->data : NULL;
    const size_t vocab_bytes = m ? m->vocab_bytes : tr->vocab ? tr->vocab->bytes : 0;
    if (d == DATA_GRAPH) {
        const pare_task_graph_opts g = {.path = o->data,
                                        .split = split,
                                        .largest_component = o->largest_component,
                                        .full = m ? m->pattern.kind != PARE_GRAPH
                                                  : o->full || o->kind == PARE_INIT_MLP,
                                        .classes = m ? pare_model_outputs(m) : 0};
        return pare_task_graph(l, &tr->facts, c->arena, &g, &c->err);
    }
    if (d == DATA_SERIES) {
        const pare_task_series_opts s = {.train = o->data,
                                         .val = o->val,
                                         .test = o->test,
                                         .shares = shares,
                                         .seed = seed,
                                         .split = split,
                                         .batch = o->batch,
                                         .ids = m ? m->embedding.vocab : 0,
                                         .outputs = m ? pare_model_outputs(m) : 0};
        return pare_task_series(l, &tr->facts, c->arena, &s, &c->err);
    }
    if (d == DATA_SENTENCES) {
        const pare_task_sentences_opts s = {.train = o->data,
                                            .val = o->val,
                                            .test = o->test,
                                            .shares = shares,
                                            .seed = seed,
                                            .tokenizer = tr->tokenizer,
                                            .vocab = vocab,
                                            .vocab_bytes = vocab_bytes,
                                            .split = split,
                                            .batch = o->batch,
                                            .context = m ? m->context : 0,
                                            .outputs = m ? pare_model_outputs(m) : 0};
        const pare_status st = pare_task_sentences(l, &tr->facts, c->arena, &s, &c->err);
        if (!st && split == o->split && first_rank) warn_text(c, o->data, &tr->facts.notes);
        return st;
    }
    pare_task_text_opts t = {.train = o->data,
                             .val = o->val,
                             .test = o->test,
                             .shares = shares,
                             .seed = seed,
                             .whole = o->whole,
                             .eval_window = usual_window(m ? m->context : o->window),
                             .tokenizer = tr->tokenizer,
                             .vocab = vocab,
                             .vocab_bytes = vocab_bytes,
                             .window = o->window,
                             .batch = o->batch,
                             .eval_tokens = o->eval_tokens};
    pare_status st = pare_task_text(l, &tr->facts, c->arena, &t, &c->err);
    if (!st && first_rank) warn_text(c, o->data, &tr->facts.notes);
    const size_t scored = t.eval_tokens;
    if (st || scored == 0 || (tr->facts.val <= scored && tr->facts.test <= scored)) return st;
    t.eval_tokens = 0;
    return pare_task_text(&tr->full_text, &tr->facts, c->arena, &t, &c->err);
}

static pare_status open_tasks(training *tr)
{
    cli *c = tr->c;
    const train_opts *o = tr->o;
    data_kind d;
    const size_t n = o->over == OVER_SPLIT ? tr->runs : 1;
    pare_status st = find_data_kind(tr, &d, o->data);
    if (st) return st;
    static const char *const what[] = {"a graph", "sequences", "text", "sentences with labels"};
    static const char *const wants[] = {
        "a graph (.npz)",
        ("sequences (.npz with inputs and targets or values) or sentences with labels (.tsv)"),
        "text (.txt, .npy of token ids) or sequences (.npz)"};
    const bool nodes = on_nodes(o), encoder = o->kind == PARE_INIT_ENCODER;
    const bool fits = nodes     ? d == DATA_GRAPH
                      : encoder ? d == DATA_SERIES || d == DATA_SENTENCES
                                : d == DATA_TEXT || d == DATA_SERIES;
    if (!fits)
        return pare_fail(&c->err, PARE_ERR_INPUT, "%s holds %s, but --kind %s learns from %s",
                         o->data, what[d], train_kinds[o->kind],
                         wants[nodes     ? 0
                               : encoder ? 1
                                         : 2]);
    const cli_rule rules[] = {
        {"val,test", d != DATA_GRAPH, "text and sequences; the masks of a graph are in its file"},
        {"batch", d != DATA_GRAPH, "text and sequences; a graph is one batch"},
        {"largest-component", d == DATA_GRAPH, "a graph"},
        {"split", d != DATA_TEXT, "a graph, sequences or sentences"},
        {"window,eval-tokens,whole", d == DATA_TEXT, "text"},
        {"parts", d != DATA_GRAPH, "text and sequences; the masks of a graph are in its file"},
        {"vocab", d == DATA_TEXT || d == DATA_SENTENCES, "text"},
        {0},
    };
    st = cli_check_rules(c, rules);
    if (!st && d == DATA_TEXT && o->over == OVER_SPLIT)
        st = cli_usage_error(c, "--over split: text has no splits; leave it out to vary the seed");
    if (st) return st;
    static const char *const units[] = {"nodes", "sequences", "tokens", "sentences"};
    tr->unit = units[d];
    tr->graph = d == DATA_GRAPH;
    tr->task = pare_alloc(c->arena, n, sizeof *tr->task);
    if (!tr->task) return pare_no_memory(&c->err);
    for (size_t i = 0; !st && i < n; i++) st = open_task(tr, d, &tr->task[i], o->split + i);
    return st;
}

/* ---- models -------------------------------------------------------------------------------- */

/* What --attention asks of the softmax heads of a model. */
static void set_attention(pare_model *m, const train_opts *o)
{
    for (size_t b = 0; m && b < m->nblocks; b++) {
        pare_attn *const a = &m->blocks[b].attn;
        if (!pare_attn_is_softmax(a->kind)) continue;
        if (o->attention == ATTENTION_EXACT) a->kind = PARE_ATTN_EXACT;
        if (o->attention == ATTENTION_POLY) {
            a->kind = PARE_ATTN_POLY;
            a->tolerance = o->tolerance;
        }
    }
}

static pare_status open_models(training *tr)
{
    cli *const c = tr->c;
    const train_opts *o = tr->o;
    pare_status st = PARE_OK;
    if (o->from) st = cli_load(c, &tr->from, o->from);
    set_attention(tr->from, o);
    if (!st && o->teacher) st = cli_load(c, &tr->teacher, o->teacher);
    if (st) return st;
    tr->tokenizer = tr->from ? tr->from->tokenizer : PARE_TOK_BYTES;
    if (!o->vocab) return PARE_OK;
    st = pare_blob_open(&tr->vocab, o->vocab, &c->err);
    if (!st) st = pare_vocab_detect(&tr->tokenizer, tr->vocab->data, tr->vocab->bytes, &c->err);
    return cli_name(c, st, o->vocab);
}

static pare_status new_model(const training *tr, pare_model **out, uint64_t seed, pare_err *err)
{
    const train_opts *o = tr->o;
    const pare_task_facts *f = &tr->facts;
    const pare_frozen_gpt source = popup_source(o, seed);
    const pare_init init = {.kind = (pare_init_kind)o->kind,
                            .dim = o->dim,
                            .layers = o->layers,
                            .heads = o->heads,
                            .ffn = o->ffn,
                            .vocab = f->ids,
                            .context = f->tokens,
                            .features = f->features,
                            .outputs = f->outputs,
                            .self_loops = o->self_loops,
                            .full = o->full,
                            .expander_degree = o->expander,
                            .pool = f->pool,
                            .variant = o->variant,
                            .seed = seed,
                            .source = o->popup ? &source : NULL};
    pare_status st = pare_init_model(out, &init, err);
    if (!st) set_attention(*out, o);
    if (st || !tr->vocab) return st;
    st = pare_model_keep(*out, tr->vocab, err);
    if (st) {
        pare_model_free(*out);
        *out = NULL;
        return st;
    }
    (*out)->tokenizer = tr->tokenizer;
    (*out)->vocab = tr->vocab->data;
    (*out)->vocab_bytes = tr->vocab->bytes;
    return PARE_OK;
}

/* Whether a model can learn from these data, or teach on them. */
static pare_status check_model_fits(training *tr, const pare_model *m, const char *option)
{
    pare_batch b;
    cli *c = tr->c;
    const pare_task *l = &tr->task[0];
    if (on_nodes(tr->o) ? m->embedding.ids : m->pattern.kind == PARE_GRAPH)
        return pare_fail(&c->err, PARE_ERR_INPUT, "%s is a %s, but --kind is %s", option,
                         m->pattern.kind == PARE_GRAPH ? "graph transformer" : "model of token ids",
                         train_kinds[tr->o->kind]);
    const pare_mark mark = pare_arena_mark(c->arena);
    pare_status st = l->batch(l->self, &b, c->arena, 0, 0, &c->err);
    for (size_t i = 0; !st && i < b.in.n; i++) st = pare_input_check(m, &b.in.in[i], &c->err);
    pare_arena_reset(c->arena, mark);
    if (!st && pare_model_outputs(m) != tr->facts.outputs)
        st = pare_fail(&c->err, PARE_ERR_INPUT, "the model has %zu outputs, the data need %zu",
                       pare_model_outputs(m), tr->facts.outputs);
    if (!st && (m->head.pool == PARE_POOL_NONE) != (tr->facts.pool == PARE_POOL_NONE))
        st = pare_fail(&c->err, PARE_ERR_INPUT,
                       "the model has an output per %s, the data need one per %s",
                       m->head.pool == PARE_POOL_NONE ? "token" : "sequence",
                       tr->facts.pool == PARE_POOL_NONE ? "token" : "sequence");
    if (st && st != PARE_ERR_MEMORY) pare_err_prefix(&c->err, option);
    return st;
}

/* ---- settings ------------------------------------------------------------------------------ */

enum { MOST_VALUES = 32 };
typedef struct values {
    double v[MOST_VALUES];
    size_t n;
} values;

static pare_status bad_grid(training *tr, const char *at)
{
    return pare_fail(&tr->c->err, PARE_ERR_USAGE,
                     "--grid: '%s' is not understood; write it like lr=0.1,0.01;epochs=50,100 (at "
                     "most %d values each)",
                     at, MOST_VALUES);
}

/* Numbers between commas, up to the end or a semicolon, where *at is left. */
static bool read_values(values *out, const char **at)
{
    if (out->n) return false; /* given twice */
    for (;; ++*at) {
        char *end = NULL;
        const double v = strtod(*at, &end);
        if (end == *at || **at == ' ' || !(v > 0 && v <= 1e9) || out->n == MOST_VALUES)
            return false;
        out->v[out->n++] = v;
        *at = end;
        if (**at != ',') return **at == '\0' || **at == ';';
    }
}

/* ---- runs ---------------------------------------------------------------------------------- */

static pare_status open_runs(training *tr)
{
    cli *c = tr->c;
    const size_t n = tr->settings * tr->runs;
    tr->progress = pare_alloc(c->arena, n, sizeof *tr->progress);
    tr->checkpoint = pare_alloc(c->arena, n, sizeof *tr->checkpoint);
    if (!tr->progress || !tr->checkpoint) return pare_no_memory(&c->err);
    for (size_t i = 0; i < n; i++) {
        const size_t at = i / tr->runs, run = i % tr->runs;
        tr->progress[i] = (run_progress){tr, run, at, 0};
        tr->checkpoint[i] = n == 1
                                ? cli_suffixed(c, c->out, ".checkpoint")
                                : pare_sprintf(c->arena, "%s.checkpoint-%zu-%zu", c->out, at, run);
        if (!tr->checkpoint[i]) return pare_no_memory(&c->err);
        interrupt_cleans_also(tr->checkpoint[i]);
        tr->total += training_steps(tr, at);
    }
    /* Forgetting --resume does not lose a run that was stopped. Where --resume finds nothing
     * (perhaps because another number of runs gives checkpoints other names), a note says so. */
    size_t there = 0;
    for (size_t i = 0; i < n; i++) {
        if (!pare_file_exists(tr->checkpoint[i])) continue;
        there++;
        if (!tr->o->resume && !c->force)
            return pare_fail(&c->err, PARE_ERR_IO,
                             "%s exists: --resume continues from it, -f starts anew",
                             tr->checkpoint[i]);
    }
    if (tr->o->resume && there == 0 && pare_ranks_rank(tr->ranks) == 0)
        cli_note(c, "--resume: there is no checkpoint %s, so training starts at step 0",
                 tr->checkpoint[0]);
    return PARE_OK;
}

static uint64_t steps_between(size_t given, uint64_t usual)
{
    return given ? given : usual ? usual : 1;
}

/* The default warm-up is for runs of the default length; one that is given is taken as it is. */
static uint64_t warmup_steps(const train_opts *o, uint64_t steps)
{
    const size_t usual = o->recipe->warmup;
    if (o->warmup != WARMUP_DEFAULT) return o->warmup;
    return usual > steps / 10 ? steps / 10 : usual;
}

pare_status training_open(training *tr, cli *c, const train_opts *o, pare_ranks *ranks)
{
    *tr = (training){.c = c, .o = o, .ranks = ranks, .runs = o->runs, .last_score = NAN};
    pare_model *m = NULL;
    tr->popup.keep = o->keep;
    /* --grid lr=0.1,0.01;epochs=50,100, or the one setting of --lr and --epochs. */
    values lr = {0}, epochs = {0};
    uint64_t whole[MOST_VALUES];
    for (const char *at = o->grid; at && *at;) {
        const char *from = at;
        bool good = false;
        if (strncmp(at, "lr=", 3) == 0) {
            at += 3;
            good = read_values(&lr, &at);
        } else if (strncmp(at, "epochs=", 7) == 0) {
            at += 7;
            good = read_values(&epochs, &at);
            for (size_t i = 0; i < epochs.n; i++) good = good && floor(epochs.v[i]) == epochs.v[i];
        }
        if (!good) return bad_grid(tr, from);
        if (*at == ';') at++;
    }
    if (o->grid && lr.n + epochs.n == 0) return bad_grid(tr, o->grid);
    if (epochs.n && (o->steps || o->epochs))
        return pare_fail(&tr->c->err, PARE_ERR_USAGE,
                         "--grid says the epochs: leave --epochs and --steps out");
    if (lr.n == 0) lr.v[lr.n++] = o->lr;
    if (epochs.n == 0) epochs.v[epochs.n++] = (double)o->epochs;
    for (size_t i = 0; i < epochs.n; i++) whole[i] = (uint64_t)epochs.v[i];
    tr->settings = lr.n * epochs.n;
    pare_status st =
        pare_grid(&tr->setting, tr->c->arena, lr.v, lr.n, whole, epochs.n, &tr->c->err);
    if (!st) st = open_models(tr);
    if (!st) st = open_tasks(tr);
    /* Mistakes in the shape are reported before the first step. */
    if (!st)
        st = tr->from ? check_model_fits(tr, tr->from, "--from") : new_model(tr, &m, 0, &c->err);
    if (!st) st = oracle_prepare(tr, tr->from ? tr->from : m);
    pare_model_free(m);
    if (!st && tr->teacher) st = check_model_fits(tr, tr->teacher, "--teacher");
    if (!st) st = open_runs(tr);
    if (st || o->warmup != WARMUP_DEFAULT) return st;
    const uint64_t steps = training_steps(tr, 0), warmup = warmup_steps(o, steps);
    if (warmup != o->recipe->warmup && pare_ranks_rank(ranks) == 0)
        cli_note(c,
                 "the warm-up is shortened from %zu to %llu of the %llu steps; --warmup N sets it",
                 o->recipe->warmup, (unsigned long long)warmup, (unsigned long long)steps);
    return PARE_OK;
}

void training_close(training *tr)
{
    pare_model_free(tr->from);
    pare_model_free(tr->teacher);
    pare_blob_release(tr->vocab);
    if (tr->log) fclose(tr->log);
    oracle_close_all(tr);
}

pare_status training_open_run(void *self, pare_run_parts *out, size_t run, size_t at, pare_err *err)
{
    training *tr = self;
    const train_opts *o = tr->o;
    const size_t i = at * tr->runs + run;
    const uint64_t steps = training_steps(tr, at), seed = training_seed(tr, run);
    pare_model *m = NULL;
    const pare_attention_provider *by;
    pare_status st = oracle_open_run(tr, &by, i, err);
    if (!st && !tr->from) st = new_model(tr, &m, seed, err);
    if (st) return st;
    *out = (pare_run_parts){.start = m ? m : tr->from, .task = training_task(tr, run), .own = m};
    out->opts = (pare_train_opts){
        .steps = steps,
        .warmup = warmup_steps(o, steps),
        .eval_every = steps_between(o->eval_every, on_nodes(o) ? 1 : steps / 20),
        .checkpoint_every = steps_between(o->checkpoint_every, steps / 20),
        .lr = tr->setting[at].lr,
        .last_lr = o->last_lr,
        .clip = o->clip,
        .dropout = o->dropout,
        .adamw = PARE_ADAMW_OPTS_DEFAULT,
        .seed = seed,
        .popup = o->popup ? &tr->popup : NULL,
        .teacher = tr->teacher,
        .attention = by,
        .distill = o->distill,
        .temperature = o->temperature,
        .hidden = o->hidden,
        .checkpoint = tr->checkpoint[i],
        .resume = o->resume,
        .log = log_step,
        .poly = run == 0 && at == 0 ? log_poly : NULL,
        .log_self = &tr->progress[i],
    };
    out->opts.adamw.weight_decay = o->decay;
    out->opts.adamw.decay_vectors = o->recipe->decay_vectors;
    return PARE_OK;
}

void training_close_run(void *self, pare_run_parts *parts)
{
    (void)self;
    pare_model_free(parts->own);
}
