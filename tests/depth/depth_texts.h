/* depth_texts.h - language models on text: what a cut costs in nats. */
#ifndef DEPTH_TEXTS_H
#define DEPTH_TEXTS_H
#include <pare/depth.h>
#include <pare_test.h>

typedef struct task {
    pare_arena *a;
    pare_model *m;
    pare_dataset d;
    pare_inputs fit;
    size_t first, count; /* that are measured */
    pare_err err;
} task;

#define CHARACTERS "../shared/reference/depth/tiny.npz"

/* The small character model and its windows: 50 to fit to, 40 to measure. */
static inline void open_characters(task *l)
{
    pare_npz *z = NULL;
    pare_array val;
    char dir[200], path[300];
    *l = (task){.a = pare_arena_new(), .first = 100, .count = 40};
    test_mkdir(dir);
    test_path(path, dir, "val.npy");
    assert_ok(pare_npz_open(&z, l->a, CHARACTERS, &l->err), &l->err);
    assert_ok(pare_npz_get(&val, z, "val", &l->err), &l->err);
    assert_true(val.ndim == 2 && val.shape[0] == 200 && val.shape[1] == 65);
    int64_t *const ids = pare_alloc(l->a, 200 * 64, sizeof *ids);
    for (size_t i = 0; i < 200 * 64; i++)
        ids[i] = ((const int64_t *)val.data)[i / 64 * 65 + i % 64];
    const pare_array windows = {.dtype = PARE_I64, .ndim = 2, .shape = {200, 64}, .data = ids};
    assert_ok(pare_npy_write(path, &windows, false, &l->err), &l->err);
    assert_ok(pare_model_load(&l->m, CHARACTERS, &l->err), &l->err);
    assert_ok(pare_dataset_load(&l->d, l->a, l->m, path, NULL, &l->err), &l->err);
    l->fit = (pare_inputs){50, l->d.inputs.in};
    pare_npz_close(z);
    test_rmdir(dir);
}

static inline void close_characters(task *l)
{
    pare_model_free(l->m);
    pare_arena_free(l->a);
}

static inline double nats(task *l, const pare_model *m)
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

static inline double nats_of_cut(task *l, pare_attn_kind kind, size_t layers, pare_depth_select how)
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
