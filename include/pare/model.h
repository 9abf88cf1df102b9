/* pare/model.h - the one model type, and its file. docs/format.md says the same for strangers.
 *
 * Tokens are rows; every weight is stored [out, in]:  y = x W^T + b.
 *
 *   x  = input(tokens)                                   ids or vectors, positions, map, norm
 *   per block:
 *     z  = out_norm( skip(x) + attention( in_norm(x) ) )
 *     x' = out_norm( skip(z) + ffn( in_norm(z) ) )
 *   y  = head(x)                                         norm, pooling, dense + act, classifier
 *
 * A sublayer with kind NONE is not there at all: its output is its input. */
#ifndef PARE_MODEL_H
#define PARE_MODEL_H
#include <pare/attention.h>

typedef enum pare_norm_kind {
    PARE_NORM_NONE,
    PARE_NORM_LAYER, /* (x - mean x) / sqrt((|x - mean x|^2 + shift) / divisor + eps) */
    PARE_NORM_RMS,   /* x / sqrt((|x|^2 + shift) / divisor + eps) */
    PARE_NORM_BATCH, /* (x - mean) / sqrt(var + eps) with stored mean and var: affine */
    PARE_NORM_MEAN   /* x - mean x: linear */
} pare_norm_kind;

/* Then times gain, plus bias, entry by entry, where they are there. `offset` is added to x first.
 * divisor is explicit because a narrowed norm must still divide by the old width. */
typedef struct pare_norm {
    pare_norm_kind kind;
    double eps, divisor, shift;
    pare_weight gain, bias; /* 1 x d */
    pare_weight offset;     /* 1 x d */
    pare_weight mean, var;  /* 1 x d, batch only */
} pare_norm;

typedef enum pare_act {
    PARE_ACT_NONE,
    PARE_ACT_RELU,
    PARE_ACT_GELU,      /* x (1 + erf(x / sqrt 2)) / 2 */
    PARE_ACT_GELU_TANH, /* the tanh form */
    PARE_ACT_SILU,
    PARE_ACT_TANH
} pare_act;

typedef enum pare_skip_kind {
    PARE_SKIP_NONE,
    PARE_SKIP_IDENTITY,
    PARE_SKIP_DIAGONAL, /* w 1 x d */
    PARE_SKIP_DENSE     /* w out x in */
} pare_skip_kind;

typedef struct pare_skip {
    pare_skip_kind kind;
    pare_weight w;
} pare_skip;

typedef struct pare_dense {
    pare_weight w, b; /* out x in; 1 x out or absent */
} pare_dense;

/* What stands in the place of attention (docs/theory/depth.md "What stands in the place of
 * attention"). U is the matrix of uniform weights over the visible keys, z the normed input. bo is
 * added in every kind. */
typedef enum pare_attn_kind {
    PARE_ATTN_NONE,    /* no sublayer */
    PARE_ATTN_EXACT,   /* softmax heads */
    PARE_ATTN_ZERO,    /* nothing but bo */
    PARE_ATTN_CONST,   /* bo is the constant row */
    PARE_ATTN_UNIFORM, /* U (z mix^T + bv) */
    PARE_ATTN_CONSTQ,  /* heads whose query is bq for every token (no wq) */
    PARE_ATTN_MEANQ,   /* heads whose query is the mean of all queries (pattern full) */
    PARE_ATTN_LINEAR,  /* z matrix^T */
    PARE_ATTN_AFFMIX,  /* z matrix^T + U z mix^T */
    PARE_ATTN_POOL,    /* [z, pooled values of the constq heads] matrix^T */
    PARE_ATTN_UMIX,    /* sum_j U^j z E_j, mix = [E_0^T; E_1^T; ...] stacked by rows */
    PARE_ATTN_POLY     /* heads, evaluated to `tolerance` by polynomials where that is faster */
} pare_attn_kind;

/* Where a head's rows (of wq, wk, wv) and columns (of wo) begin: heads are packed, ragged is
 * allowed, and heads that share keys and values just name the same rows. */
typedef struct pare_head {
    size_t dk, dv;
    size_t q, k, v, o;
    double scale;        /* of the scores; never recomputed from a dimension */
    size_t freq, planes; /* rotary: planes [freq, freq + planes) of `freqs` turn 2*planes dims */
} pare_head;

