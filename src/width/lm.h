/* lm.h - a model with norms, positions, shared keys, gates and tied heads, as a width cut uses it.
 *
 * One form for all of them, in f64, one block at a time (the weights stay as the file has them):
 *
 *     x_0 = norm?( embedding )
 *     z   = norm?( S x + sum_heads Wo sum_j a_ij (Wv u_j + bv) + bo )          u = x or norm(x)
 *     x'  = norm?( S z + W2 act(W1 u + b1) + b2 )                              u = z or norm(z)
 *     y   = head( norm?(x_L) )
 *
 * where a norm only divides:
 *
 *     norm(x) = x / sqrt((|x|^2 + shift) / divisor + eps).
 *
 * Gains and biases of the norms are in the maps that read behind them, the mean subtraction of a
 * layer norm is in the maps that write before it, so every norm that is left commutes with an
 * orthonormal basis: x = U x^ has |x| = |x^|. Pre-norm models (GPT-2, Llama) have identities for
 * skips; post-norm ones (BERT) get dense skips, because the gain lies between norm and skip.
 *
 * The places of the stream are numbered: 0 is the output of the embedding, 2 b + 1 that of the
 * attention of block b, 2 b + 2 that of its feed-forward part. Each has a width, and a cut gives
 * each a basis: U (D x d) by which readers read and W (D x d) by which writers write, W^T U = I:
 *
 *     x ~ U x^,     x^ = W^T x;     orthonormal where a norm follows;     W = U for projections.
 *
 * How a method works (lm_slice.c is the example):
 *
 *     for each block:  l = lm_read(w, m, b)                           this form, from the arena
 *                      lm_attention_step(...), lm_ffn_step(...)       the rows one step on
 *                      small = lm_project_attn(...), ...              or matrices of its own
 *                      lm_write_block(w, out, b, &small)              in the output's dtype
 *     lm_write_ends, lm_write_finish
 *
 * Only the rows of one place (all calibration tokens x width) are in memory, never all activations.
 * The same steps run a cut block, so a method that follows the cut model's own stream has both. */
#ifndef PARE_SRC_WIDTH_LM_H
#define PARE_SRC_WIDTH_LM_H
#include "stored_weights.h"
#include <pare/width.h>

typedef struct lm_norm { /* divides only */
    bool present;
    double eps, divisor, shift;
    double *offset;       /* added to x first; NULL: none */
    const pare_norm *raw; /* not NULL: the model's own norm, of any kind (lm->stream is false) */
} lm_norm;

typedef struct lm_skip { /* kind none, identity or dense */
    pare_skip_kind kind;
    pare_mat w; /* dout x din, dense only */
} lm_skip;

/* Keys and values, shared by the heads that name them. The first 2 planes dimensions of a key are
 * rotated by the position times freqs[f], the rest are not. Whether plane f is (2 f,
 * 2 f + 1) or (f, f + planes) is the model's (lm->interleaved). */
typedef struct lm_keys {
    pare_mat wk, wv; /* dk x din, dv x din */
    double *bk, *bv; /* never NULL; bk is 0 without rotary planes */
    size_t planes;
    double *freqs; /* planes */
} lm_keys;

typedef struct lm_head {
    size_t keys; /* which of attn.keys */
    pare_mat wq; /* dk x din */
    pare_mat wo; /* dout x dv */
    double *bq;
    double scale;
} lm_head;

typedef struct lm_attn {
    bool present; /* else: the identity */
    size_t din, dout, nheads, nkeys;
    lm_head *heads;
    lm_keys *keys;
    double *bo;
    lm_norm in, out;
    lm_skip skip;
} lm_attn;

typedef struct lm_ffn { /* W2 act(W1 u + b1) + b2, or gated: W2 (act(W1 u + b1) (W3 u + b3)) + b2 */
    bool present, gated;
    pare_act act;
    size_t din, dout;
    pare_mat w1, w3, w2; /* F x din, F x din (gated), dout x F */
    double *b1, *b3, *b2;
    lm_norm in, out;
    lm_skip skip;
} lm_ffn;

typedef struct lm_block {
    lm_attn attn;
    lm_ffn ffn;
} lm_block;

/* What stands before a reader: h = scale (x - mean x where `center`) + shift, entry by entry. */
typedef struct lm_affine {
    bool plain, center; /* plain: h = x */
    double *scale, *shift;
} lm_affine;

typedef struct lm {
    const pare_model *m;
    bool stream;   /* false: norms, skips and ends stay the model's own; heads and units are cut */
    bool centered; /* the stream has lost its mean: layer norms before the sublayers */
    bool merges;   /* no row is empty: value biases go to bo */
    bool interleaved;       /* how planes lie */
    size_t nplaces;         /* 2 blocks + 1 */
    size_t *width;          /* of each place */
    lm_norm embedding_norm; /* on the output of the embedding */
    lm_norm head_norm;
    lm_affine *after;     /* nplaces: between a place and its readers without a norm */
    lm_affine head_input; /* what the head's maps read: behind head_norm, or after[last] */
} lm;

