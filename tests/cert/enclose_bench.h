/* enclose_bench.h - one piece of an enclosure at a time, for the tests that look at them. */
#ifndef ENCLOSE_BENCH_H
#define ENCLOSE_BENCH_H
#include "cert/enclose.h"
#include <enclose_models.h>
#include <enclose_quad.h>

typedef struct bench { /* a model whose only purpose is to hold one piece */
    pare_model *m;
    pare_model_norms *norms;
    pare_arena *a;
    enclose_ctx c;
    pare_block block;
    pare_head head;
    pare_rng r;
    bool wide;
} bench;

/* Every other seed has wide midpoints. */
static inline void bench_start(bench *b, uint64_t seed)
{
    *b = (bench){.a = pare_arena_new(), .r = pare_rng_at(seed, 1), .wide = seed / 2 % 2};
    assert_int_equal(pare_model_new(&b->m, NULL), PARE_OK);
    b->m->embedding.width = 1;
    b->m->blocks = &b->block;
    b->m->nblocks = 1;
}

static inline void bench_ready(bench *b, size_t tokens)
{
    assert_int_equal(pare_model_norms_new(&b->norms, b->a, b->m, NULL, NULL), PARE_OK);
    b->c =
        (enclose_ctx){.m = b->m, .norms = b->norms, .tokens = tokens, .a = b->a, .wide = b->wide};
}

static inline void bench_end(bench *b)
{
    pare_arena_free(b->a);
    pare_model_free(b->m);
}
#endif
