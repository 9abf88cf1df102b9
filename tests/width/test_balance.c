/* Tests src/width/balance.c: balanced factors of the same function. */
#include "width_nets.h"
#include "width/balance.h"
#include "linalg/matrix.h"
#include <pare/width.h>

/* ---- pairs ---------------------------------------------------------------------------------- */

/* sigma_i = by^i: as a cut leaves it that scales its directions by what they are worth. */
static pare_mat graded(stage *s, size_t rows, size_t cols, double by)
{
    pare_mat m = rand_mat(s, rows, cols, 1);
    double scale = 1;
    for (size_t i = 0; i < rows; i++, scale *= by)
        for (size_t j = 0; j < cols; j++) pare_row_mut(&m, i)[j] *= scale;
    return m;
}

static double apart_by(stage *s, const pare_mat *a, const pare_mat *b)
{
    pare_mat d = mat_copy(&s->w, a);
    for (size_t i = 0; i < d.rows; i++)
        for (size_t j = 0; j < d.cols; j++) pare_row_mut(&d, i)[j] -= pare_row(b, i)[j];
    return pare_mat_max_abs(&d);
}

static void a_pair_keeps_its_product_and_gets_the_least_norms(void **state)
{
    (void)state;
    /* r, m, n: also an inner dimension above the rank, above both sides */
    const size_t shapes[][3] = {{4, 9, 7}, {1, 5, 3}, {6, 6, 6}, {8, 3, 12}, {8, 12, 3}, {9, 2, 4}};
    for (size_t k = 0; k < 6; k++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            stage s;
            stage_open(&s, 100 * k + seed);
            const size_t r = shapes[k][0];
            pare_mat l = graded(&s, r, shapes[k][1], 8), t = graded(&s, r, shapes[k][2], 1. / 3);
            const double size = mat_norm_est(&s.w, &l) * mat_norm_est(&s.w, &t);
            const pare_mat before = mat_mul(&s.w, &l, true, &t, false);
            balance_pair(&s.w, &l, &t);
            assert_work(&s);
            const pare_mat after = mat_mul(&s.w, &l, true, &t, false);
            assert_le(apart_by(&s, &before, &after), 1e-14 * size);
            const pare_mat gl = mat_mul(&s.w, &l, false, &l, true);
            const pare_mat gt = mat_mul(&s.w, &t, false, &t, true);
            const double norm = mat_norm_est(&s.w, &after);
            assert_le(apart_by(&s, &gl, &gt), 1e-13 * norm);
            assert_le(fabs(mat_norm_est(&s.w, &l) * mat_norm_est(&s.w, &t) / norm - 1), 1e-13);
            stage_close(&s);
        }
}

static void a_balanced_pair_stays_as_it_is(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 1);
    pare_mat l = graded(&s, 5, 9, 2), t = graded(&s, 5, 7, 1);
    balance_pair(&s.w, &l, &t);
    const pare_mat l0 = mat_copy(&s.w, &l), t0 = mat_copy(&s.w, &t);
    balance_pair(&s.w, &l, &t);
    assert_work(&s);
    assert_memory_equal(l.v, l0.v, 45 * sizeof(double));
    assert_memory_equal(t.v, t0.v, 35 * sizeof(double));
    pare_row_mut(&l, 0)[0] *= 1.1; /* and one that is not does not */
    balance_pair(&s.w, &l, &t);
    assert_work(&s);
    assert_true(memcmp(t.v, t0.v, 35 * sizeof(double)) != 0);
    stage_close(&s);
}

static void a_side_of_zeros_makes_both_zero(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 2);
    pare_mat l = mat_zeros(&s.w, 3, 4), t = rand_mat(&s, 3, 5, 1);
    balance_pair(&s.w, &l, &t);
    assert_work(&s);
    assert_true(pare_mat_max_abs(&l) == 0 && pare_mat_max_abs(&t) == 0);
    stage_close(&s);
}

/* ---- nets of graph transformers ------------------------------------------------------------- */

