/* check.h - pare-check, a second opinion on certificates.
 *
 * The program is written from docs/format.md alone and shares no code with the library. It reads a
 * certificate, the two models and the inputs, evaluates both models in ball arithmetic (FLINT/Arb),
 * and says of every statement whether it is confirmed, refuted, not refuted or not checked.
 *
 *     files.c        memory, failures, files, hashes, JSON with strict getters, random numbers
 *     model.c        a model file becomes tensors and a checked architecture
 *     arrays.c       .npy and .npz
 *     inputs.c       data files, random inputs and graphs become inputs, and their hashes
 *     evaluate.c     a model on an input, in balls: docs/format.md, "A model computes", line by line
 *     compare.c      both models on one input: every figure that a claim can be about
 *     claims.c       the kinds of claims, and each claim of a certificate against the figures
 *     shared_rows.c  tokens that share a row of the embedding, and what that costs
 *     search.c       inputs from the domain of a theorem, to refute it
 *     certificate.c  what a certificate and its chain say about files
 *     length.c       certificates of length plans
 *     main.c         options, printing, exit code
 *
 * Two rules hold everywhere. A failure (a file that cannot be read, no memory) jumps out to the
 * `attempt` that is under way: no function returns with half a result. Memory belongs to the job, balls
 * and JSON too, and is freed as a whole, or back to a mark. */
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
    bool (*read)(void *self, const char *path, bytes *out);
    void *self;
    const char *unpacked;   /* folder that `pare verify --unpack` wrote, or NULL */
    const char *moved[3];   /* where the input model, the output model, the data are now */
    uint64_t inputs, tries; /* given inputs to check (0: all); inputs from a domain */
    uint64_t seed;          /* of the draws of both */
    double most_work;       /* multiply-adds of one evaluation; more is not checked */
    size_t most_balls;      /* of one array */
    bool progress;
} options;

typedef enum verdict { CONFIRMED, REFUTED, NOT_REFUTED, NOT_CHECKED, VERDICTS } verdict;

/* One line of the result. `what` is a kind with its parameters, or a name for what was checked. */
typedef struct statement {
    verdict verdict;
    const char *what, *why;
    struct statement *next;
} statement;

typedef struct chunk chunk;
typedef struct job {
    const options *o;
    chunk *memory; /* the newest is a mark to release to */
    trouble t;
    jmp_buf *escape;
    statement *first, **end; /* what was said */
    size_t count[VERDICTS];
    const char *link; /* "" or "link 0: " of a chain, before what is said */
    double work_done, work_all, started;
    struct job *main; /* of a thread's job: the one that shows progress */
} job;