bool lm_divides(const pare_norm *n); /* layer norm or RMS norm */

/* PARE_ERR_INPUT names the place that is not of this form, and why. `m` must outlive it. With
 * stream = false nothing is folded: for cuts within the sublayers, of any model with heads. */
lm lm_open(pare_work *w, const pare_model *m, bool stream);
lm_block lm_read(pare_work *w, const lm *m, size_t b);
lm_attn lm_read_attn(pare_work *w, const lm *m, size_t b);
lm_ffn lm_read_ffn(pare_work *w, const lm *m, size_t b);
/* The norm through which the next reader of place p reads. */
lm_norm lm_reading_norm(pare_work *w, const lm *m, size_t p);
/* m (and b, where not NULL) as a map of x where it was one of f(x). */
void lm_fold_in(pare_work *w, pare_mat *m, double *b, const lm_affine *f);
void lm_subtract_mean(double *v, size_t n);
void lm_center_columns(pare_work *w, pare_mat *m); /* every column loses its mean */
/* Moves value biases into bo: only where every row has a key (lm->merges). */
void lm_merge_value_biases(pare_work *w, lm_attn *a);

/* ---- rows of the calibration set (lm_forward.c) ---- */

typedef struct lm_rows {
    size_t n;                 /* sequences */
    size_t *tokens;           /* of each */
    const pare_graph **graph; /* of each; NULL unless the pattern is a graph */
    pare_mat x;               /* all tokens x width, one sequence below the other */
    double *spare;            /* scratch for the rows of the next place */
} lm_rows;

/* The rows at place 0. The sequences of a batch are separated; at most max_tokens tokens of
 * each. */
lm_rows lm_embedding_rows(pare_work *w, const lm *m, const pare_inputs *data, size_t max_tokens);
/* Replaces the rows by those of the next place. */
void lm_attention_step(pare_work *w, const lm *m, const lm_attn *a, lm_rows *r);
void lm_ffn_step(pare_work *w, const lm *m, const lm_ffn *f, lm_rows *r);
/* What the sublayer's maps read: the rows, or their norm. */
pare_mat lm_normed(pare_work *w, const lm_norm *n, const pare_mat *x);
void lm_norm_rows(pare_work *w, const lm_norm *n, lm_rows *r); /* in place */
/* The heads' outputs side by side, before Wo; the hidden activations of normed rows. */
pare_mat lm_pooled(pare_work *w, const lm *m, const lm_attn *a, const lm_rows *r);
pare_mat lm_hidden(pare_work *w, const lm_ffn *f, const pare_mat *u);
/* g += x^T x on all threads; the same bits for any number of them. */
void lm_gram(pare_work *w, pare_mat *g, const pare_mat *x);

/* ---- a change of basis (lm_project.c) ---- */

typedef struct lm_basis {
    pare_mat read;  /* D x d */
    pare_mat write; /* D x d; v NULL: the same */
} lm_basis;
/* By which writers write. */
const pare_mat *lm_write_basis(const lm_basis *b);
size_t lm_dim(const lm_basis *b);
lm_norm lm_project_norm(pare_work *w, const lm_norm *n, const lm_basis *b);
/* The sublayer between two places. An identity stays one where both bases are the same matrices. A
 * missing sublayer needs the same basis on both sides. */
lm_attn lm_project_attn(pare_work *w, const lm_attn *a, const lm_basis *in, const lm_basis *out);
lm_ffn lm_project_ffn(pare_work *w, const lm_ffn *f, const lm_basis *in, const lm_basis *out);

/* ---- smaller heads and hidden layers (lm_shrink.c) ---- */

/* The hidden units `which` (ascending), no more. */
lm_ffn lm_select_units(pare_work *w, const lm_ffn *f, const size_t *which, size_t n);
/* Keys of group g: the rotary planes `which` (ascending), and for the R other dimensions the maps
 * keys = T^+ and queries = T^T of some T (R x r). */
typedef struct lm_key_cut {
    size_t planes, *which;
    pare_mat keys, queries; /* r x R each: k' = keys k, q' = queries q; r may be 0 */
} lm_key_cut;
void lm_plane_rows(const lm *m, size_t f, size_t planes, size_t row[2]); /* of plane f */
void lm_cut_keys(pare_work *w, const lm *m, lm_attn *a, size_t g, const lm_key_cut *c);
/* Values of group g: v' = values v (r x dv), and every Wo of the group times back (dv x r). */
void lm_cut_values(pare_work *w, lm_attn *a, size_t g, const pare_mat *values,
                   const pare_mat *back);
