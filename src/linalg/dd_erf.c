/* dd_erf.c - erf in double-double, and why it is within one unit (16 v^2, v = 2^-53).
 *
 * Taylor's series at the nearest c = k / 16, with h = |x| - c, |h| <= 1/32 (h is exact as a pair):
 *
 *     erf(c + h) = erf(c) + sum_m a_m h^m,    a_m = g b_(m-1) / m,    g = 2/sqrt(pi) e^(-c^2),
 *     e^(-2ch - h^2) = sum_n b_n h^n:   b_0 = 1,   b_1 = -2 c,
 *                                       (n+1) b_(n+1) = -2 c b_n - 2 b_(n-1).
 *
 * What is left out. By Cauchy's estimate on |h| = R, g |b_n| <= 1.129 e^(-c^2 + 2cR + R^2) / R^n
 * <= 1.129 e^(2 R^2) / R^n; with R = 2 the terms from m = 19 on sum to less than
 * 6740 * 64^-19 / 19 * 1.02 < 2^-105.5 = 1.5 v^2.
 *
 * Terms 11 to 18 are summed up in f64, rounded by 3 * 2^-53 of their sum at most; with R^2 = 2.5
 * the first of them is below 1.129 e^5 R^-10 / 11 < 0.16 times h^11: 2^-109 in all, 0.2 v^2.
 *
 * The coefficients. g is within 66 v^2 of itself (60 of dd_exp at -c^2, which is exact, 5 of the
 * product, the constant), which is 66 * 1.129 * |h| e^(2c|h|) <= 66 * 1.2 / 32 < 2.5 v^2 of the sum.
 * A step of the recursion rounds by 8 v^2 of the terms of the majorant e^(2ch + h^2): b_n carries 8 n
 * v^2 of its n-th term, together 8 |h| g (e^(2c|h| + h^2) - 1) < 0.1 v^2 of the sum. The product
 * with g and the division round by 8 v^2 of each: 8 * 1.2 / 32 = 0.3 v^2.
 *
 * Horner's steps: 3 v^2 of each sum, 5 v^2 of each product; below the last sum they count |h| times:
 * 0.4 v^2. erf(c) is stored within v^2 / 2, the last sum rounds by 3 v^2. Together less than 8.6 v^2. */
#include "dd.h"
#include <pthread.h>

enum { CENTERS = 137 }; /* 8.5 * 16 + 1 */

