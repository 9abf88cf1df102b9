/* dataset.h - what the readers of data sets share. Private to src/data. */
#ifndef PARE_DATA_DATASET_H
#define PARE_DATA_DATASET_H
#include "text_documents.h"
#include <pare/data.h>

/* A data set that is being read: inputs with their targets, all in one arena. */
typedef struct pare_data_reader {
    pare_arena *arena;   /* of the data */
    pare_arena *scratch; /* until all is read */
    pare_err *err;
    pare_files *files; /* through which every file is read */
    const pare_model *model;
    pare_dataset *out;
    size_t window; /* tokens per window of text, 0: chosen by pare_data_window */
    size_t n, capacity;
    pare_input *in;
    const int64_t **target;
} pare_data_reader;

PARE_MUST_USE pare_status pare_data_add(pare_data_reader *r, pare_input in, const int64_t *target);
/* One text as windows of r->window tokens; the ids (in the arena, n of them) are borrowed. */
PARE_MUST_USE pare_status pare_data_add_windows(pare_data_reader *r, const int64_t *ids, size_t n);
/* Checks that the model takes text, and its window against the context; a window of 0 becomes the
 * context, but at most 512. PARE_ERR_USAGE when it is longer than the context. */
PARE_MUST_USE pare_status pare_data_window(pare_data_reader *r);

/* A file of texts through the model's tokenizer. */
PARE_MUST_USE pare_status pare_data_read_texts(pare_data_reader *r, const char *path,
                                               pare_text_format format, const pare_data_opts *o);
/* `n` texts that the model writes itself. */
PARE_MUST_USE pare_status pare_data_write_texts(pare_data_reader *r, size_t n,
                                                const pare_data_opts *o);

/* Whether an .npz is one of the kinds of graphs that pare_graph_load reads. */
bool pare_npz_is_graph(const pare_npz *npz);
/* Integers of an array as int64, numbers as f64, in the arena; NULL when memory is out. */
PARE_MUST_USE int64_t *pare_array_ids(pare_arena *arena, const pare_array *a);
PARE_MUST_USE double *pare_array_numbers(pare_arena *arena, const pare_array *a);
/* The entries of an array that fits the model as in->ids or in->x. */
PARE_MUST_USE pare_status pare_input_fill(pare_input *in, pare_arena *arena, const pare_array *a,
                                          const pare_model *m, pare_err *err);
/* The file's name before the message, unless a reader of src/base has named it already. */
void pare_err_name_file(pare_err *err, const char *path);
#endif
