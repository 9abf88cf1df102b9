/* poly_adaptive.c - monomials for coordinates of unequal size (docs/theory/depth.md "Adaptive
 * monomials"):
 *
 *     e^(x_1 + ... + x_d) = sum over alpha of x^alpha / alpha!,    |x_i| <= a_i,
 *
 * the terms taken best first. A term's children multiply it by its last variable or a later one
 * (variables in descending order of a), so that every monomial comes once and after its parent.
 *
 * What is left out is the sum over the terms on the front (reached, not taken) of all their
 * descendants. The descendants of alpha with last variable v, c times, raise the power of v, and
 * have any powers of the variables after v:
 *
 *     a^alpha/alpha! (1 + a_v/(c+1) + a_v^2/((c+1)(c+2)) + ...) e^(sum of a_u, u after v).
 *
 * All terms are positive: the tail has no cancellation, while e^(sum a) minus the sum of what was
 * taken would be lost in 2^-53 e^(sum a). A term of degree m is a product of 2 m rounded
 * operations. */
#include "polynomial.h"
#include "linalg/bounds.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_POWER = 1000 };

typedef struct term {
    double size;     /* a^alpha / alpha! */
    size_t born;     /* order of creation: of equal terms the older is taken */
    uint32_t parent; /* among those taken */
    uint32_t var;    /* of the descending order */
    uint32_t times;  /* power of var */
    uint32_t degree;
} term;

typedef struct front { /* a heap, the largest term first */
    term *v;
    size_t count, capacity, born;
} front;

typedef struct search {
    const double *a; /* descending */
    size_t d, most;
    pare_ub *after; /* e^(sum of a_u, u > v) from above */
    term *taken;
    size_t count;
    front front;
} search;

/* ---- heap ------------------------------------------------------------------------------------ */

static bool before(const term *x, const term *y)
{
    return x->size > y->size || (x->size == y->size && x->born < y->born);
}

static bool push(front *f, term t)
{
    if (f->count == f->capacity) {
        const size_t capacity = f->capacity ? 2 * f->capacity : 256;
        term *const v = realloc(f->v, capacity * sizeof *v);
        if (!v) return false;
        f->v = v;
        f->capacity = capacity;
    }
    size_t i = f->count++;
    for (; i > 0 && before(&t, &f->v[(i - 1) / 2]); i = (i - 1) / 2) f->v[i] = f->v[(i - 1) / 2];
    f->v[i] = t;
    return true;
}

static term pop(front *f)
{
    const term first = f->v[0], last = f->v[--f->count];
    size_t i = 0;
    for (size_t c; (c = 2 * i + 1) < f->count; i = c) {
        if (c + 1 < f->count && before(&f->v[c + 1], &f->v[c])) c++;
        if (!before(&f->v[c], &last)) break;
        f->v[i] = f->v[c];
    }
    f->v[i] = last;
    return first;
}

/* ---- the tail -------------------------------------------------------------------------------- */

/* 1 + a/(c+1) + a^2/((c+1)(c+2)) + ... from above: terms until they fall by half each, then twice
 * the next. */
static pare_ub higher_powers(double a, size_t c)
{
    pare_ub sum = pare_ub_exact(0), t = pare_ub_exact(1);
    for (size_t k = 1; k < MAX_POWER; k++) {
        if (t.v < 1e-20 && a < 0.5 * (double)(c + k)) return pare_ub_fma(t, pare_ub_exact(2), sum);
        sum = pare_ub_add(sum, t);
        t = pare_ub_mul(t, pare_ub_div(pare_ub_exact(a), (double)(c + k)));
    }
    return pare_ub_inf();
}

static pare_ub tail_of(const search *s)
{
    pare_ub sum = pare_ub_exact(0);
    for (const term *t = s->front.v; t < s->front.v + s->front.count; t++) {
        const pare_ub rounded =
            pare_ub_add(pare_ub_exact(1), pare_gamma(2 * t->degree, PARE_UNIT_F64));
        const pare_ub size = pare_ub_mul(pare_ub_of(t->size), rounded);
        const pare_ub own = pare_ub_mul(size, higher_powers(s->a[t->var], t->times));
        sum = pare_ub_add(sum, pare_ub_mul(own, s->after[t->var]));
    }
    return sum;
}

/* ---- the search ------------------------------------------------------------------------------ */

/* Takes terms until the proven tail is at most tol. The tail is summed where a running estimate is
 * below tol, or is rounding error itself, and not again before a sixteenth more terms. */
