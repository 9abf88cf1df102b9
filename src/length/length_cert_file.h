/* length_cert_file.h - the parts of the file of a length certificate, for the writer and the
 * verifier. */
#ifndef PARE_LENGTH_CERT_PARTS_H
#define PARE_LENGTH_CERT_PARTS_H
#include "base/work.h"
#include "base/json.h"
#include <pare/length.h>

typedef struct pare_length_verify_opts {
    const char *model, *plan, *data; /* where the files are now; NULL: where the certificate says */
    const pare_engine *engine;       /* runs the model once more; NULL: cpu in f64, with a reference
                                        key in the place of partial results */
} pare_length_verify_opts;

/* Whether a JSON object is the certificate of a length run. */
bool pare_is_length_cert(const cJSON *json);
/* PARE_OK: it holds. PARE_ERR_VERIFY: it does not, and err says why. `path` is where the JSON was
 * read: files are beside it. What is in *out lives in the arena. */
PARE_MUST_USE pare_status pare_length_cert_verify(pare_length_verified *out, pare_arena *a,
                                                  const char *path, const cJSON *json,
                                                  const pare_length_verify_opts *o,
                                                  const pare_exec *exec, pare_err *err);

/* The numbers of one head in a run: n x dk, n x dk, n x dv, n x dv of the run's type. */
typedef struct length_head {
    size_t block, head, n, dk, dv;
    double scale;
    const void *q, *k, *v, *y;
} length_head;

/* A run of the plan of a certificate, and what it was made of. */
typedef struct length_replay {
    pare_model *m; /* as it was loaded; the caller frees it, also after a failure */
    pare_length_input in;
    pare_dtype dtype;
    size_t rows; /* of a head, as claimed; 0: all */
    size_t nheads, capacity;
    length_head *heads; /* block after block */
} length_replay;
/* Reads the files of the certificate at `path`, compares them with its hashes, and runs the plan on
 * the built-in engine; nothing is proven. In the arena. */
PARE_MUST_USE pare_status pare_length_cert_replay(length_replay *out, pare_arena *a,
                                                  const char *path, const cJSON *json,
                                                  const pare_length_verify_opts *o,
                                                  const pare_exec *exec, pare_err *err);

/* Each file is read once: what is parsed is what is hashed. *is says what it is, also where it
 * could be read but not parsed. */
PARE_MUST_USE pare_status length_read_model(pare_work *w, pare_length_file *is, pare_model **m,
                                            const char *path);
PARE_MUST_USE pare_status length_read_plan(pare_work *w, pare_length_file *is, cJSON **json,
                                           const char *path);
PARE_MUST_USE pare_status length_read_data(pare_work *w, pare_length_file *is,
                                           pare_length_input *in, const pare_model *m,
                                           const char *path, size_t tokens, uint64_t seed);
/* The model, the plan, and what it was run on, each compared with its hash in the claims. Where
 * inputs may be longer than the context, that of *m becomes 0; *context: what it was. */
PARE_MUST_USE pare_status length_read_all(pare_work *w, const pare_length_claims *k, pare_model **m,
                                          size_t *context, cJSON **json, pare_length_plan *plan,
                                          pare_length_input *in);
/* The claims of a file, in the arena. */
PARE_MUST_USE pare_status length_read_claims(pare_work *w, pare_length_claims *k, const char *path,
                                             const cJSON *json,
                                             const pare_length_verify_opts *where);

/* PARE_ERR_VERIFY unless ... it is the file that was claimed; st: whether it could be read */
PARE_MUST_USE pare_status length_same_file(const pare_length_file *claimed,
                                           const pare_length_file *is, pare_status st,
                                           pare_err *err);
/* ... the claims are about this plan */
PARE_MUST_USE pare_status length_compare_plan(const pare_length_claims *k,
                                              const pare_length_plan *p, pare_err *err);
/* ... they follow from a run that was made here, in numbers of type t */
PARE_MUST_USE pare_status length_compare_run(const pare_length_claims *k,
                                             const pare_length_cert *now, pare_dtype t,
                                             pare_err *err);
/* PARE_ERR_VERIFY with both numbers. */
pare_status length_not_true(const char *what, double claimed, double is, pare_err *err);
#endif
