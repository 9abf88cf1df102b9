/* Tests src/model/coded_groups.c: the numbers of llama.cpp's blocks of 32 (Q8_0, Q4_0, Q4_1, Q5_0,
 * Q5_1), decoded here as that program does, are stored as groups and come back to the last bit. */
#include "base/array.h"
#include "model/ticket_store.h"
#include <pare/model.h>
#include <pare_test.h>

enum { SEED = 31, BLOCK = 32, BLOCKS = 12, ROWS = 3 };

/* A block as ggml stores it: half d, half m (of _1), u32 of fifth bits (of Q5), then nibbles: the low
 * ones are numbers 0 .. 15, the high ones 16 .. 31; Q8_0 has bytes. */
typedef struct layout {
    const char *name;
    unsigned bits;
    bool affine;
} layout;
static const layout layouts[] = {{"Q8_0", 8, false},
                                 {"Q4_0", 4, false},
                                 {"Q4_1", 4, true},
                                 {"Q5_0", 5, false},
                                 {"Q5_1", 5, true}};

static uint16_t half(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

/* The integers of a block, and the numbers they stand for. */
static void decode(int8_t *q, float *y, float *scale, float *offset, const uint8_t *block,
                   const layout *l)
{
    const float d = pare_f16_to_f32(half(block));
    const float m = l->affine ? pare_f16_to_f32(half(block + 2)) : 0;
    const uint8_t *at = block + (l->affine ? 4 : 2);
    uint32_t fifth = 0;
    if (l->bits == 5) {
        for (int k = 0; k < 4; k++) fifth |= (uint32_t)at[k] << (8 * k);
        at += 4;
    }
    for (int j = 0; j < BLOCK; j++) {
        int x;
        if (l->bits == 8) {
            x = (int8_t)at[j];
        } else {
            x = j < 16 ? at[j] & 15 : at[j - 16] >> 4;
            if (l->bits == 5) x |= (int)(fifth >> j & 1) << 4;
            if (!l->affine) x -= 1 << (l->bits - 1);
        }
        const float product = (float)x * d;
        q[j] = (int8_t)x;
        y[j] = l->affine ? product + m : product;
    }
    *scale = d;
    *offset = m;
}

static void blocks_are_stored_as_they_are(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
        const layout *const l = &layouts[k];
        const size_t each = 2 + (l->affine ? 2u : 0) + BLOCK * l->bits / 8;
        pare_rng r = pare_rng_at(SEED, k);
        pare_arena *const a = pare_arena_new();
        int8_t q[BLOCKS * BLOCK];
        float y[BLOCKS * BLOCK], scale[BLOCKS], offset[BLOCKS];
        assert_non_null(a);
        for (size_t b = 0; b < BLOCKS; b++) {
            uint8_t block[40];
            for (size_t i = 0; i < each; i++) block[i] = (uint8_t)pare_rng_below(&r, 256);
            for (size_t i = 1; i < (l->affine ? 4u : 2u); i += 2)
                block[i] &= 0xbf; /* no scale is infinite */
            decode(q + b * BLOCK, y + b * BLOCK, &scale[b], &offset[b], block, l);
        }
        const pare_int_groups g = {.rows = ROWS,
                                   .cols = BLOCKS / ROWS * BLOCK,
                                   .group = BLOCK,
                                   .bits = l->bits,
                                   .q = q,
                                   .scale = scale,
                                   .offset = l->affine ? offset : NULL};
        pare_coded c;
        pare_weight w;
        pare_err err = {0};
        assert_ok(pare_coded_groups(&c, a, &g, &err), &err);
        assert_ok(pare_coded_expand(&w, NULL, a, c.data, c.bytes, 0, &err), &err);
        assert_memory_equal(w.data, y, sizeof y);
        /* and in as many bytes, but for the frame */
        assert_int_equal(c.bytes, 48 + 4 + 4 + BLOCKS * each);
        pare_arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_are_stored_as_they_are)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
