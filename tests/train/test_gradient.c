/* Tests src/train/tape*.c: gradients are slopes. */
#include "gradient_cases.h"
#include "model/model_facts.h"
#include "train/gradient.h"

static const pare_mode still = {.momentum = 0.1};

static pare_mode lively(uint64_t seed)
{
    return (pare_mode){.training = true,
                       .dropout = seed % 3 ? 0.3 : 0,
                       .momentum = 0.1,
                       .seed = seed,
                       .step = seed * 7};
}

static void check(uint64_t seed, bool many, const pare_mode *mode, const char *what)
{
    pare_model *const m = some_model(seed, 1);
    pare_input in = some_input(m, seed, 1, 0);
    slope_case s;
    if (mode->training) tame(m);
    if (!many || many_rows(m, &in, seed)) {
        open_case(&s, m, &in, mode, seed, seed % 2);
        check_slopes(&s, seed, what);
        close_case(&s);
    }
    pare_model_free(m);
}

static void gradients_are_slopes_of_every_kind_of_model(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) check(seed, false, &still, "still");
}

/* Every pooling, outputs divided by their length. */
static void gradients_are_slopes_of_encoders(void **state)
{
    (void)state;
    for (uint64_t seed = 5000; seed < 5200; seed++) {
        pare_model *const m = some_encoder(seed, 1);
        const pare_input in = some_input(m, seed, 1, 0);
        slope_case s;
        open_case(&s, m, &in, &still, seed, seed % 2);
        check_slopes(&s, seed, "encoder");
        close_case(&s);
        pare_model_free(m);
    }
}

/* Batch norms with the batch's own figures, and dropout. */
static void gradients_are_slopes_in_training(void **state)
{
    (void)state;
    for (uint64_t seed = 1000; seed < 1300; seed++) {
        const pare_mode mode = lively(seed);
        check(seed, false, &mode, "training");
    }
}

/* Nets as pare train makes them with parts left out: every set of parts, still and in training. */
static void gradients_are_slopes_without_skips_norms_biases(void **state)
{
    (void)state;
    for (uint64_t seed = 3000; seed < 3064; seed++) {
        const size_t set = seed % 8, kind = seed / 8 % 4;
        static const pare_init_kind kinds[] = {PARE_INIT_GRAPH, PARE_INIT_GCN, PARE_INIT_GPT,
                                               PARE_INIT_ENCODER};
        const bool ids = kinds[kind] == PARE_INIT_GPT || kinds[kind] == PARE_INIT_ENCODER;
        const pare_init o = {
            .kind = kinds[kind],
            .dim = 4,
            .layers = 2,
            .heads = 1 + seed % 2,
            .vocab = ids ? 5 : 0,
            .context = ids ? 9 : 0,
            .features = ids ? 0 : 3,
            .outputs = kinds[kind] == PARE_INIT_GPT ? 0 : 2,
            .self_loops = !ids,
            .variant = {.no_skips = set & 1, .no_norms = set & 2, .no_biases = set & 4},
            .seed = seed};
        const pare_mode mode = lively(seed);
        pare_model *m = NULL;
        pare_err err = {0};
        slope_case s;
        assert_ok(pare_init_model(&m, &o, &err), &err);
        const pare_input in = some_input(m, seed, 1, 0);
        tame(m);
        open_case(&s, m, &in, seed % 3 ? &mode : &still, seed, seed % 2);
        check_slopes(&s, seed, "parts left out");
        close_case(&s);
        pare_model_free(m);
    }
}

static void gradients_are_slopes_where_rows_are_many(void **state)
{
    (void)state;
    for (uint64_t seed = 2000; seed < 2040; seed++) {
        const pare_mode mode = lively(seed);
        check(seed, true, seed % 2 ? &mode : &still, "many rows");
    }
}

/* ---- the same as pare_forward, and the same in f32 ------------------------------------------ */

typedef struct both {
    pare_params *p[2]; /* f32, f64 */
    pare_tape *t[2];
    float *g32, *c32;
    double *g64, *c64;
    size_t ny;
} both;

