/* prove_length.h - the certificate of a length run: its file, and how it is proven again. */
#ifndef PARE_CLI_PROVE_LENGTH_H
#define PARE_CLI_PROVE_LENGTH_H
#include "cli.h"

#define LENGTH_ROWS 256

/* What a plan is run on: the first input of the data, or a seeded one. */
typedef struct length_input {
    pare_input in;
    pare_graph whole;
    const pare_graph *graph; /* that the model attends over; NULL unless its pattern is one */
} length_input;
/* `data` NULL: `tokens` seeded tokens. */
PARE_MUST_USE pare_status length_input_read(cli *c, length_input *out, const pare_model *m,
                                            const char *data, size_t tokens, uint64_t seed);

/* The built-in engine that a plan is for: the kernels, or the strict referee. */
PARE_MUST_USE pare_status length_oracle(pare_oracle *out, const pare_length_plan *plan,
                                        const pare_exec *exec, pare_err *err);
PARE_MUST_USE pare_status length_cert_write(cli *c, const char *model, const char *data,
                                            const char *plan_path, size_t rows,
                                            const pare_length_plan *plan,
                                            const pare_length_cert *cert);
/* A bound as the certificate has it, and what inputs it is about. */
double length_cert_written(double bound);
const char *length_cert_domain(bool data);
/* Where verify shall look instead of where the certificate says, and the engine on which it runs
 * the plan once more; NULL: as it says, and f64 softmax calls of our own. */
typedef struct length_verify {
    const char *model, *plan, *data, *backend;
} length_verify;
/* Whether the file is one, and then its proof; PARE_ERR_VERIFY with the reason when it is not true.
 * verify prints what holds, holds is silent. */
bool length_cert_is(const cJSON *json);
PARE_MUST_USE pare_status length_cert_holds(cli *c, const char *path, const cJSON *json);
PARE_MUST_USE pare_status length_cert_verify(cli *c, const char *path, const cJSON *json,
                                             const length_verify *where);
#endif
