/* task_text.c - text: predict the next token. A batch is windows that begin anywhere in the training
 * text; scores look at fixed windows side by side, in which every token but the first of a document
 * is predicted once. */
#include "base/support.h"
#include "data/dataset.h"
#include "task.h"
#include "text/text_internal.h"

#include <string.h>

/* Some of the training text without a gap: no window reaches into another piece. */
typedef struct piece {
    const int64_t *ids;
    size_t n;
    size_t first; /* places where a window can begin, in all pieces before it */
} piece;

typedef struct text_task {
    size_t window, batch;
    piece *piece;
    size_t pieces, places;
    pare_dataset part[2]; /* by pare_fold_part: what scores are taken on */
} text_task;

/* What is read of all files. */
typedef struct text_data {
    pare_dataset part[PARTS];
    const int64_t *between; /* the tokens that separate documents */
    size_t nbetween;
} text_data;

/* ---- reading ------------------------------------------------------------------------------- */

/* Documents cut into windows, or (window SIZE_MAX / 2) as they are. */
static pare_status read_text(pare_dataset *d, pare_arena *a, const pare_model *m, const char *path,
                             size_t window, bool whole, pare_err *err)
{
    const pare_data_opts o = {.window = window, .whole = whole};
    const pare_status st = pare_dataset_load(d, a, m, path, &o, err);
    if (st || d->task == PARE_TASK_TEXT) return st;
    return pare_fail(err, PARE_ERR_INPUT, "%s: text is read from .txt, or ids from .npy", path);
}

/* The tokens of what separates documents, unless every text begins or ends with tokens of its own. */
static pare_status read_between(text_data *t, pare_arena *a, const pare_model *m,
                                const char *between, pare_err *err)
{
    pare_tokenizer *k = NULL;
    int64_t *ids = NULL;
    if (!between || !*between) return PARE_OK;
    pare_status st = pare_tokenizer_new(&k, a, m->tokenizer, m->vocab, m->vocab_bytes, err);
    if (!st) st = pare_encode(&ids, &t->nbetween, a, k, "", 0, err);
    if (st || t->nbetween > 0) return t->nbetween = 0, st;
    st = pare_encode(&ids, &t->nbetween, a, k, between, strlen(between), err);
    t->between = ids;
    return st;
}

/* Windows side by side of n tokens. */
static pare_status cut_windows(pare_dataset *out, pare_arena *a, const pare_model *m,
                               const int64_t *ids, size_t n, size_t window, pare_err *err)
{
    *out = (pare_dataset){.task = PARE_TASK_TEXT};
    pare_data_reader r = {.arena = a, .err = err, .model = m, .out = out, .window = window};
    const pare_status st = pare_data_add_windows(&r, ids, n);
    out->inputs = (pare_inputs){r.n, r.in};
    out->target = r.target;
    return st;
}

/* ---- parts --------------------------------------------------------------------------------- */

/* The inputs of the training part, ascending, one behind the other; what separates documents
 * between two of them. A new piece begins where the text of either goes on in an input that belongs to
 * another part. */
static pare_status join_pieces(text_task *t, pare_arena *a, const text_data *d,
                               const size_t *number, size_t n, pare_err *err)
{
    const pare_inputs *const all = &d->part[TRAIN].inputs;
    size_t tokens = 0;
    for (size_t i = 0; i < n; i++) tokens += all->in[number[i]].tokens + d->nbetween;
    int64_t *ids = pare_alloc(a, tokens ? tokens : 1, sizeof *ids);
    t->piece = pare_alloc(a, n ? n : 1, sizeof *t->piece);
    if (!ids || !t->piece) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const size_t k = number[i];
        const bool next = i > 0 && number[i - 1] + 1 == k;
        const bool broken =
            i > 0 && !next && (all->in[k].continues || all->in[number[i - 1] + 1].continues);
        if (i == 0 || broken) t->piece[t->pieces++] = (piece){.ids = ids};
        piece *const p = &t->piece[t->pieces - 1];
        if (p->n > 0 && !all->in[k].continues && d->nbetween) {
            memcpy(ids, d->between, d->nbetween * sizeof *ids);
            ids += d->nbetween;
            p->n += d->nbetween;
        }
        memcpy(ids, all->in[k].ids, all->in[k].tokens * sizeof *ids);
        ids += all->in[k].tokens;
        p->n += all->in[k].tokens;
    }
    return PARE_OK;
}

