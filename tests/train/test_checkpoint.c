/* Tests src/train/checkpoint.c. */
#include "checkpoint_sample.h"

typedef struct place {
    char dir[200], path[300];
    cJSON *run;
} place;

static void open_place(place *p)
{
    test_mkdir(p->dir);
    test_path(p->path, p->dir, "run.ckpt");
    p->run = sample_run(0.1, "board \"9\"");
}

static void close_place(place *p)
{
    cJSON_Delete(p->run);
    test_rmdir(p->dir);
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    place p;
    sample_state a, b;
    pare_err err = {0};
    open_place(&p);
    for (uint64_t seed = 1; seed < 4; seed++) { /* the second and third replace */
        sample_fill(&a, seed);
        sample_fill(&b, 0);
        assert_ok(checkpoint_write(p.path, &a.c, p.run, &err), &err);
        assert_ok(checkpoint_read(&b.c, p.path, p.run, SAMPLE_STEPS, &err), &err);
        assert_same_state(&a, &b);
    }
    close_place(&p);
}

static void a_model_without_stats_is_fine(void **state)
{
    (void)state;
    place p;
    sample_state a, b;
    pare_err err = {0};
    open_place(&p);
    sample_fill(&a, 1);
    sample_fill(&b, 0);
    a.c.nstats = b.c.nstats = 0;
    memset(a.s, 0, sizeof a.s);
    assert_ok(checkpoint_write(p.path, &a.c, p.run, &err), &err);
    assert_ok(checkpoint_read(&b.c, p.path, p.run, SAMPLE_STEPS, &err), &err);
    assert_same_state(&a, &b);
    close_place(&p);
}

