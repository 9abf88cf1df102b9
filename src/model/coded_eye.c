/* Identities side by side: what joins merged heads, whose matrices are already multiplied. */
#include "coded.h"

#define EYE_MOST (UINT64_C(1) << 28) /* entries: this kind has no body that would bound them */

pare_status coded_eye_expand(float **out, pare_arena *a, const pare_coded_head *h,
                             const coded_body *body, pare_arena *scratch, pare_err *err)
{
    (void)scratch;
    if (h->cols % h->rows != 0 || (uint64_t)h->rows * h->cols > EYE_MOST || body->bytes != 0 ||
        h->flags != 0 || h->n != 0 || h->exponent != 0)
        return pare_fail(err, PARE_ERR_INPUT, "identities of %zu x %zu make no sense", h->rows,
                         h->cols);
    const pare_status st = coded_numbers(out, a, h, err);
    for (size_t i = 0; !st && i < h->rows; i++)
        for (size_t j = i; j < h->cols; j += h->rows) (*out)[i * h->cols + j] = 1;
    return st;
}

pare_status pare_coded_eye(pare_coded *out, pare_arena *a, size_t rows, size_t cols, pare_err *err)
{
    const pare_coded_head h = {.kind = PARE_CODED_EYE, .rows = rows, .cols = cols};
    const coded_body none = {NULL, 0};
    PARE_ASSERT(rows > 0 && cols % rows == 0 && (uint64_t)rows * cols <= EYE_MOST);
    return coded_frame(out, a, &h, &none, err);
}
