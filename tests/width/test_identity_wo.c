/* Tests src/width/identity_wo.c and what counts a fold's roundings with it (tube.c, patch_read.c):
 * nets made so that a rounding of the fold, and nothing else, decides the result. Each of them
 * broke a bound that charged the rounding to a wo that was not there, or to another number type. */
#include "width/patch.h"
#include "width/prove.h"
#include <pare/fold.h>
#include <pare_test.h>
#include <math.h>

#define FAR  100.0 /* where the keys are */
#define GAIN 1000.0
#define RHO  1e-12

typedef struct small_net {
    pare_model *m;
    float by, pair[2], query[2], key[2], one, zero, three, mean, bias;
    float unit[4];
    double wide_one;
    pare_head head;
    pare_block block;
    pare_dense layers[2];
} small_net;

static pare_weight row(const float *v, size_t rows, size_t cols)
{
    return (pare_weight){PARE_F32, rows, cols, v};
}

static pare_norm batch(const small_net *s, const float *gain, const float *mean, const float *var)
{
    return (pare_norm){.kind = PARE_NORM_BATCH,
                       .gain = row(gain, 1, 1),
                       .bias = row(&s->zero, 1, 1),
                       .mean = row(mean, 1, 1),
                       .var = row(var, 1, 1)};
}

/* One block whose feed-forward part changes nothing. */
static void begin(small_net *s, size_t width)
{
    pare_err err = {0};
    *s = (small_net){.one = 1, .three = 3, .by = 1.06f, .wide_one = 1, .unit = {1, 0, 0, 1}};
    assert_ok(pare_model_new(&s->m, &err), &err);
    s->layers[0].w = s->layers[1].w = s->m->head.out.w = row(&s->one, 1, 1);
    s->block.ffn = (pare_ffn){.kind = PARE_FFN_MLP,
                              .din = 1,
                              .dout = 1,
                              .nlayers = 2,
                              .layers = s->layers,
                              .act = PARE_ACT_NONE};
    s->m->embedding.width = width;
    s->m->pattern.kind = PARE_GRAPH;
    s->m->blocks = &s->block;
    s->m->nblocks = 1;
}

/* Two neighboring f32 that become the same when they are scaled by s->by and rounded. */
static void find_pair(small_net *s)
{
    for (float w = 1.9f;; w = nextafterf(w, 2)) {
        const float next = nextafterf(w, 2);
        if ((float)((double)s->by * (double)w) != (float)((double)s->by * (double)next)) continue;
        s->pair[0] = w;
        s->pair[1] = -next;
        return;
    }
}

/* Node 2 sees keys at +FAR and -FAR with values that cancel up to that rounding. `joined`: the pair
 * stands in wo, else in wv and there is no wo. */
static void make_cancelling(small_net *s, bool joined)
{
    begin(s, 2);
    find_pair(s);
    s->query[0] = s->key[0] = (float)GAIN;
    s->head = (pare_head){.dk = 1, .dv = joined ? 2 : 1, .scale = 1};
    s->block.attn = (pare_attn){.kind = PARE_ATTN_EXACT,
                                .din = 2,
                                .dout = 1,
                                .nheads = 1,
                                .heads = &s->head,
                                .wq = row(s->query, 1, 2),
                                .wk = row(s->key, 1, 2),
                                .out_norm = batch(s, &s->by, &s->zero, &s->one)};
    s->block.attn.wv = joined ? row(s->unit, 2, 2) : row(s->pair, 1, 2);
    if (joined) s->block.attn.wo = row(s->pair, 1, 2);
}

/* How far node 2 of the exact model really moves within the ball, as 80-bit numbers tell. */
static double moves(const small_net *s)
{
    const long double q = (long double)GAIN * RHO, spread = 2 * (long double)GAIN * FAR;
    const long double a = 1 / (1 + expl(-q * spread));
    const long double v = ((long double)s->pair[0] + s->pair[1]) * FAR;
    return (double)fabsl(s->by * (2 * a - 1) * v);
}

static void assert_ball_holds(small_net *s)
{
    pare_err err = {0};
    pare_fold_report report;
    pare_model *joined = NULL, *folded = NULL;
    pare_work w = {pare_arena_new(), NULL, &err, PARE_OK};
    assert_ok(pare_model_check(s->m, &err), &err);
    assert_ok(pare_model_clone(&joined, s->m, &err), &err);
    assert_ok(insert_identity_wo(joined, &err), &err);
    assert_ok(pare_fold(&folded, &report, joined, &err), &err);
    const net n = net_read(&w, folded);
    const size_t ptr[] = {0, 0, 0, 2};
    const uint32_t idx[] = {0, 1};
    const double x[] = {FAR, FAR, -FAR, -FAR, 0, 0};
    const pare_graph g = {3, ptr, idx};
    const pare_input in = {.batch = 1, .tokens = 3, .width = 2, .x = x, .graph = &g};
    const propagation t = propagation_new(&w, s->m, &n, report.rounded, &in, &g);
    pare_ub rad[3];
    (void)ball_path(&w, &t, RHO, rad);
    assert_ok(w.st, &err);
    if (!(rad[2].v >= moves(s))) fail_msg("moves by %g, radius %g", moves(s), rad[2].v);
    pare_model_free(folded);
    pare_model_free(joined);
    pare_arena_free(w.arena);
    pare_model_free(s->m);
}

