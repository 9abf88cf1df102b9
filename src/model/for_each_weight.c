/* for_each_weight.c - every weight by its name: the one list that the file, the hashes, the counts
 * and the checks share. */
#include <pare/model.h>
#include <stdio.h>

typedef struct walk {
    pare_weight_fn *fn;
    void *self;
    pare_err *err;
    pare_status st;
    char prefix[64];
} walk;

static void visit(walk *w, const char *name, pare_weight *weight, bool vector)
{
    char full[160];
    if (w->st) return;
    snprintf(full, sizeof full, "%s%s", w->prefix, name);
    w->st = w->fn(w->self, full, weight, vector, w->err);
}

static void visit_norm(walk *w, const char *name, pare_norm *n)
{
    static const char *const part[] = {"gain", "bias", "offset", "mean", "var"};
    pare_weight *const weight[] = {&n->gain, &n->bias, &n->offset, &n->mean, &n->var};
    char full[64];
    if (n->kind == PARE_NORM_NONE) return;
    for (size_t i = 0; i < 5; i++) {
        snprintf(full, sizeof full, "%s.%s", name, part[i]);
        visit(w, full, weight[i], true);
    }
}

static void visit_dense(walk *w, const char *name, pare_dense *d)
{
    char full[64];
    snprintf(full, sizeof full, "%s.weight", name);
    visit(w, full, &d->w, false);
    snprintf(full, sizeof full, "%s.bias", name);
    visit(w, full, &d->b, true);
}

pare_status pare_model_each_weight(pare_model *m, pare_weight_fn *fn, void *self, pare_err *err)
{
    walk w = {.fn = fn, .self = self, .err = err, .prefix = "embedding."};
    visit(&w, "embedding", &m->embedding.table, false);
    visit(&w, "positions", &m->embedding.pos.table, false);
    visit_dense(&w, "map", &m->embedding.map);
    visit_norm(&w, "norm", &m->embedding.norm);
    for (size_t b = 0; b < m->nblocks && !w.st; b++) {
        pare_attn *const a = &m->blocks[b].attn;
        pare_ffn *const f = &m->blocks[b].ffn;
        if (a->kind != PARE_ATTN_NONE) {
            snprintf(w.prefix, sizeof w.prefix, "blocks.%zu.attn.", b);
            visit_norm(&w, "in_norm", &a->in_norm);
            visit(&w, "wq", &a->wq, false);
            visit(&w, "bq", &a->bq, true);
            visit(&w, "wk", &a->wk, false);
            visit(&w, "bk", &a->bk, true);
            visit(&w, "wv", &a->wv, false);
            visit(&w, "bv", &a->bv, true);
            visit(&w, "wo", &a->wo, false);
            visit(&w, "bo", &a->bo, true);
            visit(&w, "freqs", &a->freqs, true);
            visit(&w, "matrix", &a->matrix, false);
            visit(&w, "mix", &a->mix, false);
            visit(&w, "skip", &a->skip.w, a->skip.kind == PARE_SKIP_DIAGONAL);
            visit_norm(&w, "out_norm", &a->out_norm);
        }
        if (f->kind == PARE_FFN_NONE) continue;
        snprintf(w.prefix, sizeof w.prefix, "blocks.%zu.ffn.", b);
        visit_norm(&w, "in_norm", &f->in_norm);
        for (size_t l = 0; l < f->nlayers; l++) {
            char name[32];
            snprintf(name, sizeof name, "%zu", l);
            visit_dense(&w, name, &f->layers[l]);
        }
        visit(&w, "skip", &f->skip.w, f->skip.kind == PARE_SKIP_DIAGONAL);
        visit_norm(&w, "out_norm", &f->out_norm);
    }
    snprintf(w.prefix, sizeof w.prefix, "head.");
    visit_norm(&w, "norm", &m->head.norm);
    visit_dense(&w, "dense", &m->head.dense);
    visit_dense(&w, "out", &m->head.out);
    return w.st;
}
