/* pare/elementary.h - exp, tanh and erf in f64 with proven errors, the same bits on every machine.
 *
 * The midpoints of proofs use them instead of libm, of whose errors nothing is known for certain.
 * u = 2^-53. Bounds take pare_exp_up and its like (pare/linalg.h), which are tighter and slower. */
#ifndef PARE_ELEMENTARY_H
#define PARE_ELEMENTARY_H

/* e^x within 4 u of itself where it is at least 2^-1022, else within 2^-1074; inf beyond f64. */
double pare_exp(double x);
double pare_tanh(double x); /* within 8 u of itself */
double pare_erf(double x);  /* within 8 u, absolute */

#endif
