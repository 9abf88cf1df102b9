/* Tests src/width/lm_keys.c and lm_attention_stats.c: queries and keys of language models and
 * encoders, in the metric of the data. */
#include "linalg/matrix.h"
#include <pare/width.h>
#include <pare_test.h>
#include "width/balance.h"
#include "width/lm_auto.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 11, TOKENS = 12, INPUTS = 6 };

static const pare_random_kind kinds[] = {PARE_RANDOM_GPT, PARE_RANDOM_LLAMA, PARE_RANDOM_BERT};

/* The first sublayer of a random model, on random rows; llama: rotary, two heads to a group. */
typedef struct scene {
    pare_model *model;
    pare_err err;
    pare_work w;
    lm m;
    lm_attn a;
    lm_rows rows;
    pare_mat root;
} scene;

static pare_mat random_mat(scene *s, size_t rows, size_t cols, uint64_t stream)
{
    pare_rng rng = pare_rng_at(SEED, stream);
    pare_mat m = mat_zeros(&s->w, rows, cols);
    for (size_t i = 0; i < rows * cols; i++) m.v[i] = pare_rng_normal(&rng);
    return m;
}

static scene *open_scene(pare_random_kind kind)
{
    static scene one;
    scene *const s = &one;
    *s = (scene){0};
    s->w = (pare_work){pare_arena_new(), NULL, &s->err, PARE_OK};
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    o.kind = kind;
    o.dim = 32;
    o.vocab = 40;
    o.context = 24;
    o.sigma = 0.3; /* scores that matter */
    o.seed = SEED;
    assert_ok(pare_random_model(&s->model, &o, &s->err), &s->err);
    pare_inputs set;
    assert_ok(pare_inputs_random(&set, s->w.arena, s->model, INPUTS, TOKENS, SEED, &s->err),
              &s->err);
    s->m = lm_open(&s->w, s->model, false);
    s->a = lm_read_attn(&s->w, &s->m, 0);
    s->rows = lm_embedding_rows(&s->w, &s->m, &set, 0);
    s->root = random_mat(s, s->a.dout, s->a.dout, 1);
    for (size_t h = 0; kind != PARE_RANDOM_LLAMA && h < s->a.nheads; h++)
        s->a.heads[h].bq = random_mat(s, 1, s->a.heads[h].wq.rows, 2 + h).v;
    assert_ok(s->w.st, &s->err);
    return s;
}

static void close_scene(scene *s)
{
    assert_ok(s->w.st, &s->err);
    pare_model_free(s->model);
    pare_arena_free(s->w.arena);
}

/* E |root Wo (pooled - pooled')|^2 */
static double moved(scene *s, const lm_attn *a, const lm_attn *b)
{
    const pare_mat x = lm_pooled(&s->w, &s->m, a, &s->rows);
    pare_mat y = lm_pooled(&s->w, &s->m, b, &s->rows);
    for (size_t i = 0; i < y.rows * y.cols; i++) y.v[i] -= x.v[i];
    const pare_mat wo = concat_wo(&s->w, a), seen = mat_mul(&s->w, &s->root, false, &wo, false);
    const pare_mat out = affine_rows(&s->w, &y, &seen, NULL);
    assert_ok(s->w.st, &s->err);
    return pare_mat_fro_est(&out) * pare_mat_fro_est(&out) / (double)out.rows;
}

/* ---- the metric ----------------------------------------------------------------------------- */

