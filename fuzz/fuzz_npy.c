/* .npy: an array that is read has all its elements in memory, and its header is written so that
 * it reads the same again. */
#include "base/array.h"
#include "fuzz.h"
#include "../src/base/npy.h"

#include <string.h>

static void same_header_again(const pare_array *x)
{
    char buf[PARE_NPY_HEADER_MAX];
    size_t bytes = 0;
    pare_err err = {0};
    pare_npy_header h;
    if (x->dtype == PARE_TEXT || pare_array_count(x) != 0) return; /* no data behind the header */
    FUZZ_EXPECT(pare_npy_header_print(buf, &bytes, x, &err) == PARE_OK);
    FUZZ_EXPECT(pare_npy_header_parse(&h, (const uint8_t *)buf, bytes, &err) == PARE_OK);
    FUZZ_EXPECT(h.dtype == x->dtype && h.ndim == x->ndim && !h.fortran && !h.swap);
    FUZZ_EXPECT(memcmp(h.shape, x->shape, x->ndim * sizeof *x->shape) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pare_arena *const a = pare_arena_new();
    pare_array x;
    pare_err err = {0};
    double sum = 0;
    FUZZ_EXPECT(a);
    fuzz_file("x.npy", data, size);
    const pare_status st = pare_npy_read(&x, a, "x.npy", &err);
    fuzz_expect_said(st, &err);
    if (!st && x.dtype != PARE_TEXT)
        for (size_t i = 0; i < pare_array_count(&x); i++)
            sum += pare_array_f64(&x, i) + (double)pare_array_i64(&x, i);
    if (!st) same_header_again(&x);
    fuzz_no_files();
    pare_arena_free(a);
    FUZZ_EXPECT(sum != 0.123); /* so that the elements are really read */
    return 0;
}
