/* Tests src/fold/share_rows.c, share_rows_bound.c and share_rows_prover.c: dead rows are found and no
 * others, used tokens keep theirs, outputs move by no more than the theorems say (and nearly as much),
 * and a certificate about another model is refused. */
#include <pare_test.h>

#include "cert/prove.h"
#include "fold/share_rows.h"
#include "model/model_facts.h"
#include "model/shared_rows.h"
#include <pare/fold.h>
#include <pare/run.h>

enum { VOCAB = 40, DEAD = 12, TOKENS = 5 };

static bool is_dead(size_t id)
{
    return id % 3 == 1 && id / 3 < DEAD;
}

/* A random model in which DEAD tokens have rows within `apart` of one vector. */
static pare_model *with_dead_rows(pare_random_kind kind, uint64_t seed, double apart)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL;
    pare_err err = {0};
    o.kind = kind;
    o.dim = 8, o.heads = 2, o.layers = 2, o.ffn = 8, o.vocab = VOCAB, o.context = 8;
    o.sigma = 0.3;
    o.seed = seed;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    float *const v = (float *)m->embedding.table.data;
    pare_rng r = pare_rng_at(seed, 9);
    for (size_t id = 0; id < VOCAB; id++)
        for (size_t j = 0; is_dead(id) && j < 8; j++)
            v[id * 8 + j] = (float)(0.1 * (double)j + apart * (2 * pare_rng_uniform(&r) - 1) / 3);
    return m;
}

static pare_model *shared(pare_share_report *r, const pare_model *m, const pare_inputs *data,
                          double distance)
{
    pare_model *g = NULL;
    pare_err err = {0};
    assert_ok(pare_share_rows(&g, r, m, data, distance, NULL, &err), &err);
    return g;
}

static void some_ids(int64_t *ids, pare_rng *r, bool dead)
{
    for (size_t i = 0; i < TOKENS; i++) do
            ids[i] = (int64_t)pare_rng_below(r, VOCAB);
        while (!dead && is_dead((size_t)ids[i]));
}

static void outputs(double *y, const pare_model *m, const int64_t *ids)
{
    pare_err err = {0};
    const pare_input in = {.batch = 1, .tokens = TOKENS, .ids = ids};
    assert_ok(pare_forward_f64(y, m, &in, NULL, NULL, &err), &err);
}

static void dead_rows_are_found_by_the_gap_and_no_others(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        pare_share_report r;
        pare_model *const m =
            with_dead_rows(seed % 2 ? PARE_RANDOM_GPT : PARE_RANDOM_LLAMA, seed, 1e-4);
        pare_model *const g = shared(&r, m, NULL, -1);
        assert_int_equal(r.shared, DEAD);
        assert_true(r.found && r.farthest <= 1e-4 && r.limit <= 1e-4);
        assert_int_equal(g->embedding.table.rows, VOCAB - DEAD + 1);
        assert_int_equal(pare_shared_tokens(&g->embedding), DEAD);
        for (size_t id = 0; id < VOCAB; id++) {
            assert_int_equal(pare_token_shares(&g->embedding, id), is_dead(id));
            const size_t row = pare_token_row(&g->embedding, (int64_t)id);
            for (size_t j = 0; !is_dead(id) && j < 8; j++)
                assert_true(pare_weight_at(&g->embedding.table, row * 8 + j) ==
                            pare_weight_at(&m->embedding.table, id * 8 + j));
        }
        pare_model_free(g);
        pare_model_free(m);
    }
}

static void rows_without_a_gap_are_not_shared_unasked(void **state)
{
    (void)state;
    pare_share_report r;
    pare_model *g = NULL, *const m = with_dead_rows(PARE_RANDOM_GPT, 3, 1.0);
    pare_err err = {0};
    assert_status(pare_share_rows(&g, &r, m, NULL, -1, NULL, &err), PARE_ERR_PROMISE, &err);
    assert_contains(err.msg, "have no gap");
    assert_null(g);
    assert_status(pare_share_rows(&g, &r, m, NULL, 1e-9, NULL, &err), PARE_ERR_PROMISE, &err);
    pare_model_free(m);
}

