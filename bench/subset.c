/* The subset-sum search beside the textbook form of the same idea (two lists of sums with their
 * masks, sorted by qsort, one walk) and beside general integer programming (CBC and GLPK, where
 * they are installed), as CSV. Items are products of two weights of a random source, targets are
 * uniform on
 * (-1/2, 1/2). Integer programmes: min z with -z <= sum - target <= z, gap 0, ten seconds, the
 * whole problem times 1e4, because their tolerances are absolute; CPU time with their start, and an
 * answer that is worse than ours counts as wrong whatever the program calls it. */
#include "ticket/subset_solver.h"
#include <pare/pare.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t source_item(pare_rng *r)
{
    const int64_t a = 2 * (int64_t)(pare_rng_u32(r) >> 8) + 1 - (1 << 24);
    const int64_t b = 2 * (int64_t)(pare_rng_u32(r) >> 8) + 1 - (1 << 24);
    return a * b;
}

typedef struct problem {
    int64_t x[64], target;
    size_t n;
} problem;

static problem make(pare_rng *r, size_t n)
{
    problem p = {.n = n};
    for (size_t k = 0; k < n; k++) p.x[k] = source_item(r);
    p.target = (int64_t)((pare_rng_uniform(r) - 0.5) * 0x1p48);
    return p;
}

static void die(const pare_err *err)
{
    fprintf(stderr, "bench subset: %s\n", err->msg);
    exit(2);
}

/* ---- the textbook ---- */

typedef struct masked {
    int64_t sum;
    uint32_t mask;
} masked;

static int by_sum(const void *a, const void *b)
{
    const int64_t x = ((const masked *)a)->sum, y = ((const masked *)b)->sum;
    return (x > y) - (x < y);
}

static masked *sums_of(const int64_t *x, size_t m)
{
    masked *const s = malloc(sizeof *s << m);
    if (!s) exit(2);
    s[0] = (masked){0, 0};
    for (uint32_t i = 1; i < (uint32_t)1 << m; i++)
        s[i] = (masked){s[i & (i - 1)].sum + x[__builtin_ctz(i)], i};
    qsort(s, (size_t)1 << m, sizeof *s, by_sum);
    return s;
}

static int64_t textbook(const problem *p, uint64_t *mask)
{
    const size_t half = p->n / 2, na = (size_t)1 << half, nb = (size_t)1 << (p->n - half);
    masked *const a = sums_of(p->x, half), *const b = sums_of(p->x + half, p->n - half);
    int64_t best = INT64_MAX;
    *mask = 0;
    for (size_t i = 0, j = nb; i < na && j > 0;) {
        const int64_t gap = a[i].sum + b[j - 1].sum - p->target;
        if (llabs(gap) < best) {
            best = llabs(gap);
            *mask = a[i].mask | (uint64_t)b[j - 1].mask << half;
        }
        if (gap < 0)
            i++;
        else
            j--;
    }
    free(a);
    free(b);
    return best;
}

/* ---- integer programming ---- */

static void write_lp(const char *path, const problem *p)
{
    FILE *const f = fopen(path, "w");
    if (!f) exit(2);
    const double unit = 0x1p-48 * 1e4;
    fprintf(f, "Minimize\n obj: z\nSubject To\n");
    for (int side = 0; side < 2; side++) {
        fprintf(f, " c%d:", side);
        for (size_t k = 0; k < p->n; k++)
            fprintf(f, " %c %.17g m%zu", p->x[k] < 0 ? '-' : '+', fabs((double)p->x[k]) * unit, k);
        fprintf(f, side ? " + z >= %.17g\n" : " - z <= %.17g\n", (double)p->target * unit);
    }
    fprintf(f, "Bounds\n z >= 0\nBinary\n");
    for (size_t k = 0; k < p->n; k++) fprintf(f, " m%zu", k);
    fprintf(f, "\nEnd\n");
    if (fclose(f)) exit(2);
}

/* |sum - target| of the items that a solution file has at 1: lines with "m<k>", a star perhaps, and
 * a value. */
static int64_t read_solution(const char *path, const problem *p)
{
    FILE *const f = fopen(path, "r");
    if (!f) return INT64_MAX;
    int64_t gap = -p->target;
    for (char line[400]; fgets(line, sizeof line, f);) {
        size_t k;
        double value;
        const char *const m = strstr(line, " m");
        if (!m) continue;
        if (sscanf(m, " m%zu * %lf", &k, &value) != 2 && sscanf(m, " m%zu %lf", &k, &value) != 2)
            continue;
        if (k < p->n && value > 0.5) gap += p->x[k];
    }
    fclose(f);
    return llabs(gap);
}

