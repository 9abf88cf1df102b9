/* pare/report.h - one page for people: certificates, probes, training logs and tables of the
 * papers in a single HTML file. It needs no network and no script, follows light and dark, fits a
 * phone and a sheet of paper, and names the file and the command behind every number. */
#ifndef PARE_REPORT_H
#define PARE_REPORT_H
#include <pare/cert.h>

typedef struct pare_report_opts {
    const char *title; /* NULL: "pare report" */
    bool overwrite;
    /* Every certificate is proven again: of one that does not hold the page shows the reason and
     * none of its figures. False: the page marks every certificate as not verified. */
    bool verify;
    const pare_exec *exec;                        /* of the proofs */
    void (*before)(void *self, const char *path); /* each proof; may be NULL */
    void *self;
} pare_report_opts;

/* Each file is recognised by what is in it: a certificate (with the run file beside it, when there
 * is one that is of the same models), what `pare probe --json` or `pare repro --json` printed, a
 * log of `pare train`, a plan of `pare length`. PARE_ERR_INPUT names the file that is none of
 * these. Strings of files are escaped; what no verified certificate covers is marked "not
 * verified", and green stands only for what was verified. */
PARE_MUST_USE pare_status pare_report_write(const char *path, const char *const *files, size_t n,
                                            const pare_report_opts *opts, pare_err *err);
#endif
