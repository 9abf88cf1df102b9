/* relu_tickets.h - nets with ReLU parts, their tickets of a ReLU source, and attempts to break what
 * is proven of them. */
#ifndef TEST_RELU_TICKETS_H
#define TEST_RELU_TICKETS_H
#include "ticket_attack.h"
#include "ticket/ticket_bounds.h"
#include "ticket/ticket_internal.h"

/* Blocks of a ReLU part each (no attention), of width d, with a skip where there are two or more;
 * one layer is linear. */
static inline pare_model *relu_target(pare_rng *r, size_t d, size_t layers, size_t blocks,
                                      bool biases)
{
    pare_err err = {0};
    pare_model *m;
    assert_ok(pare_model_new(&m, &err), &err);
    m->stem.width = d;
    m->nblocks = blocks;
    m->blocks = pare_alloc(m->arena, blocks, sizeof *m->blocks);
    assert_non_null(m->blocks);
    for (size_t b = 0; b < blocks; b++) {
        pare_ffn *const f = &m->blocks[b].ffn;
        *f = (pare_ffn){.kind = PARE_FFN_MLP,
                        .din = d,
                        .dout = d,
                        .nlayers = layers,
                        .act = PARE_ACT_RELU,
                        .skip = {blocks > 1 ? PARE_SKIP_IDENTITY : PARE_SKIP_NONE, {0}}};
        f->layers = pare_alloc(m->arena, layers, sizeof *f->layers);
        assert_non_null(f->layers);
        for (size_t l = 0; l < layers; l++) {
            const size_t in = l ? d + 1 : d, out = l + 1 == layers ? d : d + 1;
            f->layers[l].w = pair_weight(m, r, out, in, PAIR_GAUSS, .7 / sqrt((double)in));
            if (biases) f->layers[l].b = pair_weight(m, r, 1, out, PAIR_GAUSS, .3);
        }
    }
    assert_ok(pare_model_check(m, &err), &err);
    return m;
}

static inline pare_model *relu_ticket(pare_ticket_report *report, const pare_model *f, size_t bits,
                                      pare_ticket_method method, bool biases, size_t hidden)
{
    pare_err err = {0};
    pare_model *g;
    pare_ticket_opts o = PARE_TICKET_OPTS;
    o.mode = PARE_TICKET_MERGED;
    o.method = method;
    o.bits = bits;
    o.hidden = hidden;
    o.biases = biases;
    assert_ok(pare_ticket(&g, report, f, &o, NULL, &err), &err);
    return g;
}

typedef struct relu_sum {
    size_t n;
    double free, given; /* largest measured / bound */
} relu_sum;

static inline void relu_check(relu_sum *sum, const attack *t, uint64_t seed,
                              const pare_ticket_bound *all)
{
    attack_sum one = {0};
    attack_check(&one, t, seed, all);
    sum->free = fmax(sum->free, one.free);
    sum->given = fmax(sum->given, one.given);
}

/* A net of 1 to 4 blocks and 1 to 3 layers, with or without biases and attention in front, as a
 * ticket of few or many bits; rows that are as bad as some steps of ascent can make them. */
static inline void relu_attack(relu_sum *sum, uint64_t seed, int steps)
{
    static const double alphas[] = {.05, 1, 30};
    pare_err err = {0};
    pare_rng r = pare_rng_at(seed, 902);
    pare_ticket_report report;
    pare_ticket_bound all;
    attack t = {.a = pare_arena_new(), .n = 1 + pare_rng_below(&r, 5)};
    assert_non_null(t.a);
    t.s = (pair_shape){.d1 = 1 + pare_rng_below(&r, 5), .size = 1, .heads = 1, .dk = 2};
    t.s.d2 = t.s.d1;
    t.s.skip = true;
    t.alpha = alphas[pare_rng_below(&r, 3)];
    t.f = relu_target(&r, t.s.d1, 1 + pare_rng_below(&r, 3), 1 + pare_rng_below(&r, 4),
                      pare_rng_below(&r, 2));
    if (pare_rng_below(&r, 2)) pair_attention(t.f, &r, &t.f->blocks[0].attn, &t.s);
    const bool biases = pare_rng_below(&r, 2);
    t.g = relu_ticket(&report, t.f, 3 + pare_rng_below(&r, 6), (pare_ticket_method)(seed % 2),
                      biases, 0);
    t.x = pare_alloc(t.a, t.n * t.s.d1, sizeof *t.x);
    assert_non_null(t.x);
    pair_rows(t.x, &r, t.n, t.s.d1, t.alpha);
    assert_ok(pare_ticket_bound_free(&all, t.f, t.g, t.alpha, NULL, &err), &err);
    assert_string_equal(all.why, "");
    relu_check(sum, &t, seed, &all);
    double step = .3;
    for (int i = 0; i < steps; i++) step *= attack_step(&t, step) ? 1.3 : .4;
    relu_check(sum, &t, seed, &all);
    sum->n++;
    pare_model_free(t.g);
    pare_model_free(t.f);
    pare_arena_free(t.a);
}
#endif
