/* tape.h - the steps of a forward pass that saves its activations, and of the backward pass.
 *
 * Every step NAME has a NAME_backward in the same file. All rows of the batch go through one step
 * after the other; within a step the rows are cut into spans of a fixed size, so that sums over
 * rows do not depend on the number of threads. The plain code of a step computes in f64 and serves
 * both types (f32 rows are widened one at a time); where training spends its time, f32 has kernels
 * of its own (simd_lanes.h).
 *
 * The tape keeps its first error (t->work.st): after it every step does nothing, and rows that
 * would be new have no memory. Both passes ask once, at their end. */
#ifndef PARE_SRC_TAPE_H
#define PARE_SRC_TAPE_H
#include "base/work.h"
#include "attention/attend.h"
#include <pare/train.h>

/* ---- memory (tape_stack.c) ---------------------------------------------------------------- */

/* A stack that keeps its memory: from the second pass of a shape on, nothing is allocated. */
typedef struct stack_block stack_block;
typedef struct memory_stack {
    stack_block *last;
    size_t below, most; /* bytes used in the blocks before the last; most bytes ever in use */
} memory_stack;
typedef struct stack_mark {
    stack_block *block;
    size_t used;
} stack_mark;
void *stack_alloc(memory_stack *s, size_t count, size_t size); /* 64-byte aligned, not zeroed */
stack_mark stack_top(const memory_stack *s);
void stack_reset(memory_stack *s, stack_mark m); /* {NULL, 0}: all of it */
void stack_free(memory_stack *s);

/* ---- rows --------------------------------------------------------------------------------- */

typedef struct rows {
    pare_dtype t;
    size_t n, d, ld;
    void *v; /* row i begins at element i * ld */
} rows;

static inline size_t rows_size(const rows *r) /* bytes of a number */
{
    return r->t == PARE_F64 ? sizeof(double) : sizeof(float);
}
static inline void *rows_at(const rows *r, size_t i, size_t j)
{
    return (char *)r->v + (i * r->ld + j) * rows_size(r);
}
static inline rows rows_columns(const rows *r, size_t from, size_t d) /* a view */
{
    return (rows){r->t, r->n, d, r->ld, r->v ? rows_at(r, 0, from) : NULL};
}

/* ---- saved activations --------------------------------------------------------------------- */

typedef struct norm_saved {
    rows x;
    double *mean, *inv; /* of each row; batch norm: of each column */
    bool batch;         /* mean and inv are those of this batch, not the running ones */
} norm_saved;

typedef struct dropout_mask {
    uint8_t *keep; /* n x d of 0 or 1; NULL: nothing is dropped */
    double scale;  /* of what is kept: 1 / (1 - dropped share) */
} dropout_mask;

typedef struct attn_saved {
    pare_dense qkv_map; /* wq, wk, wv one below the other; absent where queries are no product */
    rows qkv;           /* side by side: */
    rows q, k, v, y;    /* of all heads; q, k after the rotary positions */
    void *lse;          /* heads x n: log sum_j exp(score_j) of each row */
    float *scores;      /* heads x edges, or NULL */
    /* kind poly in f32, else NULL: how each sequence and head was computed, batch x heads; and
     * which rows were computed exactly nevertheless, heads x n */
    pare_poly_report *poly;
    uint8_t *exact;
    rows concat; /* pool: z and y side by side */
    size_t powers;
    rows *power; /* z, U z, U^2 z, ... */
} attn_saved;

typedef struct ffn_saved {
    rows *pre, *post; /* before and after the activation, nlayers - 1; gated: pre[0], pre[1] */
    dropout_mask *dropout;
} ffn_saved;

/* One sublayer: y = out_norm(skip(x) + dropout(branch(in_norm(x)))); attn or ffn is its branch. */
typedef struct sublayer {
    size_t block;
    const pare_attn *attn;
    const pare_ffn *ffn;
    const pare_norm *in_norm, *out_norm;
    const pare_skip *skip;
    size_t dout; /* 0: the model has no such sublayer */
    rows x, z;   /* its input, before and after in_norm */
    norm_saved in, out;
    dropout_mask dropout;
    attn_saved attn_saved;
    ffn_saved ffn_saved;
} sublayer;

typedef struct embedding_saved {
    size_t *rows; /* of the table */
    rows raw; /* before the linear map */
    norm_saved norm;
} embedding_saved;

typedef struct output_saved {
    rows normed, pooled, pre, act; /* pre: before the activation */
    norm_saved norm, unit;         /* unit: of outputs that are normalized */
} output_saved;

/* cos and sin of position x frequency of one block: tokens x freqs.cols. */
typedef struct rotary_table {
    double *cosine, *sine;
} rotary_table;

