/* Random inputs as an .npy: ids below a vocabulary, or standard normal vectors. Row i is drawn from
 * stream i of the seed. */
#include <pare/data.h>

static void draw_ids(int64_t *v, size_t n, size_t tokens, size_t vocab, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        pare_rng rng = pare_rng_at(seed, i);
        for (size_t t = 0; t < tokens; t++) *v++ = (int64_t)pare_rng_below(&rng, vocab);
    }
}

static void draw_vectors(float *v, size_t n, size_t per_row, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        pare_rng rng = pare_rng_at(seed, i);
        for (size_t t = 0; t < per_row; t++) *v++ = (float)pare_rng_normal(&rng);
    }
}

pare_status pare_make_random(const char *path, size_t n, size_t tokens, size_t vocab, size_t width,
                             uint64_t seed, bool overwrite, pare_err *err)
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
    pare_status st = data ? PARE_OK : pare_no_memory(err);
    if (st == PARE_OK) {
        if (vocab)
            draw_ids(data, n, tokens, vocab, seed);
        else
            draw_vectors(data, n, tokens * width, seed);
        out.data = data;
        st = pare_npy_write(path, &out, overwrite, err);
    }
    pare_arena_free(a);
    return st;
}
