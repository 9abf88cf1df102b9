/* probe_internal.h - what one sees of a model before any cut: what its weights and its stream look
 * like, which theorem applies and which hypothesis fails by what factor, and what each cut would
 * cost.
 *
 * Everything is an estimate or a measurement in f64; what is proven is a pare_ub. Figures that do
 * not apply are nan. */
#ifndef PARE_PLAN_PROBE_INTERNAL_H
#define PARE_PLAN_PROBE_INTERNAL_H
#include "base/json.h"
#include <pare/plan.h>

/* All of it; caller frees with cJSON_Delete. Keys: docs/probe.md. */
PARE_MUST_USE pare_status pare_probe_json(cJSON **out, const pare_probe *p, pare_err *err);
#endif
