/* elementary.c - exp, tanh, erf, sin, cos and powers in f64 for the midpoints of proofs: no proof
 * assumes anything about the mathematical library of the machine. u = 2^-53; operations round to
 * nearest.
 *
 * exp. x = k ln 2 + r, |r| < 0.3467, ln 2 in two parts, the first of 36 bits, so that k times it is
 * exact, and so is x minus that (the two are within a factor of two). The other subtraction rounds
 * by 2^-55 = u/4, what is left of ln 2 is below 2^-80.
 *
 *     e^r = 1 + (r + r^2 q(r)),    q(r) = 1/2 + r/6 + ... + r^11/13!,    rest below 2^-57.7.
 *
 * The three sums that make q < 0.58 of pairs of terms round by u/2 at most, what is inside them by
 * less than 0.1 u: q is within 1.6 u, r^2 < 0.121 within u/16, so r^2 q < 0.07 is within 0.3 u.
 * The sum below 0.5 rounds by u/4, the last one by u/2 for e^r < 1, else by u. With the error of r
 *
 *     e^r < 1:   0.25 + (0.30 + 0.25 + 0.5 + 0.04) / 0.707 < 1.8 u,
 *     e^r >= 1:  0.25 + (0.30 + 0.25 + 1 + 0.04)           < 1.9 u      of e^r; we say 2 u.
 *
 * tanh, 0.5 <= t < 20: (1 - e) / (1 + e), e = e^(-2t) <= 0.368: 3.4 u, 2.1 u and u of the quotient;
 * from 20 on 1, within u / 8. t < 0.5: the continued fraction
 *
 *     tanh t = t / (1 + t^2 / (3 + t^2 / (5 + ... + t^2 / 15))).
 *
 * All its terms are positive. A level rounds by 2 u and damps what it is given by
 * t^2 / ((2n-1)(2n+1)) <= 1/12: less than 3 u in all and u for the last quotient. What is left out,
 * at most t^2 / 17, is damped by the product of all levels, 2.3e-19. So tanh is within 8 u.
 *
 * erf, by its Taylor series at the nearest c = k / 8, with h = x - c exact, |h| <= 1/16:
 *
 *     erf(c + h) = erf(c) + g sum_n a_n h^(n+1) / (n+1),    g = 2/sqrt(pi) e^(-c^2),
 *     e^(-2ch - h^2) = sum_n a_n h^n:   a_0 = 1,   a_1 = -2 c,
 *                                       (n+1) a_(n+1) = -2 c a_n - 2 a_(n-1).
 *
 * By Cauchy's estimate on |h| = 1, g |a_n| <= 1.129 e^(-c^2 + 2c + 1) <= 8.4, so the terms from n =
 * 14 on sum to less than 2^-60. a_n carries at most 5 n u of the n-th term of the majorant
 * e^(2c|h| + h^2), the terms of the sum 5 n + 6 u with n <= 13; g times the majorant's integral is
 * below 0.0716, so the sum is off by 71 * 0.0716 u < 5.1 u at the very worst; erf(c) and the last
 * sum add u / 2 and u / 2: within 7 u, absolute. From 6 on erf is 1 within u / 5.
 *
 * sin, cos. r = (x - k P1) - k P2, P1 + P2 = pi/2 to 2^-109, |k| < 2^30: the fused first step
 * rounds by u/2, the second by u/2 and 2^-77, so r is off by 1.01 u and |r| < 0.786. Taylor's
 * polynomials to r^17 and r^16 leave 2^-58; sin r = r + r s p(s) and cos r = 1 - (s/2 - s^2 q(s)),
 * s = r^2, round by less than u and 1.2 u: within 3 u, absolute. Beyond 2^30 libm answers and
 * nothing is proven. */
#include "dd.h"
#include "elementary.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

