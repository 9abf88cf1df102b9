/* check.h - pare-check, a second opinion on certificates.
 *
 * The program is written from docs/format.md alone and shares no code with the library. It reads a
 * certificate, the two models and the inputs, evaluates both models in ball arithmetic (FLINT/Arb),
 * and says of every statement whether it is confirmed, refuted, not refuted or not checked.
 *
 *     files.c        memory, failures, files, hashes, JSON with strict getters, random numbers
 *     arrays.c       numbers of every type become doubles; .npy and .npz
 *     model.c        a model file becomes tensors and a checked architecture
 *     inputs.c       data files, random inputs and graphs become inputs, and their hashes
 *     evaluate.c     a model on an input, in balls: docs/format.md, "A model computes", line by line
 *     compare.c      both models on one input: every figure that a claim can be about
 *     claims.c       the kinds of claims, and each claim of a certificate against the figures
 *     search.c       inputs from the domain of a theorem, to refute it
 *     certificate.c  what a certificate and its chain say about files; length plans
 *     main.c         options, printing, exit code
 *
 * Three rules hold everywhere. There is one job, `now`; a failure (a file that cannot be read, no memory)
 * jumps out to the `attempt` that is under way: no function returns with half a result. Memory belongs
 * to the job, balls and JSON too, and is freed as a whole, or back to a mark. All balls have `bits`
 * bits, which change only between evaluations. Other threads work in the loops of evaluate.c alone. */
#ifndef CHECK_H
#define CHECK_H
#include <arb.h>
#include <cjson/cJSON.h>
#define OPENSSL_SUPPRESS_DEPRECATED /* the plain SHA-256, which needs no memory */
#include <openssl/sha.h>
#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- jobs (files.c) -------------------------------------------------------------------------- */

enum { UNREADABLE = 2, NOT_TRUE = 4 }; /* exit codes, as of `pare verify`; 1 is wrong usage */
#define NO_NUMBER ((size_t)1 << 48)
#define UNPACK    "; perhaps: pare verify CERT --unpack DIR, then --unpacked DIR"

typedef struct bytes {
    const unsigned char *v;
    size_t n;
} bytes;

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
    int code;      /* of a failure, and its reason; 0: none */
    char trouble[600];
    jmp_buf escape;
    statement *first, **end; /* what was said */
    char link[40];           /* "link 0: " of a chain, before what is said */
    double work_done, work_all;
    time_t started;
} job;

extern job *now;
extern slong bits;

bool attempt(job *j, void (*f)(void *with), void *with); /* false: it failed, see j->code */
_Noreturn void fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What the file of somebody else must not break: else it is UNREADABLE. */
#define must(holds, ...) ((holds) ? (void)0 : fail(UNREADABLE, __VA_ARGS__))
void *take(size_t n, size_t size); /* zeros */
arb_ptr take_balls(size_t n);      /* zeros */
arb_ptr ball(double v);            /* one */
/* Frees what was taken since now->memory was `mark`, but for two (NULL: none). */
void release(chunk *mark, const void *but, const void *and_but);
void end_job(job *j);
const char *words(const char *format, ...) __attribute__((format(printf, 1, 2)));
void add_statement(verdict v, const char *what, const char *why);
#define state(verdict, what, ...) add_statement(verdict, what, words(__VA_ARGS__))
/* Confirmed, unless something is bad. */
void state_but(const char *what, const char *good, const char *bad);
void check_equal(const char *what, const char *hash, const char *claimed, const char *name);
size_t count_of(const job *j, verdict v);
void show_progress(double work);

bytes read_file(const char *path);
bytes read_checked(const char *what, const char *path, const cJSON *o); /* its hash is o.sha256 */
bool file_exists(const char *path);
const char *beside(const char *folder, const char *path);
void hash_text(SHA256_CTX *h, const char *text);
const char *hash_end(SHA256_CTX *h);
const char *sha256_of(const void *data, size_t n);
bool same(const char *a, const char *b);
bool is_one_of(const char *word, const char *list); /* each with a space before and after it */
int by_text(const void *a, const void *b);          /* for qsort */
int ascending(const void *a, const void *b);        /* of doubles */

