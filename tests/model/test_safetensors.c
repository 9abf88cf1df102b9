/* Tests src/model/safetensors.c: everything a header claims is checked. */
#include "../support/pare_test.h"
#include "model/safetensors.h"

/* The header, then `data` bytes 0, 1, 2, ... */
static size_t build(uint8_t *to, const char *header, size_t data)
{
    const size_t n = strlen(header);
    for (size_t i = 0; i < 8; i++) to[i] = (uint8_t)((uint64_t)n >> (8 * i));
    memcpy(to + 8, header, n);
    for (size_t i = 0; i < data; i++) to[8 + n + i] = (uint8_t)i;
    return 8 + n + data;
}

/* The reader needs nothing of a blob but its bytes: no file is written here. The copy ends where
 * the bytes end, so that the address sanitizer sees a read beyond. */
static pare_status open_bytes(st_file *f, pare_arena *a, const uint8_t *data, size_t bytes,
                              pare_blob *b, pare_err *err)
{
    uint8_t *copy = malloc(bytes ? bytes : 1);
    assert_non_null(copy);
    memcpy(copy, data, bytes);
    *b = (pare_blob){.data = copy, .bytes = bytes, .path = (char *)"a.safetensors", .refs = 1};
    return st_open(f, a, b, err);
}

static void drop_bytes(pare_blob *b)
{
    free((void *)(uintptr_t)b->data);
}

static void refused(const char *header, size_t data, const char *tensor, const char *why)
{
    uint8_t bytes[4096];
    st_file f;
    pare_blob b;
    pare_err err = {0};
    pare_arena *a = pare_arena_new();
    assert_non_null(a);
    const size_t n = build(bytes, header, data);
    if (open_bytes(&f, a, bytes, n, &b, &err) != PARE_ERR_INPUT) {
        print_error("accepted: %s\n", header);
        fail();
    }
    assert_contains(err.msg, "a.safetensors");
    assert_contains(err.msg, tensor);
    assert_contains(err.msg, why);
    drop_bytes(&b);
    pare_arena_free(a);
}

static void tensors_metadata_and_bytes_are_found(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    st_file f;
    pare_blob b;
    pare_err err = {0};
    pare_arena *a = pare_arena_new();
    const size_t n =
        build(bytes,
              "{\"z\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]},"
              "\"__metadata__\":{\"k\":\"v\",\"format\":\"pt\"},"
              "\"a\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
              "\"none\":{\"dtype\":\"U8\",\"shape\":[0,7],\"data_offsets\":[16,16]},"
              "\"half\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[40,42]}}   ",
              50); /* a hole before half and 8 bytes after it: not our business here */
    assert_ok(open_bytes(&f, a, bytes, n, &b, &err), &err);
    assert_true(st_looks_like(&b));
    assert_int_equal(f.n, 4);
    assert_int_equal(f.data_bytes, 42);
    assert_string_equal(f.tensors[0].name, "a"); /* by offset */
    assert_string_equal(f.tensors[3].name, "half");
    const st_tensor *z = st_find(&f, "z");
    assert_non_null(z);
    assert_int_equal(z->dtype, PARE_F32);
    assert_int_equal(z->ndim, 2);
    assert_int_equal(z->shape[1], 3);
    assert_int_equal(z->begin, 8);
    assert_int_equal(z->end, 32);
    assert_int_equal(z->data[0], 8); /* the byte at offset 8 */
    assert_int_equal(st_find(&f, "a")->ndim, 0);
    assert_null(st_find(&f, "b"));
    assert_null(st_find(&f, "__metadata__"));
    assert_string_equal(st_meta(&f, "k"), "v");
    assert_null(st_meta(&f, "v"));
    drop_bytes(&b);
    pare_arena_free(a);
}

