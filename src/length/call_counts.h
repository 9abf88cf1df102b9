/* call_counts.h - closed forms of the number of calls (docs/theory/length.md "Closed forms"). */
#ifndef PARE_LENGTH_COUNTS_H
#define PARE_LENGTH_COUNTS_H
#include "calls.h"

/* Calls of one head, merges not among them; 0 where no closed form is known: packed windows and
 * triangles, graphs, causal oracles of two rows. */
uint64_t count_formula(const call_rule *r, size_t n, const pare_pattern *p);
/* Calls of the algorithm of Yu 2025 for one head, without its aggregation; 0 where it has none. */
uint64_t count_paper(size_t n, uint32_t m, const pare_pattern *p);
/* Calls that merge `parts` partial results for each of n rows of `heads` heads, m tokens an
 * instance and `capacity` instances a call; rounds are added to. */
uint64_t count_merge(size_t n, uint32_t m, uint64_t parts, uint64_t heads, uint64_t capacity,
                     uint64_t *rounds);
/* Parts of a row in the algorithm of Yu 2025, and the calls of one head that add them up. */
size_t paper_parts(size_t n, uint32_t m, const pare_pattern *p);
uint64_t count_aggregation(size_t n, uint32_t m, uint64_t parts, uint64_t *rounds);
/* cost.d_k, d_v and d_token of the plan, whose other counts are there. `tiles`: most of
 * a call. */
void count_vectors(pare_length_plan *p, const call_rule *r, size_t tiles);
/* A token of a strict call: a slot of q | k | v for each piece, and its position's code. */
uint64_t token_width(uint64_t slot, uint64_t slots, uint32_t rows);
#endif
