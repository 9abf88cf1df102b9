/* Tests src/base/threads.c and src/base/progress.c. */
#include "base/support.h"
#include <pare_test.h>
#include <math.h>

#define BLOCKS 237

typedef struct sums {
    double part[BLOCKS];
    int visits[BLOCKS];
} sums;

static void block_sum(void *ctx, size_t b)
{
    sums *s = ctx;
    pare_rng r = pare_rng_at(3, b);
    for (int i = 0; i < 100; i++) s->part[b] += pare_rng_normal(&r);
    s->visits[b]++;
}

static void every_block_runs_once_with_the_same_bits_for_any_thread_count(void **state)
{
    (void)state;
    static sums one, many;
    pare_parallel(NULL, BLOCKS, block_sum, &one);
    for (int t = 1; t <= 3; t++) {
        memset(&many, 0, sizeof many);
        const pare_exec x = {.threads = t};
        pare_parallel(&x, BLOCKS, block_sum, &many);
        assert_memory_equal(&one, &many, sizeof one);
    }
    for (int b = 0; b < BLOCKS; b++) assert_int_equal(one.visits[b], 1);
    const pare_exec x = {.threads = 3};
    pare_parallel(&x, 0, block_sum, NULL);
}

static void count_block(void *ctx, size_t b)
{
    __atomic_add_fetch((size_t *)ctx, b + 1, __ATOMIC_RELAXED);
}

typedef struct nest {
    pare_exec x;
    size_t sum[6];
} nest;

static void nested_block(void *ctx, size_t b)
{
    nest *n = ctx;
    pare_parallel(&n->x, 10, count_block, &n->sum[b]);
}

static void a_call_from_within_a_block_finishes_its_blocks(void **state)
{
    (void)state;
    nest n = {.x = {.threads = 3}};
    pare_parallel(&n.x, 6, nested_block, &n);
    for (int b = 0; b < 6; b++) assert_int_equal(n.sum[b], 55);
}

static void thousands_of_small_calls_lose_no_block(void **state)
{
    (void)state;
    for (size_t i = 0; i < 5000; i++) {
        const pare_exec x = {.threads = 1 + (int)(i % 4)};
        const size_t blocks = i % 7;
        size_t sum = 0;
        pare_parallel(&x, blocks, count_block, &sum);
        assert_int_equal(sum, blocks * (blocks + 1) / 2);
    }
}

typedef struct meeting {
    int here;
} meeting;

/* Two blocks that wait for each other: with one thread the second never comes. */
static void meet(void *ctx, size_t b)
{
    (void)b;
    meeting *m = ctx;
    __atomic_add_fetch(&m->here, 1, __ATOMIC_SEQ_CST);
    const double start = pare_seconds();
    while (__atomic_load_n(&m->here, __ATOMIC_SEQ_CST) % 2 == 1 && pare_seconds() - start < 20)
        usleep(100);
    if (__atomic_load_n(&m->here, __ATOMIC_SEQ_CST) % 2 == 1)
        __atomic_store_n(&m->here, 100, __ATOMIC_SEQ_CST);
}

static void two_threads_work_at_the_same_time(void **state)
{
    (void)state;
    meeting m = {0};
    const pare_exec x = {.threads = 2};
    pare_parallel(&x, 2, meet, &m);
    assert_int_equal(m.here, 2);
}

typedef struct seen {
    int inside, calls;
    uint64_t most;
    bool together;
} seen;

static void watch(void *self, const char *what, uint64_t done, uint64_t total)
{
    seen *s = self;
    (void)what;
    if (__atomic_add_fetch(&s->inside, 1, __ATOMIC_SEQ_CST) != 1) s->together = true;
    usleep(200);
    s->calls++;
    if (done > s->most) s->most = done;
    if (done > total) s->together = true;
    __atomic_sub_fetch(&s->inside, 1, __ATOMIC_SEQ_CST);
}

static void report_block(void *ctx, size_t b)
{
    const pare_exec *x = ctx;
    assert_int_equal(pare_progress(x, "blocks", b + 1, 50, NULL), PARE_OK);
}

static void progress_is_called_by_one_thread_at_a_time_and_never_beyond_total(void **state)
{
    (void)state;
    seen s = {0};
    pare_exec x = {.threads = 3, .progress = watch, .self = &s};
    pare_parallel(&x, 60, report_block, &x);
    assert_int_equal(s.calls, 60);
    assert_true(s.most == 50);
    assert_false(s.together);
    assert_int_equal(pare_progress(NULL, "nothing", 1, 1, NULL), PARE_OK);
    const pare_exec silent = {.threads = 1};
    assert_int_equal(pare_progress(&silent, "nothing", 1, 1, NULL), PARE_OK);
}

