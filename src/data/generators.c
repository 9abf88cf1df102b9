/* generators.c - random inputs, and the tasks of sorting and of angular velocity.
 *
 * Row i of every file is drawn from stream i of the seed, so that a longer file begins with the
 * shorter one. */
#include "base/array.h"
#include <pare/data.h>
#include <math.h>

/* An .npy: ids below a vocabulary, or (vocab 0) standard normal vectors. */
static pare_status make_random(const char *path, size_t n, size_t tokens, size_t vocab,
                               size_t width, uint64_t seed, bool overwrite, pare_err *err)
{
    size_t count;
    if (n == 0 || tokens == 0 || (vocab == 0 && width == 0) || vocab > INT64_MAX ||
        !pare_mul(&count, n, tokens) || (vocab == 0 && !pare_mul(&count, count, width)))
        return pare_fail(err, PARE_ERR_USAGE,
                         "%zu rows of %zu tokens with a vocabulary of %zu or vectors of width %zu",
                         n, tokens, vocab, width);
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_array out = {vocab ? PARE_I64 : PARE_F32, vocab ? 2 : 3, {n, tokens, width}, NULL};
    void *data = pare_alloc(a, count, pare_dtype_size(out.dtype));
    int64_t *const ids = data;
    float *const x = data;
    pare_status st = data ? PARE_OK : pare_no_memory(err);
    for (size_t i = 0; i < n && !st; i++) {
        const size_t first = i * (count / n), end = first + count / n;
        pare_rng rng = pare_rng_at(seed, i);
        for (size_t k = first; vocab && k < end; k++) ids[k] = (int64_t)pare_rng_below(&rng, vocab);
        for (size_t k = first; !vocab && k < end; k++) x[k] = (float)pare_rng_normal(&rng);
    }
    out.data = data;
    if (!st) st = pare_npy_write(path, &out, overwrite, err);
    pare_arena_free(a);
    return st;
}

pare_status pare_make_random_ids(const char *path, size_t n, size_t tokens, size_t vocab,
                                 uint64_t seed, bool overwrite, pare_err *err)
{
    if (vocab == 0) return pare_fail(err, PARE_ERR_USAGE, "no id is below a vocabulary of 0");
    return make_random(path, n, tokens, vocab, 0, seed, overwrite, err);
}

pare_status pare_make_random_vectors(const char *path, size_t n, size_t tokens, size_t width,
                                     uint64_t seed, bool overwrite, pare_err *err)
{
    return make_random(path, n, tokens, 0, width, seed, overwrite, err);
}

/* Sorting as next-token prediction. A row is `length` symbols, then the sorted ones but the last;
 * the targets are the sorted symbols, from the last symbol of the question on:
 *
 *     B A C | A B      with the targets   - - A B C */
pare_status pare_make_sort(const char *path, size_t n, size_t length, size_t symbols, uint64_t seed,
                           bool overwrite, pare_err *err)
{
    static const char *const names[2] = {"inputs", "targets"};
    size_t total;
    if (n == 0 || length == 0 || length > UINT32_MAX || symbols == 0 || symbols > UINT32_MAX ||
        !pare_mul(&total, n, 2 * length - 1))
        return pare_fail(err, PARE_ERR_USAGE, "%zu rows of %zu out of %zu symbols", n, length,
                         symbols);
    const size_t tokens = 2 * length - 1;
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    int64_t *inputs = pare_alloc(a, total, sizeof *inputs);
    int64_t *targets = pare_alloc(a, total, sizeof *targets);
    size_t *count = pare_alloc(a, symbols, sizeof *count);
    pare_status st = inputs && targets && count ? PARE_OK : pare_no_memory(err);
    for (size_t i = 0; i < n && !st; i++) {
        int64_t *const input = inputs + i * tokens, *const target = targets + i * tokens;
        pare_rng rng = pare_rng_at(seed, i);
        for (size_t s = 0; s < symbols; s++) count[s] = 0;
        for (size_t t = 0; t < length; t++) {
            input[t] = (int64_t)pare_rng_below(&rng, symbols);
            count[input[t]]++;
            target[t] = -1;
        }
        size_t at = 0;
        for (size_t s = 0; s < symbols; s++)
            for (size_t k = 0; k < count[s]; k++, at++) {
                target[length - 1 + at] = (int64_t)s;
                if (at + 1 < length) input[length + at] = (int64_t)s;
            }
    }
    const pare_array arrays[2] = {{PARE_I64, 2, {n, tokens}, inputs},
                                  {PARE_I64, 2, {n, tokens}, targets}};
    if (!st) st = pare_npz_write(path, 2, names, arrays, true, overwrite, err);
    pare_arena_free(a);
    return st;
}

/* Angular velocity: a point moves on the unit circle, and its speed is asked for.
 *
 *     token t of row i = (cos, sin)(w_i t + phase_i),   t = 1 .. tokens;   value w_i
 *
 * w is uniform in [-pi, pi), the phase in [0, pi). */
pare_status pare_make_angular(const char *path, size_t n, size_t tokens, uint64_t seed,
                              bool overwrite, pare_err *err)
{
    static const double pi = 3.14159265358979323846;
    static const char *const names[2] = {"inputs", "values"};
    size_t count;
    if (n == 0 || tokens == 0 || !pare_mul(&count, n, tokens))
        return pare_fail(err, PARE_ERR_USAGE, "%zu rows of %zu tokens", n, tokens);
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    double *inputs = pare_alloc(a, count, 2 * sizeof *inputs);
    double *values = pare_alloc(a, n, sizeof *values);
    pare_status st = inputs && values ? PARE_OK : pare_no_memory(err);
    for (size_t i = 0; i < n && !st; i++) {
        double *const x = inputs + 2 * tokens * i;
        pare_rng rng = pare_rng_at(seed, i);
        const double w = (2 * pare_rng_uniform(&rng) - 1) * pi, phase = pare_rng_uniform(&rng) * pi;
        for (size_t t = 0; t < tokens; t++) {
            const double angle = w * (double)(t + 1) + phase;
            x[2 * t] = cos(angle);
            x[2 * t + 1] = sin(angle);
        }
        values[i] = w;
    }
    const pare_array arrays[2] = {{PARE_F64, 3, {n, tokens, 2}, inputs},
                                  {PARE_F64, 2, {n, 1}, values}};
    if (!st) st = pare_npz_write(path, 2, names, arrays, true, overwrite, err);
    pare_arena_free(a);
    return st;
}