static void open_both(both *s, const pare_model *m, const pare_input *in, const pare_exec *exec,
                      uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 79);
    pare_err err = {0};
    *s = (both){.ny = pare_output_rows(m, in) * pare_model_outputs(m)};
    assert_ok(pare_params_new(&s->p[0], m, PARE_F32, &err), &err);
    assert_ok(pare_params_new(&s->p[1], s->p[0]->model, PARE_F64, &err), &err); /* rounded too */
    for (size_t i = 0; i < 2; i++) assert_ok(pare_tape_new(&s->t[i], s->p[i], exec, &err), &err);
    s->c64 = normals(&r, s->ny);
    s->c32 = calloc(s->ny + 1, sizeof *s->c32);
    for (size_t i = 0; i < s->ny; i++) {
        s->c32[i] = (float)s->c64[i];
        s->c64[i] = (double)s->c32[i];
    }
    s->g32 = calloc(s->p[0]->count + 1, sizeof *s->g32);
    s->g64 = calloc(s->p[0]->count + 1, sizeof *s->g64);
}

static void close_both(both *s)
{
    for (size_t i = 0; i < 2; i++) {
        pare_tape_free(s->t[i]);
        pare_params_free(s->p[i]);
    }
    free(s->g32);
    free(s->g64);
    free(s->c32);
    free(s->c64);
}

static void run_both(both *s, const pare_input *in, const pare_mode *mode, const void *y[2])
{
    pare_err err = {0};
    for (size_t i = 0; i < 2; i++)
        assert_ok(pare_tape_forward(s->t[i], in, mode, &y[i], &err), &err);
    assert_ok(pare_tape_backward(s->t[0], s->c32, NULL, s->g32, &err), &err);
    assert_ok(pare_tape_backward(s->t[1], s->c64, NULL, s->g64, &err), &err);
}

/* |a - b| <= tol times the largest of b. */
static void assert_close(const float *a, const double *b, size_t n, double tol, uint64_t seed,
                         const char *what)
{
    double most = 0, off = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs(b[i]));
        if (!(fabs((double)a[i] - b[i]) <= off)) off = fabs((double)a[i] - b[i]);
    }
    if (off <= tol * fmax(most, 0.1)) return; /* 0 has no relative error */
    print_error("seed %llu: %s differ by %g, the largest is %g\n", (unsigned long long)seed, what,
                off, most);
    fail();
}

/* Tensor by tensor: an error in a small one does not hide behind a large one. What cancels to
 * nothing (a bias before a norm) has the rounding of its terms, which are as large as the rest. */
static void assert_close_by_slot(const both *s, uint64_t seed)
{
    double most = 0;
    for (size_t i = 0; i < s->p[0]->count; i++) most = fmax(most, fabs(s->g64[i]));
    if (most < 1e-9) most = 1; /* all of it cancels (a batch of one row): terms as large as dy */
    for (size_t k = 0; k < s->p[0]->nslots; k++) {
        const pare_slot *const slot = &s->p[0]->slots[k];
        double own = 0, off = 0;
        for (size_t i = slot->offset; i < slot->offset + slot->rows * slot->cols; i++) {
            own = fmax(own, fabs(s->g64[i]));
            if (!(fabs((double)s->g32[i] - s->g64[i]) <= off))
                off = fabs((double)s->g32[i] - s->g64[i]);
        }
        if (off <= 1e-4 * own + 2e-5 * most) continue;
        print_error("seed %llu: %s differs by %g, its largest is %g, that of all %g\n",
                    (unsigned long long)seed, slot->name, off, own, most);
        fail();
    }
}

static void f32_is_f64_up_to_rounding(void **state)
{
    (void)state;
    for (uint64_t seed = 3000; seed < 3200; seed++) {
        const pare_mode mode = seed % 2 ? lively(seed) : still;
        pare_model *const m = some_model(seed, 1);
        pare_input in = some_input(m, seed, 1, 0);
        const void *y[2];
        both s;
        tame(m);
        if (seed % 4 < 2 && !many_rows(m, &in, seed)) in = some_input(m, seed, 1, 0);
        open_both(&s, m, &in, NULL, seed);
        run_both(&s, &in, &mode, y);
        assert_close(y[0], y[1], s.ny, 1e-4, seed, "outputs");
        assert_close(s.g32, s.g64, s.p[0]->count, 1e-4, seed, "gradients");
        assert_close_by_slot(&s, seed);
        close_both(&s);
        pare_model_free(m);
    }
}

