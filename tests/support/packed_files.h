/* packed_files.h - any model as a file whose matrices are integers with scales, or half precision. */
#ifndef PACKED_FILES_H
#define PACKED_FILES_H
#include "model/ticket_store.h"
#include <math.h>
#include <pare_test.h>
#include <string.h>

typedef struct packed_maker {
    pare_model *m;
    pare_coded *coded;
    pare_rng rng;
} packed_maker;

/* Random bits, groups and offsets; group 5 is one that no kernel takes packed. */
static inline pare_status packed_weight(void *self, const char *name, pare_weight *w, bool vector,
                                        pare_err *err)
{
    static const size_t groups[] = {8, 16, 5, SIZE_MAX};
    packed_maker *const k = self;
    (void)err;
    if (!pare_has(w) || vector) return PARE_OK;
    pare_arena *const a = k->m->arena;
    const unsigned bits = 2 + (unsigned)pare_rng_below(&k->rng, 7);
    const bool affine = pare_rng_below(&k->rng, 2);
    const size_t asked = groups[pare_rng_below(&k->rng, 4)];
    const size_t group = asked < w->cols ? asked : w->cols, per_row = (w->cols + group - 1) / group;
    const int least = pare_int_groups_least(bits, affine),
              most = pare_int_groups_most(bits, affine);
    int8_t *const q = pare_alloc(a, w->rows * w->cols, 1);
    float *const scale = pare_alloc(a, w->rows * per_row, sizeof *scale);
    float *const offset = pare_alloc(a, w->rows * per_row, sizeof *offset);
    float *const data = pare_alloc(a, w->rows * w->cols, sizeof *data);
    for (size_t i = 0; i < w->rows * per_row; i++) {
        float low = INFINITY, high = -INFINITY;
        for (size_t j = 0; j < group && i % per_row * group + j < w->cols; j++) {
            const size_t at = i / per_row * w->cols + i % per_row * group + j;
            low = fminf(low, (float)pare_weight_at(w, at));
            high = fmaxf(high, (float)pare_weight_at(w, at));
        }
        offset[i] = affine ? low : 0;
        const float size = affine ? high - low : fmaxf(fabsf(low), fabsf(high));
        scale[i] = size > 0 ? size / (float)(affine ? most - least : most) : 1;
        if (affine) offset[i] -= scale[i] * (float)least;
        for (size_t j = 0; j < group && i % per_row * group + j < w->cols; j++) {
            const size_t at = i / per_row * w->cols + i % per_row * group + j;
            const double near =
                rint(((double)(float)pare_weight_at(w, at) - (double)offset[i]) / (double)scale[i]);
            q[at] = (int8_t)fmax(least, fmin(most, near));
        }
    }
    const pare_int_groups g = {.rows = w->rows,
                               .cols = w->cols,
                               .group = group,
                               .bits = bits,
                               .q = q,
                               .scale = scale,
                               .offset = affine ? offset : NULL};
    pare_int_groups_expand(data, &g);
    *w = (pare_weight){PARE_F32, w->rows, w->cols, data};
    pare_coded *const c = &k->coded[k->m->ncoded];
    const pare_status st = pare_coded_groups(c, a, &g, err);
    c->name = pare_strdup(a, name);
    k->m->ncoded++;
    return st;
}

/* Quantizes m, roughly and at random, and saves it. */
static inline void save_quantized(pare_model *m, const char *path, uint64_t seed)
{
    enum { MOST = 256 };
    char hex[PARE_SHA256_HEX];
    pare_err err = {0};
    packed_maker k = {m, pare_alloc(m->arena, MOST, sizeof *k.coded), pare_rng_at(seed, 9)};
    assert_non_null(k.coded);
    m->coded = k.coded;
    m->ncoded = 0;
    assert_ok(pare_model_each_weight(m, packed_weight, &k, &err), &err);
    assert_ok(pare_model_save(m, path, true, hex, &err), &err);
}

/* packed: to run as it is stored. */
static inline pare_model *load_packed(const char *path, bool packed)
{
    const pare_load_opts opts = {.packed = packed};
    pare_model *m = NULL;
    pare_err err = {0};
    pare_files *const files = pare_files_new_unhashed();
    assert_ok(pare_model_load_as(&m, path, &opts, files, &err), &err);
    pare_files_free(files);
    return m;
}
#endif
