/* ticket_trellis.c - weights read along a path through a random table (trellis.h).
 *
 * n is the number of state bits; flags: 1, a scale for each row; 2, rows in an order of the seed.
 *
 *   body:  u16 eighths   u8 twos of the rows   u8 of the columns   u16 Paley factor of the rows
 *          u16 of the columns   u32 row parts   u32 column parts   u16 scale, one or for each row
 *          the path, run by run: parts of the columns, in each the parts of the rows */
#include "base/support.h"
#include "ticket_codec.h"
#include "trellis.h"
#include <math.h>
#include <string.h>

enum { ROW_SCALES = 1, SHUFFLED = 2, PREFIX_BYTES = 16, PANEL = HADAMARD_LANES, PADDING = 8 };

/* ---- what is possible ------------------------------------------------------------------------ */

pare_status trellis_check(const pare_trellis *t, pare_err *err)
{
    if (t->state_bits < TRELLIS_LEAST_STATE || t->state_bits > TRELLIS_MOST_STATE ||
        t->eighths < TRELLIS_LEAST_EIGHTHS || t->eighths > TRELLIS_MOST_EIGHTHS)
        return pare_fail(err, PARE_ERR_INPUT,
                         "a path of %g bits a weight through states of %u bits: from 1 to 8 and "
                         "from %d to %d are possible",
                         t->eighths / 8.0, t->state_bits, TRELLIS_LEAST_STATE, TRELLIS_MOST_STATE);
    if (!hadamard_exists(t->row) || !hadamard_exists(t->col) ||
        t->rows % hadamard_order(t->row) != 0 || t->cols % hadamard_order(t->col) != 0 ||
        hadamard_order(t->row) * hadamard_order(t->col) > TRELLIS_MOST_GROWTH)
        return pare_fail(err, PARE_ERR_INPUT,
                         "rotations of order %u x 2^%u and %u x 2^%u of %zu x %zu weights",
                         t->row.paley, t->row.twos, t->col.paley, t->col.twos, t->rows, t->cols);
    if (t->shuffled && hadamard_order(t->row) > 1)
        return pare_fail(err, PARE_ERR_INPUT,
                         "rows in an order of the seed that are rotated as well");
    if (t->row_parts == 0 || t->col_parts == 0 || t->row_parts > t->rows ||
        t->col_parts > t->cols ||
        trellis_bits(t, (uint64_t)(t->rows / t->row_parts) * (t->cols / t->col_parts)) <
            t->state_bits)
        return pare_fail(err, PARE_ERR_INPUT,
                         "%zu x %zu weights in %zu x %zu runs: a run has fewer bits than a state",
                         t->rows, t->cols, t->row_parts, t->col_parts);
    return PARE_OK;
}

static uint64_t run_weights(const pare_trellis *t, size_t run)
{
    const size_t c = run / t->row_parts, r = run % t->row_parts;
    return (uint64_t)(trellis_part(t->cols, t->col_parts, c + 1) -
                      trellis_part(t->cols, t->col_parts, c)) *
           (trellis_part(t->rows, t->row_parts, r + 1) - trellis_part(t->rows, t->row_parts, r));
}