static void without_training_it_is_the_forward_pass(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        pare_model *const m = some_model(seed, 1);
        pare_input in = some_input(m, seed, 1, 0);
        const pare_mode mode = {.dropout = 0.5};
        const void *y[2];
        pare_err err = {0};
        both s;
        if (seed % 4 == 0 && !many_rows(m, &in, seed)) in = some_input(m, seed, 1, 0);
        open_both(&s, m, &in, NULL, seed);
        run_both(&s, &in, &mode, y);
        double *const want = malloc((s.ny + 1) * sizeof *want);
        assert_ok(pare_forward_f64(want, s.p[1]->model, &in, NULL, NULL, &err), &err);
        for (size_t i = 0; i < s.ny; i++)
            assert_near(((const double *)y[1])[i], want[i], 1e-12 * fmax(1, fabs(want[i])));
        close_both(&s);
        free(want);
        pare_model_free(m);
    }
}

/* Whatever the threads: outputs, gradients, running figures. */
static void threads_do_not_change_a_bit(void **state)
{
    (void)state;
    for (uint64_t seed = 4000; seed < 4080; seed++) {
        const pare_exec two = {.threads = 2};
        const pare_mode mode = lively(seed);
        pare_model *const m = some_model(seed, 1);
        pare_input in;
        const void *y[2], *z[2];
        both s, t;
        if (many_rows(m, &in, seed)) {
            open_both(&s, m, &in, NULL, seed);
            open_both(&t, m, &in, &two, seed);
            run_both(&s, &in, &mode, y);
            run_both(&t, &in, &mode, z);
            assert_memory_equal(y[0], z[0], s.ny * sizeof(float));
            assert_memory_equal(y[1], z[1], s.ny * sizeof(double));
            assert_memory_equal(s.g32, t.g32, s.p[0]->count * sizeof(float));
            assert_memory_equal(s.g64, t.g64, s.p[0]->count * sizeof(double));
            for (size_t i = 0; i < 2; i++)
                assert_memory_equal(s.p[i]->stats, t.p[i]->stats,
                                    s.p[i]->nstats * pare_dtype_size(s.p[i]->dtype));
            close_both(&s);
            close_both(&t);
        }
        pare_model_free(m);
    }
}

/* A tape that has seen other inputs gives the same as a new one, and gradients are added. */
static void a_used_tape_is_as_good_as_a_new_one(void **state)
{
    (void)state;
    for (uint64_t seed = 5000; seed < 5040; seed++) {
        const pare_mode mode = lively(seed);
        pare_model *const m = some_model(seed, 1);
        pare_input in = some_input(m, seed, 1, 0), other;
        const void *y[2];
        both s, t;
        open_both(&s, m, &in, NULL, seed);
        open_both(&t, m, &in, NULL, seed);
        run_both(&s, &in, &mode, y);
        m->context = s.p[0]->model->context;
        if (many_rows(m, &other, seed)) {
            pare_err err = {0};
            t.p[0]->model->context = t.p[1]->model->context = m->context;
            for (size_t i = 0; i < 2; i++)
                assert_ok(pare_tape_forward(t.t[i], &other, &still, NULL, &err), &err);
        }
        run_both(&t, &in, &mode, y);
        run_both(&t, &in, &mode, y);
        for (size_t i = 0; i < s.p[0]->count; i++) {
            assert_true(t.g64[i] == 2 * s.g64[i] || isnan(s.g64[i]) ||
                        fabs(t.g64[i] - 2 * s.g64[i]) <= 1e-14 * fabs(s.g64[i]));
        }
        close_both(&s);
        close_both(&t);
        pare_model_free(m);
    }
}

/* ---- what a loss on hidden states sees ------------------------------------------------------ */

/* The blocks from b on as a model of its own, that takes the stream as vectors. */
static pare_model *rest_of(const pare_model *m, size_t b)
{
    pare_model *r;
    pare_err err = {0};
    const size_t d = pare_model_width(m, b);
    assert_ok(pare_model_clone(&r, m, &err), &err);
    r->blocks += b;
    r->nblocks -= b;
    if (r->head.tied) r->head.out.w = pare_head_weight_whole(r->arena, r);
    r->head.tied = false;
    r->embedding = (pare_embedding){.width = d};
    if (pare_model_is_rotary(m)) {
        r->embedding.pos.kind = PARE_POS_ROTARY;
        r->embedding.pos.interleaved = m->embedding.pos.interleaved;
    }
    assert_ok(pare_model_check(r, &err), &err);
    return r;
}

