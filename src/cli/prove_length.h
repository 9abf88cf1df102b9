/* prove_length.h - the certificate of a length run: its file, and how it is proven again. */
#ifndef PARE_CLI_PROVE_LENGTH_H
#define PARE_CLI_PROVE_LENGTH_H
#include "cli.h"

#define LENGTH_ROWS 256

/* The built-in engine that a plan is for: the kernels, or the strict referee. */
PARE_MUST_USE pare_status length_oracle(pare_oracle *out, const pare_length_plan *plan,
                                        const pare_exec *exec, pare_err *err);
PARE_MUST_USE pare_status length_cert_write(cli *c, const char *model, const char *plan_path,
                                            size_t rows, const pare_length_plan *plan,
                                            const pare_length_cert *cert);
/* Whether the file is one, and then its proof; PARE_ERR_VERIFY with the reason when it is not true.
 */
bool length_cert_is(const cJSON *json);
PARE_MUST_USE pare_status length_cert_verify(cli *c, const char *path, const cJSON *json);
#endif
