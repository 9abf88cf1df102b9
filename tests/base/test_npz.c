/* Tests src/base/npz.c, zip_read.c and zip_write.c. */
#include "base/array.h"
#include "npz_sample.h"
#include "numpy_run.h"
#include "base/npy.h"
#include "base/zip.h"

#include <dirent.h>

typedef struct place {
    char dir[200], file[300];
    pare_arena *a;
} place;

static place begin(void)
{
    place p;
    test_mkdir(p.dir);
    test_path(p.file, p.dir, "a.npz");
    p.a = pare_arena_new();
    return p;
}

static void end(place *p)
{
    pare_arena_free(p->a);
    test_rmdir(p->dir);
}

static void sample_write(const place *p, bool deflate)
{
    pare_err err = {0};
    assert_ok(
        pare_npz_write(p->file, SAMPLE_COUNT, sample_names, sample_arrays, deflate, true, &err),
        &err);
}

/* Opens and reads every member; the first failure. */
static pare_status read_all(const place *p, size_t *members, pare_err *err)
{
    pare_npz *z;
    pare_status st = pare_npz_open(&z, p->a, p->file, err);
    if (st != PARE_OK) return st;
    *members = pare_npz_count(z);
    for (size_t i = 0; i < pare_npz_count(z) && st == PARE_OK; i++) {
        pare_array a;
        st = pare_npz_get(&a, z, pare_npz_name(z, i), err);
    }
    pare_npz_close(z);
    return st;
}

/* The same for the sample, which must come out right if it is not refused; from a malloc'ed buffer
 * of the exact size, where the sanitizer sees every overrun (behind a mapped file
 * the rest of its last page can be read unnoticed). */
static pare_status read_bytes(const uint8_t *bytes, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, bytes, n);
    pare_arena *a = pare_arena_new();
    pare_zip z;
    pare_status st = pare_zip_scan(&z, a, copy, n, NULL);
    for (size_t i = 0; st == PARE_OK && i < z.count; i++) {
        const uint8_t *data;
        bool in_arena;
        pare_npy_header h;
        pare_array array;
        st = pare_zip_unpack(&data, &in_arena, &z, &z.member[i], a, NULL);
        if (st == PARE_OK) st = pare_npy_header_parse(&h, data, z.member[i].size, NULL);
        if (st == PARE_OK) st = pare_npy_place(&array, a, &h, data, in_arena, NULL);
        if (st == PARE_OK && i < SAMPLE_COUNT) sample_compare(&array, i);
    }
    pare_arena_free(a);
    free(copy);
    return st;
}

/* Members of any name, the odd ones deflated, zip64 or not. */
static void zip_make(const place *p, bool always64, size_t n, const char *const *names,
                     const pare_array *arrays)
{
    pare_err err = {0};
    pare_out *o;
    pare_zip_writer w;
    assert_ok(pare_out_open(&o, p->file, true, &err), &err);
    assert_ok(pare_zip_begin(&w, o, p->a, n, &err), &err);
    w.always64 = always64;
    for (size_t i = 0; i < n; i++) {
        char head[PARE_NPY_HEADER_MAX];
        size_t bytes;
        const pare_array *a = &arrays[i];
        assert_ok(pare_npy_header_print(head, &bytes, a, &err), &err);
        assert_ok(pare_zip_add(&w, names[i], head, bytes, a->data,
                               pare_array_count(a) * pare_dtype_size(a->dtype), i % 2, &err),
                  &err);
    }
    assert_ok(pare_zip_end(&w, &err), &err);
    assert_ok(pare_out_commit(o, &err), &err);
}

