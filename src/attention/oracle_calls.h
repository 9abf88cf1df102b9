/* oracle_calls.h - what the oracles of this module share about calls. */
#ifndef PARE_SRC_ORACLE_CALLS_H
#define PARE_SRC_ORACLE_CALLS_H
#include <pare/attention.h>

/* A qkv call is a partial one that is normalized at the end: m stays NULL. */
pare_call_partial oracle_partial_of(const pare_call *c);
/* How many keys query i sees. */
size_t oracle_visible_keys(const pare_call_partial *p, size_t i);
#endif
