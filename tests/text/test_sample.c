/* Tests src/text/sample.c against the definition: sort all, cut, and count. */
#include "text/text_internal.h"
#include <pare_test.h>

enum { CLASSES = 23, DRAWS = 200000 };

typedef struct setup {
    pare_arena *arena;
    pare_sampler s;
} setup;

static setup start(size_t classes, pare_sample_opts o, uint64_t seed)
{
    setup u = {.arena = pare_arena_new()};
    pare_err err = {0};
    assert_non_null(u.arena);
    assert_ok(pare_sampler_new(&u.s, u.arena, classes, &o, seed, 0, &err), &err);
    return u;
}

static int64_t draw(setup *u, const float *logits)
{
    int64_t id = -1;
    pare_err err = {0};
    assert_ok(pare_sample(&id, &u->s, logits, &err), &err);
    return id;
}

/* The definition: probabilities, sorted plainly, cut to top-k and top-p, made to sum to 1. */
static void by_definition(double *p, const float *logits, size_t n, pare_sample_opts o)
{
    double sum = 0, kept = 0, top = -INFINITY, whole = 0;
    size_t order[CLASSES], taken = 0;
    for (size_t j = 0; j < n; j++) top = fmax(top, (double)logits[j]);
    for (size_t j = 0; j < n; j++) sum += p[j] = exp(((double)logits[j] - top) / o.temperature);
    for (size_t j = 0; j < n; j++) p[j] /= sum;
    for (size_t j = 0; j < n; j++) {
        size_t i = j;
        for (; i > 0 && p[order[i - 1]] < p[j]; i--) order[i] = order[i - 1];
        order[i] = j;
    }
    bool keep[CLASSES] = {false};
    while (taken < n && (!o.top_k || taken < o.top_k) && (taken == 0 || whole < o.top_p)) {
        keep[order[taken]] = true;
        whole += p[order[taken++]];
    }
    for (size_t j = 0; j < n; j++) kept += keep[j] ? p[j] : 0;
    for (size_t j = 0; j < n; j++) p[j] = keep[j] ? p[j] / kept : 0;
}

static void random_logits(float *v, size_t n, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 1);
    for (size_t j = 0; j < n; j++) v[j] = (float)(2 * pare_rng_normal(&r));
    v[n - 1] = v[0]; /* a tie */
}

static void draws_follow_the_definition(void **state)
{
    (void)state;
    static const pare_sample_opts some[] = {{1, 1, 0},     {0.8, 0.9, 0},  {2, 0.5, 0},
                                            {0.3, 1, 4},   {1.5, 0.95, 7}, {1, 1e-6, 0},
                                            {0.01, 1, 99}, {5, 0.999, 0},  {1, 0.7, 1}};
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        float logits[CLASSES];
        double p[CLASSES];
        size_t count[CLASSES] = {0};
        random_logits(logits, CLASSES, k);
        by_definition(p, logits, CLASSES, some[k]);
        setup u = start(CLASSES, some[k], k);
        for (size_t i = 0; i < DRAWS; i++) count[draw(&u, logits)]++;
        for (size_t j = 0; j < CLASSES; j++) {
            /* Six standard deviations; what has no probability never comes. */
            const double sd = sqrt(p[j] * (1 - p[j]) / DRAWS);
            assert_near((double)count[j] / DRAWS, p[j], 6 * sd + 1e-12);
        }
        pare_arena_free(u.arena);
    }
}

/* ---- the same choice as by sorting ------------------------------------------------------------
 */

enum { MANY = 700, KINDS = 6 };

typedef struct entry {
    uint64_t weight;
    uint32_t id;
} entry;

