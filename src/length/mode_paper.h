/* mode_paper.h - the algorithm of Yu 2025: one head, its calls, and the parts of its rows. */
#ifndef PARE_LENGTH_MODE_PAPER_H
#define PARE_LENGTH_MODE_PAPER_H
#include "instances.h"
#include "modes.h"

#define NONE UINT32_MAX /* a token without a query, or without a key */

typedef enum ask_kind {
    MASS, /* dominating token, value 1: the share r of the keys */
    MEAN, /* the plain call */
    SUM   /* dominating token, values */
} ask_kind;

typedef struct paper_run {
    length_run *r;
    head_state *h;
    pare_dtype type;
    double c, scale; /* C, e^(C-1) */
    instance *list;
    size_t count, room;
    pare_arena *a; /* of the calls under way */
    size_t most;   /* parts of a row */
    double *b, *s; /* parts: n x most x dv, n x most */
    uint32_t *parts;
} paper_run;

/* x as the oracle's type holds it. */
double paper_typed(const paper_run *p, double x);
/* One more call on tokens (q, k); its number is *at. The dominating token comes first where calls
 * are causal, else last. */
PARE_MUST_USE pare_status paper_ask(paper_run *p, const uint32_t *q, const uint32_t *k, uint32_t n,
                                    ask_kind kind, size_t *at);
/* All that was asked, and then no longer. */
PARE_MUST_USE pare_status paper_run_asked(paper_run *p);
void paper_forget(paper_run *p, pare_mark mark);
/* Column c of token i of a call. */
double paper_answer(const paper_run *p, size_t call, size_t i, size_t c);
/* S = e^(C-1) r, or the exact inverse r / (1 - r). */
double paper_mass(const paper_run *p, double share);
/* One more part of row i: S; S o is to be written. */
double *paper_part(paper_run *p, size_t i, double s);

/* The parts of every row: of pairs of blocks, of windows; then their sums and the division. */
PARE_MUST_USE pare_status paper_pairs(paper_run *p);
PARE_MUST_USE pare_status paper_windows(paper_run *p);
PARE_MUST_USE pare_status paper_aggregate(paper_run *p);
#endif
