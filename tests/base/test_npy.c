/* Tests src/base/npy.c. */
#include <pare_test.h>
#include "base/array.h"
#include "numpy_run.h"
#include "base/npy.h"

#include <dirent.h>

/* An npy of version 1 or 2 from a header text and data. */
static size_t npy_make(uint8_t *to, int version, const char *dict, const void *data, size_t bytes)
{
    const size_t len = strlen(dict), head = version == 1 ? 10 : 12;
    memcpy(to, "\x93NUMPY", 6);
    to[6] = (uint8_t)version, to[7] = 0;
    to[8] = (uint8_t)len, to[9] = (uint8_t)(len >> 8);
    if (version > 1) to[10] = to[11] = 0;
    memcpy(to + head, dict, len);
    memcpy(to + head + len, data, bytes);
    return head + len + bytes;
}

typedef struct place {
    char dir[200], file[300];
    pare_arena *a;
} place;

static place begin(void)
{
    place p;
    test_mkdir(p.dir);
    test_path(p.file, p.dir, "a.npy");
    p.a = pare_arena_new();
    return p;
}

static void end(place *p)
{
    pare_arena_free(p->a);
    test_rmdir(p->dir);
}

static pare_status read_dict(pare_array *out, const place *p, int version, const char *dict,
                             const void *data, size_t bytes, pare_err *err)
{
    uint8_t file[1000];
    test_write_file(p->file, file, npy_make(file, version, dict, data, bytes));
    return pare_npy_read(out, p->a, p->file, err);
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    pare_err err = {0};
    place p = begin();
    uint8_t bytes[24 * 8];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 7 + 1);
    for (int t = PARE_BOOL; t < PARE_TEXT; t++) {
        for (size_t ndim = 0; ndim <= 4; ndim++) {
            const pare_array a = {
                .dtype = (pare_dtype)t, .ndim = ndim, .shape = {2, 3, 4, 1}, .data = bytes};
            pare_array b;
            assert_ok(pare_npy_write(p.file, &a, true, &err), &err);
            assert_ok(pare_npy_read(&b, p.a, p.file, &err), &err);
            assert_int_equal(b.dtype, a.dtype);
            assert_int_equal(b.ndim, ndim);
            for (size_t i = 0; i < ndim; i++) assert_int_equal(b.shape[i], a.shape[i]);
            assert_memory_equal(b.data, bytes, pare_array_count(&a) * pare_dtype_size(a.dtype));
            assert_int_equal((uintptr_t)b.data % 64, 0);
        }
    }
    const pare_array none = {.dtype = PARE_F32, .ndim = 2, .shape = {3, 0}};
    pare_array b;
    assert_ok(pare_npy_write(p.file, &none, true, &err), &err);
    assert_ok(pare_npy_read(&b, p.a, p.file, &err), &err);
    assert_int_equal(pare_array_count(&b), 0);
    const pare_array text = {.dtype = PARE_TEXT};
    assert_status(pare_npy_write(p.file, &text, true, &err), PARE_ERR_INPUT, &err);
    assert_status(pare_npy_write(p.file, &none, false, &err), PARE_ERR_IO, &err);
    end(&p);
}

static void headers_may_be_spaced_and_ordered_freely(void **state)
{
    (void)state;
    static const char *const good[] = {
        "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }   \n",
        "{\"shape\":(2,3),\"descr\":\"<i2\",\"fortran_order\":False}",
        "  { 'fortran_order' : False ,\n 'shape' : ( 2L , 3L , ) , 'descr' : '=i2' }  ",
        "{'descr': '|i2', 'fortran_order': False, 'shape': (2, 3)}\n",
    };
    const int16_t data[] = {1, -2, 3, -4, 5, -6};
    pare_err err = {0};
    place p = begin();
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        for (int version = 1; version <= 3; version++) {
            pare_array a;
            assert_ok(read_dict(&a, &p, version, good[i], data, sizeof data, &err), &err);
            assert_int_equal(a.dtype, PARE_I16);
            assert_true(a.ndim == 2 && a.shape[0] == 2 && a.shape[1] == 3);
            assert_memory_equal(a.data, data, sizeof data);
        }
    }
    end(&p);
}

