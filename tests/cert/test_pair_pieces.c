/* Tests the pieces of src/cert/pair*.c one at a time, where no other inequality can cover for one
 * that is too small: tiny rows, streams anywhere the distances allow, and a climb towards the point
 * where a claim of pair.h is nearest to being broken. Prints how near that was. */
#include "pair_models.h"

enum { CASES = 240, STEPS = 160, CLIMBS = 3, MOST = 64 };

typedef enum piece { NORM, FFN, ATTN, PIECES } piece;
typedef enum claim { OWN_F, OWN_G, DIFFERENCE, APART, CLAIMS } claim;

typedef struct bench {
    uint64_t seed;
    piece what;
    pare_model *f, *g; /* one block with that piece alone */
    pare_input in;
    size_t n, d, out;
    pare_ball_norm norm;
    pair_ctx c;
    pair x, y;
    double a[MOST], b[MOST]; /* how far the streams are from the doubles */
    double fx[MOST], gx[MOST];
    pare_rng r;
    pare_err err;
} bench;

/* ---- one piece as a model -------------------------------------------------------------------- */

static pare_norm dividing_norm(maker *k, size_t d)
{
    pare_norm n;
    do n = some_norm(k, d);
    while (n.kind == PARE_NORM_NONE);
    if (maybe(k)) n.kind = maybe(k) ? PARE_NORM_RMS : PARE_NORM_LAYER;
    if (n.kind != PARE_NORM_BATCH) n.mean = n.var = (pare_weight){0};
    if (n.divisor == 0) n.divisor = (double)d;
    return n;
}

/* Queries, keys and values that look at different entries: then a single term is all there is. */
static void thin_out(maker *k, const pare_weight *w)
{
    for (size_t i = 0; i < w->rows * w->cols; i++) {
        if (maybe(k)) continue;
        if (w->dtype == PARE_F32)
            ((float *)(uintptr_t)w->data)[i] = 0;
        else
            ((double *)(uintptr_t)w->data)[i] = 0;
    }
}

static void piece_model(bench *t)
{
    maker k = {.r = pare_rng_at(t->seed, 40), .sigma = t->seed % 2 ? 1 : 2};
    assert_ok(pare_model_new(&k.m, &t->err), &t->err);
    pare_model *const m = t->f = k.m;
    t->d = 1 + pick(&k, 3);
    t->n = t->what == ATTN ? 1 + pick(&k, 3) : 1;
    m->embedding.width = t->d;
    m->pattern = (pare_pattern){.kind = (pare_pattern_kind)pick(&k, 3), .window = 2, .sinks = 1};
    const bool mean = t->what == ATTN && t->seed % 8 == 5; /* of the queries: all rows count */
    if (t->seed % 7 == 6 && !mean) m->embedding.pos.kind = PARE_POS_ROTARY;
    if (mean) m->pattern.kind = PARE_FULL;
    m->context = 16;
    m->nblocks = 1;
    m->blocks = make(&k, 1, sizeof *m->blocks);
    pare_block *const b = m->blocks;
    if (t->what == NORM) {
        b->attn = (pare_attn){.kind = PARE_ATTN_ZERO, .din = t->d, .dout = t->d};
        b->attn.skip.kind = PARE_SKIP_IDENTITY;
        b->attn.out_norm = dividing_norm(&k, t->d);
    } else if (t->what == FFN) {
        do some_ffn(&k, &b->ffn, t->d);
        while (b->ffn.kind == PARE_FFN_NONE);
        b->ffn.in_norm = b->ffn.out_norm = (pare_norm){0};
        b->ffn.skip = (pare_skip){0};
    } else {
        do some_attn(&k, &b->attn, t->d);
        while (b->attn.kind != PARE_ATTN_EXACT);
        const pare_weight *const list[] = {&b->attn.wq, &b->attn.wk, &b->attn.wv};
        for (size_t i = 0; t->seed % 2 && i < 3; i++) thin_out(&k, list[i]);
        b->attn.in_norm = b->attn.out_norm = (pare_norm){0};
        b->attn.skip = (pare_skip){0};
    }
    assert_ok(pare_model_check(m, &t->err), &t->err);
    t->out = pare_model_width(m, 1);
    assert_ok(pare_model_clone(&t->g, m, &t->err), &t->err);
    maker o = {.m = t->g, .r = pare_rng_at(t->seed, 41), .sigma = 1};
    pare_attn *const at = &t->g->blocks[0].attn;
    if (mean)
        replace_attn(&o, at, PARE_ATTN_MEANQ);
    else if (t->what == ATTN && t->seed % 3)
        replace_attn(&o, at, other_kind(&o));
    assert_ok(pare_model_check(t->g, &t->err), &t->err);
}

