/* ticket_factored.c - reads a weight that is stored as the product of two masked random matrices
 * (pare/model.h). ticket_factored_write.c writes such bodies.
 *
 * Body:  u32 donor column (2^32 - 1: none)   u32 width (coder; 0 when raw)   u32 units of a block
 *        i8 prior of each rank, as many as a block has units (FACTORED_RANKED)
 *        bits: own[k] + 1 of every unit (0: pruned), each ceil(log2(b + 1)) of them;
 *              of every column but the donor's, one bit for each of the donor's units in order;
 *              zeros up to a byte
 *        masks: row by row, in a row column by column, in a column unit by unit; zeros up to a byte
 *
 * Entry (i, j) of the weight is the sum over the units k of column j of MA_ik A_ik B_kj, and over
 * the units of the donor that give to column j. All sums are exact integers, so that the numbers
 * are the same everywhere. The rows of A are made one by one: no matrix of n columns is ever held.
 * Every bit means something or must be 0: a changed body gives other numbers, or none. */
#include "source.h"
#include "ticket_factored.h"
#include "base/work.h"
#include <string.h>

#define UNITS_MOST (UINT64_C(1) << 28)

typedef struct expansion {
    pare_work work; /* of the scratch arena; keeps the first error */
    const pare_coded_head *h;
    unit_layout d;
    pare_bits gives; /* b x donated: does unit u of the donor give to column j? */
    int32_t *donor_weight, *row;
    int64_t *item;
    uint8_t *bit, *donor_bit;
    bool transposed, coded;
    bit_reader raw;
    mask_decoder masks;
} expansion;

static void *alloc(expansion *e, size_t count, size_t size)
{
    return pare_work_alloc(&e->work, count, size);
}

static void refuse_masks(expansion *e, size_t bytes)
{
    pare_work_fail(&e->work, PARE_ERR_INPUT,
                   "a ticket of %zu x %zu whose masks have %zu bytes: too few or too many", e->d.a,
                   e->d.b, bytes);
}

/* Up to the end of a byte. */
static void check_zeros(expansion *e, bit_reader *r)
{
    if (bits_get(r, (unsigned)(8 - r->at % 8) % 8) != 0)
        pare_work_fail(&e->work, PARE_ERR_INPUT,
                       "a ticket with a one among the zeros that fill a byte");
}

/* Which column each unit serves: `each` units a column without any bits, then the rest. */
static void read_columns(expansion *e, size_t each, bit_reader *r)
{
    unit_layout *const d = &e->d;
    const unsigned width = unit_column_bits(d->b);
    uint32_t *const own = alloc(e, d->n + 1, sizeof *own);
    if (!own) return;
    for (size_t k = 0; k < each * d->b; k++) own[k] = (uint32_t)(k / each);
    for (size_t k = each * d->b; k < d->n; k++) {
        const uint64_t v = bits_get(r, width);
        if (v > d->b) {
            pare_work_fail(&e->work, PARE_ERR_INPUT,
                           "a ticket whose hidden unit %zu serves column %llu of %zu", k,
                           (unsigned long long)(v - 1), d->b);
            return;
        }
        own[k] = v ? (uint32_t)(v - 1) : PARE_NO_COLUMN;
    }
    e->work.st = unit_layout_init(d, e->work.arena, own, e->work.err);
    if (!e->work.st) e->work.st = unit_layout_check(d, e->work.err);
}

static void read_donations(expansion *e, bit_reader *r)
{
    const unit_layout *const d = &e->d;
    if (!e->work.st && d->donated * (d->b - 1) > r->bits - r->at)
        pare_work_fail(&e->work, PARE_ERR_INPUT, "a ticket that ends within its donors");
    e->donor_weight = alloc(e, d->donated * d->b + 1, sizeof *e->donor_weight);
    if (e->work.st) return;
    e->gives = pare_bits_new(e->work.arena, d->b, d->donated);
    if (!e->gives.v) {
        e->work.st = pare_no_memory(e->work.err);
        return;
    }
    for (size_t j = 0; j < d->b; j++)
        for (size_t u = 0; j != d->donor && u < d->donated; u++)
            if (bits_get(r, 1)) pare_bit_set(&e->gives, j, u);
    for (size_t u = 0; u < d->donated; u++)
        pare_source_weights(e->donor_weight + u * d->b, d->seed, d->stream + 1,
                            (uint64_t)d->unit[d->first[d->donor] + u] * d->b, d->b);
}

