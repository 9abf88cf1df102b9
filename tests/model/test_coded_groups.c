/* Tests src/model/coded_groups.c: integers with scales, to bytes and back, in files, and refused. */
#include "base/array.h"
#include "model/header_checksum.h"
#include "model/ticket_codec.h"
#include <math.h>
#include <pare/pare.h>
#include <pare_test.h>
#include <unistd.h>
#include <zlib.h>

enum { SEED = 3, HEAD = 48 };
static pare_arena *arena;

static int set_up(void **state)
{
    (void)state;
    return (arena = pare_arena_new()) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    pare_arena_free(arena);
    return 0;
}

static void put_crc(uint8_t *data, size_t bytes)
{
    put_u32(data + bytes - 4, (uint32_t)crc32_z(0, data, bytes - 4));
}

/* Random integers over their whole range, and scales that are f16 numbers or not. */
static pare_int_groups draw(size_t rows, size_t cols, size_t group, unsigned bits, bool affine,
                            bool f16, uint64_t seed)
{
    pare_rng r = pare_rng_at(SEED, seed);
    const size_t scales = rows * ((cols + group - 1) / group);
    const int least = pare_int_groups_least(bits, affine),
              most = pare_int_groups_most(bits, affine);
    int8_t *const q = pare_alloc(arena, rows * cols, 1);
    float *const v[2] = {pare_alloc(arena, scales, sizeof(float)),
                         pare_alloc(arena, scales, sizeof(float))};
    assert_true(q && v[0] && v[1]);
    for (size_t i = 0; i < rows * cols; i++)
        q[i] = (int8_t)(least + (int)pare_rng_below(&r, (uint64_t)(most - least + 1)));
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < scales; i++) {
            const double x = pare_rng_normal(&r);
            v[k][i] = f16 ? pare_f16_to_f32(pare_f16_of(x)) : (float)x;
        }
    return (pare_int_groups){.rows = rows,
                             .cols = cols,
                             .group = group,
                             .bits = bits,
                             .q = q,
                             .scale = v[0],
                             .offset = affine ? v[1] : NULL};
}

static pare_coded code(const pare_int_groups *g)
{
    pare_coded c = {0};
    pare_err err = {0};
    assert_ok(pare_coded_groups(&c, arena, g, &err), &err);
    return c;
}

/* Every width, symmetric and affine, f16 and f32 scales, groups that do not divide the row. */
static void what_was_coded_expands_to_the_same_bits(void **state)
{
    (void)state;
    static const size_t shape[][3] = {{1, 1, 1}, {3, 7, 3}, {5, 64, 32}, {4, 33, 33}, {2, 40, 1}};
    for (unsigned bits = 2; bits <= 8; bits++)
        for (int how = 0; how < 4; how++)
            for (size_t s = 0; s < 5; s++) {
                const bool affine = how & 1, f16 = how & 2;
                const size_t *const n = shape[s];
                const pare_int_groups g = draw(n[0], n[1], n[2], bits, affine, f16, s);
                const pare_coded c = code(&g);
                pare_weight w;
                pare_coded_head h;
                pare_int_groups again;
                pare_err err = {0};
                assert_int_equal(c.bytes,
                                 pare_coded_groups_bytes(n[0], n[1], n[2], bits, affine, !f16));
                assert_ok(pare_coded_expand(&w, &h, arena, c.data, c.bytes, 0, &err), &err);
                assert_ok(pare_coded_integers(&again, arena, c.data, c.bytes, &err), &err);
                assert_true(w.rows == n[0] && w.cols == n[1] && again.group == n[2]);
                assert_true(again.bits == bits && again.bytes == c.bytes);
                assert_memory_equal(again.q, g.q, n[0] * n[1]);
                for (size_t i = 0; i < n[0] * n[1]; i++) {
                    const size_t at = i / n[1] * ((n[1] + n[2] - 1) / n[2]) + i % n[1] / n[2];
                    const float product = g.scale[at] * (float)g.q[i];
                    const float is = affine ? product + g.offset[at] : product;
                    assert_memory_equal(&((const float *)w.data)[i], &is, sizeof is);
                }
            }
}