static void used_tokens_keep_rows_that_are_not_before_the_gap(void **state)
{
    (void)state;
    pare_share_report r;
    pare_model *const m = with_dead_rows(PARE_RANDOM_GPT, 5, 1e-4);
    /* Token 1 is moved beyond the gap, within the distance; tokens 4 and 7 stay before it. */
    ((float *)m->embedding.table.data)[8] += 0.05f;
    const int64_t ids[] = {1, 4, 7, 0, 2};
    const pare_input in = {.batch = 1, .tokens = 5, .ids = ids};
    const pare_inputs data = {1, (pare_input *)&in};
    pare_model *const all = shared(&r, m, NULL, 0.06), *const kept = shared(&r, m, &data, 0.06);
    assert_true(pare_token_shares(&all->embedding, 1) && pare_token_shares(&all->embedding, 4));
    assert_int_equal(r.kept, 1);
    assert_false(pare_token_shares(&kept->embedding, 1));
    assert_true(pare_token_shares(&kept->embedding, 4) && pare_token_shares(&kept->embedding, 7));
    pare_model_free(all);
    pare_model_free(kept);
    pare_model_free(m);
}

/* What a wild model's outputs do: the worst part of the bounds that was seen. */
typedef struct worst {
    double outputs, kl, all;
} worst;

static double divergence(const double *f, const double *g)
{
    double zf = 0, zg = 0, sum = 0, top = -INFINITY;
    for (size_t o = 0; o < VOCAB; o++) top = fmax(top, fmax(f[o], g[o]));
    for (size_t o = 0; o < VOCAB; o++) zf += exp(f[o] - top), zg += exp(g[o] - top);
    for (size_t o = 0; o < VOCAB; o++)
        sum += exp(f[o] - top) / zf * ((f[o] - log(zf)) - (g[o] - log(zg)));
    return sum;
}

static void attack(worst *w, const pare_model *f, const pare_model *g, const share_bound *s,
                   const int64_t *ids, bool dead)
{
    double y[TOKENS * VOCAB], z[TOKENS * VOCAB];
    outputs(y, f, ids);
    outputs(z, g, ids);
    for (size_t i = 0; i < TOKENS * VOCAB; i++) {
        const double moved = fabs(y[i] - z[i]);
        assert_le(moved, s->all.v * (1 + 1e-12) + 1e-12);
        if (s->all.v > 0) w->all = fmax(w->all, moved / s->all.v);
        if (dead) continue;
        /* Others do not move; f64 may sum a row in another order. */
        if (!f->head.tied || !is_dead(i % VOCAB)) assert_le(moved, 1e-13 * (1 + fabs(y[i])));
        assert_le(moved, s->without.v * (1 + 1e-12) + 1e-13 * (1 + fabs(y[i])));
        if (s->without.v > 0) w->outputs = fmax(w->outputs, moved / s->without.v);
    }
    for (size_t t = 0; !dead && t < TOKENS; t++) {
        const double kl = divergence(y + t * VOCAB, z + t * VOCAB);
        assert_le(kl, s->kl.v * (1 + 1e-9) + 1e-13);
        if (s->kl.v > 1e-9) w->kl = fmax(w->kl, kl / s->kl.v);
    }
}

static void bound_of(share_bound *s, const pare_model *f, const pare_model *g)
{
    pare_err err = {0};
    pare_work w = {pare_arena_new(), NULL, &err, PARE_OK};
    share_rows_bound(s, &w, f, g);
    assert_ok(w.st, &err);
    pare_arena_free(w.arena);
}

static void no_input_moves_an_output_by_more_than_is_proven(void **state)
{
    (void)state;
    worst w = {0};
    for (uint64_t seed = 1; seed <= 200; seed++) {
        const double apart = seed % 3 == 0 ? 0.5 : seed % 3 == 1 ? 0.05 : 3;
        share_bound s;
        pare_model *const f =
            with_dead_rows(seed % 2 ? PARE_RANDOM_GPT : PARE_RANDOM_LLAMA, seed, apart);
        if (seed % 4 == 1) /* an activation: the final state is in a box */
            f->head.act = seed % 8 == 1 ? PARE_ACT_TANH : PARE_ACT_GELU;
        bool takes[VOCAB];
        float row[8];
        pare_model *g = NULL;
        pare_err err = {0};
        for (size_t id = 0; id < VOCAB; id++) takes[id] = is_dead(id);
        for (size_t j = 0; j < 8; j++) row[j] = (float)(0.1 * (double)j);
        assert_ok(pare_model_clone(&g, f, &err), &err);
        assert_ok(pare_model_share(g, takes, row, &err), &err);
        bound_of(&s, f, g);
        assert_true(s.bounded && s.all.v < INFINITY && s.kl.v < INFINITY);
        assert_true(f->head.tied ? s.without.v > 0 : s.without.v == 0 && s.kl.v == 0);
        pare_rng rng = pare_rng_at(seed, 3);
        for (int k = 0; k < 20; k++) {
            int64_t ids[TOKENS];
            some_ids(ids, &rng, k % 2);
            attack(&w, f, g, &s, ids, k % 2);
        }
        pare_model_free(g);
        pare_model_free(f);
    }
    print_message("worst seen of the bounds: outputs %.3f, KL %.3f, all inputs %.3f\n", w.outputs,
                  w.kl, w.all);
    assert_true(w.outputs > 0.2 && w.outputs <= 1);
}

