/* Tests src/depth/walk_attention.c term by term: sets of tokens and sublayers of width one are
 * handed in, so that each term of Theorem 1's step dominates somewhere, and what comes out is
 * compared with the formulas (the file's opening comment, docs/theory/depth.md) in plain doubles,
 * from both sides. Then tokens for which a step is met exactly. test_walk.c draws tokens. */
#include "linalg/matrix.h"
#include <pare_test.h>
#include "depth/walk.h"

enum { HEADS = 3, POWERS = 3 };

typedef struct scalar_head {
    query_kind query;
    bool rotary;
    double b, l, q, q0, k, k0, scale, v;
} scalar_head;

typedef struct scalar_attn { /* attention of tokens that are one number */
    size_t nheads, npowers;
    double t, mix[POWERS], inside, outside;
    scalar_head heads[HEADS];
} scalar_attn;

typedef struct range { /* |x - c| <= w, |x - x'| <= d */
    double c, w, d;
} range;

typedef struct step {
    scalar_attn f, g;
    bool same;
    range x, y;
    double e, m; /* m < 0: not known */
    mask_facts s;
    norm_kind kind;
} step;

typedef struct answer {
    range x, y;
    double e, m;
} answer;

/* ---- the formulas in plain doubles ----------------------------------------------------------- */

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double values_of(const scalar_attn *a)
{
    double sum = 0;
    for (size_t h = 0; h < a->nheads; h++) sum += a->heads[h].v;
    return sum;
}

static double means_of(const scalar_attn *a)
{
    double sum = 0;
    for (size_t j = 0; j < a->npowers; j++) sum += a->mix[j];
    return sum;
}

/* Largest range of the scores of one row. */
static double scores(const scalar_head *h, const range *r)
{
    if (!h->rotary) return (fabs(r->c * h->b + h->l) + r->w * fabs(h->b)) * r->d;
    const double q = fabs(r->c * h->q + h->q0) + r->w * fabs(h->q);
    const double k = fabs(r->c * h->k + h->k0) + r->w * fabs(h->k);
    return 2 * fabs(h->scale) * q * k;
}

static double tv_uniform(const scalar_head *h, const range *r)
{
    return tanh(scores(h, r) / 4);
}

/* Lemma R */
static double tau(const scalar_head *h, const range *r, mask_facts s)
{
    if (!s.full || h->rotary) return 1;
    return h->query == QUERY_EACH ? tanh(fabs(h->b) * r->d * r->d / 4) : 0;
}

static range moved(const scalar_attn *a, const range *r, mask_facts s)
{
    const bool mixes = a->nheads || a->npowers;
    const double all = means_of(a) + values_of(a);
    double w = r->w * fabs(a->t), d = r->d * fabs(a->t);
    double near = r->w * fabs(a->t + all) + r->d * fabs(a->t); /* around the mean of the row */
    for (size_t j = 0; j < a->npowers; j++) {
        w += r->w * fabs(a->mix[j]);
        if (!s.full) d += r->d * fabs(a->mix[j]);
        if (j > 0) near += r->d * fabs(a->mix[j]);
    }
    for (size_t h = 0; h < a->nheads; h++) {
        const scalar_head *const head = &a->heads[h];
        w += r->w * fabs(head->v);
        d += r->d * tau(head, r, s) * fabs(head->v);
        near += r->d * tv_uniform(head, r) * fabs(head->v);
    }
    if (mixes && s.never_empty) w = least(w, near);
    if (mixes && !s.never_empty) w += fabs(r->c * all + a->inside);
    return (range){r->c * (a->t + all) + a->inside + a->outside, w,
                   s.never_empty ? least(d, 2 * w) : 2 * w};
}

/* Of f minus g: M'_j, and M'_1 + V where V is counted with it. */
static double mix_apart(const step *p, size_t j)
{
    const double f = j < p->f.npowers ? p->f.mix[j] : 0, g = j < p->g.npowers ? p->g.mix[j] : 0;
    return f - g;
}

static size_t powers(const step *p)
{
    const size_t most = p->f.npowers > p->g.npowers ? p->f.npowers : p->g.npowers;
    return most ? most : 1;
}

/* K, where the heads of f and of g leave v. */
static double constant(const step *p, double v)
{
    const double own = p->x.c * (p->f.t - p->g.t) + p->f.outside - p->g.outside;
    double seen = p->x.c * v + p->f.inside - p->g.inside;
    for (size_t j = 0; j < powers(p); j++) seen += p->x.c * mix_apart(p, j);
    return p->s.never_empty ? fabs(own + seen) : fmax(fabs(own + seen), fabs(own));
}

