/* repro.h - what showing and drawing share. */
#ifndef PARE_SRC_STUDY_REPRO_H
#define PARE_SRC_STUDY_REPRO_H
#include "jobs.h"
#include <pare/repro.h>

/* ---- what every study has: its folder, its jobs (repro_frame.c) ---- */

typedef struct frame {
    pare_repro *r;
    const pare_repro_opts *o;
    const pare_exec *exec;
    const pare_ranks *ranks;
    pare_err *err;
    const char *runs; /* folder of the jobs' results */
    tally all;        /* over all lists of jobs; `later` is the caller's */
} frame;

/* An empty study in an arena of its own. All ranks agree whether it is there. */
PARE_MUST_USE pare_status frame_open(frame *f, const char *name, const pare_repro_opts *o,
                                     const pare_exec *exec, const pare_ranks *ranks, pare_err *err);
/* *out where `st` is well, else everything is freed; returns st. */
pare_status frame_close(pare_repro **out, frame *f, pare_status st);
bool frame_first(const frame *f); /* rank 0 */
/* Whether the part of that name is asked for. */
bool frame_wants(const frame *f, const char *part);
/* The command line that makes this part again, or (NULL) the whole study; NULL: memory is out. */
const char *frame_command(const frame *f, const char *part);
/* Both folders, by the first rank. */
PARE_MUST_USE pare_status frame_folders(frame *f);
PARE_MUST_USE pare_status frame_make_folder(const char *path, pare_err *err); /* or it is there */
PARE_MUST_USE pare_status frame_new_jobs(frame *f, jobs *b, size_t n);
/* Does them and counts them; title, run and self of `b` are the caller's. `st`: how the making of
 * the list went. No rank may wait for one that has left. */
PARE_MUST_USE pare_status frame_jobs(frame *f, jobs *b, pare_status st);

/* A table while it is written; the first failure stays. */
typedef struct sheet {
    pare_repro *r;
    pare_err *err;
    pare_status st;
    pare_repro_table *t;
    size_t room;
} sheet;
/* `digits` below 0: so many significant ones. */
void sheet_open(sheet *s, const char *name, const char *about, int digits, size_t room);
void sheet_put(sheet *s, pare_repro_row row); /* NULL in it: memory was out */

/* What `put` writes, as a string in the arena. */
PARE_MUST_USE pare_status print_text(char **out, pare_arena *a,
                                     void (*put)(FILE *to, const void *what), const void *what,
                                     pare_err *err);

/* ---- the parts of the studies, by number: what `only` may name ---- */

bool names_part(const char *only, const char *part); /* only NULL: all */
const char *width_part(size_t i);
const char *depth_part(size_t i);
const char *ticket_part(size_t i);
const char *length_part(size_t i);
const char *errata_part(size_t i);

/* ---- figures ---- */

/* Bins that all series of one data set share, so that their histograms can be laid on one another
 * (repro_figure.c). */
typedef struct histogram {
    size_t bins;
    double from, width;
} histogram;
histogram histogram_of(const pare_repro *r, size_t series);
double histogram_edge(const histogram *h, size_t bin);
size_t histogram_count(const histogram *h, const pare_repro_series *s, size_t bin);
/* Curves as CSV and as SVG, a panel for each table and data (repro_curves.c). */
PARE_MUST_USE pare_status curves_csv(pare_out *o, const pare_repro *r, pare_err *err);
PARE_MUST_USE pare_status curves_svg(pare_out *o, const pare_repro *r, pare_err *err);
#endif
