/* coded_groups.c - integers of a few bits, and a scale for every group of neighbors in a row.
 *
 *     w[i][j] = d[i][g] q[i][j]            g = j / group      symmetric
 *     w[i][j] = d[i][g] q[i][j] + m[i][g]                     affine
 *
 * in f32, product and sum each rounded to nearest. n is the group, 1 .. cols (cols: the whole row);
 * flags: 1, affine; 2, scales and offsets are f32.
 *
 *   body:  u32 bits (2 .. 8)
 *          d of every group, row by row, f16 or f32; where affine m in the same way
 *          q + z, `bits` bits each, lowest first, row by row without gaps; zeros up to a whole byte
 *
 * z = 2^(bits-1), but 0 where affine and of fewer than 8 bits. So the numbers of llama.cpp's Q8_0,
 * Q4_0 and Q5_0 (symmetric) and of Q4_1 and Q5_1 (affine), in groups of 32, can be stored as they
 * are. */
#include "base/array.h"
#include "ticket_codec.h"
#include <math.h>
#include <string.h>

enum { AFFINE = 1, F32_SCALES = 2, PREFIX_BYTES = 4, FEWEST_BITS = 2, MOST_BITS = 8 };
#define MOST_SCALE 0x1p100 /* no product overflows */

static int code_zero(unsigned bits, bool affine)
{
    return affine && bits < 8 ? 0 : 1 << (bits - 1);
}

int pare_int_groups_least(unsigned bits, bool affine)
{
    return -code_zero(bits, affine);
}

int pare_int_groups_most(unsigned bits, bool affine)
{
    return (1 << bits) - 1 - code_zero(bits, affine);
}

