/* A weight as the product of two masked random matrices (pare/coded.h): what a body says, and the
 * numbers it stands for. ticket_factored_write.c makes such bodies.
 *
 * Body:  u32 donor column (2^32 - 1: none)   u32 width (bridge; 0 when raw)   u32 units of a block
 *        i8 prior of each rank, as many as a block has units (FACTORED_RANKED)
 *        bits: own[k] + 1 of every unit (0: pruned), each ceil(log2(b + 1)) of them; of every
 * column but the donor's, one bit for each of the donor's units in order; zeros up to a byte
 *        masks: row by row, in a row column by column, in a column unit by unit; zeros up to a byte
 *
 * All sums are exact integers, so that the numbers are the same everywhere. The rows of A are made
 * one by one: no matrix of n columns is ever held. Every bit means something or must be 0: a body
 * that was changed gives other numbers, or none. */
#include "ticket_factored.h"
#include <string.h>

#define UNITS_MOST (UINT64_C(1) << 28)

typedef struct expansion {
    const pare_coded_head *h;
    deal d;
    pare_bits gift; /* b x given */
    int32_t *donor_weight, *row;
    int64_t *item;
    uint8_t *bit, *on;
    bool turned, bridged;
    bit_reader raw;
    bridge_decoder bridge;
    pare_err *err;
} expansion;

/* Column j of a row begins with what the donor's units give to it. */
static int64_t gifts_sum(const deal *d, const pare_bits *gift, const int32_t *row,
                         const int32_t *donor_weight, const uint8_t *on, size_t j)
{
    int64_t sum = 0;
    const uint32_t *const unit = d->unit + d->first[d->donor];
    for (size_t u = 0; u < d->given; u++)
        if (on[u] && pare_bit(gift, j, u))
            sum += (int64_t)row[unit[u]] * donor_weight[u * d->b + j];
    return sum;
}

static pare_status read_own(expansion *e, pare_arena *a, size_t each, bit_reader *r)
{
    deal *const d = &e->d;
    const unsigned width = deal_own_bits(d->b);
    uint32_t *const own = pare_alloc(a, d->n + 1, sizeof *own);
    if (!own) return pare_no_memory(e->err);
    for (size_t k = 0; k < each * d->b; k++) own[k] = (uint32_t)(k / each);
    for (size_t k = each * d->b; k < d->n; k++) {
        const uint64_t v = bits_get(r, width);
        if (v > d->b)
            return pare_fail(e->err, PARE_ERR_INPUT,
                             "a ticket whose hidden unit %zu serves column %llu of %zu", k,
                             (unsigned long long)(v - 1), d->b);
        own[k] = v ? (uint32_t)(v - 1) : PARE_NO_COLUMN;
    }
    const pare_status st = deal_list(d, a, own, e->err);
    return st ? st : deal_check(d, e->err);
}

static pare_status read_gifts(expansion *e, pare_arena *a, bit_reader *r)
{
    const deal *const d = &e->d;
    e->gift = pare_bits_new(a, d->b, d->given);
    e->donor_weight = pare_alloc(a, d->given * d->b + 1, sizeof *e->donor_weight);
    if (!e->gift.v || !e->donor_weight) return pare_no_memory(e->err);
    for (size_t j = 0; j < d->b; j++)
        for (size_t u = 0; j != d->donor && u < d->given; u++)
            if (bits_get(r, 1)) pare_bit_set(&e->gift, j, u);
    for (size_t u = 0; u < d->given; u++)
        pare_source_weights(e->donor_weight + u * d->b, d->seed, d->stream + 1,
                            (uint64_t)d->unit[d->first[d->donor] + u] * d->b, d->b);
    return PARE_OK;
}

static pare_status bad_masks(const expansion *e, size_t bytes)
{
    return pare_fail(e->err, PARE_ERR_INPUT,
                     "a ticket of %zu x %zu whose masks have %zu bytes: too few or too many",
                     e->d.a, e->d.b, bytes);
}

/* Units in blocks take no bits to be dealt, but a column of masks each: room is made for them only
 * when the bytes can hold these. */
static pare_status check_blocks(const expansion *e, size_t each, size_t bytes)
{
    const uint64_t bits = (uint64_t)e->d.a * each * e->d.b;
    const bool fits = e->bridged ? bridge_may_hold(bytes, bits) : bits / 8 <= bytes;
    return fits ? PARE_OK : bad_masks(e, bytes);
}

