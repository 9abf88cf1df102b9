/* import.h - the importers: each turns what it finds into a pare_model, or says it is not its kind.
 */
#ifndef PARE_SRC_IMPORT_H
#define PARE_SRC_IMPORT_H
#include <pare/model.h>

/* Everything that is not a file of ours, read through `files`. Fills a fresh model; the caller runs
 * pare_model_check. PARE_ERR_INPUT with what was found and what is understood when nothing fits. */
PARE_MUST_USE pare_status import_any(pare_model **out, const char *path, const pare_load_opts *opts,
                                     pare_files *files, pare_err *err);
#endif
