/* bench_measure.c - measures on a machine that is never quiet (bench.h): sgemm, ours and each peer
 * take turns, again and again, and the best and the median of the same minutes are compared. */
#include "bench.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define TURN      0.02     /* seconds: what is shorter is run several times in a turn */
#define MOST_RUNS 64       /* in one turn */
#define FEW_RUNS  3        /* in one turn, at least: the first finds its caches cold */
#define PAUSE_NS  20000000 /* before and after a peer: threads may still be spinning */

static volatile sig_atomic_t caught_signal;

static void catch_signal(int signal_number)
{
    caught_signal = signal_number;
}

void bench_catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction old, act = {.sa_handler = catch_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)sigaction(signals[i], &act, NULL); /* what is ignored (nohup) stays ignored */
}

int bench_signalled(void)
{
    return caught_signal;
}

static void add_sample(bench_samples *s, double seconds)
{
    if (s->n < BENCH_SAMPLES) s->t[s->n++] = seconds;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_best(bench_samples *s)
{
    qsort(s->t, s->n, sizeof *s->t, by_size);
    return s->t[0];
}

double bench_median(bench_samples *s)
{
    qsort(s->t, s->n, sizeof *s->t, by_size);
    return s->n % 2 ? s->t[s->n / 2] : (s->t[s->n / 2 - 1] + s->t[s->n / 2]) / 2;
}

static void pause_shortly(void)
{
    const struct timespec t = {0, PAUSE_NS};
    nanosleep(&t, NULL);
}

static size_t runs_in_turn(const bench_match *m, double seconds)
{
    const double n = ceil(TURN / (seconds > 1e-9 ? seconds : 1e-9));
    const size_t least = m->turns > 2 ? FEW_RUNS : 1;
    return n < (double)least ? least : n > MOST_RUNS ? MOST_RUNS : (size_t)n;
}

static pare_status gemm_turn(bench_match *m, const bench_job *j)
{
    double gflops = 0;
    const pare_status st = bench_gemm_run(&m->gemm, &j->exec, m->cpu, &gflops, &m->c->err);
    if (!st) add_sample(&m->sgemm, 1 / gflops);
    return st;
}

/* Between two runs of sgemm: the yardstick must have its chance of a quiet moment, too. */
static pare_status our_turn(bench_match *m, bench_job *j, const bench_kind *k, size_t runs)
{
    pare_status st = gemm_turn(m, j);
    for (size_t i = 0; i < runs && !st; i++) {
        const double start = bench_seconds(m->cpu);
        st = k->run(j);
        add_sample(&m->ours, bench_seconds(m->cpu) - start);
    }
    return st ? st : gemm_turn(m, j);
}

/* A peer that breaks is left out from there on; the others and ours continue. */
static pare_status drop_broken_peer(bench_match *m, bench_peer *p, pare_status st)
{
    if (!st || st == PARE_ERR_VERIFY) return st;
    cli_note(m->c, "%s; it is missing from here on", m->c->err.msg);
    bench_peer_stop(p);
    m->lost++;
    return PARE_OK;
}

static pare_status peer_turn(bench_match *m, bench_opponent *o)
{
    double t[MOST_RUNS];
    const size_t runs = runs_in_turn(m, o->first);
    pause_shortly();
    const pare_status st = bench_peer_run(o->peer, runs, t, &m->c->err);
    for (size_t i = 0; i < runs && !st; i++) add_sample(&o->took, t[i]);
    pause_shortly();
    return drop_broken_peer(m, o->peer, st);
}

static pare_status check_result(bench_match *m, bench_job *j, const bench_case *k)
{
    pare_status st = k->kind->check(j, &m->error);
    if (!st && !(m->error <= j->tolerance))
        st = pare_fail(&m->c->err, PARE_ERR_VERIFY,
                       "%s, %s: the result is wrong, relative error %.2g (at most %.2g)", k->name,
                       j->shape, m->error, j->tolerance);
    return st;
}

pare_status bench_measure(bench_match *m, bench_job *j, const bench_case *k)
{
    m->ours.n = m->sgemm.n = 0;
    pare_status st = k->kind->threads ? k->kind->threads(j) : PARE_OK;
    if (!st) st = our_turn(m, j, k->kind, 1); /* warms up */
    if (!st) st = check_result(m, j, k);
    if (!st) {
        /* Who can do this case. The first run of a peer, which is not counted, must give our
         * result. */
        st = PARE_OK;
        m->nagainst = 0;
        for (size_t i = 0; j->result && i < m->npeers && !st; i++) {
            bench_opponent *o = &m->against[m->nagainst];
            bool can = false;
            *o = (bench_opponent){.peer = &m->peers[i]};
            if (o->peer->fd < 0) continue;
            st = bench_peer_load(o->peer, j, &can, o->label, &m->c->err);
            if (!st && can) st = bench_peer_run(o->peer, 1, &o->first, &m->c->err);
            if (!st && can) st = bench_peer_compare(o->peer, j, &m->c->err);
            st = drop_broken_peer(m, o->peer, st);
            if (can && o->peer->fd >= 0) m->nagainst++;
        }
    }
    if (st) return st;
    const size_t runs = runs_in_turn(m, m->ours.t[0]);
    m->ours.n = m->sgemm.n = 0;
    const double start = pare_seconds();
    for (size_t turn = 0; turn < m->turns && !st; turn++) {
        if (turn >= 2 && pare_seconds() - start > m->budget) break;
        if (bench_signalled()) return pare_fail(&m->c->err, PARE_ERR_IO, "told to stop");
        st = our_turn(m, j, k->kind, runs);
        for (size_t i = 0; i < m->nagainst && !st; i++)
            if (m->against[i].peer->fd >= 0) st = peer_turn(m, &m->against[i]);
    }
    size_t left = 0;
    for (size_t i = 0; i < m->nagainst; i++)
        if (m->against[i].peer->fd >= 0) m->against[left++] = m->against[i];
    m->nagainst = left;
    return st ? st : check_result(m, j, k); /* the last run as well as the first */
}
