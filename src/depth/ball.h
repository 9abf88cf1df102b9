/* ball.h - what a certificate of depth says about every input near the given ones (balls.c). */
#ifndef PARE_SRC_DEPTH_BALL_H
#define PARE_SRC_DEPTH_BALL_H
#include <pare/ball.h>

enum { DEPTH_BALL_STATEMENTS = 3 }; /* of one ball, at most */

/* The ball whose statements a certificate asks for; its radius is 0 where a name is about none. */
typedef struct depth_ball_of {
    double radius;
    pare_ball_norm norm;
} depth_ball_of;
depth_ball_of depth_ball_asked(const char *name);

/* How far f and g are apart on all inputs within the radius of those of the set: outputs, rows
 * whose largest entry may differ, and the difference of two outputs. `domain` says which inputs
 * those of the set are; `scale`: the largest output there; `apriori`: another bound that holds on
 * the whole ball (+inf: none); the smaller one counts. *why: NULL, or why the two are no pair (then
 * each is proven by itself, and nothing is said of their labels). Texts live in the arena. */
PARE_MUST_USE pare_status depth_ball(pare_statement *out, size_t *n, const char **why,
                                     pare_arena *a, const pare_model *f, const pare_model *g,
                                     const pare_inputs *set, depth_ball_of b, const char *domain,
                                     double scale, pare_ub apriori, const pare_exec *exec,
                                     pare_err *err);
#endif
