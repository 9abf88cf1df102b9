/* threads.c - a pool of threads that sleeps when there is nothing to do.
 *
 * Blocks are handed out one by one. The caller works too, and waits at the end only for blocks that
 * a worker has begun: a worker that the machine has no core for costs nothing. (OpenMP's regions
 * wait until every thread has shown up; on a busy machine a small product then took 8 ms instead
 * of 0.3 ms.) The pool serves one caller at a time; a second one meanwhile, or a call from within a
 * block, does its blocks alone. Workers live as long as the process. */
#include "support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

typedef struct task {
    void (*fn)(void *ctx, size_t block);
    void *ctx;
    size_t blocks;
    const volatile int *stop; /* NULL: every block is run */
    atomic_size_t next;
    int running; /* workers inside; under the lock */
} task;

enum { MOST_WORKERS = 255, SPIN = 2000 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    task *now;          /* NULL: nothing to take */
    int wanted;         /* workers the task may still have */
    int workers;        /* started so far */
    atomic_uint posted; /* counts tasks: what a spinning worker looks at */
    atomic_flag taken;  /* a caller has the pool */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .idle = PTHREAD_COND_INITIALIZER,
          .taken = ATOMIC_FLAG_INIT};

/* Relaxed: the flag says nothing about other memory. */
static bool is_set(const volatile int *stop)
{
    return stop && __atomic_load_n(stop, __ATOMIC_RELAXED) != 0;
}

static void do_blocks(task *t)
{
    for (;;) {
        const size_t b = atomic_fetch_add(&t->next, 1);
        if (b >= t->blocks || is_set(t->stop)) return;
        t->fn(t->ctx, b);
    }
}

static void *worker(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (!pool.now || pool.wanted == 0) {
            const unsigned seen = atomic_load(&pool.posted);
            pthread_mutex_unlock(&pool.lock);
            /* Spins shortly before it sleeps: the next task often comes within microseconds. */
            for (int i = 0; i < SPIN && atomic_load(&pool.posted) == seen; i++) {
#if defined(__x86_64__) || defined(__i386__)
                __builtin_ia32_pause();
#endif
            }
            pthread_mutex_lock(&pool.lock);
            if (atomic_load(&pool.posted) == seen) pthread_cond_wait(&pool.work, &pool.lock);
        }
        task *const t = pool.now;
        pool.wanted--;
        t->running++;
        pthread_mutex_unlock(&pool.lock);
        do_blocks(t);
        pthread_mutex_lock(&pool.lock);
        if (--t->running == 0) pthread_cond_signal(&pool.idle);
    }
    return NULL;
}

static void run_task(const pare_exec *x, task *t)
{
    PARE_ASSERT(!x || x->threads >= 1);
    const bool alone = !x || x->threads == 1 || t->blocks < 2;
    if (alone || atomic_flag_test_and_set(&pool.taken)) {
        do_blocks(t);
        return;
    }
    const int helpers = (t->blocks < (size_t)x->threads ? (int)t->blocks : x->threads) - 1;
    pthread_mutex_lock(&pool.lock);
    /* Fewer workers than wanted is no failure: the caller works too. */
    for (pthread_t id; pool.workers < helpers && pool.workers < MOST_WORKERS; pool.workers++) {
        if (pthread_create(&id, NULL, worker, NULL) != 0) break;
        pthread_detach(id);
    }
    pool.now = t;
    pool.wanted = helpers;
    atomic_fetch_add(&pool.posted, 1);
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    do_blocks(t);
    pthread_mutex_lock(&pool.lock);
    pool.now = NULL;
    while (t->running > 0) pthread_cond_wait(&pool.idle, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
    atomic_flag_clear(&pool.taken);
}

void pare_parallel(const pare_exec *x, size_t blocks, void (*fn)(void *ctx, size_t block),
                   void *ctx)
{
    task t = {.fn = fn, .ctx = ctx, .blocks = blocks};
    run_task(x, &t);
}

pare_status pare_parallel_until(const pare_exec *x, size_t blocks,
                                void (*fn)(void *ctx, size_t block), void *ctx, pare_err *err)
{
    task t = {.fn = fn, .ctx = ctx, .blocks = blocks, .stop = x ? x->stop : NULL};
    run_task(x, &t);
    return pare_stopped(x, err);
}

pare_status pare_stopped(const pare_exec *x, pare_err *err)
{
    if (!x || !is_set(x->stop)) return PARE_OK;
    return pare_fail(err, PARE_ERR_STOPPED, "stopped");
}

pare_status pare_or_stopped(const pare_exec *x, pare_status st, pare_err *err)
{
    const pare_status stopped = st ? pare_stopped(x, err) : PARE_OK;
    return stopped ? stopped : st;
}

pare_status pare_progress(const pare_exec *x, const char *what, uint64_t done, uint64_t total,
                          pare_err *err)
{
    /* Recursive: a progress may pass what it hears on to another one. */
    static pthread_mutex_t one_at_a_time = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    if (x && x->progress) {
        pthread_mutex_lock(&one_at_a_time);
        /* A slip in counting must not end a long run: it is cut, not asserted. */
        x->progress(x->self, what, done < total ? done : total, total);
        pthread_mutex_unlock(&one_at_a_time);
    }
    return pare_stopped(x, err);
}

pare_exec pare_exec_silent(const pare_exec *x)
{
    return (pare_exec){
        .threads = x ? x->threads : 1, .stop = x ? x->stop : NULL, .int8 = x && x->int8};
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
