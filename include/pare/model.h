/* pare/model.h - the one model type, its files, and the files of other programs. docs/format.md
 * describes pare's own file for people who write one by hand.
 *
 * Tokens are rows; every weight is stored [out, in]:  y = x W^T + b.
 *
 *   x  = input(tokens)                                   ids or vectors, positions, map, norm
 *   per block:
 *     z  = out_norm( skip(x) + attention( in_norm(x) ) )
 *     x' = out_norm( skip(z) + ffn( in_norm(z) ) )
 *   y  = head(x)                                         norm, pooling, dense + act, classifier,
 *                                                        division by the length of the row
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
    size_t freq, planes; /* rotary: planes [freq, freq + planes) of `freqs` rotate 2*planes dims */
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
    PARE_POS_ROTARY      /* rotates queries and keys, per head */
} pare_position_kind;

typedef struct pare_positions {
    pare_position_kind kind;
    pare_weight table; /* context x d */
    double base;       /* sinusoidal */
    bool interleaved;  /* rotary pairs (2i, 2i+1); else (i, i + planes) */
    bool after_map;    /* the table is added after the input map */
} pare_positions;

typedef struct pare_embedding { /* x = norm( map( embedding[id] or vector, + positions ) ) */
    bool ids;
    size_t width;      /* of the embedding or of the given vectors */
    size_t vocab;      /* ids only */
    pare_weight table; /* vocab x width; with `rows`: fewer rows */
    /* The row of the table that each of the vocab tokens has; NULL: its own. Tokens that share a row
     * have the last one; the others have theirs before it, in the order of their ids. */
    const uint32_t *rows;
    pare_positions pos;
    pare_dense map; /* optional */
    pare_norm norm;
} pare_embedding;

typedef enum pare_pool {
    PARE_POOL_NONE, /* one output row per token */
    PARE_POOL_FIRST,
    PARE_POOL_MEAN,
    PARE_POOL_MAX, /* entry by entry, over the tokens */
    PARE_POOL_LAST
} pare_pool;

typedef struct pare_output_head { /* y = normalize( out( act( dense( pool( norm(x) ) ) ) ) ) */
    pare_norm norm;
    pare_pool pool;
    pare_dense dense; /* optional, with act */
    pare_act act;
    bool tied;      /* out.w is the embedding */
    pare_dense out; /* optional: without it the hidden row is the output */
    bool normalize; /* last of all, each output row is y / |y|_2; a row of zeros stays zero */
} pare_output_head;

typedef enum pare_tokenizer_kind {
    PARE_TOK_NONE,
    PARE_TOK_GPT2,    /* the bytes of vocab.bpe */
    PARE_TOK_LLAMA2C, /* the bytes of llama2.c's tokenizer.bin */
    PARE_TOK_WORDS,   /* one word a line */
    PARE_TOK_BYTES,   /* every byte is its own id; no vocabulary needed */
    PARE_TOK_JSON     /* the bytes of tokenizer.json */
} pare_tokenizer_kind;

/* What a folder does not say and its user does. */
typedef struct pare_load_opts {
    /* The outputs are pooled like this instead of through the model's own head; NONE: as the folder
     * says (1_Pooling of sentence-transformers, or the head of its family). */
    pare_pool pool;
    bool normalize; /* and divided by their length */
    /* Of a pare file: matrices that it holds as integers, in f16 or in bf16 stay packed. Such a model
     * takes less memory and generates faster. It is for running and measuring: what changes, saves
     * or certifies a model takes one that was loaded without. */
    bool packed;
} pare_load_opts;
#define PARE_LOAD_OPTS_DEFAULT                                                                     \
    {                                                                                              \
        .pool = PARE_POOL_NONE                                                                     \
    }

/* Bytes that a file may hold in the place of a weight's numbers. */
typedef struct pare_coded {
    const char *name; /* of the weight */
    const uint8_t *data;
    size_t bytes;
} pare_coded;