static void what_is_written_is_read_back_and_outlives_the_archive(void **state)
{
    (void)state;
    pare_err err = {0};
    for (int deflate = 0; deflate < 2; deflate++) {
        place p = begin();
        sample_write(&p, deflate);
        pare_npz *z;
        pare_array got[SAMPLE_COUNT];
        assert_ok(pare_npz_open(&z, p.a, p.file, &err), &err);
        assert_int_equal(pare_npz_count(z), SAMPLE_COUNT);
        for (size_t i = 0; i < SAMPLE_COUNT; i++) {
            assert_string_equal(pare_npz_name(z, i), sample_names[i]);
            assert_true(pare_npz_has(z, sample_names[i]));
            assert_ok(pare_npz_get(&got[i], z, sample_names[i], &err), &err);
        }
        assert_false(pare_npz_has(z, "w"));
        assert_false(pare_npz_has(z, "W.npy"));
        assert_status(pare_npz_get(&got[0], z, "missing", &err), PARE_ERR_INPUT, &err);
        assert_contains(err.msg, p.file);
        assert_contains(err.msg, "missing");
        pare_npz_close(z);
        pare_npz_close(NULL);
        for (size_t i = 0; i < SAMPLE_COUNT; i++) sample_compare(&got[i], i);
        end(&p);
    }
}

static void the_same_arrays_give_the_same_bytes(void **state)
{
    (void)state;
    for (int deflate = 0; deflate < 2; deflate++) {
        place p = begin();
        size_t n, m;
        sample_write(&p, deflate);
        uint8_t *a = test_read_file(p.file, &n);
        sample_write(&p, deflate);
        uint8_t *b = test_read_file(p.file, &m);
        assert_int_equal(n, m);
        assert_memory_equal(a, b, n);
        assert_memory_equal(a + 10, "\0\0\x21\0", 4); /* time and date are 1980-01-01 00:00 */
        free(a);
        free(b);
        end(&p);
    }
}

static void a_cut_archive_is_refused_at_every_length(void **state)
{
    (void)state;
    for (int deflate = 0; deflate < 2; deflate++) {
        place p = begin();
        sample_write(&p, deflate);
        size_t n, members;
        uint8_t *whole = test_read_file(p.file, &n);
        assert_int_equal(read_bytes(whole, n), PARE_OK);
        for (size_t k = 0; k < n; k++) {
            pare_err err = {0};
            assert_int_equal(read_bytes(whole, k), PARE_ERR_INPUT);
            test_write_file(p.file, whole, k);
            assert_status(read_all(&p, &members, &err), PARE_ERR_INPUT, &err);
            assert_contains(err.msg, p.file);
        }
        free(whole);
        end(&p);
    }
}

static uint8_t byte_other(pare_rng *r, uint8_t old)
{
    return (uint8_t)(old ^ (1 + pare_rng_below(r, 255)));
}

/* A changed byte is noticed, except where nothing depends on it (dates, attributes, versions). */
static void flipped_bytes_never_crash_and_never_change_the_data(void **state)
{
    (void)state;
    const char *const names[] = {"W.npy", "ids.npy", "none.npy"};
    pare_rng r = pare_rng_at(4711, 0);
    for (int kind = 0; kind < 3; kind++) { /* stored, deflated, zip64 */
        place p = begin();
        if (kind < 2)
            sample_write(&p, kind == 1);
        else
            zip_make(&p, true, 3, names, sample_arrays);
        size_t n;
        uint8_t *whole = test_read_file(p.file, &n), *bad = malloc(n);
        int refused = 0;
        for (size_t k = 0; k < n; k++) { /* every byte, alone */
            memcpy(bad, whole, n);
            bad[k] = byte_other(&r, bad[k]);
            refused += read_bytes(bad, n) != PARE_OK;
        }
        assert_true(refused > (int)n / 2);
        for (int trial = 0; trial < 3000; trial++) { /* several, with a liking for the directory */
            memcpy(bad, whole, n);
            for (uint64_t i = 1 + pare_rng_below(&r, 5); i > 0; i--) {
                const uint64_t from = trial % 2 ? n / 2 : 0,
                               at = from + pare_rng_below(&r, n - from);
                bad[at] = byte_other(&r, bad[at]);
            }
            (void)read_bytes(bad, n);
        }
        free(bad);
        free(whole);
        end(&p);
    }
}

