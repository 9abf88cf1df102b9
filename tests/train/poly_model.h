/* poly_model.h - small models whose heads are of kind poly, and passes over them. */
#ifndef TEST_POLY_MODEL_H
#define TEST_POLY_MODEL_H
#include <pare/train.h>
#include <pare_test.h>

enum { VOCAB = 11 };

static inline pare_model *poly_model(bool causal, size_t tokens, double tolerance)
{
    const pare_init o = {.kind = causal ? PARE_INIT_GPT : PARE_INIT_ENCODER,
                         .dim = 8,
                         .layers = 2,
                         .heads = 2,
                         .vocab = VOCAB,
                         .context = tokens,
                         .outputs = causal ? 0 : VOCAB,
                         .seed = 4};
    pare_model *m;
    pare_err err = {0};
    assert_ok(pare_init_model(&m, &o, &err), &err);
    for (size_t b = 0; b < m->nblocks; b++) {
        m->blocks[b].attn.kind = PARE_ATTN_POLY;
        m->blocks[b].attn.tolerance = tolerance;
    }
    return m;
}

typedef struct poly_pass {
    pare_params *p;
    pare_tape *t;
    void *grad;
    size_t count;
} poly_pass;

static inline pare_status poly_pass_run(poly_pass *s, const pare_model *m, const pare_input *in,
                                        pare_dtype t, const void *dy, const pare_exec *exec,
                                        pare_err *err)
{
    const pare_mode mode = {.training = true};
    pare_status st = pare_params_new(&s->p, m, t, err);
    if (!st) st = pare_tape_new(&s->t, s->p, exec, err);
    if (!st) st = pare_tape_forward(s->t, in, &mode, NULL, err);
    if (!st) {
        s->count = s->p->count;
        memset(s->grad, 0, s->count * pare_dtype_size(t));
        st = pare_tape_backward(s->t, dy, NULL, s->grad, err);
    }
    return st;
}

static inline void poly_pass_free(poly_pass *s)
{
    pare_tape_free(s->t);
    pare_params_free(s->p);
    s->t = NULL;
    s->p = NULL;
}
#endif
