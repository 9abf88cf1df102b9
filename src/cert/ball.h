/* ball.h - two models on every input near the given ones.
 *
 * A ball around an input is every input whose rows are each within `radius` of its rows: of the
 * given vectors, or for models that take ids of the rows of the embedding that the ids name (before
 * positions, map and norm); all rows may move at once. */
#ifndef PARE_CERT_BALL_H
#define PARE_CERT_BALL_H
#include <pare/cert.h>

/* ---- the words of certificates (src/cert/ball_claim.c) --------------------------------------- */

/* As short as gives the same number again. */
void pare_ball_text(char text[40], double radius);
/* Whether a claim is that of a ball, and of which. */
bool pare_ball_asked(double *radius, pare_ball_norm *norm, const pare_claim *c);
#endif