static void context(bench *t)
{
    pare_model_norms *norms[2];
    pair_ops *ops;
    pare_arena *const a = pare_arena_new();
    const pare_model *const m[2] = {t->f, t->g};
    assert_non_null(a);
    assert_null(pair_refuses(t->f, t->g));
    for (size_t p = 0; p < 2; p++)
        assert_ok(pare_model_norms_new(&norms[p], a, m[p], NULL, &t->err), &t->err);
    assert_ok(pair_ops_new(&ops, a, t->f, t->g, norms[0], &t->err), &t->err);
    t->c = (pair_ctx){.ops = ops, .a = a, .zeros = pare_alloc(a, t->n + 1, sizeof(double))};
    for (size_t p = 0; p < 2; p++)
        t->c.c[p] = (enclose_ctx){.m = m[p], .norms = norms[p], .tokens = t->n, .a = a};
}

/* ---- streams and where they may be ----------------------------------------------------------- */

static dist ball_of(const bench *t, double r)
{
    dist x = dist_of(r);
    if (t->norm == PARE_BALL_MAX) x.two = up_mul(up_sqrt((double)t->d), r);
    return dist_tidy(x, t->d);
}

static double size_of(const bench *t, const double *x)
{
    double s = 0;
    for (size_t k = 0; k < t->d; k++)
        s = t->norm == PARE_BALL_MAX ? fmax(s, fabs(x[k])) : s + x[k] * x[k];
    return t->norm == PARE_BALL_MAX ? s : sqrt(s);
}

static void streams(bench *t)
{
    static const double radius[] = {1e-3, 0.1, 0.6}, apart[] = {0, 0.01, 0.3, 1},
                        share[] = {0, 0.1, 0.5, 1};
    const pair two = {.one = false};
    assert_ok(pair_new(&t->x, &t->c, &two, t->n, t->d, &t->err), &t->err);
    const double far = apart[pare_rng_below(&t->r, 4)], r = radius[pare_rng_below(&t->r, 3)];
    /* small rows: what is left is bilinear; large ones: weights move more than values */
    const double size = t->seed % 5 == 4 ? 0.01 : t->seed % 4 == 1 ? 4 : 1;
    for (size_t i = 0; i < t->n; i++) {
        for (size_t k = 0; k < t->d; k++) {
            pare_row_mut(&t->x.h[0], i)[k] = size * pare_rng_normal(&t->r);
            pare_row_mut(&t->x.h[1], i)[k] =
                pare_row(&t->x.h[0], i)[k] + size * far * pare_rng_normal(&t->r);
        }
        for (size_t p = 0; p < 2; p++)
            t->x.r[p][i] = ball_of(t, r * (0.2 + pare_rng_uniform(&t->r)));
        const double most = t->x.r[0][i].max + t->x.r[1][i].max;
        t->x.v[i] = ball_of(t, most * share[pare_rng_below(&t->r, 4)]);
        t->x.z[i] = dist_of(INFINITY);
    }
    pair_settle(&t->x);
}

/* Whether row i is where pair.h allows it. */
static bool allowed(const bench *t, size_t i)
{
    double apart[MOST];
    const double *const a = t->a + i * t->d, *const b = t->b + i * t->d;
    for (size_t k = 0; k < t->d; k++) apart[k] = a[k] - b[k];
    const bool max = t->norm == PARE_BALL_MAX;
    const dist *const r[2] = {&t->x.r[0][i], &t->x.r[1][i]}, *const v = &t->x.v[i];
    return size_of(t, a) <= (max ? r[0]->max : r[0]->two) &&
           size_of(t, b) <= (max ? r[1]->max : r[1]->two) &&
           size_of(t, apart) <= (max ? v->max : v->two);
}

static void run(bench *t, double *to, const pare_model *m, const pare_mat *h, const double *off)
{
    double x[MOST];
    for (size_t i = 0; i < t->n * t->d; i++) x[i] = h->v[i] + off[i];
    const pare_input in = {.batch = 1, .tokens = t->n, .width = t->d, .x = x};
    assert_ok(pare_forward_f64(to, m, &in, NULL, NULL, &t->err), &t->err);
}

/* How near the claim is to being broken: seen / claimed, the worst row. */
static double nearness(bench *t, claim c)
{
    static const double slack = 1e-12;
    double worst = 0;
    run(t, t->fx, t->f, &t->x.h[0], t->a);
    run(t, t->gx, t->g, &t->x.h[1], t->b);
    for (size_t i = 0; i < t->n; i++) {
        const double *const f = t->fx + i * t->out, *const g = t->gx + i * t->out;
        const double *const hf = pare_row(&t->y.h[0], i), *const hg = pare_row(&t->y.h[1], i);
        double two = 0, max = 0;
        for (size_t k = 0; k < t->out; k++) {
            const double e = c == OWN_F   ? f[k] - hf[k]
                             : c == OWN_G ? g[k] - hg[k]
                             : c == APART ? f[k] - g[k]
                                          : (f[k] - g[k]) - (hf[k] - hg[k]);
            two += e * e;
            max = fmax(max, fabs(e));
        }
        const dist by = c == OWN_F   ? t->y.r[0][i]
                        : c == OWN_G ? t->y.r[1][i]
                        : c == APART ? t->y.z[i]
                                     : t->y.v[i];
        worst = fmax(
            worst, fmax((sqrt(two) - slack) / (by.two + slack), (max - slack) / (by.max + slack)));
    }
    return worst;
}