/* 2^n for -1022 <= n <= 1023 */
static double two_to(int n)
{
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

double pare_exp(double x)
{
    if (!(x >= -746)) return x < -746 ? 0 : NAN;
    if (!(x <= 710)) return INFINITY;
    const double k = (x * 0x1.71547652b82fep+0 + 0x1.8p52) - 0x1.8p52; /* the nearest integer */
    const double r = (x - k * 0x1.62e42fefa0000p-1) - k * 0x1.cf79abc9e3b3ap-40;
    const double s = r * r, s2 = s * s; /* pairs of terms, which a CPU works on side by side */
    const double q0 = 1.0 / 2 + r * (1.0 / 6), q1 = 1.0 / 24 + r * (1.0 / 120);
    const double q2 = 1.0 / 720 + r * (1.0 / 5040), q3 = 1.0 / 40320 + r * (1.0 / 362880);
    const double q4 = 1.0 / 3628800 + r * (1.0 / 39916800);
    const double q5 = 1.0 / 479001600 + r * (1.0 / 6227020800); /* 1/12!, 1/13! */
    const double q = (q0 + s * q1) + s2 * ((q2 + s * q3) + s2 * (q4 + s * q5));
    const double e = 1 + (r + s * q);
    const int n = (int)k, half = n / 2; /* two steps: 2^1024 and 2^-1075 are no doubles */
    return e * two_to(half) * two_to(n - half);
}

double pare_tanh(double x)
{
    const double t = fabs(x);
    if (t >= 20) return x < 0 ? -1 : 1;
    if (!(t < 0.5)) { /* a nan too */
        const double e = pare_exp(-2 * t), y = (1 - e) / (1 + e);
        return x < 0 ? -y : y;
    }
    const double s = t * t;
    double d = 15;
    for (int n = 13; n >= 1; n -= 2) d = n + s / d;
    return x / d;
}

/* erf(k/8) and 2/sqrt(pi) e^(-(k/8)^2) */
static const double at_eighths[49][2] = {
    {0x0.0p+0, 0x1.20dd750429b6dp+0},
    {0x1.1f5e1a35c3b89p-3, 0x1.1c62fa1e869b6p+0},
    {0x1.1af54e232d609p-2, 0x1.0f5d1602f7e41p+0},
    {0x1.9dd0d2b721f39p-2, 0x1.f5f0cdaf15313p-1},
    {0x1.0a7ef5c18edd2p-1, 0x1.c1efca49a5011p-1},
    {0x1.3f196dcd0f135p-1, 0x1.86e9694134b9ep-1},
    {0x1.6c1c9759d0e5fp-1, 0x1.492e42d78d2c5p-1},
    {0x1.91724951b8fc6p-1, 0x1.0cab61f084b93p-1},
    {0x1.af767a741088bp-1, 0x1.a911f096fbc26p-2},
    {0x1.c6dad2829ec62p-1, 0x1.45e99bcbb7915p-2},
    {0x1.d8865d98abe01p-1, 0x1.e4652fadcb6b2p-3},
    {0x1.e5768c3b4a3fcp-1, 0x1.5ce595c455b0ap-3},
    {0x1.eea5557137ae0p-1, 0x1.e723726b824a9p-4},
    {0x1.f4f693b67bd77p-1, 0x1.499d478bca735p-4},
    {0x1.f92d077f8d56dp-1, 0x1.b055303221015p-5},
    {0x1.fbe61eef4cf6ap-1, 0x1.12ceb37ff9bc3p-5},
    {0x1.fd9ae142795e3p-1, 0x1.529b9e8cf9a1ep-6},
    {0x1.fea4218d6594ap-1, 0x1.94624e78e0fafp-7},
    {0x1.ff404760319b4p-1, 0x1.d4143a9dfe965p-8},
    {0x1.ff9960f3eb327p-1, 0x1.06918b6355624p-8},
    {0x1.ffcaa8f4c9beap-1, 0x1.1d83170fbf6fbp-9},
    {0x1.ffe514bbdc197p-1, 0x1.2ce898809244ep-10},
    {0x1.fff2cfb0453d9p-1, 0x1.3360ccd23db3ap-11},
    {0x1.fff9ba420e834p-1, 0x1.30538fbb77ecdp-12},
    {0x1.fffd1ac4135f9p-1, 0x1.2408e9ba3327fp-13},
    {0x1.fffeb3ebb267bp-1, 0x1.0f9e1b4dd36dfp-14},
    {0x1.ffff6f9f67e55p-1, 0x1.e9b5e8d00ce77p-16},
    {0x1.ffffc316d9ed0p-1, 0x1.abe09e9144b5ep-17},
    {0x1.ffffe710d565ep-1, 0x1.6a597219a93dap-18},
    {0x1.fffff618c3da6p-1, 0x1.296a70f414053p-19},
    {0x1.fffffc2f171e3p-1, 0x1.d9371e2ff7c35p-21},
    {0x1.fffffe92ced93p-1, 0x1.6ce1aa3fd7bddp-22},
    {0x1.ffffff7b91176p-1, 0x1.10b1488aeb235p-23},
    {0x1.ffffffd169d0cp-1, 0x1.8b0cfce0579e0p-25},
    {0x1.fffffff01a8b6p-1, 0x1.155a09065d4f7p-26},
    {0x1.fffffffabd229p-1, 0x1.7974e743dea3dp-28},
    {0x1.fffffffe4fa30p-1, 0x1.f1e3523b41d7dp-30},
    {0x1.ffffffff79626p-1, 0x1.3e44e45301b92p-31},
    {0x1.ffffffffd759dp-1, 0x1.8a61745ec7d1dp-33},
    {0x1.fffffffff4188p-1, 0x1.d9a880f306bd8p-35},
    {0x1.fffffffffc9e8p-1, 0x1.13af4f04f9998p-36},
    {0x1.ffffffffff11ap-1, 0x1.370ab8327af5ep-38},
    {0x1.ffffffffffc05p-1, 0x1.5422ef5d8949dp-40},
    {0x1.ffffffffffef8p-1, 0x1.68823e52970bep-42},
    {0x1.fffffffffffbep-1, 0x1.7258610b3b233p-44},
    {0x1.ffffffffffff0p-1, 0x1.70beaf9c7ffb6p-46},
    {0x1.ffffffffffffcp-1, 0x1.63daf8b4b1e0cp-48},
    {0x1.fffffffffffffp-1, 0x1.4cd9c04158cd7p-50},
    {0x1.0000000000000p+0, 0x1.2dc119095729fp-52},
};

double pare_erf(double x)
{
    static const double over[15] = {0,        1,        1.0 / 2,  1.0 / 3,  1.0 / 4,
                                    1.0 / 5,  1.0 / 6,  1.0 / 7,  1.0 / 8,  1.0 / 9,
                                    1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14};
    const double t = fabs(x);
    if (!(t < 6)) return isnan(x) ? x : x < 0 ? -1 : 1;
    const double k = floor(8 * t + 0.5), c = k / 8, h = t - c;
    double before = 0, a = 1, power = h, sum = 0; /* a_(n-1), a_n, h^(n+1) */
    for (int n = 0; n < 14; n++) {
        sum += a * power * over[n + 1];
        const double next = -2 * (c * a + before) * over[n + 1];
        before = a;
        a = next;
        power *= h;
    }
    const double *const at = at_eighths[(size_t)k], y = at[0] + at[1] * sum;
    return x < 0 ? -y : y;
}

void pare_sincos(double x, double *sine, double *cosine)
{
    if (!(fabs(x) <= PARE_SINCOS_MOST)) {
        *sine = sin(x);
        *cosine = cos(x);
        return;
    }
    const double k = floor(x * 0x1.45f306dc9c883p-1 + 0.5); /* 2 / pi */
    const double r = fma(-k, 0x1.921fb54442d18p+0, x) - k * 0x1.1a62633145c07p-54, s = r * r;
    double p = 1.0 / 355687428096000; /* 1/17! */
    p = p * s - 1.0 / 1307674368000;
    p = p * s + 1.0 / 6227020800;
    p = p * s - 1.0 / 39916800;
    p = p * s + 1.0 / 362880;
    p = p * s - 1.0 / 5040;
    p = p * s + 1.0 / 120;
    p = p * s - 1.0 / 6;
    double q = 1.0 / 20922789888000; /* 1/16! */
    q = q * s - 1.0 / 87178291200;
    q = q * s + 1.0 / 479001600;
    q = q * s - 1.0 / 3628800;
    q = q * s + 1.0 / 40320;
    q = q * s - 1.0 / 720;
    q = q * s + 1.0 / 24;
    const double a = r + r * (s * p), b = 1 - (0.5 * s - s * s * q);
    const int quarter = (int)(k - 4 * floor(k / 4));
    *sine = quarter % 2 ? b : a;
    *cosine = quarter % 2 ? a : b;
    if (quarter >= 2) *sine = -*sine;
    if (quarter == 1 || quarter == 2) *cosine = -*cosine;
}

/* In double-double, then once to f64. */
double pare_power(double base, double numerator, double denominator)
{
    const dd share = dd_div_d(dd_of(numerator), denominator);
    return pare_dd_exp(dd_mul(pare_dd_log(base), share)).hi;
}
