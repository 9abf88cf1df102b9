/* prove.h - what the provers of the cuts share: claims, enclosures, the headline, comparing. */
#ifndef PARE_CERT_PROVE_H
#define PARE_CERT_PROVE_H
#include "base/json.h"
#include "base/work.h"
#include <pare/cert.h>

/* Two models on a whole set of inputs (src/cert/output_difference.c). Each is enclosed in f64;
 * where the radii make the bound much larger than what is seen, and the work is not too much, once
 * more with double-double midpoints. */
typedef struct pare_gap {
    pare_ub proven;  /* |f - g| of every output entry, for the exact functions */
    double measured; /* largest |f - g| between the midpoints: never above proven */
    double radius;   /* of these midpoints: the exact largest difference is within it of measured */
    double f64_radius; /* the same of f64 passes */
    double scale;      /* largest |output| of f */
    pare_ub rounding;  /* a priori: how far g's f32 engine may be from the exact function */
    double engine;     /* how far it was, on these inputs and this machine: |y - mid| + radius */
} pare_gap;

typedef struct pare_verify_opts {
    const char *input, *output, *data; /* override the paths in the certificate; may be NULL */
    const pare_prover *provers;
    size_t nprovers;
    /* Loads the inputs a certificate names as "file" (the data module does; cert may not). Every
     * byte is read through `files`, so that what was hashed is what was parsed. */
    pare_status (*load)(pare_inputs *out, pare_arena *a, const pare_model *m, const char *path,
                        const pare_data_opts *o, pare_files *files, pare_err *err);
    bool evidence; /* evidence is computed again as well */
    const pare_exec *exec;
} pare_verify_opts;

/* ---- claims ---------------------------------------------------------------------------------- */

/* Appends a claim; the list grows in the arena. */
PARE_MUST_USE pare_status pare_cert_add(pare_cert *c, pare_arena *a, pare_claim claim,
                                        pare_err *err);

/* A certificate under construction. */
typedef struct cert_builder {
    pare_work work; /* its arena is the certificate's */
    pare_cert *cert;
} cert_builder;
void add_statement(cert_builder *b, pare_claim c);
/* A theorem on that domain (NULL: memory is out); vacuous bounds are left out. */
void add_bound(cert_builder *b, pare_claim c, const char *domain, pare_ub bound);

/* ---- file ------------------------------------------------------------------------------------ */

/* Bounds are written a little weaker than they were proven, so that another CPU proves them again:
 * upper ones (and `proven`) through pare_ub_written, lower ones through pare_lb_written, none above
 * the ceiling of its kind. PARE_ERR_VERIFY if a lower bound is above its upper one. */
PARE_MUST_USE pare_status pare_cert_inflate(pare_cert *c, pare_err *err);
/* Caller frees *out with cJSON_Delete. */
PARE_MUST_USE pare_status pare_cert_json(cJSON **out, const pare_cert *c, pare_err *err);
/* Where the certificate of a model at `out` belongs: OUT.cert.json, or OUT/pare.cert.json. NULL:
 * memory is out. */
PARE_MUST_USE char *pare_cert_path(pare_arena *a, const char *out, bool folder);
/* The same from a tree that was read before; `path` is for messages. */
PARE_MUST_USE pare_status pare_cert_parse(pare_cert **out, pare_arena *a, const cJSON *root,
                                          const char *path, pare_err *err);
/* What a certificate says of a model that was loaded from `path` through `files`. */
PARE_MUST_USE pare_status pare_file_ref_make(pare_file_ref *out, pare_arena *a,
                                             const char *cert_path, const char *path,
                                             const pare_files *files, const pare_model *m,
                                             pare_err *err);

/* The inputs of a certificate: `path` NULL for random ones of `tokens` tokens, else a file whose
 * bytes have that hash. */
PARE_MUST_USE pare_status pare_data_ref_make(pare_data_ref *out, pare_arena *a,
                                             const char *cert_path, const char *path,
                                             const char *sha256, size_t split, size_t tokens,
                                             const pare_inputs *set, pare_err *err);
/* The hashes of all inputs of a set, those of a batch one by one. */
PARE_MUST_USE pare_status pare_input_hashes_make(pare_input_hashes *out, pare_arena *a,
                                                 const pare_inputs *set, size_t tokens,
                                                 pare_err *err);
/* Whether an input is in both. */
bool pare_inputs_meet(const pare_input_hashes *a, const pare_input_hashes *b);

/* ---- composing ------------------------------------------------------------------------------- */

/* f -> g -> h: the bounds of the headlines add up (rounded up) in the common norm on the common
 * inputs, so do those a priori where every link has one on the same domain, and one hypothesis per
 * link says whether all of its own hold. The reduction is "chain"; a link that is a chain itself
 * gives its links. Links must fit: the output of one is the input of the next (by hash), same
 * norm, domain and inputs; else PARE_ERR_INPUT. Paths are rewritten to be relative to `cert_path`;
 * the links are copied, their strings and lists borrowed. `measured` is the sum's stand-in until
 * measured anew: it is taken by the caller, between the first input and the last output. */
