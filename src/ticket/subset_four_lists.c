/* subset_four_lists.c - the best subset in little memory: four lists of 2^(n/4) sums. A subset's
 * sum is p + q with p from lists one and two and q from lists three and four. The values of p are
 * taken window by window, from the most likely ones outwards; for a window the p in it and the q
 * that could come closer than the best so far are listed, sorted and joined by one walk.
 *
 * One window is a step of a list tree: an error of about 2^(-3n/4) for the price of 2^(n/4). All
 * windows are an exact search in the memory of one. A window with more sums than fit is halved; a
 * window of one value needs only one of them, whatever their number (equal items). */
#include "subset_parts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LISTS = 4 };

typedef struct pairs { /* all a + b */
    const int64_t *a, *b;
    size_t na, nb;
} pairs;

typedef struct four {
    subset_sums part[LISTS];
    size_t first[LISTS]; /* item of each part */
    pairs p, q;
    size_t capacity; /* of each list below */
    int64_t *ps, *qs, *spare;
    uint32_t *count;
    int64_t target, far; /* |error| of the best so far */
    int64_t bestp, bestq;
    bool better; /* than what the search began with */
} four;

typedef struct window { /* lo <= value < hi */
    int64_t lo, hi;
} window;

/* How many a + b are in the window; where a is large b must be small: two cursors go down in b. */
static size_t count_in(const pairs *p, window w)
{
    size_t from = p->nb, to = from, n = 0;
    for (size_t i = 0; i < p->na; i++) {
        while (from > 0 && p->b[from - 1] >= w.lo - p->a[i]) from--;
        while (to > 0 && p->b[to - 1] >= w.hi - p->a[i]) to--;
        n += to - from;
    }
    return n;
}

/* The same, listed: at most `capacity` of them. */
static size_t list_in(int64_t *out, const pairs *p, window w, size_t capacity)
{
    size_t from = p->nb, to = from, n = 0;
    for (size_t i = 0; i < p->na; i++) {
        while (from > 0 && p->b[from - 1] >= w.lo - p->a[i]) from--;
        while (to > 0 && p->b[to - 1] >= w.hi - p->a[i]) to--;
        for (size_t j = from; j < to && n < capacity; j++) out[n++] = p->a[i] + p->b[j];
    }
    return n;
}

static int ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void sort_few(int64_t *v, size_t n)
{
    if (n > 24) {
        qsort(v, n, sizeof *v, ascending);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        const int64_t x = v[i];
        size_t k = i;
        for (; k > 0 && v[k - 1] > x; k--) v[k] = v[k - 1];
        v[k] = x;
    }
}

/* Sums in a window are spread evenly, more or less: as many buckets as sums, then a few each. */
static void sort_window(four *f, int64_t *v, size_t n, window w)
{
    size_t buckets = 1;
    while (buckets < n) buckets *= 2;
    unsigned shift = 0;
    while (((uint64_t)(w.hi - w.lo) >> shift) >= buckets) shift++;
    uint32_t *const end = f->count;
    memset(end, 0, (buckets + 1) * sizeof *end);
    for (size_t i = 0; i < n; i++) end[((v[i] - w.lo) >> shift) + 1]++;
    for (size_t b = 0; b < buckets; b++) end[b + 1] += end[b];
    for (size_t i = 0; i < n; i++) f->spare[end[(v[i] - w.lo) >> shift]++] = v[i];
    memcpy(v, f->spare, n * sizeof *v);
    for (size_t b = 0; b < buckets; b++) { /* end[b] is now where bucket b ends */
        const size_t from = b ? end[b - 1] : 0;
        sort_few(v + from, end[b] - from);
    }
}

/* What is in the window, in order: all of it, or one of it where the window is one value. */
static size_t sums_in(four *f, int64_t *out, const pairs *p, window w)
{
    if (w.hi - w.lo == 1) return list_in(out, p, w, 1);
    const size_t n = list_in(out, p, w, f->capacity);
    sort_window(f, out, n, w);
    return n;
}

static bool window_fits(const four *f, const pairs *p, window w)
{
    return w.hi - w.lo == 1 || count_in(p, w) <= f->capacity;
}

/* p up, q down. */
static void join_sums(four *f, size_t np, size_t nq)
{
    for (size_t i = 0, j = nq; i < np && j > 0;) {
        const int64_t gap = f->ps[i] + f->qs[j - 1] - f->target;
        if (subset_abs(gap) < f->far) {
            f->far = subset_abs(gap);
            f->bestp = f->ps[i];
            f->bestq = f->qs[j - 1];
            f->better = true;
        }
        if (gap < 0)
            i++;
        else
            j--;
    }
}

static int64_t midpoint_of(window w)
{
    return w.lo + (w.hi - w.lo) / 2;
}

static void join_with(four *f, size_t np, window q)
{
    if (q.hi <= q.lo) return;
    if (!window_fits(f, &f->q, q)) {
        join_with(f, np, (window){q.lo, midpoint_of(q)});
        join_with(f, np, (window){midpoint_of(q), q.hi});
        return;
    }
    join_sums(f, np, sums_in(f, f->qs, &f->q, q));
}

/* All p of the window, with every q that makes a sum closer to the target than the best. */
static void search(four *f, window p)
{
    if (!window_fits(f, &f->p, p)) {
        search(f, (window){p.lo, midpoint_of(p)});
        search(f, (window){midpoint_of(p), p.hi});
        return;
    }
    const size_t np = sums_in(f, f->ps, &f->p, p);
    if (np == 0) return;
    join_with(f, np, (window){f->target - p.hi + 2 - f->far, f->target - p.lo + f->far});
}

