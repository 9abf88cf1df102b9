/* Tests src/attention/{sparse_backward,edge_schedule,sparse_blocks,graph_transpose}.c and the
 * row sums of sparse.c: every variant this CPU can run, with and without saved scores, against
 * plain f64 loops.
 *
 * How far an f32 gradient may be off. With u = 2^-24 the scores are off by lambda (kernel_cases.h),
 * lse by u |lse| + lambda + a few u, so each p by a factor e^+-delta with delta = 2 lambda +
 * 4 u |lse| + 16 u, and by 2^-126; the slope dy.(v - y) is off by g = gamma_{dv + 8} (sum |dy v| +
 * sum |dy y|) and by what y itself is off, delta' sum |dy| max |v|, where delta' = 2 delta +
 * gamma_{2n}. A sum over n edges adds gamma_{n + 8} of its absolute terms. */
#include "kernel_cases.h"
#include "attention/sparse.h"
#include "attention/edge_schedule.h"

typedef struct grads {
    double *q, *k, *v;    /* n x d */
    double *qe, *ke, *ve; /* how far an engine may be off */
} grads;

typedef struct back_case {
    head_case h;
    pare_mat32 dy, dq, dk, dv;
    float *lse, *scores, *pair; /* the last two and a canary for the edges of g */
    pare_graph g;
    pare_transposed_graph transpose;
} back_case;

