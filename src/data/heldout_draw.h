/* heldout_draw.h - the one rule for held-out data: which inputs of a file are held out.
 *
 * What is drawn are inputs; of a text with PARE_FEWEST_DOCUMENTS documents or more (each begins an
 * input that continues no other) whole documents, so that no held-out window has a neighbor among
 * the fitted ones. The seed permutes them, before any is looked at. The first of the permutation are
 * held out: as many as are asked for, but at most a quarter of the file (one at least), or all of a
 * file that is there for nothing else. The rest is for fitting. A file with one input is both; so
 * are graphs, whose test masks hold out nodes. */
#ifndef PARE_DATA_HELDOUT_DRAW_H
#define PARE_DATA_HELDOUT_DRAW_H
#include <pare/data.h>

enum { PARE_FEWEST_DOCUMENTS = 16, PARE_HELDOUT_SHARE = 4 };

typedef struct pare_heldout_draw {
    size_t n;            /* documents or inputs that were drawn from, ... */
    bool documents;      /* ... documents of several inputs among them */
    const size_t *first; /* n + 1: drawn thing u is inputs first[u] to first[u + 1] - 1 */
    const size_t *order; /* n: the permutation; of graphs the order of the file */
    size_t held;         /* the first so many of it are held out */
} pare_heldout_draw;

/* alone: the file holds nothing but held-out inputs; want SIZE_MAX: all of them are, as they come. In
 * the arena. */
PARE_MUST_USE pare_status pare_heldout_draw_make(pare_heldout_draw *out, pare_arena *a,
                                                 const pare_inputs *all, size_t want, bool alone,
                                                 uint64_t seed, pare_err *err);
/* The inputs of places [from, from + count) of the permutation: their numbers in the file. Of each
 * document its first input alone, or all. */
PARE_MUST_USE pare_status pare_heldout_numbers(size_t **numbers, size_t *n, pare_arena *a,
                                               const pare_heldout_draw *d, size_t from,
                                               size_t count, bool first_alone, pare_err *err);
/* What is proven on: the inputs of the first `count` places, of each document its first, ascending. It
 * depends on the seed, the file and the count alone: verifying draws them again. */
PARE_MUST_USE pare_status pare_heldout_proven(size_t **numbers, size_t *n, pare_arena *a,
                                              const pare_heldout_draw *d, size_t count,
                                              pare_err *err);
/* Those inputs of a data set, with their targets. */
PARE_MUST_USE pare_status pare_dataset_pick(pare_dataset *out, pare_arena *a, const pare_dataset *d,
                                            const size_t *numbers, size_t n, pare_err *err);
#endif
