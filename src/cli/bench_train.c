/* bench_train.c - one step of training: forward, loss, backward, AdamW. The learning rate is 0, so
 * that every step does the same work on the same weights; the result that is checked and compared
 * is the gradient (bench.h). */
#include "bench.h"
#include <string.h>

typedef struct bench_step {
    pare_params *params;
    pare_tape *tape;
    int64_t *label;
    double *exact; /* the gradient, by the f64 tape */
    float *grad, *dy, *m, *v;
    size_t ndy;
    uint64_t done;
} step;

static const pare_mode training = {.training = true, .momentum = 0.1};
static const pare_adamw_opts adamw = PARE_ADAMW_OPTS_DEFAULT;

static step *step_of(const bench_job *j)
{
    return ((const bench_pass *)j->state)->step;
}

/* Forward, loss and backward in either precision. */
static pare_status compute_gradient(pare_tape *tape, const pare_input *in, pare_logits *y,
                                    const int64_t *label, void *dy, void *grad,
                                    const pare_exec *exec, pare_err *err)
{
    double loss = 0;
    pare_status st;
    if ((st = pare_tape_forward(tape, in, &training, &y->v, err)) ||
        (st = pare_loss_cross_entropy(&loss, dy, y, label, 1, exec, err)))
        return st;
    return pare_tape_backward(tape, dy, NULL, grad, err);
}

static pare_logits logits_of(const bench_pass *s, pare_dtype t)
{
    return (pare_logits){t, pare_output_rows(s->m, &s->in), pare_model_outputs(s->m), NULL};
}

/* Gradient of the f64 tape. */
static pare_status reference_gradient(bench_job *j, const bench_pass *s, const step *x)
{
    pare_params *p = NULL;
    pare_tape *tape = NULL;
    pare_err *const err = &j->c->err;
    const pare_exec all = {.threads = (int)j->c->threads};
    pare_logits y = logits_of(s, PARE_F64);
    double *const dy = bench_alloc(j, x->ndy, sizeof *dy);
    pare_status st = dy ? pare_params_new(&p, s->m, PARE_F64, err) : err->code;
    if (!st) st = pare_tape_new(&tape, p, &all, err);
    if (!st) st = compute_gradient(tape, &s->in, &y, x->label, dy, x->exact, &all, err);
    pare_tape_free(tape);
    pare_params_free(p);
    return st;
}

static pare_status step_reference(bench_job *j)
{
    bench_pass *const s = j->state;
    const size_t rows = pare_output_rows(s->m, &s->in), classes = pare_model_outputs(s->m);
    step *const x = s->step = bench_alloc(j, 1, sizeof *x);
    pare_status st = x ? pare_params_new(&x->params, s->m, PARE_F32, &j->c->err) : j->c->err.code;
    if (st) return st;
    const size_t n = x->params->count;
    x->ndy = rows * classes;
    x->label = bench_alloc(j, rows, sizeof *x->label);
    x->exact = bench_alloc(j, n, sizeof *x->exact);
    x->grad = bench_alloc(j, n, sizeof *x->grad);
    x->m = bench_alloc(j, n, sizeof *x->m);
    x->v = bench_alloc(j, n, sizeof *x->v);
    x->dy = bench_alloc(j, x->ndy, sizeof *x->dy);
    if (!x->label || !x->exact || !x->grad || !x->m || !x->v || !x->dy) return j->c->err.code;
    /* Every second row of a graph has a label, as in a split; every token has one. */
    const size_t every = s->in.graph ? 2 : 1;
    pare_rng r = pare_rng_at(j->c->seed, 10);
    for (size_t i = 0; i < rows; i++) {
        const int64_t label = (int64_t)pare_rng_below(&r, classes);
        x->label[i] = i % every == 0 ? label : -1;
    }
    j->flops *= 3; /* one product in the forward pass, two in the backward pass */
    j->result = x->grad;
    j->nresult = n;
    j->tolerance = 2e-3; /* sums over ten thousand rows whose terms cancel */
    st = reference_gradient(j, s, x);
    if (!st) st = bench_give_array(j, "labels", PARE_I64, 1, rows, x->label);
    if (!st)
        st = bench_give_case(j, "{\"kind\": \"train\", \"model\": \"%s\", \"heads\": %zu}",
                             s->in.graph ? "graph" : "gpt", s->m->blocks[0].attn.nheads);
    return st;
}

/* A tape keeps its threads. */
static pare_status step_threads(bench_job *j)
{
    step *const x = step_of(j);
    pare_tape_free(x->tape);
    x->tape = NULL;
    return pare_tape_new(&x->tape, x->params, &j->exec, &j->c->err);
}

static pare_status step_run(bench_job *j)
{
    const bench_pass *const s = j->state;
    step *const x = s->step;
    pare_logits y = logits_of(s, PARE_F32);
    memset(x->grad, 0, x->params->count * sizeof *x->grad);
    memset(x->dy, 0, x->ndy * sizeof *x->dy);
    const pare_status st =
        compute_gradient(x->tape, &s->in, &y, x->label, x->dy, x->grad, &j->exec, &j->c->err);
    if (!st)
        pare_adamw_step(x->params, x->grad,
                        &(pare_adamw_state){.m = x->m, .v = x->v, .step = ++x->done}, 0, &adamw,
                        &j->exec);
    return st;
}

static pare_status step_check(bench_job *j, double *error)
{
    const step *const x = step_of(j);
    *error = bench_distance(x->grad, x->exact, x->params->count);
    return PARE_OK;
}

static void step_free(bench_job *j)
{
    const bench_pass *const s = j->state;
    if (!s) return;
    if (s->step) {
        pare_tape_free(s->step->tape);
        pare_params_free(s->step->params);
    }
    pare_model_free(s->m);
}

#define STEP(input)                                                                                \
    {                                                                                              \
        input, step_reference, step_threads, step_run, step_check, step_free                       \
    }
const bench_kind bench_board_step = STEP(bench_board_input);
const bench_kind bench_file_step = STEP(bench_file_input);
const bench_kind bench_web_step = STEP(bench_web_input);
const bench_kind bench_gpt_step = STEP(bench_gpt_input);