/* No block: the final state of a token is the norm of its own row, so a row along gain^2 o d attains
 * the bound. */
static void the_bound_is_attained(void **state)
{
    (void)state;
    double least = INFINITY;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        pare_model *const f = with_dead_rows(PARE_RANDOM_GPT, seed, 0.1);
        pare_share_report r;
        share_bound s;
        f->nblocks = 0;
        f->embedding.pos = (pare_positions){0};
        f->context = 0;
        f->head.norm.kind = PARE_NORM_RMS; /* a layer norm is in a plane, which the bound forgets */
        f->head.norm.eps = 1e-12;
        f->head.norm.bias = (pare_weight){0};
        pare_model *g = shared(&r, f, NULL, 0.2);
        bound_of(&s, f, g);
        /* The farthest token decides; token 0 gets the row that meets it, in both. */
        size_t far = 0;
        double most = 0, way[8];
        for (size_t id = 0; id < VOCAB; id++) {
            double size = 0, d[8];
            for (size_t j = 0; j < 8; j++) {
                const double gain = pare_weight_at(&f->head.norm.gain, j);
                d[j] = pare_weight_at(&f->embedding.table, id * 8 + j) -
                       pare_weight_at(&g->embedding.table,
                                      pare_token_row(&g->embedding, (int64_t)id) * 8 + j);
                size += gain * d[j] * gain * d[j];
                d[j] *= gain;
            }
            if (size > most) most = size, far = id, memcpy(way, d, sizeof way);
        }
        for (size_t j = 0; j < 8; j++) {
            ((float *)f->embedding.table.data)[j] = (float)(1e3 * way[j]);
            ((float *)g->embedding.table.data)[j] = (float)(1e3 * way[j]);
        }
        double y[TOKENS * VOCAB], z[TOKENS * VOCAB];
        const int64_t ids[TOKENS] = {0};
        if (seed % 4 == 0) { /* a bias along it adds to what the bound allows */
            float *const bias = pare_alloc(f->arena, 8, sizeof *bias);
            for (size_t j = 0; j < 8; j++) bias[j] = way[j] > 0 ? 4 : -4;
            f->head.norm.bias = g->head.norm.bias = (pare_weight){PARE_F32, 1, 8, bias};
            bound_of(&s, f, g);
        }
        outputs(y, f, ids);
        outputs(z, g, ids);
        const double ratio = fabs(y[far] - z[far]) / s.without.v;
        assert_true(!is_dead(0) && is_dead(far));
        assert_le(ratio, 1);
        if (seed % 4) least = fmin(least, ratio);
        if (seed % 4 == 0) assert_true(ratio > 0.7);
        pare_model_free(g);
        pare_model_free(f);
    }
    print_message("a constructed input reaches %.6f of the bound\n", least);
    assert_true(least > 0.999);
}

static void without_a_norm_the_bound_is_infinite_and_says_why(void **state)
{
    (void)state;
    share_bound s;
    pare_share_report r;
    pare_model *const f = with_dead_rows(PARE_RANDOM_GPT, 2, 1e-4);
    f->head.norm = (pare_norm){0};
    pare_model *const g = shared(&r, f, NULL, -1);
    bound_of(&s, f, g);
    assert_true(!s.bounded && isinf(s.all.v) && isinf(s.without.v) && isinf(s.kl.v));
    assert_contains(s.state, "no norm");
    pare_model_free(g);
    pare_model_free(f);
}

/* ---- certificates ---------------------------------------------------------------------------- */

typedef struct stage {
    char dir[200], in[300], out[300], cert[320];
    pare_model *m, *g;
    pare_arena *a;
    pare_inputs set;
    pare_cert c;
    pare_err err;
} stage;

static pare_status publish(stage *s)
{
    const pare_publish_opts o = {.in_path = s->in,
                                 .out_path = s->out,
                                 .overwrite = true,
                                 .max_error = INFINITY,
                                 .seed = 5,
                                 .tokens = 6,
                                 .set = &s->set,
                                 .prover = &pare_share_rows_prover};
    return pare_publish(&s->c, s->a, s->m, &s->g, &o, &s->err);
}

