/* ticket_identity.c - identities side by side, the output projection of merged heads, whose
 * matrices are already multiplied; or an identity above its negative, which in front of a ReLU
 * splits an input into its positive and its negative part. */
#include "ticket_codec.h"

#define IDENTITY_MAX_ENTRIES (UINT64_C(1) << 28) /* entries */

static bool has_shape(size_t rows, size_t cols)
{
    return (uint64_t)rows * cols <= IDENTITY_MAX_ENTRIES && (cols % rows == 0 || rows == 2 * cols);
}

pare_status ticket_expand_identity(float **out, pare_arena *a, const pare_coded_head *h,
                                   const ticket_body *body, pare_arena *scratch, pare_err *err)
{
    (void)scratch;
    if (!has_shape(h->rows, h->cols) || body->bytes != 0)
        return pare_fail(err, PARE_ERR_INPUT, "identities of %zu x %zu make no sense", h->rows,
                         h->cols);
    if (h->flags || h->seed || h->stream || h->n || h->exponent)
        return pare_fail(err, PARE_ERR_INPUT,
                         "identities with flags, a seed, a stream, units or a scale: they draw "
                         "nothing, all must be 0");
    const pare_status st = ticket_new_weight(out, a, h, err);
    for (size_t i = 0; !st && i < h->rows; i++)
        for (size_t j = i % h->cols; j < h->cols; j += h->rows)
            (*out)[i * h->cols + j] = i < h->cols ? 1 : -1;
    return st;
}

pare_status pare_coded_identity(pare_coded *out, pare_arena *a, size_t rows, size_t cols,
                                pare_err *err)
{
    const pare_coded_head h = {.kind = PARE_CODED_IDENTITY, .rows = rows, .cols = cols};
    const ticket_body none = {NULL, 0};
    PARE_ASSERT(rows > 0 && has_shape(rows, cols));
    return ticket_frame(out, a, &h, &none, err);
}
