/* check.h - pare-check, a second opinion on certificates.
 *
 * The program is written from docs/format.md alone and shares no code with the library. It reads a
 * certificate, the two models and the inputs, evaluates both models in ball arithmetic (FLINT/Arb),
 * and says of every statement whether it is confirmed, refuted, not refuted or not checked.
 *
 *     files.c        memory, files, hashes, JSON with strict getters
 *     model.c        a model file becomes a model, and its canonical architecture
 *     arrays.c       .npy and .npz
 *     inputs.c       data files, random inputs and graphs become inputs, and their hashes
 *     evaluate.c     layers in ball arithmetic
 *     compare.c      both models on one input: every figure that a theorem can be about
 *     kinds.c        the kinds of claims and their words
 *     search.c       inputs from the domain of a theorem, to refute it
 *     statistics.c   order statistics and the binomial tail
 *     claims.c       each claim of a certificate against the figures
 *     certificate.c  reads certificates and chains, and checks what they say about files
 *     length.c       certificates of length plans
 *     main.c         options, printing, exit code
 *
 * A function that can fail returns false and leaves the reason in the job's trouble; after the first
 * failure the getters do nothing. Memory of a job is freed as a whole. */
#ifndef CHECK_H
#define CHECK_H
#include <arb.h>
#include <cjson/cJSON.h>
#define OPENSSL_SUPPRESS_DEPRECATED /* the plain SHA-256, which needs no memory */
#include <openssl/sha.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- jobs (files.c) -------------------------------------------------------------------------- */

enum { UNREADABLE = 2, NOT_TRUE = 4 }; /* exit codes, as of `pare verify`; 1 is wrong usage */

typedef struct bytes {
    const unsigned char *v;
    size_t n;
} bytes;

typedef struct trouble {
    int code; /* 0: none */
    char text[600];
} trouble;

typedef struct options {
    /* Reads a whole file. NULL: from disk. A fuzz target gives files in memory. */
    bool (*read)(void *self, const char *path, bytes *out, trouble *t);
    void *self;
    const char *unpacked;              /* folder that `pare verify --unpack` wrote, or NULL */
    const char *input, *output, *data; /* where files that were moved are, or NULL */
    size_t inputs;                     /* check that many of the given inputs; 0: all */
    size_t tries;                      /* inputs from the domain of a theorem */
    uint64_t seed;
    double most_work;  /* multiply-adds of one evaluation; more is not checked */
    size_t most_balls; /* of one array */
    bool progress;
} options;

typedef enum verdict { CONFIRMED, REFUTED, NOT_REFUTED, NOT_CHECKED, VERDICTS } verdict;
extern const char *const verdict_words[VERDICTS];

/* One line of the result. `what` is a kind with its parameters, or a name for what was checked. */
typedef struct statement {
    verdict verdict;
    const char *what, *why;
} statement;

typedef struct report {
    statement *list;
    size_t n, capacity;
    size_t count[VERDICTS];
} report;

typedef struct block block;
typedef struct job {
    const options *o;
    block *blocks; /* memory */
    trouble t;
    report report;
    const char *link; /* "" or "link 0: " of a chain, before what is said */
    double work_done, work_all, started;
    struct job *main; /* of a thread's job: the one that shows progress */
} job;