bool attempt(job *j, void (*f)(job *j, void *with), void *with); /* false: it failed, see j->t */
_Noreturn void fail(job *j, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What the file of somebody else must not break: else it is UNREADABLE. */
void must(job *j, bool holds, const char *format, ...) __attribute__((format(printf, 3, 4)));
void *take(job *j, size_t n, size_t size); /* zeros */
arb_ptr take_balls(job *j, size_t n);      /* zeros */
/* Frees what was taken since j->memory was `mark`, but for `but` (NULL: nothing). */
void release(job *j, chunk *mark, const void *but);
void adopt(job *j, job *from); /* its memory */
const char *words(job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
void state(job *j, verdict v, const char *what, const char *why);
void take_back(job *j, const job *before); /* what was stated since then */
void show_progress(job *j, double work);   /* main.c */

bytes read_file(job *j, const char *path);
bool file_exists(const char *path);
const char *beside(job *j, const char *folder, const char *path);
void hash_u64(SHA256_CTX *h, uint64_t v);
void hash_text(SHA256_CTX *h, const char *text);
void hash_end(SHA256_CTX *h, char hex[65]);
void sha256_of(char hex[65], const void *data, size_t n);
/* States whether a hash is the claimed one, of something called `name`; of the file at `path`, which
 * is returned, that it is o.sha256. */
void check_equal(job *j, const char *what, const char *hash, const char *claimed, const char *name);
bytes read_checked(job *j, const char *what, const char *path, const cJSON *o);
bool same(const char *a, const char *b);
int by_text(const void *a, const void *b); /* for qsort of texts */

/* JSON: no duplicate keys, no NUL in strings, whole text used. Getters fail where a key is missing or
 * of another type. */
cJSON *parse_json(job *j, const char *name, const void *text, size_t n);
const cJSON *find(const cJSON *o, const char *key); /* NULL: absent */
const cJSON *get(job *j, const cJSON *o, const char *key);
const cJSON *get_list(job *j, const cJSON *o, const char *key);
size_t get_count(job *j, const cJSON *o, const char *key);
const char *get_text(job *j, const cJSON *o, const char *key);
double get_number(job *j, const cJSON *o, const char *key); /* "inf" too */
uint64_t get_seed(job *j, const cJSON *o, const char *key);
bool is_text(const cJSON *v, const char *text);
size_t count_or_0(job *j, const cJSON *o, const char *key);
bool flag(const cJSON *o, const char *key);

/* Philox4x32-10. */
typedef struct philox {
    uint64_t seed, stream, next; /* word */
} philox;

uint64_t philox_u64(philox *p);
uint64_t philox_below(philox *p, uint64_t n);
double philox_uniform(philox *p);                                   /* [0, 1) */
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
    size_t ndim, rows, cols, size;
    const unsigned char *data;
    size_t begin, stored; /* in the file */
    bool used;
} tensor;

typedef struct model {
    size_t ntensors;
    tensor *tensors;
    const cJSON *architecture;
    char hash[65];                /* of its canonical form */
    size_t context, width, vocab; /* width of inputs; vocab 0: they are vectors */
    bool graph, pools;
    size_t *row, shared; /* of each token, where `shared` of them share the last row; or NULL */
} model;

model read_model(job *j, const char *name, bytes file);
double weight_at(const tensor *t, size_t i);
const tensor *find_tensor(job *j, const model *m, const char *at, const char *name);

/* ---- shared rows (shared_rows.c) ------------------------------------------------------------- */

void read_shared_rows(job *j, model *m);
size_t row_of_token(const model *m, size_t id);
bool token_shares(const model *m, size_t id);

/* ---- inputs (inputs.c) ----------------------------------------------------------------------- */

typedef struct graph {
    size_t n;
    size_t *from;   /* n + 1: neighbors of node i are list[from[i]] to list[from[i + 1] - 1] */
    uint32_t *list; /* ascending */
} graph;

typedef struct input {
    size_t tokens;
    int64_t *ids;        /* or NULL */
    double *x;           /* tokens x width of the model, or NULL */
    const double *shift; /* search: added to the rows of the embedding; or NULL */
    const graph *edges;  /* those of the data; NULL: no graph */
    int64_t *target;     /* for each output row; -1: does not count; or NULL */
    bool continues;      /* a window that begins amid a text */
} input;

typedef struct inputs {
    size_t n, width; /* width of vectors */
    input *list;
} inputs;

/* What `data` of a certificate names; path: of the file. */
inputs load_inputs(job *j, const model *m, const cJSON *data, uint64_t seed, const char *path);
inputs load_unpacked(job *j, const model *m, const char *folder, size_t count);
input random_input(job *j, const model *m, uint64_t seed, size_t number, size_t tokens);
void hash_inputs(const inputs *in, size_t tokens, char hex[65]);
const graph *complete_graph(job *j, const model *m, const graph *g); /* with the pattern's edges */
void must_fit(job *j, const model *m, const input *in);              /* the model takes it */

/* ---- evaluation (evaluate.c) ----------------------------------------------------------------- */

typedef struct balls { /* n rows of d numbers */
    size_t n, d;
    arb_ptr v;
} balls;

typedef struct evaluation { /* one model on one input */
    job *j;
    const model *m;
    const input *in;
    const char *pattern;
    size_t window, sinks;
    const graph *edges; /* complete */
    slong prec;
} evaluation;

typedef struct
    head { /* of attention: its part of queries, keys and values, turned where they are rotary */
    balls q, k, v;
    double scale;
} head;

typedef struct part { /* attention or feed-forward part of a block */
    bool ffn;
    const cJSON *o; /* NULL: the block has none */
    const char *at; /* what its tensors begin with */
} part;

balls new_balls(job *j, size_t n, size_t d); /* zeros */
arb_ptr row_of(balls b, size_t i);
evaluation begin_evaluation(job *j, const model *m, const input *in, slong prec);
size_t count_blocks(const model *m);
part part_of(job *j, const model *m, size_t block, bool ffn);
/* The rows before the first block; behind a part of it; the outputs. */
balls embed(const evaluation *e);
balls apply_part(const evaluation *e, part p, balls x);
balls apply_head(const evaluation *e, balls x);
/* What claims about one block are about. z: rows behind in_norm. */
balls part_input(const evaluation *e, part p, balls x);
balls branch(const evaluation *e, part p, balls z);
size_t attention_heads(const evaluation *e, part p, balls z, head **out); /* 0: no softmax */
/* The keys that a query sees, ascending; `keys` has room for all tokens. Returns their number. */
size_t visible(const evaluation *e, size_t query, uint32_t *keys);
void attention_scores(arb_ptr out, const head *h, size_t query, const uint32_t *keys, size_t n,
                      slong prec);
void softmax(arb_ptr s, size_t n, bool logarithms, slong prec); /* in place */
void attend(arb_ptr out, const head *h, size_t query, const uint32_t *keys, size_t n, slong prec);
double work_of(const model *m, const input *in); /* multiply-adds */

/* ---- both models (compare.c) ----------------------------------------------------------------- */

/* A number that is not known exactly, rounded outwards. */
typedef struct interval {
    double low, high;
} interval;

/* What a claim can be about. The figures of several inputs join by their maximum, or their sum. */
typedef enum figure {
    DIFFERENCE, /* largest |f - g| of an entry of the outputs */
    ROW,        /* largest euclidean distance of an output row */
    SCORE,      /* largest change of the second output minus the first */
    OTHERS,     /* largest |f - g| of an entry that is not of a token that shares its row in g */
    HIDDEN,     /* largest euclidean distance of a row before the head */
    COLLAPSE,   /* largest difference of an entry of f between two tokens, at the end */
    COSINE,     /* largest 1 - cosine of an output row of f and g */
    KL,         /* largest Kullback-Leibler divergence of an output row */
    KL_SUM,     /* sums, from here to CHANGED: the same, over the rows */
    SQUARES,    /* |f|^2, |f - g|^2 */
    APART,
    ROWS, /* output rows; those with another largest entry */
    CHANGED,
    RATIO, /* from here on one of each block: |ln(a / a^)|, attention apart, feed-forward apart */
    ATTENTION,
    FFN,
    OUTPUTS /* no figure: the outputs themselves are wanted */
} figure;

#define BIT(figure) (1u << (figure))

size_t figure_place(figure x, size_t block);
size_t count_figures(const model *f);
/* Figures begin as -1, which says that there is none: all are at least 0. */
interval *new_figures(job *j, size_t n);
void join_figure(interval *all, size_t place, interval one);
interval interval_of(const arb_t x);
/* Figures that are not wanted may be left out; y gets the outputs. */
void compare(job *j, const model *f, const model *g, const input *in, unsigned wanted,
             interval *out, balls y[2], slong prec);
void cosine_distance(arb_t out, arb_srcptr a, arb_srcptr b, size_t d, arb_ptr room, slong prec);
/* ---- a certificate (certificate.c, claims.c, search.c, length.c) ----------------------------- */

typedef struct certificate {
    const cJSON *json, *data;
    const char *domain; /* of the headline */
    model model[2];
    inputs set;
} certificate;

/* The whole of it: a certificate in memory, whose paths are relative to `folder`. False: it, or a
 * file it names, cannot be read (j->t); what was said until then is in j->first. */
bool check_certificate(job *j, const char *name, const char *folder, const void *text, size_t n);
void check_length(job *j, const char *folder, const cJSON *root);
void check_claims(job *j, const certificate *c);

/* The most that f and g are apart on an input without a token that shares, in DIFFERENCE, OTHERS or KL;
 * inf: this program cannot prove it. */
double shared_rows_cost(job *j, const certificate *c, figure x);

/* Looks for inputs of a domain, in its words; `all` gets what was found, beginning with the figures
 * `given` of the given inputs if they belong to it. NULL, or why it can not be searched. */
const char *search_domain(job *j, const certificate *c, const char *domain, unsigned wanted,
                          const interval *given, size_t evaluated, interval *all, size_t *tries);
#endif