/* A bias on a query is the same step for all queries, before they turn. */
static void the_metric_is_what_small_steps_of_the_queries_do(void **state)
{
    (void)state;
    const double eps = 1e-5;
    for (size_t k = 0; k < 3; k++) {
        scene *const s = open_scene(kinds[k]);
        moments m = moments_new(&s->w, s->a.din, 1);
        const attention_stats *const seen =
            lm_attention_stats(&s->w, &s->m, &s->a, &s->rows, &s->root, &m);
        assert_ok(s->w.st, &s->err);
        for (size_t h = 0; h < s->a.nheads; h++)
            for (size_t t = 0; t < s->a.heads[h].wq.rows; t++) {
                lm_attn other = lm_shallow(&s->w, &s->a);
                const pare_mat bias = pare_mat_of(other.heads[h].bq, 1, other.heads[h].wq.rows);
                other.heads[h].bq = mat_copy(&s->w, &bias).v;
                other.heads[h].bq[t] += eps;
                const double scale = s->a.heads[h].scale;
                const double says =
                    scale * scale * eps * eps * pare_row(&seen[h].query_metric, t)[t];
                const double does = moved(s, &s->a, &other);
                if (!(fabs(says / does - 1) <= 1e-3))
                    fail_msg("%s, head %zu, entry %zu: %g is not %g", pare_random_kinds[kinds[k]],
                             h, t, says, does);
            }
        assert_int_equal(seen[0].queries, s->rows.x.rows);
        close_scene(s);
    }
}

/* Weights that were counted another way: one head of the encoder, all tokens see all. */
static void the_spread_is_that_of_the_keys_by_their_weight(void **state)
{
    (void)state;
    scene *const s = open_scene(PARE_RANDOM_BERT);
    moments m = moments_new(&s->w, s->a.din, 1);
    const attention_stats *const seen =
        lm_attention_stats(&s->w, &s->m, &s->a, &s->rows, &s->root, &m);
    const lm_head *const hd = &s->a.heads[1];
    const pare_mat u = lm_normed(&s->w, &s->a.in, &s->rows.x);
    const pare_mat q = affine_rows(&s->w, &u, &hd->wq, hd->bq);
    const pare_mat k = affine_rows(&s->w, &u, &s->a.keys[hd->keys].wk, NULL);
    double sum = 0;
    for (size_t i = 0; i < q.rows; i++) {
        double a[TOKENS], all = 0, one = 0, two = 0;
        const size_t first = i / TOKENS * TOKENS;
        for (size_t j = 0; j < TOKENS; j++) {
            double dot = 0;
            for (size_t t = 0; t < k.cols; t++)
                dot += pare_row(&q, i)[t] * pare_row(&k, first + j)[t];
            all += a[j] = exp(hd->scale * dot);
        }
        for (size_t j = 0; j < TOKENS; j++) {
            one += a[j] / all * pare_row(&k, first + j)[0];
            two += a[j] / all * pare_row(&k, first + j)[0] * pare_row(&k, first + j)[0];
        }
        sum += two - one * one;
    }
    assert_le(fabs(pare_row(&seen[1].key_covariance, 0)[0] - sum / (double)q.rows), 1e-12 * sum);
    close_scene(s);
}

/* ---- taking --------------------------------------------------------------------------------- */

static void with_all_of_them_nothing_changes(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        scene *const s = open_scene(kinds[k]);
        const key_directions t = key_directions_of(&s->w, &s->m, &s->a, &s->rows, &s->root);
        const removal all = choose_removals(&s->w, &t.fit, &t.root, &t.b, 0);
        const lm_attn b = attn_without_keys(&s->w, &s->m, &s->a, &t, &all);
        const double off = moved(s, &s->a, &b);
        if (!(off <= 1e-16)) fail_msg("%s: moved by %g", pare_random_kinds[kinds[k]], off);
        close_scene(s);
    }
}

/* tr D^T Cq D H over the columns of head h: what the change D of the map costs there. */
static double costs(scene *s, const key_directions *t, const pare_mat *change, size_t h)
{
    const size_t n = s->a.heads[h].wq.rows;
    const pare_mat part = pare_mat_part(change, 0, h * n, change->rows, n);
    const pare_mat d = mat_mul(&s->w, &t->root, false, &part, false);
    const pare_mat block = pare_mat_part(&t->fit.h, h * n, h * n, n, n);
    const pare_mat cost = mat_mul3(&s->w, &d, false, &block, &d, true);
    double sum = 0;
    for (size_t i = 0; i < cost.rows; i++) sum += pare_row(&cost, i)[i];
    return sum;
}