static void cores_and_clock_are_sane(void **state)
{
    (void)state;
    assert_true(pare_cores() >= 1);
    const double a = pare_seconds();
    usleep(2000);
    assert_le(a + 0.0019, pare_seconds());
}

static void the_bar_is_silent_off_terminals(void **state)
{
    (void)state;
    FILE *f = tmpfile();
    pare_bar bar;
    pare_bar_init(&bar, f);
    pare_bar_show(&bar, "work", 1, 2);
    pare_bar_clear(&bar);
    assert_int_equal(ftell(f), 0);
    fclose(f);
}

static void the_bar_shows_name_share_and_time_left_and_clears_its_line(void **state)
{
    (void)state;
    char text[4096] = {0};
    FILE *f = fmemopen(text, sizeof text - 1, "w");
    pare_bar bar;
    pare_bar_init(&bar, f);
    bar.tty = true;
    pare_bar_show(&bar, "svd", 0, 4);
    assert_contains(text, "svd [........................]   0% eta --:--");
    bar.start -= 10; /* as if ten seconds had passed */
    bar.last = 0;
    pare_bar_show(&bar, "svd", 2, 4);
    assert_contains(text, "[############............]  50% eta 00:10");
    const long before = ftell(f);
    pare_bar_show(&bar, "svd", 3, 4); /* too soon after the last */
    assert_int_equal(ftell(f), before);
    pare_bar_show(&bar, "svd", 4, 4); /* the end is always shown */
    assert_contains(text, "100% eta 00:00");
    pare_bar_clear(&bar);
    assert_string_equal(text + strlen(text) - 4, "\r\033[K");
    assert_false(bar.drawn);
    pare_bar_show(&bar, "empty", 0, 0);
    assert_contains(text, "empty [########################] 100%");
    fclose(f);
}

typedef struct stopping {
    volatile int flag;
    int ran;
} stopping;

static void set_flag_at_tenth(void *ctx, size_t b)
{
    stopping *s = ctx;
    (void)b;
    if (__atomic_add_fetch(&s->ran, 1, __ATOMIC_SEQ_CST) == 10)
        __atomic_store_n(&s->flag, 1, __ATOMIC_SEQ_CST);
}

static void a_set_flag_ends_long_blocks_and_no_others(void **state)
{
    (void)state;
    for (int t = 1; t <= 3; t++) {
        stopping s = {0};
        pare_err err = {0};
        const pare_exec x = {.threads = t, .stop = &s.flag};
        assert_int_equal(pare_stopped(&x, &err), PARE_OK);
        assert_int_equal(pare_parallel_until(&x, BLOCKS, set_flag_at_tenth, &s, &err),
                         PARE_ERR_STOPPED);
        assert_true(s.ran >= 10 && s.ran < 10 + t);
        assert_string_equal(err.msg, "stopped");
        assert_int_equal(pare_stopped(&x, NULL), PARE_ERR_STOPPED);
        assert_int_equal(pare_or_stopped(&x, PARE_ERR_MEMORY, &err), PARE_ERR_STOPPED);
        assert_int_equal(pare_or_stopped(&x, PARE_OK, &err), PARE_OK);
        s.ran = 20;
        pare_parallel(&x, BLOCKS, set_flag_at_tenth, &s); /* short ones are all run */
        assert_int_equal(s.ran, 20 + BLOCKS);
    }
    assert_int_equal(pare_exit_code(PARE_ERR_STOPPED), 130);
}

/* ---- steps ---------------------------------------------------------------------------------- */

typedef struct range {
    double part;
    char what[32];
    bool back;
} range;

static void keep_range(void *self, const char *what, uint64_t done, uint64_t total)
{
    range *const r = self;
    const double part = (double)done / (double)total;
    if (part < r->part) r->back = true;
    r->part = part;
    snprintf(r->what, sizeof r->what, "%s", what);
}

static void report(const pare_exec *x, const char *what, uint64_t done, uint64_t total)
{
    assert_int_equal(pare_progress(x, what, done, total, NULL), PARE_OK);
}

