/* ticket_popup.c - a frozen random matrix and its mask (edge-popup).
 *
 * n is the number of ones; flags: 1, weights are unit or -unit.
 *
 *   body:  u32 unit (the bits of an f32)   then the mask, row by row, through the range coder with
 *          one probability for all: n of rows x cols in 2^-16, at least LEAST, at most ONE - LEAST
 *
 * A mask that keeps 3 of 10 takes 0.881 bits a weight, which is its entropy. Only the weights that
 * are kept are made. */
#include "frozen.h"
#include "ticket_codec.h"
#include "range_coder.h"
#include <math.h>
#include <string.h>

enum { SIGNED = 1, ONE_BITS = 16, ONE = 1 << ONE_BITS, LEAST = 256, PREFIX_BYTES = 4 };

static uint32_t probability_of(uint64_t ones, uint64_t of)
{
    const uint64_t p = (ones * ONE + of / 2) / of;
    return p < LEAST ? LEAST : p > ONE - LEAST ? ONE - LEAST : (uint32_t)p;
}

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* ---- reading --------------------------------------------------------------------------------- */

pare_status ticket_expand_popup(float **out, pare_arena *a, const pare_coded_head *h,
                                const ticket_body *body, pare_arena *scratch, pare_err *err)
{
    (void)scratch;
    const uint64_t weights = (uint64_t)h->rows * h->cols;
    if (h->flags & ~(uint32_t)SIGNED || h->exponent != 0)
        return pare_fail(err, PARE_ERR_INPUT, "a ticket with unknown flags %x or scale 2^%d",
                         h->flags, h->exponent);
    if (h->n == 0 || h->n > weights)
        return pare_fail(err, PARE_ERR_INPUT, "a ticket that keeps %zu of %llu weights", h->n,
                         (unsigned long long)weights);
    /* log2(ONE / (ONE - LEAST)) is above 1/256: a byte cannot stand for more than 2048 weights. */
    if (body->bytes < PREFIX_BYTES + 4 ||
        weights / PARE_CODED_PER_BYTE > body->bytes - PREFIX_BYTES)
        return pare_fail(err, PARE_ERR_INPUT, "a ticket of %zu x %zu whose mask has %zu bytes",
                         h->rows, h->cols, body->bytes);
    const uint32_t unit = get_u32(body->data);
    pare_frozen f = {.kind = h->flags & SIGNED ? PARE_FROZEN_SIGNED : PARE_FROZEN_NORMAL,
                     .seed = h->seed,
                     .stream = h->stream};
    memcpy(&f.unit, &unit, sizeof f.unit);
    if (!(f.unit > 0 && f.unit <= PARE_FROZEN_MOST))
        return pare_fail(err, PARE_ERR_INPUT, "a ticket whose unit is %g", (double)f.unit);
    const pare_status st = ticket_new_weight(out, a, h, err);
    if (st) return st;
    const uint32_t p = probability_of(h->n, weights);
    uint64_t ones = 0;
    range_decoder in;
    range_decode_open(&in, body->data + PREFIX_BYTES, body->bytes - PREFIX_BYTES);
    for (uint64_t i = 0; i < weights; i++) {
        (*out)[i] = 0;
        if (!range_decode(&in, p, ONE_BITS)) continue;
        pare_frozen_fill(*out + i, &f, i, 1);
        ones++;
    }
    if (ones != h->n || !range_decode_closed(&in))
        return pare_fail(err, PARE_ERR_INPUT, "a ticket whose mask keeps %llu weights, not %zu",
                         (unsigned long long)ones, h->n);
    return PARE_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Every number is 0 or what the source has there. */
static pare_status count_ones(size_t *ones, const pare_frozen *f, const pare_weight *w,
                              pare_err *err)
{
    const float *const v = w->data;
    *ones = 0;
    for (size_t i = 0; i < w->rows * w->cols; i++) {
        float from;
        if (bits_of(v[i]) == 0) continue;
        pare_frozen_fill(&from, f, i, 1);
        if (bits_of(from) != bits_of(v[i]))
            return pare_fail(err, PARE_ERR_VERIFY, "[%zu, %zu] is %g, neither 0 nor %g",
                             i / w->cols, i % w->cols, (double)v[i], (double)from);
        ++*ones;
    }
    return *ones > 0 && *ones <= UINT32_MAX && w->rows <= UINT32_MAX && w->cols <= UINT32_MAX
               ? PARE_OK
               : pare_fail(err, PARE_ERR_INPUT, "a mask that keeps %zu of %zu x %zu weights", *ones,
                           w->rows, w->cols);
}

pare_status pare_coded_popup(pare_coded *out, pare_arena *a, const pare_frozen *f,
                             const pare_weight *w, pare_err *err)
{
    size_t ones = 0;
    PARE_ASSERT(w->dtype == PARE_F32);
    pare_status st = count_ones(&ones, f, w, err);
    if (st) return st;
    /* with the right probability, a bit each at most; a 256th of that is lost by rounding */
    const size_t n = w->rows * w->cols, capacity = n / 8 + n / 64 + 16;
    const uint32_t p = probability_of(ones, n);
    const float *const v = w->data;
    pare_arena *const scratch = pare_arena_new();
    uint8_t *const to = scratch ? pare_alloc(scratch, PREFIX_BYTES + capacity, 1) : NULL;
    if (to) {
        range_encoder e;
        put_u32(to, bits_of(f->unit));
        range_encode_open(&e, to + PREFIX_BYTES, capacity);
        for (size_t i = 0; i < n; i++) range_encode(&e, p, ONE_BITS, bits_of(v[i]) != 0);
        const ticket_body body = {to, PREFIX_BYTES + range_encode_close(&e)};
        const pare_coded_head h = {.kind = PARE_CODED_POPUP,
                                   .flags = f->kind == PARE_FROZEN_SIGNED ? SIGNED : 0,
                                   .seed = f->seed,
                                   .stream = f->stream,
                                   .rows = w->rows,
                                   .cols = w->cols,
                                   .n = ones};
        PARE_ASSERT(body.bytes <= PREFIX_BYTES + capacity);
        st = ticket_frame(out, a, &h, &body, err);
    } else {
        st = pare_no_memory(err);
    }
    pare_arena_free(scratch);
    return st;
}
