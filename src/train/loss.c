/* loss.c - losses and their gradients, row by row.
 *
 *   cross entropy  -log p_label            d/dy = p - onehot
 *   MSE            (y - value)^2           d/dy = 2 (y - value)
 *   KL, softened   T^2 KL(p_T || q_T)      d/dy = T (q_T - p_T),  p_T = softmax(teacher / T)
 *
 * each a mean over what counts. Rows are cut into at most BLOCKS blocks by their number alone; each
 * block has its own partial sum, and these are added in order: same bits for any threads. */
#include "optimizer.h"
#include "loss.h"
#include "softmax_row.h"
#include <math.h>

enum { BLOCKS = 256 };

typedef struct loss_job {
    const pare_logits *y;
    void *dy;
    const int64_t *label;
    const double *value;
    const void *teacher;
    double scale, w; /* of the softmax; of the gradient of one row or entry */
    size_t per;      /* rows of a block */
    double part[BLOCKS];
} loss_job;

static double sum_blocks(loss_job *j, void (*fn)(void *ctx, size_t block), const pare_exec *exec)
{
    j->per = (j->y->rows + BLOCKS - 1) / BLOCKS;
    if (j->per == 0) return 0;
    const size_t blocks = (j->y->rows + j->per - 1) / j->per;
    pare_parallel(exec, blocks, fn, j);
    double sum = 0;
    for (size_t b = 0; b < blocks; b++) sum += j->part[b];
    return sum;
}

static size_t block_end(const loss_job *j, size_t block)
{
    const size_t end = (block + 1) * j->per;
    return end < j->y->rows ? end : j->y->rows;
}

static pare_status nothing_counts(pare_err *err, const char *what)
{
    return pare_fail(err, PARE_ERR_INPUT, "no %s counts: there is nothing to learn from", what);
}

/* ---- cross entropy -------------------------------------------------------------------------- */

/* -log p_label of every row; its gradient is added to dy. */
static void entropy_block(void *ctx, size_t block)
{
    loss_job *const j = ctx;
    const size_t n = j->y->cols;
    double sum = 0;
    for (size_t r = block * j->per; r < block_end(j, block); r++) {
        const size_t label = (size_t)j->label[r];
        if (j->label[r] < 0) continue;
        if (j->y->dtype == PARE_F32) {
            const float *const x = (const float *)j->y->v + r * n;
            float *const dy = (float *)j->dy + r * n;
            const softmax_row s = softmax_row_f32(x, n, 1);
            softmax_backward_f32(dy, x, n, s, (float)j->w);
            dy[label] -= (float)j->w;
            sum += log(s.sum) - ((double)x[label] - s.row_max);
        } else {
            const double *const x = (const double *)j->y->v + r * n;
            double *const dy = (double *)j->dy + r * n;
            const softmax_row s = softmax_row_f64(x, n, 1);
            softmax_backward_f64(dy, x, n, s, j->w);
            dy[label] -= j->w;
            sum += log(s.sum) - (x[label] - s.row_max);
        }
    }
    j->part[block] = sum;
}

pare_status pare_loss_cross_entropy(double *loss, void *dy, const pare_logits *y,
                                    const int64_t *label, double weight, const pare_exec *exec,
                                    pare_err *err)
{
    size_t counted = 0;
    for (size_t r = 0; r < y->rows; r++) {
        if (label[r] < -1 || (label[r] >= 0 && (uint64_t)label[r] >= y->cols))
            return pare_fail(err, PARE_ERR_INPUT,
                             "label %lld of row %zu is out of range: there are %zu classes",
                             (long long)label[r], r, y->cols);
        counted += label[r] >= 0;
    }
    if (counted == 0) return nothing_counts(err, "row");
    loss_job j = {.y = y, .dy = dy, .label = label, .w = weight / (double)counted};
    *loss = sum_blocks(&j, entropy_block, exec) / (double)counted;
    return PARE_OK;
}

/* ---- mean square ---------------------------------------------------------------------------- */

