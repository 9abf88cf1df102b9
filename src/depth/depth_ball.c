/* depth_ball.c - every input near the given ones: if every row of the input moves by at most r,
 * how far apart are the model before and the model after the cut then? cert/pair.c proves it;
 * here are the claims, each of (f, g, inputs, radius, norm) alone. Models that are no pair
 * (another number of blocks: the one-layer cuts) are proven one by one, which is coarser: |f -
 * g| at the given inputs, and how far each moves. */
#include "depth_ball.h"
#include "cert/ball.h"
#include "cert/prove.h"
#include "linalg/bounds.h"
#include <pare/depth.h>
#include <math.h>
#include <string.h>

#define UNSEEN 1e-9 /* of the outputs: rounding alone is not the same on every machine */

const char *const pare_depth_ball_norms[] = {"inf", "2", NULL};

/* How far a model alone may move from its outputs at the given inputs: its double stands between
 * both, in a ball of radius 0 as well. */
static pare_status moves_alone(pare_ub *out, const pare_model *m, const pare_inputs *set,
                               pare_neighborhood b, const pare_exec *exec, pare_err *err)
{
    pare_ball ball, centre;
    *out = pare_ub_inf();
    pare_status st = pare_prove_ball(&ball, m, m, set, b, exec, err);
    if (!st)
        st = pare_prove_ball(&centre, m, m, set, (pare_neighborhood){.radius = 0, .norm = b.norm},
                             exec, err);
    if (!st) *out = pare_ub_add(ball.moves, centre.moves);
    return st;
}

/* Models that are no pair: what lies between them on the inputs, and how far each may move. */
static pare_status one_by_one(pare_ub *out, const pare_model *f, const pare_model *g,
                              const pare_inputs *set, pare_neighborhood b, const pare_exec *exec,
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

void depth_ball(cert_builder *build, const pare_model *f, const pare_model *g,
                const pare_inputs *set, pare_neighborhood b, double scale, pare_ub apriori)
{
    pare_work *const w = &build->work;
    pare_ball ball;
    if (!w->st) w->st = pare_prove_ball(&ball, f, g, set, b, w->exec, w->err);
    if (!w->st && ball.refused) w->st = one_by_one(&ball.apart, f, g, set, b, w->exec, w->err);
    if (w->st) return;
    pare_claim c = pare_ball_claim(b.radius, b.norm);
    char text[40];
    pare_ball_text(text, b.radius);
    c.domain = pare_sprintf(w->arena, "every input whose %s are each within %s %s of those of %s",
                            f->embedding.ids ? "rows after the embedding (before positions)"
                                             : "feature rows",
                            text, pare_ball_norm_words[b.norm], build->cert->domain);
    if (!c.domain) w->st = pare_no_memory(w->err);
    c.value = fmax(pare_ub_min(ball.apart, apriori).v, UNSEEN * scale);
    add_statement(build, c);
    const double open = (double)(ball.rows - ball.certain) / (double)(ball.rows ? ball.rows : 1);
    c.kind = PARE_BALL_ROWS_CHANGED;
    c.value = ball.refused ? 1 : open > 0 ? fmin(1, nextafter(open, 2)) : 0;
    add_statement(build, c);
    c.kind = PARE_BALL_SCORE;
    c.value = fmax(ball.difference.v, UNSEEN * scale);
    if (pare_model_outputs(f) == 2) add_statement(build, c);
    if (ball.refused && !pare_cert_find(build->cert, PARE_BALL_APPLIES))
        add_statement(build, (pare_claim){.kind = PARE_BALL_APPLIES, .text = ball.refused});
}