/* Copies of the lists of heads and groups: so that a cut can replace some of them. */
lm_attn lm_shallow(pare_work *w, const lm_attn *a);

/* ---- the output (lm_write.c) ---- */

/* Whether the output projection is the identity on the heads side by side: it is not stored. */
bool lm_has_identity_wo(const lm_attn *a);
/* As a block of a model, its weights written by o. */
pare_block lm_stored_block(weight_writer *o, const lm_block *b);

typedef struct lm_out {
    const lm *m;
    pare_model *model;
    weight_writer writer;
    pare_dtype dtype; /* of pare_width_opts */
} lm_out;
void lm_write_begin(pare_work *w, lm_out *o, const lm *m, pare_dtype dtype);
void lm_write_block(pare_work *w, lm_out *o, size_t b, const lm_block *block);
void lm_write_attn(pare_work *w, lm_out *o, size_t b, const lm_attn *a);
void lm_write_ffn(pare_work *w, lm_out *o, size_t b, const lm_ffn *f);
/* The embedding writes by first, the head reads by last (both NULL: both stay as they are).
 * A tied head stays tied when `embed` (D x e, orthonormal columns) is given: the embedding becomes
 * E embed, the embedding gets a map d x e and the head a dense map e x d; where such a map is the
 * identity it is not there. lm_embed_basis is the usual one. NULL: the head becomes a matrix of its
 * own, which loses less and stores more. */
void lm_write_ends(pare_work *w, lm_out *o, const lm_basis *first, const lm_basis *last,
                   const pare_mat *embed);
/* Are positions added where the new coordinates already are, or not at all? */
bool lm_foldable(const pare_embedding *s);
/* The basis of place 0, and one more direction for the mean where the stream has lost it. */
pare_mat lm_embed_basis(pare_work *w, const lm *m, const lm_basis *first);
/* Checks and hands over (NULL after a failure; everything is freed). */
pare_model *lm_write_finish(pare_work *w, lm_out *o);

/* ---- sizes (lm_count.c) ---- */

/* What a block has, before it is cut: enough to count what a cut of it would store. */
typedef struct lm_shape {
    bool attn, ffn, gated;
    size_t nheads, nkeys, q, k, v, o, freqs, units; /* sums over the heads and groups; widths */
    size_t dk, dv;                                  /* largest */
    size_t planes;                                  /* of all groups */
    bool bq, bk, bv, bo, b1, b3, b2;                /* which biases are not zero */
    bool offset[4];                                 /* of the norms: attn in, out, ffn in, out */
    pare_skip_kind skip[2];
} lm_shape;
lm_shape *lm_shapes(pare_work *w, const lm *m);    /* one for each block; reads all of them once */
void lm_shape_attn(lm_shape *f, const lm_attn *a); /* adds what is of attention; *f was 0 */

/* 0 leaves a size as it is. */
typedef struct lm_sizes {
    size_t dim;      /* of every place */
    size_t qk, v;    /* of every head */
    size_t ffn;      /* hidden units */
    bool own, untie; /* every place has its own basis; the head is made a matrix of its own */
} lm_sizes;
/* Numbers that are stored, at most. */
size_t lm_count(const lm *m, const lm_shape *f, const lm_sizes *s);

/* ---- methods: everything from the model to lm_write_finish ---- */

typedef struct lm_job {
    pare_work *w;
    const lm *m;
    const pare_width_opts *o;
    const pare_inputs *data; /* NULL: none was given */
    lm_out *out;
    const lm_shape *shapes;
    lm_sizes size; /* what the method shall do */
} lm_job;
/* lm_write_ends with the head tied or not as the sizes say. */
void lm_job_write_ends(lm_job *j, const lm_basis *first, const lm_basis *last);
/* PARE_ERR_INPUT where places have other widths: one basis can not serve them. */
void lm_need_one_width(pare_work *w, const lm *m);
void lm_slice(lm_job *j);
void lm_svd(lm_job *j);
void lm_auto(lm_job *j); /* needs an lm with stream = false */
/* Parts of svd that serve elsewhere. */
lm_attn lm_svd_heads(pare_work *w, const lm *m, const lm_attn *a, size_t qk, size_t dv);
lm_ffn lm_svd_units(pare_work *w, const lm_ffn *f, size_t n);

/* ---- all of it (lm.c) ---- */

/* pare_width where pare_width_is_text. */
PARE_MUST_USE pare_status lm_width(pare_model **out, pare_width_report *report,
                                   const pare_model *in, const pare_inputs *data,
                                   const pare_width_opts *opts, const pare_exec *exec,
                                   pare_err *err);
#endif