static void mse_block(void *ctx, size_t block)
{
    loss_job *const j = ctx;
    const size_t n = j->y->cols, end = block_end(j, block) * n;
    double sum = 0;
    for (size_t i = block * j->per * n; i < end; i++) {
        if (isnan(j->value[i])) continue;
        const bool narrow = j->y->dtype == PARE_F32;
        const double y =
            narrow ? (double)((const float *)j->y->v)[i] : ((const double *)j->y->v)[i];
        const double d = y - j->value[i];
        sum += d * d;
        if (narrow)
            ((float *)j->dy)[i] += (float)(j->w * d);
        else
            ((double *)j->dy)[i] += j->w * d;
    }
    j->part[block] = sum;
}

pare_status pare_loss_mse(double *loss, void *dy, const pare_logits *y, const double *value,
                          double weight, const pare_exec *exec, pare_err *err)
{
    size_t counted = 0;
    for (size_t i = 0; i < y->rows * y->cols; i++) counted += isnan(value[i]) ? 0 : 1;
    if (counted == 0) return nothing_counts(err, "value");
    loss_job j = {.y = y, .dy = dy, .value = value, .w = 2 * weight / (double)counted};
    *loss = sum_blocks(&j, mse_block, exec) / (double)counted;
    return PARE_OK;
}

static void mse_f32_block(void *ctx, size_t block)
{
    loss_job *const j = ctx;
    const float *const y = j->y->v, *const other = j->teacher;
    const float w = (float)j->w;
    float *const dy = j->dy;
    double sum = 0;
    for (size_t i = block * j->per * j->y->cols; i < block_end(j, block) * j->y->cols; i++) {
        const float d = y[i] - other[i];
        sum += (double)d * (double)d;
        dy[i] += w * d;
    }
    j->part[block] = sum;
}

double loss_mse_f32(float *dy, const pare_logits *y, const float *other, double weight,
                    const pare_exec *exec)
{
    const double n = (double)(y->rows * y->cols);
    loss_job j = {.y = y, .dy = dy, .teacher = other, .w = 2 * weight / n};
    return sum_blocks(&j, mse_f32_block, exec) / n;
}

/* ---- distillation --------------------------------------------------------------------------- */

static void kl_block(void *ctx, size_t block)
{
    loss_job *const j = ctx;
    const size_t n = j->y->cols;
    double sum = 0;
    for (size_t r = block * j->per; r < block_end(j, block); r++) {
        if (j->y->dtype == PARE_F32) {
            const float *const y = (const float *)j->y->v + r * n, scale = (float)j->scale;
            const float *const t = (const float *)j->teacher + r * n;
            sum += softmax_kl_f32((float *)j->dy + r * n, y, softmax_row_f32(y, n, scale), t,
                                  softmax_row_f32(t, n, scale), n, scale, (float)j->w);
        } else {
            const double *const y = (const double *)j->y->v + r * n;
            const double *const t = (const double *)j->teacher + r * n;
            sum += softmax_kl_f64((double *)j->dy + r * n, y, softmax_row_f64(y, n, j->scale), t,
                                  softmax_row_f64(t, n, j->scale), n, j->scale, j->w);
        }
    }
    j->part[block] = sum;
}

pare_status pare_loss_kl(double *loss, void *dy, const pare_logits *y, const void *teacher,
                         double temperature, double weight, const pare_exec *exec, pare_err *err)
{
    if (!(temperature > 0) || isinf(temperature))
        return pare_fail(err, PARE_ERR_USAGE, "the temperature %g is not above 0", temperature);
    if (y->rows == 0 || y->cols == 0) return nothing_counts(err, "row");
    loss_job j = {.y = y,
                  .dy = dy,
                  .teacher = teacher,
                  .scale = 1 / temperature,
                  .w = weight * temperature / (double)y->rows};
    *loss = temperature * temperature * sum_blocks(&j, kl_block, exec) / (double)y->rows;
    return PARE_OK;
}
