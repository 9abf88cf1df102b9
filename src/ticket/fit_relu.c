/* fit_relu.c - two layers of a ReLU source for one layer (Otsuka 2025, Lemma 2, made explicit;
 * docs/theory/ticket.md "ReLU layers (Lemma 2)").
 *
 *   W x  ~  scale (A o MA) relu((B o MB) x)         W o x d, A o x n, B n x d: source integers
 *
 * A unit that reads x_j alone passes B_kj x_j+ on where B_kj > 0, and |B_kj| x_j- where B_kj < 0.
 * With x = x+ - x- the two layers are therefore [W+, W-] (x+, x-), and what is wanted is
 *   [W, -W]  ~  scale (A o MA) (S o MS),   S = [max(B, 0), max(-B, 0)]   (n x 2 d)
 * with one 1 in each row of MS: the ordinary question, two subset sums for an entry of W, each
 * over units of its sign. Behind another ReLU no input is negative, the second half is not
 * needed, and the units of every column come from the whole pool: n / d of them and not n / (2
 * d). Donors have no meaning: two inputs of one unit do not separate. Choosing units by sign and
 * size, more units for the worst column and the scale do (fit_best.c, ticket_matrix.c). A bias
 * is one more such matrix, of one column, whose input is 1: units with a positive bias and no
 * input. */
#include "fit.h"

pare_status fit_relu_sides(const int32_t **out, pare_arena *a, const int32_t *B, size_t n,
                           size_t inputs, bool signs, pare_err *err)
{
    const size_t b = signs ? 2 * inputs : inputs;
    int32_t *const s = pare_alloc(a, n * b + 1, sizeof *s);
    *out = s;
    if (!s) return pare_no_memory(err);
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; j < inputs; j++) {
            const int32_t w = B[k * inputs + j];
            if (w > 0) s[k * b + j] = w;
            if (w < 0 && signs) s[k * b + inputs + j] = -w;
        }
    return PARE_OK;
}

pare_status fit_relu_block(fit_result *out, pare_arena *a, const fit_problem *p,
                           const pare_exec *exec, pare_err *err)
{
    const size_t each = p->n / p->inputs;
    uint32_t *const own = pare_alloc(a, p->n + 1, sizeof *own);
    if (!own) return pare_no_memory(err);
    for (size_t k = 0; k < p->n; k++) own[k] = PARE_NO_COLUMN;
    for (size_t k = 0; k < each * p->inputs; k++)
        for (size_t j = k / each; j < p->b; j += p->inputs)
            if (p->B[k * p->b + j] != 0) own[k] = (uint32_t)j;
    return fit_assigned(out, a, p, own, exec, err);
}
