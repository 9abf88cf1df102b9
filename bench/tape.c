/* A pass with its backward pass, in f32, on the two shapes that training is measured by.
 *
 *   bench/tape [CASE [THREADS]]      CSV on stdout: milliseconds there and back, the best of
 * several
 *
 * graph: 10,000 nodes of a board, 64 wide, 4 layers, 1 head, batch norm (torch, edge list: 217 ms
 * for a step on one core). gpt: 4 layers, 256 wide, 4 heads, 4096 ids, 8 sequences of 256 (torch:
 * ../shared/perf/gpt_torch.py). */
#include <pare/train.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 6, SIDE = 100 };

static _Noreturn void stop(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(2);
}

static bool on_cpu; /* one thread: its own time, whoever else is at work */

static double seconds(void)
{
    return on_cpu ? (double)clock() / CLOCKS_PER_SEC : pare_seconds();
}

static void *need(void *p)
{
    if (!p) stop("out of memory");
    return p;
}

/* Every field of the board sees its up to eight neighbors. */
static pare_graph board(void)
{
    size_t *const ptr = need(calloc(SIDE * SIDE + 1, sizeof *ptr));
    uint32_t *const idx = need(calloc(8 * SIDE * SIDE, sizeof *idx));
    size_t at = 0;
    for (int i = 0; i < SIDE * SIDE; i++) {
        for (int r = i / SIDE - 1; r <= i / SIDE + 1; r++)
            for (int c = i % SIDE - 1; c <= i % SIDE + 1; c++)
                if (r >= 0 && c >= 0 && r < SIDE && c < SIDE && r * SIDE + c != i)
                    idx[at++] = (uint32_t)(r * SIDE + c);
        ptr[i + 1] = at;
    }
    return (pare_graph){SIDE * SIDE, ptr, idx};
}

static void measure(const char *name, const pare_model *m, const pare_input *in, double dropout,
                    int threads)
{
    const pare_exec exec = {.threads = threads};
    const pare_mode mode = {.training = true, .momentum = 0.1, .dropout = dropout};
    const size_t ny = pare_output_rows(m, in) * pare_model_outputs(m);
    pare_params *p;
    pare_tape *t;
    pare_err err = {0};
    double there = INFINITY, back = INFINITY;
    on_cpu = threads == 1;
    if (pare_params_new(&p, m, PARE_F32, &err) || pare_tape_new(&t, p, &exec, &err)) stop(err.msg);
    float *const dy = need(calloc(ny, sizeof *dy)), *const grad =
                                                        need(calloc(p->count, sizeof *dy));
    for (size_t i = 0; i < ny; i++) dy[i] = (float)(i % 7) - 3;
    for (int r = 0; r < RUNS; r++) {
        const double start = seconds();
        if (pare_tape_forward(t, in, &mode, NULL, &err)) stop(err.msg);
        const double middle = seconds();
        if (pare_tape_backward(t, dy, NULL, grad, &err)) stop(err.msg);
        there = fmin(there, middle - start);
        back = fmin(back, seconds() - middle);
    }
    printf("%s,%d,%g,%.1f,%.1f,%.1f\n", name, threads, dropout, 1e3 * there, 1e3 * back,
           1e3 * (there + back));
    fflush(stdout);
    free(dy);
    free(grad);
    pare_tape_free(t);
    pare_params_free(p);
}

int main(int argc, char **argv)
{
    const pare_graph g = board();
    const pare_random_model_opts shapes[] = {{.kind = PARE_RANDOM_GRAPH,
                                              .dim = 64,
                                              .layers = 4,
                                              .heads = 1,
                                              .ffn = 64,
                                              .features = 7,
                                              .classes = 2},
                                             {.kind = PARE_RANDOM_GPT,
                                              .dim = 256,
                                              .layers = 4,
                                              .heads = 4,
                                              .vocab = 4096,
                                              .context = 256,
                                              .sigma = 0.02}};
    const char *const names[] = {"graph", "gpt"};
    double *const x = need(calloc(SIDE * SIDE * 7, sizeof *x));
    int64_t *const ids = need(calloc(8 * 256, sizeof *ids));
    pare_rng r = pare_rng_at(1, 1);
    for (size_t i = 0; i < SIDE * SIDE * 7; i++) x[i] = pare_rng_normal(&r);
    for (size_t i = 0; i < 8 * 256; i++) ids[i] = (int64_t)pare_rng_below(&r, 4096);
    const pare_input in[] = {{.batch = 1, .tokens = SIDE * SIDE, .width = 7, .x = x, .graph = &g},
                             {.batch = 8, .tokens = 256, .ids = ids}};
    printf("case,threads,dropout,there_ms,back_ms,step_ms\n");
    for (size_t c = 0; c < 2; c++) {
        pare_model *m;
        pare_err err = {0};
        if (argc > 1 && strcmp(argv[1], names[c]) != 0) continue;
        if (pare_random_model(&m, &shapes[c], &err)) stop(err.msg);
        m->pattern.self_loops = false;
        for (int threads = 1; threads <= 2; threads++) {
            if (argc > 2 && atoi(argv[2]) != threads) continue;
            measure(names[c], m, &in[c], 0, threads);
            if (argc <= 3) measure(names[c], m, &in[c], 0.2, threads);
        }
        pare_model_free(m);
    }
    free(ids);
    free(x);
    free((void *)g.ptr);
    free((void *)g.idx);
    return 0;
}
