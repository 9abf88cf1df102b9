/* A file of ours, its seal made true after every mutation: what loads also runs and folds. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return fuzz_mutate_safetensors(data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *const copy = malloc(size ? size : 1);
    pare_model *m = NULL;
    pare_err err = {0};
    FUZZ_EXPECT(copy);
    if (size) memcpy(copy, data, size);
    fuzz_reseal_model(copy, size);
    fuzz_file("m", copy, size);
    const pare_status st = pare_model_load(&m, "m", &err);
    fuzz_expect_said(st, &err);
    FUZZ_EXPECT((st == PARE_OK) == (m != NULL));
    if (m) fuzz_run_model(m);
    pare_model_free(m);
    fuzz_no_files();
    free(copy);
    return 0;
}