static double children(void)
{
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static const struct peer {
    const char *name, *probe, *command;
    size_t sizes[2];
    int at_least; /* times faster */
} PEERS[] = {
    {"cbc",
     "cbc -quit > /dev/null 2>&1",
     "cd %s && cbc p.lp ratio 0 allow 0 sec 10 solve solu p.sol > /dev/null 2>&1",
     {20, 24},
     10000},
    {"glpk",
     "glpsol --version > /dev/null 2>&1",
     "cd %s && glpsol --lp p.lp --tmlim 10 -o p.sol > /dev/null 2>&1",
     {16, 20},
     1000},
};

/* ---- turns ---- */

static double ours(pare_subset_solver *s, const problem *p, int64_t *error)
{
    pare_err err;
    pare_subset out;
    uint64_t mask[1];
    const pare_subset_opts exact = {.exact = true};
    const double t0 = pare_seconds();
    if (pare_subset_solve(s, &out, mask, p->x, p->n, p->target, &exact, &err)) die(&err);
    const double t = pare_seconds() - t0;
    *error = llabs(out.error);
    return t;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void against_textbook(pare_subset_solver *s)
{
    static const size_t sizes[] = {8, 12, 16, 20, 24, 28, 32, 36, 40};
    printf("items,method,microseconds,textbook_microseconds,ratio,at_least,median_error\n");
    for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
        enum { MOST = 201 };
        const size_t n = sizes[c], runs = n <= 24 ? MOST : n <= 32 ? 21 : 3;
        double a[MOST], b[MOST], e[MOST];
        pare_rng r = pare_rng_at(1, n);
        for (size_t i = 0; i < runs; i++) {
            const problem p = make(&r, n);
            int64_t error;
            a[i] = ours(s, &p, &error);
            e[i] = (double)error * 0x1p-48;
            const double t0 = pare_seconds();
            uint64_t mask;
            if (n <= 32 && textbook(&p, &mask) != error) exit(4);
            b[i] = pare_seconds() - t0;
        }
        qsort(a, runs, sizeof *a, ascending);
        qsort(b, runs, sizeof *b, ascending);
        qsort(e, runs, sizeof *e, ascending);
        const double us = a[runs / 2] * 1e6, book = b[runs / 2] * 1e6;
        const char *const least = n == 12 ? "3" : n == 24 ? "15" : "";
        if (n <= 32)
            printf("%zu,exact,%.2f,%.2f,%.1f,%s,%.1e\n", n, us, book, book / us, least,
                   e[runs / 2]);
        else
            printf("%zu,exact,%.2f,,,,%.1e\n", n, us, e[runs / 2]);
    }
}

static void against_peer(pare_subset_solver *s, const struct peer *peer, const char *dir)
{
    if (system(peer->probe) != 0) {
        printf("# %s is not installed (make setup-bench)\n", peer->name);
        return;
    }
    char lp[300], sol[300], command[600];
    snprintf(lp, sizeof lp, "%s/p.lp", dir);
    snprintf(sol, sizeof sol, "%s/p.sol", dir);
    snprintf(command, sizeof command, peer->command, dir);
    for (size_t c = 0; c < 2; c++)
        for (int it = 0; it < 2; it++) {
            pare_rng r = pare_rng_at(77 + (uint64_t)it, peer->sizes[c]);
            const problem p = make(&r, peer->sizes[c]);
            int64_t error;
            double best = 1;
            for (int k = 0; k < 20; k++) best = fmin(best, ours(s, &p, &error));
            write_lp(lp, &p);
            const double before = children();
            const int status = system(command);
            const double took = children() - before;
            const int64_t theirs = read_solution(sol, &p);
            printf("%zu,%s,%.3e,%.3e,%.0f,%d,%s (%.1e against %.1e)\n", p.n, peer->name, best, took,
                   took / best, peer->at_least, status || theirs > error ? "wrong" : "optimum",
                   (double)theirs * 0x1p-48, (double)error * 0x1p-48);
            remove(lp);
            remove(sol);
        }
}

int main(void)
{
    pare_err err;
    pare_subset_solver *s;
    if (pare_subset_new(&s, &err)) die(&err);
    against_textbook(s);
    char dir[] = "/tmp/pare-subset-XXXXXX";
    if (!mkdtemp(dir)) return 2;
    printf("items,peer,seconds,peer_cpu_seconds,ratio,at_least,"
           "peer_answer (its error against ours)\n");
    for (size_t k = 0; k < sizeof PEERS / sizeof *PEERS; k++) against_peer(s, &PEERS[k], dir);
    rmdir(dir);
    pare_subset_free(s);
    return 0;
}