/* What the seed holds out of the training file; all of it where the other parts have files. */
static pare_status draw_parts(text_task *t, text_data *d, pare_task_facts *f, pare_arena *a,
                              const pare_task_text_opts *o, pare_err *err)
{
    const char *const path[PARTS] = {o->train, o->val, o->test};
    const pare_dataset all = d->part[TRAIN];
    task_parts parts = {.n = {all.inputs.n}};
    pare_status st = PARE_OK;
    if (!o->val || !o->test) {
        st = task_draw_parts(&parts, a, &all.inputs, !o->val, !o->test, o->seed, o->train, err);
    } else {
        parts.number[TRAIN] = pare_alloc(a, parts.n[TRAIN], sizeof *parts.number[TRAIN]);
        if (!parts.number[TRAIN]) return pare_no_memory(err);
        for (size_t i = 0; i < parts.n[TRAIN]; i++) parts.number[TRAIN][i] = i;
    }
    for (size_t p = VAL; p < PARTS && !st; p++) {
        if (!path[p])
            st = pare_dataset_pick(&d->part[p], a, &all, parts.number[p], parts.n[p], err);
        if (!st) task_note_part(f, &d->part[p], path[p] ? NULL : &parts, p);
    }
    return st ? st : join_pieces(t, a, d, parts.number[TRAIN], parts.n[TRAIN], err);
}

/* All tokens of a file, one document behind the other. */
static pare_status join_all(piece *out, pare_arena *a, const pare_dataset *d, pare_err *err)
{
    int64_t *ids;
    *out = (piece){0};
    for (size_t i = 0; i < d->inputs.n; i++) out->n += d->inputs.in[i].tokens;
    out->ids = ids = pare_alloc(a, out->n, sizeof *ids);
    if (!ids) return pare_no_memory(err);
    for (size_t i = 0; i < d->inputs.n; i++) {
        memcpy(ids, d->inputs.in[i].ids, d->inputs.in[i].tokens * sizeof *ids);
        ids += d->inputs.in[i].tokens;
    }
    return PARE_OK;
}

static pare_status check_length(size_t tokens, size_t least, size_t part, const char *path,
                                pare_err *err)
{
    if (tokens >= least) return PARE_OK;
    return pare_fail(err, PARE_ERR_INPUT,
                     "%s: %zu tokens of %s text, %zu are needed; give more text%s", path, tokens,
                     task_part_name[part], least, least > 2 ? ", or a smaller window" : "");
}

/* Fixed shares of the tokens, from the end of the training file. */
static pare_status share_parts(text_task *t, text_data *d, pare_task_facts *f, pare_arena *a,
                               const pare_model *m, const pare_task_text_opts *o, pare_err *err)
{
    const char *const path[PARTS] = {o->train, o->val, o->test};
    piece *const train = t->piece = pare_alloc(a, 1, sizeof *train);
    if (!train) return pare_no_memory(err);
    pare_status st = join_all(train, a, &d->part[TRAIN], err);
    const size_t share = st ? 0 : (size_t)(PARE_TEXT_SHARE * (double)train->n);
    t->pieces = 1;
    for (size_t p = PARTS; --p > TRAIN && !st;) {
        piece text = {.n = share};
        if (path[p]) {
            st = join_all(&text, a, &d->part[p], err);
        } else {
            train->n -= share;
            text.ids = train->ids + train->n;
        }
        if (!st) st = check_length(text.n, 2, p, path[p] ? path[p] : o->train, err);
        if (!st) st = cut_windows(&d->part[p], a, m, text.ids, text.n, t->window, err);
        if (!st) task_note_part(f, &d->part[p], NULL, p);
    }
    return st;
}

/* At most as many inputs as hold `most_tokens` (0: all), spread evenly. */
static pare_status thin_out(pare_dataset *out, pare_arena *a, const pare_dataset *d, size_t window,
                            size_t most_tokens, pare_err *err)
{
    const size_t all = d->inputs.n, most = most_tokens / window > 0 ? most_tokens / window : 1;
    *out = *d;
    if (most_tokens == 0 || all <= most) return PARE_OK;
    const size_t every = (all + most - 1) / most, n = (all + every - 1) / every;
    size_t *const number = pare_alloc(a, n, sizeof *number);
    if (!number) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) number[i] = i * every;
    return pare_dataset_pick(out, a, d, number, n, err);
}