typedef struct pare_attn {
    pare_attn_kind kind;
    size_t din, dout, nheads;
    pare_head *heads;
    pare_weight wq, bq; /* sum of dk x din */
    pare_weight wk, bk;
    pare_weight wv, bv; /* value biases stay inside the sum: an empty row gives 0 */
    pare_weight wo, bo; /* dout x sum of dv; no wo: the heads side by side are the output */
    pare_weight freqs;  /* 1 x planes, radians per token */
    pare_weight matrix, mix;
    double tolerance; /* poly */
    pare_norm in_norm, out_norm;
    pare_skip skip;
} pare_attn;

typedef enum pare_ffn_kind {
    PARE_FFN_NONE,
    PARE_FFN_MLP,  /* nlayers dense maps with act between them; one layer is linear */
    PARE_FFN_GATED /* down( act(gate z) * up z ): layers gate, up, down */
} pare_ffn_kind;

typedef struct pare_ffn {
    pare_ffn_kind kind;
    size_t din, dout, nlayers;
    pare_dense *layers;
    pare_act act;
    pare_norm in_norm, out_norm;
    pare_skip skip;
} pare_ffn;

typedef struct pare_block {
    pare_attn attn;
    pare_ffn ffn;
} pare_block;

typedef enum pare_position_kind {
    PARE_POS_NONE,
    PARE_POS_LEARNED,    /* a table, added */
    PARE_POS_SINUSOIDAL, /* sin / cos of pos / base^(2i/d), added */
    PARE_POS_ROTARY      /* turns queries and keys, per head */
} pare_position_kind;

typedef struct pare_positions {
    pare_position_kind kind;
    pare_weight table; /* context x d */
    double base;       /* sinusoidal */
    bool interleaved;  /* rotary pairs (2i, 2i+1); else (i, i + planes) */
    bool after_map;    /* the table is added after the input map */
} pare_positions;

typedef struct pare_stem { /* x = norm( map( embedding[id] or vector, + positions ) ) */
    bool ids;
    size_t width;          /* of the embedding or of the given vectors */
    size_t vocab;          /* ids only */
    pare_weight embedding; /* vocab x width */
    pare_positions pos;
    pare_dense map; /* optional */
    pare_norm norm;
} pare_stem;

typedef enum pare_pool {
    PARE_POOL_NONE, /* one output row per token */
    PARE_POOL_FIRST,
    PARE_POOL_MEAN
} pare_pool;

typedef struct pare_top { /* y = out( act( dense( pool( norm(x) ) ) ) ) */
    pare_norm norm;
    pare_pool pool;
    pare_dense dense; /* optional, with act */
    pare_act act;
    bool tied;      /* out.w is the embedding */
    pare_dense out; /* optional: without it the hidden row is the output */
} pare_top;

typedef enum pare_tokenizer_kind {
    PARE_TOK_NONE,
    PARE_TOK_GPT2,    /* the bytes of vocab.bpe */
    PARE_TOK_LLAMA2C, /* the bytes of llama2.c's tokenizer.bin */
    PARE_TOK_WORDS,   /* one word a line */
    PARE_TOK_BYTES    /* every byte is its own id; no vocabulary needed */
} pare_tokenizer_kind;

/* Bytes that a file may hold in the place of a weight's numbers (pare/coded.h). */
typedef struct pare_coded {
    const char *name; /* of the weight */
    const uint8_t *data;
    size_t bytes;
} pare_coded;

typedef struct pare_model {
    char *name; /* free text: "gpt2", "llama", ... */
    pare_stem stem;
    pare_pattern pattern;
    size_t context; /* longest input; 0 = any */
    size_t nblocks;
    pare_block *blocks;
    pare_top top;
    pare_tokenizer_kind tokenizer;
    const uint8_t *vocab; /* the tokenizer's file, byte for byte; NULL = none */
    size_t vocab_bytes;
    /* Weights that are saved as these bytes, which must expand to them bit for bit. Only what makes
     * a ticket fills it in: a model that was loaded or cloned is made of numbers. */
    const pare_coded *coded;
    size_t ncoded;

    pare_arena *arena; /* owns the structs and every weight that is not in a blob */
    pare_blob **blobs; /* the files the other weights live in */
    size_t nblobs;
} pare_model;

/* ---- making and walking ------------------------------------------------------------------ */

/* An empty model with its arena; pare_model_free frees all of it and accepts NULL. */
PARE_MUST_USE pare_status pare_model_new(pare_model **out, pare_err *err);
void pare_model_free(pare_model *m);
/* Keeps the file alive as long as the model. */
PARE_MUST_USE pare_status pare_model_keep(pare_model *m, pare_blob *b, pare_err *err);
/* A model with the same structs whose weights are borrowed from in's files and arena copies:
 * what a reduction starts from. `in` must outlive it unless every weight was replaced or lives in
 * a blob. */
