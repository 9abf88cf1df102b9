/* pare/length_cert.h - the certificate of a length run as a file: written, read, proven again.
 *
 *     pare_length_input_read(&in, arena, model, data, tokens, seed, &err);
 *     pare_length_plan_make(&plan, ...);                      and write it to plan.json
 *     pare_length_oracle(&oracle, &plan, &exec, &err);
 *     pare_length_certify(&cert, &plan, &oracle, model, &in.in, rows, &exec, &err);
 *     pare_length_cert_write(&cert, &plan, &files, &err);     plan.json.cert.json
 *     pare_verify_file("plan.json", NULL, &err);              (pare/verify.h)
 *
 * The file has hashes of model, plan and data, the bounds, and what was measured. It is proven again
 * by running the same plan on the same input and, on another engine, the model once more. */
#ifndef PARE_LENGTH_CERT_FILE_H
#define PARE_LENGTH_CERT_FILE_H
#include <pare/engine.h>
#include <pare/json.h>

enum { PARE_LENGTH_ROWS = 256 }; /* of each head, usually */

/* What a plan is run on: the first input of the data, or (data NULL) `tokens` seeded tokens. */
typedef struct pare_length_input {
    pare_input in;
    pare_graph whole;
    const pare_graph *graph; /* that the model attends over; NULL unless its pattern is one */
} pare_length_input;
/* In the arena; `graph` points into *out, which stays where it is. */
PARE_MUST_USE pare_status pare_length_input_read(pare_length_input *out, pare_arena *a,
                                                 const pare_model *m, const char *data,
                                                 size_t tokens, uint64_t seed, pare_err *err);
/* The built-in engine that a plan is for: the kernels, or the strict oracle. */
PARE_MUST_USE pare_status pare_length_oracle(pare_oracle *out, const pare_length_plan *plan,
                                             const pare_exec *exec, pare_err *err);

/* ---- the file of a plan ------------------------------------------------------------------------- */

/* The text of its file, in the arena. */
PARE_MUST_USE pare_status pare_length_plan_text(char **out, pare_arena *a,
                                                const pare_length_plan *plan, pare_err *err);
PARE_MUST_USE pare_status pare_length_plan_write(const char *path, const pare_length_plan *plan,
                                                 bool overwrite, pare_err *err);
/* What a plan's file says before its input is known. */
typedef struct pare_length_plan_file {
    const char *path;
    char *text;              /* in the arena */
    pare_oracle_caps engine; /* max_len, layers, heads, features and dtype */
    pare_length_mode mode;
    size_t tokens;
} pare_length_plan_file;
/* PARE_ERR_INPUT: the file is no plan. */
PARE_MUST_USE pare_status pare_length_plan_read(pare_length_plan_file *out, pare_arena *a,
                                                const char *path, pare_err *err);
/* The whole plan; `g` as in pare_length_plan_make. */
PARE_MUST_USE pare_status pare_length_plan_open(pare_length_plan *out, pare_arena *a,
                                                const pare_length_plan_file *file,
                                                const pare_graph *g, pare_err *err);

/* ---- the file -------------------------------------------------------------------------------- */

typedef struct pare_length_cert_opts {
    const char *model, *plan; /* files; the certificate is plan.cert.json */
    const char *data;         /* NULL: the input was drawn from the seed */
    size_t rows;              /* of each head, as certified; 0: all */
    uint64_t seed;
    bool overwrite;
} pare_length_cert_opts;
/* Reads the files once more, hashes them, and writes PLAN.cert.json. */
PARE_MUST_USE pare_status pare_length_cert_write(const pare_length_cert *cert,
                                                 const pare_length_plan *plan,
                                                 const pare_length_cert_opts *o, pare_err *err);
/* A bound as the file has it: raised for the roundings of another CPU. */
double pare_length_cert_written(double bound);
/* What inputs it is about, in words. */
const char *pare_length_cert_domain(bool data);
/* The files it speaks of; data is optional. */
enum { PARE_LENGTH_MODEL, PARE_LENGTH_PLAN, PARE_LENGTH_DATA, PARE_LENGTH_FILES };
extern const char *const pare_length_file_keys[PARE_LENGTH_FILES]; /* "input", "plan", "data" */
typedef struct pare_length_file {
    const char *path, *sha256, *architecture; /* path NULL: none; the last of the model alone */
} pare_length_file;

/* What it claims. */
typedef struct pare_length_claims {
    pare_length_file files[PARE_LENGTH_FILES];
    uint64_t seed;
    size_t rows, tokens, length;
    const char *mode, *norm, *domain;
    size_t calls, rounds, bad_rows, fallback_calls;
    double lmax, apriori, proven, measured, tolerance;
} pare_length_claims;

/* ---- proving it again ------------------------------------------------------------------------ */

typedef struct pare_length_verify_opts {
    const char *model, *plan, *data; /* where the files are now; NULL: where the certificate says */
    const pare_engine *engine;       /* runs the model once more; NULL: cpu in f64, with a reference
                                        key in the place of partial results */
} pare_length_verify_opts;

typedef struct pare_length_verified {
    pare_length_claims claims;
    pare_length_cert again; /* what was proven and measured here */
    double other_engine;    /* largest difference that the other engine has measured */
} pare_length_verified;
#endif
