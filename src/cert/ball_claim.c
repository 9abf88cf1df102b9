/* ball_claim.c - the words in which certificates speak of a ball. */
#include "ball.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const pare_ball_norm_words[] = {"in every entry", "in the euclidean norm"};

void pare_ball_text(char text[40], double radius)
{
    snprintf(text, 40, "%.15g", radius);
    if (strtod(text, NULL) != radius) snprintf(text, 40, "%.17g", radius);
}

pare_claim pare_ball_claim(double radius, pare_ball_norm norm)
{
    return (pare_claim){
        .kind = PARE_BALL_OUTPUTS, .p = {radius}, .text = pare_ball_norm_words[norm]};
}

bool pare_ball_asked(double *radius, pare_ball_norm *norm, const pare_claim *c)
{
    if (c->kind != PARE_BALL_OUTPUTS || !(c->p[0] > 0)) return false;
    *radius = c->p[0];
    for (int k = PARE_BALL_MAX; k <= PARE_BALL_TWO; k++)
        if (strcmp(c->text, pare_ball_norm_words[k]) == 0) return *norm = (pare_ball_norm)k, true;
    return false;
}