/* The masks must be as long as they have to be. */
static void open_masks(expansion *e, const uint8_t *at, size_t bytes, const pare_bridge *model)
{
    const uint64_t bits = (uint64_t)e->d.a * e->d.first[e->d.b];
    if (!(e->coded ? mask_bytes_suffice(bytes, bits) : bytes == (bits + 7) / 8)) {
        refuse_masks(e, bytes);
        return;
    }
    e->raw = (bit_reader){.data = at, .bits = 8 * bytes};
    if (!e->coded) return;
    mask_decode_open(&e->masks, at, bytes, model);
    const size_t most = model->ranks ? model->ranks : CODER_UNITS;
    for (size_t j = 0; j < e->d.b; j++)
        if (e->d.first[j + 1] - e->d.first[j] > most)
            pare_work_fail(&e->work, PARE_ERR_INPUT,
                           "a coded ticket with more units for column %zu than its coder has", j);
}

static void open_body(expansion *e, const ticket_body *body)
{
    unit_layout *const d = &e->d;
    pare_work *const w = &e->work;
    const size_t each = body->bytes < FACTORED_PREFIX_BYTES ? SIZE_MAX : get_u32(body->data + 8);
    if (d->n < d->b || d->n > UNITS_MOST || each > d->n / d->b ||
        (body->bytes - FACTORED_PREFIX_BYTES) * 8 / unit_column_bits(d->b) < d->n - each * d->b) {
        pare_work_fail(w, PARE_ERR_INPUT,
                       "a ticket with %zu hidden units for %zu columns in %zu bytes", d->n, d->b,
                       body->bytes);
        return;
    }
    d->donor = get_u32(body->data);
    if (d->donor != PARE_NO_COLUMN && d->donor >= d->b)
        pare_work_fail(w, PARE_ERR_INPUT, "a ticket whose donor is column %u of %zu",
                       (unsigned)d->donor, d->b);
    const size_t bytes = body->bytes - FACTORED_PREFIX_BYTES;
    bit_reader r = {.data = body->data + FACTORED_PREFIX_BYTES, .bits = 8 * bytes};
    pare_bridge model = {.width = get_u32(body->data + 4)};
    /* Units in blocks take no bits for their columns, but a column of masks each: memory is taken
     * for them only when the bytes can hold these. */
    const uint64_t bits = (uint64_t)d->a * each * d->b;
    if (!(e->coded ? mask_bytes_suffice(bytes, bits) : bits / 8 <= bytes)) refuse_masks(e, bytes);
    if (!(e->coded ? model.width > 0 && model.width <= CODER_MAX_WIDTH : model.width == 0))
        pare_work_fail(w, PARE_ERR_INPUT,
                       "a ticket whose coder has width %u: 1 to %d, and 0 where masks are raw",
                       (unsigned)model.width, CODER_MAX_WIDTH);
    if (e->h->flags & FACTORED_RANKED) {
        if (each == 0 || each > CODER_UNITS)
            pare_work_fail(w, PARE_ERR_INPUT, "a coded ticket with blocks of %zu units: 1 to %d",
                           each, CODER_UNITS);
        model.ranks = each;
        for (size_t k = 0; !w->st && k < each; k++) {
            const int v = (int)bits_get(&r, FACTORED_PRIOR_BITS);
            model.prior[k] = (int8_t)(v < 128 ? v : v - 256);
        }
    }
    read_columns(e, each, &r);
    read_donations(e, &r);
    if (!w->st) check_zeros(e, &r);
    if (w->st) return;
    const size_t used = FACTORED_PREFIX_BYTES + r.at / 8;
    open_masks(e, body->data + used, body->bytes - used, &model);
}

