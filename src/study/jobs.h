/* jobs.h - work that is done once. A job is described by a line of text; its result is a small JSON
 * file in a folder, named after the job and a hash of that line. Who comes later finds it, whether
 * the process was killed, asked for more, or is another rank. */
#ifndef PARE_SRC_STUDY_JOBS_H
#define PARE_SRC_STUDY_JOBS_H
#include <pare/json.h>
#include <pare/ranks.h>

typedef struct job {
    const char *name; /* "minesweeper-large-000" */
    const char *what; /* everything the result depends on */
    double cost;      /* in any unit: the dear ones come first, and progress counts it */
    void *own;        /* the caller's */
    /* filled in: */
    const char *stem; /* path without ".json" */
    bool found;       /* it was there */
    cJSON *result;    /* freed by jobs_close */
} job;

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
    void *note_self;
} jobs;

/* Names the files (jobs_name alone is enough to know them), does what is not there, and reads all
 * results. The same list on every rank; afterwards every rank has all. The first failure by number
 * is told. Strings go to the arena. */
PARE_MUST_USE pare_status jobs_name(jobs *b, pare_arena *a, pare_err *err);
PARE_MUST_USE pare_status jobs_run(jobs *b, pare_arena *a, const pare_exec *exec,
                                   const pare_ranks *ranks, pare_err *err);
void jobs_close(jobs *b);
#endif
