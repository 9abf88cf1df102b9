/* dataset.h - what the readers of data sets share. Private to src/data. */
#ifndef PARE_DATA_DATASET_H
#define PARE_DATA_DATASET_H
#include <pare/run.h>

/* Collects inputs with their targets, all in one arena. */
typedef struct pare_gather {
    pare_arena *arena;
    const pare_model *model;
    pare_files *files; /* through which every file is read */
    size_t n, room;
    pare_input *in;
    const int64_t **target;
    pare_text_notes notes;
} pare_gather;

PARE_MUST_USE pare_status pare_gather_add(pare_gather *g, pare_input in, const int64_t *target,
                                          pare_err *err);
/* One text as windows of `window` tokens; the ids (in the arena, n of them) are borrowed. */
PARE_MUST_USE pare_status pare_gather_windows(pare_gather *g, const int64_t *ids, size_t n,
                                              size_t window, pare_err *err);
/* `asked`, or the context but at most 512. PARE_ERR_USAGE when it is longer than the context. */
PARE_MUST_USE pare_status pare_window_of(size_t *window, const pare_model *m, size_t asked,
                                         pare_err *err);

PARE_MUST_USE pare_status pare_text_gather(pare_gather *g, const char *path, size_t window,
                                           pare_err *err);
PARE_MUST_USE pare_status pare_tsv_gather(pare_gather *g, size_t *skipped, const char *path,
                                          pare_err *err);
/* Whether an .npz is one of the kinds of graphs that pare_graph_load reads. */
bool pare_npz_is_graph(const pare_npz *npz);
/* Integers of an array as int64, in the arena; NULL when memory is out. */
PARE_MUST_USE int64_t *pare_array_ids(pare_arena *arena, const pare_array *a);
PARE_MUST_USE double *pare_array_numbers(pare_arena *arena, const pare_array *a);
#endif
