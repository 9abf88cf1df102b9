/* ticket_codec.c - the frame of a ticket: kind, size, and a checksum of all bytes. */
#include "ticket_codec.h"
#include <string.h>
#include <zlib.h>

static const char MAGIC[8] = {'P', 'A', 'R', 'E', 'T', 'K', 'T', '1'};

/* ---- bytes and bits -------------------------------------------------------------------------- */

void put_u32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(v >> (8 * i));
}

void put_u64(uint8_t *to, uint64_t v)
{
    for (int i = 0; i < 8; i++) to[i] = (uint8_t)(v >> (8 * i));
}

uint32_t get_u32(const uint8_t *from)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) v |= (uint32_t)from[i] << (8 * i);
    return v;
}

uint64_t get_u64(const uint8_t *from)
{
    return get_u32(from) | (uint64_t)get_u32(from + 4) << 32;
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

pare_status ticket_frame(pare_coded *out, pare_arena *a, const pare_coded_head *h,
                         const ticket_body *body, pare_err *err)
{
    const size_t bytes = TICKET_HEADER_BYTES + body->bytes + TICKET_CHECKSUM_BYTES;
    uint8_t *const to = pare_alloc(a, bytes, 1);
    if (!to) return pare_no_memory(err);
    PARE_ASSERT(h->rows <= UINT32_MAX && h->cols <= UINT32_MAX && h->n <= UINT32_MAX);
    memcpy(to, MAGIC, sizeof MAGIC);
    put_u32(to + 8, (uint32_t)h->kind);
    put_u32(to + 12, h->flags);
    put_u64(to + 16, h->seed);
    put_u64(to + 24, h->stream);
    put_u32(to + 32, (uint32_t)h->rows);
    put_u32(to + 36, (uint32_t)h->cols);
    put_u32(to + 40, (uint32_t)h->n);
    put_u32(to + 44, (uint32_t)h->exponent);
    if (body->bytes) memcpy(to + TICKET_HEADER_BYTES, body->data, body->bytes);
    put_u32(to + bytes - TICKET_CHECKSUM_BYTES, checksum(to, bytes - TICKET_CHECKSUM_BYTES));
    out->data = to;
    out->bytes = bytes;
    return PARE_OK;
}

pare_status ticket_new_weight(float **out, pare_arena *a, const pare_coded_head *h, pare_err *err)
{
    size_t cells;
    *out = pare_mul(&cells, h->rows, h->cols) ? pare_alloc(a, cells, sizeof **out) : NULL;
    return *out ? PARE_OK : pare_no_memory(err);
}

pare_coded_head ticket_head(const uint8_t *data)
{
    return (pare_coded_head){.kind = (pare_coded_kind)get_u32(data + 8),
                             .flags = get_u32(data + 12),
                             .seed = get_u64(data + 16),
                             .stream = get_u64(data + 24),
                             .rows = get_u32(data + 32),
                             .cols = get_u32(data + 36),
                             .n = get_u32(data + 40),
                             .exponent = (int32_t)get_u32(data + 44)};
}

const char *const pare_coded_suffixes[] = {".ticket", ".quant", NULL};

const char *pare_coded_suffix(const pare_coded *c)
{
    PARE_ASSERT(c->bytes >= TICKET_HEADER_BYTES);
    return pare_coded_suffixes[ticket_head(c->data).kind == PARE_CODED_GROUPS];
}

static ticket_expand_fn *const expanders[] = {
    [PARE_CODED_FACTORED] = ticket_expand_factored, [PARE_CODED_IDENTITY] = ticket_expand_identity,
    [PARE_CODED_POPUP] = ticket_expand_popup,       [PARE_CODED_RELU] = ticket_expand_factored,
    [PARE_CODED_TRELLIS] = ticket_expand_trellis,   [PARE_CODED_GROUPS] = coded_expand_groups,
    [PARE_CODED_SEEDS] = coded_expand_seeds};

static ticket_expand_fn *expander_of(size_t kind)
{
    return kind < sizeof expanders / sizeof *expanders ? expanders[kind] : NULL;
}

pare_status pare_coded_expand(pare_weight *out, pare_coded_head *head, pare_arena *a,
                              const uint8_t *data, size_t bytes, size_t most, pare_err *err)
{
    if (bytes < TICKET_HEADER_BYTES + TICKET_CHECKSUM_BYTES)
        return pare_fail(err, PARE_ERR_INPUT, "a ticket of %zu bytes: too short", bytes);
    if (memcmp(data, MAGIC, sizeof MAGIC - 1) != 0)
        return pare_fail(err, PARE_ERR_INPUT, "not a ticket: it does not begin with PARETKT");
    if (data[7] != MAGIC[7])
        return pare_fail(err, PARE_ERR_INPUT, "a ticket of version %c, this program reads %c",
                         data[7] >= ' ' && data[7] <= '~' ? data[7] : '?', MAGIC[7]);
    const uint32_t claimed = get_u32(data + bytes - TICKET_CHECKSUM_BYTES);
    const uint32_t is = checksum(data, bytes - TICKET_CHECKSUM_BYTES);
    if (claimed != is)
        return pare_fail(err, PARE_ERR_INPUT,
                         "a ticket that was changed or cut: its checksum says %08x, its bytes %08x",
                         claimed, is);
    const pare_coded_head h = ticket_head(data);
    if (h.rows == 0 || h.cols == 0 || (uint64_t)h.rows * h.cols > TICKET_MAX_ENTRIES)
        return pare_fail(err, PARE_ERR_INPUT,
                         "a ticket of %zu x %zu entries: from 1 to 2^40 are possible", h.rows,
                         h.cols);
    if (h.exponent < -64 || h.exponent > 64)
        return pare_fail(err, PARE_ERR_INPUT, "a ticket's scale 2^%d: from -64 to 64 are possible",
                         h.exponent);
    if (h.kind == PARE_CODED_IDENTITY && (uint64_t)h.rows * h.cols > most)
        return pare_fail(err, PARE_ERR_INPUT,
                         "identities of %zu x %zu: more entries than a file of this size can hold",
                         h.rows, h.cols);
    if (!expander_of((size_t)h.kind))
        return pare_fail(err, PARE_ERR_INPUT, "a ticket of kind %d: not one of this program",
                         (int)h.kind);
    if (head) *head = h;
    if (!out) return PARE_OK;
    const ticket_body body = {data + TICKET_HEADER_BYTES,
                              bytes - TICKET_HEADER_BYTES - TICKET_CHECKSUM_BYTES};
    pare_arena *const scratch = pare_arena_new();
    float *to = NULL;
    const pare_status st = scratch ? expander_of((size_t)h.kind)(&to, a, &h, &body, scratch, err)
                                   : pare_no_memory(err);
    pare_arena_free(scratch);
    if (st) return st;
    *out = (pare_weight){PARE_F32, h.rows, h.cols, to};
    return PARE_OK;
}
