/* The container: whatever the header claims, every tensor lies inside the file. */
#include "fuzz.h"
#include "../src/model/safetensors.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return fuzz_mutate_safetensors(data, size, max_size, seed);
}

static void look_at(const st_file *f, const uint8_t *end)
{
    for (size_t i = 0; i < f->n; i++) {
        const st_tensor *const t = &f->tensors[i];
        FUZZ_EXPECT(st_find(f, t->name) == t);
        FUZZ_EXPECT(t->begin <= t->end && t->end <= f->data_bytes);
        FUZZ_EXPECT(t->begin == t->end || t->data + (t->end - t->begin) <= end);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pare_arena *const a = pare_arena_new();
    pare_blob blob = {.data = data, .bytes = size, .path = (char *)(uintptr_t) "m", .refs = 1};
    pare_err err = {0};
    st_file file = {0};
    FUZZ_EXPECT(a);
    (void)st_looks_like(&blob);
    const pare_status st = st_open(&file, a, &blob, &err);
    fuzz_expect_said(st, &err);
    if (!st) look_at(&file, data + size);
    pare_arena_free(a);
    return 0;
}
