/* output_gradients.c - squares of the outputs' gradients, matrix by matrix (output_gradients.h). */
#include "output_gradients.h"
#include "base/support.h"
#include "model/model_facts.h"
#include "train/gradient.h"
#include <math.h>
#include <string.h>

enum {
    TOGETHER = 8, /* inputs of a pass */
    DRAWS = 4     /* of u for each of them */
};

static bool gives_logits(const pare_model *m)
{
    return pare_has(pare_head_weight(m)) && !m->head.normalize && pare_model_outputs(m) > 1;
}

/* dy = u of one row of outputs. */
static void draw_row(float *dy, const float *y, size_t n, bool logits, pare_rng *r)
{
    if (!logits) {
        for (size_t j = 0; j < n; j++) dy[j] = (float)pare_rng_normal(r);
        return;
    }
    double most = (double)y[0], sum = 0;
    for (size_t j = 1; j < n; j++) most = fmax(most, (double)y[j]);
    for (size_t j = 0; j < n; j++) sum += exp((double)y[j] - most);
    double left = pare_rng_uniform(r);
    size_t label = n;
    for (size_t j = 0; j < n; j++) {
        const double p = exp((double)y[j] - most) / sum;
        dy[j] = (float)-p;
        left -= p;
        if (label == n && left < 0) label = j;
    }
    dy[label == n ? n - 1 : label] += 1;
}

typedef struct collector {
    const pare_model *m;
    pare_params *p;
    pare_tape *tape;
    float *grad;
    output_gradients *out;
    double share; /* of an input in all of them */
} collector;

static pare_status backward_pass(collector *c, const pare_inputs *some, pare_rng *r, pare_err *err)
{
    const pare_mode inference = {.training = false};
    const size_t n = pare_model_outputs(c->m);
    const void *y;
    size_t rows = 0;
    for (size_t i = 0; i < some->n; i++) rows += pare_output_rows(c->m, &some->in[i]);
    pare_arena *const a = pare_arena_new();
    float *const dy = a ? pare_alloc(a, rows * n + 1, sizeof *dy) : NULL;
    pare_status st = dy ? PARE_OK : pare_no_memory(err);
    if (!st) st = pare_tape_forward_set(c->tape, some, &inference, &y, err);
    for (size_t i = 0; !st && i < rows; i++)
        draw_row(dy + i * n, (const float *)y + i * n, n, gives_logits(c->m), r);
    memset(c->grad, 0, c->p->count * sizeof *c->grad);
    if (!st) st = pare_tape_backward(c->tape, dy, NULL, c->grad, err);
    pare_arena_free(a);
    return st;
}

/* += share sum g g^T over the rows that have any. */
static pare_status add_moments(pare_mat *to, const float *grad, size_t rows, double share,
                               pare_err *err)
{
    const size_t n = to->cols;
    size_t used = 0;
    pare_arena *const a = pare_arena_new();
    bool *const any = a ? pare_alloc(a, rows, sizeof *any) : NULL;
    for (size_t i = 0; any && i < rows; i++) {
        for (size_t j = 0; j < n && !any[i]; j++) any[i] = grad[i * n + j] != 0;
        used += any[i];
    }
    pare_mat g = any ? pare_mat_new(a, used ? used : 1, n) : (pare_mat){0};
    for (size_t i = 0, k = 0; g.v && i < rows; i++) {
        if (!any[i]) continue;
        for (size_t j = 0; j < n; j++) pare_row_mut(&g, k)[j] = (double)grad[i * n + j];
        k++;
    }
    const pare_status st = g.v ? PARE_OK : pare_no_memory(err);
    if (!st) pare_gemm(to, share, &g, true, &g, false, 1);
    pare_arena_free(a);
    return st;
}

static pare_status add_pass(collector *c, pare_err *err)
{
    pare_status st = PARE_OK;
    size_t k = 0;
    for (size_t s = 0; !st && s < c->p->nslots; s++) {
        const pare_slot *const slot = &c->p->slots[s];
        const float *const g = c->grad + slot->offset;
        if (slot->vector) continue;
        output_gradient *const to = &c->out->of[k++];
        if (to->moments.v) st = add_moments(&to->moments, g, slot->rows, c->share, err);
        for (size_t i = 0; to->row && i < slot->rows * slot->cols; i++)
            to->row[i / slot->cols] += c->share * (double)g[i] * (double)g[i];
    }
    return st;
}

static pare_status list_matrices(collector *c, pare_arena *a, pare_err *err)
{
    const pare_params *const p = c->p;
    c->out->of = pare_alloc(a, p->nslots + 1, sizeof *c->out->of);
    if (!c->out->of) return pare_no_memory(err);
    for (size_t s = 0; s < p->nslots; s++) {
        const pare_slot *const slot = &p->slots[s];
        if (slot->vector) continue;
        output_gradient *const to = &c->out->of[c->out->n++];
        *to = (output_gradient){
            .name = pare_strdup(a, slot->name), .rows = slot->rows, .cols = slot->cols};
        const bool wanted = strcmp(slot->name, "embedding.embedding") == 0;
        if (wanted) to->moments = pare_mat_new(a, slot->cols, slot->cols);
        if (wanted) to->row = pare_alloc(a, slot->rows, sizeof *to->row);
        if (!to->name || (wanted && (!to->moments.v || !to->row))) return pare_no_memory(err);
    }
    return PARE_OK;
}

pare_status output_gradients_of(output_gradients *out, pare_arena *a, const pare_model *m,
                                const pare_inputs *set, uint64_t seed, const pare_exec *exec,
                                pare_err *err)
{
    const size_t n = set->n < GRADIENT_INPUTS ? set->n : GRADIENT_INPUTS;
    collector c = {.m = m, .out = out, .share = 1 / ((double)(n ? n : 1) * DRAWS)};
    pare_rng r = pare_rng_at(seed, 0x6772616469656e74); /* a stream of its own */
    pare_arena *const scratch = pare_arena_new();
    *out = (output_gradients){0};
    pare_status st = scratch ? pare_params_new(&c.p, m, PARE_F32, err) : pare_no_memory(err);
    if (!st) st = list_matrices(&c, a, err);
    if (!st) st = pare_tape_new(&c.tape, c.p, exec, err);
    if (!st && !(c.grad = pare_alloc(scratch, c.p->count, sizeof *c.grad)))
        st = pare_no_memory(err);
    for (size_t i = 0; !st && i < n;) {
        size_t together = m->pattern.kind == PARE_GRAPH ? 1 : TOGETHER;
        if (together > n - i) together = n - i;
        const pare_inputs some = {together, set->in + i};
        for (int draw = 0; !st && draw < DRAWS; draw++) {
            st = backward_pass(&c, &some, &r, err);
            if (!st) st = add_pass(&c, err);
        }
        i += together;
    }
    pare_tape_free(c.tape);
    pare_params_free(c.p);
    pare_arena_free(scratch);
    return st;
}

const output_gradient *output_gradient_find(const output_gradients *g, const char *name)
{
    for (size_t i = 0; i < g->n; i++)
        if (strcmp(g->of[i].name, name) == 0) return &g->of[i];
    return NULL;
}
