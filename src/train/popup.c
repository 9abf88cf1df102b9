/* popup.c - edge-popup: scores choose which of the frozen weights are used (popup.h). */
#include "frozen_gpt.h"
#include "popup.h"
#include "base/work.h"
#include "popup_topk.h"

#include <math.h>
#include <string.h>

#define FIRST_STREAM ((uint64_t)5 << 60) /* far from those of weights, batches and dropout */
enum { BLOCK = 1 << 15 };

struct popup {
    const pare_exec *exec;
    pare_params *student;
    pare_params scores;  /* the slots that have scores; offsets as in the student */
    const float *weight; /* frozen: what the student had */
    topk_matrix *matrix;
    topk *topk;
    pare_arena *arena;
};

size_t pare_popup_kept(double keep, size_t n)
{
    return n - (size_t)floor((1 - keep) * (double)n);
}

/* ---- opening ---------------------------------------------------------------------------------- */

/* The matrices of the student are the slots that have scores: U(-1, 1) / sqrt(columns), a stream
 * for each matrix. */
static pare_status init_scores(popup *p, double keep, uint64_t seed, pare_err *err)
{
    const pare_params *const s = p->student;
    pare_params *const scores = &p->scores;
    if (!(keep > 0 && keep <= 1))
        return pare_fail(err, PARE_ERR_USAGE, "keep is %g: it must be above 0 and at most 1", keep);
    scores->nslots = 0;
    for (size_t i = 0; i < s->nslots; i++) {
        const pare_slot *const k = &s->slots[i];
        const size_t n = k->rows * k->cols, left = pare_popup_kept(keep, n);
        if (k->vector) continue;
        if (left == 0)
            return pare_fail(err, PARE_ERR_USAGE, "keep %g leaves none of the %zu weights of %s",
                             keep, n, k->name);
        float *const score = (float *)scores->values + k->offset;
        const double bound = 1 / sqrt((double)k->cols);
        pare_rng r = pare_rng_at(seed, FIRST_STREAM + scores->nslots);
        for (size_t j = 0; j < n; j++) score[j] = (float)(bound * (2 * pare_rng_uniform(&r) - 1));
        p->matrix[scores->nslots] = (topk_matrix){k->offset, n, left};
        scores->slots[scores->nslots++] = *k;
    }
    if (scores->nslots) return PARE_OK;
    return pare_fail(err, PARE_ERR_USAGE, "the model has no matrix to mask");
}

pare_status popup_new(popup **out, pare_params *student, const pare_popup *o, uint64_t seed,
                      const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(student->dtype == PARE_F32);
    *out = NULL;
    pare_work w = {.arena = pare_arena_new(), .err = err};
    if (!w.arena) return pare_no_memory(err);
    popup *const p = pare_work_alloc(&w, 1, sizeof *p);
    float *const weight = pare_work_alloc(&w, student->count, sizeof *weight);
    if (!w.st) {
        memcpy(weight, student->values, student->count * sizeof *weight);
        *p = (popup){.exec = exec,
                     .student = student,
                     .scores = *student,
                     .weight = weight,
                     .arena = w.arena};
        p->scores.values = pare_work_alloc(&w, student->count, sizeof(float));
        p->scores.slots = pare_work_alloc(&w, student->nslots, sizeof *student->slots);
        p->matrix = pare_work_alloc(&w, student->nslots, sizeof *p->matrix);
    }
    if (!w.st) w.st = init_scores(p, o->keep, seed, err);
    if (!w.st) w.st = topk_new(&p->topk, w.arena, p->matrix, p->scores.nslots, err);
    if (w.st)
        pare_arena_free(w.arena); /* p lives there */
    else
        *out = p;
    return w.st;
}

void popup_free(popup *p)
{
    if (p) pare_arena_free(p->arena); /* p itself lives there */
}

pare_params *popup_scores(popup *p)
{
    return &p->scores;
}

/* ---- a step ----------------------------------------------------------------------------------- */

void popup_apply(popup *p)
{
    topk_apply(p->topk, p->student->values, p->weight, p->scores.values, p->exec);
}

typedef struct gradient_job {
    const popup *p;
    float *grad;
} gradient_job;

/* Numbers of one block: g w sign(s), by the sign bit (0 where the score is 0). What has no scores
 * has no gradient either. */
static void gradient_block(void *ctx, size_t block)
{
    const gradient_job *const t = ctx;
    const pare_params *const k = &t->p->scores;
    const float *const score = k->values, *const w = t->p->weight;
    const size_t from = block * BLOCK, to = k->count - from < BLOCK ? k->count : from + BLOCK;
    float *const g = t->grad;
    size_t at = from;
    for (size_t i = 0; i < k->nslots; i++) {
        const size_t begin = k->slots[i].offset, end = begin + k->slots[i].rows * k->slots[i].cols;
        const size_t a = begin > from ? begin : from, b = end < to ? end : to;
        if (a >= b) continue;
        memset(g + at, 0, (a - at) * sizeof *g);
        for (size_t j = a; j < b; j++) g[j] *= score[j] == 0 ? 0 : copysignf(1, score[j]) * w[j];
        at = b;
    }
    memset(g + at, 0, (to - at) * sizeof *g);
}

void popup_score_gradient(const popup *p, float *grad)
{
    gradient_job t = {p, grad};
    pare_parallel(p->exec, (p->scores.count + BLOCK - 1) / BLOCK, gradient_block, &t);
}
