/* replace_layers.h - the parts of pare_depth, which replaces attention layers by cheaper ones.
 *
 *   submodel.c       parts of a model that run by themselves
 *   calibrate.c      sums over the data for every attention layer
 *   replacement.c    the attention that replaces another, by kind
 *   select_layers.c  which layers are replaced
 *   drop_blocks.c    whole blocks that go */
#ifndef PARE_SRC_DEPTH_REPLACE_LAYERS_H
#define PARE_SRC_DEPTH_REPLACE_LAYERS_H
#include "imat.h"
#include <pare/depth.h>

/* ---- scratch memory -------------------------------------------------------------------------- */

/* A work with an arena of its own; after a failure of `parent` it does nothing. */
pare_work scratch_open(const pare_work *parent);
/* Frees the arena and hands the first failure on to `parent`. */
void scratch_close(pare_work *scratch, pare_work *parent);

/* ---- parts of a model (submodel.c) ----------------------------------------------------------- */

/* Submodels borrow weights and blocks, own nothing, and are never freed. */

/* The rows that the head reads: the whole model without its head, pooled as the head does it. */
pare_model submodel_hidden(const pare_model *m);
/* The same from the input of block b on, for vectors of the stream's width. */
pare_model submodel_from(const pare_model *m, size_t b);
/* One attention without its skip and the norm behind it; *block is filled. */
pare_model submodel_branch(pare_block *block, const pare_model *m, const pare_attn *a);
pare_model submodel_norm(const pare_model *m, const pare_norm *n, size_t width);
/* The outputs of a submodel whose input is the stream x (rows of all sequences of `in`). */
pare_mat submodel_run(pare_work *w, const pare_model *submodel, const pare_input *in,
                      const pare_mat *x);

/* The residual stream of one input at the beginning of each block (and at the end of the last), and
 * the hidden rows; in the work's arena. */
typedef struct residual_streams {
    pare_mat *at; /* nblocks + 1 */
    pare_mat hidden;
} residual_streams;
residual_streams residual_streams_of(pare_work *w, const pare_model *m, const pare_input *in);

/* ---- sums over the data (calibrate.c) -------------------------------------------------------- */

typedef struct softmax_layer {
    size_t block;
    const pare_attn *attn;
    double tokens;
    /* Of the rows [z, Uz, 1] (without Uz unless `mix`), and their products with the outputs. */
    pare_mat gram, cross;
    pare_mat pool_gram, pool_cross; /* of [z, pooled values, 1] */
    double *query;                  /* the mean query of every head, laid out as bq */
    double influence;               /* sum over tokens of 1 - cosine */
    bool mix;                       /* Uz is among the rows */
} softmax_layer;

/* The blocks with softmax heads, in order; returns their number. NULL: counts only. */
size_t list_softmax_layers(softmax_layer *out, const pare_model *m);

typedef struct calibration {
    bool fit, mix, pool, influence; /* what is wanted */
} calibration;
void calibrate(pare_work *w, softmax_layer *layers, size_t n, const pare_model *m,
               const pare_inputs *data, calibration what);

/* ---- the attention that replaces another (replacement.c) ------------------------------------- */

/* NULL, or why this kind cannot replace the attention of that block. */
const char *replacement_refused(const pare_model *m, const pare_attn *a, pare_attn_kind k);
bool replacement_is_fitted(pare_attn_kind k); /* needs data */
/* New weights in `to`, the others borrowed. */
PARE_MUST_USE pare_status replacement_make(pare_attn *out, pare_arena *to, const softmax_layer *l,
                                           pare_attn_kind k, pare_err *err);
/* The heads of an attention without their rotary positions. */
pare_head *heads_without_rotary(pare_work *w, const pare_attn *from);
size_t replacement_unknowns(const pare_attn *a, pare_attn_kind k); /* of its least squares */

/* ---- which layers are replaced (select_layers.c) --------------------------------------------- */

/* A kind for every layer: PARE_ATTN_EXACT where the attention stays. */
typedef pare_attn_kind *kind_plan;

typedef struct selection {
    pare_work *work;
    const pare_model *m;
    const pare_inputs *data; /* to choose by */
    pare_mat *hidden;        /* of the input model, for each input */
    double size;             /* |hidden|^2 over all of them */
    size_t n;                /* layers */
    softmax_layer *layers;
    pare_attn (*made)[PARE_DEPTH_KINDS]; /* for each layer and kind */
    bool (*allowed)[PARE_DEPTH_KINDS];   /* whether that one may be used */
    double (*loo)[PARE_DEPTH_KINDS];     /* leave-one-out: squared error of replacing this layer
                                            alone; nan: not measured */
} selection;

/* Of the k-th kind. */
static inline pare_attn_kind kind_at(size_t k)
{
    return (pare_attn_kind)(PARE_ATTN_ZERO + k);
}
/* Lists the layers of c->m; nothing is allowed yet. */
void selection_open(selection *c);
/* Makes every replacement that is allowed. */
void selection_make(selection *c);
/* A plan that replaces nothing. */
kind_plan selection_plan(const selection *c);
/* The input model with the replacements of a plan; its blocks are in w's arena. */
pare_model selection_model(const selection *c, const kind_plan plan, pare_work *w);
/* The leading inputs with about so many tokens. */
pare_inputs selection_inputs(const pare_inputs *all, size_t tokens);
/* Fills in c->hidden and c->size. */
void selection_measure(selection *c);
/* |h - h'|^2 over all inputs for `count` plans. */
void selection_errors(double *err2, const selection *c, const kind_plan *plans, size_t count);
void selection_leave_one_out(selection *c); /* fills in loo */
/* Replaces, of the layers that are exact and need not be kept, the one whose replacement costs
 * least (in the plan as it is). */
void selection_replace_next(kind_plan out, const selection *c, const kind_plan as,
                            const bool *keep);
/* as[l] is the kind that layer l would get; keep[l]: it must stay. Of the others all but `exact`
 * layers (the kept ones counted) are replaced. */
void select_layers(kind_plan out, const selection *c, const kind_plan as, const bool *keep,
                   size_t exact, pare_depth_select how);

/* ---- whole blocks (drop_blocks.c) -------------------------------------------------------------- */

/* Removes blocks until `keep` of those with attention are left. A failure stays in w. */
void depth_drop_blocks(pare_work *w, pare_model **out, pare_depth_report *report,
                       const pare_model *in, const pare_inputs *data, size_t keep);
#endif
