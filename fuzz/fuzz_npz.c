/* .npz, as it is and with its checksums made true: every member that is given out is in memory. */
#include "fuzz.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

static void read_all(const uint8_t *data, size_t size)
{
    pare_arena *const a = pare_arena_new();
    pare_npz *z = NULL;
    pare_err err = {0};
    double sum = 0;
    FUZZ_EXPECT(a);
    fuzz_file("x.npz", data, size);
    const pare_status st = pare_npz_open(&z, a, "x.npz", &err);
    fuzz_expect_said(st, &err);
    for (size_t i = 0; !st && i < pare_npz_count(z); i++) {
        pare_array x;
        FUZZ_EXPECT(pare_npz_has(z, pare_npz_name(z, i)));
        const pare_status got = pare_npz_get(&x, z, pare_npz_name(z, i), &err);
        fuzz_expect_said(got, &err);
        for (size_t k = 0; !got && x.dtype != PARE_TEXT && k < pare_array_count(&x); k++)
            sum += pare_array_f64(&x, k);
    }
    FUZZ_EXPECT(sum != 0.123); /* so that the elements are really read */
    pare_npz_close(z);
    fuzz_no_files();
    pare_arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *const copy = malloc(size ? size : 1);
    FUZZ_EXPECT(copy);
    if (size) memcpy(copy, data, size);
    read_all(copy, size);
    if (fuzz_reseal_npz(copy, size)) read_all(copy, size);
    free(copy);
    return 0;
}
