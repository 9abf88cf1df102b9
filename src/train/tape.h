/* tape.h - the parts of a tape: what each step keeps on the way there and uses on the way back.
 *
 * Every step has two functions, NAME and NAME_back, in one file. All rows of the batch go through
 * one step after the other; within a step rows are cut into spans whose size is fixed, so that sums
 * over rows do not depend on the threads. The plain code of a step is in f64 and serves both types
 * (f32 is widened row by row); where training spends its time f32 has loops of its own. */
#ifndef PARE_SRC_TAPE_H
#define PARE_SRC_TAPE_H
#include <pare/gradient.h>
#include <pare/poly.h>

/* ---- memory ------------------------------------------------------------------------------- */

/* A stack that keeps its memory: from the second pass of a shape on nothing is allocated. */
typedef struct stack_block stack_block;
typedef struct memory_stack {
    stack_block *last;
    size_t below, most; /* bytes in the parts before the last; the most ever in use */
} memory_stack;
typedef struct stack_mark {
    stack_block *part;
    size_t used;
} stack_mark;
void *stack_alloc(memory_stack *s, size_t count,
                  size_t size); /* 64-byte aligned, not cleared; or NULL */
stack_mark stack_top(const memory_stack *s);
void stack_reset(memory_stack *s, stack_mark m); /* {NULL, 0}: all of it */
void stack_free(memory_stack *s);

/* ---- rows --------------------------------------------------------------------------------- */

typedef struct rows {
    pare_dtype t;
    size_t n, d, ld;
    void *v; /* row i starts at element i * ld */
} rows;

static inline size_t rows_size(const rows *r) /* of a number */
{
    return r->t == PARE_F64 ? sizeof(double) : sizeof(float);
}
static inline void *rows_at(const rows *r, size_t i, size_t j)
{
    return (char *)r->v + (i * r->ld + j) * rows_size(r);
}
static inline rows rows_columns(const rows *r, size_t from, size_t d) /* a view */
{
    return (rows){r->t, r->n, d, r->ld, rows_at(r, 0, from)};
}

/* ---- what is kept -------------------------------------------------------------------------- */

typedef struct norm_saved {
    rows x;
    double *mean, *inv; /* of a row; batch: of a column */
    bool batch;         /* mean and inv are this batch's */
} norm_saved;

typedef struct dropout_mask {
    uint8_t *keep; /* n x d of 0 or 1; NULL: everything is kept */
    double grow;
} dropout_mask;

typedef struct attn_saved {
    pare_dense all;  /* wq, wk, wv one below the other; absent where queries are no product */
    rows qkv;        /* side by side: */
    rows q, k, v, y; /* of all heads; q, k turned */
    void *lse;       /* heads x n */
    float *scores;   /* heads x edges, or NULL */
    /* kind poly in f32, else NULL: how each sequence and head was computed, batch x heads; and rows
     * that were exact among others, heads x n */
    pare_poly_report *way;
    uint8_t *exact;
    rows both; /* pool: z and y side by side */
    size_t powers;
    rows *power; /* U z, U^2 z, ...: power[0] is z */
} attn_saved;

typedef struct ffn_saved {
    rows *pre, *post; /* before and after the activation, nlayers - 1; gated: pre[0], pre[1] */
    dropout_mask *drop;
} ffn_saved;

/* One sublayer: y = out_norm(skip(x) + drop(branch(in_norm(x)))); attn or ffn is its branch. */
typedef struct sublayer {
    size_t block;
    const pare_attn *attn;
    const pare_ffn *ffn;
    const pare_norm *in_norm, *out_norm;
    const pare_skip *skip;
    size_t dout;
    rows x, z;
    norm_saved in, out;
    dropout_mask drop;
    attn_saved attn_saved;
    ffn_saved ffn_saved;
} sublayer;

typedef struct embedding_saved {
    int64_t *ids;
    rows raw; /* before the map */
    norm_saved norm;
} embedding_saved;

typedef struct output_saved {
    rows normed, pooled, pre, act; /* pre: before the activation */
    norm_saved norm;
} output_saved;

/* Cosines and sines of position x frequency of one block: tokens x freqs.cols. */
typedef struct angles {
    double *cosine, *sine;
} angles;

struct pare_tape {
    pare_params *p;
    const pare_model *m;
    const pare_exec *exec;
    const pare_attention_provider *by; /* NULL: attention is our own */
    pare_err *err;                     /* of the call at hand */

    memory_stack stack;
    stack_mark forward_end; /* what lies above belongs to the way back */

    pare_arena *lasting; /* lives as long as the tape */
    sublayer *sub;       /* 2 for each block: attention, ffn; dout 0 = not there */
    rows *stream, *dstream;
    embedding_saved embedding;
    output_saved output;
    rows y;

    pare_arena *graphs; /* of the graph given last */
    pare_graph given, whole;
    pare_turned turned;
    const pare_graph *graph; /* &whole, or NULL; `turned` goes with it */
    const uint32_t *order;   /* of its nodes on the tape, or NULL: as they were given */
    rows *shown, *dshown;    /* room for streams in the order they were given in */