/* The mean over the rows of (P_i - U) X, to second order. */
static double tv_mean(const step *p, const scalar_head *h)
{
    const range *const r = &p->x;
    const double each = r->d * tv_uniform(h, r), wide = scores(h, r);
    if (p->kind == NORM_TWO || h->rotary || h->query != QUERY_EACH) return each;
    const double query = r->w * fabs(r->c * h->b + h->l) + r->w * r->w * fabs(h->b) / 2;
    return least(each, least(r->w, r->d / 2) * query + r->d * wide * wide / 8);
}

/* Ways 1 to 4; 0: the mean over the tokens of way 1. */
static double way(const step *p, size_t which)
{
    const double v = values_of(&p->f), w = p->x.w, d = p->x.d, t = p->f.t - p->g.t;
    double r = constant(p, v), whole = t + v;
    r += which < 3 ? w * fabs(t) : 0;
    for (size_t j = 0; j < powers(p); j++) {
        const double m = mix_apart(p, j), with_v = m + (j == 0 ? v : 0);
        whole += m;
        r += which < 2 ? w * fabs(with_v) : which < 4 ? w * fabs(m) : d * fabs(with_v);
    }
    r += which == 3 ? w * fabs(t + v) : which == 4 ? w * fabs(whole) : 0;
    for (size_t h = 0; h < p->f.nheads; h++) {
        const scalar_head *const head = &p->f.heads[h];
        const double far = d * tv_uniform(head, &p->x);
        const double by[] = {tv_mean(p, head), far, w, d, far};
        r += by[which] * fabs(head->v);
    }
    return r;
}

static double replaced(const step *p)
{
    if (p->same) return 0;
    const double r = least(way(p, 1), way(p, 2));
    return p->s.never_empty ? least(r, least(way(p, 3), way(p, 4))) : r;
}

/* Lemma P: the range of the change of a row's scores. */
static double score_change(const step *p, size_t h)
{
    const scalar_head *const f = &p->f.heads[h], *const g = &p->g.heads[h];
    const range *const x = &p->x, *const y = &p->y;
    const double de = least(2 * p->e, x->d + y->d), b = fabs(g->b);
    if (g->rotary) {
        const double key = fabs(x->c * g->k + g->k0) + x->w * fabs(g->k);
        const double query = fabs(y->c * g->q + g->q0) + y->w * fabs(g->q);
        return 2 * fabs(g->scale) * p->e * (fabs(g->q) * key + query * fabs(g->k));
    }
    const double at_y = fabs(y->c * g->b + g->l) + y->w * b;
    const double at_x = fabs(x->c * g->b + g->l) + x->w * b;
    double r = least(p->e * b * x->d + at_y * de, p->e * b * y->d + at_x * de);
    if (p->same) return r;
    r += (fabs(x->c * (f->b - g->b) + f->l - g->l) + x->w * fabs(f->b - g->b)) * x->d;
    if (f->query == g->query) return r;
    if (f->query == QUERY_MEAN) return r + fabs(f->b) * x->d * x->d;
    return g->query == QUERY_MEAN ? r + b * x->d * x->d : r;
}

static double head_by_head(const step *p)
{
    double r = 0, left = 0;
    for (size_t h = 0; h < p->f.nheads; h++) {
        const double v = p->g.heads[h].v, apart = p->f.heads[h].v - v;
        r += (p->e + tanh(score_change(p, h) / 4) * least(p->x.d, p->y.d)) * fabs(v);
        if (!p->same) r += p->x.w * fabs(apart), left += apart;
    }
    if (p->same) return r;
    r += constant(p, left) + p->x.w * fabs(p->f.t - p->g.t);
    for (size_t j = 0; j < powers(p); j++) r += p->x.w * fabs(mix_apart(p, j));
    return r;
}

static bool any_rotary(const scalar_attn *a)
{
    for (size_t h = 0; h < a->nheads; h++)
        if (a->heads[h].rotary) return true;
    return false;
}

static answer formula(const step *p)
{
    answer n = {moved(&p->f, &p->x, p->s), moved(&p->g, &p->y, p->s), 0, -1};
    const bool turning = !p->same && (any_rotary(&p->f) || any_rotary(&p->g));
    const bool paired = p->f.nheads && p->f.nheads == p->g.nheads && !turning;
    n.e = fabs(n.x.c - n.y.c) + n.x.w + n.y.w;
    if (p->g.nheads && !paired) return n;
    const bool means = p->s.full && !p->g.nheads;
    const double mean = means && p->m >= 0 ? p->m : p->e;
    double e = p->e * fabs(p->g.t) + (paired ? head_by_head(p) : replaced(p));
    for (size_t j = 0; j < p->g.npowers; j++) e += mean * fabs(p->g.mix[j]);
    n.e = least(n.e, e);
    if (means) n.m = least(n.e, mean * fabs(p->g.t + means_of(&p->g)) + (p->same ? 0 : way(p, 0)));
    return n;
}

