/* depth_models.h - small models with random weights, their attentions transposed into special cases. */
#ifndef DEPTH_MODELS_H
#define DEPTH_MODELS_H
#include "cert/prove.h"
#include <pare/depth.h>
#include <pare_test.h>

enum { TOKENS = 9, INPUTS = 5 };

typedef struct stage {
    pare_model *m;
    pare_arena *a;
    pare_inputs set;
    pare_err err;
} stage;

static inline void stage_open(stage *s, pare_random_kind kind, size_t layers, uint64_t seed)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    *s = (stage){.a = pare_arena_new()};
    o.kind = kind;
    o.dim = 8;
    o.heads = 2;
    o.layers = layers;
    o.ffn = 8;
    o.vocab = 11;
    o.context = 12;
    o.seed = seed;
    assert_non_null(s->a);
    assert_ok(pare_random_model(&s->m, &o, &s->err), &s->err);
    assert_ok(pare_inputs_random(&s->set, s->a, s->m, INPUTS, TOKENS, seed, &s->err), &s->err);
}

static inline void stage_close(stage *s)
{
    pare_model_free(s->m);
    pare_arena_free(s->a);
}

/* The same weight filled by hand, in f64. */
static inline pare_weight filled(stage *s, const pare_weight *like, double value)
{
    double *const v = pare_alloc(s->a, like->rows * like->cols, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < like->rows * like->cols; i++) v[i] = value;
    return (pare_weight){PARE_F64, like->rows, like->cols, v};
}

static inline pare_model *cut_to(stage *s, pare_attn_kind kind, size_t layers,
                                 pare_depth_report *report)
{
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    pare_model *g = NULL;
    o.kind = kind;
    o.layers = layers;
    assert_ok(pare_depth(&g, report, s->m, &s->set, &o, NULL, &s->err), &s->err);
    return g;
}

/* Outputs of one input, in the stage's arena. */
static inline pare_mat outputs(stage *s, const pare_model *m, const pare_input *in)
{
    pare_mat y = pare_mat_new(s->a, pare_output_rows(m, in), pare_model_outputs(m));
    assert_non_null(y.v);
    assert_ok(pare_forward_f64(y.v, m, in, NULL, NULL, &s->err), &s->err);
    return y;
}

static inline double apart(stage *s, const pare_model *f, const pare_model *g)
{
    double most = 0;
    assert_ok(pare_measure(&most, f, g, &s->set, NULL, &s->err), &s->err);
    return most;
}
#endif