static pare_status read_parts(text_task *t, pare_task_facts *f, pare_arena *a,
                              const pare_task_text_opts *o, pare_err *err)
{
    const char *const path[PARTS] = {o->train, o->val, o->test};
    const size_t each = SIZE_MAX / 2; /* a document is one input */
    const size_t scored = o->eval_window && !o->shares ? o->eval_window : o->window;
    const bool whole = o->whole || o->shares, drawn = !o->shares && !(o->val && o->test);
    pare_model m;
    text_data d = {0};
    pare_status st = task_text_reader(&m, a, o->tokenizer, o->vocab, o->vocab_bytes, 0, err);
    if (!st) st = read_text(&d.part[TRAIN], a, &m, o->train, drawn ? scored : each, whole, err);
    for (size_t p = VAL; p < PARTS && !st; p++)
        if (path[p])
            st = read_text(&d.part[p], a, &m, path[p], o->shares ? each : scored, whole, err);
    if (st) return st;
    *f = (pare_task_facts){.ids = m.embedding.vocab,
                           .outputs = m.embedding.vocab,
                           .tokens = t->window,
                           .pool = PARE_POOL_NONE,
                           .notes = d.part[TRAIN].notes};
    if (!o->shares) st = read_between(&d, a, &m, d.part[TRAIN].between, err);
    if (!st)
        st = o->shares ? share_parts(t, &d, f, a, &m, o, err) : draw_parts(t, &d, f, a, o, err);
    for (size_t i = 0; i < t->pieces; i++) {
        piece *const p = &t->piece[i];
        p->first = t->places;
        t->places += p->n > t->window ? p->n - t->window : 1;
        f->train += p->n;
    }
    if (!st) st = check_length(f->train, t->window + 1, TRAIN, o->train, err);
    if (st) return st;
    f->val = f->on[PARE_PART_VAL].counted;
    f->test = f->on[PARE_PART_TEST].counted;
    st = thin_out(&t->part[PARE_PART_VAL], a, &d.part[VAL], scored, o->eval_tokens, err);
    if (!st) st = thin_out(&t->part[PARE_PART_TEST], a, &d.part[TEST], scored, o->eval_tokens, err);
    return st;
}

/* ---- batches and scores -------------------------------------------------------------------- */

/* The window that begins at a place; a piece that is shorter comes whole. */
static pare_input window_at(const text_task *t, size_t place)
{
    size_t low = 0, high = t->pieces;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (t->piece[middle].first <= place)
            low = middle;
        else
            high = middle;
    }
    const piece *const p = &t->piece[low];
    return (pare_input){.batch = 1,
                        .tokens = p->n > t->window ? t->window : p->n - 1,
                        .ids = p->ids + (place - p->first)};
}

static pare_status batch(void *self, pare_batch *out, pare_arena *a, uint64_t seed, uint64_t step,
                         pare_err *err)
{
    const text_task *t = self;
    pare_input *in = pare_alloc(a, t->batch, sizeof *in);
    int64_t *label = pare_alloc(a, t->batch, t->window * sizeof *label);
    if (!in || !label) return pare_no_memory(err);
    pare_rng r = task_rng(seed, step);
    *out = (pare_batch){.in = {t->batch, in}, .label = label};
    for (size_t b = 0; b < t->batch; b++) {
        in[b] = window_at(t, (size_t)pare_rng_below(&r, t->places));
        memcpy(label, in[b].ids + 1, in[b].tokens * sizeof *label);
        label += in[b].tokens;
    }
    return PARE_OK;
}

static pare_status score(void *self, double *out, const pare_model *m, pare_fold_part part,
                         const pare_exec *exec, pare_err *err)
{
    const text_task *t = self;
    return task_score(out, m, &t->part[part], exec, err);
}

pare_status pare_task_text(pare_task *out, pare_task_facts *facts, pare_arena *a,
                           const pare_task_text_opts *o, pare_err *err)
{
    const char *const path[PARTS] = {o->train, o->val, o->test};
    char vocab[PARE_SHA256_HEX] = "-";
    if (o->window == 0 || o->batch == 0)
        return pare_fail(err, PARE_ERR_USAGE, "window and batch must be at least 1");
    text_task *t = pare_alloc(a, 1, sizeof *t);
    if (!t) return pare_no_memory(err);
    t->window = o->window;
    t->batch = o->batch;
    pare_status st = read_parts(t, facts, a, o, err);
    if (!st && o->vocab) st = pare_sha256_of(vocab, o->vocab, o->vocab_bytes, err);
    if (st) return st;
    const char *id =
        pare_sprintf(a, "text %s %s own %d%d window %zu batch %zu eval-tokens %zu eval-window %zu",
                     pare_tokenizer_name(o->tokenizer), vocab, o->val != NULL, o->test != NULL,
                     o->window, o->batch, o->eval_tokens, o->eval_window);
    if (id)
        id = o->shares ? pare_sprintf(a, "%s shares", id)
                       : pare_sprintf(a, "%s seed %llu whole %d", id, (unsigned long long)o->seed,
                                      o->whole);
    st = task_fingerprint(&id, a, path, PARTS, err);
    if (st) return st;
    const size_t step_tokens = t->window * t->batch;
    *out = (pare_task){.self = t,
                       .id = id,
                       .metric = "nats",
                       .epoch = (facts->train + step_tokens - 1) / step_tokens,
                       .batch = batch,
                       .score = score};
    return PARE_OK;
}
