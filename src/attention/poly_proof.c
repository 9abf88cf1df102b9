/* poly_proof.c - the proven error bound of one row of polynomial attention.
 *
 * Let W_j e^(x_j) be the true weights of the keys (x_j = q'.k'_j), W_j p(x_j) those of the
 * polynomial, P their sum. The shares of both differ in total variation by at most
 *
 *     sum_j W_j |p(x_j) - e^(x_j)| / P :
 *
 * of the differences of shares, which sum to 0, take the parts of the sign for which sum_j W_j p
 * and sum_j W_j e^x differ in its favor; each of these is at most W_j |p - e^x| / P. Entries of the
 * result move by the total variation times the range of their column. For Taylor's polynomial of
 * degree g
 *
 *     |e^x - T(x)| <= kappa(B) |x|^(g+1),   |x| <= B,   kappa(B) = sum_{k > g} B^(k-g-1) / k!,
 *
 * (below 0 the remainder is at most the first term left out), and with |x_j| <= |q'| |k'_j|
 *
 *     sum_j W_j |x_j|^(g+1) <= |q'|^(g-1) q'^T (sum_j W_j |k'_j|^(g-1) k'_j k'_j^T) q':
 *
 * one more column of the state, for any degree. (The moment itself needs monomials of degree
 * g + 1.) Keys with exact weights e^x add nothing to the sum and only help P.
 *
 * Rounding, u = 2^-24. With t_j = sum_i |q'_i| |k'_ji| <= |q'| |k'_j| <= B the terms of the
 * polynomial sum to at most pabs(B) = sum |c_m| B^m for a unit of weight. Each term is a product
 * of: 4 m centered numbers' roundings, 2 m products, the weight (its logarithm in f32, e^x within
 * 2 ulp), the value (2), the sum over keys (POLY_KEYS + blocks, then f64), the narrowing of the
 * state (2): COUNT(m) roundings in all. The sum over monomials runs from the highest degree to the
 * lowest: a term of degree m goes through N_m = sum_{m' <= m} r_m' additions, r_m' the number of
 * monomials of degree m'. So the sum is off by at most
 *
 *     sum_m ((1 + u)^(COUNT + N_m) - 1) |c_m| B^m.
 *
 * Numbers that underflow. Centered queries and keys are brought to one size by a power of two. A
 * weight w_j = e^(a_j - unit) that f32 rounds to 0 may be multiplied by e^x = e^87 and be most of
 * the row; likewise w_j (v_j - center). So a call is refused (every row is computed by the exact
 * kernel) unless the smallest weight of all keys, in the largest unit that any chunk uses, times
 * the smallest radius of a column of values (or 1) is at least 2^-100. Then no weight is lost or
 * subnormal, before or after it is brought to a later chunk's unit, and its product with a value
 * is off by at most 2^-149 besides its roundings: 2^-49 of the weight times the radius, less than a
 * rounding that COUNT holds, and the weight in the state is not 0 unless the state is empty.
 * e^x below 2^-126 is off by less than that: nothing beside a denominator of at least LEAST.
 *
 * Numbers that overflow. Values are up to 2^60 from their center, e^x up to e^88: a row is left
 * to the exact kernel where the sum of its weights times the largest radius could overflow f32. */
#include "linalg/bounds.h"
#include "poly.h"
#include <math.h>

#define U     0x1p-24
#define LEAST 0x1p-40       /* of the denominator */
#define F64   (1 + 0x1p-40) /* for the f64 operations of a bound: below 2^10 roundings */

/* Positive terms, which fall by B / k once k is above B. Where one is below 2^-50 of the sum, those
 * left are below 2^-48 of it (B <= 128): F64 covers them. */
double poly_kappa(size_t degree, double B)
{
    double term = 1, sum = 0;
    if (!(B <= 128)) return INFINITY;
    for (size_t k = 1; k <= degree + 1; k++) term /= (double)k;
    for (double k = (double)degree + 2; term > 0x1p-50 * sum; k++) {
        sum += term;
        term *= B / k;
    }
    return sum * F64;
}

