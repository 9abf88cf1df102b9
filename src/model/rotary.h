/* rotary.h - positions that turn queries and keys. */
#ifndef PARE_SRC_ROTARY_H
#define PARE_SRC_ROTARY_H
#include "forward_parts.h"

/* Turns q and k (packed rows of all heads) in place: plane f of a head by position * freqs[f].
 * Keys shared by several heads are turned once. Angles, sines and cosines are f64 in both passes.
 */
PARE_MUST_USE pare_status rotate(pass *p, rows *q, rows *k, const pare_attn *a);
#endif
