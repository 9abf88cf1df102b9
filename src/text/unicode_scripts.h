/* unicode_scripts.h - runs of one script. Private to src/text. */
#ifndef PARE_TEXT_UNICODE_SCRIPTS_H
#define PARE_TEXT_UNICODE_SCRIPTS_H
#include "regex.h"

/* Each match is a run of one script; in the arena. */
PARE_MUST_USE pare_status pare_scripts_pattern(pare_regex **out, pare_arena *a, pare_err *err);
#endif
