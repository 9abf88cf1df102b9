/* ticket_bounds.h - what is proven about a ticket.
 *
 * A ticket, once loaded, is an ordinary model g beside its target f: the same blocks, heads that
 * pair up one by one (of any dk and dv: merged heads compute with c Wq^T Wk and Wo Wv themselves),
 * the same norms, positions and pattern. Every statement is a function of (f, g, inputs); nobody
 * asks how g was found. Norms of rows are euclidean; alpha bounds the length of every token. */
#ifndef PARE_TICKET_TICKET_BOUNDS_H
#define PARE_TICKET_TICKET_BOUNDS_H
#include <pare/ticket.h>

/* ---- one attention layer (bound_free.c, bound_rows.c, bound_paper.c) ------------------------- */

/* Theorem C: the same for the rows x (n x din, one sequence) and the model's pattern (graph: the
 * completed one; else NULL), row by row into out (n). An empty row has 0 in both. */
PARE_MUST_USE pare_status pare_ticket_rows_bound(pare_ub *out, const pare_model *f,
                                                 const pare_model *g, size_t b, const pare_mat *x,
                                                 const pare_graph *graph, const pare_exec *exec,
                                                 pare_err *err);

/* ---- blocks and models (model_bound.c) ------------------------------------------------------- */

/* For all inputs whose rows have length at most alpha (ids: all token sequences, alpha is not
 * read). alpha not positive and finite: nothing is said. */
PARE_MUST_USE pare_status pare_ticket_bound_free(pare_ticket_bound *out, const pare_model *f,
                                                 const pare_model *g, double alpha,
                                                 const pare_exec *exec, pare_err *err);

/* ---- how many units an entry needs (required_units.c) ---------------------------------------- */

/* What a weight's generator costs: the lattice of 2^24 values is coupled to the density that the
 * lemma is about by moving n' products by less than 2^-23 each. A statement with an error at or
 * below n' 2^-23 is not proven for this generator. */
double pare_ticket_coupling(size_t units);

/* Lemma S: with n' products of two independent U[-1, 1] an entry of size at most `reach` is met
 * within `eta` with probability at least 1 - p, whatever the entry. The least n' the lemma gives,
 * coupling included; 0: the statement is refused (eta is not above the coupling). */
pare_ticket_need pare_ticket_units(double eta, double p, double reach);

/* Theorem 3, mended: one layer of H heads, d1 -> d2, tokens of length alpha, |V_h| <= omega,
 * entries of G_h and V_h at most rq, rv: error at most eps with probability 1 - p. */
pare_ticket_plan pare_ticket_plan_layer(const pare_ticket_layer_size *s, double eps, double p);

/* ---- what no construction can do without (counting_bound.c) ---------------------------------- */

/* Masks of n units over an a x b matrix of rank at most k: 2^(n (a + b)) pairs must cover a cube of
 * side 2 r in as many dimensions as such matrices have with balls of radius eta, at one source and
 * scale: n >= (a k + k b - k^2) log2(r / eta) / (a + b). Full rank: k = min(a, b). */
double pare_ticket_least_units(size_t a, size_t b, size_t rank, double r, double eta);
#endif
