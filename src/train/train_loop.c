/* A run: step after step until the last one, marked by validation, stopped at the first number that
 * is not finite, kept on disk every now and then.
 *
 * Everything that a step depends on is in the checkpoint or is a pure function of (seed, step): the
 * batch, the dropout, the learning rate. So a run that is taken up again goes the same way. */
#include "checkpoint.h"
#include "model_copy.h"
#include "popup.h"
#include "run_fingerprint.h"
#include "batch_loss.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct learner {
    const pare_lesson *lesson;
    const pare_train_opts *o;
    const pare_exec *exec; /* without stop flag: a step that was begun is finished */
    batch_loss t;
    popup *popup;  /* NULL: the weights themselves are trained */
    checkpoint at; /* values: what is trained, of t.student or the scores; stats: of t.student */
    float *grad;
    pare_arena *arena, *batch; /* for the run; for one batch */
    pare_mark fresh;           /* of batch, when it is empty */
    cJSON *id;                 /* NULL without a checkpoint */
    uint64_t kept;             /* step of the checkpoint that is on disk */
    bool diverged;
} learner;

/* ---- opening and closing ----------------------------------------------------------------------
 */

/* What the optimiser moves. */
static pare_params *trained(const learner *l)
{
    return l->popup ? popup_scores(l->popup) : l->t.student;
}

/* The model as what is trained says. */
static void show(learner *l)
{
    if (l->popup) popup_apply(l->popup);
}