typedef struct pare_model {
    char *name; /* free text: "gpt2", "llama", ... */
    pare_embedding embedding;
    pare_pattern pattern;
    size_t context; /* longest input; 0 = any */
    /* F16 or BF16: files of the model hold those weights in it whose numbers it has; all others are
     * stored as they are in memory. It came with the file, and is no part of what the model
     * computes. */
    pare_dtype precision;
    size_t nblocks;
    pare_block *blocks;
    pare_output_head head;
    pare_tokenizer_kind tokenizer;
    const uint8_t *vocab; /* the tokenizer's file, byte for byte; NULL = none */
    size_t vocab_bytes;
    /* Weights that are saved as these bytes, which must expand to them bit for bit. Only what makes
     * a ticket fills it in: a model that was loaded or cloned is made of numbers. */
    const pare_coded *coded;
    size_t ncoded;
    /* Weights that are also there as integers (a quantized file that was not loaded packed), found by
     * ints[i].of == w->data. */
    const pare_int_groups *ints;
    size_t nints;
    pare_load_opts read_as; /* what the caller told the importer; a certificate repeats it */
    const char *notes; /* what reading it decided, a line each: for a user to know; NULL: nothing */

    pare_arena *arena; /* owns the structs and every weight that is not in a blob */
    pare_blob **blobs; /* the files the other weights live in */
    size_t nblobs;
    pare_arena **shared; /* memory of other models that weights of this one live in: kept alive */
    size_t nshared;
} pare_model;

/* ---- making and walking ---------------------------------------------------------------------- */

/* An empty model with its arena; pare_model_free frees all of it and accepts NULL. */
PARE_MUST_USE pare_status pare_model_new(pare_model **out, pare_err *err);
void pare_model_free(pare_model *m);
/* Keeps the file alive as long as the model. */
PARE_MUST_USE pare_status pare_model_keep(pare_model *m, pare_blob *b, pare_err *err);
/* A model with structs of its own and the same weights: what a reduction starts from. The weights
 * are not copied. Both models hold them, and either may be freed first. */
PARE_MUST_USE pare_status pare_model_clone(pare_model **out, const pare_model *in, pare_err *err);

/* Calls fn for every weight that may be there, in file order, with its name in the file
 * ("blocks.0.attn.wq"). `vector`: stored with one dimension. Stops at the first failure. */
typedef pare_status pare_weight_fn(void *self, const char *name, pare_weight *w, bool vector,
                                   pare_err *err);
PARE_MUST_USE pare_status pare_model_each_weight(pare_model *m, pare_weight_fn *fn, void *self,
                                                 pare_err *err);

/* Rounds every weight, to nearest, ties to even: with dtype 0 to the type in which `like` stores the
 * weight of that name, or of most of its bytes where it does not have it; none gets wider.
 * Otherwise every weight becomes one of dtype, wider or not. Frequencies of rotary positions and the
 * coded weights of a ticket stay. PARE_ERR_INPUT names the tensor with a number that would become
 * infinite. Every cut ends with it, before it is certified. */
PARE_MUST_USE pare_status pare_model_round(pare_model *m, const pare_model *like, pare_dtype dtype,
                                           pare_err *err);

/* Every shape fits its neighbors, every weight is finite, every kind has what it needs; the
 * message names the tensor and both shapes. Importers, loaders and reductions end with it. */
PARE_MUST_USE pare_status pare_model_check(const pare_model *m, pare_err *err);
/* Width of the residual stream where block b begins (b = nblocks: at the head). */
size_t pare_model_width(const pare_model *m, size_t b);
size_t pare_model_outputs(const pare_model *m); /* columns of the output */

/* Parameters (stored numbers; a tied head counts once), bytes of the weights in a file, and
 * multiply-adds of one pass over `tokens` tokens (edges: visible pairs; 0 = what the pattern gives). */
typedef struct pare_size {
    uint64_t parameters, bytes, macs;
} pare_size;
pare_size pare_model_size(const pare_model *m, size_t tokens, uint64_t edges);

/* One hash over everything the model is (architecture, weights, vocabulary), on disk or not; no
 * file's hash. */
PARE_MUST_USE pare_status pare_model_sha256(char hex[PARE_SHA256_HEX], const pare_model *m,
                                            pare_err *err);

/* The word that a file has for each: "layer", "relu", "identity", "exact", ... */
const char *pare_norm_name(pare_norm_kind k);
const char *pare_act_name(pare_act a);
extern const char *const pare_act_names[]; /* in the order of the enum, ended by NULL */
const char *pare_skip_name(pare_skip_kind k);
const char *pare_attn_name(pare_attn_kind k);
/* A softmax over the scores of every query with every key it sees: exact, or by polynomials. */
bool pare_attn_is_softmax(pare_attn_kind k);
/* More words of files. */
const char *pare_ffn_name(pare_ffn_kind k);
const char *pare_position_name(pare_position_kind k);
const char *pare_pool_name(pare_pool p);
extern const char *const pare_pool_names[]; /* in the order of the enum, ended by NULL */
const char *pare_pattern_name(pare_pattern_kind k);
const char *pare_tokenizer_name(pare_tokenizer_kind k);

