/* Tokens per second, for a prompt and for generation, on random models of the shapes of stories260K
 * and of GPT-2 small, beside the sgemm rate of the same process: CSV.
 *
 * Everything is timed in pieces of about a millisecond, over and over, and of every piece the best
 * time counts: on a busy machine longer ones never run undisturbed. */
#include "model/decode_state.h"
#include <pare/pare.h>

#include <math.h>
#include <stdlib.h>

enum { SIDE = 384, MOST_THREADS = 2, MOST_PIECES = 64, BATCH = 12 };

typedef struct shape {
    const char *name;
    pare_random_model_opts o;
    size_t prompt, tokens;
    size_t feed, piece; /* of the prompt, of generation: about a millisecond */
    int rounds;
} shape;

/* The best seconds of every piece of a run. */
typedef struct pieces {
    double best[MOST_PIECES];
    size_t n;
} pieces;

typedef struct times {
    pieces sgemm, prompt, greedy, sampled, batch;
} times;

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

static void keep_best(pieces *p, size_t i, double seconds)
{
    if (i == p->n) p->best[p->n++] = seconds;
    if (seconds < p->best[i]) p->best[i] = seconds;
}

static double total(const pieces *p)
{
    double sum = 0;
    for (size_t i = 0; i < p->n; i++) sum += p->best[i];
    return sum;
}

static void sgemm(pieces *p, float *a, float *b, float *c)
{
    const double start = pare_seconds();
    pare_blas_f32(&(pare_mat32){SIDE, SIDE, SIDE, c}, 1, &(pare_mat32){SIDE, SIDE, SIDE, a}, false,
                  &(pare_mat32){SIDE, SIDE, SIDE, b}, true, 0);
    keep_best(p, 0, pare_seconds() - start);
}

/* Generates from an empty cache. */
static void generate(pieces *p, pare_decoder *d, pare_sampler *s, const shape *h)
{
    const float *logits;
    int64_t id = 1;
    pare_decoder_reset(d);
    for (size_t i = 0; i < h->tokens / h->piece; i++) {
        const double start = pare_seconds();
        for (size_t k = 0; k < h->piece; k++)
            if (pare_decoder_step(d, id, &logits, NULL) || pare_sample(&id, s, logits, NULL))
                stop("generation failed");
        keep_best(p, i, pare_seconds() - start);
    }
}

/* The likeliest, without the sampler: the decoder is what is measured. */
static int64_t likeliest(const float *logits, size_t n)
{
    size_t best = 0;
    for (size_t j = 1; j < n; j++)
        if (logits[j] > logits[best]) best = j;
    return (int64_t)best;
}

/* BATCH texts from empty caches, in pieces that have fewer steps the more texts there are. */
static void generate_batch(pieces *p, pare_decoder *d, const shape *h)
{
    size_t text[BATCH], ld;
    int64_t id[BATCH];
    const float *logits;
    for (size_t i = 0; i < BATCH; i++) {
        text[i] = i;
        id[i] = (int64_t)i + 1;
    }
    pare_decoder_reset(d);
    const size_t steps = (h->piece + BATCH - 1) / BATCH + (h->piece > BATCH);
    for (size_t i = 0; i < h->tokens / steps; i++) {
        const double start = pare_seconds();
        for (size_t k = 0; k < steps; k++) {
            if (pare_decoder_step_batch(d, text, id, BATCH, &logits, &ld, NULL))
                stop("generation failed");
            for (size_t t = 0; t < BATCH; t++) id[t] = likeliest(logits + t * ld, h->o.vocab);
        }
        keep_best(p, i, pare_seconds() - start);
    }
}