static double *zeros(pare_arena *a, size_t n)
{
    double *const x = pare_alloc(a, n + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

static void fill(pare_mat32 *m, float value)
{
    for (size_t i = 0; i < m->rows; i++)
        for (size_t c = 0; c < m->cols; c++) m->v[i * m->ld + c] = value;
}

static back_case back_new(pare_arena *a, size_t n, size_t dk, size_t dv, data_kind kind,
                          pare_graph g, uint64_t seed)
{
    back_case b = {.h = case_new(a, n, dk, dv, kind, seed), .g = g};
    pare_rng r = pare_rng_at(seed, 12);
    pare_mat dy64 = pare_mat_new(a, n, dv);
    b.dy = mat32_new(a, n, dv);
    fill_mat(&b.dy, &dy64, kind == DENORMAL ? DENORMAL : RANDOM, &r, 1);
    b.dq = mat32_new(a, n, dk), b.dk = mat32_new(a, n, dk), b.dv = mat32_new(a, n, dv);
    b.lse = pare_alloc(a, n + 1, sizeof *b.lse);
    pare_err err = {0};
    const size_t edges = g.ptr[g.n];
    b.scores = pare_alloc(a, edges + 1, sizeof *b.scores);
    b.pair = pare_alloc(a, 2 * edges + 1, sizeof *b.pair);
    assert_true(b.lse && b.scores && b.pair);
    b.scores[edges] = b.pair[2 * edges] = CANARY;
    assert_ok(pare_graph_transpose(&b.transpose, a, &g, dk + dv, &err), &err);
    return b;
}

static double at(const pare_mat32 *m, size_t i, size_t c)
{
    return (double)m->v[i * m->ld + c];
}

static double gamma_n(size_t n)
{
    return (double)n * U32 / (1 - (double)n * U32);
}

/* One edge: its weight, its gradient, and how far they may be off. */
typedef struct edge_facts {
    double p, ds, pe, dse;
} edge_facts;

static edge_facts edge_of(const back_case *b, size_t i, size_t j, size_t count, double weight,
                          double delta, const double *y)
{
    const head_case *const h = &b->h;
    const double scale = fabs((double)h->scale), more = 2 * delta + gamma_n(2 * count + 8);
    double t = 0, size = 0, dys = 0, most = 0;
    for (size_t c = 0; c < h->dv; c++) {
        const double dy = at(&b->dy, i, c), v = at(&h->v, j, c);
        t += dy * (v - y[c]);
        size += fabs(dy) * (fabs(v) + fabs(y[c])), dys += fabs(dy), most = fmax(most, fabs(v));
        most = fmax(most, fabs(y[c]));
    }
    const double under = (double)(h->dv + 4) * 0x1p-126;
    edge_facts e = {.p = weight, .pe = weight * expm1(delta) + 0x1p-125};
    const double te = gamma_n(h->dv + 8) * size + expm1(more) * dys * 8 * most + under * (1 + dys);
    e.ds = (double)h->scale * weight * t;
    e.dse = scale * ((weight + e.pe) * te + e.pe * fabs(t)) + 8 * U32 * fabs(e.ds) + 0x1p-125;
    return e;
}

static void add_edge(const back_case *b, grads *g, size_t i, size_t j, edge_facts e, double sums)
{
    const head_case *const h = &b->h;
    for (size_t c = 0; c < h->dk; c++) {
        const double q = at(&h->q, i, c), k = at(&h->k, j, c);
        g->q[i * h->dk + c] += e.ds * k, g->k[j * h->dk + c] += e.ds * q;
        g->qe[i * h->dk + c] += (e.dse + sums * fabs(e.ds)) * fabs(k) + 0x1p-125;
        g->ke[j * h->dk + c] += (e.dse + sums * fabs(e.ds)) * fabs(q) + 0x1p-125;
    }
    for (size_t c = 0; c < h->dv; c++) {
        const double dy = at(&b->dy, i, c);
        g->v[j * h->dv + c] += e.p * dy;
        g->ve[j * h->dv + c] += (e.pe + sums * e.p) * fabs(dy) + 0x1p-125;
    }
}

static grads plain(pare_arena *a, const back_case *b, const pare_pattern *p, double *lse)
{
    const head_case *const h = &b->h;
    const size_t n = h->n, nk = n * h->dk, nv = n * h->dv;
    grads g = {zeros(a, nk), zeros(a, nk), zeros(a, nv), zeros(a, nk), zeros(a, nk), zeros(a, nv)};
    double *const w = zeros(a, n), *const y = zeros(a, h->dv);
    for (size_t i = 0; i < n; i++) {
        const pare_keys keys = pare_visible(p, &b->g, n, i);
        lse[i] = -INFINITY;
        if (keys.count == 0) continue;
        const row_facts f = row_weights(h, &keys, i, w);
        double score = 0;
        for (size_t c = 0; c < h->dk; c++)
            score += at(&h->q, i, c) * at(&h->k, pare_key(&keys, 0), c);
        lse[i] = score * (double)h->scale - log(w[0]); /* w is normalized */
        if (!(w[0] > 0x1p-1000)) lse[i] = NAN;         /* the first key says nothing */
        const double size = fabs(isnan(lse[i]) ? 2e4 : lse[i]) + f.range;
        const double delta = 2 * f.lambda + 4 * U32 * size + 16 * U32 + gamma_n(keys.count + 8);
        for (size_t c = 0; c < h->dv; c++) y[c] = 0;
        for (size_t j = 0; j < keys.count; j++)
            for (size_t c = 0; c < h->dv; c++) y[c] += w[j] * at(&h->v, pare_key(&keys, j), c);
        for (size_t j = 0; j < keys.count; j++)
            add_edge(b, &g, i, pare_key(&keys, j),
                     edge_of(b, i, pare_key(&keys, j), keys.count, w[j], delta, y),
                     gamma_n(2 * n + 40));
    }
    return g;
}

/* saves: as training does it, with saved scores and a schedule. */
static void run(const sparse_kernel *kernel, back_case *b, const pare_pattern *p, bool saves,
                int threads, float start)
{
    const bool graph = p->kind == PARE_GRAPH;
    const size_t edges = b->g.ptr[b->g.n];
    const pare_saved32 saved = {b->lse, saves ? b->scores : NULL, saves ? b->pair : NULL,
                                isnan(start)}; /* what was there is not read */
    const pare_exec x = {.threads = threads};
    pare_err err = {0};
    const sparse_job f = {.y = b->h.y,
                          .lse = b->lse,
                          .scores = saved.scores,
                          .q = &b->h.q,
                          .k = &b->h.k,
                          .v = &b->h.v,
                          .scale = b->h.scale,
                          .pattern = p,
                          .graph = graph ? &b->g : NULL,
                          .schedule = saves ? b->transpose.queries : NULL,
                          .kernel = kernel};
    const sparse_backward_job w = {.dq = b->dq,
                                   .dk = b->dk,
                                   .dv = b->dv,
                                   .dy = &b->dy,
                                   .q = &b->h.q,
                                   .k = &b->h.k,
                                   .v = &b->h.v,
                                   .y = &b->h.y,
                                   .saved = saved,
                                   .scale = b->h.scale,
                                   .pattern = p,
                                   .graph = graph ? &b->g : NULL,
                                   .transpose = graph ? &b->transpose : NULL,
                                   .kernel = kernel};
    fill(&b->dq, start), fill(&b->dk, start), fill(&b->dv, start);
    assert_ok(sparse_attend(&f, &x, &err), &err);
    assert_ok(sparse_backward(&w, &x, &err), &err);
    assert_true(b->scores[edges] == CANARY && b->pair[2 * edges] == CANARY);
}

static void check_mat(const pare_mat32 *got, const double *want, const double *bound, double start,
                      const char *what)
{
    for (size_t i = 0; i < got->rows; i++) {
        for (size_t c = 0; c < got->cols; c++) {
            const double w = want[i * got->cols + c] + start;
            const double most = bound[i * got->cols + c] +
                                4 * U32 * (fabs(w) + fabs(start)) * (1 + (double)got->rows / 16);
            if (!(fabs(at(got, i, c) - w) <= most))
                print_error("%s row %zu column %zu of %zu x %zu\n", what, i, c, got->rows,
                            got->cols);
            assert_le(fabs(at(got, i, c) - w), most);
        }
        for (size_t c = got->cols; c < got->ld; c++) assert_true(got->v[i * got->ld + c] == CANARY);
    }
}

static void check_case(pare_arena *a, back_case *b, const pare_pattern *p)
{
    sparse_kernel kernels[3];
    const size_t variants = sparse_kernels(kernels);
    double *const lse = zeros(a, b->h.n);
    const grads g = plain(a, b, p, lse);
    const size_t ways = p->kind == PARE_GRAPH ? 3 : 1;
    for (size_t i = 0; i < ways * variants; i++) {
        const bool fresh = i % ways == 2;
        const float start = i == 0 || fresh ? 0 : 0.25f; /* it adds */
        run(&kernels[i / ways], b, p, i % ways, 1, fresh ? NAN : start);
        check_mat(&b->dq, g.q, g.qe, (double)start, "dq");
        check_mat(&b->dk, g.k, g.ke, (double)start, "dk");
        check_mat(&b->dv, g.v, g.ve, (double)start, "dv");
        for (size_t r = 0; r < b->h.n; r++) {
            if (lse[r] == -INFINITY) assert_true(b->lse[r] == -INFINITY);
            if (isfinite(lse[r]))
                assert_le(fabs((double)b->lse[r] - lse[r]), 1e-5 * (1 + fabs(lse[r])));
        }
    }
}

/* Each pair with probability `density`; every tenth row empty, key 5 seen by nobody, key 0 by all
 * others. */
static pare_graph random_graph(pare_arena *a, size_t n, double density, uint64_t seed)
{
    size_t *const ptr = pare_alloc(a, n + 1, sizeof *ptr);
    uint32_t *const idx = pare_alloc(a, n * n + 1, sizeof *idx);
    pare_rng r = pare_rng_at(seed, 13);
    assert_true(ptr && idx);
    for (size_t i = 0, to = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            const bool hit = pare_rng_uniform(&r) < density;
            if (i % 10 != 3 && j != 5 && (hit || j == 0 || i == 1)) idx[to++] = (uint32_t)j;
        }
        ptr[i + 1] = to;
    }
    return (pare_graph){n, ptr, idx};
}

static const pare_pattern GRAPH = {.kind = PARE_GRAPH};

static void every_variant_agrees_with_plain_loops_on_graphs(void **state)
{
    (void)state;
    const size_t shapes[][3] = {{1, 4, 4},    {2, 1, 1},    {40, 5, 3},   {70, 16, 16},
                                {65, 64, 64}, {90, 70, 65}, {50, 33, 130}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (data_kind kind = RANDOM; kind < DATA_KINDS; kind++) {
            pare_arena *const a = pare_arena_new();
            const pare_graph g = random_graph(a, shapes[s][0], s % 2 ? 0.1 : 0.6, 1 + s);
            back_case b = back_new(a, shapes[s][0], shapes[s][1], shapes[s][2], kind, g, 20 + s);
            check_case(a, &b, &GRAPH);
            pare_arena_free(a);
        }
}

static void every_variant_agrees_with_plain_loops_on_windows(void **state)
{
    (void)state;
    const pare_pattern windows[] = {{.kind = PARE_WINDOW, .window = 1},
                                    {.kind = PARE_WINDOW, .window = 3, .sinks = 1},
                                    {.kind = PARE_WINDOW, .window = 23, .sinks = 5}};
    for (size_t p = 0; p < 3; p++)
        for (data_kind kind = RANDOM; kind < DATA_KINDS; kind++) {
            pare_arena *const a = pare_arena_new();
            back_case b = back_new(a, 60, 9, 17, kind, random_graph(a, 60, 0, 1), 40 + p);
            check_case(a, &b, &windows[p]);
            pare_arena_free(a);
        }
}

/* Wide enough that the keys do not fit one block. */
enum { LARGE = 700, WIDE = 420 };

static void blocks_of_keys_change_nothing_but_roundings(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    const pare_graph g = random_graph(a, LARGE, 0.05, 3);
    back_case b = back_new(a, LARGE, WIDE, WIDE, RANDOM, g, 60);
    assert_true(key_block_size(&b.g, WIDE) < LARGE);
    assert_true(b.transpose.queries->blocks > 2 && b.transpose.keys->blocks > 2);
    assert_true(key_block_size(&b.g, 8) >= LARGE); /* all keys fit */
    check_case(a, &b, &GRAPH);
    reference(&b.h, &GRAPH, &b.g);
    check_bound(&b.h, &GRAPH, &b.g);
    pare_arena_free(a);
}

static void bits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    sparse_kernel kernels[3];
    const size_t variants = sparse_kernels(kernels);
    pare_arena *const a = pare_arena_new();
    const pare_graph g = random_graph(a, LARGE, 0.05, 4);
    const pare_pattern window = {.kind = PARE_WINDOW, .window = 7, .sinks = 2};
    for (size_t t = 0; t < 3; t++) {
        const size_t d = t == 0 ? WIDE : 12;
        back_case one = back_new(a, LARGE, d, d, RANDOM, g, 70);
        back_case two = back_new(a, LARGE, d, d, RANDOM, g, 70);
        for (size_t i = 0; i < variants; i++) {
            run(&kernels[i], &one, t == 2 ? &window : &GRAPH, t < 2, 1, 1);
            run(&kernels[i], &two, t == 2 ? &window : &GRAPH, t < 2, 2, 1);
            const size_t bytes = LARGE * one.dq.ld * sizeof(float);
            assert_memory_equal(one.dq.v, two.dq.v, bytes);
            assert_memory_equal(one.dk.v, two.dk.v, bytes);
            assert_memory_equal(one.dv.v, two.dv.v, bytes);
            assert_memory_equal(one.h.y.v, two.h.y.v, bytes);
            assert_memory_equal(one.lse, two.lse, LARGE * sizeof(float));
        }
    }
    pare_arena_free(a);
}

static void a_turned_graph_has_every_edge_once_in_its_place(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 1, 2, 7, 64, 200};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        pare_arena *const a = pare_arena_new();
        const size_t n = sizes[s];
        const pare_graph g = random_graph(a, n, 0.2, 80 + s);
        pare_transposed_graph t;
        pare_err err = {0};
        assert_ok(pare_graph_transpose(&t, a, &g, 1, &err), &err);
        assert_int_equal(t.by_key.n, n);
        assert_int_equal(t.by_key.ptr[0], 0);
        assert_int_equal(t.by_key.ptr[n], g.ptr[n]);
        for (size_t j = 0; j < n; j++) {
            assert_true(t.by_key.ptr[j] <= t.by_key.ptr[j + 1]);
            for (size_t e = t.by_key.ptr[j]; e < t.by_key.ptr[j + 1]; e++) {
                const size_t i = t.by_key.idx[e];
                if (e > t.by_key.ptr[j]) assert_true(t.by_key.idx[e - 1] < i); /* so none twice */
                assert_true(g.ptr[i] <= t.edge[e] && t.edge[e] < g.ptr[i + 1]);
                assert_int_equal(g.idx[t.edge[e]], j);
            }
        }
        pare_arena_free(a);
    }
}