static bool take_terms(search *s, pare_ub *tail, double tol)
{
    double total = 0, left;
    for (size_t v = 0; v < s->d; v++) total += s->a[v];
    left = exp(total);
    const double unsure = 1e-12 * left;
    size_t again = 0;
    if (!push(&s->front, (term){.size = 1})) return false;
    for (*tail = pare_ub_inf(); s->front.count > 0 && s->count < s->most;) {
        const term t = pop(&s->front);
        s->taken[s->count++] = t;
        left -= t.size;
        const size_t index = s->count - 1;
        for (size_t v = t.var; v < s->d && s->a[v] > 0; v++) { /* its children */
            const uint32_t times = index && v == t.var ? t.times + 1 : 1;
            const double size = t.size * s->a[v] / times;
            /* below the least normal number the roundings would not be counted */
            const term child = {fmax(size, DBL_MIN), ++s->front.born, (uint32_t)index,
                                (uint32_t)v,         times,           t.degree + 1};
            if (!push(&s->front, child)) return false;
        }
        if ((left > tol && left > unsure) || s->count < again) continue;
        *tail = tail_of(s);
        if (tail->v <= tol) return true;
        left = tail->v;
        again = s->count + s->count / 16;
    }
    *tail = tail_of(s);
    return true;
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct row {
    term t;
    uint32_t index;
} row;

/* By degree, then by variable: long runs of one multiplication each. */
static int by_degree(const void *x, const void *y)
{
    const row *const a = x, *const b = y;
    if (a->t.degree != b->t.degree) return a->t.degree < b->t.degree ? -1 : 1;
    if (a->t.var != b->t.var) return a->t.var < b->t.var ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static bool write_table(pare_monomials *out, pare_arena *a, const search *s, const size_t *order)
{
    const size_t n = s->count;
    row *const rows = malloc((n + 1) * sizeof *rows);
    uint32_t *const place = malloc((n + 1) * sizeof *place);
    uint32_t *const parent = pare_alloc(a, n, sizeof *parent), *const var = pare_alloc(a, n, 4);
    uint32_t *const power = pare_alloc(a, n, sizeof *power);
    double *const weight = pare_alloc(a, n, sizeof *weight);
    const bool ok = rows && place && parent && var && power && weight;
    for (size_t i = 0; ok && i < n; i++) rows[i] = (row){s->taken[i], (uint32_t)i};
    if (ok) qsort(rows, n, sizeof *rows, by_degree);
    for (size_t e = 0; ok && e < n; e++) {
        const term *const t = &rows[e].t;
        place[rows[e].index] = (uint32_t)e;
        parent[e] = e ? place[t->parent] : 0;
        var[e] = e ? (uint32_t)order[t->var] : 0;
        power[e] = t->degree;
        weight[e] = e ? weight[parent[e]] * t->degree / t->times : 1;
    }
    free(rows);
    free(place);
    if (!ok) return false;
    *out = (pare_monomials){s->d, n ? power[n - 1] : 0, n, parent, var, power, weight};
    return true;
}

pare_status pare_monomials_adaptive(pare_monomials *out, pare_ub *tail, pare_arena *a,
                                    const double *size, size_t d, double tol, size_t most,
                                    pare_err *err)
{
    *tail = pare_ub_inf();
    for (size_t i = 0; i < d; i++)
        if (!(size[i] >= 0 && size[i] < INFINITY))
            return pare_fail(err, PARE_ERR_NONFINITE, "coordinate %zu has the size %g", i, size[i]);
    if (most == 0 || most >= UINT32_MAX || !(tol >= 0))
        return pare_fail(err, PARE_ERR_USAGE, "%zu monomials for a tail of %g", most, tol);
    double *const sorted = malloc((d + 1) * sizeof *sorted);
    size_t *const order = malloc((d + 1) * sizeof *order);
    search s = {.d = d, .most = most, .a = sorted};
    s.after = malloc((d + 1) * sizeof *s.after);
    s.taken = malloc(most * sizeof *s.taken);
    bool ok = sorted && order && s.after && s.taken;
    if (ok) {
        for (size_t i = 0; i < d; i++) { /* by insertion: stable, and d is small */
            size_t k = i;
            for (; k > 0 && size[order[k - 1]] < size[i]; k--) order[k] = order[k - 1];
            order[k] = i;
        }
        for (size_t i = 0; i < d; i++) sorted[i] = size[order[i]];
        pare_ub sum = pare_ub_exact(0);
        for (size_t v = d; v-- > 0;) {
            s.after[v] = pare_ub_exp(sum);
            sum = pare_ub_add(sum, pare_ub_exact(sorted[v]));
        }
        ok = take_terms(&s, tail, tol) && write_table(out, a, &s, order);
    }
    free(sorted);
    free(order);
    free(s.after);
    free(s.taken);
    free(s.front.v);
    return ok ? PARE_OK : pare_no_memory(err);
}