static void a_flipped_byte_of_content_or_name_is_refused_by_name(void **state)
{
    (void)state;
    for (int deflate = 0; deflate < 2; deflate++) {
        place p = begin();
        sample_write(&p, deflate);
        size_t n, members;
        uint8_t *b = test_read_file(p.file, &n);
        const size_t name = 30, packed = b[18] + 256u * b[19];
        for (size_t k = name; k < name + strlen("W.npy") + packed; k++) {
            pare_err err = {0};
            b[k] ^= 1;
            test_write_file(p.file, b, n);
            assert_status(read_all(&p, &members, &err), PARE_ERR_INPUT, &err);
            assert_contains(err.msg, "W.npy");
            b[k] ^= 1;
        }
        free(b);
        end(&p);
    }
}

static size_t find_mark(const uint8_t *b, size_t n, const char *mark)
{
    for (size_t i = 0; i + 4 <= n; i++)
        if (memcmp(b + i, mark, 4) == 0) return i;
    fail_msg("mark not found");
    return 0;
}

/* Writes the sample with one little-endian field of the first directory entry changed. */
static pare_status read_with_entry(const place *p, bool deflate, size_t offset, uint64_t value,
                                   size_t width, bool local_too, pare_err *err)
{
    size_t n, members;
    sample_write(p, deflate);
    uint8_t *b = test_read_file(p->file, &n);
    const size_t entry = find_mark(b, n, "PK\1\2");
    memcpy(b + entry + offset, &value, width);
    if (local_too) memcpy(b + offset - 2, &value, width); /* the local fields lie 2 bytes earlier */
    test_write_file(p->file, b, n);
    free(b);
    return read_all(p, &members, err);
}