static void damaged_headers_are_refused_with_the_reason(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"", "not a dict"},
        {"{", "key"},
        {"{'descr': '<i2', 'fortran_order': False}", "lacks 'shape'"},
        {"{'descr': '<i2', 'shape': (6,)}", "lacks 'fortran_order'"},
        {"{'fortran_order': False, 'shape': (6,)}", "lacks 'descr'"},
        {"{'descr': '<i2', 'descr': '<i2', 'fortran_order': False, 'shape': (6,)}", "twice"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (6,), 'x': 1}", "unknown key 'x'"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (6)}", "'shape'"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (-6,)}", "'shape'"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (2 3)}", "'shape'"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,6)}", "'shape'"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (99999999999999999999999,)}",
         "'shape'"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (4294967296,4294967296)}", "memory"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (7,)}", "needs 14 bytes"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (5,)}", "there are 12"},
        {"{'descr': '<i2', 'fortran_order': 0, 'shape': (6,)}", "'fortran_order'"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (6,)} x", "after the dict"},
        {"{'descr': '<i2' 'fortran_order': False, 'shape': (6,)}", "'descr'"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (6,)}", "Python objects"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (6,)}", "'<c8' is not supported"},
        {"{'descr': 'i2', 'fortran_order': False, 'shape': (6,)}", "'i2' is not supported"},
        {"{'descr': '', 'fortran_order': False, 'shape': (6,)}", "not supported"},
        {"{'descr': [('x', '<i2')], 'fortran_order': False, 'shape': (6,)}", "structured"},
    };
    const int16_t data[6] = {0};
    pare_err err = {0};
    place p = begin();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pare_array a;
        assert_status(read_dict(&a, &p, 1, bad[i][0], data, sizeof data, &err), PARE_ERR_INPUT,
                      &err);
        assert_contains(err.msg, bad[i][1]);
        assert_contains(err.msg, p.file);
    }
    pare_array a;
    assert_status(read_dict(&a, &p, 4, bad[2][0], data, 12, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "version 4.0");
    assert_status(pare_npy_read(&a, p.a, p.dir, &err), PARE_ERR_IO, &err);
    end(&p);
}

static void fortran_order_and_big_endian_become_row_major_little_endian(void **state)
{
    (void)state;
    pare_err err = {0};
    place p = begin();
    pare_array a;
    /* A[i][j][k] = 100 i + 10 j + k of shape 2 x 3 x 2, first index fastest, high byte first. */
    uint8_t data[24];
    size_t at = 0;
    for (int k = 0; k < 2; k++)
        for (int j = 0; j < 3; j++)
            for (int i = 0; i < 2; i++) {
                data[at++] = 1;
                data[at++] = (uint8_t)(100 * i + 10 * j + k);
            }
    assert_ok(read_dict(&a, &p, 1, "{'descr': '>u2', 'fortran_order': True, 'shape': (2, 3, 2)}",
                        data, sizeof data, &err),
              &err);
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 3; j++)
            for (size_t k = 0; k < 2; k++)
                assert_true(pare_array_i64(&a, (i * 3 + j) * 2 + k) ==
                            (int64_t)(256 + 100 * i + 10 * j + k));
    end(&p);
}

static void text_arrays_open_without_data(void **state)
{
    (void)state;
    pare_err err = {0};
    place p = begin();
    pare_array a;
    const char data[24] = {0};
    assert_ok(read_dict(&a, &p, 1, "{'descr': '<U3', 'fortran_order': False, 'shape': (2,)}", data,
                        24, &err),
              &err);
    assert_true(a.dtype == PARE_TEXT && a.ndim == 1 && a.shape[0] == 2 && !a.data);
    assert_ok(read_dict(&a, &p, 1, "{'descr': '|S12', 'fortran_order': False, 'shape': (2,)}", data,
                        24, &err),
              &err);
    assert_status(read_dict(&a, &p, 1, "{'descr': '<U3', 'fortran_order': False, 'shape': (3,)}",
                            data, 24, &err),
                  PARE_ERR_INPUT, &err);
    assert_status(read_dict(&a, &p, 1, "{'descr': '<Ux', 'fortran_order': False, 'shape': (3,)}",
                            data, 24, &err),
                  PARE_ERR_INPUT, &err);
    end(&p);
}

static void a_cut_file_is_refused_at_every_length(void **state)
{
    (void)state;
    pare_err err = {0};
    place p = begin();
    const float data[] = {1, 2, 3, 4, 5, 6};
    const pare_array a = {.dtype = PARE_F32, .ndim = 2, .shape = {2, 3}, .data = data};
    assert_ok(pare_npy_write(p.file, &a, true, &err), &err);
    size_t n;
    uint8_t *whole = test_read_file(p.file, &n);
    for (size_t k = 0; k < n; k++) {
        pare_array b;
        test_write_file(p.file, whole, k);
        assert_status(pare_npy_read(&b, p.a, p.file, &err), PARE_ERR_INPUT, &err);
    }
    free(whole);
    end(&p);
}

/* From a malloc'ed buffer of the exact size, where the sanitizer sees every overrun. */
static pare_status parse_bytes(const uint8_t *bytes, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, bytes, n);
    pare_arena *a = pare_arena_new();
    pare_npy_header h;
    pare_array out;
    pare_status st = pare_npy_header_parse(&h, copy, n, NULL);
    if (st == PARE_OK) st = pare_npy_place(&out, a, &h, copy, false, NULL);
    if (st == PARE_OK && out.dtype != PARE_TEXT)
        for (size_t i = 0; i < pare_array_count(&out); i++) (void)pare_array_f64(&out, i);
    pare_arena_free(a);
    free(copy);
    return st;
}