static double stretch(stage *s, const pare_mat *wo, const pare_mat *wv)
{
    const pare_mat both = mat_mul(&s->w, wo, false, wv, false);
    const double norm = mat_norm_est(&s->w, &both);
    return mat_norm_est(&s->w, wo) * mat_norm_est(&s->w, wv) / norm;
}

static void a_net_keeps_its_function(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        stage s;
        stage_open(&s, seed);
        const size_t alone[] = {3, SIZE_MAX};
        const net_shape k = {
            .features = 5, .dim = 8, .layers = 3, .classes = 2, .heads = 2, .residual = true};
        net n = rand_net(&s, k);
        const pare_mat x = rand_mat(&s, 12, 5, 1);
        const pare_graph g = rand_graph(&s, 12, 4, alone);
        const pare_input in = input_of(&x, &g);
        for (size_t l = 0; l < 3; l++)
            for (size_t h = 0; h < 2; h++) { /* the same function, badly factored */
                net_head *const hd = &n.layers[l].heads[h];
                const double by[] = {40, 3, 1, 0.02};
                for (size_t i = 0; i < 4; i++) {
                    for (size_t j = 0; j < 8; j++) {
                        pare_row_mut(&hd->wv, i)[j] *= by[i];
                        pare_row_mut(&hd->wo, j)[i] /= by[i];
                        pare_row_mut(&hd->wq, i)[j] /= by[i];
                        pare_row_mut(&hd->wk, i)[j] *= by[i];
                    }
                    hd->bv[i] *= by[i];
                    hd->bq[i] /= by[i];
                }
            }
        pare_model *const before = model_of(&s, &n);
        assert_true(stretch(&s, &n.layers[0].heads[0].wo, &n.layers[0].heads[0].wv) > 3);
        net_balance(&s.w, &n, true);
        assert_work(&s);
        pare_model *const after = model_of(&s, &n);
        const pare_mat y = output_of(&s, before, &in), z = output_of(&s, after, &in);
        assert_le(apart_by(&s, &y, &z), 1e-12 * pare_mat_max_abs(&y));
        for (size_t l = 0; l < 3; l++)
            for (size_t h = 0; h < 2; h++) {
                const net_head *const hd = &n.layers[l].heads[h];
                /* with the bias a column of the values: a little above 1 without it */
                assert_le(stretch(&s, &hd->wo, &hd->wv), 1.1);
                const pare_mat q = mat_transpose(&s.w, &hd->wq);
                assert_le(stretch(&s, &q, &hd->wk), 1.1);
            }
        pare_model_free(before);
        pare_model_free(after);
        stage_close(&s);
    }
}

static void heads_without_an_output_projection_get_none(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 4);
    const net_shape k = {
        .features = 5, .dim = 6, .layers = 2, .classes = 2, .heads = 1, .residual = true};
    net n = rand_net(&s, k);
    const size_t stored = net_parameters(&n);
    net_balance(&s.w, &n, true);
    assert_work(&s);
    assert_int_equal(net_parameters(&n), stored);
    stage_close(&s);
}

/* ---- language models and encoders ----------------------------------------------------------- */

static pare_status widen(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    (void)name, (void)vector, (void)err;
    pare_model *const m = self;
    if (!pare_has(w)) return PARE_OK;
    double *const v = pare_alloc(m->arena, w->rows * w->cols, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < w->rows * w->cols; i++) v[i] = pare_weight_at(w, i);
    *w = (pare_weight){PARE_F64, w->rows, w->cols, v};
    return PARE_OK;
}

static pare_model *random_model(pare_random_kind kind, uint64_t seed)
{
    pare_err err = {0};
    pare_model *m = NULL;
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    o.kind = kind;
    o.dim = 32;
    o.layers = 3;
    o.heads = 4;
    o.vocab = 40;
    o.context = 24;
    o.seed = seed;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    assert_ok(pare_model_each_weight(m, widen, m, &err), &err);
    return m;
}

