/* pare/init.h - fresh models to be trained. Same options, same seed, same bytes. */
#ifndef PARE_INIT_H
#define PARE_INIT_H
#include <pare/popup.h>
#include <pare/variant.h>

typedef enum pare_init_kind {
    PARE_INIT_GRAPH,  /* vectors on nodes: map, attention over edges, batch norm after the skip */
    PARE_INIT_MLP,    /* the same without attention */
    PARE_INIT_GCN,    /* the same with uniform attention, normalised by the degree */
    PARE_INIT_GPT,    /* ids, learned positions, causal, layer norm before, tied head */
    PARE_INIT_ENCODER /* ids or vectors, full attention, pooled or per-token head */
} pare_init_kind;

typedef struct pare_init {
    pare_init_kind kind;
    size_t dim, layers, heads;
    size_t ffn; /* hidden width; 0: dim (graph kinds), 4 dim (others) */
    size_t vocab, context;
    size_t features;        /* vectors: their width */
    size_t outputs;         /* classes or numbers; GPT: the vocabulary */
    bool self_loops, full;  /* graph: which pairs attend */
    size_t expander_degree; /* graph: 0 = none */
    pare_pool pool;         /* encoder */
    pare_variant variant;   /* what is left out */
    uint64_t seed;
    /* GPT: frozen weights, no biases, plain norms (pare/popup.h); NULL: from `seed`, to be trained
     */
    const pare_frozen_gpt *source;
} pare_init;

/* Weights as torch's Linear (graph kinds, encoder) or as GPT-2 (std 0.02, the residual maps by
 * 1 / sqrt(2 layers)). Without skips and norms every map keeps the mean square of its inputs
 * instead, or nothing would reach the last layer. PARE_ERR_USAGE names what does not fit. Caller
 * frees with pare_model_free. */
PARE_MUST_USE pare_status pare_init_model(pare_model **out, const pare_init *o, pare_err *err);
#endif
