/* Every input near the given ones (spec, 5.5): if every row of the input moves by at most r, how
 * far apart are the model before and the model after the cut then? cert/pair.c proves it; here are
 * the words. The statement is one of (f, g, inputs, radius, norm) alone: a verifier reads radius
 * and norm from its name. Models that are no pair (another number of blocks: the one-layer cuts)
 * are proven one by one, which is coarser: |f - g| at the given inputs, and how far each moves. */
#include "ball.h"
#include <pare/depth.h>
#include <pare/publish.h>
#include <math.h>
#include <string.h>

#define OUTPUTS ": outputs"
#define UNSEEN  1e-9 /* of the outputs: rounding alone is not the same on every machine */

static const char *const in_norm[] = {" in every entry", " in the euclidean norm"};
const char *const pare_depth_ball_norms[] = {"inf", "2", NULL};

/* "ball of radius 0.1 in the euclidean norm" */
const char *pare_depth_ball_name(pare_arena *a, double radius, pare_ball_norm norm)
{
    char text[40];
    pare_ball_text(text, radius);
    return pare_sprintf(a, PARE_BALL_NAME "%s%s", text, in_norm[norm]);
}

depth_ball_of depth_ball_asked(const char *name)
{
    depth_ball_of b = {0};
    const char *rest;
    if (!name || !pare_ball_radius(&b.radius, &rest, name)) return (depth_ball_of){0};
    for (int k = PARE_BALL_MAX; k <= PARE_BALL_TWO; k++) {
        const size_t n = strlen(in_norm[k]);
        if (strncmp(rest, in_norm[k], n) != 0) continue;
        b.norm = (pare_ball_norm)k;
        if (rest[n] == '\0' || strcmp(rest + n, OUTPUTS) == 0) return b;
    }
    return (depth_ball_of){0};
}

static const char *domain_of(pare_arena *a, const pare_model *f, depth_ball_of b, const char *set)
{
    char text[40];
    pare_ball_text(text, b.radius);
    return pare_sprintf(a, "every input whose %s are each within %s%s of those of %s",
                        f->stem.ids ? "rows after the embedding (before positions)"
                                    : "feature rows",
                        text, in_norm[b.norm], set);
}

/* How far a model alone may move from its outputs at the given inputs: its double stands between
 * both, in a ball of radius 0 as well. */
static pare_status moves_alone(pare_ub *out, const pare_model *m, const pare_inputs *set,
                               depth_ball_of b, const pare_exec *exec, pare_err *err)
{
    pare_ball ball, centre;
    *out = pare_ub_inf();
    pare_status st = pare_prove_ball(&ball, m, m, set, b.radius, b.norm, exec, err);
    if (!st) st = pare_prove_ball(&centre, m, m, set, 0, b.norm, exec, err);
    if (!st) *out = pare_ub_add(ball.moves, centre.moves);
    return st;
}

/* Models that are no pair: what lies between them on the inputs, and how far each may move. */
static pare_status one_by_one(pare_ub *out, const pare_model *f, const pare_model *g,
                              const pare_inputs *set, depth_ball_of b, const pare_exec *exec,
                              pare_err *err)
{
    pare_ub moves[2];
    pare_gap gap;
    pare_status st = pare_prove_gap(&gap, f, g, set, exec, err);
    if (!st) st = moves_alone(&moves[0], f, set, b, exec, err);
    if (!st) st = moves_alone(&moves[1], g, set, b, exec, err);
    if (!st) *out = pare_ub_add(gap.proven, pare_ub_add(moves[0], moves[1]));
    return st;
}

static bool state(pare_statement *out, size_t *n, pare_arena *a, const char *name, const char *what,
                  const char *norm, const char *domain, double bound)
{
    const char *const full = pare_sprintf(a, "%s%s", name, what);
    out[(*n)++] = (pare_statement){full, norm, domain, 1, bound};
    return full != NULL;
}

pare_status depth_ball(pare_statement *out, size_t *n, const char **why, pare_arena *a,
                       const pare_model *f, const pare_model *g, const pare_inputs *set,
                       depth_ball_of b, const char *domain, double scale, pare_ub apriori,
                       const pare_exec *exec, pare_err *err)
{
    pare_ball ball;
    pare_status st = pare_prove_ball(&ball, f, g, set, b.radius, b.norm, exec, err);
    if (!st && ball.refused) st = one_by_one(&ball.apart, f, g, set, b, exec, err);
    if (st) return st;
    const char *const name = pare_depth_ball_name(a, b.radius, b.norm);
    const char *const where = domain_of(a, f, b, domain);
    const double apart = fmax(pare_ub_min(ball.apart, apriori).v, UNSEEN * scale);
    const double open = (double)(ball.rows - ball.certain) / (double)(ball.rows ? ball.rows : 1);
    *n = 0;
    *why = ball.refused;
    bool ok = name && where && state(out, n, a, name, OUTPUTS, PARE_NORM_HEADLINE, where, apart);
    ok = ok && state(out, n, a, name, ": rows whose largest entry may differ",
                     "share of the output rows", where, ball.refused ? 1 : open);
    if (ok && pare_model_outputs(f) == 2)
        ok = state(out, n, a, name, ": the second output minus the first",
                   "largest absolute difference over the rows", where,
                   fmax(ball.difference.v, UNSEEN * scale));
    return ok ? PARE_OK : pare_no_memory(err);
}
