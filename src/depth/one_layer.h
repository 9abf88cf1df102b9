/* one_layer.h - builds the weights of a one-layer network. */
#ifndef PARE_SRC_DEPTH_ONE_LAYER_H
#define PARE_SRC_DEPTH_ONE_LAYER_H
#include "depth_bounds.h"
#include "imat.h"

/* Heads stacked into one attention: rows of wq, wk, wv and columns of wo are appended. */
typedef struct head_stack {
    pare_work work;                   /* its arena is the new model's */
    size_t d, nheads, nq, nk, nv, no; /* so far */
    size_t heads_capacity, q_capacity, k_capacity, v_capacity, o_capacity;
    pare_head *heads;
    double *wq, *bq, *wk, *bk, *wv, *bv; /* rows */
    double *wo;                          /* columns of wo, as rows */
    bool any_bq, any_bk, any_bv;
} head_stack;

void stack_begin(head_stack *s, const pare_model *m);
/* All heads of an attention, with wo (NULL: its own) in the place of its output map. */
void stack_attn(head_stack *s, const pare_attn *at, const pare_mat *wo);
/* One head that weighs all keys alike: values x m (m: d x d, in x out). */
void stack_uniform(head_stack *s, const pare_mat *m);
/* As the attention of kind exact or (no wq) constq, with bias bo (d, or NULL). */
void stack_end(head_stack *s, pare_attn *out, pare_attn_kind kind, const double *bo,
               pare_dtype dtype);
typedef struct builder {
    const pare_model *in;
    const one_layer_opts *o;
    head_stack s;
    size_t d;
    pare_dtype dtype;
    pare_mat *v;   /* nblocks: d x d */
    pare_mat c;    /* nblocks x d: with bo */
    pare_mat own;  /* nblocks x d: value biases alone */
    pare_mat mean; /* nblocks + 1 x d: mean token before block b, and behind the last */
} builder;

/* V_b, c_b and the value biases of all blocks. */
void sum_layers(builder *k);
/* Pi - I: what the blocks add to the mean token. */
pare_mat uniform_product(builder *k);
/* E_1 .. E_L of the uniform chain under a mask, L d x d matrices one above the other. */
pare_mat uniform_powers(builder *k);
/* b <- b (I + V_b) + c_b, d numbers. */
pare_mat uniform_bias(builder *k);
/* Mean tokens of the calibration inputs, every sequence counting once. */
void mean_tokens(builder *k);
bool needs_full_attention(pare_collapse k);
/* NULL, or why a block does not belong to a pure residual attention network of width d. */
const char *impure_block(const pare_block *b, size_t d);
#endif
