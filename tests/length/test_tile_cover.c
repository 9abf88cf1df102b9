/* Tests src/length/{tile_cover,tile_split,call_packing}.c: every visible pair is in exactly one
 * tile, and no other pair is; also when tiles become staircases, rectangles, and parts of packed
 * calls. */
#include "length/attend_plan.h"
#include "length/calls.h"
#include "length_cases.h"

enum { MOST = 47 };
typedef struct seen {
    unsigned char times[MOST * MOST];
    size_t n, tiles;
    uint32_t bq, bk;
} seen;

static pare_status mark(void *ctx, const pare_tile *t)
{
    seen *const s = ctx;
    assert_true(t->nq >= 1 && t->nk >= 1 && t->nq <= s->bq && t->nk <= s->bk);
    for (size_t p = 0; p < t->nq; p++) {
        assert_true(pare_tile_query(t, p) < s->n && pare_tile_sees(t, p) >= 1);
        for (size_t x = 0; x < pare_tile_sees(t, p); x++) {
            assert_true(pare_tile_key(t, x) < s->n);
            s->times[pare_tile_query(t, p) * MOST + pare_tile_key(t, x)]++;
        }
    }
    s->tiles++;
    return PARE_OK;
}

static void check(const seen *s, const pare_pattern *p, const pare_graph *g, const char *what)
{
    static unsigned char want[MOST * MOST];
    memset(want, 0, sizeof want);
    for (size_t i = 0; i < s->n; i++) {
        const pare_keys k = pare_visible(p, g, s->n, i);
        for (size_t x = 0; x < k.count; x++) want[i * MOST + pare_key(&k, x)] = 1;
    }
    for (size_t i = 0; i < s->n * MOST; i++)
        if (s->times[i] != want[i])
            fail_msg("%s: n %zu, blocks %u %u, pattern %d window %zu sinks %zu: pair %zu %zu is in "
                     "%d tiles",
                     what, s->n, s->bq, s->bk, (int)p->kind, p->window, p->sinks, i / MOST,
                     i % MOST, s->times[i]);
}

/* Calls of a softmax oracle: which rows see which, as the oracle's mask and the codes decide. */
static pare_status mark_call(void *ctx, const pare_placed *t, size_t count, uint32_t n)
{
    seen *const s = ctx;
    assert_true(n <= s->bq); /* the oracle's length here */
    for (size_t a = 0; a < count; a++)
        for (size_t p = 0; p < t[a].t.nq; p++)
            for (uint32_t x = 0; x < t[a].t.nk; x++) {
                const uint32_t row = x < t[a].shared ? 1 + x : t[a].k_at + x;
                assert_true(row >= 1 && row < n && t[a].q_at + p < n);
                if (s->bk && row > t[a].q_at + p) continue; /* causal: a later row */
                s->times[pare_tile_query(&t[a].t, p) * MOST + pare_tile_key(&t[a].t, x)]++;
            }
    s->tiles++;
    return PARE_OK;
}

static void through_calls(size_t n, const pare_pattern *p, const pare_graph *g, uint32_t m,
                          bool causal, bool pack)
{
    static seen s;
    pare_arena *const a = pare_arena_new();
    pare_length_plan plan;
    pare_err err = {0};
    const pare_oracle_caps caps = {.max_len = m,
                                   .features = causal ? QKV_CAUSAL : QKV_FULL,
                                   .dtype = PARE_F64,
                                   .exp_flush = 746,
                                   .w_min = 0x1p-900};
    const pare_length_opts o = {.mode = PARE_LENGTH_ZEROREF, .no_pack = !pack};
    const pare_length_head h = {0, 4, 4};
    assert_ok(
        pare_length_plan_make(
            &plan, a,
            &(pare_length_shape){.heads = &h, .count = 1, .tokens = n, .pattern = p, .graph = g},
            &caps, &o, &err),
        &err);
    memset(&s, 0, sizeof s);
    s.n = n, s.bq = m, s.bk = causal;
    if (n > m) { /* else one plain call */
        assert_ok(pare_length_plan_calls(&plan, mark_call, &s, &err), &err);
        assert_int_equal(s.tiles, plan.cost.calls);
        check(&s, p, g, causal ? "causal calls" : "full calls");
    }
    pare_arena_free(a);
}

static void one_pattern(size_t n, const pare_pattern *p, uint32_t bq, uint32_t bk)
{
    static seen s;
    memset(&s, 0, sizeof s);
    s.n = n, s.bq = bq, s.bk = bk;
    assert_int_equal(pare_tiles(n, p, NULL, bq, bk, mark, &s), PARE_OK);
    check(&s, p, NULL, "tiles");
    if (bq != bk || bq < 2) return;
    for (int way = 0; way < 4; way++) through_calls(n, p, NULL, bq, way & 1, way & 2);
}

