/* Identities side by side: what joins merged heads, whose matrices are already multiplied. Or an
 * identity above its negative, which is twice as high as wide: behind a ReLU it tells the signs of
 * its inputs apart. */
#include "ticket_codec.h"

#define EYE_MOST (UINT64_C(1) << 28) /* entries */

static bool has_shape(size_t rows, size_t cols)
{
    return (uint64_t)rows * cols <= EYE_MOST && (cols % rows == 0 || rows == 2 * cols);
}

pare_status coded_eye_expand(float **out, pare_arena *a, const pare_coded_head *h,
                             const coded_body *body, pare_arena *scratch, pare_err *err)
{
    (void)scratch;
    if (!has_shape(h->rows, h->cols) || body->bytes != 0)
        return pare_fail(err, PARE_ERR_INPUT, "identities of %zu x %zu make no sense", h->rows,
                         h->cols);
    if (h->flags || h->seed || h->stream || h->n || h->exponent)
        return pare_fail(err, PARE_ERR_INPUT,
                         "identities with flags, a seed, a stream, units or a scale: they draw "
                         "nothing, all must be 0");
    const pare_status st = coded_numbers(out, a, h, err);
    for (size_t i = 0; !st && i < h->rows; i++)
        for (size_t j = i % h->cols; j < h->cols; j += h->rows)
            (*out)[i * h->cols + j] = i < h->cols ? 1 : -1;
    return st;
}

pare_status pare_coded_eye(pare_coded *out, pare_arena *a, size_t rows, size_t cols, pare_err *err)
{
    const pare_coded_head h = {.kind = PARE_CODED_EYE, .rows = rows, .cols = cols};
    const coded_body none = {NULL, 0};
    PARE_ASSERT(rows > 0 && has_shape(rows, cols));
    return coded_frame(out, a, &h, &none, err);
}
