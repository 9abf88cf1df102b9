/* model_norms.h - proven norms of the weights a model multiplies by, made once per model. */
#ifndef PARE_CERT_MODEL_NORMS_H
#define PARE_CERT_MODEL_NORMS_H
#include "prove.h"

/* Of W (out x in) and b: upper bounds. An absent matrix has zeros everywhere. */
typedef struct dense_norms {
    size_t out, in;
    bool wide;       /* W or b is stored in f64: the f32 engine rounds it */
    double two, fro; /* |W|_2, |W|_F */
    double row2;     /* largest |row of W|_2 */
    double b2, bmax; /* |b|_2, largest |b_k| */
} dense_norms;

/* The row blocks of one head. */
typedef struct head_norms {
    dense_norms q, k, v;
} head_norms;

typedef struct attn_norms {
    head_norms *heads;
    bool apart; /* no two heads write the same column of wo's input */
    dense_norms o, matrix, skip;
    size_t nmix; /* umix: one block per power of U; otherwise at most one */
    dense_norms *mix;
} attn_norms;

typedef struct ffn_norms {
    dense_norms *layers, skip;
} ffn_norms;

struct pare_model_norms {
    dense_norms map, dense, out; /* embedding map, head dense, classifier */
    attn_norms *attn;            /* nblocks */
    ffn_norms *ffn;
};

/* Rows [r, r + rows) of w as a weight of their own; absent stays absent. */
pare_weight weight_rows(const pare_weight *w, size_t r, size_t rows);
/* Entries [at, at + n) of a stored vector. */
pare_weight vector_part(const pare_weight *v, size_t at, size_t n);
#endif
