/* Tokens per second, for a prompt and for generation, on random models of the shapes of stories260K
 * and of GPT-2 small, beside the sgemm rate of the same process: CSV. */
#include <pare/pare.h>

#include <math.h>
#include <stdlib.h>

enum { ROUNDS = 7, SIDE = 1024, MOST_THREADS = 2 };

typedef struct shape {
    const char *name;
    pare_random_model_opts o;
    size_t prompt, tokens;
} shape;

typedef struct rates {
    double sgemm, prompt, greedy, sampled; /* best of the rounds: Gflop/s and tokens/s */
} rates;

static _Noreturn void stop(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(2);
}

static void *need(void *p)
{
    if (!p) stop("out of memory");
    return p;
}

static void keep_best(double *best, double rate)
{
    if (rate > *best) *best = rate;
}

static double sgemm_rate(const float *a, const float *b, float *c)
{
    const double start = pare_seconds();
    pare_gemm_f32(SIDE, SIDE, SIDE, 1, a, SIDE, false, b, SIDE, true, 0, c, SIDE);
    return 2e-9 * SIDE * SIDE * SIDE / (pare_seconds() - start);
}

/* Generates from an empty cache: tokens/s. */
static double generate(pare_decoder *d, pare_sampler *s, size_t tokens)
{
    const float *logits;
    int64_t id = 1;
    pare_decoder_reset(d);
    const double start = pare_seconds();
    for (size_t i = 0; i < tokens; i++)
        if (pare_decoder_step(d, id, &logits, NULL) || pare_sample(&id, s, logits, NULL))
            stop("generation failed");
    return (double)tokens / (pare_seconds() - start);
}

static double prompt(pare_decoder *d, const int64_t *ids, size_t n)
{
    const float *logits;
    pare_decoder_reset(d);
    const double start = pare_seconds();
    if (pare_decoder_feed(d, ids, n, &logits, NULL)) stop("the prompt failed");
    return (double)n / (pare_seconds() - start);
}

/* The decoder's last row is that of the whole pass: a wrong answer is always fast. */
static void check(const pare_model *m, pare_decoder *d, const int64_t *ids, size_t n)
{
    const size_t cols = pare_model_outputs(m);
    const pare_input in = {.batch = 1, .tokens = n, .ids = ids};
    float *const want = need(calloc(n * cols, sizeof *want));
    const float *got;
    double most = 1;
    pare_decoder_reset(d);
    if (pare_forward_f32(want, m, &in, NULL, NULL, NULL) ||
        pare_decoder_feed(d, ids, n, &got, NULL))
        stop("the check failed");
    const float *const last = want + (n - 1) * cols;
    for (size_t j = 0; j < cols; j++) most = fmax(most, fabs((double)last[j]));
    for (size_t j = 0; j < cols; j++)
        if (!(fabs((double)last[j] - (double)got[j]) <= 1e-4 * most)) stop("logits are wrong");
    free(want);
}

static rates measure(const pare_model *m, const shape *s, int threads, const float *a,
                     const float *b, float *c)
{
    const pare_exec exec = {.threads = threads};
    const pare_sample_opts greedy = {.temperature = 0, .top_p = 1}, usual = PARE_SAMPLE_DEFAULT;
    pare_arena *const arena = need(pare_arena_new());
    int64_t *const ids = need(pare_alloc(arena, s->prompt, sizeof *ids));
    pare_rng rng = pare_rng_at(1, 1);
    for (size_t i = 0; i < s->prompt; i++) ids[i] = (int64_t)pare_rng_below(&rng, s->o.vocab);
    pare_decoder *d = NULL;
    pare_sampler best, random;
    if (pare_decoder_new(&d, m, 0, &exec, NULL) ||
        pare_sampler_new(&best, arena, s->o.vocab, &greedy, 1, 0, NULL) ||
        pare_sampler_new(&random, arena, s->o.vocab, &usual, 1, 0, NULL))
        stop("no decoder");
    check(m, d, ids, 24);
    rates r = {0};
    for (int i = 0; i < ROUNDS; i++) {
        keep_best(&r.sgemm, sgemm_rate(a, b, c));
        keep_best(&r.prompt, prompt(d, ids, s->prompt));
        keep_best(&r.greedy, generate(d, &best, s->tokens));
        keep_best(&r.sampled, generate(d, &random, s->tokens));
    }
    pare_decoder_free(d);
    pare_arena_free(arena);
    return r;
}

int main(void)
{
    const shape shapes[] = {
        {"stories260K",
         {.kind = PARE_RANDOM_LLAMA,
          .dim = 64,
          .layers = 5,
          .heads = 8,
          .kv_heads = 4,
          .ffn = 172,
          .vocab = 512,
          .context = 512,
          .seed = 1},
         500,
         256},
        {"gpt2-small",
         {.kind = PARE_RANDOM_GPT,
          .dim = 768,
          .layers = 12,
          .heads = 12,
          .vocab = 50257,
          .context = 1024,
          .seed = 1},
         192,
         12},
    };
    float *const a = need(calloc(3u * SIDE * SIDE, sizeof *a));
    for (size_t i = 0; i < 2u * SIDE * SIDE; i++) a[i] = (float)(i % 13) - 6;
    printf("model,threads,prompt_tokens,tokens,prompt_per_s,greedy_per_s,sampled_per_s,"
           "sgemm_gflops_1_thread\n");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const shape *const s = &shapes[i];
        const pare_exec all = {.threads = pare_cores()};
        pare_random_model_opts o = s->o;
        pare_model *m = NULL;
        o.exec = &all;
        if (pare_random_model(&m, &o, NULL)) stop("no model");
        for (int t = 1; t <= MOST_THREADS && t <= pare_cores(); t++) {
            const rates r = measure(m, s, t, a, a + SIDE * SIDE, a + 2 * SIDE * SIDE);
            printf("%s,%d,%zu,%zu,%.0f,%.0f,%.0f,%.1f\n", s->name, t, s->prompt, s->tokens,
                   r.prompt, r.greedy, r.sampled, r.sgemm);
        }
        pare_model_free(m);
    }
    free(a);
    return 0;
}
