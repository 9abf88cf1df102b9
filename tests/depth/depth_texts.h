/* depth_texts.h - language models on text: what a cut costs in nats. */
#ifndef DEPTH_TEXTS_H
#define DEPTH_TEXTS_H
#include <pare/data.h>
#include <pare/depth.h>
#include <pare_test.h>

typedef struct lesson {
    pare_arena *a;
    pare_model *m;
    pare_dataset d;
    pare_inputs fit;
    size_t first, count; /* that are measured */
    pare_err err;
} lesson;

static inline double nats(lesson *l, const pare_model *m)
{
    pare_metric *metric = NULL;
    pare_scores scores;
    const size_t classes = pare_model_outputs(m);
    assert_ok(pare_metric_new(&metric, l->a, classes, &l->err), &l->err);
    for (size_t i = l->first; i < l->first + l->count; i++) {
        const pare_input *const in = &l->d.inputs.in[i];
        const pare_mark mark = pare_arena_mark(l->a);
        float *const y = pare_alloc(l->a, pare_output_rows(m, in) * classes, sizeof *y);
        assert_non_null(y);
        assert_ok(pare_forward_f32(y, m, in, NULL, NULL, &l->err), &l->err);
        assert_ok(pare_metric_add(metric, y, l->d.target[i], pare_output_rows(m, in), &l->err),
                  &l->err);
        pare_arena_reset(l->a, mark);
    }
    assert_ok(pare_metric_scores(&scores, metric, &l->err), &l->err);
    return scores.nats;
}

static inline double nats_of_cut(lesson *l, pare_attn_kind kind, size_t layers,
                                 pare_depth_select how)
{
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    pare_depth_report r;
    pare_model *g = NULL;
    const pare_exec exec = {.threads = 2};
    o.kind = kind;
    o.layers = layers;
    o.select = how;
    assert_ok(pare_depth(&g, &r, l->m, &l->fit, &o, &exec, &l->err), &l->err);
    const double cost = nats(l, g);
    pare_model_free(g);
    return cost;
}
#endif
