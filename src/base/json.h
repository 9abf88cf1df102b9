/* json.h - the grammar check that stands before cJSON. */
#ifndef PARE_SRC_JSON_H
#define PARE_SRC_JSON_H
#include <pare/json.h>

/* Strict JSON, or PARE_ERR_INPUT with line and column. cJSON alone lets pass what is none (1. 01
 * -.5, control characters), cuts long numbers, and does not say where it stopped. */
PARE_MUST_USE pare_status pare_json_check(const char *text, size_t bytes, pare_err *err);
#endif