void pare_int_groups_expand(float *out, const pare_int_groups *g)
{
    const size_t groups = (g->cols + g->group - 1) / g->group;
    for (size_t i = 0; i < g->rows; i++)
        for (size_t j = 0; j < g->cols; j++) {
            const size_t at = i * groups + j / g->group;
            const float product = g->scale[at] * (float)g->q[i * g->cols + j];
            out[i * g->cols + j] = g->offset ? product + g->offset[at] : product;
        }
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* What a body consists of; no product overflows below TICKET_MAX_ENTRIES. */
typedef struct layout {
    size_t scales; /* how many; as many offsets where affine */
    size_t scale_bytes, offsets_at, codes_at, bytes;
} layout;

static layout layout_of(size_t rows, size_t cols, size_t group, unsigned bits, bool affine,
                        bool f32_scales)
{
    layout l = {.scales = rows * ((cols + group - 1) / group), .scale_bytes = f32_scales ? 4 : 2};
    l.offsets_at = PREFIX_BYTES + l.scales * l.scale_bytes;
    l.codes_at = l.offsets_at + (affine ? l.scales * l.scale_bytes : 0);
    l.bytes = l.codes_at + (rows * cols * bits + 7) / 8;
    return l;
}

uint64_t pare_coded_groups_bytes(size_t rows, size_t cols, size_t group, unsigned bits, bool affine,
                                 bool f32_scales)
{
    return TICKET_HEADER_BYTES + layout_of(rows, cols, group, bits, affine, f32_scales).bytes +
           TICKET_CHECKSUM_BYTES;
}

/* ---- reading --------------------------------------------------------------------------------- */

static float scale_at(const uint8_t *from, size_t i, bool f32)
{
    if (!f32) return pare_f16_to_f32((uint16_t)(from[2 * i] | from[2 * i + 1] << 8));
    const uint32_t bits = get_u32(from + 4 * i);
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static pare_status read_scales(const float **out, pare_arena *a, const uint8_t *from, size_t n,
                               bool f32, pare_err *err)
{
    float *const v = pare_alloc(a, n, sizeof *v);
    if (!v) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        v[i] = scale_at(from, i, f32);
        if (!(fabsf(v[i]) <= (float)MOST_SCALE))
            return pare_fail(err, PARE_ERR_INPUT, "scale or offset %zu of its groups is %g", i,
                             (double)v[i]);
    }
    *out = v;
    return PARE_OK;
}

static void read_codes(int8_t *q, size_t n, unsigned bits, int zero, const uint8_t *from,
                       size_t bytes)
{
    const unsigned mask = (1u << bits) - 1;
    for (size_t i = 0; i < n; i++) {
        const size_t at = i * bits / 8;
        const unsigned two = from[at] | (at + 1 < bytes ? (unsigned)from[at + 1] << 8 : 0);
        q[i] = (int8_t)((int)(two >> (i * bits % 8) & mask) - zero);
    }
}

/* The integers of a body, in the arena. */
static pare_status read_groups(pare_int_groups *out, pare_arena *a, const pare_coded_head *h,
                               const ticket_body *body, pare_err *err)
{
    const bool affine = h->flags & AFFINE, f32 = h->flags & F32_SCALES;
    if (h->flags & ~(uint32_t)(AFFINE | F32_SCALES) || h->seed || h->stream || h->exponent)
        return pare_fail(err, PARE_ERR_INPUT,
                         "groups with unknown flags %x, a seed, a stream or an exponent", h->flags);
    if (h->n == 0 || h->n > h->cols)
        return pare_fail(err, PARE_ERR_INPUT, "groups of %zu in rows of %zu", h->n, h->cols);
    const uint32_t bits = body->bytes < PREFIX_BYTES ? 0 : get_u32(body->data);
    if (bits < FEWEST_BITS || bits > MOST_BITS)
        return pare_fail(err, PARE_ERR_INPUT, "groups of %u bits: from %d to %d are possible", bits,
                         FEWEST_BITS, MOST_BITS);
    const layout l = layout_of(h->rows, h->cols, h->n, bits, affine, f32);
    if (body->bytes != l.bytes)
        return pare_fail(err, PARE_ERR_INPUT,
                         "groups of %zu x %zu integers of %u bits in %zu bytes, must be %zu",
                         h->rows, h->cols, bits, body->bytes, l.bytes);
    const size_t n = h->rows * h->cols, idle = 8 * (l.bytes - l.codes_at) - n * bits;
    if (idle && body->data[l.bytes - 1] >> (8 - idle))
        return pare_fail(err, PARE_ERR_INPUT, "groups whose unused bits are not 0");
    int8_t *const q = pare_alloc(a, n, sizeof *q);
    if (!q) return pare_no_memory(err);
    *out = (pare_int_groups){
        .rows = h->rows, .cols = h->cols, .group = h->n, .bits = bits, .q = q, .bytes = l.bytes};
    out->bytes += TICKET_HEADER_BYTES + TICKET_CHECKSUM_BYTES;
    pare_status st = read_scales(&out->scale, a, body->data + PREFIX_BYTES, l.scales, f32, err);
    if (!st && affine)
        st = read_scales(&out->offset, a, body->data + l.offsets_at, l.scales, f32, err);
    if (!st)
        read_codes(q, n, bits, code_zero(bits, affine), body->data + l.codes_at,
                   l.bytes - l.codes_at);
    return st;
}

pare_status coded_expand_groups(float **out, pare_arena *a, const pare_coded_head *h,
                                const ticket_body *body, pare_arena *scratch, pare_err *err)
{
    pare_int_groups g;
    pare_status st = read_groups(&g, scratch, h, body, err);
    if (!st) st = ticket_new_weight(out, a, h, err);
    if (!st) pare_int_groups_expand(*out, &g);
    return st;
}

pare_status pare_coded_integers(pare_int_groups *out, pare_arena *a, const uint8_t *data,
                                size_t bytes, pare_err *err)
{
    const pare_coded_head h = ticket_head(data);
    const ticket_body body = {data + TICKET_HEADER_BYTES,
                              bytes - TICKET_HEADER_BYTES - TICKET_CHECKSUM_BYTES};
    PARE_ASSERT(h.kind == PARE_CODED_GROUPS);
    return read_groups(out, a, &h, &body, err);
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool all_f16(const float *v, size_t n)
{
    for (size_t i = 0; v && i < n; i++)
        if (pare_f16_to_f32(pare_f16_of((double)v[i])) != v[i]) return false;
    return true;
}

static void write_scales(uint8_t *to, const float *v, size_t n, bool f32)
{
    for (size_t i = 0; v && i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        if (f32) {
            put_u32(to + 4 * i, bits);
        } else {
            const uint16_t half = pare_f16_of((double)v[i]);
            to[2 * i] = (uint8_t)half;
            to[2 * i + 1] = (uint8_t)(half >> 8);
        }
    }
}

pare_status pare_coded_groups(pare_coded *out, pare_arena *a, const pare_int_groups *g,
                              pare_err *err)
{
    const size_t n = g->rows * g->cols, scales = g->rows * ((g->cols + g->group - 1) / g->group);
    const bool affine = g->offset, f32 = !all_f16(g->scale, scales) || !all_f16(g->offset, scales);
    const layout l = layout_of(g->rows, g->cols, g->group, g->bits, affine, f32);
    const int least = pare_int_groups_least(g->bits, affine),
              most = pare_int_groups_most(g->bits, affine);
    PARE_ASSERT(g->bits >= FEWEST_BITS && g->bits <= MOST_BITS && g->group > 0 &&
                g->group <= g->cols);
    pare_arena *const scratch = pare_arena_new();
    uint8_t *const to = scratch ? pare_alloc(scratch, l.bytes, 1) : NULL;
    pare_status st = to ? PARE_OK : pare_no_memory(err);
    if (!st) {
        put_u32(to, g->bits);
        write_scales(to + PREFIX_BYTES, g->scale, scales, f32);
        write_scales(to + l.offsets_at, g->offset, scales, f32);
        bit_writer w = {.data = to + l.codes_at};
        for (size_t i = 0; i < n; i++) {
            PARE_ASSERT(g->q[i] >= least && g->q[i] <= most);
            bits_put(&w, (uint64_t)(g->q[i] - least), g->bits);
        }
        const ticket_body body = {to, l.bytes};
        const pare_coded_head h = {.kind = PARE_CODED_GROUPS,
                                   .flags = (affine ? AFFINE : 0) | (f32 ? F32_SCALES : 0),
                                   .rows = g->rows,
                                   .cols = g->cols,
                                   .n = g->group};
        st = ticket_frame(out, a, &h, &body, err);
    }
    pare_arena_free(scratch);
    return st;
}
