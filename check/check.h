/* check.h - pare-check, a second opinion on certificates.
 *
 * The program is written from docs/format.md alone and shares no code with the library. It reads a
 * certificate, the two models and the inputs, evaluates both models in ball arithmetic (FLINT/Arb),
 * and says of every statement whether it is confirmed, refuted, not refuted or not checked.
 *
 *     files.c        memory, failures, files, hashes, JSON with strict getters, random numbers
 *     arrays.c       .npy and .npz
 *     model.c        a model file becomes a model, and its canonical architecture
 *     inputs.c       data files, random inputs and graphs become inputs, and their hashes
 *     evaluate.c     layers in ball arithmetic
 *     compare.c      both models on one input: every figure that a theorem can be about
 *     claims.c       the kinds of claims, and each claim of a certificate against the figures
 *     search.c       inputs from the domain of a theorem, to refute it
 *     certificate.c  reads certificates and chains, and checks what they say about files
 *     length.c       certificates of length plans
 *     main.c         options, printing, exit code
 *
 * Two rules hold everywhere. A failure (a file that cannot be read, no memory) jumps to the `attempt`
 * that is under way: no function returns with half a result, and nothing more is stated. Memory belongs
 * to the job, balls and JSON too, and is freed as a whole, or back to a mark. */
#ifndef CHECK_H
#define CHECK_H
#include <arb.h>
#include <cjson/cJSON.h>
#define OPENSSL_SUPPRESS_DEPRECATED /* the plain SHA-256, which needs no memory */
#include <openssl/sha.h>
#include <setjmp.h>
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
    const char *unpacked;   /* folder that `pare verify --unpack` wrote, or NULL */
    const char *moved[3];   /* where the input model, the output model, the data are now, or NULL */
    size_t inputs, tries;   /* given inputs to check (0: all); inputs from the domain of a theorem */
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
    struct statement *next;
} statement;

typedef struct block block;
typedef struct job {
    const options *o;
    block *blocks; /* memory; the newest is a mark to release to */
    trouble t;
    jmp_buf *escape;
    statement *first, *last;
    size_t count[VERDICTS];
    const char *link; /* "" or "link 0: " of a chain, before what is said */
    double work_done, work_all, started;
    struct job *main; /* of a thread's job: the one that shows progress */
} job;

