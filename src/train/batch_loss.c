#include "batch_loss.h"
#include "loss.h"
#include <stdlib.h>
#include <string.h>

/* Of the running figures of batch norms: torch's. */
#define MOMENTUM 0.1

/* ---- opening ----------------------------------------------------------------------------------
 */

/* The teacher's place that place b of the student looks at; false where their widths differ. */
static bool place_of(size_t *out, const batch_loss *t, size_t b)
{
    const pare_model *const m = t->student->model, *const k = t->teacher->model;
    *out = m->nblocks ? b * k->nblocks / m->nblocks : k->nblocks;
    return pare_model_width(m, b) == pare_model_width(k, *out);
}

static size_t places(const batch_loss *t)
{
    size_t n = 0;
    for (size_t b = 0, at; b <= t->student->model->nblocks; b++) n += place_of(&at, t, b);
    return n;
}

static pare_status teacher_open(batch_loss *t, pare_err *err)
{
    pare_status st = pare_params_new(&t->teacher, t->o->teacher, PARE_F32, err);
    if (!st) st = pare_tape_new(&t->teacher_tape, t->teacher, t->exec, err);
    if (st || t->o->hidden == 0) return st;
    if (places(t) == 0)
        return pare_fail(err, PARE_ERR_USAGE,
                         "no hidden state of the teacher is as wide as the model's");
    t->dstream = calloc(t->student->model->nblocks + 1, sizeof *t->dstream);
    t->arena = pare_arena_new();
    return t->dstream && t->arena ? PARE_OK : pare_no_memory(err);
}

pare_status batch_loss_open(batch_loss *t, const pare_model *start, const pare_lesson *lesson,
                            const pare_train_opts *o, const pare_exec *exec, pare_err *err)
{
    *t = (batch_loss){.o = o, .exec = exec, .fixed = lesson->fixed};
    pare_status st = pare_params_new(&t->student, start, PARE_F32, err);
    if (!st) st = pare_tape_new(&t->tape, t->student, exec, err);
    if (!st) st = pare_tape_attend_by(t->tape, o->attention, err);
    if (!st && o->teacher) st = teacher_open(t, err);
    return st;
}

void batch_loss_close(batch_loss *t)
{
    pare_tape_free(t->tape);
    pare_tape_free(t->teacher_tape);
    pare_params_free(t->student);
    pare_params_free(t->teacher);
    pare_arena_free(t->arena);
    free(t->dstream);
    free(t->dy);
    *t = (batch_loss){0};
}

/* ---- one batch --------------------------------------------------------------------------------
 */

/* dy of `n` numbers, all 0. It is kept from batch to batch: fresh pages for a large vocabulary cost
 * more than the loss. */
static pare_status dy_clear(batch_loss *t, size_t n, pare_err *err)
{
    if (n > t->room) {
        free(t->dy);
        t->room = 0;
        t->dy = malloc(n * sizeof *t->dy);
        if (!t->dy) return pare_no_memory(err);
        t->room = n;
    }
    memset(t->dy, 0, n * sizeof *t->dy);
    return PARE_OK;
}

static pare_status target_loss(batch_loss *t, double *loss, const pare_logits *y,
                               const pare_batch *b, double weight, pare_err *err)
{
    PARE_ASSERT(b->label || b->value);
    return b->label ? pare_loss_cross_entropy(loss, t->dy, y, b->label, weight, t->exec, err)
                    : pare_loss_mse(loss, t->dy, y, b->value, weight, t->exec, err);
}

/* + hidden * the mean over the places of the mean square between the two streams. */
static pare_status hidden_loss(batch_loss *t, double *loss, const pare_input *in, pare_err *err)
{
    const pare_model *const m = t->student->model;
    const size_t rows = in->batch * in->tokens;
    const double weight = t->o->hidden / (double)places(t);
    pare_arena_free(t->arena);
    t->arena = pare_arena_new();
    if (!t->arena) return pare_no_memory(err);
    for (size_t b = 0, at; b <= m->nblocks; b++) {
        if (!place_of(&at, t, b)) continue;
        const pare_logits y = {PARE_F32, rows, pare_model_width(m, b),
                               pare_tape_stream(t->tape, b)};
        float *const d = pare_alloc(t->arena, rows * y.cols, sizeof *d);
        if (!d) return pare_no_memory(err);
        *loss +=
            weight * loss_mse_f32(d, &y, pare_tape_stream(t->teacher_tape, at), weight, t->exec);
        t->dstream[b] = d;
    }
    return PARE_OK;
}

/* The teacher has no dropout and its weights stay: of the same batch it says the same. */
static pare_status ask_teacher(batch_loss *t, const pare_input *in, pare_err *err)
{
    const pare_mode still = {.training = false};
    if (t->fixed && t->softmax_row) return PARE_OK;
    return pare_tape_forward(t->teacher_tape, in, &still, &t->softmax_row, err);
}

static pare_status teacher_loss(batch_loss *t, double *loss, const pare_logits *y,
                                const pare_input *in, pare_err *err)
{
    double kl = 0;
    pare_status st = ask_teacher(t, in, err);
    if (!st && t->o->distill > 0)
        st = pare_loss_kl(&kl, t->dy, y, t->softmax_row, t->o->temperature, t->o->distill, t->exec,
                          err);
    *loss += t->o->distill * kl;
    if (!st && t->o->hidden > 0) st = hidden_loss(t, loss, in, err);
    return st;
}

pare_status batch_loss_forward(batch_loss *t, double *loss, const pare_batch *b, uint64_t step,
                               pare_err *err)
{
    const pare_model *const m = t->student->model;
    const pare_mode mode = {.training = true,
                            .dropout = t->o->dropout,
                            .momentum = MOMENTUM,
                            .seed = t->o->seed,
                            .step = step};
    pare_logits y = {PARE_F32, 0, pare_model_outputs(m), NULL};
    pare_status st = pare_tape_forward(t->tape, &b->in, &mode, &y.v, err);
    if (st) return st;
    const double from_target = t->teacher ? 1 - t->o->distill : 1;
    double target = 0;
    y.rows = pare_output_rows(m, &b->in);
    st = dy_clear(t, y.rows * y.cols, err);
    if (!st && from_target > 0) st = target_loss(t, &target, &y, b, from_target, err);
    *loss = from_target * target;
    if (!st && t->teacher) st = teacher_loss(t, loss, &y, &b->in, err);
    return st;
}