/* JSON: no duplicate keys, no NUL in strings, whole text used. Getters fail where a key is missing or
 * of another type. */
cJSON *parse_json(const char *name, const void *text, size_t n);
#define find            cJSON_GetObjectItemCaseSensitive /* NULL: absent */
#define flag(o, key)    cJSON_IsTrue(find(o, key))
#define length_of(list) ((size_t)cJSON_GetArraySize(list))
const cJSON *get(const cJSON *o, const char *key);
const cJSON *get_list(const cJSON *o, const char *key);
size_t whole_number(const cJSON *v); /* NO_NUMBER: it is none from 0 on, below 2^48 */
size_t get_count(const cJSON *o, const char *key);
const char *get_text(const cJSON *o, const char *key);
double get_number(const cJSON *o, const char *key); /* "inf" too */
uint64_t get_seed(const cJSON *o, const char *key);
bool is_text(const cJSON *v, const char *text);

/* Philox4x32-10. */
typedef struct philox {
    uint64_t seed, stream, next; /* word */
} philox;

uint64_t philox_u64(philox *p);
uint64_t philox_below(philox *p, uint64_t n);
double philox_uniform(philox *p); /* [0, 1) */
void philox_shuffle(philox *p, size_t *v, size_t n, bool from_the_end);
size_t *whole_numbers(size_t n); /* 0 ... n - 1 */

/* ---- arrays (arrays.c) ----------------------------------------------------------------------- */

typedef struct array {
    const char *name; /* in an .npz, without .npy */
    size_t ndim, shape[4], count;
    bool whole; /* its type is one of whole numbers */
    const double *v;
    const char *hash; /* of a model's tensor */
    bool used;
} array;

typedef struct arrays { /* an .npz, or the tensors of a model */
    size_t n;
    array *list;
} arrays;

uint64_t whole_at(const unsigned char *p, size_t item); /* of so many bytes */
/* The numbers of an array whose shape is known, from exactly these bytes: f (bf16: h), i, u, b and `item`
 * bytes each, as numpy says. */
void fill_array(array *a, bytes data, char type, size_t item);
array read_npy(const char *name, bytes file);
arrays read_npz(const char *name, bytes file);
array *find_array(arrays a, const char *name); /* NULL: absent */
/* One with so many dimensions, rows and columns (0: any), perhaps of whole numbers only. */
const array *get_array(arrays a, const char *name, size_t ndim, size_t rows, size_t cols,
                       bool whole);

/* ---- models (model.c) ------------------------------------------------------------------------ */

typedef struct model {
    arrays tensors;
    const cJSON *architecture;
    const char *hash;                     /* of its canonical form */
    size_t context, blocks, width, vocab; /* width of inputs; vocab 0: they are vectors */
    bool graph, pools;
    size_t *row, shared; /* of each token, where `shared` of them share the last row; or NULL */
} model;

model read_model(const char *name, bytes file);
const array *find_tensor(const model *m, const char *at, const char *name); /* NULL: absent */
bool token_shares(const model *m, size_t id);

/* ---- inputs (inputs.c) ----------------------------------------------------------------------- */

typedef struct graph {
    size_t n;
    size_t *from;   /* n + 1: neighbors of node i are list[from[i]] to list[from[i + 1] - 1] */
    uint32_t *list; /* ascending */
} graph;

typedef struct input {
    size_t tokens, width; /* width 0: x are ids, one for each token */
    const double *x;
    const double *shift;  /* search: added to the rows of the embedding; or NULL */
    const graph *edges;   /* those of the data; NULL: no graph */
    const double *target; /* for each output row; -1: does not count; or NULL */
    bool continues;       /* a window that begins amid a text */
} input;

