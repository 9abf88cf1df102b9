/* folded_net.h - a graph transformer in the form every construction uses, as plain f64 matrices
 * (docs/theory/width.md section 8):
 *
 *     h_0 = We x + be
 *     z   = R1 h + sum_heads Wo sum_j a_ij (Wv h_j + bv) + c1,
 *           a_ij the softmax over j of the scores  scale (Wq h_i + bq).(Wk h_j)
 *     h'  = R2 z + W2 act(W1 z + b1) + c2
 *     y   = Wh h_L + bh
 *
 * Batch norms are folded, key biases are dropped (softmax does not see them), skips are absent or
 * dense. The form is closed under every cut here: a change of basis only makes a skip dense. */
#ifndef PARE_SRC_WIDTH_FOLDED_NET_H
#define PARE_SRC_WIDTH_FOLDED_NET_H
#include "matrices.h"
#include <pare/run.h>

typedef struct net_head {
    pare_mat wq, wk; /* dk x din */
    pare_mat wv;     /* dv x din */
    pare_mat wo;     /* dout x dv */
    double *bq, *bv; /* never NULL */
    double scale;
} net_head;

typedef struct net_layer {
    size_t nheads;
    net_head *heads;
    pare_mat r1, r2; /* out x in; v NULL: no skip */
    pare_mat w1, w2; /* F x mid, dout x F */
    double *c1, *b1, *c2;
    pare_act act;
} net_layer;

typedef struct net {
    size_t nlayers;
    net_layer *layers;
    pare_mat we, wh; /* D x features, outputs x D; the identity where the model has none */
    double *be, *bh;
    pare_dtype dtype; /* to write it in: f64 when any matrix that was read is */
} net;

/* `folded` is what pare_fold makes. PARE_ERR_INPUT names the place that is not of this form. */
net net_read(pare_work *w, const pare_model *folded);
/* A model of its own with like's pattern and name. */
PARE_MUST_USE pare_status net_write(pare_model **out, const net *n, const pare_model *like,
                                    pare_err *err);
/* Copies of the lists, the matrices shared: so that a cut can replace some of them. */
net net_shallow(pare_work *w, const net *n);
/* Moves value biases into c1: only where every row has a key. */
void net_merge_value_biases(pare_work *w, net *n);
/* Whether the output projection is the identity on the heads side by side: it is not stored. */
bool net_has_identity_wo(const net_layer *l);
size_t net_parameters(const net *n); /* as net_write stores them */

/* ---- one step of the forward pass (net_forward.c); rows are nodes ---- */

/* The score of every listed pair, in the order of g->idx. */
double *head_scores(pare_work *w, const net_head *hd, const pare_mat *h, const pare_graph *g);
/* The largest (max - min) / 2 of `a - b` within a row: the only part of a score error that softmax
 * sees. */
double score_half_range(const double *a, const double *b, const pare_graph *g);
/* sum_j a_ij (Wv h_j + bv), without Wo: n x dv. A row without keys is 0. */
pare_mat head_pooled(pare_work *w, const net_head *hd, const pare_mat *h, const pare_graph *g);
pare_mat layer_attention(pare_work *w, const net_layer *l, const pare_mat *h, const pare_graph *g);
pare_mat layer_hidden(pare_work *w, const net_layer *l, const pare_mat *z);
pare_mat layer_ffn(pare_work *w, const net_layer *l, const pare_mat *z, const pare_mat *p);

/* ---- the activations of a model on its data (activations.c) ---- */

typedef struct activations {
    size_t nlayers;
    pare_graph graph; /* who sees whom: complete, as compressed rows */
    pare_mat x;       /* the features */
    pare_mat *h;      /* nlayers + 1 */
    pare_mat *z, *p;  /* nlayers: after attention; hidden activations */
} activations;

/* By the f64 reference with a trace; `n` is `folded` as it was read. */
activations activations_of(pare_work *w, const pare_model *folded, const net *n,
                           const pare_input *in);
/* The pattern of a model over n tokens as a graph. */
pare_graph key_graph(pare_work *w, const pare_pattern *p, const pare_graph *data, size_t n);
#endif