static void steps_fill_one_range_by_their_weights(void **state)
{
    (void)state;
    range r = {0};
    const pare_exec x = {.threads = 2, .progress = keep_range, .self = &r};
    pare_steps s = pare_steps_of(&x, 10);
    const pare_exec *in = pare_step(&s, "first", 1);
    assert_int_equal(in->threads, 2);
    report(in, "within", 1, 2);
    assert_near(r.part, 0.05, 1e-9);
    assert_string_equal(r.what, "first"); /* the name of the step is shown */
    in = pare_step(&s, NULL, 4);
    report(in, "own name", 1, 4);
    assert_near(r.part, 0.2, 1e-9);
    assert_string_equal(r.what, "own name");
    report(in, "a second loop", 0, 4); /* stays where it was */
    assert_near(r.part, 0.2, 1e-9);
    pare_steps_add(&s, 5); /* 5 of 10 were left of one half: now 10 */
    in = pare_step(&s, "more", 5);
    assert_near(r.part, 0.5, 1e-9);
    pare_steps inner = pare_steps_of(in, 2);
    report(pare_step(&inner, NULL, 1), "inner", 1, 1);
    assert_near(r.part, 0.625, 1e-9);
    in = pare_step(&s, "last", 100); /* more than is left: all of it */
    report(in, "last", 1, 1);
    assert_near(r.part, 1, 0);
    assert_false(r.back);
    pare_steps none = pare_steps_of(NULL, 1);
    assert_int_equal(pare_step(&none, "silent", 1)->threads, 1);
    assert_null(none.exec.progress);
}

/* ---- the bar -------------------------------------------------------------------------------- */

static double fake_now;

static double fake_clock(void)
{
    return fake_now;
}

static pare_bar fake_bar(FILE *f)
{
    pare_bar bar;
    pare_bar_init(&bar, f);
    bar.tty = true;
    bar.clock = fake_clock;
    fake_now = 1000;
    return bar;
}

/* Three steps of 10, 60 and 30 seconds, weights off by up to 1.5: the total is foretold within that
 * factor at all times after the first quarter, and the bar never goes back. */
static void the_time_left_is_honest_over_uneven_steps(void **state)
{
    (void)state;
    static const double takes[] = {10, 60, 30}, weight[] = {15, 50, 35};
    FILE *f = tmpfile();
    pare_bar bar = fake_bar(f);
    const pare_exec x = {.threads = 1, .progress = pare_bar_show, .self = &bar};
    pare_steps s = pare_steps_of(&x, 100);
    double part = 0;
    for (size_t i = 0; i < 3; i++) {
        const pare_exec *const in = pare_step(&s, "step", weight[i]);
        for (uint64_t k = 1; k <= 20; k++) {
            fake_now += takes[i] / 20;
            report(in, "step", k, 20);
            assert_true(bar.part >= part);
            part = bar.part;
            const double total = fake_now - 1000 + pare_bar_left(&bar);
            if (part >= 0.25) assert_true(total > 100 / 1.5 && total < 100 * 1.5);
        }
    }
    assert_true(part == 1 && pare_bar_left(&bar) == 0);
    fclose(f);
}

/* 585 of 1000 steps were done by an earlier process; ours take a second each. */
static void work_of_an_earlier_process_does_not_count_as_fast(void **state)
{
    (void)state;
    FILE *f = tmpfile();
    pare_bar bar = fake_bar(f);
    pare_bar_show(&bar, "train", 585, 1000);
    assert_true(isinf(pare_bar_left(&bar)));
    for (uint64_t k = 586; k <= 600; k++) {
        fake_now += 1;
        pare_bar_show(&bar, "train", k, 1000);
    }
    assert_near(pare_bar_left(&bar), 400, 1e-6);
    fclose(f);
}

static void a_bar_never_goes_back_and_has_one_clock_for_all_names(void **state)
{
    (void)state;
    FILE *f = tmpfile();
    pare_bar bar = fake_bar(f);
    pare_bar_show(&bar, "first", 0, 4);
    fake_now += 10;
    pare_bar_show(&bar, "first", 2, 4);
    fake_now += 10;
    pare_bar_show(&bar, "second", 0, 4);
    assert_near(bar.part, 0.5, 0);
    assert_near(pare_bar_left(&bar), 20, 1e-9);
    fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_runs_once_with_the_same_bits_for_any_thread_count),
        cmocka_unit_test(a_call_from_within_a_block_finishes_its_blocks),
        cmocka_unit_test(thousands_of_small_calls_lose_no_block),
        cmocka_unit_test(two_threads_work_at_the_same_time),
        cmocka_unit_test(progress_is_called_by_one_thread_at_a_time_and_never_beyond_total),
        cmocka_unit_test(a_set_flag_ends_long_blocks_and_no_others),
        cmocka_unit_test(steps_fill_one_range_by_their_weights),
        cmocka_unit_test(the_time_left_is_honest_over_uneven_steps),
        cmocka_unit_test(work_of_an_earlier_process_does_not_count_as_fast),
        cmocka_unit_test(a_bar_never_goes_back_and_has_one_clock_for_all_names),
        cmocka_unit_test(cores_and_clock_are_sane),
        cmocka_unit_test(the_bar_is_silent_off_terminals),
        cmocka_unit_test(the_bar_shows_name_share_and_time_left_and_clears_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
