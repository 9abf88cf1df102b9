/* ticket_samples.h - factored tickets with random masks, for the tests of coded weights. */
#ifndef CODED_SAMPLES_H
#define CODED_SAMPLES_H
#include "model/source.h"
#include "model/ticket_factored.h"
#include <pare_test.h>
#include <zlib.h>

typedef struct sample {
    pare_factored f;
    size_t a, b;
    uint32_t *own;
} sample;

/* Random masks; units 0 .. each b - 1 in blocks, of the others some are pruned; a donor or none. */
static inline sample draw(pare_arena *ar, size_t rows, size_t cols, size_t n, size_t each,
                          bool donor, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 5);
    sample s = {.f = {.seed = seed,
                      .stream = pare_source_stream(1, 0, PARE_SOURCE_V),
                      .rows = rows,
                      .cols = cols,
                      .n = n,
                      .transposed = rows < cols,
                      .exponent = -3}};
    s.a = rows < cols ? cols : rows;
    s.b = rows < cols ? rows : cols;
    s.own = pare_alloc(ar, n, sizeof *s.own);
    s.f.ma = pare_bits_new(ar, s.a, n);
    s.f.mb = pare_bits_new(ar, n, s.b);
    for (size_t k = 0; k < n; k++) {
        s.own[k] = (uint32_t)(k < each * s.b ? k / each : pare_rng_below(&r, s.b));
        if (k >= each * s.b && pare_rng_below(&r, 4) == 0) s.own[k] = PARE_NO_COLUMN;
        if (s.own[k] == PARE_NO_COLUMN) continue;
        pare_bit_set(&s.f.mb, k, s.own[k]);
        for (size_t i = 0; i < s.a; i++)
            if (pare_rng_below(&r, 2)) pare_bit_set(&s.f.ma, i, k);
    }
    s.f.own = s.own;
    s.f.donor = donor ? 1 : PARE_NO_COLUMN;
    for (size_t k = 0; donor && k < n; k++)
        for (size_t j = 0; s.own[k] == 1 && j < s.b; j++)
            if (j != 1 && pare_rng_below(&r, 2)) pare_bit_set(&s.f.mb, k, j);
    return s;
}

/* Masks of small sums: of each entry's units those that keep it near 0. */
static inline sample small_sums(pare_arena *ar, size_t d, size_t items)
{
    sample s = draw(ar, d, d, items * d, items, false, 3);
    memset(s.f.ma.v, 0, s.f.ma.rows * s.f.ma.words * sizeof *s.f.ma.v);
    int32_t *const A = pare_alloc(ar, d * items * d, sizeof *A);
    int32_t *const B = pare_alloc(ar, items * d * d, sizeof *B);
    pare_source_weights(A, s.f.seed, s.f.stream, 0, d * items * d);
    pare_source_weights(B, s.f.seed, s.f.stream + 1, 0, items * d * d);
    for (size_t i = 0; i < d; i++)
        for (size_t k = 0; k < items * d; k++) {
            const size_t j = k / items;
            int64_t sum = 0;
            for (size_t l = j * items; l < k; l++)
                if (pare_bit(&s.f.ma, i, l)) sum += (int64_t)A[i * s.f.n + l] * B[l * d + j];
            const int64_t x = (int64_t)A[i * s.f.n + k] * B[k * d + j];
            if (llabs(sum + x) < llabs(sum) || llabs(x) < INT64_C(1) << 45)
                pare_bit_set(&s.f.ma, i, k);
        }
    return s;
}

/* Masks with one in eight, and a coder that expects it. */
static inline sample few_ones(pare_arena *ar)
{
    sample s = draw(ar, 16, 16, 16 * 12, 12, false, 5);
    pare_rng r = pare_rng_at(5, 5);
    memset(s.f.ma.v, 0, s.f.ma.rows * s.f.ma.words * sizeof *s.f.ma.v);
    for (size_t i = 0; i < 16; i++)
        for (size_t k = 0; k < s.f.n; k++)
            if (pare_rng_below(&r, 8) == 0) pare_bit_set(&s.f.ma, i, k);
    s.f.bridge = (pare_bridge){.width = 26000, .ranks = 12};
    for (size_t k = 0; k < 12; k++) s.f.bridge.prior[k] = -31;
    return s;
}

/* Units that serve a column of their sign, some of them nobody; some columns have no unit. */
static inline sample draw_relu(pare_arena *ar, size_t rows, size_t inputs, size_t n, bool signs,
                               uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 6);
    sample s = {.a = rows, .b = signs ? 2 * inputs : inputs};
    s.f = (pare_factored){.seed = seed,
                          .stream = pare_source_stream(0, 0, PARE_SOURCE_W2),
                          .rows = rows,
                          .cols = s.b,
                          .n = n,
                          .exponent = 2,
                          .donor = PARE_NO_COLUMN,
                          .relu = signs ? PARE_RELU_SIGNS : PARE_RELU_POSITIVE};
    s.own = pare_alloc(ar, n, sizeof *s.own);
    s.f.ma = pare_bits_new(ar, rows, n);
    s.f.mb = pare_bits_new(ar, n, s.b);
    s.f.own = s.own;
    int32_t *const B = pare_alloc(ar, n * inputs, sizeof *B);
    pare_source_weights(B, seed, s.f.stream + 1, 0, n * inputs);
    for (size_t k = 0; k < n; k++) {
        const size_t j = (size_t)pare_rng_below(&r, inputs);
        const bool positive = B[k * inputs + j] > 0;
        s.own[k] = (uint32_t)(positive ? j : inputs + j);
        if (pare_rng_below(&r, 5) == 0 || (!positive && !signs)) s.own[k] = PARE_NO_COLUMN;
        for (size_t i = 0; s.own[k] != PARE_NO_COLUMN && i < rows; i++)
            if (pare_rng_below(&r, 2)) pare_bit_set(&s.f.ma, i, k);
    }
    return s;
}

static inline void put_crc(uint8_t *data, size_t bytes)
{
    put_u32(data + bytes - 4, (uint32_t)crc32_z(0, data, bytes - 4));
}

#endif