static int likelier_first(const void *a, const void *b)
{
    const entry *const x = a, *const y = b;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

/* The header's words, step by step: whole weights, all sorted, cut by mass and number, and the one
 * at u of what is left. */
static int64_t by_sorting(const float *logits, size_t n, pare_sample_opts o, double u)
{
    static entry e[MANY];
    int bits = 0;
    float top = logits[0];
    uint64_t sum = 0, kept = 0, at = 0;
    size_t taken = 0, i = 0;
    while (n >> bits) bits++;
    for (size_t j = 0; j < n; j++) top = fmaxf(top, logits[j]);
    for (size_t j = 0; j < n; j++) {
        const double w = exp(((double)logits[j] - (double)top) / o.temperature);
        e[j] = (entry){(uint64_t)ldexp(w, 63 - bits), (uint32_t)j};
        sum += e[j].weight;
    }
    qsort(e, n, sizeof *e, likelier_first);
    while (taken < n && (!o.top_k || taken < o.top_k) &&
           (taken == 0 || (double)kept < o.top_p * (double)sum))
        kept += e[taken++].weight;
    while ((double)(at += e[i].weight) < fmax(1, u * (double)kept) && i + 1 < taken) i++;
    return e[i].id;
}

/* Normal, flat, one peak, a few values only, a slope, mostly impossible. */
static void some_logits(float *v, size_t n, size_t kind, pare_rng *r)
{
    for (size_t j = 0; j < n; j++) {
        const double z = pare_rng_normal(r);
        const double by[KINDS] = {2 * z, 1e-3 * z, 0.01 * z, rint(z), 0.01 * (double)j, 300 * z};
        v[j] = (float)by[kind];
    }
    if (kind == 2) v[pare_rng_below(r, n)] = 12;
    if (kind == 5) v[n / 2] = v[n - 1] = 2000;
}

static void choices_are_those_of_sorting_everything(void **state)
{
    (void)state;
    static float logits[MANY];
    static const double mass[] = {1, 0.9, 0.5, 0.999999, 1e-6}, heat[] = {1, 0.8, 3, 0.05};
    for (uint64_t seed = 0; seed < 1500; seed++) {
        pare_rng r = pare_rng_at(seed, 7);
        const size_t n = seed % 3 ? 1 + pare_rng_below(&r, MANY) : 1 + pare_rng_below(&r, 6);
        const pare_sample_opts o = {heat[pare_rng_below(&r, 4)], mass[pare_rng_below(&r, 5)],
                                    seed % 4 ? 0 : 1 + pare_rng_below(&r, n + 2)};
        setup u = start(n, o, seed);
        for (size_t i = 0; i < 12; i++) {
            some_logits(logits, n, (seed + i) % KINDS, &r);
            pare_rng same = u.s.rng;
            const int64_t want = by_sorting(logits, n, o, pare_rng_uniform(&same));
            if (draw(&u, logits) != want) fail_msg("seed %llu", (unsigned long long)seed);
        }
        pare_arena_free(u.arena);
    }
}

static void of_equals_the_lower_id_is_likelier(void **state)
{
    (void)state;
    const float logits[4] = {0, 3, 3, 3};
    const pare_sample_opts greedy = {.temperature = 0, .top_p = 1}, one = {1, 1, 1},
                           two = {1, 1, 2};
    setup g = start(4, greedy, 1), o = start(4, one, 1), t = start(4, two, 1);
    bool seen[4] = {false};
    for (size_t i = 0; i < 200; i++) {
        assert_int_equal(draw(&g, logits), 1);
        assert_int_equal(draw(&o, logits), 1);
        seen[draw(&t, logits)] = true;
    }
    assert_true(!seen[0] && seen[1] && seen[2] && !seen[3]);
    pare_arena_free(g.arena);
    pare_arena_free(o.arena);
    pare_arena_free(t.arena);
}

/* Half of the mass is one of two equals, an eighth one of eight: reached is enough. */
static void the_cut_ends_where_the_mass_is_reached(void **state)
{
    (void)state;
    const float logits[32] = {0};
    for (size_t n = 2; n <= 32; n *= 2) {
        setup u = start(n, (pare_sample_opts){1, 1 / (double)n, 0}, 1);
        for (size_t i = 0; i < 50; i++) assert_int_equal(draw(&u, logits), 0);
        pare_arena_free(u.arena);
    }
}

/* Temperature 1e-3 on logits 1e4 apart: no overflow, no nan. */
static void large_logits_and_small_temperatures_are_finite(void **state)
{
    (void)state;
    const float logits[3] = {-1e4f, 1e4f, -INFINITY};
    setup u = start(3, (pare_sample_opts){1e-3, 0.9, 0}, 1),
          all = start(3, (pare_sample_opts){1, 1, 0}, 1);
    for (size_t i = 0; i < 50; i++) {
        assert_int_equal(draw(&u, logits), 1);
        assert_int_equal(draw(&all, logits), 1);
    }
    pare_arena_free(u.arena);
    pare_arena_free(all.arena);
}

static void same_seed_same_choices_and_every_choice_takes_one_number(void **state)
{
    (void)state;
    float logits[CLASSES];
    random_logits(logits, CLASSES, 9);
    setup a = start(CLASSES, (pare_sample_opts){1, 0.9, 0}, 4);
    setup b = start(CLASSES, (pare_sample_opts){1, 0.9, 0}, 4);
    setup c = start(CLASSES, (pare_sample_opts){1, 0.9, 0}, 5);
    setup g = start(CLASSES, (pare_sample_opts){0, 1, 0}, 4);
    size_t differ = 0;
    for (size_t i = 0; i < 100; i++) {
        const int64_t id = draw(&a, logits);
        assert_int_equal(id, draw(&b, logits));
        differ += id != draw(&c, logits);
        draw(&g, logits);
    }
    assert_true(differ > 0);
    assert_memory_equal(&a.s.rng, &g.s.rng, sizeof g.s.rng);
    setup *const all[] = {&a, &b, &c, &g};
    for (size_t i = 0; i < 4; i++) pare_arena_free(all[i]->arena);
}

static void bad_options_and_bad_logits_are_refused(void **state)
{
    (void)state;
    static const pare_sample_opts bad[] = {{-1, 1, 0}, {NAN, 1, 0},    {INFINITY, 1, 0},
                                           {1, 0, 0},  {1, 1.0001, 0}, {1, NAN, 0}};
    static const float no[][3] = {
        {0, NAN, 1}, {NAN, 0, 0}, {0, 1, NAN}, {0, INFINITY, 1}, {-INFINITY, -INFINITY, -INFINITY}};
    pare_arena *const a = pare_arena_new();
    pare_sampler s;
    pare_err err = {0};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        assert_status(pare_sampler_new(&s, a, 3, &bad[k], 0, 0, &err), PARE_ERR_USAGE, &err);
    pare_arena_free(a);
    for (size_t k = 0; k < sizeof no / sizeof *no; k++) {
        setup u = start(3, (pare_sample_opts){(double)(k % 2), 0.9, 0}, 1);
        int64_t id;
        assert_status(pare_sample(&id, &u.s, no[k], &err), PARE_ERR_NONFINITE, &err);
        assert_int_equal(id, -1);
        pare_arena_free(u.arena);
    }
}

static void each_vocabulary_knows_its_end(void **state)
{
    (void)state;
    static const char words[] = "[PAD]\n[CLS]\n[SEP]\ngood\n", plain[] = "good\nbad\n";
    pare_arena *const a = pare_arena_new();
    pare_tokenizer *t = NULL;
    pare_err err = {0};
    assert_ok(
        pare_tokenizer_new(&t, a, PARE_TOK_WORDS, (const uint8_t *)words, sizeof words - 1, &err),
        &err);
    assert_true(pare_ends_text(t, 2) && !pare_ends_text(t, 1) && !pare_ends_text(t, 3));
    assert_ok(
        pare_tokenizer_new(&t, a, PARE_TOK_WORDS, (const uint8_t *)plain, sizeof plain - 1, &err),
        &err);
    assert_false(pare_ends_text(t, -1));
    assert_ok(pare_tokenizer_new(&t, a, PARE_TOK_BYTES, NULL, 0, &err), &err);
    for (int64_t id = -1; id < 257; id++) assert_false(pare_ends_text(t, id));
    static const char bpe[] = "#version: 0.2\na b\n";
    assert_ok(pare_tokenizer_new(&t, a, PARE_TOK_GPT2, (const uint8_t *)bpe, sizeof bpe - 1, &err),
              &err);
    size_t bytes;
    const int64_t end = (int64_t)pare_tokenizer_size(t) - 1;
    assert_memory_equal(pare_decode(t, -1, end, &bytes), "<|endoftext|>", 13);
    assert_true(pare_ends_text(t, end) && !pare_ends_text(t, end - 1));
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_follow_the_definition),
        cmocka_unit_test(choices_are_those_of_sorting_everything),
        cmocka_unit_test(of_equals_the_lower_id_is_likelier),
        cmocka_unit_test(the_cut_ends_where_the_mass_is_reached),
        cmocka_unit_test(large_logits_and_small_temperatures_are_finite),
        cmocka_unit_test(same_seed_same_choices_and_every_choice_takes_one_number),
        cmocka_unit_test(bad_options_and_bad_logits_are_refused),
        cmocka_unit_test(each_vocabulary_knows_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
