/* 02_run.c - run a model on four token ids with the f32 engine and with the f64 reference, and
 * print how far the two results are apart. */
#include <pare/pare.h>

#include <math.h>
#include <stdlib.h>

int main(void)
{
    const pare_random_model_opts opts = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    const int64_t ids[] = {'p', 'a', 'r', 'e'};
    const pare_input in = {.batch = 1, .tokens = 4, .ids = ids};
    const pare_exec exec = {.threads = pare_cores()};
    pare_err err = {0};
    pare_model *m = NULL;
    float *fast = NULL;
    double *exact = NULL;

    pare_status st = pare_random_model(&m, &opts, &err);
    if (!st) st = pare_input_check(m, &in, &err);
    const size_t rows = st ? 0 : pare_output_rows(m, &in);
    const size_t cols = st ? 0 : pare_model_outputs(m);
    if (!st) {
        fast = malloc(rows * cols * sizeof *fast);
        exact = malloc(rows * cols * sizeof *exact);
        if (!fast || !exact) st = pare_no_memory(&err);
    }
    if (!st) st = pare_forward_f32(fast, m, &in, NULL, &exec, &err);
    if (!st) st = pare_forward_f64(exact, m, &in, NULL, &exec, &err);
    if (!st) {
        double off = 0;
        size_t best = 0;
        const double *last = exact + (rows - 1) * cols;
        for (size_t i = 0; i < rows * cols; i++) off = fmax(off, fabs(fast[i] - exact[i]));
        for (size_t j = 1; j < cols; j++)
            if (last[j] > last[best]) best = j;
        printf("output %zu x %zu\n", rows, cols);
        printf("most likely next id: %zu\n", best);
        printf("f32 and f64 differ by at most %.1e\n", off);
    } else {
        fprintf(stderr, "%s\n", err.msg);
    }
    free(fast);
    free(exact);
    pare_model_free(m);
    return pare_exit_code(st);
}
