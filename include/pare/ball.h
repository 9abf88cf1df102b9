/* pare/ball.h - two models on every input near the given ones.
 *
 * A ball around an input is every input whose rows are each within `radius` of its rows: of the
 * given vectors, or for models that take ids of the rows of the embedding that the ids name (before
 * positions, map and norm); all rows may move at once. */
#ifndef PARE_BALL_H
#define PARE_BALL_H
#include <pare/cert.h>

typedef enum pare_ball_norm {
    PARE_BALL_MAX, /* no entry of a row moves by more than the radius */
    PARE_BALL_TWO  /* no row moves by more than it in the euclidean norm */
} pare_ball_norm;

typedef struct pare_ball {
    pare_ub apart;       /* largest |f - g| of an output entry */
    pare_ub rows2;       /* largest euclidean distance of an output row */
    pare_ub difference;  /* two outputs: largest |(f_1 - f_0) - (g_1 - g_0)|; else +inf */
    pare_ub moves;       /* how far an output entry of f itself may move */
    size_t rows;         /* output rows */
    size_t certain;      /* whose largest entry is the same one in both models, throughout */
    const char *refused; /* why nothing is said (all bounds are +inf), or NULL */
} pare_ball;

/* Over the balls around all inputs of the set. f and g have the same blocks, norms, feed-forward
 * parts, stem and top; their attentions may be of any kinds (src/cert/pair.c). The bounds hold for
 * the real-number functions of the stored weights, grow with the radius, and for radius 0 are the
 * difference on the inputs themselves up to rounding. A trained model with several norms may get a
 * finite but useless bound: each norm may stretch a distance by the inverse of its row's length. */
PARE_MUST_USE pare_status pare_prove_ball(pare_ball *out, const pare_model *f, const pare_model *g,
                                          const pare_inputs *set, double radius,
                                          pare_ball_norm norm, const pare_exec *exec,
                                          pare_err *err);

/* ---- the words of certificates (src/cert/ball_words.c) -------------------------------------- */

extern const char *const pare_ball_norm_words[]; /* in the order of pare_ball_norm */
/* As short as gives the same number again. */
void pare_ball_text(char text[40], double radius);
/* What to ask pare_publish for (its `ask`): claims for every input whose rows are each within
 * `radius` > 0 of the given ones. */
pare_claim pare_ball_claim(double radius, pare_ball_norm norm);
/* Whether a claim is that of a ball, and of which. */
bool pare_ball_asked(double *radius, pare_ball_norm *norm, const pare_claim *c);
#endif
