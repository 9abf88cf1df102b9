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
 *     claims.c       the kinds of claims, and each claim of a certificate against the figures
 *     search.c       inputs from the domain of a theorem, to refute it
 *     certificate.c  reads certificates and chains, and checks what they say about files
 *     length.c       certificates of length plans
 *     main.c         options, printing, exit code
 *
 * The first failure stays in the job's trouble: after it getters give 0, new arrays of balls have no
 * rows, and nothing more is stated. Memory of a job is freed as a whole. */
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

void hash_u64(SHA256_CTX *h, uint64_t v);
void hash_end(SHA256_CTX *h, char hex[65]);

/* JSON: no duplicate keys, no NUL in strings, whole text used. The caller deletes it. The getters fail
 * where a key is missing or of another type. */
cJSON *parse_json(job *j, const char *name, const void *text, size_t n);
const cJSON *find(const cJSON *o, const char *key); /* NULL: absent */
const cJSON *get(job *j, const cJSON *o, const char *key);
const cJSON *get_list(job *j, const cJSON *o, const char *key);
size_t get_count(job *j, const cJSON *o, const char *key);
const char *get_text(job *j, const cJSON *o, const char *key);
const char *get_hash(job *j, const cJSON *o, const char *key);
double get_number(job *j, const cJSON *o, const char *key); /* "inf" too */
uint64_t get_seed(job *j, const cJSON *o, const char *key);
bool is_text(const cJSON *v, const char *text);

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
    int pool; /* 0 none, 1 first, 2 mean */
    act head_act;
    size_t last, outputs; /* widths of the rows that enter the head, of the output rows */
    norm norm, head_norm;
    const tensor *table, *position_table, *map, *map_bias, *dense, *dense_bias, *out, *out_bias;
    char architecture[65]; /* hash of the canonical form */
} model;

extern const char *const attention_words[]; /* by attn_kind */
bool read_model(job *j, const char *name, bytes file, model *out);
double weight_at(const tensor *t, size_t i);

/* ---- inputs (arrays.c, inputs.c) ------------------------------------------------------------- */

typedef struct array {
    size_t ndim, shape[4], count, item;
    char type; /* 'f', 'i', 'u', 'b' as numpy */
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
    const char *path, *sha256, *inputs_sha256;
    size_t split, first, count, tokens;
    size_t *numbers; /* of a part: which inputs; NULL: `count` from `first` on */
    bool part, random, heldout; /* heldout: claims about new inputs are made */
    size_t candidates, fitted_tokens, heldout_tokens, nfitted, nheldout;
    const char **fitted_hashes, **heldout_hashes;
} data_claim;

bool load_inputs(job *j, const model *m, const data_claim *d, uint64_t seed, const char *path,
                 inputs *out);
bool random_input(job *j, const model *m, uint64_t seed, size_t number, size_t tokens, input *out);
/* Turns the unpacked inputs into inputs: docs/format.md, "Unpacked certificates". */
bool load_unpacked(job *j, const model *m, const char *folder, size_t count, inputs *out);
void hash_inputs(const inputs *in, size_t tokens, char hex[65]);
const graph *complete_graph(job *j, const model *m, const graph *g);
bool fits(job *j, const model *m, const input *in); /* whether the model takes it */

/* ---- evaluation (evaluate.c) ----------------------------------------------------------------- */

typedef struct balls { /* n rows of d numbers; no rows after a failure */
    size_t n, d;
    arb_ptr v;
} balls;

/* One model on one input. Balls belong to it until they are dropped. */
typedef struct balls_list balls_list;
typedef struct evaluation {
    job *j;
    const model *m;
    input in;
    slong prec;
    balls_list *kept;
} evaluation;

balls new_balls(evaluation *r, size_t n, size_t d); /* zeros */
arb_ptr row_of(balls b, size_t i);
void drop_since(evaluation *r, balls_list *mark,
                balls but); /* all balls since r->kept was `mark`, but those */

/* The rows before the first layer; behind a sublayer; the outputs. */
balls embed(evaluation *r);
balls attention_sublayer(evaluation *r, const attention *a, balls x, bool skip_only);
balls ffn_sublayer(evaluation *r, const ffn *f, balls x);
balls apply_head(evaluation *r, balls x);
/* The parts that claims about one layer are about; z: rows behind in_norm. */
balls normalized(evaluation *r, balls x, const norm *n);
balls attention_branch(evaluation *r, const attention *a, balls z);
balls ffn_branch(evaluation *r, const ffn *f, balls z);
void queries_and_keys(evaluation *r, const attention *a, balls z, balls *q, balls *k);
/* The keys that a query sees, ascending; `keys` has room for all tokens. Returns their number. */
size_t visible(const evaluation *r, size_t query, uint32_t *keys);
/* Logarithms of the attention weights of one query of one head; the weighted mean of its values. */
void log_weights(arb_ptr out, const head *h, arb_srcptr q, balls k, const uint32_t *keys, size_t n,
                 slong prec);