/* ---- the climb ------------------------------------------------------------------------------- */

/* A new place for one row: a corner, a small change, the same way for both. */
static void move_row(bench *t, size_t i)
{
    const size_t kind = (size_t)pare_rng_below(&t->r, 4);
    const double r = kind == 0 ? 1 : 0.3 * exp(-4 * pare_rng_uniform(&t->r));
    for (size_t k = 0; k < t->d; k++) {
        double *const a = &t->a[i * t->d + k], *const b = &t->b[i * t->d + k];
        const double x = pare_rng_normal(&t->r), y = pare_rng_normal(&t->r);
        const double ra = t->x.r[0][i].two, rb = t->x.r[1][i].two, v = t->x.v[i].two;
        if (kind == 0) *a = *b = 0;
        *a += r * ra * x;
        *b = kind == 1 ? *b + r * rb * y : *a + (kind == 2 ? r : 1) * v * y;
    }
    const double largest[2] = {size_of(t, t->a + i * t->d), size_of(t, t->b + i * t->d)};
    const bool max = t->norm == PARE_BALL_MAX;
    for (size_t p = 0; p < 2; p++) { /* back to the ball */
        const double by = max ? t->x.r[p][i].max : t->x.r[p][i].two;
        double *const x = (p ? t->b : t->a) + i * t->d;
        for (size_t k = 0; largest[p] > by && k < t->d; k++) {
            if (max)
                x[k] = fmax(-by, fmin(by, x[k]));
            else
                x[k] *= by / largest[p] * (1 - 1e-15);
        }
    }
}

static double climb_claim(bench *t, claim c)
{
    double best = 0;
    for (size_t s = 0; s < CLIMBS; s++) {
        memset(t->a, 0, sizeof t->a);
        memset(t->b, 0, sizeof t->b);
        double at = nearness(t, c);
        for (size_t k = 0; k < STEPS; k++) {
            double a[MOST], b[MOST];
            memcpy(a, t->a, sizeof a);
            memcpy(b, t->b, sizeof b);
            const size_t i = (size_t)pare_rng_below(&t->r, t->n);
            move_row(t, i);
            const double now = allowed(t, i) ? nearness(t, c) : -1;
            if (now >= at) {
                at = now;
            } else {
                memcpy(t->a, a, sizeof a);
                memcpy(t->b, b, sizeof b);
            }
        }
        best = fmax(best, at);
    }
    return best;
}

static void step_piece(bench *t)
{
    pare_status st = PARE_OK;
    if (t->what == NORM)
        st = pair_norm(&t->y, &t->c, &t->x, &t->f->blocks[0].attn.out_norm, &t->err);
    if (t->what == FFN) st = pair_ffn(&t->y, &t->c, &t->x, 0, &t->err);
    if (t->what == ATTN) st = pair_attn(&t->y, &t->c, &t->x, 0, &t->err);
    assert_ok(st, &t->err);
}

static void no_claim_is_broken(piece what)
{
    double nearest[CLAIMS] = {0};
    for (uint64_t seed = 0; seed < CASES; seed++) {
        bench t = {.seed = seed, .what = what, .r = pare_rng_at(seed, 42)};
        t.norm = seed / 2 % 2 ? PARE_BALL_TWO : PARE_BALL_MAX;
        piece_model(&t);
        context(&t);
        streams(&t);
        step_piece(&t);
        for (int c = 0; c < CLAIMS; c++) {
            const double near = climb_claim(&t, (claim)c);
            if (!(near <= 1 + 1e-9))
                print_error("seed %llu, claim %d: %.17g of what is proven\n",
                            (unsigned long long)seed, c, near);
            assert_le(near, 1 + 1e-9);
            nearest[c] = fmax(nearest[c], near);
        }
        pare_arena_free(t.c.a);
        pare_model_free(t.g);
        pare_model_free(t.f);
    }
    print_message("nearest to what is proven: f %.3f, g %.3f, difference %.3f, apart %.3f\n",
                  nearest[OWN_F], nearest[OWN_G], nearest[DIFFERENCE], nearest[APART]);
    for (int c = 0; c < CLAIMS; c++) assert_true(nearest[c] > 0.9);
}

static void no_stream_leaves_what_a_norm_allows(void **state)
{
    (void)state;
    no_claim_is_broken(NORM);
}

static void no_stream_leaves_what_a_feed_forward_part_allows(void **state)
{
    (void)state;
    no_claim_is_broken(FFN);
}

static void no_stream_leaves_what_attention_allows(void **state)
{
    (void)state;
    no_claim_is_broken(ATTN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_stream_leaves_what_a_norm_allows),
        cmocka_unit_test(no_stream_leaves_what_a_feed_forward_part_allows),
        cmocka_unit_test(no_stream_leaves_what_attention_allows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
