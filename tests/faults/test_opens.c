/* Verifying opens every file once, so that what is hashed is what is parsed; and what is no file is
 * refused at once. */
#include "../cert/cert_toy.h"
#include "fail_io.h"
#include <signal.h>
#include <sys/stat.h>

/* f -> g -> h by two cuts on the inputs of d.bin, composed in all.json. */
static void world(toy *t)
{
    toy_begin(t);
    toy_save(t, "f.pare", 0);
    toy_save(t, "g.pare", 0.5);
    toy_save(t, "h.pare", 0.75);
    test_write_file(toy_path(t, "d.bin"), "some inputs", 11);
    pare_cert first = toy_cert(t, "1.json", "f.pare", "g.pare", "d.bin", 42);
    pare_cert second = toy_cert(t, "2.json", "g.pare", "h.pare", "d.bin", 42);
    const char *const paths[] = {toy_path(t, "1.json"), toy_path(t, "2.json")};
    pare_cert *const links[] = {&first, &second};
    pare_cert c;
    toy_write(t, &first, "1.json");
    assert_ok(pare_cert_compose(&c, t->a, toy_path(t, "all.json"), links, paths, 2, &t->err),
              &t->err);
    c.measured = 0.75;
    toy_write(t, &c, "all.json");
}

static void every_file_of_a_cut_is_opened_once(void **state)
{
    (void)state;
    toy t;
    world(&t);
    fail_io_forget_opens();
    assert_ok(toy_verify(&t, "1.json"), &t.err);
    assert_int_equal(fail_io_opens("/1.json"), 1);
    assert_int_equal(fail_io_opens("/f.pare"), 1);
    assert_int_equal(fail_io_opens("/g.pare"), 1);
    assert_int_equal(fail_io_opens("/d.bin"), 1);
    toy_end(&t);
}

static void every_file_of_a_chain_is_opened_once(void **state)
{
    (void)state;
    static const char *const names[] = {"/all.json", "/f.pare", "/g.pare", "/h.pare", "/d.bin"};
    toy t;
    world(&t);
    fail_io_forget_opens();
    assert_ok(toy_verify(&t, "all.json"), &t.err);
    for (size_t i = 0; i < 5; i++)
        if (fail_io_opens(names[i]) != 1)
            fail_msg("%s was opened %d times", names[i], fail_io_opens(names[i]));
    toy_end(&t);
}

/* A pipe in the place of a file: nobody writes to it, and nobody waits for that. */
static void a_pipe_is_refused_at_once(void **state)
{
    (void)state;
    static const char *const names[] = {"1.json", "f.pare", "g.pare", "d.bin"};
    toy t;
    world(&t);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(rename(toy_path(&t, names[i]), toy_path(&t, "away")), 0);
        assert_int_equal(mkfifo(toy_path(&t, names[i]), 0600), 0);
        alarm(60); /* ends the program if it hangs */
        const pare_status st = toy_verify(&t, "1.json");
        alarm(0);
        assert_int_equal(pare_exit_code(st), 2);
        assert_contains(t.err.msg, names[i]);
        assert_contains(t.err.msg, "pipe");
        assert_int_equal(unlink(toy_path(&t, names[i])), 0);
        assert_int_equal(rename(toy_path(&t, "away"), toy_path(&t, names[i])), 0);
    }
    assert_ok(toy_verify(&t, "1.json"), &t.err);
    toy_end(&t);
}

static void a_device_is_refused_at_once(void **state)
{
    (void)state;
    toy t;
    world(&t);
    pare_verify_opts o = toy_opts();
    const char **const path[] = {&o.input, &o.output, &o.data};
    alarm(60);
    for (size_t i = 0; i < 3; i++) {
        *path[i] = "/dev/zero";
        const pare_status st = pare_cert_verify(toy_path(&t, "1.json"), &o, &t.err);
        assert_int_equal(pare_exit_code(st), 2);
        assert_contains(t.err.msg, "/dev/zero");
        *path[i] = NULL;
    }
    assert_int_equal(pare_exit_code(pare_cert_verify("/dev/zero", &o, &t.err)), 2);
    alarm(0);
    toy_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_of_a_cut_is_opened_once),
        cmocka_unit_test(every_file_of_a_chain_is_opened_once),
        cmocka_unit_test(a_pipe_is_refused_at_once),
        cmocka_unit_test(a_device_is_refused_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