/* (1 + u)^n - 1 */
static double growth(double n)
{
    return pare_expm1_up(n * U);
}

/* Roundings of a term of that degree before the monomials are summed. */
static double roundings(const poly_sizes *s, double degree)
{
    return 6 * degree + s->depth + 16 + POLY_KEYS + (double)s->flush;
}

/* Of q'^T C q': the same, and sums over the monomials up to degree 2. */
static double moment_roundings(const pare_poly_plan *p, const poly_sizes *s)
{
    const double g = (double)p->degree, all = (double)pare_monomials_count(p->d, g > 0 ? 2 : 0);
    return 30 + s->depth + POLY_KEYS + (double)s->flush + all + g * ((double)p->d + 12);
}

/* Largest norm of the queries of a bin. */
static double query_of(const poly_sizes *s, size_t bin)
{
    return (double)(bin + 1) / POLY_BINS * s->q;
}

static void set_moments(poly_proof *out, const pare_poly_plan *plan, const poly_sizes *s,
                        double count)
{
    const double grows = growth(count);
    for (size_t b = 0; b <= POLY_BINS; b++)
        out->moment[b] = grows * poly_power(query_of(s, b) * s->key, plan->degree + 1) * F64;
}

void poly_proof_new(poly_proof *out, const pare_poly_plan *plan, const poly_sizes *s)
{
    const double count = roundings(s, (double)plan->degree);
    size_t summed = plan->table.count; /* monomials up to a degree */
    *out = (poly_proof){.most = s->q,
                        .per_bin = s->q > 0 ? POLY_BINS / s->q : 0,
                        .tv = plan->kind == PARE_POLY_TAYLOR ? -1 : plan->tv.v,
                        .spread = s->spread,
                        .largest = 0x1p126 / s->value_radius,
                        .power = plan->degree ? plan->degree - 1 : 1};
    for (size_t m = plan->degree + 1; m-- > 0;) {
        while (plan->table.power[summed - 1] > m) summed--;
        const double c = fabs(plan->coef[m]), grows = growth(count + (double)summed);
        for (size_t b = 0; b <= POLY_BINS; b++) {
            const double B = query_of(s, b) * s->key;
            out->size[b] = (out->size[b] * B + c) * F64;
            out->noise[b] = (out->noise[b] * B + c * grows) * F64;
        }
    }
    for (size_t b = 0; b <= POLY_BINS; b++) {
        const double all = query_of(s, b) * s->all_keys, d = (double)plan->d;
        out->polynomial[b] = poly_kappa(plan->degree, query_of(s, b) * s->key);
        out->exact[b] =
            growth(s->depth + 24 + POLY_KEYS + (double)plan->nheavy + (d + 8) * all) * F64;
    }
    set_moments(out, plan, s, moment_roundings(plan, s));
}

void poly_proof_full(poly_proof *p, const pare_poly_plan *plan, const poly_sizes *s, size_t count)
{
    set_moments(p, plan, s, roundings(s, (double)plan->degree + 1) + (double)count);
}

double poly_row_bound(const poly_proof *p, const poly_row *r)
{
    if (!(r->norm <= p->most)) return INFINITY;
    const size_t b = (size_t)(r->norm * p->per_bin);
    const double weight = r->weight * 1.001; /* as computed; its roundings are below a thousandth */
    double off = p->noise[b] * weight;
    /* the exact part is what the state's part (at least -size) leaves of the sum */
    const double exact = r->sum + p->size[b] * weight;
    if (r->with_exact) off += p->exact[b] * exact;
    const double least = r->sum - off;
    if (!(exact <= p->largest && least >= LEAST)) return INFINITY; /* also where the sum is a nan */
    double tv = p->tv;
    if (tv < 0) {
        const double raise = r->full ? 1 : poly_power(r->norm, p->power);
        const double moment = raise * (r->moment < 0 ? 0 : r->moment) + p->moment[b] * weight;
        tv = p->polynomial[b] * moment / least;
    }
    const double bound = (tv + p->spread * ((1 + tv) * off / least + 4 * U)) * F64;
    return bound >= 0 ? bound : INFINITY;
}
