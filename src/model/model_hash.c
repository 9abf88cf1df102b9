/* model_hash.c - one hash over everything a model is: its architecture and every weight. */
#include "base/support.h"
#include "arch.h"
#include "shared_rows.h"
#include <string.h>

static pare_status add_weight(void *self, const char *name, pare_weight *w, bool vector,
                              pare_err *err)
{
    pare_sha256 *const h = self;
    if (w->dtype == PARE_U8 && pare_has(w))
        return pare_fail(err, PARE_ERR_INPUT,
                         "tensor %s was loaded packed, to be run: it has no hash", name);
    const uint64_t facts[4] = {pare_has(w), w->dtype == PARE_F64, w->rows, w->cols};
    (void)vector;
    pare_sha256_add(h, name, strlen(name) + 1);
    pare_sha256_add(h, facts, sizeof facts);
    if (pare_has(w)) pare_sha256_add(h, w->data, w->rows * w->cols * pare_dtype_size(w->dtype));
    return PARE_OK;
}

pare_status pare_model_sha256(char hex[PARE_SHA256_HEX], const pare_model *m, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    char *arch = NULL;
    pare_sha256 h;
    pare_status st = a ? arch_write(&arch, a, m, err) : pare_no_memory(err);
    if (!st) st = pare_sha256_begin(&h, err);
    if (!st) {
        pare_sha256_add(&h, arch, strlen(arch) + 1);
        /* The visitor hands out mutable weights; hashing does not touch them. */
        st = pare_model_each_weight((pare_model *)m, add_weight, &h, err);
        if (m->embedding.rows) {
            const uint8_t *const bits = pare_shared_bits(a, &m->embedding);
            if (bits) pare_sha256_add(&h, bits, pare_shared_bytes(&m->embedding));
            if (!bits && !st) st = pare_no_memory(err);
        }
        if (m->vocab) pare_sha256_add(&h, m->vocab, m->vocab_bytes);
        pare_sha256_end(&h, hex);
    }
    pare_arena_free(a);
    return st;
}
