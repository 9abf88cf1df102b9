/* pare/report.h - one page for people: certificates, probes, training logs and tables of the
 * papers in a single HTML file. It needs no network and no script, follows light and dark, fits a
 * phone and a sheet of paper, and names the file and the command behind every number. */
#ifndef PARE_REPORT_H
#define PARE_REPORT_H
#include <pare/cert.h>

typedef struct pare_report_opts {
    const char *title; /* NULL: "pare report" */
    bool overwrite;
    /* Asked for every certificate: PARE_OK it holds, PARE_ERR_VERIFY it does not; anything else
     * ends the report. NULL: the page says that nobody looked. */
    pare_status (*verify)(void *self, const char *path, pare_err *err);
    void *self;
} pare_report_opts;

/* Each file is recognised by what is in it: a certificate (with the run file beside it, when there
 * is one), what `pare probe --json` or `pare repro --json` printed, a log of `pare train`, a plan
 * of `pare length`. PARE_ERR_INPUT names the file that is none of these. */
PARE_MUST_USE pare_status pare_report_write(const char *path, const char *const *files, size_t n,
                                            const pare_report_opts *opts, pare_err *err);
#endif