struct pare_tape {
    pare_work work; /* its arena lives as long as the tape; err and st: of the call at hand */
    pare_params *p;
    const pare_model *m;
    const pare_attention_provider *provider; /* NULL: the tape computes attention itself */

    memory_stack stack;
    stack_mark forward_end; /* what lies above belongs to the backward pass */
    sublayer *sub;          /* 2 for each block: attention, FFN */
    rows *stream, *dstream; /* nblocks + 1 */
    embedding_saved embedding;
    output_saved output;
    rows y;

    pare_arena *graph_arena;
    pare_graph input_graph;           /* the one given last */
    pare_graph completed;             /* with self loops and expander, in the order of the tape */
    pare_transposed_graph transposed; /* its transpose: the queries of each key */
    const pare_graph *graph;          /* &completed, or NULL */
    const uint32_t *order;            /* of its nodes on the tape; NULL: the order of the input */
    rows *stream_out, *dstream_out;   /* copies of the streams in the order of the input */

    pare_arena *position_arena;
    size_t position_tokens;  /* the tables hold so many positions */
    rotary_table *rotary;    /* one for each block */
    double *sinusoids;       /* position_tokens x width */
    pare_poly_use *poly_use; /* one for each block */

    pare_mode mode;
    size_t batch, tokens, n; /* n: rows */
    bool ready;              /* a forward pass is on the tape */
    void *grad;
};

/* ---- steps over rows (tape_rows.c) --------------------------------------------------------- */

/* Memory of the stack, not zeroed; NULL only after a failure. */
void *tape_alloc(pare_tape *t, size_t count, size_t size);
rows tape_new_rows(pare_tape *t, size_t n, size_t d);
/* Where the gradient of w (or of a part of it) is added up; NULL when it is not wanted. */
void *tape_grad(const pare_tape *t, const pare_weight *w);
void tape_grad_add(const pare_tape *t, const pare_weight *w, const double *sum);

/* Some rows of a step, one thread's work: buffers for four rows in f64 (or in f32, in the same
 * memory), and sums that are added up in the order of the spans. */
enum { SPAN = 64, SPAN_ROWS = 4 };
typedef struct span {
    size_t first, end;
    double *row[SPAN_ROWS];
    float *row32[SPAN_ROWS];
    double *sum;
} span;
typedef void span_fn(void *job, const span *s);
/* width: of the buffers; total (nsums numbers, may be NULL when nsums is 0) is written. */
void tape_spans(pare_tape *t, size_t n, size_t width, size_t nsums, double *total, span_fn *fn,
                void *job);
/* Row i in f64: in place, or widened into the buffer. */
const double *row_read(const rows *r, size_t i, double *buffer);
/* Where row i is to be written; row_done rounds it into its place. */
double *row_write(const rows *r, size_t i, double *buffer);
void row_done(const rows *r, size_t i, const double *buffer);

/* y = x w^T + b, in new rows or in y; b may be NULL. */
rows tape_dense(pare_tape *t, const rows *x, const pare_weight *w, const pare_weight *b);
void tape_dense_into(pare_tape *t, rows *y, const rows *x, const pare_weight *w,
                     const pare_weight *b);
/* dx = dy w, in new rows or in dx (NULL: not wanted; added to where `add`), and the gradients of w
 * and b. */
rows tape_dense_backward(pare_tape *t, const rows *dy, const rows *x, const pare_weight *w,
                         const pare_weight *b);
void tape_dense_backward_into(pare_tape *t, rows *dx, bool add, const rows *dy, const rows *x,
                              const pare_weight *w, const pare_weight *b);
/* The same with the places of both gradients (NULL: not wanted), which are added to. */
void tape_dense_backward_to(pare_tape *t, rows *dx, bool add, const rows *dy, const rows *x,
                            const pare_weight *w, void *dw, void *db);
/* y = x, or y = x + plus where that is not NULL. y may be either. */
void tape_sum(pare_tape *t, rows *y, const rows *x, const rows *plus);
/* y = b on every row, or 0. */
void tape_fill(pare_tape *t, rows *y, const pare_weight *b);
void tape_zero(pare_tape *t, rows *y);
/* The gradient of a vector that was added to (or was) every row. */
void tape_bias_backward(pare_tape *t, const pare_weight *b, const rows *dy);

/* ---- the order of the rows (tape_order.c) --------------------------------------------------- */

/* Nothing but attention over the graph depends on the order of the rows: the tape may choose it. */
bool tape_can_reorder(const pare_model *m);
/* The row of the input that is row i of the tape. */
static inline size_t tape_input_row(const pare_tape *t, size_t i)
{
    return t->order ? i / t->tokens * t->tokens + t->order[i % t->tokens] : i;
}
/* x in the order of the tape, or of the input: x itself, or new rows. */
rows tape_from_input_order(pare_tape *t, const rows *x);
rows tape_to_input_order(pare_tape *t, const rows *x);
void tape_copy_to_input_order(const pare_tape *t, rows *y, const rows *x);