uint64_t trellis_path_bits(const pare_trellis *t)
{
    uint64_t bits = 0;
    for (size_t run = 0; run < t->row_parts * t->col_parts; run++)
        bits += trellis_bits(t, run_weights(t, run));
    return bits;
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct walk {
    const pare_trellis *t;
    const int16_t *table;
    const uint8_t *path; /* PADDING bytes after its end */
    const int8_t *row_sign, *col_sign;
    const uint32_t *order; /* of the rows */
    const uint8_t *scale;
    int exponent;
    int32_t *x; /* panels of rows, column by column: x[(panel cols + j) PANEL + lane] */
    int32_t *y; /* panels of columns, row by row */
} walk;

static uint64_t path_word(const uint8_t *path, uint64_t bit) /* 57 bits at least */
{
    uint64_t w;
    memcpy(&w, path + bit / 8, sizeof w);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w >> (bit % 8);
}

/* The state of a weight whose last bit is before `end` of a ring of `ring` bits from `at`. */
static uint32_t state_at(const walk *w, uint64_t at, uint64_t end, uint64_t ring)
{
    const unsigned bits = w->t->state_bits;
    const uint32_t mask = (UINT32_C(1) << bits) - 1;
    if (end >= bits) return (uint32_t)path_word(w->path, at + end - bits) & mask;
    const unsigned before = bits - (unsigned)end; /* from the end of the ring */
    const uint32_t last =
        (uint32_t)path_word(w->path, at + ring - before) & ((UINT32_C(1) << before) - 1);
    return (last | (uint32_t)path_word(w->path, at) << before) & mask;
}

/* The entries of a run, from bit `at`. */
static void walk_run(const walk *w, size_t run, uint64_t at)
{
    const pare_trellis *const t = w->t;
    const size_t c = run / t->row_parts, r = run % t->row_parts;
    const size_t first = trellis_part(t->rows, t->row_parts, r),
                 last = trellis_part(t->rows, t->row_parts, r + 1);
    const uint64_t ring = trellis_bits(t, run_weights(t, run));
    uint64_t eighths = 0; /* of the bits so far */
    for (size_t j = trellis_part(t->cols, t->col_parts, c);
         j < trellis_part(t->cols, t->col_parts, c + 1); j++)
        for (size_t k = first; k < last; k++) {
            const size_t i = w->order[k];
            eighths += t->eighths;
            w->x[(i / PANEL * t->cols + j) * PANEL + i % PANEL] =
                w->table[state_at(w, at, eighths / 8, ring)];
        }
}

static void walk_all(const walk *w)
{
    uint64_t at = 0;
    for (size_t run = 0; run < w->t->row_parts * w->t->col_parts; run++) {
        walk_run(w, run, at);
        at += trellis_bits(w->t, run_weights(w->t, run));
    }
}

/* A panel of rows: rotated along the columns, and turned into panels of columns. */
static void rotate_columns(const walk *w, size_t panel)
{
    const size_t cols = w->t->cols, rows = w->t->rows, first = panel * PANEL;
    const size_t count = rows - first < PANEL ? rows - first : PANEL;
    int32_t *const v = w->x + panel * cols * PANEL;
    hadamard_lanes(v, cols, w->t->col);
    for (size_t j0 = 0; j0 < cols; j0 += PANEL)
        for (size_t i = 0; i < count; i++) {
            int32_t *const to = w->y + (j0 / PANEL * rows + first + i) * PANEL;
            for (size_t j = 0; j < PANEL && j0 + j < cols; j++) to[j] = v[(j0 + j) * PANEL + i];
        }
}

/* A panel of columns: rotated along the rows, and scaled into the weight. */
static void rotate_rows(const walk *w, size_t panel, float *out)
{
    const size_t cols = w->t->cols, rows = w->t->rows, first = panel * PANEL;
    const size_t count = cols - first < PANEL ? cols - first : PANEL;
    int32_t *const v = w->y + panel * rows * PANEL;
    const float unit = ldexpf(1, w->exponent);
    hadamard_lanes(v, rows, w->t->row);
    for (size_t i = 0; i < rows; i++) {
        const uint8_t *const s = w->scale + (w->t->row_scales ? 2 * i : 0);
        const int64_t scale = (s[0] | s[1] << 8) * w->row_sign[i];
        for (size_t j = 0; j < count; j++)
            out[i * cols + first + j] =
                (float)(v[i * PANEL + j] * scale * w->col_sign[first + j]) * unit;
    }
}

static pare_status read_head(pare_trellis *t, const pare_coded_head *h, const ticket_body *body,
                             pare_err *err)
{
    const uint8_t *const d = body->data;
    if (h->flags & ~(uint32_t)(ROW_SCALES | SHUFFLED))
        return pare_fail(err, PARE_ERR_INPUT, "a ticket with unknown flags %x", h->flags);
    const uint64_t scales = h->flags & ROW_SCALES ? h->rows : 1;
    if (body->bytes < PREFIX_BYTES + 2 * scales)
        return pare_fail(err, PARE_ERR_INPUT, "a ticket of %zu bytes: too short for its scales",
                         body->bytes);
    *t = (pare_trellis){.seed = h->seed,
                        .stream = h->stream,
                        .rows = h->rows,
                        .cols = h->cols,
                        .state_bits = (unsigned)(h->n > 255 ? 255 : h->n),
                        .eighths = d[0] | (unsigned)d[1] << 8,
                        .row = {d[4] | (unsigned)d[5] << 8, d[2]},
                        .col = {d[6] | (unsigned)d[7] << 8, d[3]},
                        .row_parts = get_u32(d + 8),
                        .col_parts = get_u32(d + 12),
                        .row_scales = h->flags & ROW_SCALES,
                        .shuffled = h->flags & SHUFFLED};
    const pare_status st = trellis_check(t, err);
    if (st) return st;
    /* at least a bit for a weight, less than one in eight lost to whole bits of a run */
    const uint64_t weights = (uint64_t)h->rows * h->cols;
    const uint64_t bytes = body->bytes - PREFIX_BYTES - 2 * scales;
    const bool fits = weights / 16 <= bytes;
    const uint64_t bits = fits ? trellis_path_bits(t) : 0;
    if (!fits || bytes != (bits + 7) / 8 || (bits % 8 && d[body->bytes - 1] >> (bits % 8)))
        return pare_fail(err, PARE_ERR_INPUT,
                         "a ticket of %zu x %zu weights of %g bits whose path has %llu bytes",
                         h->rows, h->cols, t->eighths / 8.0, (unsigned long long)bytes);
    return PARE_OK;
}

/* All that is between the bytes and the weights. */
static pare_status open_walk(walk *w, pare_trellis *t, const ticket_body *body, pare_arena *a,
                             pare_err *err)
{
    const size_t scales = t->row_scales ? t->rows : 1, states = (size_t)1 << t->state_bits;
    const size_t skip = PREFIX_BYTES + 2 * scales, panels = (t->rows + PANEL - 1) / PANEL,
                 across = (t->cols + PANEL - 1) / PANEL;
    int16_t *const table = pare_alloc(a, states, sizeof *table);
    uint32_t *const order = pare_alloc(a, states, sizeof *order);
    uint32_t *const rows = pare_alloc(a, t->rows, sizeof *rows);
    uint8_t *const path = pare_alloc(a, body->bytes - skip + PADDING, 1);
    int8_t *const row_sign = pare_alloc(a, t->rows, 1), *const col_sign = pare_alloc(a, t->cols, 1);
    w->x = pare_alloc(a, panels * t->cols, PANEL * sizeof *w->x);
    w->y = pare_alloc(a, across * t->rows, PANEL * sizeof *w->y);
    if (!table || !order || !rows || !path || !row_sign || !col_sign || !w->x || !w->y)
        return pare_no_memory(err);
    memcpy(path, body->data + skip, body->bytes - skip);
    trellis_table(table, order, t->seed, t->stream, t->state_bits);
    trellis_order(rows, t);
    trellis_signs(row_sign, t, 1);
    trellis_signs(col_sign, t, 2);
    w->order = rows;
    w->t = t, w->table = table, w->path = path, w->row_sign = row_sign, w->col_sign = col_sign;
    w->scale = body->data + PREFIX_BYTES;
    return PARE_OK;
}

pare_status ticket_expand_trellis(float **out, pare_arena *a, const pare_coded_head *h,
                                  const ticket_body *body, pare_arena *scratch, pare_err *err)
{
    pare_trellis t;
    walk w = {.exponent = h->exponent};
    pare_status st = read_head(&t, h, body, err);
    if (!st) st = open_walk(&w, &t, body, scratch, err);
    if (!st) st = ticket_new_weight(out, a, h, err);
    if (st) return st;
    walk_all(&w);
    for (size_t p = 0; p < (t.rows + PANEL - 1) / PANEL; p++) rotate_columns(&w, p);
    for (size_t p = 0; p < (t.cols + PANEL - 1) / PANEL; p++) rotate_rows(&w, p, *out);
    return PARE_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_u16(uint8_t *to, unsigned v)
{
    to[0] = (uint8_t)v, to[1] = (uint8_t)(v >> 8);
}

uint64_t pare_coded_trellis_bytes(const pare_trellis *t)
{
    return TICKET_HEADER_BYTES + PREFIX_BYTES + 2 * (uint64_t)(t->row_scales ? t->rows : 1) +
           (trellis_path_bits(t) + 7) / 8 + TICKET_CHECKSUM_BYTES;
}

pare_status pare_coded_trellis(pare_coded *out, pare_arena *a, const pare_trellis *t, int exponent,
                               const uint16_t *scale, const uint8_t *path, pare_err *err)
{
    const size_t scales = t->row_scales ? t->rows : 1;
    const size_t path_bytes = (size_t)((trellis_path_bits(t) + 7) / 8);
    pare_arena *const scratch = pare_arena_new();
    const size_t bytes = PREFIX_BYTES + 2 * scales + path_bytes;
    uint8_t *const to = scratch ? pare_alloc(scratch, bytes, 1) : NULL;
    pare_status st = to ? trellis_check(t, err) : pare_no_memory(err);
    if (!st) {
        put_u16(to, t->eighths);
        to[2] = (uint8_t)t->row.twos, to[3] = (uint8_t)t->col.twos;
        put_u16(to + 4, t->row.paley), put_u16(to + 6, t->col.paley);
        put_u32(to + 8, (uint32_t)t->row_parts), put_u32(to + 12, (uint32_t)t->col_parts);
        for (size_t i = 0; i < scales; i++) put_u16(to + PREFIX_BYTES + 2 * i, scale[i]);
        memcpy(to + PREFIX_BYTES + 2 * scales, path, path_bytes);
        const ticket_body body = {to, bytes};
        const pare_coded_head h = {.kind = PARE_CODED_TRELLIS,
                                   .flags = (t->row_scales ? ROW_SCALES : 0u) |
                                            (t->shuffled ? SHUFFLED : 0u),
                                   .seed = t->seed,
                                   .stream = t->stream,
                                   .rows = t->rows,
                                   .cols = t->cols,
                                   .n = t->state_bits,
                                   .exponent = exponent};
        st = ticket_frame(out, a, &h, &body, err);
    }
    pare_arena_free(scratch);
    return st;
}
