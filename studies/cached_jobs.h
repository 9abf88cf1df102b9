/* cached_jobs.h - work that is done once. A job is described by a line of text; its result is a
 * small JSON file in a folder, named after the job and a hash of that line. Who comes later finds
 * it, whether the process was killed, asked for more, or is another rank. */
#ifndef PARE_STUDIES_CACHED_JOBS_H
#define PARE_STUDIES_CACHED_JOBS_H
#include "base/json.h"

typedef struct job {
    const char *name; /* "minesweeper-large-000" */
    const char *what; /* everything the result depends on */
    double cost;      /* in any unit: the dear ones come first, and progress counts it */
    void *own;        /* the caller's */
    bool counted;     /* a list before this one had it: its time is in the tally */
    /* filled in: */
    const char *file_prefix; /* path without ".json" */
    bool found;              /* it was there */
    cJSON *result;           /* freed by jobs_close */
} job;

/* How far a study is that has several lists of jobs, one after the other. */
typedef struct tally {
    const char *name;     /* of the study; NULL: none */
    size_t done;          /* runs that are kept */
    size_t untimed;       /* of them, files of older versions: they do not have their time */
    double seconds, cost; /* of the others */
    size_t later;         /* runs of the lists to come */
    double later_cost;    /* theirs, as far as it is known */
} tally;

typedef struct jobs {
    const char *folder; /* exists */
    size_t n;
    job *job;
    const char *title; /* of the progress */
    bool again;        /* make all, also what is there */
    void *self;
    /* Adds to `result` (an object that has "what" already). `threads` is how many it may use;
     * `progress` of exec counts this job alone. */
    pare_status (*run)(void *self, const job *j, cJSON *result, const pare_exec *exec,
                       pare_err *err);
    void (*note)(void *self, const char *line); /* may be NULL */
    /* Before the first run and after each: runs that are done, their time, an estimate of the rest.
     * May be NULL. */
    void (*state)(void *self, const char *line);
    void *note_self; /* of both */
    tally *all;      /* of the study; NULL: this list is all there is */
} jobs;

/* "width: 12 of 96 runs are kept, 3 min 20 s of work; the rest: about 25 min 0 s": of `left` runs
 * that cost `cost_left` and are shared by `workers`. */
void tally_line(char *out, size_t capacity, const tally *t, size_t left, double cost_left,
                size_t workers);

/* Names the files (jobs_name alone is enough to know them), does what is not there, and reads all
 * results. The same list on every rank; afterwards every rank has all. The first failure by number
 * is told. Strings go to the arena. A result has the "seconds" (wall time) that its run took, since
 * its last checkpoint if it was interrupted; nothing is computed from them but the estimate. */
PARE_MUST_USE pare_status jobs_name(jobs *b, pare_arena *a, pare_err *err);
PARE_MUST_USE pare_status jobs_run(jobs *b, pare_arena *a, const pare_exec *exec,
                                   const pare_ranks *ranks, pare_err *err);
void jobs_close(jobs *b);
#endif
