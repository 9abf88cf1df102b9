/* checkpoint_sample.h - a small state of a run, and its name. */
#ifndef CHECKPOINT_SAMPLE_H
#define CHECKPOINT_SAMPLE_H
#include "train/checkpoint.h"
#include <pare_test.h>

enum { SAMPLE_COUNT = 5, SAMPLE_STATS = 2, SAMPLE_STEPS = 100 };

typedef struct sample_state {
    float x[4][SAMPLE_COUNT], s[2][SAMPLE_STATS];
    checkpoint c;
} sample_state;

/* Every number another one, by `seed`; 0: all zero, as what a reader fills. */
static inline void sample_fill(sample_state *s, uint64_t seed)
{
    pare_rng g = pare_rng_at(seed, 0);
    memset(s, 0, sizeof *s);
    for (size_t i = 0; seed && i < 4 * SAMPLE_COUNT; i++)
        s->x[i / SAMPLE_COUNT][i % SAMPLE_COUNT] = (float)pare_rng_normal(&g);
    for (size_t i = 0; seed && i < 2 * SAMPLE_STATS; i++)
        s->s[i / SAMPLE_STATS][i % SAMPLE_STATS] = (float)pare_rng_normal(&g);
    s->c = (checkpoint){.count = SAMPLE_COUNT,
                        .nstats = SAMPLE_STATS,
                        .values = s->x[0],
                        .m = s->x[1],
                        .v = s->x[2],
                        .best_values = s->x[3],
                        .stats = s->s[0],
                        .best_stats = s->s[1]};
    if (seed == 0) return;
    s->c.step = 40 + seed, s->c.best_step = 30;
    s->c.val = 0.1, s->c.test = NAN, s->c.loss = -1e-300;
}

static inline void assert_same_state(const sample_state *a, const sample_state *b)
{
    assert_memory_equal(a->x, b->x, sizeof a->x);
    assert_memory_equal(a->s, b->s, sizeof a->s);
    assert_true(a->c.step == b->c.step && a->c.best_step == b->c.best_step);
    assert_memory_equal(&a->c.val, &b->c.val, 3 * sizeof(double)); /* the nan as well */
}

static inline cJSON *sample_run(double lr, const char *task)
{
    cJSON *const run = cJSON_CreateObject();
    assert_true(run && pare_json_add_string(run, "lesson", task) &&
                pare_json_add_number(run, "lr", lr) && pare_json_add_u64(run, "seed", 7));
    return run;
}
#endif
