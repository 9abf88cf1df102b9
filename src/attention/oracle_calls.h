/* oracle_calls.h - what the oracles of this room share about calls. */
#ifndef PARE_SRC_ORACLE_CALLS_H
#define PARE_SRC_ORACLE_CALLS_H
#include <pare/oracle.h>

/* A qkv call is a partial one that normalises in the end: m stays NULL. */
pare_call_partial oracle_as_partial(const pare_call *c);
/* How many keys query i sees. */
size_t oracle_visible(const pare_call_partial *p, size_t i);
#endif
