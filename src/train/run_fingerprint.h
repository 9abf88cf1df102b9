/* run_fingerprint.h - which run it is: everything its result depends on, line by line. */
#ifndef PARE_SRC_RUN_FINGERPRINT_H
#define PARE_SRC_RUN_FINGERPRINT_H
#include "base/json.h"
#include <pare/train.h>

/* PARE_ERR_USAGE naming the option that makes no sense. */
PARE_MUST_USE pare_status train_opts_check(const pare_model *start, const pare_train_opts *o,
                                           pare_err *err);
/* Caller frees with cJSON_Delete. */
PARE_MUST_USE pare_status run_fingerprint(cJSON **out, const pare_model *start,
                                          const pare_lesson *lesson, const pare_train_opts *o,
                                          pare_err *err);
#endif
