/* replace_layers.h - the pieces of pare_depth.
 *
 *   submodel.c   parts of a model that run by themselves
 *   calibrate.c  what is gathered about every attention layer in passes over the data
 *   replacement.c      the attention that stands in the place of another
 *   select_layers.c     which layers go */
#ifndef PARE_SRC_DEPTH_REPLACE_LAYERS_H
#define PARE_SRC_DEPTH_REPLACE_LAYERS_H
#include <pare/depth.h>

/* ---- parts of a model (submodel.c) ---- */

/* Models on loan: they borrow weights and blocks, own nothing, and are never freed. */

/* What the head reads: the whole model without its head, pooled as the head does it. */
pare_model submodel_hidden(const pare_model *m);
/* The same from the input of block b on, for vectors of the stream's width. */
pare_model submodel_from(const pare_model *m, size_t b);
/* One attention without skip and norm behind it; *block is filled. */
pare_model submodel_branch(pare_block *block, const pare_model *m, const pare_attn *a);
pare_model submodel_norm(const pare_model *m, const pare_norm *n, size_t width);
/* The outputs of a section whose input is the stream x (rows of all sequences of `in`). */
PARE_MUST_USE pare_status submodel_run(pare_mat *out, pare_arena *a, const pare_model *section,
                                       const pare_input *in, const pare_mat *x,
                                       const pare_exec *exec, pare_err *err);

/* The stream of one input where each block begins (and where the last one ends), and the hidden
 * rows; in the arena. */
typedef struct residual_streams {
    pare_mat *at; /* nblocks + 1 */
    pare_mat hidden;
} residual_streams;
PARE_MUST_USE pare_status residual_streams_of(residual_streams *out, pare_arena *a,
                                              const pare_model *m, const pare_input *in,
                                              const pare_exec *exec, pare_err *err);

/* ---- what the data say about a layer (calibrate.c) ---- */

typedef struct layer {
    size_t block;
    const pare_attn *a;
    double tokens;
    /* Of the rows [z, Uz, 1] (without Uz where nobody wants it) and what the attention says. */
    pare_mat gram, cross;
    pare_mat pool_gram, pool_cross; /* of [z, pooled values, 1] */
    double *query;                  /* the mean query of every head, as bq has it */
    double influence;               /* sum over tokens of 1 - cosine */
    bool mix;                       /* Uz is in it */
} layer;

/* The blocks with softmax heads, in order, and how many they are; NULL: only that. */
size_t list_softmax_layers(layer *out, const pare_model *m);

typedef struct wanted {
    bool fit, mix, pool, influence;
} wanted;
PARE_MUST_USE pare_status calibrate(layer *layers, size_t n, pare_arena *a, const pare_model *m,
                                    const pare_inputs *data, wanted what, const pare_exec *exec,
                                    pare_err *err);

/* ---- what stands in its place (replacement.c) ---- */

/* NULL, or why this kind cannot stand for the attention of that block. */
const char *replacement_refused(const pare_model *m, const pare_attn *a, pare_attn_kind k);
bool replacement_is_fitted(pare_attn_kind k); /* needs data */
/* New weights in `to`, the others borrowed. */
PARE_MUST_USE pare_status replacement_make(pare_attn *out, pare_arena *to, const layer *l,
                                           pare_attn_kind k, pare_err *err);
/* The heads of an attention, none of them turned by rotary positions. */
PARE_MUST_USE pare_status heads_without_rotary(pare_head **out, pare_arena *a,
                                               const pare_attn *from, pare_err *err);
size_t replacement_unknowns(const pare_attn *a, pare_attn_kind k); /* of its least squares */

/* ---- which layers go (select_layers.c) ---- */

typedef struct selection {
    const pare_model *m;
    const pare_inputs *data; /* to choose by */
    pare_mat *hidden;        /* of the input model, for each input */
    double size;             /* squared: |hidden|^2 over all of them */
    size_t n;                /* layers */
    const layer *layers;
    pare_attn (*made)[PARE_DEPTH_KINDS]; /* for each layer and kind */
    bool (*allowed)[PARE_DEPTH_KINDS];   /* ... that is there */
    double (*loo)[PARE_DEPTH_KINDS];     /* what it costs alone, squared; nan: not looked at */
    pare_arena *a;
    const pare_exec *exec;
    pare_err *err;
} selection;

/* A kind for every layer: PARE_ATTN_EXACT where the attention stays. */
typedef pare_attn_kind *kind_plan;
/* Fills in c->hidden and c->size. */
PARE_MUST_USE pare_status selection_open(selection *c);
/* |h - h'|^2 over all inputs for `count` ways to replace layers. */
PARE_MUST_USE pare_status selection_errors(double *err2, const selection *c, const kind_plan *plans,
                                           size_t count);
PARE_MUST_USE pare_status selection_leave_one_out(selection *c); /* fills in loo */
/* as[l] is the kind that layer l would get; keep[l]: it must stay. Of the others all but `exact`
 * layers (the kept ones counted) are replaced. */
PARE_MUST_USE pare_status select_layers(kind_plan out, const selection *c, const kind_plan as,
                                        const bool *keep, size_t exact, pare_depth_select how);
#endif