/* A block of llama.cpp's Q4_0: d = -1.5, integers less 8; and of its Q4_1: d = .5, m = -3. */
static void known_bytes_have_known_numbers(void **state)
{
    (void)state;
    static const uint8_t symmetric[] = {4, 0, 0, 0, 0x00, 0xbe, 0x80, 0x1f};
    static const uint8_t affine[] = {4, 0, 0, 0, 0x00, 0x38, 0x00, 0xc2, 0x80, 0x1f};
    static const float numbers[2][4] = {{12, -0.0f, -10.5f, 10.5f}, {-3, 1, 4.5f, -2.5f}};
    for (int k = 0; k < 2; k++) {
        pare_coded c;
        pare_weight w;
        pare_err err = {0};
        const pare_coded_head h = {
            .kind = PARE_CODED_GROUPS, .flags = (uint32_t)k, .rows = 1, .cols = 4, .n = 4};
        const ticket_body body = {k ? affine : symmetric, k ? sizeof affine : sizeof symmetric};
        assert_ok(ticket_frame(&c, arena, &h, &body, &err), &err);
        assert_ok(pare_coded_expand(&w, NULL, arena, c.data, c.bytes, 0, &err), &err);
        assert_memory_equal(w.data, numbers[k], sizeof numbers[k]);
    }
}

typedef struct damage {
    size_t at;
    uint32_t value;
    const char *says;
} damage;

static void impossible_bytes_are_refused_by_name(void **state)
{
    (void)state;
    static const damage cases[] = {
        {12, 4, "flags 4"},        {12, 1, "must be"},     {16, 1, "a seed"},
        {24, 1, "a stream"},       {44, 1, "an exponent"}, {40, 0, "groups of 0"},
        {40, 8, "groups of 8"},    {40, 2, "must be"},     {HEAD, 1, "1 bits"},
        {HEAD, 9, "9 bits"},       {HEAD, 4, "must be"},   {HEAD + 4, 0x7c00, "is inf"},
        {HEAD + 4, 0x7e00, "nan"}, {32, 4, "must be"},     {36, 1 << 20, "must be"},
    };
    const pare_int_groups g = draw(3, 7, 7, 3, false, true, 1);
    const pare_coded c = code(&g);
    uint8_t *const copy = pare_alloc(arena, c.bytes, 1);
    pare_weight w;
    pare_err err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(copy, c.data, c.bytes);
        put_u32(copy + cases[i].at, cases[i].value);
        put_crc(copy, c.bytes);
        assert_status(pare_coded_expand(&w, NULL, arena, copy, c.bytes, 0, &err), PARE_ERR_INPUT,
                      &err);
        assert_contains(err.msg, cases[i].says);
    }
    /* 63 bits of integers: the 64th is idle */
    memcpy(copy, c.data, c.bytes);
    copy[c.bytes - 5] |= 0x80;
    put_crc(copy, c.bytes);
    assert_status(pare_coded_expand(&w, NULL, arena, copy, c.bytes, 0, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "unused bits");
}

static void every_changed_byte_and_every_cut_is_refused(void **state)
{
    (void)state;
    const pare_int_groups g = draw(3, 7, 4, 5, true, false, 1);
    const pare_coded c = code(&g);
    uint8_t *const copy = pare_alloc(arena, c.bytes, 1);
    pare_weight w;
    pare_err err = {0};
    for (size_t i = 0; i < c.bytes; i++) {
        memcpy(copy, c.data, c.bytes);
        copy[i] ^= (uint8_t)(1u << (i % 8));
        assert_status(pare_coded_expand(&w, NULL, arena, copy, c.bytes, 0, &err), PARE_ERR_INPUT,
                      &err);
        assert_status(pare_coded_expand(&w, NULL, arena, c.data, i, 0, &err), PARE_ERR_INPUT, &err);
    }
}

/* ---- in files -------------------------------------------------------------------------------- */

typedef struct stage {
    pare_model *m;
    pare_coded coded;
    char dir[200], path[300];
} stage;

static void open_stage(stage *s, const char *name)
{
    pare_err err = {0};
    pare_random_model_opts opts = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    opts.dim = 8;
    opts.heads = 2;
    *s = (stage){0};
    test_mkdir(s->dir);
    test_path(s->path, s->dir, "m");
    assert_ok(pare_random_model(&s->m, &opts, &err), &err);
    const pare_int_groups g = draw(8, 8, 4, 4, true, true, 2);
    s->coded = code(&g);
    s->coded.name = name;
    assert_ok(pare_coded_expand(&s->m->blocks[0].attn.wq, NULL, s->m->arena, s->coded.data,
                                s->coded.bytes, 0, &err),
              &err);
    s->m->coded = &s->coded;
    s->m->ncoded = 1;
}

