/* Rows of a pass that several processes make together: whole ranges go to a rank, so that what
 * becomes of a row does not depend on who takes it through, nor on how many there are. */
#include "forward_ranks.h"

size_t first_of_rank(size_t ranges, const pare_ranks *ranks, size_t rank)
{
    return ranges * rank / pare_ranks_size(ranks);
}

pare_status trade_rows(const rows *x, size_t size, const pare_ranks *ranks, pare_err *err)
{
    const size_t bytes = x->d * pare_dtype_size(x->t), ranges = (x->n + size - 1) / size;
    pare_status st = PARE_OK;
    for (size_t r = 0; !st && r < pare_ranks_size(ranks); r++) {
        const size_t first = first_of_rank(ranges, ranks, r) * size;
        const size_t after = first_of_rank(ranges, ranks, r + 1) * size;
        const size_t end = after < x->n ? after : x->n;
        st = pare_ranks_bcast(ranks, (char *)x->v + first * bytes, (end - first) * bytes, r, err);
    }
    return st;
}
