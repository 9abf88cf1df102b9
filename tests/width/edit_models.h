/* edit_models.h - small graph models of every temper, and data whose rows repeat. */
#ifndef EDIT_MODELS_H
#define EDIT_MODELS_H
#include "width_nets.h"
#include "linalg/matrix.h"
#include <pare/model.h>

enum { TEMPERS = 8 };
static const char *const temper_names[TEMPERS] = {"plain",      "large scores", "near ties",
                                                  "dead units", "huge weights", "tiny weights",
                                                  "gelu",       "batch norms"};

static inline void scale_mat(pare_mat *m, double by)
{
    for (size_t i = 0; m->v && i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) pare_row_mut(m, i)[j] *= by;
}

static inline void scale_scores(net *n, double by)
{
    for (size_t l = 0; l < n->nlayers; l++)
        for (size_t h = 0; h < n->layers[l].nheads; h++) n->layers[l].heads[h].scale *= by;
}

static inline void set_temper(net *n, size_t temper)
{
    if (temper == 1) scale_scores(n, 200);
    if (temper == 2) { /* both classes alike but for the last digits */
        for (size_t c = 1; c < n->wh.rows; c++) {
            for (size_t j = 0; j < n->wh.cols; j++)
                pare_row_mut(&n->wh, c)[j] = pare_row(&n->wh, 0)[j] * (1 + 1e-13 * (double)(c + j));
            n->bh[c] = n->bh[0];
        }
    }
    for (size_t l = 0; l < n->nlayers; l++) {
        net_layer *const k = &n->layers[l];
        if (temper == 3)
            for (size_t f = 0; f < k->w1.rows; f++) k->b1[f] = f % 2 ? -100 : k->b1[f];
        if (temper == 4) scale_mat(l % 2 ? &k->w2 : &k->w1, 1e3);
        if (temper == 5) scale_mat(&k->heads[0].wv, 1e-30);
        if (temper == 6) k->act = l % 2 ? PARE_ACT_SILU : PARE_ACT_GELU;
    }
}

/* Free with pare_model_free. */
static inline pare_model *temper_model(stage *s, uint64_t seed, size_t temper, size_t classes)
{
    pare_model *m = NULL;
    if (temper == 7) {
        pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
        o.kind = PARE_RANDOM_GRAPH;
        o.dim = 6;
        o.heads = 1 + seed % 2;
        o.layers = 1 + seed % 3;
        o.features = 4;
        o.classes = classes;
        o.seed = seed;
        assert_ok(pare_random_model(&m, &o, &s->err), &s->err);
        return m;
    }
    net n = rand_net(s, (net_shape){.features = 4,
                                    .dim = 6,
                                    .layers = 1 + seed % 3,
                                    .classes = classes,
                                    .heads = 1 + seed / 3 % 2,
                                    .ffn = 5 + seed % 4,
                                    .residual = true});
    set_temper(&n, temper);
    if (seed % 2 && temper != 2) n.dtype = PARE_F32;
    return model_of(s, &n);
}

/* Rows of `kinds` different kinds, in a random order. */
static inline pare_mat repeating_rows(stage *s, size_t n, size_t kinds)
{
    const pare_mat few = rand_mat(s, kinds, 4, 1);
    pare_mat x = mat_zeros(&s->w, n, 4);
    for (size_t i = 0; i < n; i++)
        memcpy(pare_row_mut(&x, i),
               pare_row(&few, i < kinds ? i : (size_t)pare_rng_below(&s->rng, kinds)),
               4 * sizeof(double));
    return x;
}
#endif
