/* Sorting as next-token prediction. A row is `length` symbols, then the sorted ones but the last;
 * the targets are the sorted symbols, from the last symbol of the question on:
 *   B A C | A B      with the targets   - - A B C
 * Row i is drawn from stream i of the seed. */
#include "base/array.h"
#include <pare/data.h>

static void draw_row(int64_t *input, int64_t *target, size_t *count, size_t length, size_t symbols,
                     pare_rng rng)
{
    for (size_t s = 0; s < symbols; s++) count[s] = 0;
    for (size_t i = 0; i < length; i++) {
        input[i] = (int64_t)pare_rng_below(&rng, symbols);
        count[input[i]]++;
    }
    for (size_t i = 0; i + 1 < length; i++) target[i] = -1;
    size_t at = 0;
    for (size_t s = 0; s < symbols; s++)
        for (size_t k = 0; k < count[s]; k++, at++) {
            target[length - 1 + at] = (int64_t)s;
            if (at + 1 < length) input[length + at] = (int64_t)s;
        }
}

pare_status pare_make_sort(const char *path, size_t n, size_t length, size_t symbols, uint64_t seed,
                           bool overwrite, pare_err *err)
{
    static const char *const names[2] = {"inputs", "targets"};
    size_t count;
    if (n == 0 || length == 0 || length > UINT32_MAX || symbols == 0 || symbols > UINT32_MAX ||
        !pare_mul(&count, n, 2 * length - 1))
        return pare_fail(err, PARE_ERR_USAGE, "%zu rows of %zu out of %zu symbols", n, length,
                         symbols);
    const size_t tokens = 2 * length - 1;
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    int64_t *input = pare_alloc(a, count, sizeof *input);
    int64_t *target = pare_alloc(a, count, sizeof *target);
    size_t *tally = pare_alloc(a, symbols, sizeof *tally);
    pare_status st = input && target && tally ? PARE_OK : pare_no_memory(err);
    if (st == PARE_OK) {
        for (size_t i = 0; i < n; i++)
            draw_row(input + i * tokens, target + i * tokens, tally, length, symbols,
                     pare_rng_at(seed, i));
        const pare_array arrays[2] = {{PARE_I64, 2, {n, tokens}, input},
                                      {PARE_I64, 2, {n, tokens}, target}};
        st = pare_npz_write(path, 2, names, arrays, true, overwrite, err);
    }
    pare_arena_free(a);
    return st;
}