/* ---- the code on the same numbers ------------------------------------------------------------ */

static imat number(pare_work *k, double v)
{
    const imat m = imat_zero(k, 1, 1);
    m.mid.v[0] = v;
    return m;
}

static eff_attn attention_of(pare_work *k, const scalar_attn *a)
{
    eff_attn e = {.din = 1, .dout = 1, .nheads = a->nheads, .npowers = a->npowers};
    e.t = number(k, a->t), e.inside = number(k, a->inside), e.outside = number(k, a->outside);
    e.mix = pare_alloc(k->arena, a->npowers, sizeof *e.mix);
    e.heads = pare_alloc(k->arena, a->nheads, sizeof *e.heads);
    assert_true(e.mix && e.heads);
    for (size_t j = 0; j < a->npowers; j++) e.mix[j] = number(k, a->mix[j]);
    for (size_t h = 0; h < a->nheads; h++) {
        const scalar_head *const from = &a->heads[h];
        e.heads[h] = (eff_head){.query = from->query,
                                .rotary = from->rotary,
                                .b = number(k, from->b),
                                .l = number(k, from->l),
                                .q = number(k, from->q),
                                .q0 = number(k, from->q0),
                                .k = number(k, from->k),
                                .k0 = number(k, from->k0),
                                .scale = from->scale,
                                .v = number(k, from->v)};
    }
    return e;
}

static pare_mat size(pare_work *k, double v)
{
    return up_row(k, 1, v);
}

static token_set reach_of(pare_work *k, const range *r)
{
    return (token_set){number(k, r->c), size(k, r->w), size(k, r->d)};
}

static range range_of(const token_set *r)
{
    return (range){r->c.mid.v[0], r->w.v[0], r->d.v[0]};
}

static answer walked(const step *p)
{
    pare_work k = {.arena = pare_arena_new()};
    const token_norm at = norm_plain(p->kind, 1);
    const eff_attn f = attention_of(&k, &p->f), g = attention_of(&k, &p->g);
    track t = {at, reach_of(&k, &p->x), reach_of(&k, &p->y), size(&k, p->e), {0}};
    if (p->m >= 0) t.m = size(&k, p->m);
    const attn_pair pair = attn_pair_of(&k, &f, &g, p->same);
    const track n = walk_attention(&k, &pair, &at, &t, p->s);
    assert_int_equal(k.st, PARE_OK);
    const answer a = {range_of(&n.x), range_of(&n.y), n.e.v[0], n.m.v ? n.m.v[0] : -1};
    assert_true(n.at.kind == p->kind && n.at.k == 1);
    pare_arena_free(k.arena);
    return a;
}

/* Both ways, but for roundings; `about`: what was added and may have canceled. */
#define assert_is(bound, formula, about) is_formula((bound), (formula), (about), #bound, __LINE__)
static void is_formula(double bound, double value, double scale, const char *what, int line)
{
    const double off = 1e-13 * (scale + fabs(value)) + 1e-300;
    if (bound >= value - off && bound <= value + 10 * off) return;
    print_error("%s is %.17g, the formula gives %.17g\n", what, bound, value);
    _fail(__FILE__, line);
}

static double about(const scalar_attn *a, const range *r)
{
    double sum = fabs(a->t) + fabs(a->inside) + fabs(a->outside);
    for (size_t j = 0; j < a->npowers; j++) sum += fabs(a->mix[j]);
    for (size_t h = 0; h < a->nheads; h++) sum += fabs(a->heads[h].v);
    return sum * (1 + fabs(r->c) + r->w + r->d);
}

