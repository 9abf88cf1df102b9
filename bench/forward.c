/* The f32 pass on random models of three known shapes, as a fraction of what sgemm does in the same
 * process. Everything is interleaved and the best of several runs counts.
 *
 *   bench/forward [CASE]      CSV on stdout, one line per case and number of threads
 *
 * `rest` is the same pass with every token seeing only itself: all of it but the attention. */
#include <pare/pare.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 9, GEMM = 768, SIDE = 100, MOST_EDGES = 8 * SIDE * SIDE };

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

typedef struct bench_case {
    const char *name;
    pare_random_model_opts shape;
    size_t batch, tokens;
    int runs;
} bench_case;

static const bench_case cases[] = {
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
     1,
     512,
     4 * RUNS},
    {"stories260K-batch",
     {.kind = PARE_RANDOM_LLAMA,
      .dim = 64,
      .layers = 5,
      .heads = 8,
      .kv_heads = 4,
      .ffn = 172,
      .vocab = 512,
      .context = 512,
      .seed = 1},
     64,
     128,
     RUNS},
    {"minesweeper",
     {.kind = PARE_RANDOM_GRAPH,
      .dim = 64,
      .layers = 4,
      .heads = 4,
      .ffn = 128,
      .features = 7,
      .classes = 2,
      .seed = 1},
     1,
     SIDE *SIDE,
     RUNS},
    {"gpt2-small",
     {.kind = PARE_RANDOM_GPT,
      .dim = 768,
      .layers = 12,
      .heads = 12,
      .ffn = 3072,
      .vocab = 50257,
      .context = 1024,
      .seed = 1},
     1,
     256,
     3},
};
enum { CASES = sizeof cases / sizeof *cases };

typedef struct work {
    pare_model *m;
    pare_input in;
    float *out;
    double best[2][2]; /* threads 1 and 2; the pass, the rest of it */
    double gemm;       /* seconds */
    uint64_t flops;
} work;

/* ---- sgemm -------------------------------------------------------------------------------- */

static double gemm_seconds(float *v)
{
    const size_t n = (size_t)GEMM * GEMM;
    const double start = pare_seconds();
    pare_blas_f32(&(pare_mat32){GEMM, GEMM, GEMM, v + 2 * n}, 1, &(pare_mat32){GEMM, GEMM, GEMM, v},
                  false, &(pare_mat32){GEMM, GEMM, GEMM, v + n}, true, 0);
    return pare_seconds() - start;
}

/* ---- inputs ------------------------------------------------------------------------------- */

/* A board: every field sees its up to eight neighbors. */
static size_t fill_board(size_t *ptr, uint32_t *idx)
{
    size_t e = 0;
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++) {
        const int row = (int)(i / SIDE), col = (int)(i % SIDE);
        ptr[i] = e;
        for (int r = row - 1; r <= row + 1; r++)
            for (int c = col - 1; c <= col + 1; c++)
                if (r >= 0 && r < SIDE && c >= 0 && c < SIDE && (r != row || c != col))
                    idx[e++] = (uint32_t)(r * SIDE + c);
    }
    ptr[(size_t)SIDE * SIDE] = e;
    return e;
}

static const pare_graph *board(pare_arena *a, bool empty)
{
    const size_t n = (size_t)SIDE * SIDE;
    pare_graph *const g = need(pare_alloc(a, 1, sizeof *g));
    size_t *const ptr = need(pare_alloc(a, n + 1, sizeof *ptr));
    uint32_t *const idx = need(pare_alloc(a, MOST_EDGES, sizeof *idx));
    if (!empty) (void)fill_board(ptr, idx);
    *g = (pare_graph){n, ptr, idx};
    return g;
}

static void make_input(work *w, const bench_case *c)
{
    const size_t n = c->batch * c->tokens, width = w->m->embedding.width;
    pare_rng r = pare_rng_at(1, 0);
    w->in = (pare_input){.batch = c->batch, .tokens = c->tokens};
    if (w->m->embedding.ids) {
        int64_t *const ids = need(pare_alloc(w->m->arena, n, sizeof *ids));
        for (size_t i = 0; i < n; i++) ids[i] = (int64_t)pare_rng_below(&r, w->m->embedding.vocab);
        w->in.ids = ids;
        return;
    }
    double *const x = need(pare_alloc(w->m->arena, n * width, sizeof *x));
    for (size_t i = 0; i < n * width; i++) x[i] = pare_rng_normal(&r);
    w->in.x = x;
    w->in.width = width;
    w->in.graph = board(w->m->arena, false);
}

