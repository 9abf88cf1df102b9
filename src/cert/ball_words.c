/* The words in which certificates speak of a ball. */
#include <pare/ball.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void pare_ball_text(char text[40], double radius)
{
    snprintf(text, 40, "%.15g", radius);
    if (strtod(text, NULL) != radius) snprintf(text, 40, "%.17g", radius);
}

bool pare_ball_radius(double *radius, const char **rest, const char *name)
{
    const size_t n = strlen(PARE_BALL_NAME);
    char *end = NULL;
    if (strncmp(name, PARE_BALL_NAME, n) != 0) return false;
    *radius = strtod(name + n, &end);
    *rest = end;
    return end != name + n && *radius > 0 && isfinite(*radius);
}