static void close_stage(stage *s)
{
    pare_model_free(s->m);
    test_rmdir(s->dir);
}

static void a_saved_model_is_the_same_and_has_its_integers(void **state)
{
    (void)state;
    stage s;
    pare_model *again = NULL, *clone = NULL;
    pare_err err = {0};
    char before[PARE_SHA256_HEX], after[PARE_SHA256_HEX];
    open_stage(&s, "blocks.0.attn.wq");
    assert_ok(pare_model_save(s.m, s.path, false, NULL, &err), &err);
    assert_ok(pare_model_load(&again, s.path, &err), &err);
    assert_ok(pare_model_sha256(before, s.m, &err), &err);
    assert_ok(pare_model_sha256(after, again, &err), &err);
    assert_string_equal(before, after);
    assert_true(again->ncoded == 0 && again->nints == 1);
    assert_ok(pare_model_clone(&clone, again, &err), &err);
    pare_model_free(again);
    assert_int_equal(clone->nints, 1); /* and outlive the model they were loaded with */
    const pare_int_groups *const g = clone->ints;
    const pare_weight *const w = &clone->blocks[0].attn.wq;
    float numbers[64];
    assert_true(g->of == w->data && g->rows == 8 && g->cols == 8 && g->group == 4);
    pare_int_groups_expand(numbers, g);
    assert_memory_equal(numbers, w->data, sizeof numbers);
    pare_model_free(clone);
    close_stage(&s);
}

static void bytes_that_are_not_the_weight_are_not_saved(void **state)
{
    (void)state;
    stage s;
    pare_err err = {0};
    open_stage(&s, "blocks.0.attn.wk");
    assert_status(pare_model_save(s.m, s.path, false, NULL, &err), PARE_ERR_VERIFY, &err);
    assert_contains(err.msg, "blocks.0.attn.wk: its quant");
    assert_int_equal(access(s.path, F_OK), -1);
    close_stage(&s);
}

/* Gives the tensor another ending that is one letter longer: the header has spaces at its end. */
static void rename_tensor(const char *path)
{
    static const char from[] = ".quant\"", to[] = ".ticket\"";
    uint8_t length[8];
    size_t n = 0;
    FILE *const f = fopen(path, "r+b");
    assert_true(f && fread(length, 1, sizeof length, f) == sizeof length);
    for (int i = 0; i < 8; i++) n |= (size_t)length[i] << (8 * i);
    char *const header = malloc(n);
    assert_true(header && fread(header, 1, n, f) == n && header[n - 1] == ' ');
    char *const at = memmem(header, n, from, sizeof from - 1);
    assert_non_null(at);
    memmove(at + 1, at, n - 1 - (size_t)(at - header));
    memcpy(at, to, sizeof to - 1);
    memset(checksum_find(header, n), '0', CHECKSUM_DIGITS);
    assert_ok(checksum_set(header, n, NULL), NULL);
    assert_true(fseek(f, 8, SEEK_SET) == 0 && fwrite(header, 1, n, f) == n);
    fclose(f);
    free(header);
}

static void a_kind_has_its_ending(void **state)
{
    (void)state;
    stage s;
    pare_model *m = NULL;
    pare_err err = {0};
    open_stage(&s, "blocks.0.attn.wq");
    assert_ok(pare_model_save(s.m, s.path, false, NULL, &err), &err);
    rename_tensor(s.path);
    assert_status(pare_model_load(&m, s.path, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "tensor blocks.0.attn.wq.ticket: its kind 5 belongs");
    close_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_coded_expands_to_the_same_bits),
        cmocka_unit_test(known_bytes_have_known_numbers),
        cmocka_unit_test(impossible_bytes_are_refused_by_name),
        cmocka_unit_test(every_changed_byte_and_every_cut_is_refused),
        cmocka_unit_test(a_saved_model_is_the_same_and_has_its_integers),
        cmocka_unit_test(bytes_that_are_not_the_weight_are_not_saved),
        cmocka_unit_test(a_kind_has_its_ending),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