/* Where p most likely is when p + q = target, were all sums normal with their own variances; and
 * how wide a window holds about half of the capacity. */
static int64_t likely_position(const four *f, const subset_job *j, int64_t *width)
{
    double mean[2] = {0}, var[2] = {0};
    for (size_t k = 0; k < j->n; k++) {
        const size_t side = k >= f->first[2];
        mean[side] += 0.5 * (double)j->x[k];
        var[side] += 0.25 * (double)j->x[k] * (double)j->x[k];
    }
    const double share = var[0] / (var[0] + var[1] + 1);
    const double density = (double)f->p.na * (double)f->p.nb / (2.5 * sqrt(var[0]) + 1);
    *width = (int64_t)fmin(fmax(0.5 * (double)f->capacity / density, 1), 0x1p60);
    return (int64_t)(mean[0] + share * ((double)j->target - mean[0] - mean[1]));
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* The next window to the right (or left) of what is done; wider after a poor one. */
static window next_window(const four *f, bool right, int64_t at, int64_t limit, int64_t *width)
{
    window w;
    size_t n;
    for (;; *width /= 2) {
        const int64_t capacity = right ? limit - at : at - limit;
        const int64_t wide = *width < capacity ? *width : capacity;
        w = right ? (window){at, at + wide} : (window){at - wide, at};
        n = count_in(&f->p, w);
        if (n <= f->capacity || *width <= 1) break;
    }
    if (n < f->capacity / 4 && *width < (int64_t)1 << 60) *width *= 2;
    return w;
}

static bool walk_windows(four *f, const subset_job *j, size_t windows, int64_t tolerance)
{
    const pairs *const p = &f->p;
    const int64_t least = p->a[0] + p->b[0], most = p->a[p->na - 1] + p->b[p->nb - 1] + 1;
    int64_t width;
    const int64_t start = clamp(likely_position(f, j, &width), least, most);
    int64_t left = clamp(start - width / 2, least, most), right = left;
    int64_t wide[2] = {width, width};
    for (size_t k = 0; left > least || right < most; k++) {
        if (f->far <= tolerance || (windows && k == windows)) return false;
        const bool go_right = left == least || (right < most && k % 2 == 0);
        const window w = go_right ? next_window(f, true, right, most, &wide[1])
                                  : next_window(f, false, left, least, &wide[0]);
        if (go_right)
            right = w.hi;
        else
            left = w.lo;
        search(f, w);
    }
    return true;
}

static bool prepare(four *f, pare_subset_solver *s, const subset_job *j)
{
    size_t cells = 0, m[LISTS], at = 0;
    for (size_t k = 0; k < LISTS; k++) {
        m[k] = j->n / LISTS + (k < j->n % LISTS);
        cells += subset_sums_cells((unsigned)m[k]);
    }
    f->capacity = (size_t)4 << m[0];
    if (f->capacity < 1024) f->capacity = 1024;
    int64_t *v = subset_cells(s, cells + 3 * f->capacity + f->capacity +
                                     1); /* buckets: at most twice that */
    if (!v) return false;
    for (size_t k = 0; k < LISTS; k++) {
        f->first[k] = at;
        subset_sums_build(&f->part[k], j->x + at, (unsigned)m[k], v);
        v += subset_sums_cells((unsigned)m[k]);
        at += m[k];
    }
    f->ps = v;
    f->qs = v + f->capacity;
    f->spare = v + 2 * f->capacity;
    f->count = (uint32_t *)(v + 3 * f->capacity);
    const subset_sums *const l = f->part;
    f->p = (pairs){subset_sums_list(&l[0]), subset_sums_list(&l[1]), subset_sums_count(&l[0]),
                   subset_sums_count(&l[1])};
    f->q = (pairs){subset_sums_list(&l[2]), subset_sums_list(&l[3]), subset_sums_count(&l[2]),
                   subset_sums_count(&l[3])};
    f->target = j->target;
    f->far = subset_abs(j->error);
    return true;
}

/* Which a and b make the sum: tried one by one, once per search. */
static void mask_of(const four *f, size_t half, int64_t sum, uint64_t *mask)
{
    const pairs *const p = half ? &f->q : &f->p;
    size_t i = 0;
    while (i < p->na && !subset_sums_has(p->b, p->nb, sum - p->a[i])) i++;
    PARE_ASSERT(i < p->na); /* the sum came from these lists */
    subset_sums_mask(&f->part[2 * half], p->a[i], f->first[2 * half], mask);
    subset_sums_mask(&f->part[2 * half + 1], sum - p->a[i], f->first[2 * half + 1], mask);
}

bool subset_four_lists(pare_subset_solver *s, subset_job *j, size_t windows, int64_t tolerance,
                       bool *all)
{
    four f = {.better = false};
    if (!prepare(&f, s, j)) return false;
    *all = walk_windows(&f, j, windows, tolerance);
    if (!f.better) return true;
    j->error = f.bestp + f.bestq - j->target;
    memset(j->mask, 0, (j->n + 63) / 64 * sizeof *j->mask);
    mask_of(&f, 0, f.bestp, j->mask);
    mask_of(&f, 1, f.bestq, j->mask);
    return true;
}