    pare_arena *turns;
    size_t turn_tokens; /* the angles reach that far */
    angles *angles;     /* one for each block */
    double *waves;      /* sinusoidal positions: turn_tokens x width */
    pare_poly_use *use; /* one for each block */

    pare_mode mode;
    size_t batch, tokens, n; /* n: rows */
    bool ready;              /* a forward pass is on the tape */
    void *grad;
};

/* ---- steps over rows (tape_rows.c) --------------------------------------------------------- */

PARE_MUST_USE pare_status tape_new_rows(pare_tape *t, rows *out, size_t n, size_t d);
/* Where the gradient of w (or of a part of it) is added up; NULL when it is not wanted. */
void *tape_grad(const pare_tape *t, const pare_weight *w);
void tape_grad_add(const pare_tape *t, const pare_weight *w, const double *sum);

/* Some rows of a step, one thread's work: room for four rows in f64 (or in f32, at the same place),
 * and sums that are added up in the order of the spans. */
enum { SPAN = 64, SPAN_ROWS = 4 };
typedef struct span {
    size_t first, end;
    double *row[SPAN_ROWS];
    float *row32[SPAN_ROWS];
    double *sum;
} span;
typedef void span_fn(void *job, const span *s);
/* width: of the room; total (nsums, may be NULL when nsums is 0) is written. */
PARE_MUST_USE pare_status tape_spans(pare_tape *t, size_t n, size_t width, size_t nsums,
                                     double *total, span_fn *fn, void *job);
/* Row i in f64: in place, or widened into room. */
const double *row_read(const rows *r, size_t i, double *room);
/* Where row i is to be written; row_done rounds it into its place. */
double *row_write(const rows *r, size_t i, double *room);
void row_done(const rows *r, size_t i, const double *room);

PARE_MUST_USE pare_status tape_dense(pare_tape *t, rows *y, const rows *x, const pare_weight *w,
                                     const pare_weight *b);
/* dx may be NULL; dx = (or += where `add`) dy w, and the gradients of w and b (may be NULL). */
PARE_MUST_USE pare_status tape_dense_backward(pare_tape *t, rows *dx, bool add, const rows *dy,
                                              const rows *x, const pare_weight *w,
                                              const pare_weight *b);
/* The same with the places of both gradients (NULL: not wanted), which are added to. */
PARE_MUST_USE pare_status tape_dense_backward_to(pare_tape *t, rows *dx, bool add, const rows *dy,
                                                 const rows *x, const pare_weight *w, void *dw,
                                                 void *db);
/* y = x, or y = x + plus where that is not NULL. y may be either. */
PARE_MUST_USE pare_status tape_sum(pare_tape *t, rows *y, const rows *x, const rows *plus);
PARE_MUST_USE pare_status tape_zero(pare_tape *t, rows *y);
/* The gradient of a vector that was added to (or was) every row. */
PARE_MUST_USE pare_status tape_bias_backward(pare_tape *t, const pare_weight *b, const rows *dy);
/* y = b on every row, or 0. */
PARE_MUST_USE pare_status tape_fill(pare_tape *t, rows *y, const pare_weight *b);

/* ---- the order of the rows (tape_order.c) --------------------------------------------------- */

/* Nothing but attention over the graph looks at the order of the rows: the tape may choose it. */
bool tape_can_reorder(const pare_model *m);
/* Where row i of the tape stands in what is given and shown. */
static inline size_t tape_input_row(const pare_tape *t, size_t i)
{
    return t->order ? i / t->tokens * t->tokens + t->order[i % t->tokens] : i;
}
/* *y: x, as it was given, in the order of the tape: x itself, or new memory. */
PARE_MUST_USE pare_status tape_from_input_order(pare_tape *t, rows *y, const rows *x);
/* The other way round. */
PARE_MUST_USE pare_status tape_to_input_order(pare_tape *t, rows *y, const rows *x);
/* The same into y, which is given. */
void tape_copy_to_input_order(const pare_tape *t, rows *y, const rows *x);

/* ---- the parts ----------------------------------------------------------------------------- */

/* y is new memory, or x itself where there is no norm. */
PARE_MUST_USE pare_status tape_norm(pare_tape *t, norm_saved *k, rows *y, const rows *x,
                                    const pare_norm *n);
/* dx (given; may be dy) = the gradient for dy, plus `plus` where that is not NULL. */
PARE_MUST_USE pare_status tape_norm_backward(pare_tape *t, const norm_saved *k, rows *dx,
                                             const rows *dy, const rows *plus, const pare_norm *n);

/* post = drop(act(pre) factor), entry by entry; factor and drop may be NULL. */
typedef struct act_step {
    pare_act act;
    const rows *pre, *factor;
    const dropout_mask *drop;
} act_step;
/* What is done to the rows: there (post) or back (d, dfactor). */
typedef struct act_job {
    const act_step *s;
    rows *post, *d, *dfactor;
} act_job;
span_fn *act_f32(void);
PARE_MUST_USE pare_status tape_act(pare_tape *t, const act_step *s, rows *post);
/* d holds d post and becomes d pre; dfactor is given where there is `factor`. */
PARE_MUST_USE pare_status tape_act_backward(pare_tape *t, const act_step *s, rows *d,
                                            rows *dfactor);

