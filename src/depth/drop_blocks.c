/* drop_blocks.c - pare_depth by whole blocks: attention and feed-forward layer go together, so that
 * what is left is an ordinary model of the same family, with fewer blocks (pare/depth.h).
 *
 * Backward selection: of the blocks that are left the one goes whose removal moves the hidden rows
 * that the head reads least, |h - h'|^2 over the data, where h' has all removals until then. A
 * candidate runs from its own block on: the stream before it is that of the model as it is. */
#include "replace_layers.h"
#include <math.h>
#include <string.h>

typedef struct block_list {
    size_t n, *at; /* ascending */
} block_list;

/* The model with these blocks alone; its blocks are in w's arena. */
static pare_model with_blocks(pare_work *w, const pare_model *in, const block_list *l)
{
    pare_model m = *in;
    pare_block *const blocks = pare_work_alloc(w, l->n, sizeof *blocks);
    for (size_t i = 0; !w->st && i < l->n; i++) blocks[i] = in->blocks[l->at[i]];
    m.blocks = blocks;
    m.nblocks = w->st ? 0 : l->n;
    return m;
}

static double squared_distance(const pare_mat *a, const pare_mat *b)
{
    double sum = 0;
    for (size_t i = 0; i < a->rows * a->cols; i++) {
        const double x = a->v[i] - b->v[i];
        sum += x * x;
    }
    return sum;
}

/* err2[i]: of the model without the i-th block that is left. hidden: of the input model. */
static void removal_errors(pare_work *w, double *err2, const pare_model *in, const block_list *l,
                           const pare_inputs *data, const pare_mat *hidden)
{
    for (size_t k = 0; k < l->n; k++) err2[k] = 0;
    for (size_t i = 0; !w->st && i < data->n; i++) {
        pare_work scratch = scratch_open(w);
        const pare_model m = with_blocks(&scratch, in, l);
        const residual_streams s = residual_streams_of(&scratch, &m, &data->in[i]);
        for (size_t k = 0; !scratch.st && k < l->n; k++) {
            const pare_mark mark = pare_arena_mark(scratch.arena);
            const pare_model rest = submodel_from(&m, k + 1);
            const pare_mat h = submodel_run(&scratch, &rest, &data->in[i], &s.at[k]);
            if (!scratch.st) err2[k] += squared_distance(&hidden[i], &h);
            pare_arena_reset(scratch.arena, mark);
        }
        scratch_close(&scratch, w);
        if (!w->st) w->st = pare_progress(w->exec, "choose", i + 1, data->n, w->err);
    }
}

/* Blocks with softmax attention may go; the head of a masked-word model is a block without. */
static bool may_go(const pare_model *in, size_t b)
{
    return pare_attn_is_softmax(in->blocks[b].attn.kind) &&
           pare_model_width(in, b) == pare_model_width(in, b + 1);
}

static double relative(double err2, double size)
{
    return size > 0 ? sqrt(err2 / size) : 0;
}

static void choose(pare_work *w, block_list *l, pare_depth_report *r, const pare_model *in,
                   const pare_inputs *data, size_t keep)
{
    pare_mat *const hidden = pare_work_alloc(w, data->n, sizeof *hidden);
    double *const err2 = pare_work_alloc(w, l->n, sizeof *err2), size = 0;
    for (size_t i = 0; !w->st && i < data->n; i++) {
        hidden[i] = residual_streams_of(w, in, &data->in[i]).hidden;
        for (size_t k = 0; !w->st && k < hidden[i].rows * hidden[i].cols; k++)
            size += hidden[i].v[k] * hidden[i].v[k];
    }
    const size_t go = r->nlayers - keep;
    const pare_exec *const exec = w->exec;
    pare_steps steps = pare_steps_of(exec, (double)go);
    for (size_t step = 0; !w->st && step < go; step++) {
        w->exec = pare_step(&steps, "choose blocks", 1);
        removal_errors(w, err2, in, l, data, hidden);
        size_t best = SIZE_MAX;
        for (size_t k = 0; !w->st && k < l->n; k++) {
            if (!may_go(in, l->at[k])) continue;
            if (step == 0)
                for (size_t j = 0; j < r->nlayers; j++)
                    if (r->layers[j].block == l->at[k])
                        r->layers[j].loo_est = relative(err2[k], size);
            if (best == SIZE_MAX || err2[k] < err2[best]) best = k;
        }
        if (w->st) break;
        for (size_t j = 0; j < r->nlayers; j++)
            if (r->layers[j].block == l->at[best]) r->layers[j].kind = PARE_ATTN_NONE;
        r->error_est = relative(err2[best], size);
        memmove(l->at + best, l->at + best + 1, (l->n - best - 1) * sizeof *l->at);
        l->n--;
    }
    w->exec = exec;
}

void depth_drop_blocks(pare_work *w, pare_model **out, pare_depth_report *report,
                       const pare_model *in, const pare_inputs *data, size_t keep)
{
    pare_model *m = NULL;
    block_list l = {in->nblocks, pare_work_alloc(w, in->nblocks, sizeof *l.at)};
    *report = (pare_depth_report){.exact = keep};
    if (!w->st) w->st = pare_model_clone(&m, in, w->err);
    if (w->st) return;
    report->layers = pare_alloc(m->arena, in->nblocks + 1, sizeof *report->layers);
    if (!report->layers) w->st = pare_no_memory(w->err);
    for (size_t b = 0; !w->st && b < in->nblocks; b++) {
        l.at[b] = b;
        if (!may_go(in, b)) continue;
        report->layers[report->nlayers++] =
            (pare_depth_layer){b, in->blocks[b].attn.kind, NAN, NAN};
    }
    if (keep > report->nlayers)
        pare_work_fail(w, PARE_ERR_USAGE, "%zu block%s to stay, but the model has %zu that may go",
                       keep, keep == 1 ? " is" : "s are", report->nlayers);
    if (!w->st && (!data || data->n == 0))
        pare_work_fail(w, PARE_ERR_USAGE, "this cut needs data: blocks are chosen by it");
    if (!w->st) choose(w, &l, report, in, data, keep);
    for (size_t i = 0; !w->st && i < l.n; i++) m->blocks[i] = m->blocks[l.at[i]];
    if (!w->st) m->nblocks = l.n;
    if (!w->st) w->st = pare_model_check(m, w->err);
    if (w->st)
        pare_model_free(m);
    else
        *out = m;
}
