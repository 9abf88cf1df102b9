/* distill.c - distillation of a cut model from its teacher. The coordinates that cut_auto.c writes
 * have unit variance and dense skips, which trains well; with skips rewritten as identities the
 * same training collapses (docs/theory/width.md section 8). */
#include <pare/width.h>

#define WARMUP 3 /* epochs */

pare_status pare_width_distill(pare_model **out, pare_train_result *result, const pare_model *cut,
                               const pare_task *task, const pare_distill_opts *o,
                               const pare_exec *exec, pare_err *err)
{
    const uint64_t epoch = task->epoch > 0 ? task->epoch : 1;
    *out = NULL;
    if (o->epochs < 1 || !(o->lr > 0) || !(o->weight >= 0 && o->weight <= 1))
        return pare_fail(err, PARE_ERR_USAGE,
                         "distilling needs epochs, a rate above 0 and a weight in [0, 1]");
    const pare_train_opts t = {
        .steps = o->epochs * epoch,
        .warmup = (o->epochs > WARMUP ? WARMUP : 0) * epoch,
        .eval_every = epoch,
        .lr = o->lr,
        .clip = 1,
        .adamw = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
        .seed = o->seed,
        .teacher = o->weight > 0 ? o->teacher : NULL,
        .distill = o->weight,
        .temperature = 1,
    };
    return pare_train(out, result, cut, task, &t, exec, err);
}