/* ---- layers -------------------------------------------------------------------------------- */

/* New rows, or x itself where there is no norm. */
rows tape_norm(pare_tape *t, norm_saved *k, const rows *x, const pare_norm *n);
/* dx (may be dy) = the gradient for dy, plus `plus` where that is not NULL. */
void tape_norm_backward(pare_tape *t, const norm_saved *k, rows *dx, const rows *dy,
                        const rows *plus, const pare_norm *n);

/* post = dropout(act(pre) * factor), entry by entry; factor and dropout may be NULL. */
typedef struct act_step {
    pare_act act;
    const rows *pre, *factor;
    const dropout_mask *dropout;
} act_step;
void tape_act(pare_tape *t, const act_step *s, rows *post);
/* d holds d post and becomes d pre; dfactor is written where there is a factor. */
void tape_act_backward(pare_tape *t, const act_step *s, rows *d, rows *dfactor);

/* The places of dropout in a block. */
enum { DROPOUT_ATTN, DROPOUT_FFN, DROPOUT_LAYER };
/* Draws the mask of n x d entries; nothing is dropped outside training. */
dropout_mask tape_dropout_draw(pare_tape *t, size_t n, size_t d, size_t block, size_t place);
/* y = dropout(x), plus `plus` where that is not NULL: in both passes. y may be x. */
void tape_dropout(pare_tape *t, rows *y, const rows *x, const dropout_mask *k, const rows *plus);

/* y = dropout(branch) + skip(x); y may be the branch. */
void tape_skip(pare_tape *t, rows *y, const rows *branch, const dropout_mask *k, const rows *x,
               const pare_skip *s);
/* The gradient along the skip: dy itself or new rows. Not for PARE_SKIP_NONE. */
rows tape_skip_backward(pare_tape *t, const rows *dy, const rows *x, const pare_skip *s);

/* A branch at s->z. y is written, or becomes rows that are saved anyway. dz is added to where
 * `add`, which only branches that tape_can_add names can do; then dz may be dy. */
void tape_attn(pare_tape *t, sublayer *s, rows *y);
void tape_attn_backward(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *dy);
void tape_ffn(pare_tape *t, sublayer *s, rows *y);
void tape_ffn_backward(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *dy);
bool tape_can_add(const sublayer *s);
/* Softmax heads: from z to their outputs side by side, in attn_saved.y. */
void tape_heads(pare_tape *t, sublayer *s);
void tape_heads_backward(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *dy);
size_t tape_heads_width(const pare_attn *a);
/* The part between the projections by t->provider: y and lse; and the gradients of q, k and v for
 * dy, added up. */
void tape_heads_provided(pare_tape *t, sublayer *s);
void tape_heads_provided_backward(pare_tape *t, const sublayer *s, const rows *dy, rows *dq,
                                  rows *dk, rows *dv);
/* One head of kind poly for one sequence. */
typedef struct poly_head {
    pare_mat32 q, k, v;
    double scale, tolerance;
    const pare_pattern *pattern;
    const pare_exec *exec;
} poly_head;
/* y by a polynomial, and which of its rows are exact; y is not written where report->kind is
 * exact. */
PARE_MUST_USE pare_status tape_poly(pare_mat32 *y, pare_poly_report *report, uint8_t *exact,
                                    const poly_head *h);
PARE_MUST_USE pare_status tape_poly_backward(pare_mat32 *dq, pare_mat32 *dk, pare_mat32 *dv,
                                             const pare_mat32 *dy, const uint8_t *exact,
                                             const poly_head *h);
void tape_poly_alloc(pare_tape *t, sublayer *s);
void tape_poly_count(pare_tape *t, const sublayer *s);
/* Rotary positions: q and k in place; the inverse rotation in the backward pass. */
void tape_rotary(pare_tape *t, const sublayer *s, rows *q, rows *k, bool backward);
/* Extends the tables of rotary and sinusoidal positions to so many tokens. */
void tape_position_tables(pare_tape *t, size_t tokens);
/* y = U x, the mean over the keys of each row, or U^T x. y is not x. */
void tape_mean(pare_tape *t, rows *y, const rows *x, bool transposed);

rows tape_embedding(pare_tape *t, const pare_input *in);
void tape_embedding_backward(pare_tape *t, const rows *dx);
rows tape_output(pare_tape *t, const rows *x);
void tape_output_backward(pare_tape *t, rows *dx, const rows *dy);
#endif
