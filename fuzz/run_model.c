/* What was accepted must also run. */
#include "fuzz.h"
#include <pare/fold.h>

#include <stdlib.h>

enum { TOKENS = 3, MOST_MACS = 200000, MOST_OUTPUTS = 20000 };

static void both_passes(const pare_model *m, const pare_input *in)
{
    pare_err err = {0};
    const size_t count = pare_output_rows(m, in) * pare_model_outputs(m);
    double *const y = malloc((count ? count : 1) * sizeof *y);
    float *const z = malloc((count ? count : 1) * sizeof *z);
    FUZZ_EXPECT(y && z);
    fuzz_expect_said(pare_forward_f64(y, m, in, NULL, NULL, &err), &err);
    fuzz_expect_said(pare_forward_f32(z, m, in, NULL, NULL, &err), &err);
    free(y);
    free(z);
}

void fuzz_run_model(const pare_model *m)
{
    const size_t tokens = m->context && m->context < TOKENS ? m->context : TOKENS;
    if (pare_model_size(m, tokens, 0).macs > MOST_MACS || pare_model_outputs(m) > MOST_OUTPUTS)
        return;
    pare_arena *const a = pare_arena_new();
    pare_err err = {0};
    pare_inputs set;
    pare_model *folded = NULL;
    pare_fold_report report;
    FUZZ_EXPECT(a);
    pare_status st = pare_inputs_random(&set, a, m, 1, tokens, 1, &err);
    fuzz_expect_said(st, &err);
    if (!st) both_passes(m, &set.in[0]);
    if (!st) st = pare_fold(&folded, &report, m, &err);
    fuzz_expect_said(st, &err);
    if (!st) both_passes(folded, &set.in[0]);
    pare_model_free(folded);
    pare_arena_free(a);
}