/* The sum of the squares behind the first `kept` singular values of Cq^1/2 [Wq bq]^T H^1/2. */
static double tail(scene *s, const key_directions *t, size_t h, size_t kept)
{
    const size_t n = s->a.heads[h].wq.rows;
    const pare_mat block = pare_mat_part(&t->fit.h, h * n, h * n, n, n);
    const pare_mat map = pare_mat_part(&t->fit.map, 0, h * n, t->fit.map.rows, n);
    const pare_mat root = sym_roots_of(&s->w, &block, 0).root;
    const pare_mat seen = mat_mul3(&s->w, &t->root, false, &map, &root, false);
    const svd_factors f = svd_of(&s->w, &seen);
    double sum = 0;
    for (size_t i = kept; i < f.n; i++) sum += f.s[i] * f.s[i];
    return sum;
}

/* Eckart-Young: no form of that rank does better in this metric. */
static void keys_that_stand_still_lose_the_least_there_is(void **state)
{
    (void)state;
    scene *const s = open_scene(PARE_RANDOM_GPT);
    const key_directions t = key_directions_of(&s->w, &s->m, &s->a, &s->rows, &s->root);
    assert_ok(s->w.st, &s->err);
    for (size_t most = 1; most < s->a.heads[0].wq.rows; most++) {
        const removal c = choose_keys_within(&s->w, &s->a, &t, most);
        const pare_mat map = ridge_fit_restricted(&s->w, &t.fit, c.kept, c.n);
        pare_mat change = mat_copy(&s->w, &t.fit.map);
        for (size_t o = 0; o < map.rows; o++)
            for (size_t i = 0; i < c.n; i++)
                pare_row_mut(&change, o)[c.kept[i]] -= pare_row(&map, o)[i];
        for (size_t h = 0; h < s->a.nheads; h++) {
            const double now = costs(s, &t, &change, h), least = tail(s, &t, h, most);
            if (!(fabs(now - least) <= 1e-7 * tail(s, &t, h, 0)))
                fail_msg("seed %d, head %zu at %zu: %g, least %g", SEED, h, most, now, least);
        }
    }
    close_scene(s);
}

/* Scores as a form of the two rows (for keys that stand still): [Wq bq]^T Wk. */
static pare_mat form(scene *s, const lm_attn *a, size_t h)
{
    const lm_head *const hd = &a->heads[h];
    pare_mat q = mat_zeros(&s->w, hd->wq.rows, a->din + 1);
    for (size_t i = 0; i < q.rows; i++) {
        memcpy(pare_row_mut(&q, i), pare_row(&hd->wq, i), a->din * sizeof(double));
        pare_row_mut(&q, i)[a->din] = hd->bq[i];
    }
    return mat_mul(&s->w, &q, true, &a->keys[hd->keys].wk, false);
}

