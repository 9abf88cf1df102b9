/* export_like.h - folders like the one that a model came from (pare_export_like). */
#ifndef PARE_FORMATS_EXPORT_LIKE_H
#define PARE_FORMATS_EXPORT_LIKE_H
#include <pare/model.h>

/* By how many bytes the files that a loader reads would grow if pare_export_like wrote m, which is
 * not `in`; nothing is written. PARE_ERR_INPUT as there, as far as shapes say it. */
PARE_MUST_USE pare_status pare_export_like_growth(int64_t *out, const pare_model *m,
                                                  const pare_model *in, const char *source,
                                                  pare_dtype dtype, pare_err *err);
#endif
