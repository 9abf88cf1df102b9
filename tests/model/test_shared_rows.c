/* Tests src/model/shared_rows.c and what reads it: models whose tokens share rows are the models with a
 * row for each token, in every pass and on the disk, and no other bits of a file are taken. */
#include <enclose_models.h>
#include "model/model_equality.h"
#include <pare/train.h>

static pare_model *expanded(const pare_model *m)
{
    pare_model *whole = NULL;
    pare_err err = {0};
    assert_ok(pare_model_clone(&whole, m, &err), &err);
    assert_ok(pare_model_expand_rows(whole, &err), &err);
    assert_ok(pare_model_check(whole, &err), &err);
    assert_null(whole->embedding.rows);
    return whole;
}

static void every_pass_is_that_of_the_whole_table(void **state)
{
    (void)state;
    size_t tied = 0, free_head = 0;
    for (uint64_t seed = 3; seed <= 900; seed += 3) {
        pare_model *const m = some_model(seed, 0.5);
        if (!m->embedding.rows) {
            pare_model_free(m);
            continue;
        }
        pare_model *const whole = expanded(m);
        const pare_input in = some_input(m, seed, 1, 0);
        const size_t n = pare_output_rows(m, &in) * pare_model_outputs(m);
        double *const a = calloc(n, sizeof *a), *const b = calloc(n, sizeof *b);
        float *const c = calloc(n, sizeof *c);
        pare_err err = {0};
        assert_int_equal(pare_model_outputs(m), pare_model_outputs(whole));
        assert_ok(pare_forward_f64(a, m, &in, NULL, NULL, &err), &err);
        assert_ok(pare_forward_f64(b, whole, &in, NULL, NULL, &err), &err);
        assert_ok(pare_forward_f32(c, m, &in, NULL, NULL, &err), &err);
        for (size_t i = 0; i < n; i++) {
            assert_near(a[i], b[i], 1e-12 * (1 + fabs(b[i])));
            assert_near(c[i], b[i], 2e-3 * (1 + fabs(b[i])));
        }
        tied += m->head.tied;
        free_head += !m->head.tied;
        free(a);
        free(b);
        free(c);
        pare_model_free(whole);
        pare_model_free(m);
    }
    assert_true(tied > 20 && free_head > 20);
}

static pare_model *sample(void)
{
    uint64_t seed = 3;
    pare_model *m = some_model(seed, 0.5);
    while (!m->embedding.rows || !m->head.tied) {
        pare_model_free(m);
        m = some_model(seed += 3, 0.5);
    }
    return m;
}

static void a_file_holds_the_shared_row_once(void **state)
{
    (void)state;
    char dir[200], path[300], hex[2][PARE_SHA256_HEX];
    pare_err err = {0};
    pare_model *const m = sample(), *const whole = expanded(m), *again = NULL;
    test_mkdir(dir);
    test_path(path, dir, "m");
    assert_ok(pare_model_save(m, path, false, NULL, &err), &err);
    assert_ok(pare_model_load(&again, path, &err), &err);
    assert_true(pare_same_rows(&m->embedding, &again->embedding));
    assert_true(pare_same_weight(&m->embedding.table, &again->embedding.table));
    assert_non_null(pare_model_ends_differ(m, whole));
    assert_ok(pare_model_sha256(hex[0], m, &err), &err);
    assert_ok(pare_model_sha256(hex[1], again, &err), &err);
    assert_string_equal(hex[0], hex[1]);
    const size_t row = m->embedding.width * pare_dtype_size(m->embedding.table.dtype);
    assert_int_equal(pare_model_size(whole, 1, 0).bytes - pare_model_size(m, 1, 0).bytes,
                     3 * row - 2); /* 11 tokens: two bytes of bits */
    assert_int_equal(pare_model_size(whole, 1, 0).parameters - pare_model_size(m, 1, 0).parameters,
                     3 * m->embedding.width);
    pare_model_free(again);
    pare_model_free(whole);
    pare_model_free(m);
    test_rmdir(dir);
}

