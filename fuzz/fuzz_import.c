/* Foreign models: a config.json (may be empty: none) and a file beside it, of any kind: tensors by
 * the names of GPT-2, Llama, BERT, per-head and graph models, llama2.c's .bin, npz. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return fuzz_mutate_parts(data, size, max_size, seed, fuzz_mutate_safetensors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const fuzz_parts p = fuzz_split(data, size);
    uint8_t *const copy = malloc(p.nb ? p.nb : 1);
    pare_model *m = NULL;
    pare_err err = {0};
    FUZZ_EXPECT(copy);
    if (p.nb) memcpy(copy, p.b, p.nb);
    if (p.nb > 1 && memcmp(copy, "PK", 2) == 0) (void)fuzz_reseal_npz(copy, p.nb);
    fuzz_file("m", copy, p.nb);
    if (p.na) fuzz_file("config.json", p.a, p.na);
    const pare_status st = pare_model_load(&m, "m", &err);
    fuzz_expect_said(st, &err);
    FUZZ_EXPECT((st == PARE_OK) == (m != NULL));
    if (m) fuzz_run_model(m);
    pare_model_free(m);
    fuzz_no_files();
    free(copy);
    return 0;
}