bool attempt(job *j, void (*f)(job *j, void *with), void *with); /* false: it failed, see j->t */
_Noreturn void fail(job *j, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void *take(job *j, size_t n, size_t size); /* zeros */
arb_ptr take_balls(job *j, size_t n);      /* zeros */
void release(job *j, block *mark);         /* all that was taken since j->blocks was `mark` */
const char *words(job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
void state(job *j, verdict v, const char *what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void show_progress(job *j, double work); /* main.c */

bytes read_file(job *j, const char *path);
bool file_exists(const char *path);
const char *beside(job *j, const char *folder, const char *path);
void hash_u64(SHA256_CTX *h, uint64_t v);
void hash_end(SHA256_CTX *h, char hex[65]);
void sha256_of(char hex[65], const void *data, size_t n);
int by_text(const void *a, const void *b); /* for qsort of texts */

/* JSON: no duplicate keys, no NUL in strings, whole text used. Getters fail where a key is missing or
 * of another type. */
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

/* Philox4x32-10. */
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
uint32_t *philox_order(job *j, philox *p, size_t n, bool shuffled); /* 0 ... n - 1 */

/* ---- arrays (arrays.c) ----------------------------------------------------------------------- */

typedef struct array {
    const char *name; /* in an .npz, without .npy */
    size_t ndim, shape[4], count, item;
    char type; /* 'f', 'i', 'u', 'b' as numpy */
    const unsigned char *data;
} array;

typedef struct npz {
    size_t n;
    array *list;
} npz;

array read_npy(job *j, const char *name, bytes file);
npz read_npz(job *j, const char *name, bytes file);
const array *npz_find(const npz *z, const char *name);
double array_number(const array *a, size_t i);
int64_t array_integer(const array *a, size_t i);
bool is_integer(const array *a);

/* ---- models (model.c) ------------------------------------------------------------------------ */

typedef struct tensor {
    const char *name;
    char type; /* 'd' f64, 'f' f32 (f16 and bf16 too, widened), 'b' bytes */
    size_t ndim, rows, cols, begin, stored, size; /* begin, stored: in the file */
    const unsigned char *data;
    bool used;
} tensor;

typedef enum norm_kind { NORM_NONE, NORM_LAYER, NORM_RMS, NORM_BATCH, NORM_MEAN } norm_kind;
typedef enum skip_kind { SKIP_NONE, SKIP_IDENTITY, SKIP_DIAGONAL, SKIP_DENSE } skip_kind;
typedef enum act { ACT_NONE, ACT_RELU, ACT_GELU, ACT_GELU_TANH, ACT_SILU, ACT_TANH } act;
/* clang-format off */
typedef enum attn_kind {
    ATTN_ABSENT, ATTN_EXACT, ATTN_ZERO, ATTN_CONST, ATTN_UNIFORM, ATTN_CONSTQ, ATTN_MEANQ, ATTN_LINEAR,
    ATTN_AFFMIX, ATTN_POOL, ATTN_UMIX, ATTN_POLY
} attn_kind;
/* clang-format on */
typedef enum pattern_kind { FULL, CAUSAL, WINDOW, GRAPH } pattern_kind;
typedef enum position_kind { POS_NONE, POS_LEARNED, POS_SINUSOIDAL, POS_ROTARY } position_kind;
typedef enum pool_kind { POOL_NONE, POOL_FIRST, POOL_MEAN, POOL_MAX, POOL_LAST } pool_kind;

typedef struct norm {
    norm_kind kind;
    double eps, divisor, shift;
    const tensor *gain, *bias, *offset, *mean, *var;
} norm;

typedef struct head {
    size_t dk, dv, q, k, v, o, freq, planes;
    double scale;
} head;

typedef struct sublayer { /* attention or feed-forward part: out_norm(skip(x) + branch(in_norm(x))) */
    bool there;
    skip_kind skip;
    size_t in, out;
    norm in_norm, out_norm;
    const tensor *skip_w;
    attn_kind kind;
    size_t nheads, nq, nk, nv, no; /* rows of wq, wk, wv; columns of all heads */
    head *heads;
    const tensor *wq, *bq, *wk, *bk, *wv, *bv, *wo, *bo, *freqs, *matrix, *mix;
    bool gated; /* the feed-forward part */
    act act;
    size_t nlayers;
    const tensor **w, **b;
} sublayer;

typedef struct layer {
    sublayer attn, ffn;
} layer;

typedef struct model {
    size_t ntensors;
    tensor *tensors;
    size_t context, width, vocab, stream; /* width of inputs; of the stream */
    bool ids, after_map, interleaved, self_loops, normalize;
    position_kind positions;
    double base;
    pattern_kind pattern;
    size_t window, sinks, degree;
    uint64_t expander_seed;
    size_t nlayers;
    layer *layers;
    pool_kind pool;
    act head_act;
    size_t last, outputs; /* widths of the rows that enter the head, of the output rows */
    norm norm, head_norm;
    const tensor *table, *position_table, *map, *map_bias, *dense, *dense_bias, *out, *out_bias;
    char architecture[65]; /* hash of the canonical form */
} model;

extern const char *const attention_words[]; /* by attn_kind */
model read_model(job *j, const char *name, bytes file);
double weight_at(const tensor *t, size_t i);

/* ---- inputs (inputs.c) ----------------------------------------------------------------------- */

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
    bool part, random, heldout; /* heldout: claims about new inputs are made */
    size_t candidates, fitted_tokens, heldout_tokens, nfitted, nheldout;
    const char **fitted_hashes, **heldout_hashes;
} data_claim;

inputs load_inputs(job *j, const model *m, const data_claim *d, uint64_t seed, const char *path);
/* docs/format.md, "Unpacked certificates". */
inputs load_unpacked(job *j, const model *m, const char *folder, size_t count);
input random_input(job *j, const model *m, uint64_t seed, size_t number, size_t tokens);
void hash_inputs(const inputs *in, size_t tokens, char hex[65]);
const graph *complete_graph(job *j, const model *m, const graph *g); /* with what the pattern adds */
void must_fit(job *j, const model *m, const input *in);             /* the model takes it */

/* ---- evaluation (evaluate.c) ----------------------------------------------------------------- */

typedef struct balls { /* n rows of d numbers */
    size_t n, d;
    arb_ptr v;
} balls;

typedef struct evaluation { /* one model on one input */
    job *j;
    const model *m;
    const input *in;
    const graph *edges; /* complete */
    slong prec;
} evaluation;

balls new_balls(job *j, size_t n, size_t d); /* zeros */
arb_ptr row_of(balls b, size_t i);
evaluation begin_evaluation(job *j, const model *m, const input *in, slong prec);
/* The rows before the first layer; behind a sublayer (skip_only: without its branch); the outputs. */
balls embed(const evaluation *e);
balls apply_sublayer(const evaluation *e, const sublayer *s, balls x, bool skip_only);
balls apply_head(const evaluation *e, balls x);
/* The parts that claims about one layer are about; z: rows behind in_norm. */
balls normalized(const evaluation *e, balls x, const norm *n);
balls branch(const evaluation *e, const sublayer *s, balls z);
void queries_and_keys(const evaluation *e, const sublayer *a, balls z, balls *q, balls *k);
/* The keys that a query sees, ascending; `keys` has room for all tokens. Returns their number. */
size_t visible(const evaluation *e, size_t query, uint32_t *keys);
/* Softmax weights of one query of one head, or their logarithms. */
void attention_weights(arb_ptr out, bool logarithms, const head *h, arb_srcptr q, balls k,
                       const uint32_t *keys, size_t n, slong prec);
void log_softmax(arb_ptr s, size_t n, slong prec); /* in place */
double work_of(const model *m, const input *in);   /* multiply-adds */

/* ---- both models (compare.c) ----------------------------------------------------------------- */

/* What a claim can be about. */
typedef enum figure {
    DIFFERENCE, /* largest |f - g| of an entry of the outputs */
    LARGEST,    /* largest |f| */
    ROW,        /* largest euclidean distance of an output row */
    SCORE,      /* largest change of the second output minus the first */
    HIDDEN,     /* largest euclidean distance of a row before the head */
    COLLAPSE,   /* largest difference of an entry of f between two tokens, at the end */
    COSINE,     /* largest 1 - cosine of an output row of f and g */
    KL,         /* largest Kullback-Leibler divergence of an output row */
    KL_SUM,     /* from here to WITHOUT they add up: the same, over the rows */
    SQUARES,    /* sums of squares: f, f - g, f - f without attention */
    APART,
    WITHOUT,
    RATIO, /* from here on one of each layer: |ln(a / a^)|, attention apart, feed-forward apart */
    ATTENTION,
    FFN,
    FIGURES
} figure;

typedef struct wanted {
    bool of[FIGURES]; /* the others may be left out */
} wanted;

typedef struct figures { /* on one input, or joined over several */
    size_t n;
    arb_ptr v; /* of figure x and layer l: at figure_place(x, l) */
    bool *has;
    size_t rows, changed, open; /* output rows; surely another largest entry; undecided */
    arb_ptr cosines;            /* of each row, if wanted */
    balls y[2];                 /* the outputs, where they pool or are two: for ranks and scores */
} figures;

size_t figure_place(figure x, size_t l);
figures *new_figures(job *j, const model *f, const input *in, const wanted *w); /* in: or NULL */
void join_figures(figures *all, const figures *one, slong prec);
void compare(job *j, const model *f, const model *g, const input *in, const wanted *w, figures *out,
             slong prec);
/* Both lengths are positive: 1 - a.b / (|a| |b|); of a row of zeros 2. t: room for 3. */
void cosine_distance(arb_t out, arb_srcptr a, arb_srcptr b, size_t d, arb_ptr t, slong prec);

/* ---- a certificate (certificate.c, claims.c, search.c, length.c) ----------------------------- */

typedef enum section { HYPOTHESES, THEOREMS, OBSERVATIONS, EVIDENCE, PAPER, SECTIONS } section;

/* What can be said of a claim, and why. */
typedef struct outcome {
    verdict verdict;
    bool open; /* the balls do not decide: more bits may */
    const char *why;
} outcome;

typedef struct claim claim;
typedef struct found found;
typedef struct claim_kind {
    section list;
    const char *name;
    outcome (*check)(job *j, const found *f, const claim *c); /* NULL: a search of the domain */
    figure figure;
    bool lower;
    const char *why; /* not checked: why */
} claim_kind;

struct claim {
    const claim_kind *kind;
    const char *what; /* the kind with its parameters, in words */
    const cJSON *parameters;
    const char *domain;        /* theorems */
    double bound, probability; /* theorems */
    double value, limit;       /* nan: null */
    int holds;                 /* hypotheses: 1, 0, -1 for null */
};

typedef struct certificate {
    const char *reduction;
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
/* x <= bound, or x >= bound: yes 1, no -1, not decided 0. */
int is_within(const arb_t x, double bound, bool lower);

/* The whole of it: a certificate in memory, whose paths are relative to `folder`. False: it, or a
 * file it names, cannot be read (j->t); what was said until then is in j->first. */
bool check_certificate(job *j, const char *name, const char *folder, const void *text, size_t n);
void check_length(job *j, const char *folder, const cJSON *root);
void check_equal(job *j, const char *what, const char *a, const char *b, const char *name);
void check_claims(job *j, certificate *c);
/* Theorems about other inputs than the given ones; `base`: what was found on those. */
void search_domains(job *j, const certificate *c, const wanted *w, const figures *base,
                    size_t evaluated);
#endif