/* A row has at most one segment in a block, rows in order, and its segments are its list cut up;
 * nothing is left out. Few edges of a segment are of other blocks. */
static void check_schedule(const pare_edge_schedule *v, const pare_graph *g, size_t block)
{
    size_t at = 0, *const next = calloc(g->n + 1, sizeof *next);
    for (size_t i = 0; i < g->n; i++) next[i] = g->ptr[i];
    assert_int_equal(v->first[0], 0);
    for (size_t b = 0; b < v->blocks; b++)
        for (size_t s = v->first[b]; s < v->first[b + 1]; s++) {
            const size_t i = v->row[s];
            size_t here = 0, elsewhere = 0;
            if (s > v->first[b]) assert_true(v->row[s - 1] < i);
            assert_int_equal(v->start[s], at);
            assert_int_equal(v->opens[s], next[i] == g->ptr[i]);
            for (; at < v->start[s + 1]; at++) {
                assert_true(next[i] < g->ptr[i + 1]);
                assert_int_equal(v->neighbor[at], g->idx[next[i]++]);
                ++*(v->neighbor[at] / block == b ? &here : &elsewhere);
            }
            assert_true(here > 0 && elsewhere < 2 * FEW_EDGES);
        }
    for (size_t i = 0; i < g->n; i++) assert_int_equal(next[i], g->ptr[i + 1]);
    assert_int_equal(at, g->ptr[g->n]);
    free(next);
}

