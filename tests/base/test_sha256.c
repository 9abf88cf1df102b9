/* Tests src/base/sha256.c. The sums are the examples of FIPS 180. */
#include "base/support.h"
#include <pare_test.h>

#define ABC     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define EMPTY   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define LONG56  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
#define MILLION "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"

static void known_sums_come_out(void **state)
{
    (void)state;
    pare_err err = {0};
    char hex[PARE_SHA256_HEX];
    assert_ok(pare_sha256_of(hex, "abc", 3, &err), &err);
    assert_string_equal(hex, ABC);
    assert_ok(pare_sha256_of(hex, "", 0, &err), &err);
    assert_string_equal(hex, EMPTY);
    const char *text = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    assert_ok(pare_sha256_of(hex, text, strlen(text), &err), &err);
    assert_string_equal(hex, LONG56);
}

static void pieces_and_files_give_the_sum_of_the_whole(void **state)
{
    (void)state;
    pare_err err = {0};
    char hex[PARE_SHA256_HEX], dir[200], path[300];
    char *a = malloc(1000000);
    memset(a, 'a', 1000000);
    pare_sha256 h;
    assert_ok(pare_sha256_begin(&h, &err), &err);
    for (size_t at = 0, step = 1; at < 1000000; at += step, step = step * 3 + 1) {
        if (step > 1000000 - at) step = 1000000 - at;
        pare_sha256_add(&h, a + at, step);
    }
    pare_sha256_end(&h, hex);
    assert_string_equal(hex, MILLION);
    assert_null(h.state);
    test_mkdir(dir);
    test_write_file(test_path(path, dir, "a"), a, 1000000);
    assert_ok(pare_sha256_file(hex, path, &err), &err);
    assert_string_equal(hex, MILLION);
    test_write_file(test_path(path, dir, "empty"), "", 0);
    assert_ok(pare_sha256_file(hex, path, &err), &err);
    assert_string_equal(hex, EMPTY);
    assert_status(pare_sha256_file(hex, test_path(path, dir, "none"), &err), PARE_ERR_IO, &err);
    test_rmdir(dir);
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_sums_come_out),
        cmocka_unit_test(pieces_and_files_give_the_sum_of_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
