/* seedlm_portable.c - the spans of seeds on any CPU. */
#include "seedlm_lanes.h"

size_t seedlm_portable(seedlm_hit *to, const seedlm_scan *s)
{
    return scan_any(to, s);
}