typedef struct inputs {
    size_t n;
    input *list;
} inputs;

/* What `data` of a certificate names; path: of the file. */
inputs load_inputs(const model *m, const cJSON *data, uint64_t seed, const char *path);
inputs load_unpacked(const model *m, const char *folder, size_t count);
input random_input(const model *m, uint64_t seed, size_t number, size_t tokens);
const char *hash_inputs(const input *list, size_t n, size_t tokens);
const graph *complete_graph(const model *m, const graph *g); /* with the pattern's edges */
void must_fit(const model *m, const input *in);              /* the model takes it */

/* ---- evaluation (evaluate.c) ----------------------------------------------------------------- */

typedef struct balls { /* n rows of d numbers */
    size_t n, d;
    arb_ptr v;
} balls;

typedef struct evaluation { /* one model on one input */
    const model *m;
    const input *in;
    bool full;
    size_t window, sinks; /* of other patterns; no window: all tokens */
    const graph *edges;   /* complete; NULL: no graph */
} evaluation;

typedef struct head { /* of attention: its columns, turned where they are rotary */
    balls q, k, v;
    double scale;
} head;

typedef struct heads { /* width: of all values */
    size_t n, width;
    head *list;
} heads;

typedef struct part { /* attention or feed-forward part of a block */
    bool ffn;
    const cJSON *o; /* NULL: the block has none */
    const char *at; /* what its tensors begin with */
} part;

balls new_balls(size_t n, size_t d); /* zeros */
balls balls_of(const double *v, size_t n, size_t d);
arb_ptr row_of(balls b, size_t i);
evaluation begin_evaluation(const model *m, const input *in);
part part_of(const model *m, size_t block, bool ffn);
/* The rows before the first block; behind a part of it; the outputs. */
balls embed(const evaluation *e);
balls apply_part(const evaluation *e, part p, balls x);
balls apply_head(const evaluation *e, balls x);
/* What claims about one block are about. z: rows behind in_norm. */
balls part_input(const evaluation *e, part p, balls x);
balls branch(const evaluation *e, part p, balls z);
heads attention_heads(const evaluation *e, part p, balls z);
/* The keys that a query sees, ascending; `keys` has room for all tokens. Returns their number. */
size_t visible(const evaluation *e, size_t query, uint32_t *keys);
void log_softmax(arb_ptr s, size_t n); /* in place */
void log_weights(arb_ptr out, const head *h, size_t query, const uint32_t *keys, size_t n);
void attend(arb_ptr out, const head *h, size_t query, const uint32_t *keys, size_t n);
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
interval *new_figures(size_t n);
void join_figure(interval *all, size_t place, interval one);
void note(interval *all, size_t place, arb_t x); /* |x| */
interval interval_of(const arb_t x);
/* Both models on one input; y gets the outputs. Figures that are not wanted may be left out. */
void compare(const model m[2], const input *in, unsigned wanted, interval *out, balls y[2]);
void cosine_distance(arb_t out, arb_srcptr a, arb_srcptr b, size_t d, arb_ptr room); /* for 3 */

/* ---- a certificate (certificate.c, claims.c, search.c) --------------------------------------- */

typedef struct certificate {
    const cJSON *json, *data;
    const char *domain; /* of the headline */
    model model[2];
    inputs set;
} certificate;

/* The whole of it; its files are beside it. False: it, or a file it names, cannot be read: j->trouble.
 * What was said until then is in j->first. */
bool check_certificate(job *j, const char *path);
void check_claims(const certificate *c);

/* Looks for inputs of a domain, in its words; `all` gets what was found, beginning with the figures
 * `given` of the given inputs if they belong to it. NULL, or why it can not be searched. */
const char *search_domain(const certificate *c, const char *domain, unsigned wanted,
                          const interval *given, size_t evaluated, interval *all, size_t *tries);
#endif
