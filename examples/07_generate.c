/* 07_generate.c - generate tokens one by one with a key-value cache. The model that comes with pare
 * gets six symbols and generates the same six in order. Run it in the folder that holds models/. */
#include <pare/pare.h>

enum { LENGTH = 6 };

/* Feeds the prompt, then takes the most likely token six times. */
static pare_status sort_six(const pare_model *m, const int64_t *prompt, const pare_exec *exec,
                            pare_err *err)
{
    const pare_sample_opts greedy = {.temperature = 0, .top_p = 1};
    pare_decoder *d = NULL;
    pare_sampler next;
    const float *logits = NULL;
    int64_t id = 0;
    pare_arena *a = pare_arena_new();
    pare_status st = a ? pare_decoder_new(&d, m, 0, exec, err) : pare_no_memory(err);
    if (!st) st = pare_sampler_new(&next, a, pare_model_outputs(m), &greedy, 0, 0, err);
    if (!st) st = pare_decoder_prefill(d, prompt, LENGTH, &logits, err);
    for (int i = 0; i < LENGTH; i++) printf("%d ", (int)prompt[i]);
    printf("->");
    for (int i = 0; !st && i < LENGTH; i++) {
        st = pare_sample(&id, &next, logits, err);
        if (!st) printf(" %d", (int)id);
        if (!st && i + 1 < LENGTH) st = pare_decoder_step(d, id, &logits, err);
    }
    putchar('\n');
    pare_decoder_free(d);
    pare_arena_free(a);
    return st;
}

int main(void)
{
    const int64_t prompts[][LENGTH] = {{2, 0, 1, 2, 0, 1}, {1, 1, 0, 2, 2, 0}, {0, 2, 2, 2, 1, 0}};
    const pare_exec exec = {.threads = pare_cores()};
    pare_err err = {0};
    pare_model *m = NULL;
    pare_status st = pare_model_load(&m, "models/sort.safetensors", &err);
    for (size_t i = 0; !st && i < sizeof prompts / sizeof *prompts; i++)
        st = sort_six(m, prompts[i], &exec, &err);
    if (st) fprintf(stderr, "%s\n", err.msg);
    pare_model_free(m);
    return pare_exit_code(st);
}