static pare_status read_priors(pare_bridge *model, size_t each, bit_reader *r, pare_err *err)
{
    if (each == 0 || each > BRIDGE_UNITS)
        return pare_fail(err, PARE_ERR_INPUT, "a coded ticket with blocks of %zu units: 1 to %d",
                         each, BRIDGE_UNITS);
    model->ranks = each;
    for (size_t k = 0; k < each; k++) {
        const int v = (int)bits_get(r, FACTORED_PRIOR_BITS);
        model->prior[k] = (int8_t)(v < 128 ? v : v - 256);
    }
    return PARE_OK;
}

static pare_status check_width(const expansion *e, uint32_t width)
{
    if (e->bridged ? width > 0 && width <= BRIDGE_WIDEST : width == 0) return PARE_OK;
    return pare_fail(e->err, PARE_ERR_INPUT,
                     "a ticket whose coder has width %u: 1 to %d, and 0 where masks are raw",
                     (unsigned)width, BRIDGE_WIDEST);
}

/* Up to the end of a byte. */
static pare_status check_zeros(bit_reader *r, pare_err *err)
{
    if (bits_get(r, (unsigned)(8 - r->at % 8) % 8) == 0) return PARE_OK;
    return pare_fail(err, PARE_ERR_INPUT, "a ticket with a one among the zeros that fill a byte");
}

/* The masks must be as long as they have to be. */
static pare_status open_masks(expansion *e, const uint8_t *at, size_t bytes,
                              const pare_bridge *model)
{
    const uint64_t bits = (uint64_t)e->d.a * e->d.first[e->d.b];
    const bool fits = e->bridged ? bridge_may_hold(bytes, bits) : bytes == (bits + 7) / 8;
    if (!fits) return bad_masks(e, bytes);
    e->raw = (bit_reader){.data = at, .bits = 8 * bytes};
    if (e->bridged) bridge_decode_open(&e->bridge, at, bytes, model);
    for (size_t j = 0; e->bridged && j < e->d.b; j++)
        if (e->d.first[j + 1] - e->d.first[j] > (model->ranks ? model->ranks : BRIDGE_UNITS))
            return pare_fail(e->err, PARE_ERR_INPUT,
                             "a coded ticket with more units for column %zu than its coder has", j);
    return PARE_OK;
}

static pare_status open_body(expansion *e, pare_arena *a, const coded_body *body)
{
    deal *const d = &e->d;
    const size_t each = body->bytes < FACTORED_FRONT ? SIZE_MAX : coded_get32(body->data + 8);
    if (d->n < d->b || d->n > UNITS_MOST || each > d->n / d->b ||
        (body->bytes - FACTORED_FRONT) * 8 / deal_own_bits(d->b) < d->n - each * d->b)
        return pare_fail(e->err, PARE_ERR_INPUT,
                         "a ticket with %zu hidden units for %zu columns in %zu bytes", d->n, d->b,
                         body->bytes);
    d->donor = coded_get32(body->data);
    if (d->donor != PARE_NO_COLUMN && d->donor >= d->b)
        return pare_fail(e->err, PARE_ERR_INPUT, "a ticket whose donor is column %u of %zu",
                         (unsigned)d->donor, d->b);
    bit_reader r = {.data = body->data + FACTORED_FRONT,
                    .bits = 8 * (body->bytes - FACTORED_FRONT)};
    pare_bridge model = {.width = coded_get32(body->data + 4)};
    pare_status st = check_blocks(e, each, body->bytes - FACTORED_FRONT);
    if (!st) st = check_width(e, model.width);
    if (!st && e->h->flags & FACTORED_RANKED) st = read_priors(&model, each, &r, e->err);
    if (!st) st = read_own(e, a, each, &r);
    if (!st && d->given * (d->b - 1) > r.bits - r.at)
        st = pare_fail(e->err, PARE_ERR_INPUT, "a ticket that ends within its donors");
    if (!st) st = read_gifts(e, a, &r);
    if (!st) st = check_zeros(&r, e->err);
    if (st) return st;
    const size_t used = FACTORED_FRONT + r.at / 8;
    return open_masks(e, body->data + used, body->bytes - used, &model);
}

