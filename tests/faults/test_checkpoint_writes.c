/* A checkpoint that cannot be written, or whose writer is killed, leaves the old one whole. */
#include "../train/checkpoint_sample.h"
#include "fail_io.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

typedef struct place {
    char dir[200], path[300];
    cJSON *run;
    sample_state old, new;
} place;

static void open_place(place *p)
{
    pare_err err = {0};
    test_mkdir(p->dir);
    test_path(p->path, p->dir, "run.ckpt");
    p->run = sample_run(0.1, "x");
    sample_fill(&p->old, 1);
    sample_fill(&p->new, 2);
    assert_ok(checkpoint_write(p->path, &p->old.c, p->run, &err), &err);
}

static void close_place(place *p)
{
    cJSON_Delete(p->run);
    test_rmdir(p->dir);
}

static void assert_holds(const place *p, const sample_state *want)
{
    sample_state b;
    pare_err err = {0};
    sample_fill(&b, 0);
    assert_ok(checkpoint_read(&b.c, p->path, p->run, SAMPLE_STEPS, &err), &err);
    assert_same_state(&b, want);
}

static int entries(const char *dir)
{
    DIR *const d = opendir(dir);
    int n = 0;
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n - 2; /* . and .. */
}

static void a_write_that_fails_leaves_the_old_one(void **state)
{
    (void)state;
    place p;
    long n = 0;
    open_place(&p);
    for (;; n++) {
        pare_err err = {0};
        fail_io_after(n, ENOSPC, false);
        const pare_status st = checkpoint_write(p.path, &p.new.c, p.run, &err);
        const char *const hit = fail_io_hit();
        fail_io_after(-1, 0, false);
        assert_int_equal(entries(p.dir), 1);
        if (!st) break; /* also when only the folder could not be opened to be synced */
        assert_non_null(hit);
        assert_contains(err.msg, "run.ckpt");
        assert_holds(&p, &p.old);
    }
    assert_true(n >= 4); /* open, write, fsync, close, rename */
    assert_holds(&p, &p.new);
    close_place(&p);
}

static void a_writer_that_is_killed_leaves_the_old_one_or_the_new(void **state)
{
    (void)state;
    bool seen_new = false;
    for (long n = 0;; n++) {
        place p;
        int how = 0;
        open_place(&p);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            fail_io_kill_after(n);
            _exit(checkpoint_write(p.path, &p.new.c, p.run, NULL) != PARE_OK);
        }
        assert_int_equal(waitpid(child, &how, 0), child);
        const bool killed = WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
        sample_state b;
        pare_err err = {0};
        sample_fill(&b, 0);
        assert_ok(checkpoint_read(&b.c, p.path, p.run, SAMPLE_STEPS, &err), &err);
        const bool is_new = b.c.step == p.new.c.step;
        assert_same_state(&b, is_new ? &p.new : &p.old);
        assert_true(is_new || (killed && !seen_new));
        seen_new = seen_new || is_new;
        close_place(&p);
        if (!killed) break;
    }
    assert_true(seen_new);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_that_fails_leaves_the_old_one),
        cmocka_unit_test(a_writer_that_is_killed_leaves_the_old_one_or_the_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
