/* Tests src/length/{native,zeroref,reference,rounds}.c: attention by calls of M tokens is
 * attention.
 */
#include "length_cases.h"

static const pare_pattern patterns[] = {{.kind = PARE_FULL},
                                        {.kind = PARE_CAUSAL},
                                        {.kind = PARE_WINDOW, .window = 5},
                                        {.kind = PARE_WINDOW, .window = 40},
                                        {.kind = PARE_WINDOW, .window = 7, .sinks = 3},
                                        {.kind = PARE_WINDOW, .window = 9, .sinks = 20}};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

static void check_case(length_case *c, const pare_pattern *p, uint32_t m, pare_dtype t,
                       const pare_length_opts *o, const char *what)
{
    pare_oracle orc = cpu_oracle(t, m, NULL);
    const pare_length_job job = job_of(c, t);
    pare_length_stats s;
    pare_err err = {0};
    assert_ok(pare_length_attend(&orc, o, &job, 1, p, NULL, &s, NULL, &err), &err);
    const double off = error_in(c, t), most = allowed(c, t);
    if (!(off <= most))
        fail_msg("%s, pattern %d window %zu sinks %zu, n %zu, M %u, %s: off by %g, allowed %g",
                 what, (int)p->kind, p->window, p->sinks, c->n, m, t == PARE_F32 ? "f32" : "f64",
                 off, most);
    pare_oracle_free(&orc);
}

/* Property 4: all patterns, oracles and regimes. */
static void robust_modes_are_as_good_as_direct(void **state)
{
    (void)state;
    static const pare_length_opts ways[] = {
        {.mode = PARE_LENGTH_NATIVE},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_CAUSAL},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL, .no_pack = true},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_CAUSAL, .no_pack = true},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL, .host_remainder = true},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_CAUSAL, .reference = PARE_REF_MEAN}};
    static const char *const names[] = {
        "native",          "full",          "causal",      "full unpacked",
        "causal unpacked", "full and host", "causal, mean"};
    for (int kind = 0; kind < REGIMES; kind++)
        for (size_t p = 0; p < PATTERNS; p++) {
            length_case c = length_case_new(131, 6, 5, (regime)kind, 7 + p);
            length_case_exact(&c, &patterns[p], NULL);
            for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
                for (uint32_t m = 3; m <= 64; m = 2 * m + 1) {
                    check_case(&c, &patterns[p], m, PARE_F32, &ways[w], names[w]);
                    check_case(&c, &patterns[p], m, PARE_F64, &ways[w], names[w]);
                }
            length_case_free(&c);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(robust_modes_are_as_good_as_direct),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