/* ---- timing -------------------------------------------------------------------------------- */

static double seconds(work *w, int threads)
{
    const pare_exec exec = {.threads = threads};
    const double start = pare_seconds();
    if (pare_forward_f32(w->out, w->m, &w->in, NULL, &exec, NULL)) stop("the pass failed");
    return pare_seconds() - start;
}

/* The same model, every token alone. */
static double rest_seconds(work *w, int threads, const pare_graph *none)
{
    const pare_pattern pattern = w->m->pattern;
    const pare_graph *const graph = w->in.graph;
    if (graph)
        w->in.graph = none;
    else
        w->m->pattern = (pare_pattern){.kind = PARE_WINDOW, .window = 1};
    const double t = seconds(w, threads);
    w->m->pattern = pattern;
    w->in.graph = graph;
    return t;
}

/* Rows that went wrong would be fast: finite, and the same bits on one and two threads. */
static void check(work *w)
{
    const size_t n = pare_output_rows(w->m, &w->in) * pare_model_outputs(w->m);
    float *const one = need(malloc(n * sizeof *one));
    (void)seconds(w, 1);
    memcpy(one, w->out, n * sizeof *one);
    (void)seconds(w, 2);
    if (memcmp(one, w->out, n * sizeof *one) != 0) stop("bits depend on the number of threads");
    for (size_t i = 0; i < n; i++)
        if (!isfinite(one[i])) stop("an output is not finite");
    free(one);
}

static void keep_least(double *best, double t)
{
    if (*best == 0 || t < *best) *best = t;
}

static void show(const bench_case *c, const work *w)
{
    const double sgemm = 2e-9 * GEMM * GEMM * GEMM / w->gemm;
    const double tokens = (double)(c->batch * c->tokens);
    for (int t = 0; t < 2; t++) {
        const double s = w->best[t][0], rate = 1e-9 * (double)w->flops / s;
        printf("%s,%d,%zu,%zu,%.3f,%.0f,%.1f,%.1f,%.3f,%.3f\n", c->name, t + 1, c->batch, c->tokens,
               1e3 * s, tokens / s, rate, sgemm, rate / sgemm / (t + 1), 1e3 * w->best[t][1]);
    }
}

static void run_case(const bench_case *c, float *square)
{
    work w = {0};
    pare_err err = {0};
    pare_random_model_opts shape = c->shape;
    const pare_exec all = {.threads = pare_cores()};
    shape.exec = &all;
    if (pare_random_model(&w.m, &shape, &err)) stop(err.msg);
    make_input(&w, c);
    const pare_graph *const none = w.in.graph ? board(w.m->arena, true) : NULL;
    const uint64_t edges = w.in.graph ? w.in.graph->ptr[w.in.graph->n] + w.in.graph->n : 0;
    w.flops = 2 * c->batch * pare_model_size(w.m, c->tokens, edges).macs;
    w.out = need(calloc(pare_output_rows(w.m, &w.in) * pare_model_outputs(w.m), sizeof *w.out));
    for (int run = 0; run < c->runs; run++) {
        keep_least(&w.gemm, gemm_seconds(square));
        for (int t = 0; t < 2; t++) {
            keep_least(&w.best[t][0], seconds(&w, t + 1));
            keep_least(&w.best[t][1], rest_seconds(&w, t + 1, none));
        }
    }
    check(&w);
    show(c, &w);
    free(w.out);
    pare_model_free(w.m);
}

int main(int argc, char **argv)
{
    const size_t n = (size_t)GEMM * GEMM;
    float *const square = need(malloc(3 * n * sizeof *square));
    for (size_t i = 0; i < 3 * n; i++) square[i] = (float)(i % 17) / 8 - 1;
    printf("case,threads,batch,tokens,ms,tokens_per_s,gflop_per_s,sgemm_gflop_per_s,"
           "of_sgemm_per_thread,rest_ms\n");
    for (size_t i = 0; i < CASES; i++)
        if (argc < 2 || strcmp(argv[1], cases[i].name) == 0) run_case(&cases[i], square);
    free(square);
    return 0;
}
