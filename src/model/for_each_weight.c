/* Every weight by its name: the one list that the file, the hashes, the counts and the checks
 * share. */
#include <pare/model.h>
#include <stdio.h>

typedef struct walk {
    pare_weight_fn *fn;
    void *self;
    pare_err *err;
    pare_status st;
    char prefix[64];
} walk;

static void one(walk *w, const char *name, pare_weight *weight, bool vector)
{
    char full[160];
    if (w->st) return;
    snprintf(full, sizeof full, "%s%s", w->prefix, name);
    w->st = w->fn(w->self, full, weight, vector, w->err);
}

static void norm(walk *w, const char *name, pare_norm *n)
{
    static const char *const part[] = {"gain", "bias", "offset", "mean", "var"};
    pare_weight *const weight[] = {&n->gain, &n->bias, &n->offset, &n->mean, &n->var};
    char full[64];
    if (n->kind == PARE_NORM_NONE) return;
    for (size_t i = 0; i < 5; i++) {
        snprintf(full, sizeof full, "%s.%s", name, part[i]);
        one(w, full, weight[i], true);
    }
}

static void dense(walk *w, const char *name, pare_dense *d)
{
    char full[64];
    snprintf(full, sizeof full, "%s.weight", name);
    one(w, full, &d->w, false);
    snprintf(full, sizeof full, "%s.bias", name);
    one(w, full, &d->b, true);
}

static void attention(walk *w, pare_attn *a)
{
    if (a->kind == PARE_ATTN_NONE) return;
    norm(w, "in_norm", &a->in_norm);
    one(w, "wq", &a->wq, false);
    one(w, "bq", &a->bq, true);
    one(w, "wk", &a->wk, false);
    one(w, "bk", &a->bk, true);
    one(w, "wv", &a->wv, false);
    one(w, "bv", &a->bv, true);
    one(w, "wo", &a->wo, false);
    one(w, "bo", &a->bo, true);
    one(w, "freqs", &a->freqs, true);
    one(w, "matrix", &a->matrix, false);
    one(w, "mix", &a->mix, false);
    one(w, "skip", &a->skip.w, a->skip.kind == PARE_SKIP_DIAGONAL);
    norm(w, "out_norm", &a->out_norm);
}

static void ffn(walk *w, pare_ffn *f)
{
    if (f->kind == PARE_FFN_NONE) return;
    norm(w, "in_norm", &f->in_norm);
    for (size_t l = 0; l < f->nlayers; l++) {
        char name[32];
        snprintf(name, sizeof name, "%zu", l);
        dense(w, name, &f->layers[l]);
    }
    one(w, "skip", &f->skip.w, f->skip.kind == PARE_SKIP_DIAGONAL);
    norm(w, "out_norm", &f->out_norm);
}

pare_status pare_model_visit(pare_model *m, pare_weight_fn *fn, void *self, pare_err *err)
{
    walk w = {.fn = fn, .self = self, .err = err, .prefix = "stem."};
    one(&w, "embedding", &m->stem.embedding, false);
    one(&w, "positions", &m->stem.pos.table, false);
    dense(&w, "map", &m->stem.map);
    norm(&w, "norm", &m->stem.norm);
    for (size_t b = 0; b < m->nblocks && !w.st; b++) {
        snprintf(w.prefix, sizeof w.prefix, "blocks.%zu.attn.", b);
        attention(&w, &m->blocks[b].attn);
        snprintf(w.prefix, sizeof w.prefix, "blocks.%zu.ffn.", b);
        ffn(&w, &m->blocks[b].ffn);
    }
    snprintf(w.prefix, sizeof w.prefix, "top.");
    norm(&w, "norm", &m->top.norm);
    dense(&w, "dense", &m->top.dense);
    dense(&w, "out", &m->top.out);
    return w.st;
}
