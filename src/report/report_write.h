/* report_write.h - pare_report_write with a verifier of the caller's choice (tests). */
#ifndef PARE_REPORT_WRITE_H
#define PARE_REPORT_WRITE_H
#include <pare/json.h>
#include <pare/report.h>

/* Called for every certificate, with what was read from `path`: `cert`, or `length` for one of a
 * length run (the other is NULL). PARE_OK: it holds. PARE_ERR_VERIFY: it does not. Anything else
 * ends the report. */
typedef pare_status report_verifier(void *self, const char *path, const pare_cert *cert,
                                    const cJSON *length, pare_err *err);

/* verify NULL: no certificate is verified. */
PARE_MUST_USE pare_status report_write(const char *path, const char *const *files, size_t n,
                                       const pare_report_opts *o, report_verifier *verify,
                                       void *self, pare_err *err);
#endif
