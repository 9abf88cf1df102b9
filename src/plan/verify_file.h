/* verify_file.h - prove a certificate again, whatever wrote it: one call for every reduction.
 *
 *     pare_err err = {0};
 *     if (pare_verify_file("small.safetensors", NULL, &err) == PARE_ERR_VERIFY)
 *         fprintf(stderr, "refused: %s\n", err.msg); */
#ifndef PARE_PLAN_VERIFY_FILE_H
#define PARE_PLAN_VERIFY_FILE_H
#include "base/json.h"
#include <pare/cut.h>

/* How every reduction of this library is proven again; by its name in the certificate ("fold",
 * "width.auto", "depth", "ticket"), or NULL when there is none. */
const pare_prover *pare_prover_of(const char *reduction);

/* pare_cert_check with the provers and the data formats of this library: of a certificate that was
 * read from `path`. */
PARE_MUST_USE pare_status pare_verify_cert(pare_cert **again, pare_arena *a, const pare_cert *cert,
                                           const char *path, const pare_verify_file_opts *opts,
                                           pare_err *err);

/* The JSON of the certificate that `path` names, the path where it was found and the hash of its
 * bytes, which are read once. PARE_ERR_INPUT: it is no certificate. The caller deletes *json, also
 * after a failure. */
PARE_MUST_USE pare_status pare_certificate_open(cJSON **json, const char **found,
                                                char sha256[PARE_SHA256_HEX], pare_arena *a,
                                                const char *path, pare_err *err);
/* That of a cut; PARE_ERR_USAGE for options that mean nothing to it. */
PARE_MUST_USE pare_status pare_certificate_parse(pare_cert **out, pare_arena *a, const cJSON *json,
                                                 const char *path, const pare_verify_file_opts *o,
                                                 pare_err *err);
/* The inputs that a certificate names (pare_verify_opts.load). */
PARE_MUST_USE pare_status pare_certificate_inputs(pare_inputs *out, pare_arena *a,
                                                  const pare_model *m, const char *path,
                                                  const pare_data_opts *o, pare_files *files,
                                                  pare_err *err);
#endif
