/* What a training command means: data, models, settings, runs. */
#include "interrupt.h"
#include "warn_text.h"
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- small answers ------------------------------------------------------------------------- */

const pare_lesson *plan_lesson(const plan *p, size_t run)
{
    return &p->lesson[p->o->over == OVER_SPLIT ? run : 0];
}

uint64_t plan_steps(const plan *p, size_t at)
{
    const uint64_t epochs = p->setting[at].epochs;
    return epochs ? epochs * p->lesson[0].epoch : p->o->steps;
}

uint64_t plan_seed(const plan *p, size_t run)
{
    return p->c->seed + run;
}

size_t plan_split(const plan *p, size_t run)
{
    return p->o->split + (p->o->over == OVER_SPLIT ? run : 0);
}

static bool on_nodes(const train_opts *o)
{
    return o->kind <= PARE_INIT_GCN;
}

/* ---- lessons ------------------------------------------------------------------------------- */

typedef enum data_kind { DATA_GRAPH, DATA_SERIES, DATA_TEXT, DATA_SENTENCES } data_kind;

static bool ends_with(const char *s, const char *tail)
{
    const size_t n = strlen(s), t = strlen(tail);
    return n >= t && strcmp(s + n - t, tail) == 0;
}

static pare_status find_data_kind(plan *p, data_kind *out, const char *path)
{
    cli *c = p->c;
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

static pare_status fits_kind(plan *p, data_kind d)
{
    static const char *const what[] = {"a graph", "sequences", "text", "sentences with labels"};
    static const char *const wants[] = {
        "a graph (.npz)",
        ("sequences (.npz with inputs and targets or values) or sentences with labels (.tsv)"),
        "text (.txt, .npy of token ids) or sequences (.npz)"};
    const train_opts *o = p->o;
    cli *const c = p->c;
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
    pare_status st;
    if ((st = cli_only(c, "val,test", d != DATA_GRAPH,
                       "text and sequences; the masks of a graph are in its file")) ||
        (st = cli_only(c, "batch", d != DATA_GRAPH, "text and sequences; a graph is one batch")) ||
        (st = cli_only(c, "largest-component", d == DATA_GRAPH, "a graph")) ||
        (st = cli_only(c, "split", d != DATA_TEXT, "a graph, sequences or sentences")) ||
        (st = cli_only(c, "window,eval-tokens", d == DATA_TEXT, "text")))
        return st;
    if ((st = cli_only(c, "vocab", d == DATA_TEXT || d == DATA_SENTENCES, "text"))) return st;
    if (d == DATA_TEXT && o->over == OVER_SPLIT)
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--over split: text has no splits; leave it out to vary the seed");
    return PARE_OK;
}

static void say_text(const plan *p)
{
    if (pare_ranks_rank(p->ranks) == 0) warn_text(p->c, p->o->data, &p->facts.notes);
}

static pare_status open_lesson(plan *p, data_kind d, pare_lesson *l, size_t split)
{
    cli *c = p->c;
    const train_opts *o = p->o;
    const pare_model *m = p->from;
    const uint8_t *const vocab = m ? m->vocab : p->vocab ? p->vocab->data : NULL;
    const size_t vocab_bytes = m ? m->vocab_bytes : p->vocab ? p->vocab->bytes : 0;
    if (d == DATA_GRAPH) {
        const pare_graph_lesson g = {.path = o->data,
                                     .split = split,
                                     .largest_component = o->largest_component,
                                     .full = m ? m->pattern.kind != PARE_GRAPH
                                               : o->full || o->kind == PARE_INIT_MLP,
                                     .classes = m ? pare_model_outputs(m) : 0};
        return pare_lesson_graph(l, &p->facts, c->arena, &g, &c->err);
    }
    if (d == DATA_SERIES) {
        const pare_series_lesson s = {.train = o->data,
                                      .val = o->val,
                                      .test = o->test,
                                      .split = split,
                                      .batch = o->batch,
                                      .ids = m ? m->stem.vocab : 0,
                                      .outputs = m ? pare_model_outputs(m) : 0};
        return pare_lesson_series(l, &p->facts, c->arena, &s, &c->err);
    }
    if (d == DATA_SENTENCES) {
        const pare_sentence_lesson s = {.train = o->data,
                                        .val = o->val,
                                        .test = o->test,
                                        .tokenizer = p->tokenizer,
                                        .vocab = vocab,
                                        .vocab_bytes = vocab_bytes,
                                        .split = split,
                                        .batch = o->batch,
                                        .context = m ? m->context : 0,
                                        .outputs = m ? pare_model_outputs(m) : 0};
        const pare_status st = pare_lesson_sentences(l, &p->facts, c->arena, &s, &c->err);
        if (!st && split == o->split) say_text(p);
        return st;
    }
    pare_text_lesson t = {.train = o->data,
                          .val = o->val,
                          .test = o->test,
                          .tokenizer = p->tokenizer,
                          .vocab = vocab,
                          .vocab_bytes = vocab_bytes,
                          .window = o->window,
                          .batch = o->batch,
                          .mark_tokens = o->eval_tokens};
    pare_status st = pare_lesson_text(l, &p->facts, c->arena, &t, &c->err);
    if (!st) say_text(p);
    const size_t seen = t.mark_tokens;
    if (st || seen == 0 || (p->facts.val <= seen && p->facts.test <= seen)) return st;
    t.mark_tokens = 0;
    return pare_lesson_text(&p->whole, &p->facts, c->arena, &t, &c->err);
}

static pare_status open_lessons(plan *p)
{
    cli *c = p->c;
    const train_opts *o = p->o;
    data_kind d;
    const size_t n = o->over == OVER_SPLIT ? p->runs : 1;
    pare_status st = find_data_kind(p, &d, o->data);
    if (!st) st = fits_kind(p, d);
    if (st) return st;
    static const char *const units[] = {"nodes", "sequences", "tokens", "sentences"};
    p->unit = units[d];
    p->lesson = pare_alloc(c->arena, n, sizeof *p->lesson);
    if (!p->lesson) return pare_no_memory(&c->err);
    for (size_t i = 0; !st && i < n; i++) st = open_lesson(p, d, &p->lesson[i], o->split + i);
    return st;
}

/* ---- models -------------------------------------------------------------------------------- */

static pare_status open_vocab(plan *p)
{
    cli *c = p->c;
    p->tokenizer = p->from ? p->from->tokenizer : PARE_TOK_BYTES;
    if (!p->o->vocab) return PARE_OK;
    pare_status st = pare_blob_open(&p->vocab, p->o->vocab, &c->err);
    if (!st) st = pare_vocab_detect(&p->tokenizer, p->vocab->data, p->vocab->bytes, &c->err);
    return cli_name(c, st, p->o->vocab);
}

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

static pare_status open_models(plan *p)
{
    const train_opts *o = p->o;
    pare_status st = PARE_OK;
    if (o->from) st = cli_load(p->c, &p->from, o->from);
    set_attention(p->from, o);
    if (!st && o->teacher) st = cli_load(p->c, &p->teacher, o->teacher);
    return st ? st : open_vocab(p);
}

static pare_status fresh(const plan *p, pare_model **out, uint64_t seed, pare_err *err)
{
    const train_opts *o = p->o;
    const pare_lesson_facts *f = &p->facts;
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
    if (st || !p->vocab) return st;
    st = pare_model_keep(*out, p->vocab, err);
    if (st) {
        pare_model_free(*out);
        *out = NULL;
        return st;
    }
    (*out)->tokenizer = p->tokenizer;
    (*out)->vocab = p->vocab->data;
    (*out)->vocab_bytes = p->vocab->bytes;
    return PARE_OK;
}

/* A model that is to be taught, or to teach, with this lesson. */
static pare_status suits(plan *p, const pare_model *m, const char *option)
{
    pare_batch b;
    cli *c = p->c;
    const pare_lesson *l = &p->lesson[0];
    if (on_nodes(p->o) ? m->stem.ids : m->pattern.kind == PARE_GRAPH)
        return pare_fail(&c->err, PARE_ERR_INPUT, "%s is a %s, but --kind is %s", option,
                         m->pattern.kind == PARE_GRAPH ? "graph transformer" : "model of token ids",
                         train_kinds[p->o->kind]);
    const pare_mark mark = pare_arena_mark(c->arena);
    pare_status st = l->batch(l->self, &b, c->arena, 0, 0, &c->err);
    if (!st) st = pare_input_check(m, &b.in, &c->err);
    pare_arena_reset(c->arena, mark);
    if (!st && pare_model_outputs(m) != p->facts.outputs)
        st = pare_fail(&c->err, PARE_ERR_INPUT, "the model has %zu outputs, the data need %zu",
                       pare_model_outputs(m), p->facts.outputs);
    if (!st && (m->top.pool == PARE_POOL_NONE) != (p->facts.pool == PARE_POOL_NONE))
        st = pare_fail(&c->err, PARE_ERR_INPUT,
                       "the model has an output per %s, the data need one per %s",
                       m->top.pool == PARE_POOL_NONE ? "token" : "sequence",
                       p->facts.pool == PARE_POOL_NONE ? "token" : "sequence");
    if (st && st != PARE_ERR_MEMORY) pare_err_prefix(&c->err, option);
    return st;
}

/* Mistakes in the shape are told before the first step. */
static pare_status try_models(plan *p)
{
    pare_model *m = NULL;
    pare_status st = p->from ? suits(p, p->from, "--from") : fresh(p, &m, 0, &p->c->err);
    if (!st) st = oracle_open(p, p->from ? p->from : m);
    pare_model_free(m);
    if (!st && p->teacher) st = suits(p, p->teacher, "--teacher");
    return st;
}

/* ---- settings ------------------------------------------------------------------------------ */

enum { MOST_VALUES = 32 };
typedef struct values {
    double v[MOST_VALUES];
    size_t n;
} values;

static pare_status bad_grid(plan *p, const char *at)
{
    return pare_fail(&p->c->err, PARE_ERR_USAGE,
                     "--grid: '%s' is not understood; write it like lr=0.1,0.01;epochs=50,100 (at "
                     "most %d values each)",
                     at, MOST_VALUES);
}

/* Numbers between commas, up to the end or a semicolon, where *at is left. */
static bool read_values(values *out, const char **at)
{
    if (out->n) return false; /* said twice */
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

static pare_status read_grid(plan *p, values *lr, values *epochs)
{
    for (const char *at = p->o->grid; at && *at;) {
        const char *from = at;
        bool good = false;
        if (strncmp(at, "lr=", 3) == 0) {
            at += 3;
            good = read_values(lr, &at);
        } else if (strncmp(at, "epochs=", 7) == 0) {
            at += 7;
            good = read_values(epochs, &at);
            for (size_t i = 0; i < epochs->n; i++)
                good = good && floor(epochs->v[i]) == epochs->v[i];
        }
        if (!good) return bad_grid(p, from);
        if (*at == ';') at++;
    }
    if (p->o->grid && lr->n + epochs->n == 0) return bad_grid(p, p->o->grid);
    return PARE_OK;
}

static pare_status open_settings(plan *p)
{
    const train_opts *o = p->o;
    values lr = {0}, epochs = {0};
    uint64_t whole[MOST_VALUES];
    const pare_status st = read_grid(p, &lr, &epochs);
    if (st) return st;
    if (epochs.n && (o->steps || o->epochs))
        return pare_fail(&p->c->err, PARE_ERR_USAGE,
                         "--grid says the epochs: leave --epochs and --steps out");
    if (lr.n == 0) lr.v[lr.n++] = o->lr;
    if (epochs.n == 0) epochs.v[epochs.n++] = (double)o->epochs;
    for (size_t i = 0; i < epochs.n; i++) whole[i] = (uint64_t)epochs.v[i];
    p->settings = lr.n * epochs.n;
    return pare_grid(&p->setting, p->c->arena, lr.v, lr.n, whole, epochs.n, &p->c->err);
}

/* ---- runs ---------------------------------------------------------------------------------- */

static pare_status open_lines(plan *p)
{
    cli *c = p->c;
    const size_t n = p->settings * p->runs;
    p->line = pare_alloc(c->arena, n, sizeof *p->line);
    p->checkpoint = pare_alloc(c->arena, n, sizeof *p->checkpoint);
    if (!p->line || !p->checkpoint) return pare_no_memory(&c->err);
    for (size_t i = 0; i < n; i++) {
        const size_t at = i / p->runs, run = i % p->runs;
        p->line[i] = (run_line){p, run, at, 0};
        p->checkpoint[i] = n == 1
                               ? cli_suffixed(c, c->out, ".checkpoint")
                               : pare_sprintf(c->arena, "%s.checkpoint-%zu-%zu", c->out, at, run);
        if (!p->checkpoint[i]) return pare_no_memory(&c->err);
        interrupt_cleans_also(p->checkpoint[i]);
        p->total += plan_steps(p, at);
    }
    return PARE_OK;
}

/* A run that was stopped is not lost by forgetting --resume, and who says --resume (perhaps with
 * another number of runs, whose checkpoints have other names) is told when nothing is there. */
static pare_status check_checkpoints(plan *p)
{
    cli *c = p->c;
    size_t there = 0;
    for (size_t i = 0; i < p->settings * p->runs; i++) {
        if (!pare_file_exists(p->checkpoint[i])) continue;
        there++;
        if (!p->o->resume && !c->force)
            return pare_fail(&c->err, PARE_ERR_IO,
                             "%s exists: --resume continues from it, -f starts anew",
                             p->checkpoint[i]);
    }
    if (p->o->resume && there == 0 && pare_ranks_rank(p->ranks) == 0)
        cli_note(c, "--resume: there is no checkpoint %s, so training starts at step 0",
                 p->checkpoint[0]);
    return PARE_OK;
}

static uint64_t every(size_t said, uint64_t usual)
{
    return said ? said : usual ? usual : 1;
}

/* The default warm-up is for runs of the default length; one that is given is taken as it is. */
static uint64_t warmup(const train_opts *o, uint64_t steps)
{
    const size_t usual = o->recipe->warmup;
    if (o->warmup != WARMUP_NOT_SAID) return o->warmup;
    return usual > steps / 10 ? steps / 10 : usual;
}

static void say_warmup(const plan *p)
{
    const uint64_t steps = plan_steps(p, 0), is = warmup(p->o, steps);
    if (p->o->warmup != WARMUP_NOT_SAID || is == p->o->recipe->warmup) return;
    if (pare_ranks_rank(p->ranks) == 0)
        cli_note(p->c,
                 "the warm-up is shortened from %zu to %llu of the %llu steps; --warmup N sets it",
                 p->o->recipe->warmup, (unsigned long long)is, (unsigned long long)steps);
}

pare_status plan_open(plan *p, cli *c, const train_opts *o, pare_ranks *ranks)
{
    *p = (plan){.c = c, .o = o, .ranks = ranks, .runs = o->runs, .last_score = NAN};
    p->popup.keep = o->keep;
    pare_status st = open_settings(p);
    if (!st) st = open_models(p);
    if (!st) st = open_lessons(p);
    if (!st) st = try_models(p);
    if (!st) st = open_lines(p);
    if (!st) st = check_checkpoints(p);
    if (!st) say_warmup(p);
    return st;
}

void plan_close(plan *p)
{
    pare_model_free(p->from);
    pare_model_free(p->teacher);
    pare_blob_release(p->vocab);
    if (p->log) fclose(p->log);
    oracle_close(p);
}

pare_status plan_start(void *self, pare_run_parts *out, size_t run, size_t at, pare_err *err)
{
    plan *p = self;
    const train_opts *o = p->o;
    const size_t i = at * p->runs + run;
    const uint64_t steps = plan_steps(p, at), seed = plan_seed(p, run);
    pare_model *m = NULL;
    const pare_attention_provider *by;
    pare_status st = oracle_start(p, &by, i, err);
    if (!st && !p->from) st = fresh(p, &m, seed, err);
    if (st) return st;
    *out = (pare_run_parts){.start = m ? m : p->from, .lesson = plan_lesson(p, run), .own = m};
    out->opts = (pare_train_opts){
        .steps = steps,
        .warmup = warmup(o, steps),
        .mark_every = every(o->eval_every, on_nodes(o) ? 1 : steps / 20),
        .keep_every = every(o->keep_every, steps / 20),
        .lr = p->setting[at].lr,
        .last_lr = o->last_lr,
        .clip = o->clip,
        .dropout = o->dropout,
        .adamw = PARE_ADAMW_DEFAULT,
        .seed = seed,
        .popup = o->popup ? &p->popup : NULL,
        .teacher = p->teacher,
        .attention = by,
        .distill = o->distill,
        .temperature = o->temperature,
        .hidden = o->hidden,
        .checkpoint = p->checkpoint[i],
        .resume = o->resume,
        .log = log_step,
        .poly = run == 0 && at == 0 ? log_poly : NULL,
        .log_self = &p->line[i],
    };
    out->opts.adamw.weight_decay = o->decay;
    out->opts.adamw.decay_vectors = o->recipe->decay_vectors;
    return PARE_OK;
}

void plan_stop(void *self, pare_run_parts *parts)
{
    (void)self;
    pare_model_free(parts->own);
}
