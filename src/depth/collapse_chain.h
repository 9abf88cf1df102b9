/* collapse_chain.h - a one-layer network g as a chain of L blocks that can be compared with f
 * block by block, and the difference between that chain and g itself. */
#ifndef PARE_SRC_DEPTH_COLLAPSE_CHAIN_H
#define PARE_SRC_DEPTH_COLLAPSE_CHAIN_H
#include "depth_bounds.h"
#include "walk.h"

typedef struct chain {
    pare_collapse kind; /* PARE_ONES: g has f's blocks */
    size_t keep;
    bool keeps_same; /* block `keep` of f is g's, bit for bit */
    const pare_model *f, *g;
    size_t heads; /* walked so far */
} chain;

/* The attention of block b of a pure residual network. */
void chain_block(pare_work *k, eff_attn *out, const pare_model *m, size_t b);
/* The chain's attention of block b; `fb` is f's. *same: it is f's own, bit for bit. */
void chain_attn(pare_work *k, chain *c, eff_attn *out, bool *same, const eff_attn *fb, size_t b);
/* |chain - g| for tokens of this set at the input; a row of sizes at the end of the blocks. */
pare_mat chain_remainder(pare_work *k, chain *c, const token_norm *in, const token_norm *out,
                         const token_set *x0, mask_facts s);

/* The difference that is left at the outputs into *out, if it is smaller; extra: the last column is
 * the difference of two outputs. */
void take_output_bound(pare_work *k, depth_bound *out, size_t way, const eff_ffn *head, bool extra,
                       const track *t);

/* Theorem 1 (theorem1_recurrence.c). kind PARE_ONES: block by block; else g is that collapse of
 * f. */
PARE_MUST_USE pare_status depth_recurrence(depth_bound *out, const pare_model *f,
                                           const pare_model *g, const depth_domain *d,
                                           pare_collapse kind, size_t keep, const pare_exec *exec,
                                           pare_err *err);
#endif