PARE_MUST_USE pare_status pare_cert_compose(pare_cert *out, pare_arena *a, const char *cert_path,
                                            pare_cert *const *links, const char *const *link_paths,
                                            size_t n, pare_err *err);

/* ---- proving --------------------------------------------------------------------------------- */

/* Largest |f - g| over the set by the f64 reference: the measured tier of every reduction. */
PARE_MUST_USE pare_status pare_measure(double *out, const pare_model *f, const pare_model *g,
                                       const pare_inputs *set, const pare_exec *exec,
                                       pare_err *err);

/* An enclosure of the exact function on one input (src/cert/enclose.c: the piece an auditor
 * reads): |exact - mid| <= rad[row] for every entry of the row, and the f32 engine is within
 * rad32[row] of the exact function. Of a model without an output map rad and rad32 bound the
 * euclidean distance of the row. Radii may be +inf. */
typedef struct pare_enclosure {
    size_t rows, cols;
    double *mid;
    double *lo; /* wide: the midpoint is mid + lo; NULL otherwise */
    double *rad, *rad32;
} pare_enclosure;
/* Proven norms of every weight, made once for as many enclosures as there are; in the arena. */
typedef struct pare_model_norms pare_model_norms;
PARE_MUST_USE pare_status pare_model_norms_new(pare_model_norms **out, pare_arena *a,
                                               const pare_model *m, const pare_exec *exec,
                                               pare_err *err);
/* The enclosure of one input, in the arena. A radius that overflows is +inf, no error. */
PARE_MUST_USE pare_status pare_enclose(pare_enclosure *out, pare_arena *a, const pare_model *m,
                                       const pare_model_norms *norms, const pare_input *in,
                                       const pare_exec *exec, pare_err *err);
/* The same with midpoints in double-double: |exact - (mid + lo)| <= rad[row], where rad counts
 * units of 2^-102 in place of 2^-53 (and no longer speaks of f64 passes). Slower than pare_enclose.
 */
PARE_MUST_USE pare_status pare_enclose_dd(pare_enclosure *out, pare_arena *a, const pare_model *m,
                                          const pare_model_norms *norms, const pare_input *in,
                                          const pare_exec *exec, pare_err *err);
/* Two models on a whole set of inputs (src/cert/output_difference.c). Each is enclosed in f64;
 * where the radii make the bound much larger than what is seen, and the work is not too much, once
 * more with double-double midpoints. */
PARE_MUST_USE pare_status pare_prove_gap(pare_gap *out, const pare_model *f, const pare_model *g,
                                         const pare_inputs *set, const pare_exec *exec,
                                         pare_err *err);
/* Headline, radii, and the claims about g's engine: what every prover takes from a gap. */
PARE_MUST_USE pare_status pare_cert_take_gap(pare_cert *c, pare_arena *a, const pare_gap *gap,
                                             pare_err *err);

/* ---- verifying ------------------------------------------------------------------------------- */

/* PARE_ERR_VERIFY, naming the claim and both values, unless everything in `claimed` follows from
 * `again`:
 *   headline      same norm and domain; proven at least as large; measured within 1e-3 or twice the
 *                 proven radius of what is measured again, and not above proven by more than it
 *   hypotheses    the same ones, with the same truth; values and limits within 1e-3
 *   theorems      each is proven again: upper bounds at least what is provable, lower ones at most
 *   observations  the same ones, within the tolerance of their kind
 *   evidence      if again->evidence: within 1e-3
 * Files, data and seed are not looked at. */
PARE_MUST_USE pare_status pare_cert_compare(const pare_cert *claimed, const pare_cert *again,
                                            pare_err *err);

/* PARE_OK: every claim holds. PARE_ERR_VERIFY: not true, err says what. Others: unreadable. Every
 * file is opened once and read into memory; hashes are of the bytes that were parsed. A chain is
 * verified link by link, added up again and measured anew; the options' input is then the first
 * model, output the last. `path` is where the certificate came from: files are beside it. `again`,
 * in the arena, is what was proven. */
PARE_MUST_USE pare_status pare_cert_check(pare_cert **again, pare_arena *a, const pare_cert *c,
                                          const char *path, const pare_verify_opts *opts,
                                          pare_err *err);
/* The same for a file. */
PARE_MUST_USE pare_status pare_cert_verify(const char *path, const pare_verify_opts *opts,
                                           pare_err *err);
/* The files of a certificate without a proof: opened, read and compared with its hashes as above,
 * then handed to `use`; of a chain every link (1, 2, ...), then its ends (0). Models and inputs are
 * there during the call only. The first failure, that of `use` included, ends it. */
typedef pare_status pare_cert_files_fn(void *self, size_t link, const pare_cert *c,
                                       const pare_model *f, const pare_model *g,
                                       const pare_inputs *set, pare_err *err);
PARE_MUST_USE pare_status pare_cert_open_files(pare_arena *a, const pare_cert *c, const char *path,
                                               const pare_verify_opts *opts,
                                               pare_cert_files_fn *use, void *self, pare_err *err);
/* The domain of a headline in one English sentence; the same for every reduction, so that links
 * of a chain speak of the same set. NULL when memory is out. */
PARE_MUST_USE const char *pare_domain_text(pare_arena *a, const pare_data_ref *data);
#endif
