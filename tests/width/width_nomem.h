/* width_nomem.h - a cut and its proof with memory that runs out, or with one allocation refused, at
 * every place: a status, no leak, no model. */
#ifndef WIDTH_NOMEM_H
#define WIDTH_NOMEM_H
#include <fail_alloc.h>
#include <pare/width.h>
#include <pare_test.h>

typedef struct play {
    pare_model *m, *g;
    pare_arena *a;
    pare_inputs set;
    pare_width_opts o;
    pare_claim ask; /* of the proof */
    bool new_inputs;
    pare_err err;
} play;

typedef pare_status work_fn(play *p);

static inline pare_status cut(play *p)
{
    pare_model *g = NULL;
    pare_width_report r;
    const pare_status st = pare_width(&g, &r, p->m, &p->set, &p->o, NULL, &p->err);
    assert_int_equal(g == NULL, st != PARE_OK);
    pare_model_free(g);
    return st;
}

static inline pare_status prove(play *p)
{
    const pare_prover *const prover = &pare_width_provers[p->o.method];
    const pare_data_ref data = {.kind = "random",
                                .count = p->set.n,
                                .tokens = p->set.in[0].tokens,
                                .candidates = p->new_inputs};
    const pare_cert claimed = {
        .reduction = prover->reduction, .data = data, .nclaims = !p->new_inputs, .claims = &p->ask};
    pare_cert again = {.reduction = prover->reduction, .data = data, .evidence = true};
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(&p->err);
    const pare_status st = prover->prove(&again, a, &claimed, p->m, p->g, &p->set, NULL, &p->err);
    pare_arena_free(a);
    return st;
}

static inline void refuse(play *p, work_fn *run, long n, bool once, bool *hit)
{
    p->err = (pare_err){0};
    (once ? fail_alloc_once : fail_alloc_after)(n);
    const pare_status st = run(p);
    *hit = fail_alloc_hit();
    fail_alloc_after(-1);
    if (st != (*hit ? PARE_ERR_MEMORY : PARE_OK) || p->err.code != st)
        fail_msg("method %d, dim %zu, allocation %ld%s: status %d, %s", (int)p->o.method,
                 pare_model_width(p->m, 0), n, once ? " alone" : "", (int)st, p->err.msg);
}

static inline long refuse_each(play *p, work_fn *run)
{
    long n = 0;
    for (int once = 0; once < 2; once++) {
        bool hit = true;
        for (n = 0; hit; n++) {
            refuse(p, run, n, once, &hit);
            assert_true(n < 100000);
        }
    }
    return n - 1;
}
#endif