pare_status ticket_expand_factored(float **out, pare_arena *a, const pare_coded_head *h,
                                   const ticket_body *body, pare_arena *scratch, pare_err *err)
{
    const bool transposed = h->flags & FACTORED_TRANSPOSED, relu = h->kind == PARE_CODED_RELU;
    expansion e = {.work = {.arena = scratch, .err = err},
                   .h = h,
                   .transposed = transposed,
                   .coded = h->flags & FACTORED_CODED};
    pare_work *const w = &e.work;
    e.d = (unit_layout){.seed = h->seed, .stream = h->stream, .n = h->n};
    e.d.a = transposed ? h->cols : h->rows;
    e.d.b = transposed ? h->rows : h->cols;
    const uint32_t known =
        FACTORED_TRANSPOSED | FACTORED_CODED | FACTORED_RANKED | (relu ? FACTORED_SIGNS : 0);
    if (h->flags & ~known || (h->flags & FACTORED_RANKED && !e.coded))
        return pare_fail(err, PARE_ERR_INPUT, "a ticket with unknown flags %x", h->flags);
    const bool signs = h->flags & FACTORED_SIGNS;
    if (relu && signs && e.d.b % 2)
        return pare_fail(err, PARE_ERR_INPUT,
                         "a ReLU ticket of %zu columns: the signs of an input are two", e.d.b);
    if (relu) e.d.inputs = signs ? e.d.b / 2 : e.d.b;
    open_body(&e, body);
    e.row = alloc(&e, e.d.n + 1, sizeof *e.row);
    e.item = alloc(&e, PARE_SOURCE_MOST, sizeof *e.item);
    e.bit = alloc(&e, PARE_SOURCE_MOST, sizeof *e.bit);
    e.donor_bit = alloc(&e, PARE_SOURCE_MOST, sizeof *e.donor_bit);
    int64_t *const sum = alloc(&e, e.d.b, sizeof *sum);
    if (!w->st) w->st = ticket_new_weight(out, a, h, err);
    /* The integer is rounded to f32 once; the power of two behind it is exact. */
    const float unit = power_of_two(h->exponent - 48);
    for (size_t i = 0; !w->st && i < e.d.a; i++) {
        const unit_layout *const d = &e.d;
        pare_source_weights(e.row, d->seed, d->stream, (uint64_t)i * d->n, d->n);
        for (size_t j = 0; j < d->b; j++) {
            const size_t count = d->first[j + 1] - d->first[j];
            unit_layout_items(e.item, d, e.row, j);
            if (e.coded)
                mask_decode(&e.masks, e.bit, e.item, count);
            else
                for (size_t u = 0; u < count; u++) e.bit[u] = (uint8_t)bits_get(&e.raw, 1);
            if (j == d->donor) memcpy(e.donor_bit, e.bit, count);
            sum[j] = 0;
            for (size_t u = 0; u < count; u++) sum[j] += e.bit[u] ? e.item[u] : 0;
        }
        /* The donor's bits are known only when all columns were read. */
        for (size_t j = 0; d->donated && j < d->b; j++)
            for (size_t u = 0; j != d->donor && u < d->donated; u++)
                if (e.donor_bit[u] && pare_bit(&e.gives, j, u))
                    sum[j] += (int64_t)e.row[d->unit[d->first[d->donor] + u]] *
                              e.donor_weight[u * d->b + j];
        for (size_t j = 0; j < d->b; j++)
            (*out)[transposed ? j * h->cols + i : i * h->cols + j] = (float)sum[j] * unit;
    }
    if (!w->st && !e.coded) check_zeros(&e, &e.raw);
    if (!w->st && e.coded && !mask_decode_closed(&e.masks))
        pare_work_fail(w, PARE_ERR_INPUT, "a ticket whose coded masks end elsewhere");
    return w->st;
}