static void cut_and_changed_bytes_never_crash(void **state)
{
    (void)state;
    static const char dict[] = "{'descr': '>f8', 'fortran_order': True, 'shape': (2, 3)}";
    pare_rng r = pare_rng_at(31, 0);
    uint8_t file[200], bad[200];
    const double data[6] = {0};
    for (int version = 1; version <= 3; version++) {
        const size_t n = npy_make(file, version, dict, data, sizeof data);
        assert_int_equal(parse_bytes(file, n), PARE_OK);
        for (size_t k = 0; k < n; k++) assert_int_equal(parse_bytes(file, k), PARE_ERR_INPUT);
        for (int trial = 0; trial < 20000; trial++) {
            memcpy(bad, file, n);
            for (uint64_t i = 1 + pare_rng_below(&r, 3); i > 0; i--) {
                const uint64_t at = pare_rng_below(&r, n - sizeof data);
                bad[at] = trial % 2 ? (uint8_t)pare_rng_u32(&r) : bad[pare_rng_below(&r, n)];
            }
            (void)parse_bytes(bad, n);
        }
    }
}

static void failed_writes_leave_nothing(void **state)
{
    (void)state;
    pare_err err = {0};
    place p = begin();
    const float one = 1;
    const pare_array a = {.dtype = PARE_F32, .data = &one};
    char path[300];
    assert_status(pare_npy_write(test_path(path, p.dir, "no/a.npy"), &a, true, &err), PARE_ERR_IO,
                  &err);
    DIR *d = opendir(p.dir);
    int n = 0;
    while (readdir(d)) n++;
    closedir(d);
    assert_int_equal(n, 2);
    end(&p);
}

static void numpy_writes_the_same_bytes_and_reads_ours(void **state)
{
    (void)state;
    NEED_NUMPY();
    pare_err err = {0};
    place p = begin();
    numpy_run(p.dir, "import numpy as np\n"
                     "np.save('f4.npy', np.arange(6, dtype='<f4').reshape(2, 3))\n"
                     "np.save('u1.npy', np.arange(5, dtype='u1'))\n"
                     "np.save('f8.npy', np.float64(2.5))\n"
                     "np.save('i8.npy', np.zeros((3, 0, 2), 'i8'))\n"
                     "np.save('F.npy', np.asfortranarray(np.arange(12.).reshape(3, 4)))\n"
                     "np.save('B.npy', np.arange(12).reshape(3, 4).astype('>f2'))\n"
                     "np.save('U.npy', np.array(['a', 'bcd']))\n");
    const float f4[] = {0, 1, 2, 3, 4, 5};
    const uint8_t u1[] = {0, 1, 2, 3, 4};
    const double f8 = 2.5;
    const pare_array ours[] = {
        {.dtype = PARE_F32, .ndim = 2, .shape = {2, 3}, .data = f4},
        {.dtype = PARE_U8, .ndim = 1, .shape = {5}, .data = u1},
        {.dtype = PARE_F64, .data = &f8},
        {.dtype = PARE_I64, .ndim = 3, .shape = {3, 0, 2}},
    };
    const char *const names[] = {"f4.npy", "u1.npy", "f8.npy", "i8.npy"};
    for (size_t i = 0; i < 4; i++) {
        char theirs[300];
        size_t n, m;
        assert_ok(pare_npy_write(p.file, &ours[i], true, &err), &err);
        uint8_t *a = test_read_file(p.file, &n);
        uint8_t *b = test_read_file(test_path(theirs, p.dir, names[i]), &m);
        assert_int_equal(n, m);
        assert_memory_equal(a, b, n);
        free(a);
        free(b);
    }
    char path[300];
    pare_array a;
    for (int big = 0; big < 2; big++) {
        test_path(path, p.dir, big ? "B.npy" : "F.npy");
        assert_ok(pare_npy_read(&a, p.a, path, &err), &err);
        for (size_t i = 0; i < 12; i++) assert_true(pare_array_f64(&a, i) == (double)i);
    }
    assert_ok(pare_npy_read(&a, p.a, test_path(path, p.dir, "U.npy"), &err), &err);
    assert_int_equal(a.dtype, PARE_TEXT);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(headers_may_be_spaced_and_ordered_freely),
        cmocka_unit_test(damaged_headers_are_refused_with_the_reason),
        cmocka_unit_test(fortran_order_and_big_endian_become_row_major_little_endian),
        cmocka_unit_test(text_arrays_open_without_data),
        cmocka_unit_test(a_cut_file_is_refused_at_every_length),
        cmocka_unit_test(cut_and_changed_bytes_never_crash),
        cmocka_unit_test(failed_writes_leave_nothing),
        cmocka_unit_test(numpy_writes_the_same_bytes_and_reads_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
