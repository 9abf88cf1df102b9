/* gemv_portable.c - pare_panels_apply for every CPU. */
#include "gemv_tile.h"

void gemv_portable(const gemv_job *j)
{
    gemv_all(j);
}