static void prompt(pieces *p, pare_decoder *d, const int64_t *ids, const shape *h)
{
    const float *logits;
    pare_decoder_reset(d);
    for (size_t i = 0; i < h->prompt / h->feed; i++) {
        const double start = pare_seconds();
        if (pare_decoder_prefill(d, ids + i * h->feed, h->feed, &logits, NULL))
            stop("the prompt failed");
        keep_best(p, i, pare_seconds() - start);
    }
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
        pare_decoder_prefill(d, ids, n, &got, NULL))
        stop("the check failed");
    const float *const last = want + (n - 1) * cols;
    for (size_t j = 0; j < cols; j++) most = fmax(most, fabs((double)last[j]));
    for (size_t j = 0; j < cols; j++)
        if (!(fabs((double)last[j] - (double)got[j]) <= 1e-4 * most)) stop("logits are wrong");
    free(want);
}

static times measure(const pare_model *m, const shape *s, int threads, float *a,
                     float *b, float *c)
{
    const pare_exec exec = {.threads = threads};
    const pare_sample_opts greedy = {.temperature = 0, .top_p = 1},
                           usual = PARE_SAMPLE_OPTS_DEFAULT;
    pare_arena *const arena = need(pare_arena_new());
    int64_t *const ids = need(pare_alloc(arena, s->prompt, sizeof *ids));
    pare_rng rng = pare_rng_at(1, 1);
    for (size_t i = 0; i < s->prompt; i++) ids[i] = (int64_t)pare_rng_below(&rng, s->o.vocab);
    pare_decoder *d = NULL, *many = NULL;
    pare_sampler best, random;
    if (pare_decoder_new(&d, m, 0, &exec, NULL) ||
        pare_decoder_new_batch(&many, m, BATCH, s->tokens, &exec, NULL) ||
        pare_sampler_new(&best, arena, s->o.vocab, &greedy, 1, 0, NULL) ||
        pare_sampler_new(&random, arena, s->o.vocab, &usual, 1, 0, NULL))
        stop("no decoder");
    check(m, d, ids, 24);
    times r = {0};
    for (int i = 0; i < s->rounds; i++) {
        sgemm(&r.sgemm, a, b, c);
        prompt(&r.prompt, d, ids, s);
        generate(&r.greedy, d, &best, s);
        generate(&r.sampled, d, &random, s);
        generate_batch(&r.batch, many, s);
    }
    pare_decoder_free(d);
    pare_decoder_free(many);
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
         480,
         256,
         96,
         32,
         40},
        {"gpt2-small",
         {.kind = PARE_RANDOM_GPT,
          .dim = 768,
          .layers = 12,
          .heads = 12,
          .vocab = 50257,
          .context = 1024,
          .seed = 1},
         96,
         6,
         96,
         1,
         4},
    };
    float *const a = need(calloc(3u * SIDE * SIDE, sizeof *a));
    for (size_t i = 0; i < 2u * SIDE * SIDE; i++) a[i] = (float)(i % 13) - 6;
    printf("model,threads,prompt_tokens,tokens,prompt_per_s,greedy_per_s,sampled_per_s,"
           "batch12_per_s,sgemm_gflops_1_thread\n");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const shape *const s = &shapes[i];
        const pare_exec all = {.threads = pare_cores()};
        pare_random_model_opts o = s->o;
        pare_model *m = NULL;
        o.exec = &all;
        if (pare_random_model(&m, &o, NULL)) stop("no model");
        for (int t = 1; t <= MOST_THREADS && t <= pare_cores(); t++) {
            const times r = measure(m, s, t, a, a + SIDE * SIDE, a + 2 * SIDE * SIDE);
            const double n = (double)s->tokens, flops = 2.0 * SIDE * SIDE * SIDE;
            printf("%s,%d,%zu,%zu,%.0f,%.0f,%.0f,%.0f,%.1f\n", s->name, t, s->prompt, s->tokens,
                   (double)s->prompt / total(&r.prompt), n / total(&r.greedy),
                   n / total(&r.sampled), BATCH * n / total(&r.batch),
                   1e-9 * flops / total(&r.sgemm));
        }
        pare_model_free(m);
    }
    free(a);
    return 0;
}
