/* viterbi_portable.c - a step of the trellis in plain C. */
#include "viterbi_lanes.h"

int viterbi_portable(const viterbi_step *s)
{
    return step_any(s);
}
