/* shared_rows.c - tokens that share one row of the embedding: the bits of files, and both ways between
 * a whole table and a shared one. */
#include "shared_rows.h"
#include "base/support.h"
#include <string.h>

uint8_t *pare_shared_bits(pare_arena *a, const pare_embedding *s)
{
    uint8_t *const bits = pare_alloc(a, pare_shared_bytes(s), 1);
    for (size_t id = 0; bits && id < s->vocab; id++)
        if (pare_token_shares(s, id)) bits[id / 8] |= (uint8_t)(1u << id % 8);
    return bits;
}

pare_status pare_shared_rows_read(const uint32_t **out, pare_arena *a, const uint8_t *bits,
                                  size_t bytes, size_t vocab, size_t table_rows, pare_err *err)
{
    size_t own = 0;
    if (bytes != vocab / 8 + (vocab % 8 != 0) || vocab > UINT32_MAX)
        return pare_fail(err, PARE_ERR_INPUT,
                         "tensor %s has %zu bytes, must have a bit for each of %zu tokens",
                         PARE_SHARED_TENSOR, bytes, vocab);
    if (vocab % 8 && bits[bytes - 1] >> vocab % 8)
        return pare_fail(err, PARE_ERR_INPUT, "tensor %s: the bits behind the last token must be 0",
                         PARE_SHARED_TENSOR);
    for (size_t id = 0; id < vocab; id++) own += !(bits[id / 8] >> id % 8 & 1);
    if (vocab - own < 2 || table_rows != own + 1)
        return pare_fail(err, PARE_ERR_INPUT,
                         "tensor %s: %zu of %zu tokens share a row, and the embedding has %zu rows: "
                         "must be two tokens at least, and a row more than other tokens",
                         PARE_SHARED_TENSOR, vocab - own, vocab, table_rows);
    uint32_t *const rows = pare_alloc(a, vocab, sizeof *rows);
    if (!rows) return pare_no_memory(err);
    uint32_t next = 0;
    for (size_t id = 0; id < vocab; id++)
        rows[id] = bits[id / 8] >> id % 8 & 1 ? (uint32_t)own : next++;
    *out = rows;
    return PARE_OK;
}

pare_status pare_model_expand_rows(pare_model *m, pare_err *err)
{
    pare_embedding *const s = &m->embedding;
    size_t count, row = s->width * pare_dtype_size(s->table.dtype);
    if (!s->rows) return PARE_OK;
    uint8_t *const all = pare_mul(&count, s->vocab, s->width)
                             ? pare_alloc(m->arena, count, pare_dtype_size(s->table.dtype))
                             : NULL;
    if (!all) return pare_no_memory(err);
    for (size_t id = 0; id < s->vocab; id++)
        memcpy(all + id * row, (const uint8_t *)s->table.data + s->rows[id] * row, row);
    s->table = (pare_weight){s->table.dtype, s->vocab, s->width, all};
    s->rows = NULL;
    return PARE_OK;
}

pare_status pare_model_share(pare_model *m, const bool *shares, const void *row, pare_err *err)
{
    pare_embedding *const s = &m->embedding;
    const size_t size = s->width * pare_dtype_size(s->table.dtype);
    size_t own = 0;
    for (size_t id = 0; id < s->vocab; id++) own += !shares[id];
    PARE_ASSERT(!s->rows && s->vocab - own >= 2 && s->vocab <= UINT32_MAX);
    /* No overflow: a larger table is in memory. */
    uint8_t *const table = pare_alloc(m->arena, (own + 1) * size, 1);
    uint32_t *const rows = pare_alloc(m->arena, s->vocab, sizeof *rows);
    if (!table || !rows) return pare_no_memory(err);
    uint32_t next = 0;
    memcpy(table + own * size, row, size);
    for (size_t id = 0; id < s->vocab; id++) {
        rows[id] = shares[id] ? (uint32_t)own : next;
        if (shares[id]) continue;
        memcpy(table + next++ * size, (const uint8_t *)s->table.data + id * size, size);
    }
    s->table = (pare_weight){s->table.dtype, own + 1, s->width, table};
    s->rows = rows;
    return PARE_OK;
}

pare_status pare_model_share_like(pare_model *m, const pare_model *like, pare_err *err)
{
    pare_embedding *const s = &m->embedding;
    const pare_embedding *const t = &like->embedding;
    const size_t size = s->width * pare_dtype_size(s->table.dtype);
    const uint8_t *row = NULL;
    if (!t->rows || s->rows || !s->ids || s->vocab != t->vocab) return PARE_OK;
    bool *const shares = pare_alloc(m->arena, s->vocab, sizeof *shares);
    if (!shares) return pare_no_memory(err);
    for (size_t id = 0; id < s->vocab; id++) {
        const uint8_t *const own = (const uint8_t *)s->table.data + id * size;
        shares[id] = pare_token_shares(t, id);
        if (shares[id] && row && memcmp(row, own, size) != 0) return PARE_OK;
        if (shares[id]) row = own;
    }
    return pare_model_share(m, shares, row, err);
}