/* What was chosen is what is written, and neither of its factors is tiny. */
static void the_factors_give_the_form_and_have_one_norm(void **state)
{
    (void)state;
    scene *const s = open_scene(PARE_RANDOM_GPT);
    const size_t n = s->a.heads[0].wq.rows;
    const key_directions t = key_directions_of(&s->w, &s->m, &s->a, &s->rows, &s->root);
    const removal c = choose_keys_within(&s->w, &s->a, &t, n / 2);
    const pare_mat map = ridge_fit_restricted(&s->w, &t.fit, c.kept, c.n);
    lm_attn b = attn_without_keys(&s->w, &s->m, &s->a, &t, &c);
    lm_balance_scores(&s->w, &s->m, &b);
    assert_ok(s->w.st, &s->err);
    for (size_t h = 0, at = 0; h < s->a.nheads; h++, at += n / 2) {
        const size_t g = s->a.heads[h].keys;
        size_t which[16];
        for (size_t i = 0; i < n / 2; i++) which[i] = c.kept[at + i] - h * n;
        const pare_mat to = mat_take_rows(&s->w, &t.to[g], which, n / 2);
        const pare_mat keys = mat_mul(&s->w, &to, false, &s->a.keys[g].wk, false);
        const pare_mat part = pare_mat_part(&map, 0, at, map.rows, n / 2);
        pare_mat gap = mat_mul(&s->w, &part, false, &keys, false);
        const double size = pare_mat_max_abs(&gap);
        const pare_mat now = form(s, &b, h);
        for (size_t i = 0; i < gap.rows * gap.cols; i++) gap.v[i] -= now.v[i];
        assert_true(pare_mat_max_abs(&gap) <= 1e-12 * size);
        for (size_t i = 0; i < n / 2; i++) {
            double q = b.heads[h].bq[i] * b.heads[h].bq[i], k = 0;
            for (size_t j = 0; j < s->a.din; j++) {
                q += pare_row(&b.heads[h].wq, i)[j] * pare_row(&b.heads[h].wq, i)[j];
                k += pare_row(&b.keys[g].wk, i)[j] * pare_row(&b.keys[g].wk, i)[j];
            }
            assert_le(fabs(q / k - 1), 1e-9);
        }
    }
    close_scene(s);
}

/* A plane that says nothing of the outputs goes first, and goes for nothing; shared keys: one that
 * all heads of the group have. */
static void a_plane_that_no_query_asks_for_goes_first(void **state)
{
    (void)state;
    for (size_t f = 0; f < 4; f++) {
        scene *const s = open_scene(PARE_RANDOM_LLAMA);
        assert_true(s->a.keys[0].planes == 4 && s->a.nheads == 2 * s->a.nkeys);
        size_t row[2];
        lm_plane_rows(&s->m, f, 4, row);
        for (size_t h = 0; h < s->a.nheads; h++)
            for (size_t k = 0; k < 2; k++)
                memset(pare_row_mut(&s->a.heads[h].wq, row[k]), 0, s->a.din * sizeof(double));
        const key_directions t = key_directions_of(&s->w, &s->m, &s->a, &s->rows, &s->root);
        const removal c = choose_keys_within(&s->w, &s->a, &t, 6);
        const lm_attn b = attn_without_keys(&s->w, &s->m, &s->a, &t, &c);
        assert_ok(s->w.st, &s->err);
        for (size_t g = 0; g < s->a.nkeys; g++)
            for (size_t e = 0; e < 4; e++) assert_true(c.removed[4 * g + e] == (e == f));
        assert_true(b.keys[0].planes == 3 && b.keys[0].wk.rows == 6 && b.heads[0].wq.rows == 6);
        assert_true(b.keys[0].freqs[f < 3 ? f : 2] == s->a.keys[0].freqs[f < 3 ? f + 1 : 2]);
        assert_true(moved(s, &s->a, &b) <= 1e-20);
        close_scene(s);
    }
}

/* What goes is made good by the planes that stay: the step is no worse than leaving it out. */
static void queries_that_stay_make_good_what_goes(void **state)
{
    (void)state;
    scene *const s = open_scene(PARE_RANDOM_LLAMA);
    const key_directions t = key_directions_of(&s->w, &s->m, &s->a, &s->rows, &s->root);
    const removal c = choose_keys_within(&s->w, &s->a, &t, 6);
    const pare_mat map = ridge_fit_restricted(&s->w, &t.fit, c.kept, c.n);
    pare_mat mended = mat_copy(&s->w, &t.fit.map),
             plain = mat_zeros(&s->w, map.rows, t.fit.map.cols);
    for (size_t o = 0; o < map.rows; o++)
        for (size_t i = 0; i < c.n; i++)
            pare_row_mut(&mended, o)[c.kept[i]] -= pare_row(&map, o)[i];
    for (size_t i = 0; i < t.b.n; i++)
        for (size_t k = 0; c.removed[i] && k < t.b.all[i].count; k++)
            for (size_t o = 0; o < map.rows; o++) {
                const size_t col = t.b.column[t.b.all[i].from + k];
                pare_row_mut(&plain, o)[col] = pare_row(&t.fit.map, o)[col];
            }
    double a = 0, b = 0;
    for (size_t h = 0; h < s->a.nheads; h++) {
        a += costs(s, &t, &mended, h);
        b += costs(s, &t, &plain, h);
    }
    print_message("planes gone cost %.3g, %.3g with the queries as they were\n", a, b);
    assert_true(a < 0.999 * b && a > 0);
    close_scene(s);
}