/* erf(k / 16), rounded to a pair */
static const dd erf_at[CENTERS] = {
    {0x0p+0, 0x0p+0},
    {0x1.207d480e90658p-4, 0x1.4c35c43362a08p-58},
    {0x1.1f5e1a35c3b89p-3, 0x1.d0b6d6493e0f4p-57},
    {0x1.ac45e37fe2526p-3, 0x1.48d48536c61e3p-57},
    {0x1.1af54e232d609p-2, -0x1.bee921fa4172bp-56},
    {0x1.5da9f415ff23fp-2, -0x1.a72e51e19194bp-59},
    {0x1.9dd0d2b721f39p-2, -0x1.1671c021d14c4p-56},
    {0x1.db081ce6e2a48p-2, -0x1.7ff0a3296d9ccp-56},
    {0x1.0a7ef5c18edd2p-1, 0x1.5e809f1a31a28p-56},
    {0x1.25b8a88b6dd7fp-1, 0x1.9534a3b5bd215p-55},
    {0x1.3f196dcd0f135p-1, -0x1.f25f4f6fdf70bp-56},
    {0x1.569243d2b3a9bp-1, 0x1.8eef7012e8df5p-56},
    {0x1.6c1c9759d0e5fp-1, 0x1.b1432f2cbc455p-55},
    {0x1.7fb9bfaed8078p-1, 0x1.66cf14bcad032p-56},
    {0x1.91724951b8fc6p-1, -0x1.27912dd352f8bp-55},
    {0x1.a1551a16aaeafp-1, 0x1.a558a46df5f67p-57},
    {0x1.af767a741088bp-1, -0x1.c97f778122797p-56},
    {0x1.bbef0fbde6221p-1, -0x1.322c1148e0d48p-55},
    {0x1.c6dad2829ec62p-1, -0x1.ab76d4cba3d05p-57},
    {0x1.d0580b2cfd249p-1, 0x1.4fca6318dfee9p-55},
    {0x1.d8865d98abe01p-1, -0x1.fcec4afb974d9p-55},
    {0x1.df85ea8db188ep-1, -0x1.f71e8254d11a9p-55},
    {0x1.e5768c3b4a3fcp-1, 0x1.8b62674f89890p-57},
    {0x1.ea7730ed0bbb9p-1, 0x1.2c5bd7ce1388bp-55},
    {0x1.eea5557137ae0p-1, -0x1.385e445f2c96dp-55},
    {0x1.f21c9f12f0677p-1, -0x1.7efe429672266p-58},
    {0x1.f4f693b67bd77p-1, -0x1.3a1ee1406c356p-56},
    {0x1.f74a6d9a38383p-1, 0x1.c33a329423946p-55},
    {0x1.f92d077f8d56dp-1, 0x1.8b55ef493fce7p-56},
    {0x1.fab0dd89d1309p-1, -0x1.ae61bd9db1babp-55},
    {0x1.fbe61eef4cf6ap-1, 0x1.15ded88667618p-55},
    {0x1.fcdacca0bfb73p-1, -0x1.2c33d88729e43p-55},
    {0x1.fd9ae142795e3p-1, 0x1.972801904b9a3p-56},
    {0x1.fe307f2b503d0p-1, -0x1.8a555000387f8p-57},
    {0x1.fea4218d6594ap-1, -0x1.e3333d8f7d98cp-58},
    {0x1.fefcce6813974p-1, -0x1.b27cf5025d1c8p-58},
    {0x1.ff404760319b4p-1, 0x1.f142071432025p-56},
    {0x1.ff733814af88cp-1, 0x1.0a87238cea4f9p-56},
    {0x1.ff9960f3eb327p-1, -0x1.08b1ca6e97f80p-56},
    {0x1.ffb5bdf67fe6fp-1, 0x1.4e830346f6e7fp-62},
    {0x1.ffcaa8f4c9beap-1, 0x1.b0cee160116f9p-55},
    {0x1.ffd9f78c7524ap-1, 0x1.04ed6ff98e45dp-55},
    {0x1.ffe514bbdc197p-1, -0x1.cd963345b5c6dp-58},
    {0x1.ffed167b12ac2p-1, -0x1.ddc0ce3ed8fcbp-55},
    {0x1.fff2cfb0453d9p-1, 0x1.9a913686042a3p-55},
    {0x1.fff6dee89352ep-1, 0x1.b96c0ba13851dp-55},
    {0x1.fff9ba420e834p-1, 0x1.1379ec5aa630ep-56},
    {0x1.fffbb8f1049c6p-1, 0x1.d2c6266b51f27p-56},
    {0x1.fffd1ac4135f9p-1, 0x1.eeafa1ecd6cefp-55},
    {0x1.fffe0e0140857p-1, -0x1.6aa36f86c14ddp-57},
    {0x1.fffeb3ebb267bp-1, 0x1.e47f697047cbap-57},
    {0x1.ffff2436a21dcp-1, -0x1.3607959a29d36p-55},
    {0x1.ffff6f9f67e55p-1, 0x1.e1e4483ba034bp-55},
    {0x1.ffffa1de8c582p-1, 0x1.832540129302ap-55},
    {0x1.ffffc316d9ed0p-1, -0x1.8b32f44f46b3bp-55},
    {0x1.ffffd8e1a2f22p-1, -0x1.c10adf6b19989p-55},
    {0x1.ffffe710d565ep-1, 0x1.c9ea52d76dc04p-55},
    {0x1.fffff039f9e8fp-1, -0x1.9d1bcd6174e99p-55},
    {0x1.fffff618c3da6p-1, -0x1.19309ce23aa3ep-58},
    {0x1.fffff9d446cccp-1, -0x1.bb06bab98bc7ep-57},
    {0x1.fffffc2f171e3p-1, 0x1.85edd0395f475p-55},
    {0x1.fffffda86faa9p-1, -0x1.d230252d68f25p-56},
    {0x1.fffffe92ced93p-1, -0x1.d2db2ecfe14aep-55},
    {0x1.ffffff233ee1dp-1, 0x1.db123ed17221dp-55},
    {0x1.ffffff7b91176p-1, 0x1.0b2865615db40p-56},
    {0x1.ffffffb127525p-1, 0x1.504f382db4102p-55},
    {0x1.ffffffd169d0cp-1, 0x1.70a2bfb068e6fp-55},
    {0x1.ffffffe4aed5ep-1, 0x1.389c0f32ad0f4p-59},
    {0x1.fffffff01a8b6p-1, 0x1.23370eca5ca6ap-60},
    {0x1.fffffff6d1e56p-1, -0x1.64d969b4be4c4p-55},
    {0x1.fffffffabd229p-1, -0x1.4dbe49bec3ef2p-57},
    {0x1.fffffffd01f89p-1, -0x1.35e8e39884f62p-56},
    {0x1.fffffffe4fa30p-1, 0x1.d166bcb681c7bp-57},
    {0x1.ffffffff0dd2bp-1, 0x1.0df73e7d2fc98p-55},
    {0x1.ffffffff79626p-1, 0x1.5fbc52d650a89p-55},
    {0x1.ffffffffb5be5p-1, -0x1.729d6819c7f34p-56},
    {0x1.ffffffffd759dp-1, 0x1.f7bee7eb23420p-55},
    {0x1.ffffffffe9eb0p-1, -0x1.ea527e0bef1ecp-58},
    {0x1.fffffffff4188p-1, 0x1.7a2cb3d056eacp-55},
    {0x1.fffffffff9a1bp-1, -0x1.6a87270d2450ep-57},
    {0x1.fffffffffc9e8p-1, -0x1.a759f7738935fp-56},
    {0x1.fffffffffe380p-1, 0x1.7ce07114e4fe0p-55},
    {0x1.ffffffffff11ap-1, -0x1.3eafccbc6e8b7p-56},
    {0x1.ffffffffff845p-1, 0x1.b0edc5a89ab8fp-56},
    {0x1.ffffffffffc05p-1, 0x1.07ba96a6b2e1ap-55},
    {0x1.ffffffffffdf8p-1, -0x1.dcf8b10ff973bp-55},
    {0x1.ffffffffffef8p-1, 0x1.14be6226402c7p-56},
    {0x1.fffffffffff7bp-1, 0x1.00fa07f7fb612p-55},
    {0x1.fffffffffffbep-1, -0x1.182b326b228dcp-55},
    {0x1.fffffffffffdfp-1, 0x1.5669e670f914bp-56},
    {0x1.ffffffffffff0p-1, -0x1.20ef3618f2d54p-56},
    {0x1.ffffffffffff8p-1, 0x1.0160ef15c497dp-56},
    {0x1.ffffffffffffcp-1, 0x1.8115fd1b12786p-56},
    {0x1.ffffffffffffep-1, 0x1.59ab24e589a30p-56},
    {0x1.fffffffffffffp-1, 0x1.0439397b5f70ap-56},
    {0x1.0000000000000p+0, -0x1.a6d7d18831888p-55},
    {0x1.0000000000000p+0, -0x1.8cf81557d20b6p-56},
    {0x1.0000000000000p+0, -0x1.71d0b55b79b86p-57},
    {0x1.0000000000000p+0, -0x1.55df1790f2f61p-58},
    {0x1.0000000000000p+0, -0x1.399c279e4699ap-59},
    {0x1.0000000000000p+0, -0x1.1d791bb1324a1p-60},
    {0x1.0000000000000p+0, -0x1.01dcc2acf7755p-61},
    {0x1.0000000000000p+0, -0x1.ce42dd8e4fa23p-63},
    {0x1.0000000000000p+0, -0x1.9b270c24cc8fap-64},
    {0x1.0000000000000p+0, -0x1.6ae172414cebap-65},
    {0x1.0000000000000p+0, -0x1.3dcfaee52a8f5p-66},
    {0x1.0000000000000p+0, -0x1.1432649c86c4dp-67},
    {0x1.0000000000000p+0, -0x1.dc5de496b1810p-69},
    {0x1.0000000000000p+0, -0x1.97a3dc62119c8p-70},
    {0x1.0000000000000p+0, -0x1.5a245d5e5289cp-71},
    {0x1.0000000000000p+0, -0x1.23a85891dc72bp-72},
    {0x1.0000000000000p+0, -0x1.e7b62ce66acdep-74},
    {0x1.0000000000000p+0, -0x1.94a28136fa731p-75},
    {0x1.0000000000000p+0, -0x1.4d1f2eb853100p-76},
    {0x1.0000000000000p+0, -0x1.1022313b11381p-77},
    {0x1.0000000000000p+0, -0x1.b931b883c77f2p-79},
    {0x1.0000000000000p+0, -0x1.62e225ebca190p-80},
    {0x1.0000000000000p+0, -0x1.1b418ba2217c6p-81},
    {0x1.0000000000000p+0, -0x1.c0aee6d6b1406p-83},
    {0x1.0000000000000p+0, -0x1.609ec277b8703p-84},
    {0x1.0000000000000p+0, -0x1.12fc6cdafd10dp-85},
    {0x1.0000000000000p+0, -0x1.a9942579915cdp-87},
    {0x1.0000000000000p+0, -0x1.46c779ebb14aep-88},
    {0x1.0000000000000p+0, -0x1.f1f58fe66e142p-90},
    {0x1.0000000000000p+0, -0x1.7879eb52380edp-91},
    {0x1.0000000000000p+0, -0x1.1a6ed66936eeap-92},
    {0x1.0000000000000p+0, -0x1.a47db588b15cfp-94},
    {0x1.0000000000000p+0, -0x1.3699940a6a811p-95},
    {0x1.0000000000000p+0, -0x1.c74fc41217dfbp-97},
    {0x1.0000000000000p+0, -0x1.4b252d0bc8bebp-98},
    {0x1.0000000000000p+0, -0x1.ddf56913a541ep-100},
    {0x1.0000000000000p+0, -0x1.56441b55bfff1p-101},
    {0x1.0000000000000p+0, -0x1.e667d9a8bcd9ep-103},
    {0x1.0000000000000p+0, -0x1.56f3ed5aa4222p-104},
    {0x1.0000000000000p+0, -0x1.dfe0c1b8af1f3p-106},
    {0x1.0000000000000p+0, -0x1.4d23fa69bd814p-107},
    {0x1.0000000000000p+0, -0x1.caf8458ad2a12p-109},
};