static void every_edge_is_visited_once_and_found_from_both_sides(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 1, 70, LARGE}, widths[] = {1, 2 * WIDE};
    for (size_t s = 0; s < 8; s++) {
        pare_arena *const a = pare_arena_new();
        const size_t n = sizes[s / 2], width = widths[s % 2];
        const pare_graph g = random_graph(a, n, 0.1, 90 + s);
        pare_transposed_graph t;
        pare_err err = {0};
        assert_ok(pare_graph_transpose(&t, a, &g, width, &err), &err);
        const size_t block = n ? key_block_size(&g, width) : 1;
        check_schedule(t.queries, &g, block);
        check_schedule(t.keys, &t.by_key, block);
        uint32_t *const query = pare_alloc(a, g.ptr[n] + 1, sizeof *query);
        assert_non_null(query);
        for (size_t x = 0; x < t.queries->first[t.queries->blocks]; x++)
            for (size_t e = t.queries->start[x]; e < t.queries->start[x + 1]; e++)
                query[e] = t.queries->row[x];
        for (size_t x = 0; x < t.keys->first[t.keys->blocks]; x++)
            for (size_t e = t.keys->start[x]; e < t.keys->start[x + 1]; e++) {
                assert_int_equal(query[t.keys->from[e]], t.keys->neighbor[e]);
                assert_int_equal(t.queries->neighbor[t.keys->from[e]], t.keys->row[x]);
            }
        pare_arena_free(a);
    }
}

static void too_many_edges_are_refused(void **state)
{
    (void)state;
    const size_t ptr[] = {0, (size_t)UINT32_MAX + 1};
    const pare_graph g = {1, ptr, NULL};
    pare_arena *const a = pare_arena_new();
    pare_transposed_graph t;
    pare_err err = {0};
    assert_int_equal(pare_graph_transpose(&t, a, &g, 1, &err), PARE_ERR_INPUT);
    assert_contains(err.msg, "4294967296 edges");
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variant_agrees_with_plain_loops_on_graphs),
        cmocka_unit_test(every_variant_agrees_with_plain_loops_on_windows),
        cmocka_unit_test(blocks_of_keys_change_nothing_but_roundings),
        cmocka_unit_test(bits_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(a_turned_graph_has_every_edge_once_in_its_place),
        cmocka_unit_test(every_edge_is_visited_once_and_found_from_both_sides),
        cmocka_unit_test(too_many_edges_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