static double outputs_apart(const pare_model *f, const pare_model *g)
{
    pare_err err = {0};
    pare_arena *const a = pare_arena_new();
    pare_inputs set;
    assert_ok(pare_inputs_random(&set, a, f, 3, 8, 5, &err), &err);
    double most = 0, size = 0;
    for (size_t i = 0; i < set.n; i++) {
        const size_t n = pare_output_rows(f, &set.in[i]) * pare_model_outputs(f);
        double *const x = pare_alloc(a, n, sizeof *x), *const y = pare_alloc(a, n, sizeof *y);
        assert_ok(pare_forward_f64(x, f, &set.in[i], NULL, NULL, &err), &err);
        assert_ok(pare_forward_f64(y, g, &set.in[i], NULL, NULL, &err), &err);
        for (size_t e = 0; e < n; e++) {
            most = fmax(most, fabs(x[e] - y[e]));
            size = fmax(size, fabs(x[e]));
        }
    }
    pare_arena_free(a);
    return most / size;
}

/* Unequal factors of the same function: each group's values, its planes as wholes, and what does
 * not turn. */
static void unbalance(const lm *m, lm_attn *a, pare_rng *rng)
{
    for (size_t g = 0; g < a->nkeys; g++) {
        lm_keys *const k = &a->keys[g];
        for (size_t i = 0; i < k->wv.rows; i++) {
            const double by = exp(2 * pare_rng_normal(rng));
            for (size_t j = 0; j < a->din; j++) pare_row_mut(&k->wv, i)[j] *= by;
            k->bv[i] *= by;
            for (size_t h = 0; h < a->nheads; h++)
                for (size_t o = 0; a->heads[h].keys == g && o < a->dout; o++)
                    pare_row_mut(&a->heads[h].wo, o)[i] /= by;
        }
        for (size_t i = 0; i < k->wk.rows; i++) {
            double by = exp(2 * pare_rng_normal(rng));
            for (size_t f = 0; f < k->planes; f++) {
                size_t row[2];
                lm_plane_rows(m, f, k->planes, row);
                if (row[0] == i || row[1] == i) by = exp((double)f - 1);
            }
            for (size_t j = 0; j < a->din; j++) pare_row_mut(&k->wk, i)[j] *= by;
            k->bk[i] *= by;
            for (size_t h = 0; h < a->nheads; h++) {
                if (a->heads[h].keys != g) continue;
                for (size_t j = 0; j < a->din; j++) pare_row_mut(&a->heads[h].wq, i)[j] /= by;
                a->heads[h].bq[i] /= by;
            }
        }
    }
}

static double fro_of_rows(const pare_mat *m, const size_t row[2])
{
    return hypot(vec_norm_est(pare_row(m, row[0]), m->cols),
                 vec_norm_est(pare_row(m, row[1]), m->cols));
}

/* Wv against the Wo of all heads that share it; the same for keys that stand still; planes. */
static void assert_balanced(stage *s, const lm *m, const lm_attn *a)
{
    for (size_t g = 0; g < a->nkeys; g++) {
        const lm_keys *const k = &a->keys[g];
        pare_mat out = mat_zeros(&s->w, k->wv.rows, k->wv.rows);
        for (size_t h = 0; h < a->nheads; h++)
            if (a->heads[h].keys == g)
                pare_gemm(&out, 1, &a->heads[h].wo, true, &a->heads[h].wo, false, 1);
        pare_mat in = mat_mul(&s->w, &k->wv, false, &k->wv, true);
        for (size_t i = 0; i < in.rows; i++)
            for (size_t j = 0; j < in.rows; j++) pare_row_mut(&in, i)[j] += k->bv[i] * k->bv[j];
        assert_le(apart_by(s, &out, &in), 1e-12 * pare_mat_max_abs(&in));
        for (size_t f = 0; f < k->planes; f++) {
            size_t row[2];
            double q = 0;
            lm_plane_rows(m, f, k->planes, row);
            for (size_t h = 0; h < a->nheads; h++)
                if (a->heads[h].keys == g) q = hypot(q, fro_of_rows(&a->heads[h].wq, row));
            assert_le(fabs(q / fro_of_rows(&k->wk, row) - 1), 1e-3);
        }
    }
}

