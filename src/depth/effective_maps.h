/* effective_maps.h - a sublayer as the theorems use it: affine norms, gains, skips and output maps
 * are folded into matrices between residual streams, each with the rounding of having been formed
 * (imat.h).
 *
 *   attention:  x'_i = x_i T + sum_j (U^j X)_i M_j + sum_h (P_h X)_i V_h + inside + outside
 *   with scores x_i B_h x_j + l_h . x_j of head h (what is constant in a row is left out).
 * `inside` is what value biases add where a row sees anything. Every kind has this form: zero and
 * const have no M and no heads, linear lies in T, uniform is M_1, constq heads have B = 0. */
#ifndef PARE_SRC_DEPTH_EFFECTIVE_MAPS_H
#define PARE_SRC_DEPTH_EFFECTIVE_MAPS_H
#include <pare/model.h>
#include "imat.h"

typedef enum query_kind { QUERY_EACH, QUERY_SAME, QUERY_MEAN } query_kind;

typedef struct eff_head {
    query_kind query;
    bool rotary;
    imat b, l;         /* din x din, 1 x din; not there for a rotary head, whose scores rotate: */
    imat q, q0, k, k0; /* q_i = x_i q + q0, keys likewise; scores |scale| q_i R k_j, |R| = 1 */
    double scale;
    imat v; /* din x dout */
} eff_head;

typedef struct eff_attn {
    size_t din, dout, nheads, npowers;
    imat t;
    imat *mix; /* M_1 .. M_npowers */
    eff_head *heads;
    imat inside, outside; /* 1 x dout */
} eff_attn;

/* An affine map x a + shift; `any` false: the identity. */
typedef struct affine_map {
    bool any;
    imat a, shift;
} affine_map;

/* false: a layer or rms norm, which is not affine. */
bool affine_norm(pare_work *k, affine_map *out, const pare_norm *n, size_t d);
/* Gain and bias of a norm: what is behind the division of a layer or rms norm. */
affine_map norm_gain(pare_work *k, const pare_norm *n, size_t d);
imat affine_then(pare_work *k, const affine_map *m, const imat *w);  /* a w */
imat affine_after(pare_work *k, const imat *w, const affine_map *m); /* w a */

/* What the attention sublayer does, kind NONE as well (`width`: of the stream). false: *why says
 * which norm is in the way. */
bool effective_attn(pare_work *k, eff_attn *out, const pare_attn *at, size_t width,
                    const char **why);
/* The branch alone: no skip, no norm behind; `in` stands for the norm in front. */
void effective_branch(pare_work *k, eff_attn *out, const pare_attn *at, const affine_map *in);
/* Sum of V_h. */
imat heads_total(pare_work *k, const eff_attn *e);

typedef struct eff_ffn {
    size_t din, dout, nlayers;
    bool gated;
    pare_act act;
    imat t;       /* skip, then the norm behind */
    imat *w, *b;  /* layers; norms folded into the first and the last */
    imat outside; /* what the norm behind adds */
} eff_ffn;
bool effective_ffn(pare_work *k, eff_ffn *out, const pare_ffn *f, size_t width, const char **why);
/* The head of the model after pooling, as an FFN without skip; its last column is the difference of
 * the two outputs where there are two (*extra). */
bool effective_output_head(pare_work *k, eff_ffn *out, bool *extra, const pare_model *m,
                           const char **why);
#endif
