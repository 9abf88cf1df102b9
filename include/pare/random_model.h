/* pare/random_model.h - a model with random weights of a given shape: what a user without any
 * model starts from, and what tests and benchmarks run on. Same options, same seed, same bytes. */
#ifndef PARE_RANDOM_MODEL_H
#define PARE_RANDOM_MODEL_H
#include <pare/variant.h>

typedef enum pare_random_kind {
    PARE_RANDOM_GPT,   /* ids, learned positions, causal, pre layer norm, MLP, tied head */
    PARE_RANDOM_LLAMA, /* ids, rotary, causal, shared keys and values, rms norm, gated, untied */
    PARE_RANDOM_BERT,  /* ids, learned positions, full, post layer norm, pooled classifier */
    PARE_RANDOM_GRAPH  /* vectors on the nodes of a graph, self loops, post batch norm */
} pare_random_kind;

/* A zero means "what suits the others" where a comment says so. Fields a kind has no use for are
 * not read. */
typedef struct pare_random_model_opts {
    pare_random_kind kind;
    size_t dim, layers, heads;
    size_t kv_heads; /* llama; 0: half of the heads where that divides them, else all */
    size_t ffn;      /* hidden width; 0: 4 dim (gpt, bert), 8/3 dim (llama), 2 dim (graph) */
    size_t vocab;    /* 256: every byte is an id, so that text needs no vocabulary */
    size_t context;
    size_t features; /* graph: width of the given vectors */
    size_t classes;  /* bert, graph */
    double sigma;    /* of the weights; 0: 1 / sqrt(columns) */
    uint64_t seed;
    const pare_exec *exec; /* may be NULL */
    pare_variant variant;  /* what is left out */
} pare_random_model_opts;

#define PARE_RANDOM_MODEL_DEFAULT                                                                  \
    {                                                                                              \
        .kind = PARE_RANDOM_GPT, .dim = 64, .layers = 2, .heads = 4, .vocab = 256, .context = 64,  \
        .features = 7, .classes = 2                                                                \
    }

/* Weights are f32, normal with mean 0; gains and variances lie near 1 and every bias is there and
 * not zero, so that a reduction has something to do. PARE_ERR_USAGE names the option that does not
 * fit. A variant has the weights that the usual model of the same seed has. Caller frees with
 * pare_model_free. */
PARE_MUST_USE pare_status pare_random_model(pare_model **out, const pare_random_model_opts *opts,
                                            pare_err *err);
/* "gpt", "llama", "bert", "graph", NULL: in the order of the enum. */
extern const char *const pare_random_kinds[];
#endif
