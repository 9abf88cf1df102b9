/* train_loop.c - pare_train: step after step until the last one, scored by validation, stopped at
 * the first number that is not finite, saved to a checkpoint now and then.
 *
 * Everything a step depends on is in the checkpoint or is a pure function of (seed, step): the
 * batch, the dropout, the learning rate. So a run that is resumed gives the same result. */
#include "gradient.h"
#include "optimizer.h"
#include "batch_loss.h"
#include "checkpoint.h"
#include "params.h"
#include "popup.h"
#include "run_fingerprint.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct trainer {
    const pare_task *task;
    const pare_train_opts *o;
    const pare_exec *exec; /* without stop flag: a step that was begun is finished */
    batch_loss loss;
    popup *popup;         /* NULL: the weights themselves are trained */
    pare_params *trained; /* what the optimizer moves: weights or scores */
    checkpoint state;     /* values: of `trained`; stats: of the student */
    float *grad;
    pare_arena *arena, *batch; /* for the run; for one batch */
    pare_mark empty;           /* of batch */
    cJSON *id;                 /* NULL without a checkpoint */
    uint64_t saved_step;       /* of the checkpoint that is on disk */
    bool diverged;
} trainer;

/* ---- opening ---------------------------------------------------------------------------------- */

static pare_status trainer_open(trainer *l, const pare_model *start, pare_err *err)
{
    const pare_train_opts *const o = l->o;
    pare_status st = train_opts_check(start, o, err);
    if (!st) st = batch_loss_open(&l->loss, start, l->task, o, l->exec, err);
    if (!st && o->popup)
        st = popup_new(&l->popup, l->loss.student, o->popup, o->seed, l->exec, err);
    if (st) return st;
    const pare_params *const p = l->trained = l->popup ? popup_scores(l->popup) : l->loss.student;
    const size_t n = p->count ? p->count : 1, s = p->nstats ? p->nstats : 1;
    l->arena = pare_arena_new();
    l->batch = pare_arena_new();
    if (!l->arena || !l->batch) return pare_no_memory(err);
    l->empty = pare_arena_mark(l->batch);
    l->grad = pare_alloc(l->arena, n, sizeof(float));
    l->state = (checkpoint){.count = p->count,
                            .nstats = p->nstats,
                            .values = p->values,
                            .stats = p->stats,
                            .m = pare_alloc(l->arena, n, sizeof(float)),
                            .v = pare_alloc(l->arena, n, sizeof(float)),
                            .best_values = pare_alloc(l->arena, n, sizeof(float)),
                            .best_stats = pare_alloc(l->arena, s, sizeof(float)),
                            .val = NAN,
                            .test = NAN,
                            .loss = NAN};
    const checkpoint *const c = &l->state;
    if (!l->grad || !c->m || !c->v || !c->best_values || !c->best_stats) return pare_no_memory(err);
    if (o->checkpoint) st = run_fingerprint(&l->id, start, l->task, o, err);
    if (!st && l->id && o->resume && pare_file_exists(o->checkpoint))
        st = checkpoint_read(&l->state, o->checkpoint, l->id, o->steps, err);
    l->saved_step = l->state.step;
    if (!st && l->popup) popup_apply(l->popup);
    return st;
}

/* ---- a step ----------------------------------------------------------------------------------- */

/* Scores the model on the validation part; the best so far is kept, and only that one is tested. A
 * score that is not finite means that the weights are not, either. */
static pare_status evaluate(trainer *l, pare_train_log *line, pare_err *err)
{
    const pare_model *const m = l->loss.student->model;
    const pare_task *const k = l->task;
    checkpoint *const c = &l->state;
    pare_status st = k->score(k->self, &line->val, m, PARE_PART_VAL, l->exec, err);
    if (st) return st;
    l->diverged = !isfinite(line->val);
    line->best = !l->diverged && (c->best_step == 0 ||
                                  (k->more_is_better ? line->val > c->val : line->val < c->val));
    if (!line->best) return PARE_OK;
    st = k->score(k->self, &line->test, m, PARE_PART_TEST, l->exec, err);
    if (st) return st;
    memcpy(c->best_values, c->values, c->count * sizeof(float));
    if (c->nstats) memcpy(c->best_stats, c->stats, c->nstats * sizeof(float));
    c->best_step = c->step;
    c->val = line->val, c->test = line->test;
    return PARE_OK;
}

static bool all_finite(const float *x, size_t n)
{
    bool ok = true;
    for (size_t i = 0; i < n; i++) ok = ok && isfinite(x[i]);
    return ok;
}

/* A state from which no run can go on never replaces one from which it can. */
static pare_status save_checkpoint(trainer *l, pare_err *err)
{
    const checkpoint *const c = &l->state;
    l->diverged = !all_finite(c->values, c->count) || !all_finite(c->m, c->count) ||
                  !all_finite(c->v, c->count) || !all_finite(c->stats, c->nstats);
    return l->diverged ? PARE_OK : checkpoint_write(l->o->checkpoint, c, l->id, err);
}

