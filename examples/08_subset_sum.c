/* 08_subset_sum.c - which of these numbers add up closest to a target? This is the solver behind
 * tickets, used alone: it takes up to 60 numbers and reports whether its answer is optimal. */
#include <pare/pare.h>

int main(void)
{
    enum { N = 24 };
    int64_t item[N];
    uint64_t mask = 0;
    pare_subset found;
    pare_err err = {0};
    pare_rng rng = pare_rng_at(1, 0);
    for (int k = 0; k < N; k++) item[k] = (int64_t)pare_rng_below(&rng, 2000001) - 1000000;
    const int64_t target = 1234567;

    const pare_status st = pare_subset_sum(&found, &mask, item, N, target, NULL, &err);
    if (st) {
        fprintf(stderr, "%s\n", err.msg);
        return pare_exit_code(st);
    }
    int64_t sum = 0;
    int chosen = 0;
    for (int k = 0; k < N; k++)
        if (mask >> k & 1) sum += item[k], chosen++;
    printf("%d of %d numbers add up to %lld, %lld from the target\n", chosen, N, (long long)sum,
           (long long)(sum - target));
    puts(found.proof == PARE_SUBSET_BEST ? "optimal: no other choice is closer"
                                         : "another choice may be closer");
    return found.error == sum - target ? 0 : 4;
}