static pare_status open_rooms(expansion *e, pare_arena *a)
{
    e->row = pare_alloc(a, e->d.n + 1, sizeof *e->row);
    e->item = pare_alloc(a, PARE_SOURCE_MOST, sizeof *e->item);
    e->bit = pare_alloc(a, PARE_SOURCE_MOST, sizeof *e->bit);
    e->on = pare_alloc(a, PARE_SOURCE_MOST, sizeof *e->on);
    return e->row && e->item && e->bit && e->on ? PARE_OK : pare_no_memory(e->err);
}

static void read_entry(expansion *e, size_t j)
{
    const size_t count = e->d.first[j + 1] - e->d.first[j];
    deal_items(e->item, &e->d, e->row, j);
    if (e->bridged)
        bridge_decode(&e->bridge, e->bit, e->item, count);
    else
        for (size_t u = 0; u < count; u++) e->bit[u] = (uint8_t)bits_get(&e->raw, 1);
    if (j == e->d.donor) memcpy(e->on, e->bit, count);
}

/* One row of sums; the donor's units are known only when all columns were read. */
static void read_row(expansion *e, int64_t *sum, size_t i)
{
    const deal *const d = &e->d;
    pare_source_weights(e->row, d->seed, d->stream, (uint64_t)i * d->n, d->n);
    for (size_t j = 0; j < d->b; j++) {
        const size_t count = d->first[j + 1] - d->first[j];
        read_entry(e, j);
        sum[j] = 0;
        for (size_t u = 0; u < count; u++) sum[j] += e->bit[u] ? e->item[u] : 0;
    }
    for (size_t j = 0; d->given && j < d->b; j++)
        if (j != d->donor) sum[j] += gifts_sum(d, &e->gift, e->row, e->donor_weight, e->on, j);
}

/* The integer is rounded to f32 once; the power of two behind it is exact. */
static void put_row(float *out, const expansion *e, const int64_t *sum, size_t i)
{
    const float unit = bridge_power(e->h->exponent - 48);
    for (size_t j = 0; j < e->d.b; j++)
        out[e->turned ? j * e->h->cols + i : i * e->h->cols + j] = (float)sum[j] * unit;
}

/* What stands between the two matrices. */
static pare_status set_inputs(expansion *e)
{
    const bool signs = e->h->flags & FACTORED_SIGNS;
    if (e->h->kind != PARE_CODED_RELU) return PARE_OK;
    if (signs && e->d.b % 2)
        return pare_fail(e->err, PARE_ERR_INPUT,
                         "a ReLU ticket of %zu columns: the signs of an input are two", e->d.b);
    e->d.inputs = signs ? e->d.b / 2 : e->d.b;
    return PARE_OK;
}

pare_status coded_factored_expand(float **out, pare_arena *a, const pare_coded_head *h,
                                  const coded_body *body, pare_arena *scratch, pare_err *err)
{
    const bool turned = h->flags & FACTORED_TURNED;
    expansion e = {.h = h, .turned = turned, .bridged = h->flags & FACTORED_BRIDGE, .err = err};
    e.d = (deal){.seed = h->seed, .stream = h->stream, .n = h->n};
    e.d.a = turned ? h->cols : h->rows;
    e.d.b = turned ? h->rows : h->cols;
    const uint32_t known = FACTORED_TURNED | FACTORED_BRIDGE | FACTORED_RANKED |
                           (h->kind == PARE_CODED_RELU ? FACTORED_SIGNS : 0);
    if (h->flags & ~known || (h->flags & FACTORED_RANKED && !e.bridged))
        return pare_fail(err, PARE_ERR_INPUT, "a ticket with unknown flags %x", h->flags);
    pare_status st = set_inputs(&e);
    if (!st) st = open_body(&e, scratch, body);
    if (!st) st = open_rooms(&e, scratch);
    int64_t *const sum = st ? NULL : pare_alloc(scratch, e.d.b, sizeof *sum);
    if (!st) st = sum ? coded_numbers(out, a, h, err) : pare_no_memory(err);
    for (size_t i = 0; !st && i < e.d.a; i++) {
        read_row(&e, sum, i);
        put_row(*out, &e, sum, i);
    }
    if (!st && !e.bridged) st = check_zeros(&e.raw, err);
    if (!st && e.bridged && !bridge_decode_closed(&e.bridge))
        st = pare_fail(err, PARE_ERR_INPUT, "a ticket whose coded masks end elsewhere");
    return st;
}