/* The places of dropout in a block. */
enum { DROPOUT_ATTN, DROPOUT_FFN, DROPOUT_LAYER };
/* Chooses the entries that are kept. */
PARE_MUST_USE pare_status tape_dropout_draw(pare_tape *t, dropout_mask *k, size_t n, size_t d,
                                            size_t block, size_t place);
/* y = x without what is dropped, plus `plus` where that is not NULL: both ways. y may be x. */
PARE_MUST_USE pare_status tape_dropout(pare_tape *t, rows *y, const rows *x, const dropout_mask *k,
                                       const rows *plus);
typedef struct dropout_job {
    rows *y;
    const rows *x, *plus;
    const dropout_mask *k;
} dropout_job;
span_fn *dropout_f32(void);
typedef struct dropout_draw_job {
    uint32_t key[2], cut; /* of 2^16: the share that goes */
    size_t d;
    uint8_t *keep;
} dropout_draw_job;
span_fn *dropout_draw_lanes(void);

/* y = drop(branch) + skip(x); y may be the branch. */
PARE_MUST_USE pare_status tape_skip(pare_tape *t, rows *y, const rows *branch,
                                    const dropout_mask *k, const rows *x, const pare_skip *s);
/* *dx: what goes back along the skip, dy itself or new memory; false in *there for no skip. */
PARE_MUST_USE pare_status tape_skip_backward(pare_tape *t, rows *dx, bool *there, const rows *dy,
                                             const rows *x, const pare_skip *s);

/* A branch at z; y and dz are given. y is written, or becomes rows that are kept anyway. dz is
 * added to where `add`, which only branches that tape_can_add names can do; then dz may be dy. */
PARE_MUST_USE pare_status tape_attn(pare_tape *t, sublayer *s, rows *y);
PARE_MUST_USE pare_status tape_attn_backward(pare_tape *t, const sublayer *s, rows *dz, bool add,
                                             const rows *dy);
PARE_MUST_USE pare_status tape_ffn(pare_tape *t, sublayer *s, rows *y);
PARE_MUST_USE pare_status tape_ffn_backward(pare_tape *t, const sublayer *s, rows *dz, bool add,
                                            const rows *dy);
bool tape_can_add(const sublayer *s);
/* Softmax heads: from z to their outputs side by side, in k->y (given, or new when v is NULL). */
PARE_MUST_USE pare_status tape_heads(pare_tape *t, sublayer *s);
PARE_MUST_USE pare_status tape_heads_backward(pare_tape *t, const sublayer *s, rows *dz, bool add,
                                              const rows *dy);
size_t tape_heads_width(const pare_attn *a);
/* The same by t->by, between projections: k->y and lse; and what dy says of q, k and v, added up.
 */
PARE_MUST_USE pare_status tape_heads_provided(pare_tape *t, sublayer *s);
PARE_MUST_USE pare_status tape_heads_provided_backward(pare_tape *t, const sublayer *s,
                                                       const rows *dy, rows *dq, rows *dk,
                                                       rows *dv);
/* One head of kind poly for one sequence. */
typedef struct poly_head {
    pare_mat32 q, k, v;
    double scale, tolerance;
    const pare_pattern *pattern;
    const pare_exec *exec;
} poly_head;
/* y by a polynomial, and its rows that are exact; where way->kind is exact y is not written. */
PARE_MUST_USE pare_status tape_poly(pare_mat32 *y, pare_poly_report *way, uint8_t *exact,
                                    const poly_head *h);
PARE_MUST_USE pare_status tape_poly_backward(pare_mat32 *dq, pare_mat32 *dk, pare_mat32 *dv,
                                             const pare_mat32 *dy, const uint8_t *exact,
                                             const poly_head *h);
/* Memory for what is kept; false when there is none. */
PARE_MUST_USE bool tape_poly_alloc(pare_tape *t, sublayer *s);
void tape_poly_count(pare_tape *t, const sublayer *s);
/* Rotary positions: q and k in place, backwards where `back`. */
PARE_MUST_USE pare_status tape_rotary(pare_tape *t, const sublayer *s, rows *q, rows *k, bool back);
/* Makes the tables of rotary and sinusoidal positions reach that far. */
PARE_MUST_USE pare_status tape_position_tables(pare_tape *t, size_t tokens);
/* y = U x, the mean of what each row sees, or U^T x. y is given and is not x. */
PARE_MUST_USE pare_status tape_mean(pare_tape *t, rows *y, const rows *x, bool transposed);

PARE_MUST_USE pare_status tape_embedding(pare_tape *t, rows *x, const pare_input *in);
PARE_MUST_USE pare_status tape_embedding_backward(pare_tape *t, const rows *dx);
PARE_MUST_USE pare_status tape_output(pare_tape *t, rows *y, const rows *x);
/* dx is given. */
PARE_MUST_USE pare_status tape_output_backward(pare_tape *t, rows *dx, const rows *dy);
#endif