/* Refused with PARE_ERR_INPUT and a message, and nothing of it has come in. */
static void assert_refused(const place *p, const cJSON *run, const char *why)
{
    sample_state b, zero;
    pare_err err = {0};
    sample_fill(&b, 0);
    sample_fill(&zero, 0);
    assert_status(checkpoint_read(&b.c, p->path, run, SAMPLE_STEPS, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "run.ckpt: ");
    assert_contains(err.msg, why);
    assert_same_state(&b, &zero);
}

static void every_changed_byte_and_every_cut_is_seen(void **state)
{
    (void)state;
    place p;
    sample_state a;
    pare_err err = {0};
    size_t n = 0;
    open_place(&p);
    sample_fill(&a, 1);
    assert_ok(checkpoint_write(p.path, &a.c, p.run, &err), &err);
    uint8_t *const bytes = test_read_file(p.path, &n);
    for (size_t i = 0; i < n; i++) {
        bytes[i] ^= (uint8_t)(1 << (i % 8));
        test_write_file(p.path, bytes, n);
        assert_refused(&p, p.run, "damaged");
        bytes[i] ^= (uint8_t)(1 << (i % 8));
    }
    for (size_t cut = 0; cut < n; cut++) {
        test_write_file(p.path, bytes, cut);
        assert_refused(&p, p.run, "damaged");
    }
    bytes[n] = 'x'; /* one too many: test_read_file leaves room for a zero */
    test_write_file(p.path, bytes, n + 1);
    assert_refused(&p, p.run, "damaged");
    free(bytes);
    close_place(&p);
}

static void another_run_is_refused_by_name(void **state)
{
    (void)state;
    place p;
    sample_state a;
    pare_err err = {0};
    open_place(&p);
    sample_fill(&a, 1);
    assert_ok(checkpoint_write(p.path, &a.c, p.run, &err), &err);
    cJSON *const lr = sample_run(0.2, "board \"9\""), *const task = sample_run(0.1, "text"),
                 *const more = sample_run(0.1, "board \"9\""),
                 *const part = sample_run(0.1, "board 7");
    assert_true(pare_json_add_bool(more, "new", true));
    assert_refused(&p, lr, "another run: lr was 0.1 in it and is 0.2 now");
    assert_refused(&p, task, "another run: it learned from other data");
    assert_refused(&p, part, "another run: board was \"9\" in it and is 7 now");
    assert_refused(&p, more, "new was not given in it and is true now");
    cJSON_Delete(lr), cJSON_Delete(task), cJSON_Delete(more), cJSON_Delete(part);
    close_place(&p);
}

/* "values" becomes "valuez", under a true checksum. */
static void rename_tensor(const char *path)
{
    char hex[PARE_SHA256_HEX];
    size_t n = 0;
    uint8_t *const bytes = test_read_file(path, &n);
    char *const name = memmem(bytes, n, "\"values\"", 8);
    assert_non_null(name);
    name[6] = 'z';
    assert_ok(pare_sha256_of(hex, bytes, n - 64, NULL), NULL);
    memcpy(bytes + n - 64, hex, 64);
    test_write_file(path, bytes, n);
    free(bytes);
}

/* Files with a true checksum that no run has written. */
static void what_no_run_can_be_at_is_refused(void **state)
{
    (void)state;
    place p;
    sample_state a;
    pare_err err = {0};
    open_place(&p);
    sample_fill(&a, 1);
    a.c.step = SAMPLE_STEPS + 1;
    assert_ok(checkpoint_write(p.path, &a.c, p.run, &err), &err);
    assert_refused(&p, p.run, "no run can be at its step");
    a.c.step = 20; /* before its best */
    assert_ok(checkpoint_write(p.path, &a.c, p.run, &err), &err);
    assert_refused(&p, p.run, "no run can be at its step");
    for (size_t i = 0; i < 5; i++) {
        sample_fill(&a, 1);
        float *const at = i < 4 ? &a.x[i][SAMPLE_COUNT - 1] : &a.s[1][SAMPLE_STATS - 1];
        *at = i % 2 ? NAN : -INFINITY;
        assert_ok(checkpoint_write(p.path, &a.c, p.run, &err), &err);
        assert_refused(&p, p.run, "a nan or an inf");
    }
    sample_fill(&a, 1);
    assert_ok(checkpoint_write(p.path, &a.c, p.run, &err), &err);
    rename_tensor(p.path);
    assert_refused(&p, p.run, "not those of this model");
    a.c.count--; /* of a smaller model with the same run */
    assert_ok(checkpoint_write(p.path, &a.c, p.run, &err), &err);
    assert_refused(&p, p.run, "not those of this model");
    close_place(&p);
}

/* fuzz/make-corpus writes this one from what docs/format.md says. */
static void a_file_of_another_hand_is_read(void **state)
{
    (void)state;
    float x[4][2] = {{0}}, s[2] = {0};
    pare_err err = {0};
    cJSON *const run = cJSON_CreateObject();
    checkpoint c = {.count = 2,
                    .nstats = 1,
                    .values = x[0],
                    .m = x[1],
                    .v = x[2],
                    .best_values = x[3],
                    .stats = &s[0],
                    .best_stats = &s[1]};
    assert_true(run && pare_json_add_string(run, "lesson", "x") &&
                pare_json_add_number(run, "lr", 0.1));
    assert_ok(checkpoint_read(&c, "fuzz/corpus/checkpoint/good", run, 100, &err), &err);
    assert_true(c.step == 40 && c.best_step == 30 && c.val == 1 && c.test == 2 && c.loss == 3);
    assert_true(x[0][0] == 1 && x[0][1] == 2 && s[1] != 0);
    cJSON_Delete(run);
}

static void a_missing_file_is_an_io_error(void **state)
{
    (void)state;
    place p;
    sample_state b;
    pare_err err = {0};
    open_place(&p);
    sample_fill(&b, 0);
    assert_status(checkpoint_read(&b.c, p.path, p.run, 9, &err), PARE_ERR_IO, &err);
    close_place(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(a_model_without_stats_is_fine),
        cmocka_unit_test(every_changed_byte_and_every_cut_is_seen),
        cmocka_unit_test(another_run_is_refused_by_name),
        cmocka_unit_test(what_no_run_can_be_at_is_refused),
        cmocka_unit_test(a_file_of_another_hand_is_read),
        cmocka_unit_test(a_missing_file_is_an_io_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