static void other_bits_are_other_models(void **state)
{
    (void)state;
    char hex[2][PARE_SHA256_HEX];
    pare_err err = {0};
    pare_model *const m = sample();
    uint32_t rows[11];
    memcpy(rows, m->embedding.rows, sizeof rows);
    assert_ok(pare_model_sha256(hex[0], m, &err), &err);
    for (size_t id = 0; id + 1 < 11; id++) { /* a token and the one behind it change places */
        const bool differ =
            pare_token_shares(&m->embedding, id) != pare_token_shares(&m->embedding, id + 1);
        bool shares[11];
        for (size_t i = 0; i < 11; i++) shares[i] = rows[i] == 7;
        shares[id] = rows[id + 1] == 7;
        shares[id + 1] = rows[id] == 7;
        uint32_t other[11], next = 0;
        for (size_t i = 0; i < 11; i++) other[i] = shares[i] ? 7 : next++;
        m->embedding.rows = other;
        assert_ok(pare_model_check(m, &err), &err);
        assert_ok(pare_model_sha256(hex[1], m, &err), &err);
        assert_int_equal(strcmp(hex[0], hex[1]) != 0, differ);
        m->embedding.rows = rows;
    }
    rows[0] = 3; /* not in order */
    assert_status(pare_model_check(m, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "must have row 0 or the last of 8");
    pare_model_free(m);
}

static void bits_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    const uint32_t *rows = NULL;
    pare_err err = {0};
    const uint8_t good[2] = {0x32, 0x04}, none[2] = {0}, one[2] = {0x01, 0},
                  behind[2] = {0x32, 0x0c}, all[2] = {0xff, 0x07};
    assert_ok(pare_shared_rows_read(&rows, a, good, 2, 11, 8, &err), &err);
    static const uint32_t want[] = {0, 7, 1, 2, 7, 7, 3, 4, 5, 6, 7};
    assert_memory_equal(rows, want, sizeof want);
    assert_ok(pare_shared_rows_read(&rows, a, all, 2, 11, 1, &err), &err);
    const struct {
        const uint8_t *bits;
        size_t bytes, vocab, table;
        const char *words;
    } bad[] = {{good, 1, 11, 8, "must have a bit for each"}, {good, 2, 17, 8, "must have a bit"},
               {good, 2, 11, 9, "4 of 11 tokens share"},     {good, 2, 11, 11, "has 11 rows"},
               {none, 2, 11, 12, "0 of 11 tokens"},          {one, 2, 11, 11, "1 of 11 tokens"},
               {behind, 2, 11, 7, "behind the last token"},  {good, 0, 0, 1, "0 of 0 tokens"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rows = NULL;
        assert_status(pare_shared_rows_read(&rows, a, bad[i].bits, bad[i].bytes, bad[i].vocab,
                                            bad[i].table, &err),
                      PARE_ERR_INPUT, &err);
        assert_contains(err.msg, bad[i].words);
        assert_null(rows);
    }
    pare_arena_free(a);
}

static void shared_again_only_where_rows_are_one_vector(void **state)
{
    (void)state;
    pare_err err = {0};
    pare_model *const m = sample(), *const whole = expanded(m), *const apart = expanded(m);
    assert_ok(pare_model_share_like(whole, m, &err), &err);
    assert_true(pare_same_rows(&whole->embedding, &m->embedding));
    assert_true(pare_same_weight(&whole->embedding.table, &m->embedding.table));
    ((uint8_t *)apart->embedding.table
         .data)[4 * apart->embedding.width * pare_dtype_size(apart->embedding.table.dtype)] ^= 1;
    assert_ok(pare_model_share_like(apart, m, &err), &err);
    assert_null(apart->embedding.rows);
    pare_model_free(apart);
    pare_model_free(whole);
    pare_model_free(m);
}

static void a_tied_head_that_normalizes_cannot_share(void **state)
{
    (void)state;
    pare_err err = {0};
    pare_model *const m = sample();
    m->head.normalize = true;
    assert_status(pare_model_check(m, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "normalized");
    pare_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pass_is_that_of_the_whole_table),
        cmocka_unit_test(a_file_holds_the_shared_row_once),
        cmocka_unit_test(other_bits_are_other_models),
        cmocka_unit_test(bits_that_do_not_fit_are_refused),
        cmocka_unit_test(shared_again_only_where_rows_are_one_vector),
        cmocka_unit_test(a_tied_head_that_normalizes_cannot_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
