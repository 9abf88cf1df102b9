/* depth_ball.h - certificates for every input near the given ones (depth_ball.c). */
#ifndef PARE_SRC_DEPTH_DEPTH_BALL_H
#define PARE_SRC_DEPTH_DEPTH_BALL_H
#include "cert/prove.h"

/* How far f and g are apart on all inputs within the radius of those of the set: outputs, rows
 * whose largest entry may differ, and the difference of two outputs. `scale`: the largest output
 * there; `apriori`: another bound that holds on the whole ball (+inf: none); the smaller one
 * counts. Models that are no pair are proven one by one, nothing is said of their labels, and a
 * hypothesis says why. Texts live in the arena. */
void depth_ball(cert_builder *build, const pare_model *f, const pare_model *g,
                const pare_inputs *set, pare_neighborhood b, double scale, pare_ub apriori);
#endif
