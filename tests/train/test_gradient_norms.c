/* Tests src/train/tape_norm*.c with the eps that models have: enough rows, and enough columns, that
 * slopes can be found by differences without the larger eps of test_gradient.c. */
#include "gradient_cases.h"

enum { NODES = 14, FEATURES = 5, WIDTH = 12, CLASSES = 3 };

typedef struct norm_case {
    pare_norm_kind kind;
    double eps, shift;
    size_t more;  /* divisor - width */
    double scale; /* of the stream: below sqrt(eps) it is eps that divides */
    bool affine, offset;
} norm_case;

static pare_norm norm_of(maker *k, const norm_case *c)
{
    pare_norm n = {.kind = c->kind,
                   .eps = c->eps,
                   .shift = c->kind == PARE_NORM_BATCH ? 0 : c->shift,
                   .divisor = (double)(WIDTH + c->more)};
    if (c->affine) {
        n.gain = weight(k, 1, WIDTH, 1, 0.5);
        n.bias = weight(k, 1, WIDTH, 0, 1);
    }
    if (c->kind == PARE_NORM_BATCH) {
        n.mean = weight(k, 1, WIDTH, 0.5, 1);
        double *const var = make(k, WIDTH, sizeof *var);
        for (size_t i = 0; i < WIDTH; i++) var[i] = 0.1 + fabs(pare_rng_normal(&k->r));
        n.var = (pare_weight){PARE_F64, 1, WIDTH, var};
    } else if (c->offset) {
        n.offset = weight(k, 1, WIDTH, 0, c->scale);
    }
    return n;
}

/* x -> map, norm -> x + norm, map -> norm, map: a norm's slope goes through the norms before it. */
static pare_model *model_of(const norm_case *c, uint64_t seed)
{
    pare_model *m;
    pare_err err = {0};
    assert_ok(pare_model_new(&m, &err), &err);
    maker k = {.m = m, .r = pare_rng_at(seed, 91)};
    m->embedding.width = FEATURES;
    m->embedding.map.w = weight(&k, WIDTH, FEATURES, 0, c->scale);
    m->embedding.map.b = weight(&k, 1, WIDTH, 0, c->scale);
    m->embedding.norm = norm_of(&k, c);
    m->nblocks = 1;
    m->blocks = make(&k, 1, sizeof *m->blocks);
    pare_ffn *const f = &m->blocks[0].ffn;
    *f = (pare_ffn){.kind = PARE_FFN_MLP, .din = WIDTH, .dout = WIDTH, .nlayers = 1};
    f->layers = make(&k, 1, sizeof *f->layers);
    f->layers[0].w = weight(&k, WIDTH, WIDTH, 0, 0.3);
    f->in_norm = norm_of(&k, c);
    f->skip.kind = PARE_SKIP_IDENTITY;
    m->head.norm = norm_of(&k, c);
    m->head.out.w = weight(&k, CLASSES, WIDTH, 0, 1);
    assert_ok(pare_model_check(m, &err), &err);
    return m;
}

static void check_norm(const norm_case *c, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 92);
    double *const x = normals(&r, NODES * FEATURES);
    const pare_input in = {.batch = 1, .tokens = NODES, .width = FEATURES, .x = x};
    for (int training = 0; training < 2; training++) {
        const pare_mode mode = {.training = training, .momentum = 0.1};
        char what[100];
        slope_case s;
        pare_model *const m = model_of(c, seed);
        snprintf(what, sizeof what, "norm %d eps %g shift %g divisor +%zu scale %g training %d",
                 (int)c->kind, c->eps, c->shift, c->more, c->scale, training);
        open_case(&s, m, &in, &mode, seed, seed % 2);
        check_slopes(&s, seed, what);
        close_case(&s);
        pare_model_free(m);
    }
    free(x);
}

static void gradients_of_norms_are_slopes_with_their_true_eps(void **state)
{
    (void)state;
    static const pare_norm_kind kinds[] = {PARE_NORM_LAYER, PARE_NORM_RMS, PARE_NORM_BATCH,
                                           PARE_NORM_MEAN};
    for (uint64_t i = 0; i < 128; i++) {
        const norm_case c = {.kind = kinds[i % 4],
                             .eps = i & 64 ? 1e-12 : 1e-5,
                             .more = i & 4 ? 7 : 0,
                             .shift = i & 8 ? 0.7 : 0,
                             .scale = i & 64   ? 1
                                      : i & 16 ? 2e-3
                                               : 1,
                             .affine = i & 32,
                             .offset = i & 8};
        check_norm(&c, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_norms_are_slopes_with_their_true_eps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