/* ---- files ----------------------------------------------------------------------------------- */

/* Loads a pare file, or imports what it finds: Hugging Face and sentence-transformers folders and
 * files (docs/huggingface.md has the families), llama2.c .bin, per-head tensors, the graph transformers, Moonshine,
 * the depth and width npz. Every file is read once; weights stay in its bytes where they can.
 * Caller frees *out with pare_model_free. */
PARE_MUST_USE pare_status pare_model_load(pare_model **out, const char *path, pare_err *err);
/* Loads through `files`, which then holds what the model was made of, config.json and shards too, and
 * may be freed before the model; as `opts` (NULL: the default) say. PARE_ERR_INPUT where they do not go
 * with the model: a pare file says all of it itself. */
PARE_MUST_USE pare_status pare_model_load_as(pare_model **out, const char *path,
                                             const pare_load_opts *opts, pare_files *files,
                                             pare_err *err);
/* Writes the file (whole or not at all) and, when sha256 is not NULL, its hash. */
PARE_MUST_USE pare_status pare_model_save(const pare_model *m, const char *path, bool overwrite,
                                          char sha256[PARE_SHA256_HEX], pare_err *err);

/* ---- export ---------------------------------------------------------------------------------- */

/* Models for other programs. */

/* A whole model as ONNX (opset 17, f32, no more than the standard operators), whole or not at all.
 * Integers with scales stay integers of 8 bits, or of 4 (opset 21) where a matrix has no more:
 *
 *     ids i64 [batch, tokens], or x f32 [batch, tokens, d]  ->  y f32 [batch, tokens, out], or
 *                                                               [batch, out] where the head pools
 *
 * Batch and length are free, up to the context of learned positions. Weights that are f64 are
 * rounded; polynomial attention becomes exact attention. PARE_ERR_INPUT for what has no such graph:
 * attention over a graph, and 2 GiB or more. *bytes may be NULL. */
PARE_MUST_USE pare_status pare_export_onnx(const pare_model *m, const char *path, bool overwrite,
                                           uint64_t *bytes, pare_err *err);

/* A folder with config.json and model.safetensors (f32) under Hugging Face's names: GPT-2, Llama
 * (Mistral where there is a window) or BERT for sequence classification. PARE_ERR_INPUT, with the
 * first thing that does not fit, for models that have no such form: heads of different widths,
 * norms that divide by another width, replaced attention. A failure leaves no file of this call. */
PARE_MUST_USE pare_status pare_export_hf(const pare_model *m, const char *folder, bool overwrite,
                                         pare_err *err);

/* A cut `m` of the model `in`, which was loaded from the Hugging Face folder `source`, as a folder
 * of the same kind: tensors under their names in their types (or `dtype`, unless that is 0) and
 * files, config.json with the new sizes, every tokenizer and side file as it is; pooling that was
 * told (in->read_as) as sentence-transformers' files. m == in: as it came in, weights and config
 * byte for byte. It is loaded again and compared. PARE_ERR_INPUT for shapes that the family's config
 * cannot express. `folder` must not exist; a failure leaves nothing of it. */
PARE_MUST_USE pare_status pare_export_like(const pare_model *m, const pare_model *in,
                                           const char *source, const char *folder, pare_dtype dtype,
                                           pare_err *err);
/* Whether a folder may be written at `path`: PARE_ERR_IO for a file or a link, and for a folder that
 * is not empty unless with `overwrite` it is one of a model and holds nothing else (folders of
 * modules, such as 1_Pooling, belong to it). */
PARE_MUST_USE pare_status pare_folder_check(const char *path, bool overwrite, pare_err *err);
/* Renames the folder `from` to `to` (beside it, and down to the disk); what is there is replaced as
 * pare_folder_check says. On failure `to` is as it was, unless the message says that the folder
 * could not be synced. */
PARE_MUST_USE pare_status pare_folder_move(const char *from, const char *to, bool overwrite,
                                           pare_err *err);

