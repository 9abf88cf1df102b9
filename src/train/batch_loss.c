/* batch_loss.c - forward pass and loss of one batch (batch_loss.h):
 *
 *     loss = (1 - distill) target loss + distill T^2 KL(teacher || student)
 *            + hidden mean over matched places of mean square (student's stream - teacher's) */
#include "gradient.h"
#include "optimizer.h"
#include "batch_loss.h"
#include "loss.h"
#include <stdlib.h>
#include <string.h>

/* Of the running statistics of batch norms: torch's. */
#define MOMENTUM 0.1

/* The teacher's hidden state that state b of the student is compared with; false where their widths
 * differ. */
static bool matching_state(size_t *out, const batch_loss *t, size_t b)
{
    const pare_model *const m = t->student->model, *const k = t->teacher->model;
    *out = m->nblocks ? b * k->nblocks / m->nblocks : k->nblocks;
    return pare_model_width(m, b) == pare_model_width(k, *out);
}

pare_status batch_loss_open(batch_loss *t, const pare_model *start, const pare_task *task,
                            const pare_train_opts *o, const pare_exec *exec, pare_err *err)
{
    *t = (batch_loss){.o = o, .exec = exec, .fixed = task->fixed};
    pare_status st = pare_params_new(&t->student, start, PARE_F32, err);
    if (!st) st = pare_tape_new(&t->tape, t->student, exec, err);
    if (!st) st = pare_tape_attend_by(t->tape, o->attention, err);
    if (st || !o->teacher) return st;
    st = pare_params_new(&t->teacher, o->teacher, PARE_F32, err);
    if (!st) st = pare_tape_new(&t->teacher_tape, t->teacher, exec, err);
    if (st || o->hidden == 0) return st;
    for (size_t b = 0, at; b <= start->nblocks; b++) t->matched += matching_state(&at, t, b);
    if (t->matched == 0)
        return pare_fail(err, PARE_ERR_USAGE,
                         "no hidden state of the teacher is as wide as the model's");
    t->dstream = calloc(start->nblocks + 1, sizeof *t->dstream);
    t->arena = pare_arena_new();
    return t->dstream && t->arena ? PARE_OK : pare_no_memory(err);
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

/* Adds the losses towards the teacher's outputs and hidden states. */
static pare_status teacher_loss(batch_loss *t, double *loss, const pare_logits *y,
                                const pare_inputs *in, pare_err *err)
{
    const pare_mode inference = {.training = false};
    const pare_train_opts *const o = t->o;
    const pare_model *const m = t->student->model;
    pare_status st = PARE_OK;
    double kl = 0;
    /* The teacher has neither dropout nor updates: its logits for the same batch are the same. */
    if (!t->fixed || !t->teacher_logits)
        st = pare_tape_forward_set(t->teacher_tape, in, &inference, &t->teacher_logits, err);
    if (!st && o->distill > 0)
        st = pare_loss_kl(&kl, t->dy, y, t->teacher_logits, o->temperature, o->distill, t->exec,
                          err);
    *loss += o->distill * kl;
    if (st || o->hidden <= 0) return st;
    size_t rows = 0;
    for (size_t i = 0; i < in->n; i++) rows += in->in[i].batch * in->in[i].tokens;
    const double weight = o->hidden / (double)t->matched;
    pare_arena_free(t->arena);
    t->arena = pare_arena_new();
    if (!t->arena) return pare_no_memory(err);
    for (size_t b = 0, at; b <= m->nblocks; b++) {
        if (!matching_state(&at, t, b)) continue;
        const pare_logits state = {PARE_F32, rows, pare_model_width(m, b),
                                   pare_tape_stream(t->tape, b)};
        float *const d = pare_alloc(t->arena, rows * state.cols, sizeof *d);
        if (!d) return pare_no_memory(err);
        *loss += weight *
                 loss_mse_f32(d, &state, pare_tape_stream(t->teacher_tape, at), weight, t->exec);
        t->dstream[b] = d;
    }
    return PARE_OK;
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
    pare_status st = pare_tape_forward_set(t->tape, &b->in, &mode, &y.v, err);
    if (st) return st;
    const double weight = t->teacher ? 1 - t->o->distill : 1;
    double target = 0;
    for (size_t i = 0; i < b->in.n; i++) y.rows += pare_output_rows(m, &b->in.in[i]);
    const size_t n = y.rows * y.cols;
    if (n > t->dy_capacity) { /* fresh pages for a large vocabulary cost more than the loss */
        free(t->dy);
        t->dy_capacity = 0;
        t->dy = malloc(n * sizeof *t->dy);
        if (!t->dy) return pare_no_memory(err);
        t->dy_capacity = n;
    }
    memset(t->dy, 0, n * sizeof *t->dy);
    if (weight > 0) {
        PARE_ASSERT(b->label || b->value);
        st = b->label ? pare_loss_cross_entropy(&target, t->dy, &y, b->label, weight, t->exec, err)
                      : pare_loss_mse(&target, t->dy, &y, b->value, weight, t->exec, err);
    }
    *loss = weight * target;
    return !st && t->teacher ? teacher_loss(t, loss, &y, &b->in, err) : st;
}