static void models_keep_their_function(void **state)
{
    (void)state;
    const pare_random_kind kinds[] = {PARE_RANDOM_GPT, PARE_RANDOM_LLAMA, PARE_RANDOM_BERT};
    for (size_t kind = 0; kind < 3; kind++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            stage s;
            lm_out bad = {0}, good = {0};
            stage_open(&s, seed);
            pare_model *const f = random_model(kinds[kind], seed);
            const lm m = lm_open(&s.w, f, false);
            lm_write_begin(&s.w, &bad, &m, (pare_dtype)0);
            lm_write_begin(&s.w, &good, &m, (pare_dtype)0);
            assert_work(&s);
            for (size_t b = 0; b < f->nblocks; b++) {
                lm_block k = lm_read(&s.w, &m, b);
                unbalance(&m, &k.attn, &s.rng);
                lm_write_block(&s.w, &bad, b, &k);
                k.attn = lm_shallow(&s.w, &k.attn);
                lm_balance(&s.w, &m, &k.attn);
                lm_write_block(&s.w, &good, b, &k);
                assert_work(&s);
                assert_balanced(&s, &m, &k.attn);
            }
            lm_write_ends(&s.w, &bad, NULL, NULL, NULL);
            lm_write_ends(&s.w, &good, NULL, NULL, NULL);
            pare_model *const x = lm_write_finish(&s.w, &bad), *const y =
                                                                   lm_write_finish(&s.w, &good);
            assert_work(&s);
            assert_le(outputs_apart(f, x), 1e-12);
            assert_le(outputs_apart(f, y), 1e-12);
            pare_model_free(x);
            pare_model_free(y);
            pare_model_free(f);
            stage_close(&s);
        }
}

/* ---- what cuts write ------------------------------------------------------------------------ */

/* The largest |Wo_h||Wv_h| / |Wo_h Wv_h| of a model's heads; with one head to a group. */
static double largest_stretch(stage *s, const pare_model *m)
{
    double most = 0;
    for (size_t b = 0; b < m->nblocks; b++)
        for (size_t h = 0; h < m->blocks[b].attn.nheads; h++) {
            const pare_attn *const a = &m->blocks[b].attn;
            const pare_head *const hd = &a->heads[h];
            pare_mat wo = mat_zeros(&s->w, a->dout, hd->dv), wv = mat_zeros(&s->w, hd->dv, a->din);
            pare_weight_widen(&wo, &a->wo, 0, hd->o);
            pare_weight_widen(&wv, &a->wv, hd->v, 0);
            most = fmax(most, stretch(s, &wo, &wv));
        }
    return most;
}

static void every_text_cut_writes_balanced_values(void **state)
{
    (void)state;
    const pare_width_method methods[] = {PARE_WIDTH_AUTO, PARE_WIDTH_SLICE, PARE_WIDTH_SVD};
    const pare_random_kind kinds[] = {PARE_RANDOM_GPT, PARE_RANDOM_BERT};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < 3; i++) {
            stage s;
            pare_width_report report;
            pare_inputs set;
            stage_open(&s, 9);
            pare_model *const f = random_model(kinds[k], 9), *g = NULL;
            assert_ok(pare_inputs_random(&set, s.w.arena, f, 8, 12, 5, &s.err), &s.err);
            pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
            o.method = methods[i];
            o.keep = 0.7;
            assert_ok(pare_width(&g, &report, f, &set, &o, NULL, &s.err), &s.err);
            assert_le(largest_stretch(&s, g), 1 + 1e-3);
            assert_true(largest_stretch(&s, f) > 1.2);
            pare_model_free(f);
            pare_model_free(g);
            stage_close(&s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_keeps_its_product_and_gets_the_least_norms),
        cmocka_unit_test(a_balanced_pair_stays_as_it_is),
        cmocka_unit_test(a_side_of_zeros_makes_both_zero),
        cmocka_unit_test(a_net_keeps_its_function),
        cmocka_unit_test(heads_without_an_output_projection_get_none),
        cmocka_unit_test(models_keep_their_function),
        cmocka_unit_test(every_text_cut_writes_balanced_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
