/* Tickets: bytes in the place of a weight, behind a checksum that fits. What is taken is as large
 * as it says, all of it finite, and the same when it is taken again. */
#include "fuzz.h"
#include "model/ticket_store.h"

#include <math.h>
#include <string.h>
#include <zlib.h>

enum { MOST = 1024, SUM = 4 }; /* a byte may stand for two thousand weights */

static pare_status expand(pare_weight *w, pare_coded_head *h, pare_arena *a, const uint8_t *data,
                          size_t size)
{
    pare_err err = {0};
    const pare_status st = pare_coded_expand(w, h, a, data, size, PARE_CODED_PER_BYTE * size, &err);
    fuzz_expect_said(st, &err);
    return st;
}

/* The integers of groups stand for the same numbers. */
static void look_at_integers(const pare_weight *w, pare_arena *a, const uint8_t *data, size_t size)
{
    pare_int_groups g;
    pare_err err = {0};
    FUZZ_EXPECT(pare_coded_integers(&g, a, data, size, &err) == PARE_OK);
    FUZZ_EXPECT(g.rows == w->rows && g.cols == w->cols && g.group > 0 && g.group <= g.cols);
    float *const v = pare_alloc(a, g.rows * g.cols, sizeof *v);
    FUZZ_EXPECT(v);
    for (size_t i = 0; i < g.rows * g.cols; i++)
        FUZZ_EXPECT(g.q[i] >= pare_int_groups_least(g.bits, g.offset) &&
                    g.q[i] <= pare_int_groups_most(g.bits, g.offset));
    pare_int_groups_expand(v, &g);
    FUZZ_EXPECT(memcmp(v, w->data, g.rows * g.cols * sizeof *v) == 0);
}

static void look_at(const pare_weight *w, const pare_coded_head *h, pare_arena *a,
                    const uint8_t *data, size_t size)
{
    const float *const v = w->data;
    const size_t n = w->rows * w->cols;
    pare_weight again;
    pare_coded_head head;
    FUZZ_EXPECT(w->dtype == PARE_F32 && w->rows == h->rows && w->cols == h->cols);
    for (size_t i = 0; i < n; i++) FUZZ_EXPECT(isfinite(v[i]));
    FUZZ_EXPECT(expand(&again, &head, a, data, size) == PARE_OK);
    FUZZ_EXPECT(memcmp(again.data, v, n * sizeof *v) == 0);
    if (h->kind == PARE_CODED_GROUPS) look_at_integers(w, a, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t ticket[MOST + SUM];
    pare_weight w;
    pare_coded_head h;
    if (size > MOST) return 0;
    pare_arena *const a = pare_arena_new();
    FUZZ_EXPECT(a);
    memcpy(ticket, data, size);
    const uint32_t sum = (uint32_t)crc32_z(0, ticket, size);
    for (size_t i = 0; i < SUM; i++) ticket[size + i] = (uint8_t)(sum >> (8 * i));
    if (expand(&w, &h, a, ticket, size + SUM) == PARE_OK) look_at(&w, &h, a, ticket, size + SUM);
    pare_arena_free(a);
    return 0;
}
