/* pare/runs.h - many independent runs: over seeds or splits, over a grid of settings.
 *
 * Runs are dealt to the ranks, and within a rank to the threads: one thread each where there are at
 * least as many runs as threads, all threads for one run after the other else. The results depend
 * on neither. */
#ifndef PARE_RUNS_H
#define PARE_RUNS_H
#include <pare/ranks.h>
#include <pare/train.h>

typedef struct pare_setting { /* one point of a grid */
    double lr;
    uint64_t epochs;
} pare_setting;

/* What one run is made of. */
typedef struct pare_run_parts {
    const pare_model *start;
    const pare_lesson *lesson;
    pare_train_opts opts; /* a log is called from one thread at a time */
    void *own;            /* the opener's */
} pare_run_parts;

/* Who knows how to begin run `run` (0 .. runs - 1) under setting number `at` (the seed, the split,
 * the name of the checkpoint come from them). Called from several threads at once, and more than
 * once for a run; the same parts must come out on every rank. `close` comes after every `open` that
 * succeeded; it may be NULL. */
typedef struct pare_run_source {
    void *self;
    pare_status (*open)(void *self, pare_run_parts *out, size_t run, size_t at, pare_err *err);
    void (*close)(void *self, pare_run_parts *parts);
} pare_run_source;

typedef struct pare_spread {
    size_t n;
    double mean, std; /* std: with n - 1; 0 for one run; nan for none */
} pare_spread;

typedef struct pare_runs_result {
    size_t runs, settings;
    pare_train_result *each; /* settings x runs; one that diverged before its first mark has
                                diverged, best_step 0 and val nan */
    pare_spread *val, *test; /* per setting, over the runs that have a mark */
    size_t setting;          /* the best mean validation; one with a run that diverged comes after
                                all that have none; the first among equals */
    size_t best;             /* its run with the best validation, of those that did not diverge
                                while there is one */
    pare_arena *arena;
} pare_runs_result;

/* runs >= 1, settings >= 1. Afterwards *out (caller frees; may be NULL: not wanted) is the model of
 * the best run and *result (caller frees) is the same on every rank. PARE_ERR_NUMERIC when no run
 * came to a mark; any other failure of a run is a failure of all, and the first by number is told.
 */
PARE_MUST_USE pare_status pare_runs(pare_model **out, pare_runs_result **result,
                                    const pare_run_source *source, size_t runs, size_t settings,
                                    const pare_exec *exec, const pare_ranks *ranks, pare_err *err);
void pare_runs_free(pare_runs_result *r); /* accepts NULL */

/* All pairs of learning rates and epochs, learning rates outermost: nlr x nepochs in the arena. */
PARE_MUST_USE pare_status pare_grid(pare_setting **out, pare_arena *a, const double *lr, size_t nlr,
                                    const uint64_t *epochs, size_t nepochs, pare_err *err);
#endif