PARE_MUST_USE pare_status pare_model_clone(pare_model **out, const pare_model *in, pare_err *err);

/* Calls fn for every weight that may be there, in file order, with its name in the file
 * ("blocks.0.attn.wq"). `vector`: stored with one dimension. Stops at the first failure. */
typedef pare_status pare_weight_fn(void *self, const char *name, pare_weight *w, bool vector,
                                   pare_err *err);
PARE_MUST_USE pare_status pare_model_visit(pare_model *m, pare_weight_fn *fn, void *self,
                                           pare_err *err);

/* Every shape fits its neighbours, every weight is finite, every kind has what it needs; the
 * message names the tensor and both shapes. Importers, loaders and reductions end with it. */
PARE_MUST_USE pare_status pare_model_check(const pare_model *m, pare_err *err);
/* Width of the residual stream where block b begins (b = nblocks: at the head). */
size_t pare_model_width(const pare_model *m, size_t b);
size_t pare_model_outputs(const pare_model *m); /* columns of the output */
bool pare_model_is_rotary(const pare_model *m); /* positions turn queries and keys */

/* Parameters (stored numbers; a tied head counts once), bytes of weights, and multiply-adds of
 * one pass over `tokens` tokens (edges: visible pairs; 0 = what the pattern gives). */
typedef struct pare_size {
    uint64_t parameters, bytes, macs;
} pare_size;
pare_size pare_model_size(const pare_model *m, size_t tokens, uint64_t edges);

/* One hash over everything the model is (architecture, weights, vocabulary), on disk or not; no
 * file's hash. */
PARE_MUST_USE pare_status pare_model_sha256(char hex[PARE_SHA256_HEX], const pare_model *m,
                                            pare_err *err);

/* Activations in f64: their values, within 16 u |x| + 2^-1012, and their largest slopes from above.
 */
double pare_act_f64(pare_act act, double x);
double pare_act_lipschitz(pare_act act);

/* The word that a file has for each: "layer", "relu", "identity", "exact", ... */
const char *pare_norm_name(pare_norm_kind k);
const char *pare_act_name(pare_act a);
extern const char *const pare_act_names[]; /* in the order of the enum, ended by NULL */
const char *pare_skip_name(pare_skip_kind k);
const char *pare_attn_name(pare_attn_kind k);
/* A softmax over the scores of every query with every key it sees: exact, or by polynomials. */
bool pare_attn_is_softmax(pare_attn_kind k);
/* Heads whose values are weighed by a softmax: those, and with one query for all (constq, meanq).
 */
bool pare_attn_has_softmax(pare_attn_kind k);
/* More words of files. */
const char *pare_ffn_name(pare_ffn_kind k);
const char *pare_position_name(pare_position_kind k);
const char *pare_pool_name(pare_pool p);
const char *pare_pattern_name(pare_pattern_kind k);
const char *pare_tokenizer_name(pare_tokenizer_kind k);

/* ---- files ------------------------------------------------------------------------------- */

/* Loads a pare file, or imports what it finds: Hugging Face GPT-2, Llama, BERT (a file or a
 * folder, sharded, f16/bf16), llama2.c .bin, per-head tensors, the graph transformers, Moonshine,
 * the depth and width npz. Every file is read once; weights stay in its bytes where they can. */
PARE_MUST_USE pare_status pare_model_load(pare_model **out, const char *path, pare_err *err);
/* The same through `files`, which then holds what the model was made of, config.json and shards
 * too: pare_files_identity(hex, files, path, err) says which model it was. `files` may be freed
 * before the model. */
PARE_MUST_USE pare_status pare_model_load_files(pare_model **out, const char *path,
                                                pare_files *files, pare_err *err);
/* The settings of a model, everything that is not a tensor, in one canonical form, and its hash
 * (architecture.c, docs/format.md): the same whatever files it was loaded from. */
PARE_MUST_USE pare_status pare_architecture_text(char **out, pare_arena *a, const pare_model *m,
                                                 pare_err *err);
PARE_MUST_USE pare_status pare_architecture_sha256(char hex[PARE_SHA256_HEX], const pare_model *m,
                                                   pare_err *err);
/* Writes the file (whole or not at all) and, when sha256 is not NULL, its hash. */
PARE_MUST_USE pare_status pare_model_save(const pare_model *m, const char *path, bool overwrite,
                                          char sha256[PARE_SHA256_HEX], pare_err *err);
#endif