static void open_stage(stage *s, pare_random_kind kind)
{
    pare_share_report r;
    *s = (stage){.a = pare_arena_new()};
    test_mkdir(s->dir);
    test_path(s->in, s->dir, "in");
    test_path(s->out, s->dir, "out");
    snprintf(s->cert, sizeof s->cert, "%s.cert.json", s->out);
    s->m = with_dead_rows(kind, 7, 1e-3);
    s->g = shared(&r, s->m, NULL, -1);
    assert_ok(pare_model_save(s->m, s->in, false, NULL, &s->err), &s->err);
    assert_ok(pare_inputs_random(&s->set, s->a, s->m, 3, 6, 5, &s->err), &s->err);
}

static void close_stage(stage *s)
{
    pare_model_free(s->g);
    pare_model_free(s->m);
    pare_arena_free(s->a);
    test_rmdir(s->dir);
}

static pare_status verify(stage *s)
{
    const pare_verify_opts o = {.provers = &pare_share_rows_prover, .nprovers = 1};
    return pare_cert_verify(s->cert, &o, &s->err);
}

static double bound(const stage *s, pare_kind kind)
{
    const pare_claim *const c = pare_cert_find(&s->c, kind);
    return c ? c->value : NAN;
}

static void certificates_verify_and_say_what_is_exact(void **state)
{
    (void)state;
    for (int kind = PARE_RANDOM_GPT; kind <= PARE_RANDOM_LLAMA; kind++) {
        stage s;
        open_stage(&s, (pare_random_kind)kind);
        const bool tied = s.m->head.tied;
        assert_ok(publish(&s), &s.err);
        assert_ok(verify(&s), &s.err);
        assert_true(tied ? bound(&s, PARE_SHARED_ROWS_OTHERS) == 0
                         : isnan(bound(&s, PARE_SHARED_ROWS_OTHERS)));
        assert_true(tied ? bound(&s, PARE_SHARED_ROWS_OUTPUTS) > 0
                         : bound(&s, PARE_SHARED_ROWS_OUTPUTS) == 0);
        assert_true(bound(&s, PARE_SHARED_ROWS_KL) < 1e-3);
        assert_true(pare_cert_apriori(&s.c) < INFINITY);
        assert_string_equal(pare_cert_find(&s.c, PARE_SHARED_ROWS_OUTPUTS)->domain,
                            "all inputs without the 12 shared tokens");
        close_stage(&s);
    }
}

/* One entry that is not of a shared row moved a little: the theorems are gone, and the certificate of
 * the honest cut does not hold for it. */
static void another_change_leaves_no_theorem(void **state)
{
    (void)state;
    for (int where = 0; where < 3; where++) {
        stage s;
        open_stage(&s, PARE_RANDOM_GPT);
        float *const table = (float *)s.g->embedding.table.data;
        if (where == 0) table[0] += 1e-3f; /* the row of token 0 */
        if (where == 1) {                  /* a clone holds the weights of its model */
            pare_weight *const w = &s.g->blocks[1].ffn.layers[0].w;
            float *const copy = pare_alloc(s.g->arena, w->rows * w->cols, sizeof *copy);
            memcpy(copy, w->data, w->rows * w->cols * sizeof *copy);
            copy[3] += 1e-3f;
            w->data = copy;
        }
        if (where == 2) s.g->head.norm.eps *= 2;
        assert_ok(publish(&s), &s.err);
        assert_int_equal(pare_cert_find(&s.c, PARE_SHARED_ROWS_SAME)->holds, PARE_FALSE);
        assert_null(pare_cert_find(&s.c, PARE_SHARED_ROWS_OUTPUTS));
        assert_null(pare_cert_find(&s.c, PARE_APRIORI_OUTPUTS));
        assert_ok(verify(&s), &s.err); /* the headline still is */
        close_stage(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dead_rows_are_found_by_the_gap_and_no_others),
        cmocka_unit_test(rows_without_a_gap_are_not_shared_unasked),
        cmocka_unit_test(used_tokens_keep_rows_that_are_not_before_the_gap),
        cmocka_unit_test(no_input_moves_an_output_by_more_than_is_proven),
        cmocka_unit_test(the_bound_is_attained),
        cmocka_unit_test(without_a_norm_the_bound_is_infinite_and_says_why),
        cmocka_unit_test(certificates_verify_and_say_what_is_exact),
        cmocka_unit_test(another_change_leaves_no_theorem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