static void every_pair_is_covered_once(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 3, 5, 8, 13, 16, 31, 32, 33, 47};
    static const uint32_t blocks[] = {1, 2, 4, 7, 8, 16, 64};
    static const size_t windows[] = {1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 40};
    static const size_t sinks[] = {0, 1, 2, 3, 5, 9};
    size_t cases = 0;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (size_t b = 0; b < 2 * sizeof blocks / sizeof *blocks; b++) {
            const uint32_t bq = blocks[b / 2], bk = b % 2 && bq > 1 ? bq - 1 : bq;
            const pare_pattern full = {.kind = PARE_FULL}, causal = {.kind = PARE_CAUSAL};
            one_pattern(lengths[l], &full, bq, bk);
            one_pattern(lengths[l], &causal, bq, bk);
            for (size_t w = 0; w < sizeof windows / sizeof *windows; w++)
                for (size_t s = 0; s < sizeof sinks / sizeof *sinks; s++, cases++) {
                    const pare_pattern p = {
                        .kind = PARE_WINDOW, .window = windows[w], .sinks = sinks[s]};
                    one_pattern(lengths[l], &p, bq, bk);
                }
        }
    assert_true(cases >= 2640);
}

static void graphs_are_covered_once(void **state)
{
    (void)state;
    static size_t ptr[MOST + 1];
    static uint32_t idx[MOST * MOST];
    pare_rng r = pare_rng_at(3, 3);
    size_t edges = 0;
    for (size_t i = 0; i < MOST; i++) {
        for (uint32_t j = 0; j < MOST; j++)
            if (i != 5 && pare_rng_below(&r, 4) == 0) idx[edges++] = j;
        ptr[i + 1] = edges;
    }
    const pare_graph g = {MOST, ptr, idx};
    const pare_pattern p = {.kind = PARE_GRAPH};
    for (uint32_t m = 2; m <= 16; m++) {
        static seen s;
        memset(&s, 0, sizeof s);
        s.n = MOST, s.bq = s.bk = m;
        assert_int_equal(pare_tiles(MOST, &p, &g, m, m, mark, &s), PARE_OK);
        check(&s, &p, &g, "graph");
        for (int way = 0; way < 4; way++) through_calls(MOST, &p, &g, m, way & 1, way & 2);
    }
}

/* ---- drawn keys ------------------------------------------------------------------------------ */

typedef struct lists { /* of every block: its keys, in an order of their own */
    uint32_t keys[MOST][MOST];
    size_t drawn;
} lists;

static const uint32_t *draw(void *ctx, size_t block, size_t of)
{
    lists *const l = ctx;
    for (size_t i = 0; i < l->drawn; i++) l->keys[block][i] = (uint32_t)(of - 1 - i);
    return l->keys[block];
}

/* A query sees its own block up to itself, and every key that is drawn for the block once. */
static void drawn_keys_are_covered_once(void **state)
{
    (void)state;
    static seen s;
    static lists l;
    for (size_t n = 8; n <= MOST; n += 3)
        for (uint32_t m = 3; m <= 12; m++)
            for (int way = 0; way < 4; way++) {
                const uint32_t b = m - 1;
                const call_rule r = {.kind = way & 1 ? CALL_CAUSAL : CALL_FULL,
                                     .reference = true,
                                     .m = m,
                                     .pack = way & 2};
                const causal_draw d = {draw, &l, l.drawn = b - b % 7 / 6};
                pare_err err = {0};
                memset(&s, 0, sizeof s);
                s.n = n, s.bq = m, s.bk = way & 1;
                assert_ok(calls_of_causal_sample(&r, n, &d, mark_call, &s, &err), &err);
                assert_ok(calls_of_causal_sample(&r, n, NULL, mark_call, &s, &err), &err);
                for (size_t i = 0; i < n; i++) {
                    unsigned char want[MOST] = {0};
                    const size_t from = i / b * b;
                    for (size_t j = from; j <= i; j++) want[j] = 1;
                    for (size_t j = 0; j < from && from <= d.keys; j++) want[j] = 1;
                    for (size_t j = 0; j < d.keys && from > d.keys; j++) want[l.keys[i / b][j]] = 1;
                    assert_memory_equal(s.times + i * MOST, want, MOST);
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_is_covered_once),
        cmocka_unit_test(graphs_are_covered_once),
        cmocka_unit_test(drawn_keys_are_covered_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