static void every_false_claim_is_refused_by_name(void **state)
{
    (void)state;
#define T(dtype, shape, offsets)                                                                   \
    "\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}"
    refused("{\"w\":{" T("F12", "2", "0,8") "}", 8, "w", "F12");
    refused("{\"w\":{" T("F32", "1,1,1,1,1,1,1,1,1", "0,4") "}", 8, "w", "dimensions");
    refused("{\"w\":{" T("F32", "3037000500,3037000500,8", "0,4") "}", 8, "w", "overflow");
    refused("{\"w\":{" T("F32", "4294967296,1073741824", "0,0") "}", 8, "w", "overflow");
    refused("{\"w\":{" T("F32", "2", "0,4") "}", 8, "w", "needs 8 bytes");
    refused("{\"w\":{" T("F32", "2", "4,12") "}", 8, "w", "beyond");
    refused("{\"w\":{" T("F32", "2", "8,0") "}", 8, "w", "backwards");
    refused("{\"w\":{" T("F32", "2", "0,8,8") "}", 8, "w", "data_offsets");
    refused("{\"w\":{" T("F32", "2", "0") "}", 8, "w", "data_offsets");
    refused("{\"w\":{" T("F32", "2", "-8,0") "}", 8, "w", "data_offsets");
    refused("{\"w\":{" T("F32", "2.5", "0,8") "}", 8, "w", "shape");
    refused("{\"w\":{" T("F32", "-2", "0,8") "}", 8, "w", "shape");
    refused("{\"w\":{" T("F32", "1e300", "0,8") "}", 8, "w", "shape");
    refused("{\"w\":{" T("F32", "\\\"2\\\"", "0,8") "}", 8, "", "");
    refused("{\"w\":{" T("F32", "1", "0,4") ",\"v\":{" T("F32", "1", "2,6") "}", 8, "v",
            "overlaps tensor 'w'");
    refused("{\"w\":{" T("F32", "1", "0,4") ",\"v\":{" T("F32", "1", "0,4") "}", 8, "v",
            "overlaps");
    refused("{\"big\":{" T("U8", "8", "0,8") ",\"e\":{" T("U8", "0", "2,2") ",\"v\":{" T("U8", "1",
                                                                                         "3,4") "}",
            8, "v", "overlaps tensor 'big'"); /* an empty tensor between them hides nothing */
    refused("{\"w\":{" T("F32", "1", "0,4") ",\"w\":{" T("F32", "1", "4,8") "}", 8, "w", "twice");
    refused("{\"w\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "w", "dtype");
    refused("{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "w", "shape");
    refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "w", "data_offsets");
    refused("{\"w\":3}", 8, "w", "object");
    refused("{\"__metadata__\":{\"key\":1}}", 8, "key", "string");
    refused("{\"__metadata__\":[]}", 8, "__metadata__", "object");
    refused("[]", 8, "", "object");
    refused("{\"w\":{" T("F32", "2", "0,8") "", 8, "", ""); /* not closed */
    refused("", 8, "", "");
#undef T
}

static void a_header_longer_than_the_file_is_refused_at_once(void **state)
{
    (void)state;
    uint8_t bytes[64] = {0};
    st_file f;
    pare_blob b;
    pare_err err = {0};
    pare_arena *a = pare_arena_new();
    const uint64_t claims[] = {57, 100000000, 100000000000, UINT64_MAX, UINT64_MAX - 7};
    for (size_t k = 0; k < sizeof claims / sizeof *claims; k++) {
        for (size_t i = 0; i < 8; i++) bytes[i] = (uint8_t)(claims[k] >> (8 * i));
        bytes[8] = '{';
        assert_status(open_bytes(&f, a, bytes, sizeof bytes, &b, &err), PARE_ERR_INPUT, &err);
        assert_true(st_looks_like(&b)); /* so that the user is told what is wrong with it */
        char text[32];
        snprintf(text, sizeof text, "%llu", (unsigned long long)claims[k]);
        assert_contains(err.msg, text);
        drop_bytes(&b);
    }
    for (size_t n = 0; n < 8; n++) {
        assert_status(open_bytes(&f, a, bytes, n, &b, &err), PARE_ERR_INPUT, &err);
        assert_false(st_looks_like(&b));
        drop_bytes(&b);
    }
    pare_arena_free(a);
}

static void many_tensors_are_not_compared_pair_by_pair(void **state)
{
    (void)state;
    enum { N = 200000 }; /* pair by pair it would take many minutes: the alarm would end it */
    char *header = malloc((size_t)N * 100);
    uint8_t *bytes = malloc((size_t)N * 104);
    assert_true(header && bytes);
    size_t n = 0;
    header[n++] = '{';
    for (int i = 0; i < N; i++)
        n += (size_t)snprintf(header + n, 100,
                              "%s\"layers.%d.weight\":{\"dtype\":\"F32\",\"shape\":[1],"
                              "\"data_offsets\":[%d,%d]}",
                              i ? "," : "", i * 7919 % N, 4 * i, 4 * i + 4);
    memcpy(header + n, "}", 2);
    st_file f;
    pare_blob b;
    pare_err err = {0};
    pare_arena *a = pare_arena_new();
    alarm(200);
    assert_ok(open_bytes(&f, a, bytes, build(bytes, header, 4 * N), &b, &err), &err);
    assert_int_equal(f.n, N);
    assert_int_equal(st_find(&f, "layers.7919.weight")->begin, 4);
    alarm(0);
    drop_bytes(&b);
    pare_arena_free(a);
    free(header);
    free(bytes);
}

/* Every claim that survives a damage must still be inside the file. */
static void touch(const st_file *f)
{
    unsigned sum = 0;
    for (size_t i = 0; i < f->n; i++) {
        const st_tensor *t = &f->tensors[i];
        const size_t size = t->end - t->begin;
        if (size) sum += t->data[0] + (unsigned)t->data[size - 1];
        assert_ptr_equal(st_find(f, t->name), t);
    }
    assert_true(sum < UINT32_MAX);
}

static size_t sample(uint8_t *bytes)
{
    return build(bytes,
                 "{\"__metadata__\":{\"format\":\"pt\"},\"wte.weight\":{\"dtype\":\"F32\","
                 "\"shape\":[4,8],\"data_offsets\":[0,128]},\"h.0.ln_1.weight\":{\"dtype\":"
                 "\"F16\",\"shape\":[8],\"data_offsets\":[128,144]},\"b\":{\"dtype\":\"F64\","
                 "\"shape\":[2,2],\"data_offsets\":[144,176]}}",
                 176);
}

static void a_cut_file_is_refused_wherever_it_is_cut(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    const size_t n = sample(bytes);
    assert_true(n > 300);
    for (size_t cut = 0; cut < n; cut++) {
        st_file f;
        pare_blob b;
        pare_err err = {0};
        pare_arena *a = pare_arena_new();
        assert_status(open_bytes(&f, a, bytes, cut, &b, &err), PARE_ERR_INPUT, &err);
        drop_bytes(&b);
        pare_arena_free(a);
    }
}

static void a_changed_byte_never_makes_a_claim_outside_the_file(void **state)
{
    (void)state;
    static const uint8_t values[] = {0, 1, '"', '{', '}', '0', '9', '-', ',', 0x7f, 0xff};
    uint8_t bytes[1024];
    const size_t n = sample(bytes);
    for (size_t at = 0; at < n - 176; at++) {
        for (size_t k = 0; k < sizeof values + 8; k++) {
            const uint8_t old = bytes[at];
            if (k < sizeof values)
                bytes[at] = values[k];
            else
                bytes[at] = (uint8_t)(old ^ (1u << (k - sizeof values)));
            st_file f;
            pare_blob b;
            pare_err err = {0};
            pare_arena *a = pare_arena_new();
            const pare_status st = open_bytes(&f, a, bytes, n, &b, &err);
            assert_true(st == PARE_OK || st == PARE_ERR_INPUT);
            if (!st) touch(&f);
            drop_bytes(&b);
            pare_arena_free(a);
            bytes[at] = old;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_metadata_and_bytes_are_found),
        cmocka_unit_test(every_false_claim_is_refused_by_name),
        cmocka_unit_test(a_header_longer_than_the_file_is_refused_at_once),
        cmocka_unit_test(many_tensors_are_not_compared_pair_by_pair),
        cmocka_unit_test(a_cut_file_is_refused_wherever_it_is_cut),
        cmocka_unit_test(a_changed_byte_never_makes_a_claim_outside_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
