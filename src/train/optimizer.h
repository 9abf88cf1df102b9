/* optimizer.h - losses, AdamW, schedules, and runs that survive being killed.
 *
 * A run is a pure function of (start model, task, options, seed): not of threads, ranks, clocks,
 * nor of how often it was stopped and taken up again. */
#ifndef PARE_TRAIN_OPTIMIZER_H
#define PARE_TRAIN_OPTIMIZER_H
#include <pare/train.h>

/* ---- losses ---------------------------------------------------------------------------------- */

/* value: rows x cols, a nan = not counted. Mean over the entries that count. */
PARE_MUST_USE pare_status pare_loss_mse(double *loss, void *dy, const pare_logits *y,
                                        const double *value, double weight, const pare_exec *exec,
                                        pare_err *err);
/* temperature^2 KL(teacher || y) of the softened rows, mean over all rows; teacher: as y. */
PARE_MUST_USE pare_status pare_loss_kl(double *loss, void *dy, const pare_logits *y,
                                       const void *teacher, double temperature, double weight,
                                       const pare_exec *exec, pare_err *err);

/* ---- optimizer ------------------------------------------------------------------------------- */

/* Euclidean norm of grad (in f64, fixed blocks); grad is scaled down to `clip` when that is > 0 and
 * smaller. An inf or nan comes back as such and leaves grad alone. */
double pare_clip(float *grad, size_t count, double clip, const pare_exec *exec);
/* Linear from 0 to lr over `warmup` steps, then a half cosine down to `last`; step from 0. The ends
 * are outside: lr (step + 1) / (warmup + 1) first, and `last` is what step = steps would have. */
double pare_cosine(uint64_t step, uint64_t steps, uint64_t warmup, double lr, double last);
#endif
