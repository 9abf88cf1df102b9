/* elementary.h - exp, tanh, erf, sin, cos and powers in f64 with proven errors, the same bits
 * on every machine.
 *
 * The midpoints of proofs use them instead of libm, of whose errors nothing is known for certain.
 * u = 2^-53. Bounds take pare_exp_up and its like (pare/linalg.h), which are tighter and slower. */
#ifndef PARE_LINALG_ELEMENTARY_H
#define PARE_LINALG_ELEMENTARY_H

/* e^x within 2 u of itself where it is at least 2^-1022, else within 2^-1074; inf beyond f64. */
double pare_exp(double x);
double pare_tanh(double x); /* within 8 u of itself */
double pare_erf(double x);  /* within 8 u, absolute */
/* Within 3 u, absolute, for |x| <= PARE_SINCOS_MOST; beyond, what libm says. */
#define PARE_SINCOS_MOST 0x1p30
void pare_sincos(double x, double *sine, double *cosine);
/* base^(numerator / denominator), base > 0: within 1.01 u of itself in the range of normal numbers.
 */
double pare_power(double base, double numerator, double denominator);
#endif
