/* length_train.c - training through an oracle: both passes of attention as tiles of at most M
 * tokens, for tapes (pare_attention_provider). The forward pass is a native plan, which also leaves
 * the log of each row's sum; the backward pass goes through the same tiles (length_backward.c). */
#include "numbers.h"
#include <math.h>
#include "attend_plan.h"
#include "backend.h"
#include <stdio.h>
#include <stdlib.h>

static pare_status forward(void *self, pare_dtype t, const pare_attend_job *jobs, void *const *lse,
                           size_t count, const pare_pattern *p, pare_err *err)
{
    pare_length_training *const w = self;
    const pare_length_opts o = {.mode = PARE_LENGTH_NATIVE};
    pare_length_job *const own = calloc(count + 1, sizeof *own);
    if (!own) return pare_no_memory(err);
    PARE_ASSERT(t == w->caps.dtype);
    for (size_t i = 0; i < count; i++) {
        own[i] = pare_length_job_of(&jobs[i]);
        own[i].lse = lse[i];
    }
    const pare_status st = pare_length_attend(
        &w->oracle, &o, &(pare_length_layer){.jobs = own, .count = count, .pattern = p}, NULL,
        w->exec, err);
    free(own);
    if (st != PARE_ERR_NONFINITE && st != PARE_ERR_NUMERIC) return st;
    /* A run that diverges is found by its loss, as it is without an oracle: what cannot be computed
     * from these numbers is a nan. */
    for (size_t u = 0; u < count; u++)
        for (size_t i = 0; i < jobs[u].n; i++)
            for (size_t c = 0; c < jobs[u].dv; c++) num_put(t, jobs[u].y, i * jobs[u].ldy + c, NAN);
    return PARE_OK;
}

static pare_status backward(void *self, pare_dtype t, const pare_attend_grad *g,
                            const pare_pattern *p, pare_err *err)
{
    pare_length_training *const w = self;
    pare_length_grad own = {.job = pare_length_job_of(&g->job),
                            .dy = g->dy,
                            .lddy = g->lddy,
                            .dq = g->dq,
                            .dk = g->dk,
                            .dv = g->dv,
                            .lddq = g->lddq,
                            .lddk = g->lddk,
                            .lddv = g->lddv};
    own.job.lse = (void *)g->lse; /* read only */
    return pare_length_backward(&own, t, w->caps.max_len, p, NULL, &w->backward, w->exec, err);
}

pare_status pare_length_training_open(pare_length_training *w, pare_oracle oracle,
                                      const pare_exec *exec, pare_err *err)
{
    *w = (pare_length_training){.exec = exec};
    pare_status st = pare_oracle_counting(&w->oracle, oracle, &w->forward, err);
    if (st) return st;
    w->oracle.ops->caps(w->oracle.self, &w->caps);
    snprintf(w->id, sizeof w->id, "oracle %u", (unsigned)w->caps.max_len);
    w->by = (pare_attention_provider){w->id, forward, backward, w};
    if (w->caps.features & PARE_ORC_PARTIAL) return PARE_OK;
    pare_length_training_close(w);
    return pare_fail(err, PARE_ERR_INPUT,
                     "length: training needs an oracle with partial results: a black box has no "
                     "gradient");
}

void pare_length_training_close(pare_length_training *w)
{
    pare_oracle_free(&w->oracle);
    w->oracle = (pare_oracle){0};
}
