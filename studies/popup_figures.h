/* popup_figures.h - figures 7 and 8 of Otsuka 2025: edge-popup, for `repro ticket`. */
#ifndef PARE_STUDIES_TICKET_POPUP_H
#define PARE_STUDIES_TICKET_POPUP_H
#include "study.h"

/* Runs the trainings (jobs of their own) and adds tables, curves and notes to c->r. The folders are
 * there. `text`: up to three files, to learn from, to choose by, to test on (NULL: cut from the end
 * of the first); text[0] NULL: a text is made in the folder. `epochs` of the options: steps of a
 * run, at most. */
PARE_MUST_USE pare_status popup_study(study_context *c, const char *const text[3]);
/* Of a statement "loses less", which does by `by` (negative: loses more) in runs of that spread:
 * decided only by runs of the full size, whose means are more than twice the spread apart. */
row_verdict popup_verdict(double by, double spread, bool full);
#endif
