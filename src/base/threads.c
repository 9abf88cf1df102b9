/* Threads: the only file that names OpenMP. */
#include <pare/base.h>

#include <sched.h>
#include <unistd.h>

void pare_parallel(const pare_exec *x, size_t blocks, void (*fn)(void *ctx, size_t block),
                   void *ctx)
{
    PARE_ASSERT(!x || x->threads >= 1);
    if (!x || x->threads == 1 || blocks < 2) {
        for (size_t b = 0; b < blocks; b++) fn(ctx, b);
        return;
    }
    const int threads = blocks < (size_t)x->threads ? (int)blocks : x->threads;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (size_t b = 0; b < blocks; b++) fn(ctx, b);
}

void pare_progress(const pare_exec *x, const char *what, uint64_t done, uint64_t total)
{
    if (!x || !x->progress) return;
    /* A slip in counting must not end a long run: it is cut, not asserted. */
    const uint64_t shown = done < total ? done : total;
#pragma omp critical(pare_progress_call)
    x->progress(x->self, what, shown, total);
}

int pare_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        const int n = CPU_COUNT(&set);
        if (n >= 1) return n;
    }
    const long online = sysconf(_SC_NPROCESSORS_ONLN); /* more cores than a cpu_set_t holds */
    return online >= 1 ? (int)online : 1;
}
