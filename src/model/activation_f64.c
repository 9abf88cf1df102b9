/* activation_f64.c - activations, entry by entry in f64, and their Lipschitz constants.
 *
 * Largest slopes: relu, tanh 1; gelu Phi(t) + t phi(t) at t = sqrt 2, 1.12890...; its tanh form
 * 1.12899...; silu 1.09983... The constants below are above them. */
#include "linalg/elementary.h"
#include "model_facts.h"
#include <math.h>

double pare_act_f64(pare_act act, double x)
{
    static const double root_half = 0.70710678118654752440, root_2_pi = 0.79788456080286535588;
    switch (act) {
    case PARE_ACT_NONE:
        return x;
    case PARE_ACT_RELU:
        return x > 0 ? x : 0;
    case PARE_ACT_GELU:
        return 0.5 * x * (1 + pare_erf(x * root_half));
    case PARE_ACT_GELU_TANH:
        return 0.5 * x * (1 + pare_tanh(root_2_pi * (x + 0.044715 * x * x * x)));
    case PARE_ACT_SILU:
        return x / (1 + pare_exp(-x));
    case PARE_ACT_TANH:
        return pare_tanh(x);
    }
    return NAN;
}

double pare_act_lipschitz(pare_act act)
{
    switch (act) {
    case PARE_ACT_NONE:
    case PARE_ACT_RELU:
    case PARE_ACT_TANH:
        return 1;
    case PARE_ACT_GELU:
        return 1.12891;
    case PARE_ACT_GELU_TANH:
        return 1.129;
    case PARE_ACT_SILU:
        return 1.09984;
    }
    return INFINITY;
}