/* ---- whole models --------------------------------------------------------------------------- */

static pare_model *cut(const pare_model *m, const pare_inputs *set, pare_width_opts o)
{
    pare_err err = {0};
    pare_width_report report;
    pare_model *out = NULL;
    o.max_move = INFINITY;
    assert_ok(pare_width(&out, &report, m, set, &o, NULL, &err), &err);
    assert_int_equal(report.nheads, m->nblocks * m->blocks[0].attn.nheads);
    return out;
}

static bool same(const pare_weight *a, const pare_weight *b)
{
    return a->rows == b->rows && a->cols == b->cols &&
           memcmp(a->data, b->data, a->rows * a->cols * sizeof(float)) == 0;
}

static void qk_changes_queries_and_keys_alone(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        scene *const s = open_scene(kinds[k]);
        pare_inputs set;
        assert_ok(pare_inputs_random(&set, s->w.arena, s->model, 4, TOKENS, SEED, &s->err),
                  &s->err);
        pare_model *const g =
            cut(s->model, &set, (pare_width_opts){.method = PARE_WIDTH_QK, .qk_dim = 4});
        for (size_t b = 0; b < g->nblocks; b++) {
            const pare_block *const x = &s->model->blocks[b], *const y = &g->blocks[b];
            for (size_t h = 0; h < y->attn.nheads; h++) assert_int_equal(y->attn.heads[h].dk, 4);
            assert_true(same(&x->attn.wv, &y->attn.wv) && same(&x->attn.wo, &y->attn.wo));
            assert_true(same(&x->ffn.layers[0].w, &y->ffn.layers[0].w));
            assert_true(
                same(&x->ffn.layers[x->ffn.nlayers - 1].w, &y->ffn.layers[y->ffn.nlayers - 1].w));
        }
        pare_model_free(g);
        close_scene(s);
    }
}

static void a_share_is_met_by_queries_and_keys_alone(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        scene *const s = open_scene(kinds[k]);
        pare_inputs set;
        const double all = (double)pare_model_size(s->model, 1, 1).parameters;
        assert_ok(pare_inputs_random(&set, s->w.arena, s->model, 4, TOKENS, SEED, &s->err),
                  &s->err);
        pare_model *const g =
            cut(s->model, &set, (pare_width_opts){.method = PARE_WIDTH_QK, .keep = 0.97});
        const double now = (double)pare_model_size(g, 1, 1).parameters;
        assert_true(now <= 0.97 * all && now >= 0.96 * all);
        pare_model_free(g);
        close_scene(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_metric_is_what_small_steps_of_the_queries_do),
        cmocka_unit_test(the_spread_is_that_of_the_keys_by_their_weight),
        cmocka_unit_test(with_all_of_them_nothing_changes),
        cmocka_unit_test(keys_that_stand_still_lose_the_least_there_is),
        cmocka_unit_test(the_factors_give_the_form_and_have_one_norm),
        cmocka_unit_test(a_plane_that_no_query_asks_for_goes_first),
        cmocka_unit_test(queries_that_stay_make_good_what_goes),
        cmocka_unit_test(qk_changes_queries_and_keys_alone),
        cmocka_unit_test(a_share_is_met_by_queries_and_keys_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
