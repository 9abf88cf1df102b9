/* The frame of a coded weight: who it is, how large, and that no byte has changed. */
#include "ticket_codec.h"
#include <string.h>
#include <zlib.h>

static const char MAGIC[8] = {'P', 'A', 'R', 'E', 'T', 'K', 'T', '1'};

/* ---- bytes and bits -------------------------------------------------------------------------- */

void coded_put32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(v >> (8 * i));
}

void coded_put64(uint8_t *to, uint64_t v)
{
    for (int i = 0; i < 8; i++) to[i] = (uint8_t)(v >> (8 * i));
}

uint32_t coded_get32(const uint8_t *from)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) v |= (uint32_t)from[i] << (8 * i);
    return v;
}

uint64_t coded_get64(const uint8_t *from)
{
    return coded_get32(from) | (uint64_t)coded_get32(from + 4) << 32;
}

uint64_t bits_get(bit_reader *r, unsigned count)
{
    uint64_t v = 0;
    if (count > r->bits - r->at) {
        r->over = true;
        return 0;
    }
    for (unsigned got = 0; got < count;) {
        const unsigned in = (unsigned)(r->at % 8);
        const unsigned some = count - got < 8 - in ? count - got : 8 - in;
        v |= ((uint64_t)(r->data[r->at / 8] >> in) & ((1u << some) - 1)) << got;
        got += some;
        r->at += some;
    }
    return v;
}

void bits_put(bit_writer *w, uint64_t v, unsigned count)
{
    for (unsigned put = 0; put < count;) {
        const unsigned in = (unsigned)(w->at % 8);
        const unsigned some = count - put < 8 - in ? count - put : 8 - in;
        w->data[w->at / 8] |= (uint8_t)((v >> put & ((1u << some) - 1)) << in);
        put += some;
        w->at += some;
    }
}

pare_bits pare_bits_new(pare_arena *a, size_t rows, size_t cols)
{
    pare_bits m = {rows, cols, (cols + 63) / 64, NULL};
    size_t cells;
    if (pare_mul(&cells, rows, m.words)) m.v = pare_alloc(a, cells ? cells : 1, sizeof *m.v);
    return m;
}

/* ---- the frame ------------------------------------------------------------------------------- */

static uint32_t checksum(const uint8_t *data, size_t bytes)
{
    return (uint32_t)crc32_z(0, data, bytes);
}

pare_status coded_frame(pare_coded *out, pare_arena *a, const pare_coded_head *h,
                        const coded_body *body, pare_err *err)
{
    const size_t bytes = CODED_HEAD + body->bytes + CODED_TAIL;
    uint8_t *const to = pare_alloc(a, bytes, 1);
    if (!to) return pare_no_memory(err);
    PARE_ASSERT(h->rows <= UINT32_MAX && h->cols <= UINT32_MAX && h->n <= UINT32_MAX);
    memcpy(to, MAGIC, sizeof MAGIC);
    coded_put32(to + 8, (uint32_t)h->kind);
    coded_put32(to + 12, h->flags);
    coded_put64(to + 16, h->seed);
    coded_put64(to + 24, h->stream);
    coded_put32(to + 32, (uint32_t)h->rows);
    coded_put32(to + 36, (uint32_t)h->cols);
    coded_put32(to + 40, (uint32_t)h->n);
    coded_put32(to + 44, (uint32_t)h->exponent);
    if (body->bytes) memcpy(to + CODED_HEAD, body->data, body->bytes);
    coded_put32(to + bytes - CODED_TAIL, checksum(to, bytes - CODED_TAIL));
    out->data = to;
    out->bytes = bytes;
    return PARE_OK;
}

static pare_status read_head(pare_coded_head *h, const uint8_t *data, size_t bytes, pare_err *err)
{
    if (bytes < CODED_HEAD + CODED_TAIL)
        return pare_fail(err, PARE_ERR_INPUT, "a ticket of %zu bytes: too short", bytes);
    if (memcmp(data, MAGIC, sizeof MAGIC - 1) != 0)
        return pare_fail(err, PARE_ERR_INPUT, "not a ticket: it does not begin with PARETKT");
    if (data[7] != MAGIC[7])
        return pare_fail(err, PARE_ERR_INPUT, "a ticket of version %c, this program reads %c",
                         data[7] >= ' ' && data[7] <= '~' ? data[7] : '?', MAGIC[7]);
    const uint32_t claimed = coded_get32(data + bytes - CODED_TAIL);
    const uint32_t is = checksum(data, bytes - CODED_TAIL);
    if (claimed != is)
        return pare_fail(err, PARE_ERR_INPUT,
                         "a ticket that was changed or cut: its checksum says %08x, its bytes %08x",
                         claimed, is);
    *h = (pare_coded_head){.kind = (pare_coded_kind)coded_get32(data + 8),
                           .flags = coded_get32(data + 12),
                           .seed = coded_get64(data + 16),
                           .stream = coded_get64(data + 24),
                           .rows = coded_get32(data + 32),
                           .cols = coded_get32(data + 36),
                           .n = coded_get32(data + 40),
                           .exponent = (int32_t)coded_get32(data + 44)};
    if (h->rows == 0 || h->cols == 0 || (uint64_t)h->rows * h->cols > CODED_MOST)
        return pare_fail(err, PARE_ERR_INPUT,
                         "a ticket of %zu x %zu entries: from 1 to 2^40 are possible", h->rows,
                         h->cols);
    if (h->exponent < -64 || h->exponent > 64)
        return pare_fail(err, PARE_ERR_INPUT, "a ticket's scale 2^%d: from -64 to 64 are possible",
                         h->exponent);
    return PARE_OK;
}

pare_status coded_numbers(float **out, pare_arena *a, const pare_coded_head *h, pare_err *err)
{
    size_t cells;
    *out = pare_mul(&cells, h->rows, h->cols) ? pare_alloc(a, cells, sizeof **out) : NULL;
    return *out ? PARE_OK : pare_no_memory(err);
}

static coded_expand_fn *expander(pare_coded_kind k)
{
    switch (k) {
    case PARE_CODED_FACTORED:
    case PARE_CODED_RELU:
        return coded_factored_expand;
    case PARE_CODED_EYE:
        return coded_eye_expand;
    case PARE_CODED_POPUP:
        return coded_popup_expand;
    }
    return NULL;
}

pare_status pare_coded_expand(pare_weight *out, pare_coded_head *head, pare_arena *a,
                              const uint8_t *data, size_t bytes, size_t most, pare_err *err)
{
    pare_coded_head h;
    pare_status st = read_head(&h, data, bytes, err);
    if (st) return st;
    if (h.kind == PARE_CODED_EYE && (uint64_t)h.rows * h.cols > most)
        return pare_fail(err, PARE_ERR_INPUT,
                         "identities of %zu x %zu: more entries than a file of this size can hold",
                         h.rows, h.cols);
    coded_expand_fn *const expand = expander(h.kind);
    if (!expand)
        return pare_fail(err, PARE_ERR_INPUT, "a ticket of kind %d: not one of this program",
                         (int)h.kind);
    const coded_body body = {data + CODED_HEAD, bytes - CODED_HEAD - CODED_TAIL};
    pare_arena *const scratch = pare_arena_new();
    float *to = NULL;
    st = scratch ? expand(&to, a, &h, &body, scratch, err) : pare_no_memory(err);
    pare_arena_free(scratch);
    if (st) return st;
    *out = (pare_weight){PARE_F32, h.rows, h.cols, to};
    if (head) *head = h;
    return PARE_OK;
}
