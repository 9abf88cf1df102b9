/* pare/verify.h - prove a certificate again, whatever wrote it: one call for every reduction.
 *
 *     pare_err err = {0};
 *     if (pare_verify_file("small.safetensors", NULL, &err) == PARE_ERR_VERIFY)
 *         fprintf(stderr, "refused: %s\n", err.msg);
 */
#ifndef PARE_VERIFY_H
#define PARE_VERIFY_H
#include <pare/length_cert.h>
#include <pare/cert.h>

/* How every reduction of this library is proven again; by its name in the certificate ("fold",
 * "width.auto", "depth", "ticket"), or NULL when there is none. */
const pare_prover *pare_prover_of(const char *reduction);

typedef struct pare_verify_file_opts {
    /* Where the files are now; NULL: where the certificate says. Of the certificate of a length run
     * `input` is the model and `output` the plan. */
    const char *input, *output, *data;
    bool evidence;             /* evidence is computed again as well */
    const pare_engine *engine; /* certificates of length runs: pare_length_verify_opts */
    const pare_exec *exec;
} pare_verify_file_opts;

/* What was read and proven, as far as it went. */
typedef struct pare_verified {
    const char *path;   /* of the certificate: what was named, or the one beside the model */
    bool is_length;     /* it is about a length run */
    pare_cert *claimed; /* of a cut; NULL: it could not be read */
    pare_cert *again;   /* what was proven; NULL: it was not */
    pare_length_verified length;
} pare_verified;

/* `path` is a certificate, or a model or plan with a certificate beside it: PATH.cert.json, or
 * PATH/pare.cert.json in a folder. PARE_OK: every claim holds. PARE_ERR_VERIFY: it is refused, and
 * err says why. PARE_ERR_USAGE: `data` of a certificate about random inputs, or `engine` of one that
 * is not about a length run. Others: a file is missing or unreadable. opts may be NULL. */
PARE_MUST_USE pare_status pare_verify_file(const char *path, const pare_verify_file_opts *opts,
                                           pare_err *err);
/* The same, and what was proven, in the arena. */
PARE_MUST_USE pare_status pare_verify_file_report(pare_verified *out, pare_arena *a,
                                                  const char *path,
                                                  const pare_verify_file_opts *opts, pare_err *err);
/* pare_cert_check with the provers and the data formats of this library: of a certificate that was
 * read from `path`. */
PARE_MUST_USE pare_status pare_verify_cert(pare_cert **again, pare_arena *a, const pare_cert *cert,
                                           const char *path, const pare_verify_file_opts *opts,
                                           pare_err *err);
/* The certificate that `path` names, as pare_verify_file finds it; in the arena. */
PARE_MUST_USE pare_status pare_find_certificate(const char **out, pare_arena *a, const char *path,
                                                pare_err *err);
#endif