void *take(job *j, size_t n, size_t size); /* zeros; NULL: no memory, which is the job's trouble */
void give_back(job *j);                    /* all of it */
const char *words(job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool fail(job *j, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void state(job *j, verdict v, const char *what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

bool read_file(job *j, const char *path, bytes *out);
bool file_exists(const char *path);
const char *beside(job *j, const char *file, const char *path); /* relative to the file's folder */
void sha256_of(char hex[65], const void *data, size_t n);

typedef struct hasher { /* of many pieces */
    SHA256_CTX ctx;
} hasher;
hasher hasher_new(void);
void hasher_add(hasher *h, const void *data, size_t n);
void hasher_add_u64(hasher *h, uint64_t v);
void hasher_end(hasher *h, char hex[65]);

/* JSON: no duplicate keys, no NUL in strings, whole text used. The caller deletes it. */
cJSON *parse_json(job *j, const char *name, const void *text, size_t n);
bool only_keys(job *j, const cJSON *o, const char *where, const char *const *keys);
const cJSON *get(job *j, const cJSON *o, const char *where, const char *key); /* required */
const cJSON *find(const cJSON *o, const char *key);                           /* NULL: absent */
size_t get_count(job *j, const cJSON *o, const char *where, const char *key);
const char *get_text(job *j, const cJSON *o, const char *where, const char *key);
const char *get_hash(job *j, const cJSON *o, const char *where, const char *key);
double get_number(job *j, const cJSON *o, const char *where, const char *key); /* "inf" too */
uint64_t get_seed(job *j, const cJSON *o, const char *where, const char *key);

/* ---- random numbers (files.c): Philox4x32-10 ------------------------------------------------- */

typedef struct philox {
    uint64_t seed, stream, block;
    uint32_t word[4];
    int used;
} philox;

philox philox_at(uint64_t seed, uint64_t stream);
uint64_t philox_u64(philox *p);
uint64_t philox_below(philox *p, uint64_t n);
double philox_uniform(philox *p); /* [0, 1) */
double philox_normal(philox *p);
void philox_shuffle(philox *p, uint32_t *v, size_t n);

/* ---- models (model.c) ------------------------------------------------------------------------ */

typedef struct tensor {
    const char *name;
    char type; /* 'd' f64, 'f' f32, 'b' bytes */
    size_t ndim, rows, cols;
    const unsigned char *data;
    size_t size;
    bool used;
} tensor;

typedef enum norm_kind { NORM_NONE, NORM_LAYER, NORM_RMS, NORM_BATCH, NORM_MEAN } norm_kind;
typedef enum skip_kind { SKIP_NONE, SKIP_IDENTITY, SKIP_DIAGONAL, SKIP_DENSE } skip_kind;
typedef enum act { ACT_NONE, ACT_RELU, ACT_GELU, ACT_GELU_TANH, ACT_SILU, ACT_TANH } act;
typedef enum attn_kind {
    ATTN_ABSENT,
    ATTN_EXACT,
    ATTN_ZERO,
    ATTN_CONST,
    ATTN_UNIFORM,
    ATTN_CONSTQ,
    ATTN_MEANQ,
    ATTN_LINEAR,
    ATTN_AFFMIX,
    ATTN_POOL,
    ATTN_UMIX,
    ATTN_POLY
} attn_kind;
typedef enum pattern_kind { FULL, CAUSAL, WINDOW, GRAPH } pattern_kind;
typedef enum position_kind { POS_NONE, POS_LEARNED, POS_SINUSOIDAL, POS_ROTARY } position_kind;

typedef struct norm {
    norm_kind kind;
    double eps, divisor, shift;
    const tensor *gain, *bias, *offset, *mean, *var;
} norm;

typedef struct head {
    size_t dk, dv, q, k, v, o, freq, planes;
    double scale;
} head;

typedef struct attention {
    attn_kind kind;
    skip_kind skip;
    size_t in, out, nheads, nq, nk, nv, no; /* rows of wq, wk, wv; columns of all heads */
    head *heads;
    double tolerance;
    norm in_norm, out_norm;
    const tensor *wq, *bq, *wk, *bk, *wv, *bv, *wo, *bo, *freqs, *matrix, *mix, *skip_w;
} attention;

typedef struct ffn {
    bool there, gated;
    act act;
    skip_kind skip;
    size_t in, out, nlayers;
    norm in_norm, out_norm;
    const tensor **w, **b, *skip_w;
} ffn;

typedef struct layer {
    attention attn;
    ffn ffn;
} layer;

typedef struct model {
    size_t ntensors;
    tensor *tensors;
    size_t context, width, vocab, stream; /* width of inputs; of the stream */
    bool ids, after_map, interleaved, self_loops, tied;
    position_kind positions;
    double base;
    pattern_kind pattern;
    size_t window, sinks, degree;
    uint64_t expander_seed;
    size_t nlayers;
    layer *layers;
    int tokenizer, pool; /* pool: 0 none, 1 first, 2 mean */
    act head_act;
    size_t last, outputs; /* widths of the rows that enter the head, of the output rows */
    norm norm, head_norm;
    const tensor *table, *position_table, *map, *map_bias, *dense, *dense_bias, *out, *out_bias;
    char architecture[65]; /* hash of the canonical form */
} model;

bool read_model(job *j, const char *name, bytes file, model *out);
double weight_at(const tensor *t, size_t i);

/* ---- inputs (arrays.c, inputs.c) ------------------------------------------------------------- */

typedef struct array {
    size_t ndim, shape[4], count, item;
    char type; /* 'f', 'i', 'u', 'b' as numpy */
    bool fortran;
    const unsigned char *data;
} array;

typedef struct member {
    const char *name; /* without .npy */
    array a;
} member;

typedef struct npz {
    size_t n;
    member *list;
} npz;

bool read_npy(job *j, const char *name, bytes file, array *out);
bool read_npz(job *j, const char *name, bytes file, npz *out);
const array *npz_find(const npz *z, const char *name);
double array_number(const array *a, size_t i);
int64_t array_integer(const array *a, size_t i);
bool is_integer(const array *a);

typedef struct graph {
    size_t n;
    size_t *from;   /* n + 1: neighbors of node i are list[from[i]] to list[from[i + 1] - 1] */
    uint32_t *list; /* ascending */
} graph;

typedef struct input {
    size_t tokens;
    const int64_t *ids;    /* or NULL */
    const double *x;       /* tokens x width of the model, or NULL */
    const double *shift;   /* search: added to the rows of the embedding; or NULL */
    double radius;         /* search: of every number of x, which is then a ball */
    const graph *edges;    /* those of the data; NULL: no graph */
    const graph *complete; /* with what the pattern adds */
    const int64_t *target; /* for each output row; -1: does not count; or NULL */
    bool continues;        /* a window that begins amid a text */
} input;

typedef struct inputs {
    size_t n, width; /* width of vectors */
    input *list;
} inputs;

typedef struct data_claim { /* `data` of a certificate */
    const char *kind, *path, *sha256, *inputs_sha256;
    size_t split, first, count, tokens;
    bool part, random, heldout; /* heldout: claims about new inputs are made */
    size_t candidates, fitted_tokens, heldout_tokens, nfitted, nheldout;
    const char **fitted_hashes, **heldout_hashes;
} data_claim;

bool load_inputs(job *j, const model *m, const data_claim *d, uint64_t seed, const char *path,
                 inputs *out);
bool random_input(job *j, const model *m, uint64_t seed, size_t number, size_t tokens, input *out);
/* Turns the unpacked inputs into inputs: docs/format.md, "Unpacked certificates". */
bool load_unpacked(job *j, const model *m, const char *folder, const data_claim *d, inputs *out);
void hash_inputs(const inputs *in, size_t tokens, char hex[65]);
bool complete_graph(job *j, const model *m, const graph *g, graph *out);
bool fits(job *j, const model *m, const input *in); /* whether the model takes it */

/* ---- evaluation (evaluate.c) ----------------------------------------------------------------- */

typedef struct balls { /* n rows of d numbers */
    size_t n, d;
    arb_ptr v;
} balls;

bool balls_new(job *j, balls *b, size_t n, size_t d);
void balls_free(balls *b);
arb_ptr row_of(const balls *b, size_t i);

/* The stream before the first layer; a sublayer replaces it; the head makes outputs of it. */
bool embed(job *j, const model *m, const input *in, balls *x, slong prec);
bool attention_sublayer(job *j, const model *m, const input *in, size_t l, balls *x, bool skip_only,
                        slong prec);
bool ffn_sublayer(job *j, const model *m, size_t l, balls *x, slong prec);
bool apply_head(job *j, const model *m, balls *x, balls *y, slong prec);
/* The parts that claims about one layer are about. z: rows behind in_norm. */
bool normalized(job *j, const balls *x, const norm *n, balls *z, slong prec);
bool attention_branch(job *j, const model *m, const input *in, const attention *a, const balls *z,
                      balls *y, slong prec);
bool ffn_branch(job *j, const ffn *f, const balls *z, balls *y, slong prec);
bool queries_and_keys(job *j, const model *m, const attention *a, const balls *z, balls *q,
                      balls *k, slong prec);
/* Logarithms of the attention weights of one query; returns how many keys it has. */
size_t visible(const model *m, const input *in, size_t query, uint32_t *keys);
void log_weights(arb_ptr out, const head *h, arb_srcptr q, const balls *k, const uint32_t *keys,
                 size_t n, slong prec);
/* One query of one head: the weighted mean of the values of its keys. */
void attend_row(arb_ptr out, const head *h, arb_srcptr q, const balls *k, const balls *v,
                const uint32_t *keys, size_t n, slong prec);
double work_of(const model *m, const input *in); /* multiply-adds */

/* ---- both models (compare.c) ----------------------------------------------------------------- */

/* Which figures are wanted; the others cost nothing. */
typedef struct wanted {
    bool ratios, branches, collapse, hidden, without, scores;
} wanted;

/* What was found on one input, or the largest of several. Balls hold the exact figures. */
typedef struct figures {
    size_t nlayers;
    arb_t difference; /* largest |f - g| */
    arb_t score;      /* of the second output minus the first */
    arb_t largest;    /* |f| */
    arb_t hidden;     /* euclidean distance of rows before the head */
    arb_t collapse;   /* of an entry of f between two tokens, at the end */
    arb_t apart, without, row,
        squares;                   /* sums of squares: f - g, f - f without attention, a row, f */
    arb_ptr ratio, attention, ffn; /* of each layer */
    bool *has_ratio, *has_attention, *has_ffn;
    bool has_score, has_hidden, has_without;
    size_t rows, changed, open; /* output rows; surely another largest entry; undecided */
} figures;

figures *figures_new(job *j, size_t nlayers);
void figures_free(figures *f);
void figures_join(figures *all, const figures *one, slong prec);
/* scores: of each model the second output minus the first, or NULL. */
bool compare(job *j, const model *f, const model *g, const input *in, wanted w, figures *out,
             balls scores[2], slong prec);

typedef struct interval {
    double low, high; /* of an AUC, rounded outwards */
} interval;
bool auc_interval(job *j, const balls *score, const int64_t *target, interval *out);

/* ---- a certificate (certificate.c, claims.c, search.c, statistics.c, length.c) --------------- */

typedef struct claim {
    const char *kind, *what; /* what: the kind with its parameters, in words */
    const cJSON *parameters;
    const char *domain; /* theorems */
    bool lower;
    double bound, probability; /* theorems */
    double value, limit;       /* nan: null */
    int holds;                 /* hypotheses: 1, 0, -1 for null */
} claim;

typedef enum section { HYPOTHESES, THEOREMS, OBSERVATIONS, EVIDENCE, PAPER, SECTIONS } section;

enum { LOWER = 1, VALUE = 2, LIMIT = 4 };
typedef struct kind_row { /* kinds.c */
    section list;
    const char *kind; /* its name and those of its parameters */
    int has;
    const char *norm;
    double limit; /* theorems: the largest bound; observations: the tolerance */
    const char *sentence;
} kind_row;
const kind_row *find_kind(section list, const char *kind); /* NULL: unknown */
const char *sentence_of(job *j, const kind_row *row, const cJSON *parameters);

typedef struct certificate {
    const char *reduction, *folder; /* folder: paths are relative to it */
    uint64_t seed;
    const cJSON *file[2]; /* input and output */
    data_claim data;
    double proven, measured;
    const char *domain;
    size_t n[SECTIONS];
    claim *claims[SECTIONS];
    size_t nlinks;
    struct certificate *links;
    model model[2];
    inputs set;
} certificate;

double parameter(const claim *c, const char *name); /* nan: not there */
const char *parameter_text(const claim *c, const char *name);

/* The whole of it: a certificate in memory, whose paths are relative to `folder`. False: it, or a
 * file it names, cannot be read (j->t); what was said until then is in j->report. */
bool check_certificate(job *j, const char *name, const char *folder, const void *text, size_t n);
bool check_length(job *j, const char *folder, const cJSON *root);
void check_claims(job *j, certificate *c);
bool is_about_given(const certificate *c, const claim *t); /* by kind and domain */
/* Theorems about other inputs than the given ones; `base`: what was found on those. */
void search_domains(job *j, const certificate *c, const figures *base, size_t evaluated);
/* Of N draws the (k + 1)-th largest is the bound; the share p above it (docs/format.md). */
bool share_is_enough(size_t draws, size_t left_out, double share, double probability);
bool probability_is_right(size_t draws, size_t left_out, double probability);
void show_progress(job *j, double work);
#endif