static void a_ball_counts_the_fold_where_there_is_no_wo(void **state)
{
    (void)state;
    small_net s;
    make_cancelling(&s, false);
    assert_ball_holds(&s);
}

static void one_f64_matrix_does_not_make_the_others_f64(void **state)
{
    (void)state;
    small_net s;
    make_cancelling(&s, true);
    s.m->head.out.w = (pare_weight){PARE_F64, 1, 1, &s.wide_one};
    assert_ball_holds(&s);
}

/* Norms before and behind, a value bias that nearly cancels the first one's mean. */
static void make_biased(small_net *s)
{
    begin(s, 1);
    s->by = 1e6f;
    s->mean = 1e6f;
    s->bias = (float)((double)s->mean / sqrt(3));
    s->head = (pare_head){.dk = 1, .dv = 1, .scale = 1};
    s->block.attn = (pare_attn){.kind = PARE_ATTN_EXACT,
                                .din = 1,
                                .dout = 1,
                                .nheads = 1,
                                .heads = &s->head,
                                .wq = row(&s->one, 1, 1),
                                .wk = row(&s->one, 1, 1),
                                .wv = row(&s->one, 1, 1),
                                .bv = row(&s->bias, 1, 1),
                                .in_norm = batch(s, &s->one, &s->mean, &s->three),
                                .out_norm = batch(s, &s->by, &s->zero, &s->one)};
}

static void an_edit_counts_the_fold_where_there_is_no_wo(void **state)
{
    (void)state;
    small_net s;
    pare_err err = {0};
    make_biased(&s);
    assert_ok(pare_model_check(s.m, &err), &err);
    pare_work w = {pare_arena_new(), NULL, &err, PARE_OK};
    const patch_net p = patch_read(&w, s.m);
    assert_ok(w.st, &err);
    const pare_mat x = mat_zeros(&w, 2, 1);
    pare_mat y = mat_zeros(&w, 2, 1);
    double rad[2];
    patch_rows t = patch_rows_new(&w, &p, 2), u = patch_rows_new(&w, &p, 2);
    patch_scratch room = patch_scratch_new(&w, &p, 2, 2);
    const uint32_t self[] = {0, 1}, idx[] = {1};
    const size_t ptr[] = {0, 1, 1};
    patch_enter(&p, &t, &x, 0, 2);
    patch_project(&p.layers[0], &t, 0, 2);
    const patch_view v = {.base = &t, .split = 2, .rows = 2, .self = self, .ptr = ptr, .idx = idx};
    patch_step(&p.layers[0], &v, &u, &room, 0, 2);
    patch_leave(&p, &u, &y, rad, 0, 2);
    const long double exact =
        (long double)s.by * ((long double)s.bias - (long double)s.mean / sqrtl(3));
    const double off = (double)fabsl(exact - (long double)y.v[0]);
    if (!(rad[0] >= off)) fail_msg("off by %g, radius %g", off, rad[0]);
    assert_true(off > 5e-5 && rad[0] < .015); /* the rounding is there */
    pare_arena_free(w.arena);
    pare_model_free(s.m);
}

/* The identity in wo's place is of the values' own type: a proof counts the roundings of that. */
static void the_identity_has_the_type_of_the_values(void **state)
{
    (void)state;
    pare_err err = {0};
    for (int wide = 0; wide < 2; wide++) {
        small_net s;
        const double one = 1;
        begin(&s, 1);
        pare_attn *const a = &s.block.attn;
        *a = (pare_attn){
            .kind = PARE_ATTN_EXACT, .din = 1, .dout = 1, .nheads = 1, .heads = &s.head};
        s.head = (pare_head){.dk = 1, .dv = 1, .scale = 1};
        a->wq = a->wk = a->wv = row(&s.one, 1, 1);
        if (wide) a->wv = (pare_weight){PARE_F64, 1, 1, &one};
        assert_ok(insert_identity_wo(s.m, &err), &err);
        assert_int_equal(a->wo.dtype, wide ? PARE_F64 : PARE_F32);
        assert_true(a->wo.rows == 1 && pare_weight_at(&a->wo, 0) == 1);
        pare_model_free(s.m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_identity_has_the_type_of_the_values),
        cmocka_unit_test(a_ball_counts_the_fold_where_there_is_no_wo),
        cmocka_unit_test(one_f64_matrix_does_not_make_the_others_f64),
        cmocka_unit_test(an_edit_counts_the_fold_where_there_is_no_wo),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
