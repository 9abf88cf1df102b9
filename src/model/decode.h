/* decode.h - the decoder's inside: every sublayer made ready, and the rows that flow through. */
#ifndef PARE_MODEL_DECODE_H
#define PARE_MODEL_DECODE_H
#include "decode_kernels.h"
#include <pare/decode.h>

enum { DECODE_ROWS = PARE_DECODE_TEXTS }; /* tokens that go through together: 8 tall tiles */

/* Where a row that flows through belongs. */
typedef struct decode_row {
    size_t text, pos;
} decode_row;

typedef struct decode_skip {
    pare_skip_kind kind;
    const float *diagonal; /* padded */
    pare_panels dense;
} decode_skip;

/* U x, row by row: a running sum where all keys before are seen, the rows themselves in a window.
 */
typedef struct decode_mean {
    size_t d;
    double *sum; /* texts x d */
    float *rows; /* texts x max_tokens x d; window only */
} decode_mean;

typedef struct decode_attn {
    const pare_attn *a;
    decode_norm in, out;
    decode_skip skip;
    pare_panels first;  /* of z: queries, keys, values side by side; or uniform's values */
    pare_panels direct; /* of z: what goes into the result at once */
    pare_panels second; /* of the heads or of the mean */
    pare_panels *power; /* umix: E_0, E_1, ... */
    size_t powers;
    const float *row;   /* bo where no product brings it, padded; or NULL */
    const float *query; /* the one query of constq and pool, or NULL */
    size_t q, k, v;     /* columns of `first` where queries, keys, values begin */
    size_t heads;       /* columns of all heads together */
    float *kcache, *vcache;
    size_t kstep, vstep; /* floats of LANES tokens */
    size_t ktext, vtext; /* floats of one text */
    double *gather;      /* in their place, where one query serves all tokens: decode_attn.c */
    size_t gtext;        /* numbers of one text; 0: keys and values are kept */
    decode_mean *mean;   /* uniform, affmix: one; umix: powers - 1 */
    size_t turn;         /* which table of angles */
} decode_attn;

typedef struct decode_ffn {
    const pare_ffn *f;
    decode_norm in, out;
    decode_skip skip;
    pare_panels *layer; /* mlp: all; gated: gate over up, then down */
    size_t layers;
} decode_ffn;

/* Sines and cosines of the rows at hand, for one set of frequencies. */
typedef struct decode_turn {
    const pare_weight *freqs;
    float *cosine, *sine; /* DECODE_ROWS x freqs */
} decode_turn;

struct pare_decoder {
    const pare_model *m;
    pare_arena *arena;
    pare_exec exec;
    const decode_kernels *go;
    vector_isa isa;
    size_t max, texts;
    size_t *tokens; /* read so far, of each text */
    decode_row row[DECODE_ROWS];

    pare_panels map;
    double *wave; /* sinusoidal: base^(2i/d) */
    decode_norm stem_norm, top_norm;
    decode_attn *attn;
    decode_ffn *ffn;
    decode_turn *turn;
    size_t turns;
    pare_panels dense, last;

    /* DECODE_ROWS rows each: the stream and its successor, the normed row, two hidden ones. */
    float *x, *y, *z, *h, *g;
    size_t wide, hidden; /* floats per row of x, y, z and of h, g, at most */
    float *scores;       /* per head */
    size_t score_room;
};

/* Where row i of a buffer with d columns begins. A little more than the padded width, because rows
 * whose distance is a multiple of 4096 bytes drive one another out of the cache. */
static inline size_t decode_stride(size_t d)
{
    return pare_padded(d) + LANES;
}

/* Makes everything ready; on failure the caller frees the arena. */
PARE_MUST_USE pare_status decode_prepare(pare_decoder *d, pare_err *err);
/* d->y = the attention branch at d->z, n rows. */
void decode_attention(pare_decoder *d, decode_attn *a, size_t n);
/* Angles of the n rows. */
void decode_angles(pare_decoder *d, size_t n);
void decode_mean_rows(const pare_decoder *d, decode_mean *mean, float *y, const float *x, size_t ld,
                      size_t n);
#endif