static void lies_in_the_directory_are_refused_by_name(void **state)
{
    (void)state;
    pare_err err = {0};
    place p = begin();
    /* 4 GB claimed by a file of 1 KB: refused before any allocation */
    assert_status(read_with_entry(&p, true, 24, 4000000000u, 4, false, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "claims 4000000000 bytes");
    assert_status(read_with_entry(&p, false, 24, 4000000000u, 4, false, &err), PARE_ERR_INPUT,
                  &err);
    assert_contains(err.msg, "claims 4000000000 bytes");
    assert_status(read_with_entry(&p, true, 8, 1, 2, true, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "encrypted");
    assert_contains(err.msg, "'W.npy'");
    assert_status(read_with_entry(&p, true, 10, 14, 2, true, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "method 14");
    assert_status(read_with_entry(&p, true, 16, 0, 4, false, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "CRC-32");
    assert_status(read_with_entry(&p, true, 20, 100000, 4, false, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "reaches into what follows it");
    assert_status(read_with_entry(&p, false, 20, 200, 4, false, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "reaches into what follows it");
    assert_status(read_with_entry(&p, false, 42, 1, 4, false, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "not where the directory says");
    for (uint64_t size = 151; size <= 153; size += 2) { /* 152 is right */
        assert_status(read_with_entry(&p, true, 24, size, 4, false, &err), PARE_ERR_INPUT, &err);
        assert_contains(err.msg, "deflate data is damaged");
    }
    end(&p);
}

static void counts_and_places_outside_are_refused(void **state)
{
    (void)state;
    place p = begin();
    pare_err err = {0};
    size_t n, members;
    sample_write(&p, true);
    uint8_t *b = test_read_file(p.file, &n);
    const size_t end_at = find_mark(b, n, "PK\5\6"), entry = find_mark(b, n, "PK\1\2");
    b[end_at + 8] = b[end_at + 10] = SAMPLE_COUNT - 1;
    test_write_file(p.file, b, n);
    assert_status(read_all(&p, &members, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "bytes after the last entry");
    b[end_at + 8] = b[end_at + 10] = 200;
    test_write_file(p.file, b, n);
    assert_status(read_all(&p, &members, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "more members are claimed");
    b[end_at + 8] = b[end_at + 10] = SAMPLE_COUNT;
    /* A local header in the comment, whose name would lie behind the end of the file. */
    uint8_t *with = calloc(1, n + 30);
    memcpy(with, b, n);
    with[n - 2] = 30;
    memcpy(with + n, b, 30);
    const uint32_t at = (uint32_t)n;
    memcpy(with + entry + 42, &at, 4);
    assert_int_equal(read_bytes(with, n + 30), PARE_ERR_INPUT);
    free(with);
    free(b);
    end(&p);
}

/* W's deflate stream with three bytes more inside the member. */
static void bytes_after_the_deflate_stream_are_refused(void **state)
{
    (void)state;
    place p = begin();
    for (size_t junk = 0; junk <= 3; junk += 3) {
        pare_err err = {0};
        size_t n, m, members;
        sample_write(&p, true);
        uint8_t *b = test_read_file(p.file, &n);
        const size_t packed = b[18] + 256u * b[19];
        pare_out *o;
        pare_zip_writer w;
        assert_ok(pare_out_open(&o, p.file, true, &err), &err);
        assert_ok(pare_zip_begin(&w, o, p.a, 1, &err), &err);
        assert_ok(pare_zip_add(&w, "W.npy", b + 35, packed, "abc", junk, false, &err), &err);
        assert_ok(pare_zip_end(&w, &err), &err);
        assert_ok(pare_out_commit(o, &err), &err);
        uint8_t *c = test_read_file(p.file, &m);
        const size_t entry = find_mark(c, m, "PK\1\2");
        c[8] = c[entry + 10] = ZIP_DEFLATED;
        memcpy(c + entry + 16, b + 14, 4); /* CRC */
        memcpy(c + entry + 24, b + 22, 4); /* size */
        test_write_file(p.file, c, m);
        const pare_status st = read_all(&p, &members, &err);
        assert_status(st, junk ? PARE_ERR_INPUT : PARE_OK, &err);
        if (junk) assert_contains(err.msg, "deflate data is damaged");
        free(b);
        free(c);
    }
    end(&p);
}

static void zip64_records_are_understood(void **state)
{
    (void)state;
    const char *const names[] = {"W.npy", "ids.npy", "none.npy"};
    pare_err err = {0};
    place p = begin();
    zip_make(&p, true, 3, names, sample_arrays);
    pare_npz *z;
    assert_ok(pare_npz_open(&z, p.a, p.file, &err), &err);
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        pare_array got;
        assert_ok(pare_npz_get(&got, z, sample_names[i], &err), &err);
        sample_compare(&got, i);
    }
    pare_npz_close(z);
    size_t n;
    uint8_t *whole = test_read_file(p.file, &n);
    for (size_t k = 0; k < n; k++) assert_int_equal(read_bytes(whole, k), PARE_ERR_INPUT);
    /* 100 GB claimed through zip64 */
    const size_t entry = find_mark(whole, n, "PK\1\2");
    const uint64_t huge = 100000000000;
    memcpy(whole + entry + 46 + 5 + 4, &huge, 8);
    assert_int_equal(read_bytes(whole, n), PARE_ERR_INPUT);
    memcpy(whole + entry + 46 + 5 + 4, &(uint64_t){UINT64_MAX}, 8);
    assert_int_equal(read_bytes(whole, n), PARE_ERR_INPUT);
    memcpy(whole + entry + 46 + 5 + 4, &(uint64_t){152}, 8);
    assert_int_equal(read_bytes(whole, n), PARE_OK);
    for (uint8_t length = 8; length <= 72; length += 16) { /* of the extra field; 24 is right */
        whole[entry + 46 + 5 + 2] = length;
        assert_int_equal(read_bytes(whole, n), length == 24 ? PARE_OK : PARE_ERR_INPUT);
    }
    whole[entry + 46 + 5 + 2] = 24;
    const size_t end64 = find_mark(whole, n, "PK\6\6"); /* 2^60 members */
    memcpy(whole + end64 + 24, (const uint64_t[]){(uint64_t)1 << 60, (uint64_t)1 << 60}, 16);
    assert_int_equal(read_bytes(whole, n), PARE_ERR_INPUT);
    free(whole);
    if (system(PYTHON " -c 'import numpy' >/dev/null 2>&1") == 0)
        numpy_run(p.dir, "import numpy as np\n"
                         "z = np.load('a.npz')\n"
                         "assert (z['W'] == [[1, 2, 3], [4, 5, 6]]).all()\n");
    end(&p);
}

static void other_members_pass_and_twins_do_not(void **state)
{
    (void)state;
    pare_err err = {0};
    place p = begin();
    const char *const mixed[] = {"readme.txt", "W.npy", ".npy"};
    const pare_array arrays[] = {sample_arrays[1], sample_arrays[0], sample_arrays[2]};
    zip_make(&p, false, 3, mixed, arrays);
    pare_npz *z;
    assert_ok(pare_npz_open(&z, p.a, p.file, &err), &err);
    assert_int_equal(pare_npz_count(z), 2);
    assert_true(pare_npz_has(z, "W") && pare_npz_has(z, "") && !pare_npz_has(z, "readme.txt"));
    pare_npz_close(z);
    const char *const twins[] = {"a.npy", "b.npy", "a.npy"};
    zip_make(&p, false, 3, twins, arrays);
    assert_status(pare_npz_open(&z, p.a, p.file, &err), PARE_ERR_INPUT, &err);
    assert_null(z);
    assert_contains(err.msg, "'a.npy' is there twice");
    zip_make(&p, false, 0, NULL, NULL);
    assert_ok(pare_npz_open(&z, p.a, p.file, &err), &err);
    assert_int_equal(pare_npz_count(z), 0);
    pare_npz_close(z);
    end(&p);
}

static void a_zip_comment_is_skipped(void **state)
{
    (void)state;
    pare_err err = {0};
    place p = begin();
    sample_write(&p, true);
    size_t n, members = 0;
    uint8_t *b = test_read_file(p.file, &n);
    uint8_t *with = calloc(1, n + 300);
    memcpy(with, b, n);
    with[n - 2] = 300 & 255, with[n - 1] = 300 >> 8;
    memcpy(with + n + 20, "PK\5\6", 4); /* what looks like an end record is none */
    test_write_file(p.file, with, n + 300);
    assert_ok(read_all(&p, &members, &err), &err);
    assert_int_equal(members, SAMPLE_COUNT);
    free(b);
    free(with);
    end(&p);
}

static void failed_reads_give_their_memory_back_and_failed_writes_leave_nothing(void **state)
{
    (void)state;
    pare_err err = {0};
    place p = begin();
    sample_write(&p, true);
    size_t n;
    uint8_t *b = test_read_file(p.file, &n);
    b[find_mark(b, n, "PK\1\2") + 16] ^= 1; /* CRC of W */
    test_write_file(p.file, b, n);
    free(b);
    pare_npz *z;
    pare_array a;
    assert_ok(pare_npz_open(&z, p.a, p.file, &err), &err);
    const pare_mark before = pare_arena_mark(p.a);
    assert_status(pare_npz_get(&a, z, "W", &err), PARE_ERR_INPUT, &err);
    const pare_mark after = pare_arena_mark(p.a);
    assert_true(before.used == after.used && before.chunk == after.chunk);
    pare_npz_close(z);
    char path[300];
    assert_status(pare_npz_write(test_path(path, p.dir, "no/a.npz"), SAMPLE_COUNT, sample_names,
                                 sample_arrays, true, true, &err),
                  PARE_ERR_IO, &err);
    const pare_array text = {.dtype = PARE_TEXT};
    assert_status(
        pare_npz_write(test_path(path, p.dir, "t.npz"), 1, sample_names, &text, true, true, &err),
        PARE_ERR_INPUT, &err);
    assert_status(
        pare_npz_write(p.file, SAMPLE_COUNT, sample_names, sample_arrays, true, false, &err),
        PARE_ERR_IO, &err);
    DIR *d = opendir(p.dir);
    int entries = 0;
    while (readdir(d)) entries++;
    closedir(d);
    assert_int_equal(entries, 3); /* ., .., a.npz */
    end(&p);
}

static void large_arrays_survive_both_ways(void **state)
{
    (void)state;
    pare_err err = {0};
    place p = begin();
    const size_t n = 300000;
    double *v = pare_alloc(p.a, n, sizeof *v);
    pare_rng r = pare_rng_at(8, 0);
    for (size_t i = 0; i < n; i++) v[i] = i % 3 ? 0 : pare_rng_normal(&r);
    const pare_array a = {.dtype = PARE_F64, .ndim = 1, .shape = {n}, .data = v};
    const char *const name[] = {"v"};
    for (int deflate = 0; deflate < 2; deflate++) {
        pare_npz *z;
        pare_array got;
        assert_ok(pare_npz_write(p.file, 1, name, &a, deflate, true, &err), &err);
        assert_ok(pare_npz_open(&z, p.a, p.file, &err), &err);
        assert_ok(pare_npz_get(&got, z, "v", &err), &err);
        assert_memory_equal(got.data, v, n * sizeof *v);
        assert_int_equal((uintptr_t)got.data % 16, 0);
        pare_npz_close(z);
    }
    end(&p);
}

static void numpy_reads_ours_and_we_read_numpys(void **state)
{
    (void)state;
    NEED_NUMPY();
    pare_err err = {0};
    place p = begin();
    for (int deflate = 0; deflate < 2; deflate++) {
        char script[800];
        sample_write(&p, deflate);
        snprintf(script, sizeof script,
                 "import numpy as np, zipfile\n"
                 "assert zipfile.ZipFile('a.npz').testzip() is None\n"
                 "z = np.load('a.npz')\n"
                 "assert z.files == ['W', 'ids', 'none']\n"
                 "assert z['W'].dtype == np.float32 and (z['W'] == [[1, 2, 3], [4, 5, 6]]).all()\n"
                 "assert z['ids'].dtype == np.int64 and z['ids'].tolist() == [7, 8, 9] + 37 * [0]\n"
                 "assert z['none'].shape == (0,)\n"
                 "ids = np.array([7, 8, 9] + 37 * [0])\n"
                 "W = np.array([[1, 2, 3], [4, 5, 6]], 'f4')\n"
                 "np.savez%s('a.npz', W=W, F=np.asfortranarray(W), ids=ids, none=np.zeros(0),\n"
                 "    B=W.astype('>f8'), U=np.array(['x', 'yz']))\n",
                 deflate ? "_compressed" : "");
        numpy_run(p.dir, script);
        pare_npz *z;
        pare_array got;
        assert_ok(pare_npz_open(&z, p.a, p.file, &err), &err);
        assert_int_equal(pare_npz_count(z), 6);
        for (size_t i = 0; i < SAMPLE_COUNT; i++) {
            assert_ok(pare_npz_get(&got, z, sample_names[i], &err), &err);
            sample_compare(&got, i);
        }
        assert_ok(pare_npz_get(&got, z, "F", &err), &err);
        sample_compare(&got, 0);
        assert_ok(pare_npz_get(&got, z, "B", &err), &err);
        for (size_t i = 0; i < 6; i++) assert_true(pare_array_f64(&got, i) == (double)(i + 1));
        assert_ok(pare_npz_get(&got, z, "U", &err), &err);
        assert_int_equal(got.dtype, PARE_TEXT);
        pare_npz_close(z);
    }
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back_and_outlives_the_archive),
        cmocka_unit_test(the_same_arrays_give_the_same_bytes),
        cmocka_unit_test(a_cut_archive_is_refused_at_every_length),
        cmocka_unit_test(flipped_bytes_never_crash_and_never_change_the_data),
        cmocka_unit_test(a_flipped_byte_of_content_or_name_is_refused_by_name),
        cmocka_unit_test(counts_and_places_outside_are_refused),
        cmocka_unit_test(bytes_after_the_deflate_stream_are_refused),
        cmocka_unit_test(lies_in_the_directory_are_refused_by_name),
        cmocka_unit_test(zip64_records_are_understood),
        cmocka_unit_test(other_members_pass_and_twins_do_not),
        cmocka_unit_test(a_zip_comment_is_skipped),
        cmocka_unit_test(failed_reads_give_their_memory_back_and_failed_writes_leave_nothing),
        cmocka_unit_test(large_arrays_survive_both_ways),
        cmocka_unit_test(numpy_reads_ours_and_we_read_numpys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