/* The one small engine that serves every call of a plan, as ONNX with fixed shapes and no weights:
 *
 *     q [batch, rows, dk], k [batch, rows, dk], v [batch, rows, dv]
 *     y = Softmax(q k^T) v  [batch, rows, dv] */
typedef struct pare_engine_shape {
    size_t batch, rows, dk, dv;
    bool causal; /* row i sees rows 0 .. i; y is then called causal_y */
} pare_engine_shape;
PARE_MUST_USE pare_status pare_export_engine(const pare_engine_shape *s, const char *path,
                                             bool overwrite, uint64_t *bytes, pare_err *err);
/* The shape that suits zero-reference calls of every head of a model: its widest head with a column
 * for the reference's score, and two for the sums of the weights. */
PARE_MUST_USE pare_status pare_engine_for(pare_engine_shape *out, const pare_model *m, size_t rows,
                                          size_t batch, pare_err *err);

/* ---- models without parts of the usual architecture ------------------------------------------ */

/* Models that leave parts of the usual architecture out, for theorems that are
 * about nets without them (Shirzad 2024, Theorems 3.3, 4.2 and 4.4: no skips, norms, biases). */

/* All zero: the usual model of its kind. */
typedef struct pare_variant {
    bool no_skips;  /* around attention and feed-forward parts */
    bool no_norms;  /* at all */
    bool no_biases; /* of maps and of norms; a batch norm still subtracts its mean */
    bool has_act;   /* feed-forward parts have `act` instead of their kind's activation */
    pare_act act;
} pare_variant;

/* Whether nothing is left out or changed. */
bool pare_variant_is_usual(const pare_variant *v);

/* ---- models with random weights -------------------------------------------------------------- */

/* A model with random weights of a given shape: what a user without any
 * model starts from, and what tests and benchmarks run on. Same options, same seed, same bytes. */

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
    size_t classes;  /* bert, graph; none with `pool` */
    pare_pool pool;  /* not for graphs: the pooled rows are the outputs, in the place of the kind's
                        own head; NONE: as the kind has it */
    bool normalize;  /* outputs of length 1 */
    double sigma;    /* of the weights; 0: 1 / sqrt(columns) */
    uint64_t seed;
    const pare_exec *exec; /* may be NULL */
    pare_variant variant;  /* what is left out */
} pare_random_model_opts;

#define PARE_RANDOM_MODEL_OPTS_DEFAULT                                                             \
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

/* ---- tickets: how masks are stored ----------------------------------------------------------- */

/* Weights that a file holds as a seed and masks in the place of numbers.
 *
 * The tensor NAME.ticket (U8) stands for the weight NAME. Loading expands it, in integers: the same
 * bits on any machine. docs/format.md says how, docs/ticket.md what tickets are. */

typedef enum pare_coding {
    PARE_CODING_RAW,    /* one bit for one bit */
    PARE_CODING_BRIDGE, /* arithmetic coding by what is left to reach (docs/format.md) */
    PARE_CODINGS
} pare_coding;
extern const char *const pare_coding_names[]; /* ended by NULL */

/* ---- tickets: the random network they are cut from ------------------------------------------- */

/* The random network that tickets are cut from, as integers.
 *
 * A weight is an odd integer w, |w| < 2^24, and stands for w 2^-24: uniform on (-1, 1), never 0,
 * exact in f32. Products have the unit 2^-48, and sums of 4096 of them fit an int64: everything a
 * ticket is made of is exact, the same on any machine and for any number of threads. */

/* Elements first .. first + count - 1 of the matrix, row by row. */
void pare_source_weights(int32_t *out, uint64_t seed, uint64_t stream, uint64_t first,
                         size_t count);

/* ---- random weights that are a seed ---------------------------------------------------------- */

/* Never stored, never trained.
 *
 *   normal: the sum of eight 16-bit numbers less its mean, an integer v with 0 < |v| <= 262140,
 *           times `unit` in one f32 product: nearly normal, and the same bits on every machine
 *   signed: unit or -unit
 *
 * No weight is 0, so a matrix of frozen weights and zeros shows its mask. */

typedef enum pare_frozen_kind { PARE_FROZEN_NORMAL, PARE_FROZEN_SIGNED } pare_frozen_kind;

typedef struct pare_frozen {
    pare_frozen_kind kind;
    uint64_t seed, stream; /* of Philox, as pare_rng_at has them */
    float unit;            /* above 0 */
} pare_frozen;
#endif
