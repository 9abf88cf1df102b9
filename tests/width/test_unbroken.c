/* No certificate of a width cut is broken: small models, every method, both models evaluated with
 * 113 bits on the graph the certificate speaks of. */
#include "width_nets.h"
#include <claims.h>
#include <enclose_quad.h>
#include <pare/width.h>

enum { MODELS = 20, NODES = 16 };

static net_shape shape_of(uint64_t seed, bool plain)
{
    return (net_shape){.features = 4,
                       .dim = 6,
                       .layers = 1 + seed % 3,
                       .classes = 1 + seed % 3,
                       .heads = plain ? 1 : 1 + seed % 2,
                       .ffn = 5 + seed % 4,
                       .residual = !plain,
                       .gain = seed % 5 == 0 ? 3 : 1};
}

static pare_width_opts opts_of(uint64_t seed)
{
    pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
    static const pare_width_method methods[] = {PARE_WIDTH_EXACT,    PARE_WIDTH_LOWRANK,
                                                PARE_WIDTH_LEVERAGE, PARE_WIDTH_JL,
                                                PARE_WIDTH_QK,       PARE_WIDTH_AUTO};
    o.method = methods[seed % 6];
    o.seed = seed;
    o.trials = 3;
    const bool scores = o.method == PARE_WIDTH_JL || o.method == PARE_WIDTH_QK;
    if (scores) o.qk_dim = 1 + seed % 3;
    if (!scores && o.method != PARE_WIDTH_EXACT) o.dim = 1 + seed % 6;
    if (o.method == PARE_WIDTH_LEVERAGE) o.rows = (pare_width_rows)(seed / 5 % 2);
    return o;
}

static size_t largest(const double *v, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (v[i] > v[best]) best = i;
    return best;
}

/* Largest difference of an entry, and rows whose largest entry is another one. */
static double truth(stage *s, size_t *changed, const pare_model *f, const pare_model *g,
                    const pare_input *in)
{
    const qmat x = q_model(s->w.arena, f, in, 0), y = q_model(s->w.arena, g, in, 0);
    double worst = 0;
    *changed = 0;
    for (size_t i = 0; i < x.n; i++) {
        double a[8], b[8];
        for (size_t j = 0; j < x.d; j++) {
            worst = fmax(worst, fabs((double)(x.v[i * x.d + j] - y.v[i * x.d + j])));
            a[j] = (double)x.v[i * x.d + j];
            b[j] = (double)y.v[i * x.d + j];
        }
        *changed += x.d <= 8 && largest(a, x.d) != largest(b, x.d);
    }
    return worst;
}

static void no_certificate_is_broken(void **state)
{
    (void)state;
    static const size_t alone[] = {5, SIZE_MAX};
    double loosest = 0;
    for (uint64_t seed = 1; seed <= MODELS; seed++) {
        stage s;
        pare_width_report r;
        pare_model *g = NULL;
        size_t changed;
        stage_open(&s, seed);
        net n = rand_net(&s, shape_of(seed, seed % 4 == 0));
        if (seed % 2) n.dtype = PARE_F32;
        const pare_graph graph = rand_graph(&s, NODES, 3, seed % 3 ? NULL : alone);
        const pare_mat x = rand_mat(&s, NODES, 4, 1);
        pare_input in = input_of(&x, &graph);
        const pare_inputs set = {1, &in};
        const pare_width_opts o = opts_of(seed);
        pare_model *const f = model_of(&s, &n);
        assert_ok(pare_width(&g, &r, f, &set, &o, NULL, &s.err), &s.err);
        const pare_prover *const prover = &pare_width_provers[o.method];
        const pare_data_ref data = {.kind = "random", .count = 1, .tokens = NODES};
        const pare_cert claimed = {.reduction = prover->reduction, .data = data};
        pare_cert cert = claimed;
        assert_ok(prover->prove(&cert, s.w.arena, &claimed, f, g, &set, NULL, &s.err), &s.err);
        const double moved = truth(&s, &changed, f, g, &in);
        if (!(moved <= cert.proven && moved <= pare_cert_apriori(&cert) &&
              (double)changed / NODES <= claim_value(&cert, PARE_ROWS_CHANGED)))
            fail_msg("seed %llu: moved %.17g, proven %.17g, a priori %g, %zu rows changed",
                     (unsigned long long)seed, moved, cert.proven, pare_cert_apriori(&cert),
                     changed);
        if (moved > 1e-6) loosest = fmax(loosest, cert.proven / moved);
        pare_model_free(f);
        pare_model_free(g);
        stage_close(&s);
    }
    print_message("%d models, proven at most %.9g times the truth\n", MODELS, loosest);
    assert_true(loosest < 1.0001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_certificate_is_broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
