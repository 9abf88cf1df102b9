/* frozen_gpt.c - seed, stream and spread of every matrix of a frozen GPT (GPT-2's spread, adapted
 * to other widths), and how a masked one is coded as a ticket. */
#include "model/frozen.h"
#include "model/source.h"
#include "model/ticket_store.h"
#include "frozen_gpt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define GPT2_WIDTH 768.0
#define GPT2_SIGMA 0.02

double pare_popup_theory_scale(size_t dk)
{
    return sqrt(sqrt((double)dk)); /* IEEE roots: the same bits everywhere */
}

typedef struct named_matrix {
    const char *name;
    pare_source_matrix is;
} named_matrix;

static const named_matrix *find(const named_matrix *all, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].name, name) == 0) return &all[i];
    return NULL;
}

static const named_matrix *matrix_named(size_t *layer, const char *name)
{
    static const named_matrix ends[] = {{"embedding.embedding", PARE_SOURCE_EMBEDDING},
                                        {"embedding.positions", PARE_SOURCE_POSITIONS}};
    static const named_matrix inner[] = {
        {"attn.wq", PARE_SOURCE_Q},       {"attn.wk", PARE_SOURCE_K},
        {"attn.wv", PARE_SOURCE_V},       {"attn.wo", PARE_SOURCE_O},
        {"ffn.0.weight", PARE_SOURCE_W1}, {"ffn.1.weight", PARE_SOURCE_W2}};
    int after = 0;
    *layer = PARE_SOURCE_ENDS;
    const named_matrix *const end = find(ends, 2, name);
    if (end) return end;
    if (sscanf(name, "blocks.%zu.%n", layer, &after) != 1 || after == 0) return NULL;
    return *layer < PARE_SOURCE_ENDS ? find(inner, 6, name + after) : NULL;
}

bool pare_frozen_gpt_of(pare_frozen *out, const pare_frozen_gpt *s, const char *name, size_t dim,
                        size_t layers)
{
    size_t layer;
    const named_matrix *const p = matrix_named(&layer, name);
    if (!p) return false;
    const pare_source_matrix at = p->is;
    double std = GPT2_SIGMA * sqrt(GPT2_WIDTH / (double)dim);
    if (at == PARE_SOURCE_O || at == PARE_SOURCE_W2) std /= sqrt(2 * (double)layers);
    if (at == PARE_SOURCE_Q || at == PARE_SOURCE_K) std *= s->qk_scale;
    *out = (pare_frozen){.kind = s->kind,
                         .seed = s->seed,
                         .stream = pare_source_stream(layer, 0, at),
                         .unit = pare_frozen_unit(s->kind, std)};
    return true;
}

/* ---- as a ticket ---------------------------------------------------------------------------- */

typedef struct coding {
    pare_model *m;
    const pare_frozen_gpt *from;
    pare_coded *list;
    size_t n;
} coding;

static pare_status code_one(void *self, const char *name, pare_weight *w, bool vector,
                            pare_err *err)
{
    coding *const c = self;
    pare_model *const m = c->m;
    pare_frozen f;
    if (vector || !pare_has(w)) return PARE_OK;
    if (!pare_frozen_gpt_of(&f, c->from, name, m->embedding.width, m->nblocks))
        return pare_fail(err, PARE_ERR_INPUT, "tensor %s is none of a frozen network", name);
    pare_coded *const to = &c->list[c->n++];
    to->name = pare_strdup(m->arena, name);
    if (!to->name) return pare_no_memory(err);
    const pare_status st = pare_coded_popup(to, m->arena, &f, w, err);
    if (st && st != PARE_ERR_MEMORY) pare_err_prefix(err, name);
    return st;
}

pare_status pare_popup_code(pare_model *m, const pare_frozen_gpt *from, pare_err *err)
{
    coding c = {.m = m, .from = from};
    c.list = pare_alloc(m->arena, 2 + 6 * m->nblocks, sizeof *c.list);
    if (!c.list) return pare_no_memory(err);
    const pare_status st = pare_model_each_weight(m, code_one, &c, err);
    if (st) return st;
    m->coded = c.list;
    m->ncoded = c.n;
    return PARE_OK;
}