static bool is_due(uint64_t step, uint64_t every, uint64_t steps)
{
    return step == steps || (every > 0 && step % every == 0);
}

static pare_status train_step(trainer *l, pare_err *err)
{
    const pare_train_opts *const o = l->o;
    checkpoint *const c = &l->state;
    const double lr = pare_cosine(c->step, o->steps, o->warmup, o->lr, o->last_lr);
    pare_train_log line = {.steps = o->steps, .lr = lr, .norm = NAN, .val = NAN, .test = NAN};
    pare_batch b = {0};
    pare_arena_reset(l->batch, l->empty);
    pare_status st = l->task->batch(l->task->self, &b, l->batch, o->seed, c->step, err);
    if (!st) st = batch_loss_forward(&l->loss, &c->loss, &b, c->step, err);
    if (!st && isfinite(c->loss)) {
        memset(l->grad, 0, c->count * sizeof *l->grad);
        st = pare_tape_backward(l->loss.tape, l->loss.dy, l->loss.dstream, l->grad, err);
        if (!st && l->popup) popup_score_gradient(l->popup, l->grad);
        if (!st) line.norm = pare_clip(l->grad, c->count, o->clip, l->exec); /* before clipping */
    }
    if (st) return st;
    l->diverged = !isfinite(line.norm);
    line.loss = c->loss;
    line.step = ++c->step;
    if (!l->diverged) {
        pare_adamw_step(l->trained, l->grad,
                        &(pare_adamw_state){.m = c->m, .v = c->v, .step = line.step}, lr, &o->adamw,
                        l->exec);
        if (l->popup) popup_apply(l->popup);
        if (is_due(line.step, o->eval_every, o->steps)) st = evaluate(l, &line, err);
    }
    if (st) return st;
    if (o->log) o->log(o->log_self, &line);
    st = pare_progress(l->exec, "train", line.step, o->steps, err);
    if (!st && !l->diverged && l->id && is_due(line.step, o->checkpoint_every, o->steps)) {
        st = save_checkpoint(l, err);
        l->saved_step = c->step;
    }
    return st;
}

/* ---- a run ------------------------------------------------------------------------------------ */

static pare_status finish(pare_model **out, pare_train_result *result, trainer *l, pare_err *err)
{
    const pare_model *const m = l->loss.student->model;
    checkpoint *const c = &l->state;
    for (size_t b = 0; l->o->poly && b < m->nblocks; b++)
        if (m->blocks[b].attn.kind == PARE_ATTN_POLY)
            l->o->poly(l->o->log_self, b, pare_tape_poly_use(l->loss.tape, b));
    *result = (pare_train_result){.val = c->val,
                                  .test = c->test,
                                  .loss = c->loss,
                                  .best_step = c->best_step,
                                  .steps = c->step,
                                  .diverged = l->diverged};
    if (c->best_step == 0)
        return pare_fail(
            err, PARE_ERR_NUMERIC,
            "the run diverged at step %llu, before its first validation score: the loss is %g "
            "(a smaller learning rate, a longer warm-up or a clip may help)",
            (unsigned long long)c->step, c->loss);
    memcpy(c->values, c->best_values, c->count * sizeof(float));
    if (c->nstats) memcpy(c->stats, c->best_stats, c->nstats * sizeof(float));
    if (l->popup) popup_apply(l->popup);
    return model_deep_copy(out, m, err);
}

pare_status pare_train(pare_model **out, pare_train_result *result, const pare_model *start,
                       const pare_task *task, const pare_train_opts *opts, const pare_exec *exec,
                       pare_err *err)
{
    pare_exec whole_steps = exec ? *exec : (pare_exec){.threads = 1};
    whole_steps.stop = NULL;
    trainer l = {.task = task, .o = opts, .exec = exec ? &whole_steps : NULL};
    *out = NULL;
    *result = (pare_train_result){.val = NAN, .test = NAN, .loss = NAN};
    pare_status st = trainer_open(&l, start, err);
    if (!st) st = pare_progress(l.exec, "train", l.state.step, opts->steps, err);
    while (!st && !l.diverged && l.state.step < opts->steps) {
        if (pare_stopped(exec, NULL)) { /* between two steps, where a checkpoint can be written */
            if (l.id && l.state.step > l.saved_step) st = save_checkpoint(&l, err);
            if (!st) st = pare_stopped(exec, err);
        }
        if (!st) st = train_step(&l, err);
    }
    result->steps = l.state.step;
    if (!st) st = finish(out, result, &l, err);
    popup_free(l.popup);
    batch_loss_close(&l.loss);
    pare_arena_free(l.arena);
    pare_arena_free(l.batch);
    cJSON_Delete(l.id);
    return st;
}