static dd_erf_row rows[CENTERS];

/* The pairs b_n and b_(n-1) at c become b_(n+1) and b_n. */
static void next(dd *b, dd *before, double c, int n)
{
    const dd sum = dd_add(dd_mul_d(*b, -2 * c), (dd){-2 * before->hi, -2 * before->lo});
    *before = *b;
    *b = dd_div_d(sum, n + 1);
}

static void fill(dd_erf_row *row, double c, dd value)
{
    static const dd front = {0x1.20dd750429b6dp+0, 0x1.1ae3a914fed80p-56}; /* 2 / sqrt(pi) */
    const dd g = dd_mul(front, dd_exp(dd_of(-c * c)));
    dd b = dd_of(1), before = dd_of(0);
    row->value = value;
    for (int n = 0; n < DD_ERF_PAIRS + DD_ERF_TAIL; n++) {
        const dd a = dd_div_d(dd_mul(g, b), n + 1);
        if (n < DD_ERF_PAIRS)
            row->a[n] = a;
        else
            row->tail[n - DD_ERF_PAIRS] = a.hi;
        next(&b, &before, c, n);
    }
}

static void fill_rows(void)
{
    for (size_t k = 0; k < CENTERS; k++) fill(&rows[k], (double)k / 16, erf_at[k]);
}

const dd_erf_row *pare_dd_erf_rows(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    PARE_ASSERT(pthread_once(&once, fill_rows) == 0);
    return rows;
}

PARE_DD_FMA static dd erf_fma(const dd_erf_row *r, dd x)
{
    return dd_erf(r, x);
}

dd pare_dd_erf(dd x)
{
    const dd_erf_row *const r = pare_dd_erf_rows();
    return pare_has_fma() ? erf_fma(r, x) : dd_erf(r, x);
}