static void check(const step *p)
{
    const answer n = walked(p), want = formula(p);
    const double scale = about(&p->f, &p->x) + about(&p->g, &p->y);
    assert_is(n.x.c, want.x.c, scale);
    assert_is(n.x.w, want.x.w, scale);
    assert_is(n.x.d, want.x.d, scale);
    assert_is(n.y.c, want.y.c, scale);
    assert_is(n.y.w, want.y.w, scale);
    assert_is(n.y.d, want.y.d, scale);
    assert_is(n.e, want.e, scale);
    assert_true((n.m < 0) == (want.m < 0));
    assert_is(n.m, want.m, scale);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Of very different sizes, so that any term of a sum may be the largest; 0 at times. */
static double some_size(pare_rng *r)
{
    return pare_rng_below(r, 4) ? exp(1.5 * pare_rng_normal(r)) : 0;
}

static double some_number(pare_rng *r)
{
    return pare_rng_below(r, 2) ? some_size(r) : -some_size(r);
}

static scalar_attn some_attention(pare_rng *r, size_t heads, bool rotary)
{
    scalar_attn a = {.nheads = heads,
                     .npowers = pare_rng_below(r, POWERS + 1),
                     .t = some_number(r),
                     .inside = some_number(r),
                     .outside = some_number(r)};
    for (size_t j = 0; j < a.npowers; j++) a.mix[j] = some_number(r);
    for (size_t h = 0; h < heads; h++)
        a.heads[h] = (scalar_head){.query = (query_kind)pare_rng_below(r, 3),
                                   .rotary = rotary && pare_rng_below(r, 2),
                                   .b = some_number(r),
                                   .l = some_number(r),
                                   .q = some_number(r),
                                   .q0 = some_number(r),
                                   .k = some_number(r),
                                   .k0 = some_number(r),
                                   .scale = some_number(r),
                                   .v = some_number(r)};
    return a;
}

static range some_range(pare_rng *r)
{
    const double c = some_number(r), w = some_size(r);
    return (range){c, w, pare_rng_below(r, 2) ? 2 * w * pare_rng_uniform(r) : some_size(r)};
}

static step some_step(pare_rng *r, uint64_t i)
{
    static const mask_facts sights[] = {{true, true}, {false, true}, {false, false}};
    const size_t heads = pare_rng_below(r, HEADS + 1);
    step p = {.f = some_attention(r, heads, i % 3 == 0),
              .kind = (norm_kind)pare_rng_below(r, NORM_KINDS)};
    p.same = i % 5 == 0;
    if (p.same)
        p.g = p.f;
    else /* without heads, with as many, or with another number */
        p.g = some_attention(r, i % 5 < 3 ? 0 : i % 5 == 3 ? heads : HEADS - heads, i % 3 == 0);
    if (!p.same && pare_rng_below(r, 2)) p.g.t = p.f.t;
    p.x = some_range(r);
    p.y = pare_rng_below(r, 2) ? p.x : some_range(r);
    p.e = some_size(r);
    p.m = pare_rng_below(r, 3) ? p.e * pare_rng_uniform(r) : -1;
    p.s = sights[pare_rng_below(r, 3)];
    if (i % 4 != 1) return p;
    /* Small scores around zero, most of them of tokens: there the mean query counts for half. */
    for (size_t h = 0; h < heads; h++)
        p.f.heads[h].query = QUERY_EACH, p.f.heads[h].b *= .05, p.f.heads[h].l *= .005;
    p.x.c *= .1, p.x.d = 2 * p.x.w, p.e *= .05, p.m *= .05;
    return p;
}

/* How often each way, and each side of a minimum, was the one that counted. */
typedef struct decided {
    size_t ways[5], far, mean_far, mean_second, around, twice;
} decided;

static void count_decided(decided *n, const step *p)
{
    const answer a = formula(p);
    size_t best = 1;
    n->around += a.x.w < p->x.w * fabs(p->f.t);
    n->twice += p->s.never_empty && a.x.d == 2 * a.x.w;
    n->far += a.e == fabs(a.x.c - a.y.c) + a.x.w + a.y.w;
    if (p->same || p->g.nheads || !p->f.nheads) return;
    for (size_t w = 2; w < (p->s.never_empty ? 5 : 3); w++)
        if (way(p, w) < way(p, best)) best = w;
    n->ways[best] += a.e < fabs(a.x.c - a.y.c) + a.x.w + a.y.w;
    n->mean_far += a.m == a.e;
    n->mean_second += a.m >= 0 && a.m < a.e && way(p, 0) < way(p, 1);
}

static void a_step_is_the_formula(void **state)
{
    pare_rng r = pare_rng_at(22, 4);
    decided n = {0};
    (void)state;
    for (uint64_t i = 0; i < 40000; i++) {
        const step p = some_step(&r, i);
        check(&p);
        count_decided(&n, &p);
    }
    print_message("ways %zu %zu %zu %zu, far apart %zu, means %zu %zu, around %zu, twice %zu\n",
                  n.ways[1], n.ways[2], n.ways[3], n.ways[4], n.far, n.mean_far, n.mean_second,
                  n.around, n.twice);
    for (size_t w = 1; w < 5; w++) assert_true(n.ways[w] > 100);
    assert_true(n.far > 100 && n.mean_far > 100 && n.mean_second > 100);
    assert_true(n.around > 100 && n.twice > 100);
}

/* ---- steps that are met exactly -------------------------------------------------------------- */

enum { WIDTH = 3 }; /* the value of a token, its key, its query */

typedef struct tokens { /* two of them, one head, no skip; scores (x_i B + l) x_j, B = b at (2, 1)
                         */
    double x[2][WIDTH], y[2][WIDTH], b, l;
} tokens;

/* What the first token's output is. */
static double attend(const tokens *t, double x[2][WIDTH])
{
    const double slope = x[0][2] * t->b + t->l;
    const double p = 1 / (1 + exp(slope * (x[1][1] - x[0][1])));
    return p * x[0][0] + (1 - p) * x[1][0];
}

static token_set box_of(pare_work *k, double x[2][WIDTH])
{
    token_set r = {imat_zero(k, 1, WIDTH), work_matrix(k, 1, WIDTH), work_matrix(k, 1, WIDTH)};
    for (size_t j = 0; j < WIDTH; j++) {
        r.c.mid.v[j] = (x[0][j] + x[1][j]) / 2;
        r.w.v[j] = fabs(x[0][j] - x[1][j]) / 2;
        r.d.v[j] = fabs(x[0][j] - x[1][j]);
    }
    return r;
}

static double proven(tokens *t)
{
    pare_work k = {.arena = pare_arena_new()};
    const token_norm at = norm_plain(NORM_BOX, WIDTH);
    eff_head h = {.b = imat_zero(&k, WIDTH, WIDTH),
                  .l = imat_zero(&k, 1, WIDTH),
                  .v = imat_zero(&k, WIDTH, WIDTH)};
    const eff_attn a = {.din = WIDTH,
                        .dout = WIDTH,
                        .nheads = 1,
                        .t = imat_zero(&k, WIDTH, WIDTH),
                        .heads = &h,
                        .inside = imat_zero(&k, 1, WIDTH),
                        .outside = imat_zero(&k, 1, WIDTH)};
    track now = {at, box_of(&k, t->x), box_of(&k, t->y), work_matrix(&k, 1, WIDTH), {0}};
    pare_row_mut(&h.b.mid, 2)[1] = t->b;
    h.l.mid.v[1] = t->l;
    pare_row_mut(&h.v.mid, 0)[0] = 1;
    for (size_t j = 0; j < WIDTH; j++)
        now.e.v[j] = fmax(fabs(t->x[0][j] - t->y[0][j]), fabs(t->x[1][j] - t->y[1][j]));
    const attn_pair p = attn_pair_of(&k, &a, &a, true);
    const track n = walk_attention(&k, &p, &at, &now, (mask_facts){true, true});
    assert_int_equal(k.st, PARE_OK);
    const double e = n.e.v[0];
    pare_arena_free(k.arena);
    return e;
}

static void check_met(tokens *t, double expected)
{
    const double truth = fabs(attend(t, t->x) - attend(t, t->y)), bound = proven(t);
    assert_near(truth, expected, 1e-12);
    assert_true(bound >= truth * (1 - 1e-14) && bound <= truth * (1 + 1e-12));
}

/* Keys that move by e against one another: D(X - Y) = 2e, and the weights follow all of it. */
static void keys_that_move_apart_by_twice_e_are_met(void **state)
{
    (void)state;
    for (double e = .01; e < 3; e *= 2) {
        const double key = e / 2, far = 5, l = 1.25;
        tokens t = {{{far, -key, 0}, {-far, key, 0}}, {{far, key, 0}, {-far, -key, 0}}, 0, l};
        check_met(&t, 2 * far * tanh(l * 2 * e / 4));
    }
}

/* A query that moves by e: its scores change by e |B| D(X). */
static void a_query_that_moves_is_met(void **state)
{
    (void)state;
    for (double e = .01; e < 3; e *= 2) {
        const double q = e / 2, key = 2, far = 5, b = .75;
        tokens t = {{{far, key, -q}, {-far, -key, -q}}, {{far, key, q}, {-far, -key, q}}, b, 0};
        check_met(&t, 2 * far * tanh(e * b * 2 * key / 4));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_the_formula),
        cmocka_unit_test(keys_that_move_apart_by_twice_e_are_met),
        cmocka_unit_test(a_query_that_moves_is_met),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
