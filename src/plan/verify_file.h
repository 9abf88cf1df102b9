/* verify_file.h - prove a certificate again, whatever wrote it: one call for every reduction.
 *
 *     pare_err err = {0};
 *     if (pare_verify_file("small.safetensors", NULL, &err) == PARE_ERR_VERIFY)
 *         fprintf(stderr, "refused: %s\n", err.msg); */
#ifndef PARE_PLAN_VERIFY_FILE_H
#define PARE_PLAN_VERIFY_FILE_H
#include <pare/cut.h>

/* How every reduction of this library is proven again; by its name in the certificate ("fold",
 * "width.auto", "depth", "ticket"), or NULL when there is none. */
const pare_prover *pare_prover_of(const char *reduction);

/* pare_cert_check with the provers and the data formats of this library: of a certificate that was
 * read from `path`. */
PARE_MUST_USE pare_status pare_verify_cert(pare_cert **again, pare_arena *a, const pare_cert *cert,
                                           const char *path, const pare_verify_file_opts *opts,
                                           pare_err *err);
#endif
