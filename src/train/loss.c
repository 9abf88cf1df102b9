/* Losses and their gradients, row by row.
 *
 *   cross entropy  -log p_label            d/dy = p - onehot
 *   MSE            (y - value)^2           d/dy = 2 (y - value)
 *   KL, softened   T^2 KL(p_T || q_T)      d/dy = T (q_T - p_T),  p_T = softmax(teacher / T)
 *
 * each a mean over what counts. Rows are cut into at most BLOCKS blocks by their number alone; each
 * block has its own partial sum, and these are added in order: same bits for any threads. */
#include "loss.h"
#include "softmax_row.h"
#include <math.h>

enum { BLOCKS = 256 };

typedef struct work {
    const pare_logits *y;
    void *dy;
    const int64_t *label;
    const double *value;
    const void *teacher;
    double by, w; /* of the softmax; of the gradient of one row or entry */
    size_t per;   /* rows of a block */
    double part[BLOCKS];
} work;

static double run(work *j, void (*fn)(void *ctx, size_t block), const pare_exec *exec)
{
    j->per = (j->y->rows + BLOCKS - 1) / BLOCKS;
    if (j->per == 0) return 0;
    const size_t blocks = (j->y->rows + j->per - 1) / j->per;
    pare_parallel(exec, blocks, fn, j);
    double sum = 0;
    for (size_t b = 0; b < blocks; b++) sum += j->part[b];
    return sum;
}

static size_t end_of(const work *j, size_t block)
{
    const size_t end = (block + 1) * j->per;
    return end < j->y->rows ? end : j->y->rows;
}

static pare_status nothing(pare_err *err, const char *what)
{
    return pare_fail(err, PARE_ERR_INPUT, "no %s counts: there is nothing to learn from", what);
}

/* ---- cross entropy -----------------------------------------------------------------------------
 */

/* -log p_label of row r; its gradient is added to dy. */
static double entropy_row(const work *j, size_t r)
{
    const size_t n = j->y->cols, label = (size_t)j->label[r];
    if (j->y->dtype == PARE_F32) {
        const float *const x = (const float *)j->y->v + r * n;
        float *const dy = (float *)j->dy + r * n;
        const softmax_row s = softmax_row_f32(x, n, 1);
        softmax_backward_f32(dy, x, n, s, (float)j->w);
        dy[label] -= (float)j->w;
        return log(s.sum) - ((double)x[label] - s.top);
    }
    const double *const x = (const double *)j->y->v + r * n;
    double *const dy = (double *)j->dy + r * n;
    const softmax_row s = softmax_row_f64(x, n, 1);
    softmax_backward_f64(dy, x, n, s, j->w);
    dy[label] -= j->w;
    return log(s.sum) - (x[label] - s.top);
}

static void entropy_block(void *ctx, size_t block)
{
    work *const j = ctx;
    double sum = 0;
    for (size_t r = block * j->per; r < end_of(j, block); r++)
        if (j->label[r] >= 0) sum += entropy_row(j, r);
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
    if (counted == 0) return nothing(err, "row");
    work j = {.y = y, .dy = dy, .label = label, .w = weight / (double)counted};
    *loss = run(&j, entropy_block, exec) / (double)counted;
    return PARE_OK;
}

/* ---- mean square -------------------------------------------------------------------------------
 */

static void square_block(void *ctx, size_t block)
{
    work *const j = ctx;
    const size_t n = j->y->cols, end = end_of(j, block) * n;
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
    if (counted == 0) return nothing(err, "value");
    work j = {.y = y, .dy = dy, .value = value, .w = 2 * weight / (double)counted};
    *loss = run(&j, square_block, exec) / (double)counted;
    return PARE_OK;
}

static void between_block(void *ctx, size_t block)
{
    work *const j = ctx;
    const float *const y = j->y->v, *const other = j->teacher;
    const float w = (float)j->w;
    float *const dy = j->dy;
    double sum = 0;
    for (size_t i = block * j->per * j->y->cols; i < end_of(j, block) * j->y->cols; i++) {
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
    work j = {.y = y, .dy = dy, .teacher = other, .w = 2 * weight / n};
    return run(&j, between_block, exec) / n;
}

/* ---- distillation ------------------------------------------------------------------------------
 */

static double kl_row(const work *j, size_t r)
{
    const size_t n = j->y->cols, at = r * n;
    if (j->y->dtype == PARE_F32) {
        const float *const y = (const float *)j->y->v + at, *const t =
                                                                (const float *)j->teacher + at;
        const float by = (float)j->by;
        return softmax_kl_f32((float *)j->dy + at, y, softmax_row_f32(y, n, by), t,
                              softmax_row_f32(t, n, by), n, by, (float)j->w);
    }
    const double *const y = (const double *)j->y->v + at, *const t =
                                                              (const double *)j->teacher + at;
    return softmax_kl_f64((double *)j->dy + at, y, softmax_row_f64(y, n, j->by), t,
                          softmax_row_f64(t, n, j->by), n, j->by, j->w);
}

static void kl_block(void *ctx, size_t block)
{
    work *const j = ctx;
    double sum = 0;
    for (size_t r = block * j->per; r < end_of(j, block); r++) sum += kl_row(j, r);
    j->part[block] = sum;
}

pare_status pare_loss_kl(double *loss, void *dy, const pare_logits *y, const void *teacher,
                         double temperature, double weight, const pare_exec *exec, pare_err *err)
{
    if (!(temperature > 0) || isinf(temperature))
        return pare_fail(err, PARE_ERR_USAGE, "the temperature %g is not above 0", temperature);
    if (y->rows == 0 || y->cols == 0) return nothing(err, "row");
    work j = {.y = y,
              .dy = dy,
              .teacher = teacher,
              .by = 1 / temperature,
              .w = weight * temperature / (double)y->rows};
    *loss = temperature * temperature * run(&j, kl_block, exec) / (double)y->rows;
    return PARE_OK;
}
