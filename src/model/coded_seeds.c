/* coded_seeds.c - weights as combinations of pseudorandom columns (seeds.h).
 *
 * n is the number of weights of a block; there are no flags, no seed and no stream of the whole.
 *
 *   body:  u32 P
 *          of every block: 16 bits seed (not 0), 4 bits e, P times 4 bits q + 8, each lowest bit
 *          first, without gaps; zeros up to a whole byte */
#include "seeds.h"
#include "ticket_codec.h"
#include <math.h>

enum { PREFIX_BYTES = 4, SEED_BITS = 16, SHIFT_BITS = 4, Q_BITS = 4 };

static size_t body_bytes(size_t rows, size_t cols, size_t n, size_t columns)
{
    const size_t bits = SEED_BITS + SHIFT_BITS + Q_BITS * columns;
    return PREFIX_BYTES + (seeds_blocks(rows, cols, n) * bits + 7) / 8;
}

uint64_t pare_coded_seeds_bytes(size_t rows, size_t cols, size_t n, size_t columns)
{
    return TICKET_HEADER_BYTES + body_bytes(rows, cols, n, columns) + TICKET_CHECKSUM_BYTES;
}

/* ---- reading --------------------------------------------------------------------------------- */

static pare_status check_head(size_t *columns, const pare_coded_head *h, const ticket_body *body,
                              pare_err *err)
{
    if (h->flags || h->seed || h->stream)
        return pare_fail(err, PARE_ERR_INPUT,
                         "blocks with seeds of their own, and flags %x, a seed or a stream",
                         h->flags);
    if (h->n == 0 || h->n > SEEDS_MOST_BLOCK)
        return pare_fail(err, PARE_ERR_INPUT, "blocks of %zu weights: from 1 to %d are possible",
                         h->n, SEEDS_MOST_BLOCK);
    *columns = body->bytes < PREFIX_BYTES ? 0 : get_u32(body->data);
    if (*columns == 0 || *columns > SEEDS_MOST_COLUMNS)
        return pare_fail(err, PARE_ERR_INPUT, "blocks of %zu columns: from 1 to %d are possible",
                         *columns, SEEDS_MOST_COLUMNS);
    const size_t must = body_bytes(h->rows, h->cols, h->n, *columns);
    if (body->bytes != must)
        return pare_fail(err, PARE_ERR_INPUT,
                         "%zu x %zu weights in blocks of %zu in %zu bytes, must be %zu", h->rows,
                         h->cols, h->n, body->bytes, must);
    return PARE_OK;
}

static pare_seed_block read_block(bit_reader *r, size_t columns)
{
    pare_seed_block b = {0};
    b.seed = (uint16_t)bits_get(r, SEED_BITS);
    b.shift = (uint8_t)bits_get(r, SHIFT_BITS);
    for (size_t p = 0; p < columns; p++)
        b.q[p] = (int8_t)((int)bits_get(r, Q_BITS) + SEEDS_LEAST_Q);
    return b;
}

static void expand_block(float *out, size_t n, const pare_seed_block *b, size_t columns,
                         int exponent)
{
    const float unit = ldexpf(1, exponent + b->shift - SEEDS_MOST_SHIFT);
    uint32_t s = b->seed;
    for (size_t i = 0; i < n; i++) {
        int32_t sum = 0;
        for (size_t p = 0; p < columns; p++) {
            s = seeds_next(s);
            sum += b->q[p] * ((int32_t)s - (1 << 15));
        }
        out[i] = (float)sum * unit;
    }
}

pare_status coded_expand_seeds(float **out, pare_arena *a, const pare_coded_head *h,
                               const ticket_body *body, pare_arena *scratch, pare_err *err)
{
    size_t columns = 0;
    (void)scratch;
    pare_status st = check_head(&columns, h, body, err);
    if (!st) st = ticket_new_weight(out, a, h, err);
    if (st) return st;
    const size_t all = h->rows * h->cols;
    bit_reader r = {.data = body->data + PREFIX_BYTES, .bits = 8 * (body->bytes - PREFIX_BYTES)};
    for (size_t at = 0; at < all; at += h->n) {
        const pare_seed_block b = read_block(&r, columns);
        if (b.seed == 0)
            return pare_fail(err, PARE_ERR_INPUT, "block %zu has the seed 0", at / h->n);
        expand_block(*out + at, all - at < h->n ? all - at : h->n, &b, columns, h->exponent);
    }
    if (bits_get(&r, (unsigned)(r.bits - r.at)))
        return pare_fail(err, PARE_ERR_INPUT, "blocks of weights whose unused bits are not 0");
    return PARE_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

pare_status pare_coded_seeds(pare_coded *out, pare_arena *a, const pare_seeds *s, pare_err *err)
{
    PARE_ASSERT(s->n > 0 && s->n <= SEEDS_MOST_BLOCK && s->columns > 0 &&
                s->columns <= SEEDS_MOST_COLUMNS);
    const size_t bytes = body_bytes(s->rows, s->cols, s->n, s->columns);
    pare_arena *const scratch = pare_arena_new();
    uint8_t *const to = scratch ? pare_alloc(scratch, bytes, 1) : NULL;
    pare_status st = to ? PARE_OK : pare_no_memory(err);
    if (!st) {
        bit_writer w = {.data = to + PREFIX_BYTES};
        put_u32(to, (uint32_t)s->columns);
        for (size_t k = 0; k < seeds_blocks(s->rows, s->cols, s->n); k++) {
            const pare_seed_block *const b = &s->block[k];
            PARE_ASSERT(b->seed && b->shift <= SEEDS_MOST_SHIFT);
            bits_put(&w, b->seed, SEED_BITS);
            bits_put(&w, b->shift, SHIFT_BITS);
            for (size_t p = 0; p < s->columns; p++)
                bits_put(&w, (uint64_t)(b->q[p] - SEEDS_LEAST_Q), Q_BITS);
        }
        const ticket_body body = {to, bytes};
        const pare_coded_head h = {.kind = PARE_CODED_SEEDS,
                                   .rows = s->rows,
                                   .cols = s->cols,
                                   .n = s->n,
                                   .exponent = s->exponent};
        st = ticket_frame(out, a, &h, &body, err);
    }
    pare_arena_free(scratch);
    return st;
}
