/* graph_data.h - graphs, data sets, generators, metrics. */
#ifndef PARE_DATA_GRAPH_DATA_H
#define PARE_DATA_GRAPH_DATA_H
#include <pare/data.h>

/* ---- graphs ---------------------------------------------------------------------------------- */

/* The heterophilous-graphs keys, the gnn-benchmark CSR keys, the packed bits of amazon_photo. */
PARE_MUST_USE pare_status pare_graph_load_files(pare_graph_data *out, pare_arena *a,
                                                const char *path, pare_files *files, pare_err *err);
/* The masks of split number `split`, n each: the file's or, where it has none, 60/20/20 of the
 * nodes shuffled by pare_rng_at(0, split) (any split number will do). PARE_ERR_USAGE when the file
 * has masks but not so many. */
PARE_MUST_USE pare_status pare_graph_masks(const uint8_t **train, const uint8_t **val,
                                           const uint8_t **test, pare_arena *a,
                                           const pare_graph_data *g, size_t split, pare_err *err);

/* ---- data sets: inputs with targets ---------------------------------------------------------- */

/* The same through `files`, which then holds what was read: of a folder only its .npz. The data lie
 * in the arena. */
PARE_MUST_USE pare_status pare_dataset_load_files(pare_dataset *out, pare_arena *a,
                                                  const pare_model *m, const char *path,
                                                  const pare_data_opts *opts, pare_files *files,
                                                  pare_err *err);

/* ---- metrics --------------------------------------------------------------------------------- */

/* Mann-Whitney with mid-ranks for ties. PARE_ERR_INPUT when a class is missing. */
PARE_MUST_USE pare_status pare_auc(double *out, const double *score, const uint8_t *positive,
                                   size_t n, pare_err *err);
/* In the arena; then rows x classes logits of both, as often as wanted; then the figures, and
 * PARE_ERR_INPUT when no row was added. */
typedef struct pare_kl pare_kl;
PARE_MUST_USE pare_status pare_kl_new(pare_kl **out, pare_arena *a, size_t classes, pare_err *err);
PARE_MUST_USE pare_status pare_kl_add(pare_kl *k, const float *reference, const float *logits,
                                      size_t rows, pare_err *err);
PARE_MUST_USE pare_status pare_kl_scores(pare_kl_report *out, pare_kl *k, pare_err *err);
#endif