static double loss_from(const slope_case *s, const pare_model *rest, double *x, const double *way,
                        double h, size_t d)
{
    const size_t n = s->in.batch * s->in.tokens * d;
    double *const moved_x = malloc(n * sizeof *x), *const y = malloc((s->ny + 1) * sizeof *y);
    pare_input in = s->in;
    pare_err err = {0};
    double size = 0;
    for (size_t i = 0; i < n; i++) moved_x[i] = x[i] + h * way[i];
    in.ids = NULL;
    in.x = moved_x;
    in.width = d;
    assert_ok(pare_forward_f64(y, rest, &in, NULL, NULL, &err), &err);
    const double l = weigh(s->c, y, s->ny, &size);
    free(moved_x);
    free(y);
    return l;
}

static void dstream_is_the_slope_along_the_stream(void **state)
{
    (void)state;
    for (uint64_t seed = 6000; seed < 6100; seed++) {
        pare_model *const m = some_model(seed, 1);
        const pare_input in = some_input(m, seed, 1, 0);
        pare_rng r = pare_rng_at(seed, 82);
        slope_case s;
        tame(m);
        open_case(&s, m, &in, &still, seed, false);
        free(gradient_of(&s));
        for (size_t b = 0; b <= m->nblocks; b++) {
            pare_model *const rest = rest_of(s.p->model, b);
            const size_t d = pare_model_width(m, b), n = stream_size(&s, b);
            double *const x = normals(&r, n), *const way = normals(&r, n), want = 0, size = 0;
            memcpy(x, pare_tape_stream(s.t, b), n * sizeof *x);
            want = weigh(way, pare_tape_dstream(s.t, b), n, &size);
            const double h = 1e-4;
            const double one =
                loss_from(&s, rest, x, way, h, d) - loss_from(&s, rest, x, way, -h, d);
            const double two =
                loss_from(&s, rest, x, way, 2 * h, d) - loss_from(&s, rest, x, way, -2 * h, d);
            const double got = (8 * one - two) / (12 * h);
            if (!(fabs(got - want) <= 1e-5 * (1 + size))) {
                print_error("seed %llu block %zu: %.12g by the tape, %.12g by differences\n",
                            (unsigned long long)seed, b, want, got);
                fail();
            }
            free(x);
            free(way);
            pare_model_free(rest);
        }
        close_case(&s);
        pare_model_free(m);
    }
}

static void without_grad_and_dy_there_is_still_a_dstream(void **state)
{
    (void)state;
    pare_model *const m = some_model(6000, 1);
    const pare_input in = some_input(m, 6000, 1, 0);
    pare_err err = {0};
    slope_case s;
    open_case(&s, m, &in, &still, 6000, true);
    double *const g = gradient_of(&s), size = 0;
    const size_t last = m->nblocks, n = stream_size(&s, last);
    assert_ok(pare_tape_backward(s.t, NULL, (const void *const *)s.e, NULL, &err), &err);
    assert_memory_equal(pare_tape_dstream(s.t, last), s.e[last], n * sizeof(double));
    assert_ok(pare_tape_backward(s.t, s.c, NULL, NULL, &err), &err);
    (void)weigh(pare_tape_dstream(s.t, 0), pare_tape_dstream(s.t, 0), stream_size(&s, 0), &size);
    assert_true(size > 0);
    free(g);
    close_case(&s);
    pare_model_free(m);
}

/* ---- batch norm and dropout, by hand -------------------------------------------------------- */

/* Vectors of width 2, one batch norm at the head, nothing else. */
static pare_model *norm_only(double *mean, double *var)
{
    pare_model *m;
    pare_err err = {0};
    assert_ok(pare_model_new(&m, &err), &err);
    m->embedding.width = 2;
    m->head.norm = (pare_norm){.kind = PARE_NORM_BATCH, .eps = 0.5};
    m->head.norm.mean = (pare_weight){PARE_F64, 1, 2, mean};
    m->head.norm.var = (pare_weight){PARE_F64, 1, 2, var};
    return m;
}

