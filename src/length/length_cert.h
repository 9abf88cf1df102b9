/* length_cert.h - rows of heads that a run has answered: their rounding bounds, and how far they
 * are from long double. */
#ifndef PARE_LENGTH_CERT_H
#define PARE_LENGTH_CERT_H
#include <pare/length.h>

typedef struct certifier {
    const pare_length_plan *plan;
    const pare_oracle *orc;
    size_t rows;      /* of a head, evenly; 0 = all */
    size_t call_rows; /* of a call where it holds more than the plan says; else 0 */
    const pare_exec *exec;
    pare_length_cert *out;
    double *all; /* proven bounds of the rows so far, for the median */
    size_t count, capacity;
} certifier;
/* The rows of one head, which must have its y. */
PARE_MUST_USE pare_status certifier_judge(certifier *c, const pare_length_job *j, pare_err *err);
void certifier_end(certifier *c); /* the median; frees what is in it */
#endif