static pare_status state_new(learner *l, pare_err *err)
{
    const pare_params *const p = trained(l);
    const size_t n = p->count ? p->count : 1, s = p->nstats ? p->nstats : 1;
    l->arena = pare_arena_new();
    l->batch = pare_arena_new();
    if (!l->arena || !l->batch) return pare_no_memory(err);
    l->fresh = pare_arena_mark(l->batch);
    l->grad = pare_alloc(l->arena, n, sizeof(float));
    l->at = (checkpoint){.count = p->count,
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
    const bool ok = l->grad && l->at.m && l->at.v && l->at.best_values && l->at.best_stats;
    return ok ? PARE_OK : pare_no_memory(err);
}

static pare_status learner_open(learner *l, const pare_model *start, pare_err *err)
{
    pare_status st = train_opts_check(start, l->o, err);
    if (!st) st = batch_loss_open(&l->t, start, l->lesson, l->o, l->exec, err);
    if (!st && l->o->popup)
        st = popup_new(&l->popup, l->t.student, l->o->popup, l->o->seed, l->exec, err);
    if (!st) st = state_new(l, err);
    if (!st && l->o->checkpoint) st = run_fingerprint(&l->id, start, l->lesson, l->o, err);
    if (!st && l->id && l->o->resume && pare_file_exists(l->o->checkpoint))
        st = checkpoint_read(&l->at, l->o->checkpoint, l->id, l->o->steps, err);
    l->kept = l->at.step;
    if (!st) show(l);
    return st;
}

static void learner_close(learner *l)
{
    popup_free(l->popup);
    batch_loss_close(&l->t);
    pare_arena_free(l->arena);
    pare_arena_free(l->batch);
    cJSON_Delete(l->id);
}

/* ---- a step -----------------------------------------------------------------------------------
 */

static pare_status gradient(learner *l, double *norm, pare_err *err)
{
    pare_batch b = {0};
    *norm = NAN;
    pare_arena_reset(l->batch, l->fresh);
    pare_status st = l->lesson->batch(l->lesson->self, &b, l->batch, l->o->seed, l->at.step, err);
    if (!st) st = batch_loss_forward(&l->t, &l->at.loss, &b, l->at.step, err);
    if (st || !isfinite(l->at.loss)) return st;
    memset(l->grad, 0, l->at.count * sizeof *l->grad);
    st = pare_tape_backward(l->t.tape, l->t.dy, l->t.dstream, l->grad, err);
    if (!st && l->popup) popup_score_gradient(l->popup, l->grad);
    if (!st) *norm = pare_clip(l->grad, l->at.count, l->o->clip, l->exec);
    return st;
}

static bool better(const pare_lesson *k, double a, double b)
{
    return k->more_is_better ? a > b : a < b;
}

/* Marks what is learnt by now; the best so far is kept, and only that one is tested. A mark that is
 * no number means that the weights are none either. */
static pare_status mark(learner *l, pare_train_log *line, pare_err *err)
{
    const pare_model *const m = l->t.student->model;
    const pare_lesson *const k = l->lesson;
    checkpoint *const c = &l->at;
    pare_status st = k->score(k->self, &line->val, m, PARE_PART_VAL, l->exec, err);
    if (st) return st;
    l->diverged = !isfinite(line->val);
    line->best = !l->diverged && (c->best_step == 0 || better(k, line->val, c->val));
    if (!line->best) return PARE_OK;
    st = k->score(k->self, &line->test, m, PARE_PART_TEST, l->exec, err);
    if (st) return st;
    memcpy(c->best_values, c->values, c->count * sizeof(float));
    if (c->nstats) memcpy(c->best_stats, c->stats, c->nstats * sizeof(float));
    c->best_step = c->step;
    c->val = line->val, c->test = line->test;
    return PARE_OK;
}

static bool finite_all(const float *x, size_t n)
{
    bool ok = true;
    for (size_t i = 0; i < n; i++) ok = ok && isfinite(x[i]);
    return ok;
}

/* A state from which no run can go on never replaces one from which it can. */
static pare_status keep(learner *l, pare_err *err)
{
    const checkpoint *const c = &l->at;
    l->diverged = !finite_all(c->values, c->count) || !finite_all(c->m, c->count) ||
                  !finite_all(c->v, c->count) || !finite_all(c->stats, c->nstats);
    return l->diverged ? PARE_OK : checkpoint_write(l->o->checkpoint, c, l->id, err);
}

static bool due(uint64_t step, uint64_t every, uint64_t steps)
{
    return step == steps || (every > 0 && step % every == 0);
}

static pare_status step(learner *l, pare_err *err)
{
    const pare_train_opts *const o = l->o;
    const double lr = pare_cosine(l->at.step, o->steps, o->warmup, o->lr, o->last_lr);
    pare_train_log line = {.steps = o->steps, .lr = lr, .val = NAN, .test = NAN};
    pare_status st = gradient(l, &line.norm, err);
    if (st) return st;
    l->diverged = !isfinite(line.norm); /* nan where the loss was none */
    line.loss = l->at.loss;
    line.step = ++l->at.step;
    if (!l->diverged) {
        pare_adamw_step(trained(l), l->grad, l->at.m, l->at.v, line.step, lr, &o->adamw, l->exec);
        show(l);
        if (due(line.step, o->mark_every, o->steps)) st = mark(l, &line, err);
    }
    if (st) return st;
    if (o->log) o->log(o->log_self, &line);
    st = pare_progress(l->exec, "train", line.step, o->steps, err);
    if (!st && !l->diverged && l->id && due(line.step, o->keep_every, o->steps)) {
        st = keep(l, err);
        l->kept = l->at.step;
    }
    return st;
}

/* Between two steps, where the state is one that a checkpoint can hold. */
static pare_status stopped(learner *l, const pare_exec *exec, pare_err *err)
{
    if (!pare_stopped(exec, NULL)) return PARE_OK;
    const pare_status st = l->id && l->at.step > l->kept ? keep(l, err) : PARE_OK;
    return st ? st : pare_stopped(exec, err);
}

/* ---- a run ------------------------------------------------------------------------------------
 */

static pare_status finish(pare_model **out, pare_train_result *result, learner *l, pare_err *err)
{
    checkpoint *const c = &l->at;
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
    show(l);
    return model_deep_copy(out, l->t.student->model, err);
}

static void tell_poly(const learner *l)
{
    const pare_model *const m = l->t.student->model;
    for (size_t b = 0; l->o->poly && b < m->nblocks; b++)
        if (m->blocks[b].attn.kind == PARE_ATTN_POLY)
            l->o->poly(l->o->log_self, b, pare_tape_poly_use(l->t.tape, b));
}

pare_status pare_train(pare_model **out, pare_train_result *result, const pare_model *start,
                       const pare_lesson *lesson, const pare_train_opts *opts,
                       const pare_exec *exec, pare_err *err)
{
    pare_exec whole_steps = exec ? *exec : (pare_exec){.threads = 1};
    whole_steps.stop = NULL;
    learner l = {.lesson = lesson, .o = opts, .exec = exec ? &whole_steps : NULL};
    *out = NULL;
    *result = (pare_train_result){.val = NAN, .test = NAN, .loss = NAN};
    pare_status st = learner_open(&l, start, err);
    if (!st) st = pare_progress(l.exec, "train", l.at.step, opts->steps, err);
    while (!st && !l.diverged && l.at.step < opts->steps) {
        st = stopped(&l, exec, err);
        if (!st) st = step(&l, err);
    }
    result->steps = l.at.step;
    if (!st) tell_poly(&l);
    if (!st) st = finish(out, result, &l, err);
    learner_close(&l);
    return st;
}