static void batch_norm_uses_the_batch_and_moves_its_figures(void **state)
{
    (void)state;
    double mean[] = {10, 20}, var[] = {1, 2};
    const double x[] = {0, 3, 4, 3, 8, 9};
    const pare_input in = {.batch = 3, .tokens = 1, .width = 2, .x = x};
    const pare_mode mode = {.training = true, .momentum = 0.25};
    pare_model *const m = norm_only(mean, var);
    const void *y;
    pare_err err = {0};
    slope_case s;
    open_case(&s, m, &in, &mode, 1, false);
    assert_ok(pare_tape_forward(s.t, &in, &mode, &y, &err), &err);
    const double *const got = y, *const stats = s.p->stats;
    assert_near(got[0], -4 / sqrt(32.0 / 3 + 0.5), 1e-14); /* biased: 32 / 3 */
    assert_near(got[4], 4 / sqrt(32.0 / 3 + 0.5), 1e-14);
    assert_near(got[1], -2 / sqrt(8.5), 1e-14);
    assert_near(stats[0], 0.75 * 10 + 0.25 * 4, 1e-14);
    assert_near(stats[1], 0.75 * 20 + 0.25 * 5, 1e-14);
    assert_near(stats[2], 0.75 * 1 + 0.25 * 16, 1e-14); /* unbiased: 32 / 2 */
    assert_near(stats[3], 0.75 * 2 + 0.25 * 12, 1e-14);
    assert_ok(pare_tape_forward(s.t, &in, &still, &y, &err), &err);
    assert_near(((const double *)y)[0], -8.5 / sqrt(5.25), 1e-14); /* the running ones */
    assert_near(stats[0], 8.5, 1e-14);                             /* which stay */
    close_case(&s);
    pare_model_free(m);
}

/* x + drop(bo) with bo = 1: the entries that are kept show in the output. */
static pare_model *drop_only(size_t d)
{
    pare_model *m;
    pare_err err = {0};
    assert_ok(pare_model_new(&m, &err), &err);
    double *const one = pare_alloc(m->arena, d, sizeof *one);
    for (size_t j = 0; j < d; j++) one[j] = 1;
    m->embedding.width = d;
    m->nblocks = 1;
    m->blocks = pare_alloc(m->arena, 1, sizeof *m->blocks);
    m->blocks[0].attn = (pare_attn){.kind = PARE_ATTN_CONST, .din = d, .dout = d};
    m->blocks[0].attn.bo = (pare_weight){PARE_F64, 1, d, one};
    assert_ok(pare_model_check(m, &err), &err);
    return m;
}

static void dropout_keeps_its_share_and_the_mean(void **state)
{
    (void)state;
    enum { N = 400, D = 50 };
    static double x[N * D], first[N * D];
    pare_model *const m = drop_only(D);
    const pare_input in = {.batch = 1, .tokens = N, .width = D, .x = x};
    pare_mode mode = {.training = true, .dropout = 0.2, .seed = 5, .step = 9};
    const void *y;
    pare_err err = {0};
    slope_case s;
    open_case(&s, m, &in, &mode, 1, false);
    size_t kept = 0, same = 0;
    assert_ok(pare_tape_forward(s.t, &in, &mode, &y, &err), &err);
    memcpy(first, y, sizeof first);
    for (size_t i = 0; i < N * D; i++) {
        if (first[i] != 0) assert_near(first[i], 1.25, 1e-4);
        kept += first[i] != 0;
    }
    assert_near(kept, 0.8 * N * D, 4 * sqrt(0.16 * N * D));
    assert_ok(pare_tape_forward(s.t, &in, &mode, &y, &err), &err);
    assert_memory_equal(first, y, sizeof first);
    mode.step++;
    assert_ok(pare_tape_forward(s.t, &in, &mode, &y, &err), &err);
    for (size_t i = 0; i < N * D; i++) same += (first[i] != 0) == (((const double *)y)[i] != 0);
    assert_near(same, 0.68 * N * D, 4 * sqrt(0.22 * N * D));
    mode.dropout = 1;
    assert_status(pare_tape_forward(s.t, &in, &mode, &y, &err), PARE_ERR_USAGE, &err);
    assert_contains(err.msg, "dropout is 1");
    close_case(&s);
    pare_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_slopes_of_every_kind_of_model),
        cmocka_unit_test(gradients_are_slopes_of_encoders),
        cmocka_unit_test(gradients_are_slopes_in_training),
        cmocka_unit_test(gradients_are_slopes_without_skips_norms_biases),
        cmocka_unit_test(gradients_are_slopes_where_rows_are_many),
        cmocka_unit_test(f32_is_f64_up_to_rounding),
        cmocka_unit_test(without_training_it_is_the_forward_pass),
        cmocka_unit_test(threads_do_not_change_a_bit),
        cmocka_unit_test(a_used_tape_is_as_good_as_a_new_one),
        cmocka_unit_test(dstream_is_the_slope_along_the_stream),
        cmocka_unit_test(without_grad_and_dy_there_is_still_a_dstream),
        cmocka_unit_test(batch_norm_uses_the_batch_and_moves_its_figures),
        cmocka_unit_test(dropout_keeps_its_share_and_the_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
