/* small.h - small models and files for the tests of src/data. */
#ifndef SMALL_H
#define SMALL_H
#include <pare/run.h>
#include <pare_test.h>

/* A model that only says what it takes and gives: ids below `vocab` in, `outputs` columns out. */
static inline pare_model small_model(size_t vocab, size_t outputs, pare_pool pool)
{
    static const float weight[1024];
    assert_true(outputs <= 1024);
    pare_model m = {.pattern.kind = PARE_CAUSAL};
    m.stem.ids = true;
    m.stem.vocab = vocab;
    m.stem.width = 1;
    m.stem.embedding = (pare_weight){PARE_F32, vocab, 1, weight};
    m.top.pool = pool;
    m.top.out.w = (pare_weight){PARE_F32, outputs, 1, weight};
    return m;
}

/* The same for vectors of width `width`. */
static inline pare_model small_vector_model(size_t width, size_t outputs, pare_pool pool)
{
    pare_model m = small_model(1, outputs, pool);
    m.stem.ids = false;
    m.stem.width = width;
    m.stem.vocab = 0;
    m.stem.embedding = (pare_weight){0};
    m.pattern.kind = PARE_FULL;
    return m;
}

/* All ids as one text, malloc'ed. */
static inline char *decode_all(const pare_tokenizer *t, const int64_t *ids, size_t n, size_t *bytes)
{
    size_t room = 64, len;
    char *text = malloc(room);
    assert_non_null(text);
    *bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const char *s = pare_decode(t, i ? ids[i - 1] : -1, ids[i], &len);
        while (*bytes + len > room) {
            char *more = realloc(text, room *= 2);
            assert_non_null(more);
            text = more;
        }
        memcpy(text + *bytes, s, len);
        *bytes += len;
    }
    return text;
}

static inline void assert_round_trip(const pare_tokenizer *t, const char *text, size_t bytes,
                                     uint64_t seed)
{
    pare_arena *a = pare_arena_new();
    pare_err err;
    int64_t *ids;
    size_t n, back;
    assert_ok(pare_encode(&ids, &n, a, t, text, bytes, &err), &err);
    char *again = decode_all(t, ids, n, &back);
    if (back != bytes || memcmp(again, text, bytes) != 0) {
        print_error("round trip of %zu bytes gives %zu, seed %llu\n", bytes, back,
                    (unsigned long long)seed);
        fail();
    }
    free(again);
    pare_arena_free(a);
}

/* Bytes that are sometimes words, sometimes characters, sometimes anything. */
static inline size_t random_text(char *out, size_t most, pare_rng *rng)
{
    static const char *const parts[] = {" ",
                                        "  ",
                                        "\n",
                                        "'s",
                                        " the",
                                        "'ll",
                                        "Lily",
                                        "12",
                                        "\xc3\xa9",
                                        "\xe4\xb8\xad",
                                        "\xf0\x9f\x98\x80",
                                        "!?",
                                        "\t",
                                        "\xc2\xa0",
                                        "ing",
                                        "<|",
                                        "\xe2\x80\x83"};
    size_t n = 0;
    while (n + 8 < most) {
        if (pare_rng_below(rng, 8) == 0) {
            out[n++] = (char)pare_rng_below(rng, 256);
            continue;
        }
        const char *p = parts[pare_rng_below(rng, sizeof parts / sizeof *parts)];
        memcpy(out + n, p, strlen(p));
        n += strlen(p);
    }
    return n;
}
#endif
