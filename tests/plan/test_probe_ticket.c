/* Tests src/plan/probe_ticket.c. */
#include "plan/probe.h"
#include <pare/plan.h>
#include <pare_test.h>

static pare_probe *probe_of(pare_random_kind kind, size_t heads, uint64_t seed)
{
    pare_err err = {0};
    pare_model *m;
    pare_probe *p;
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_probe_opts how = PARE_PROBE_OPTS_DEFAULT;
    o.kind = kind, o.dim = 16, o.heads = heads, o.layers = 2, o.vocab = 32, o.context = 8;
    how.part = PARE_PROBE_TICKET;
    how.seed = seed;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    assert_ok(pare_probe_model(&p, m, NULL, &how, NULL, &err), &err);
    assert_true(p->has_ticket && !p->has_depth && p->nuntold == 0);
    pare_model_free(m);
    return p;
}

static const pare_probe_kind *kind_of(const pare_probe *p, const char *name)
{
    for (size_t i = 0; i < p->ticket.nkinds; i++)
        if (strcmp(p->ticket.kinds[i].name, name) == 0) return &p->ticket.kinds[i];
    return NULL;
}

static void matrices_of_one_kind_are_counted_together(void **state)
{
    pare_probe *const p = probe_of(PARE_RANDOM_GPT, 2, 0);
    const pare_probe_kind *const q = kind_of(p, "attn.wq"), *const e =
                                                                kind_of(p, "embedding.embedding");
    uint64_t all = 0;
    (void)state;
    assert_true(q && e && q->count == 2 && q->weights == 512 && e->count == 1 && e->rows == 32);
    assert_true(q->largest > q->rms && q->rms > .2 && q->rms < .3);
    assert_int_equal(q->reach, (size_t)ceil(8 * q->largest));
    for (size_t i = 0; i < p->ticket.nkinds; i++) all += p->ticket.kinds[i].weights;
    assert_int_equal(p->ticket.f32, 4 * all);
    pare_probe_free(p);
}

/* Smaller errors take more items and bytes; merged tickets grow with the heads, factored ones do
 * not; what the lattice cannot prove is not proven. */
static void needs_grow_as_they_must(void **state)
{
    pare_probe *const few = probe_of(PARE_RANDOM_GPT, 2, 0), *const many =
                                                                 probe_of(PARE_RANDOM_GPT, 8, 0);
    const pare_probe_need *n = few->ticket.needs, *o = many->ticket.needs;
    (void)state;
    for (size_t i = 0; i < few->ticket.nneeds; i++) {
        assert_true(i == 0 || n[i].error < n[i - 1].error);
        assert_true(i == 0 || n[i].seen == 0 || n[i].seen >= n[i - 1].seen);
        assert_true(n[i].density > 100);
        assert_true(n[i].proven ? n[i].coupling < n[i].error : n[i].coupling >= n[i].error * .5);
        if (!n[i].seen) continue;
        assert_int_equal(n[i].factored, n[i].seen * (few->ticket.f32 / 4) / 8);
        assert_true(o[i].seen == 0 || o[i].merged > o[i].factored);
    }
    assert_true(n[1].seen >= 10 && n[1].seen <= 22); /* docs/theory/ticket.md, searches: 1e-2 */
    pare_probe_free(many);
    pare_probe_free(few);
}

static void rotary_heads_are_not_merged(void **state)
{
    pare_probe *const p = probe_of(PARE_RANDOM_LLAMA, 2, 0);
    (void)state;
    assert_contains(p->ticket.not_merged, "rotary");
    for (size_t i = 0; i < p->ticket.nneeds; i++) assert_int_equal(p->ticket.needs[i].merged, 0);
    pare_probe_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_of_one_kind_are_counted_together),
        cmocka_unit_test(needs_grow_as_they_must),
        cmocka_unit_test(rotary_heads_are_not_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
