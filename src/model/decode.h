/* decode.h - inside the decoder: packed weights and caches of every sublayer, and the rows (tokens)
 * that go through them. */
#ifndef PARE_MODEL_DECODE_H
#define PARE_MODEL_DECODE_H
#include "decode_kernels.h"
#include "linalg/packed.h"
#include <pare/run.h>

enum { PARE_DECODE_SEQUENCES = 96 }; /* that one decoder reads side by side, at most */
enum {
    DECODE_ROWS = PARE_DECODE_SEQUENCES
}; /* tokens that kernels through together: 8 tall tiles */

/* The sequence of a row, and its position there. */
typedef struct decode_row {
    size_t sequence, position;
} decode_row;

typedef struct decode_skip {
    pare_skip_kind kind;
    const float *diagonal; /* padded */
    pare_panels dense;
} decode_skip;

/* U x, row by row: a running sum where all keys before are seen; in a window the rows. */
typedef struct decode_mean {
    size_t d;
    double *sum; /* sequences x d */
    float *rows; /* sequences x max_tokens x d; window only */
} decode_mean;

typedef struct decode_attn {
    const pare_attn *a;
    decode_norm in, out;
    decode_skip skip;
    pare_panels project; /* of z: queries, keys, values side by side; or uniform's values */
    pare_panels direct;  /* of z: added to the result as it is */
    pare_panels output;  /* of the heads or of the mean */
    pare_panels *power;  /* umix: E_0, E_1, ... */
    size_t powers;
    const float *bias;   /* bo where no product adds it, padded; or NULL */
    const float *query;  /* the one query of constq and pool, or NULL */
    size_t q, k, v;      /* columns of `project` where queries, keys, values begin */
    size_t head_columns; /* of all heads together */
    float *kcache, *vcache;
    size_t kstep, vstep;           /* floats of LANES tokens */
    size_t k_sequence, v_sequence; /* floats of one sequence */
    double *running; /* running softmax in place of the caches, where one query serves all tokens */
    size_t running_size; /* numbers of one sequence; 0: keys and values are cached */
    decode_mean *mean;   /* uniform, affmix: one; umix: powers - 1 */
    size_t rotation;     /* which table of angles */
} decode_attn;

typedef struct decode_ffn {
    const pare_ffn *f;
    decode_norm in, out;
    decode_skip skip;
    pare_panels *layer; /* mlp: all; gated: gate over up, then down */
    size_t layers;
} decode_ffn;

/* Sines and cosines of the rows at hand, for one set of frequencies. */
typedef struct decode_rotation {
    const pare_weight *freqs;
    float *cosine, *sine; /* DECODE_ROWS x freqs */
} decode_rotation;

struct pare_decoder {
    const pare_model *m;
    pare_arena *arena;
    pare_exec exec;
    const decode_kernels *kernels;
    simd_isa isa;
    size_t max_tokens, sequences;
    size_t *tokens; /* read so far, of each sequence */
    decode_row row[DECODE_ROWS];

    pare_panels map;    /* of the embedding */
    double *wavelength; /* sinusoidal: base^(2i/d) */
    decode_norm embedding_norm, head_norm;
    decode_attn *attn;
    decode_ffn *ffn;
    decode_rotation *rotation;
    size_t rotations;
    pare_panels head_dense, head_out;
    const uint32_t *output_map; /* the row of head_out of each output; NULL: its own */
    const float *output_bias;   /* with output_map */

    /* DECODE_ROWS rows each: the stream and its successor, the normed row, two hidden ones. */
    float *x, *y, *z, *h, *g;
    size_t stream_stride, hidden_stride; /* floats per row of x, y, z and of h, g, at most */
    void *scratch;                       /* of products of packed weights */
    float *scores;                       /* per head */
    size_t score_capacity;
};

/* Where row i of a buffer with d columns begins. A little more than the padded width, because rows
 * whose distance is a multiple of 4096 bytes drive one another out of the cache. */
static inline size_t decode_stride(size_t d)
{
    return pare_padded(d) + LANES;
}

/* Packs the weights and allocates caches and rows; on failure the caller frees the arena. */
PARE_MUST_USE pare_status decode_prepare(pare_decoder *d, pare_err *err);
/* y (n x out) = x (n x in) W^T + b, added to y where `add`. */
void decode_product(pare_decoder *d, float *y, size_t ldy, const pare_panels *p, const float *x,
                    size_t ldx, size_t n, bool add);
/* d->y = the attention branch at d->z, n rows. */
void decode_attention(pare_decoder *d, decode_attn *a, size_t n);
/* Angles of the n rows. */
void decode_set_angles(pare_decoder *d, size_t n);
#endif
