/* plan_directions.h - what each direction offers to a plan. Private to src/plan. */
#ifndef PARE_SRC_STUDY_PLAN_WAYS_H
#define PARE_SRC_STUDY_PLAN_WAYS_H
#include <pare/plan.h>

enum { PLAN_SETTINGS = 8 };
/* The settings worth trying, mildest first; returns how many. `folder`: of a Hugging Face folder. */
size_t plan_settings(double out[PLAN_SETTINGS], pare_plan_direction direction, const pare_model *m,
                     bool folder);
/* Beyond the settings: where a cut changes nothing, and the deepest worth a look; nan where the
 * settings go that far. */
typedef struct plan_ends {
    double mildest, deepest;
} plan_ends;
plan_ends plan_ends_of(pare_plan_direction direction, const pare_model *m, bool folder);
/* What a model does not allow, or what overflows: to be told, and not an error of the study. */
bool plan_refused(pare_status st);
#endif
