/* task_cases.h - small files for the tests of the tasks. */
#ifndef TASK_CASES_H
#define TASK_CASES_H
#include "base/array.h"
#include <pare_test.h>

/* Two components: a ring of `ring` nodes and a path of two behind it; label = node % classes; every
 * node belongs to the part node % 4 (0, 1: training, 2: validation, 3: test). */
typedef struct small_graph {
    size_t ring, classes;
    int64_t odd_label; /* of the last node, when not 0 */
    float odd_feature; /* of node 3, feature 1 */
    bool one_class_val, no_test;
} small_graph;

static inline void write_graph(const char *path, small_graph s)
{
    enum { most = 64 };
    static const char *const names[] = {"node_features", "node_labels", "edges",
                                        "train_masks",   "val_masks",   "test_masks"};
    float x[2 * most];
    int64_t label[most], edge[2 * most];
    uint8_t mask[3][most] = {{0}};
    const size_t n = s.ring + 2;
    pare_err err = {0};
    assert_true(n <= most);
    for (size_t i = 0; i < n; i++) {
        x[2 * i] = (float)i;
        x[2 * i + 1] = (float)(i % 3);
        label[i] = (int64_t)(i / 4 % s.classes);
        mask[0][i] = i % 4 < 2;
        mask[1][i] = i % 4 == 2;
        mask[2][i] = !s.no_test && i % 4 == 3;
        if (s.one_class_val && mask[1][i]) label[i] = 0;
        edge[2 * i] = (int64_t)i;
        edge[2 * i + 1] = (int64_t)(i + 1 == s.ring ? 0 : i + 1);
    }
    x[7] += s.odd_feature;
    if (s.odd_label) label[n - 1] = s.odd_label;
    const pare_array arrays[] = {
        {PARE_F32, 2, {n, 2}, x},        {PARE_I64, 1, {n}, label},
        {PARE_I64, 2, {n - 1, 2}, edge}, {PARE_BOOL, 2, {1, n}, mask[0]},
        {PARE_BOOL, 2, {1, n}, mask[1]}, {PARE_BOOL, 2, {1, n}, mask[2]},
    };
    assert_ok(pare_npz_write(path, 6, names, arrays, false, true, &err), &err);
}
#endif
