/* ticket_factored_write.c - writes the body of a factored ticket, as ticket_factored.c reads it:
 * masks coded where that is shorter. */
#include "source.h"
#include "ticket_factored.h"
#include <string.h>

typedef struct writing {
    const pare_factored *f;
    unit_layout d;
    size_t each; /* units of a block */
    int32_t *row;
    int64_t *item;
    uint8_t *bit;
} writing;

/* Bytes before the masks. */
static size_t prefix_bytes(const writing *w, const pare_bridge *model)
{
    const size_t bits = (w->d.n - w->each * w->d.b) * unit_column_bits(w->d.b) +
                        w->d.donated * (w->d.b - 1) + FACTORED_PRIOR_BITS * model->ranks;
    return FACTORED_PREFIX_BYTES + (bits + 7) / 8;
}

static void write_prefix(uint8_t *to, const writing *w, const pare_bridge *model)
{
    const unit_layout *const d = &w->d;
    bit_writer bits = {to + FACTORED_PREFIX_BYTES, 0};
    put_u32(to, d->donor);
    put_u32(to + 4, model->width);
    put_u32(to + 8, (uint32_t)w->each);
    for (size_t k = 0; k < model->ranks; k++)
        bits_put(&bits, (uint8_t)model->prior[k], FACTORED_PRIOR_BITS);
    for (size_t k = w->each * d->b; k < d->n; k++) {
        const uint32_t own = w->f->own[k];
        bits_put(&bits, own == PARE_NO_COLUMN ? 0 : own + UINT64_C(1), unit_column_bits(d->b));
    }
    for (size_t j = 0; d->donated && j < d->b; j++)
        for (size_t u = 0; j != d->donor && u < d->donated; u++)
            bits_put(&bits, pare_bit(&w->f->mb, d->unit[d->first[d->donor] + u], j), 1);
}

/* The bits of entry (i, j) and its items. */
static size_t take_entry(const writing *w, size_t i, size_t j)
{
    const unit_layout *const d = &w->d;
    const size_t count = d->first[j + 1] - d->first[j];
    unit_layout_items(w->item, d, w->row, j);
    for (size_t c = 0; c < count; c++) w->bit[c] = pare_bit(&w->f->ma, i, d->unit[d->first[j] + c]);
    return count;
}

/* The size of the sums of a column's own units: what the coder expects of them. */
static pare_bridge coder_model(const writing *w)
{
    double squares = 0;
    if (w->f->bridge.width && w->f->bridge.ranks == w->each) return w->f->bridge;
    for (size_t i = 0; i < w->d.a; i++) {
        pare_source_weights(w->row, w->d.seed, w->d.stream, (uint64_t)i * w->d.n, w->d.n);
        for (size_t j = 0; j < w->d.b; j++) {
            int64_t sum = 0;
            const size_t count = take_entry(w, i, j);
            for (size_t c = 0; c < count; c++) sum += w->bit[c] ? w->item[c] : 0;
            squares += (double)sum * PARE_SOURCE_UNIT * (double)sum * PARE_SOURCE_UNIT;
        }
    }
    return (pare_bridge){.width = mask_coder_width(squares / ((double)w->d.a * (double)w->d.b))};
}

/* *flags: how the masks are stored. */
static pare_status write_body(ticket_body *body, uint32_t *flags, const writing *w, pare_arena *a,
                              pare_coding coding, pare_err *err)
{
    const unit_layout *const d = &w->d;
    bool try = coding == PARE_CODING_BRIDGE;
    for (size_t j = 0; j < d->b; j++) try = try && d->first[j + 1] - d->first[j] <= CODER_UNITS;
    const pare_bridge model = try ? coder_model(w) : (pare_bridge){0}, none = {0};
    const size_t prefix = prefix_bytes(w, &model), plain = prefix_bytes(w, &none);
    const size_t raw = (d->a * d->first[d->b] + 7) / 8;
    uint8_t *const to = pare_alloc(a, prefix + raw + 1, 1);
    if (!to) return pare_no_memory(err);
    size_t coded = raw;
    if (try) {
        mask_encoder e;
        mask_encode_open(&e, to + prefix, raw, &model);
        for (size_t i = 0; i < d->a; i++) {
            pare_source_weights(w->row, d->seed, d->stream, (uint64_t)i * d->n, d->n);
            for (size_t j = 0; j < d->b; j++) {
                const size_t count = take_entry(w, i, j);
                mask_encode(&e, w->bit, w->item, count);
            }
        }
        coded = mask_encode_close(&e);
    }
    if (prefix + coded < plain + raw) {
        write_prefix(to, w, &model);
        *body = (ticket_body){to, prefix + coded};
        *flags = FACTORED_CODED | (model.ranks ? FACTORED_RANKED : 0);
        return PARE_OK;
    }
    memset(to, 0, prefix + raw);
    write_prefix(to, w, &none);
    bit_writer bits = {to + plain, 0};
    for (size_t i = 0; i < d->a; i++)
        for (size_t j = 0; j < d->b; j++)
            for (size_t u = d->first[j]; u < d->first[j + 1]; u++)
                bits_put(&bits, pare_bit(&w->f->ma, i, d->unit[u]), 1);
    *body = (ticket_body){to, plain + raw};
    *flags = 0;
    return PARE_OK;
}

const char *const pare_coding_names[] = {"raw", "bridge", NULL};

pare_status pare_coded_factored(pare_coded *out, pare_arena *a, const pare_factored *f,
                                pare_coding coding, pare_err *err)
{
    writing w = {.f = f};
    ticket_body body;
    uint32_t flags = 0;
    w.d = (unit_layout){.seed = f->seed, .stream = f->stream, .n = f->n, .donor = f->donor};
    w.d.a = f->transposed ? f->cols : f->rows;
    w.d.b = f->transposed ? f->rows : f->cols;
    if (f->relu) w.d.inputs = f->relu == PARE_RELU_SIGNS ? w.d.b / 2 : w.d.b;
    pare_arena *const scratch = pare_arena_new();
    pare_status st = scratch ? unit_layout_init(&w.d, scratch, f->own, err) : pare_no_memory(err);
    if (!st) st = unit_layout_check(&w.d, err);
    if (!st) {
        for (w.each = w.d.n / w.d.b; w.each > 0; w.each--) { /* the largest blocks to begin with */
            size_t k = 0;
            while (k < w.each * w.d.b && f->own[k] == k / w.each) k++;
            if (k == w.each * w.d.b) break;
        }
        w.row = pare_alloc(scratch, w.d.n + 1, sizeof *w.row);
        w.item = pare_alloc(scratch, PARE_SOURCE_MOST, sizeof *w.item);
        w.bit = pare_alloc(scratch, PARE_SOURCE_MOST, sizeof *w.bit);
        if (!w.row || !w.item || !w.bit) st = pare_no_memory(err);
    }
    if (!st) st = write_body(&body, &flags, &w, scratch, coding, err);
    const uint32_t signs = f->relu == PARE_RELU_SIGNS ? FACTORED_SIGNS : 0;
    const pare_coded_head h = {.kind = f->relu ? PARE_CODED_RELU : PARE_CODED_FACTORED,
                               .flags = flags | (f->transposed ? FACTORED_TRANSPOSED : 0u) | signs,
                               .seed = f->seed,
                               .stream = f->stream,
                               .rows = f->rows,
                               .cols = f->cols,
                               .n = f->n,
                               .exponent = f->exponent};
    if (!st) st = ticket_frame(out, a, &h, &body, err);
    pare_arena_free(scratch);
    return st;
}