void attend(arb_ptr out, const head *h, arb_srcptr q, balls k, balls v, const uint32_t *keys,
            size_t n, slong prec);
double work_of(const model *m, const input *in); /* multiply-adds */

/* ---- both models (compare.c) ----------------------------------------------------------------- */

/* What a claim can be about. */
typedef enum figure {
    DIFFERENCE, /* largest |f - g| of an entry of the outputs */
    LARGEST,    /* largest |f| */
    ROW,        /* largest euclidean distance of an output row */
    SCORE,      /* largest change of the second output minus the first */
    HIDDEN,     /* largest euclidean distance of a row before the head */
    COLLAPSE,   /* largest difference of an entry of f between two tokens, at the end */
    SQUARES,    /* sums of squares: f, f - g, f - f without attention */
    APART,
    WITHOUT,
    RATIO, /* from here on one of each layer: |ln(a / a^)|, attention apart, feed-forward apart */
    ATTENTION,
    FFN,
    FIGURES
} figure;

typedef struct wanted {
    bool of[FIGURES]; /* the others cost nothing; the outputs are always compared */
} wanted;

typedef struct figures { /* on one input, or joined over several */
    size_t n;
    arb_ptr v; /* of figure x and layer l: at figure_place(x, l) */
    bool *has;
    size_t rows, changed, open; /* output rows; surely another largest entry; undecided */
} figures;

size_t figure_place(figure x, size_t l);
figures *figures_new(job *j, size_t nlayers);
void figures_free(figures *f);
void figures_join(figures *all, const figures *one, slong prec);
/* scores: gets of each model the second output minus the first, or NULL. */
bool compare(job *j, const model *f, const model *g, const input *in, const wanted *w, figures *out,
             arb_ptr scores[2], slong prec);

typedef struct interval {
    double low, high; /* of an AUC, rounded outwards */
} interval;
bool auc_interval(job *j, arb_srcptr score, size_t n, const int64_t *target, interval *out);

/* ---- a certificate (certificate.c, claims.c, search.c, length.c) ----------------------------- */

typedef enum section { HYPOTHESES, THEOREMS, OBSERVATIONS, EVIDENCE, PAPER, SECTIONS } section;

/* How a kind of claim is checked. */
typedef enum checking {
    UNCHECKED,
    ON_GIVEN,     /* its figure on the given inputs against the bound */
    ROWS_CHANGED, /* rows with another largest entry, on the given inputs */
    AUC,
    NEW_INPUT, /* held-out statistics */
    NEW_SHARE,
    SEARCHED,      /* its figure on tries from the domain */
    ROWS_SEARCHED, /* rows with another largest entry, on tries */
    ONE_LAYER,
    MEASURED, /* its figure on the given inputs is the value */
    IN_FILES  /* what the architectures and links show */
} checking;

typedef struct claim_kind {
    section list;
    const char *name;
    checking how;
    figure figure;
    bool lower;
    const char *why; /* not checked: why */
} claim_kind;

typedef struct claim {
    const claim_kind *kind;
    const char *what; /* the kind with its parameters, in words */
    const cJSON *parameters;
    const char *domain;        /* theorems */
    double bound, probability; /* theorems */
    double value, limit;       /* nan: null */
    int holds;                 /* hypotheses: 1, 0, -1 for null */
} claim;

typedef struct certificate {
    const char *reduction, *folder; /* folder: paths are relative to it */
    uint64_t seed;
    const cJSON *file[2]; /* input and output */
    data_claim data;
    double proven, measured;
    const char *domain; /* of the headline */
    size_t n[SECTIONS];
    claim *claims[SECTIONS];
    size_t nlinks;
    struct certificate *links;
    model model[2];
    inputs set;
} certificate;

const claim_kind *find_kind(section list, const char *name);
double parameter(const claim *c, const char *name); /* nan: not there */
const char *parameter_text(const claim *c, const char *name);
arb_srcptr figure_of(const claim *c, const figures *f); /* NULL: it was not found */
double middle(const arb_t x);

/* The whole of it: a certificate in memory, whose paths are relative to `folder`. False: it, or a
 * file it names, cannot be read (j->t); what was said until then is in j->report. */
bool check_certificate(job *j, const char *name, const char *folder, const void *text, size_t n);
void check_length(job *j, const char *folder, const cJSON *root);
bool check_hash(job *j, const char *what, const char *path, bytes file, const char *claimed);
void check_architecture(job *j, const char *side, const model *m, const char *claimed);
void check_claims(job *j, certificate *c);
/* Theorems about other inputs than the given ones; `base`: what was found on those. */
void search_domains(job *j, const certificate *c, const wanted *w, const figures *base,
                    size_t evaluated);
void show_progress(job *j, double work);
#endif
