/* study_depth: the experiments of our audit of Rank collapse 2025, each with the shape that is
 * expected, the audit's figure (of other random numbers) and ours. The paper has no experiments, so
 * no row is printed in it. */
#include "study_depth.h"
#include <math.h>

static const experiment *const experiments[] = {&orders,    &lscale,      &rank_collapse, &large,
                                                &tightness, &balls,       &subsets,       &trained,
                                                &scaled,    &polynomials, &replication};
enum { EXPERIMENTS = sizeof experiments / sizeof *experiments };

const char *depth_part(size_t i)
{
    return i < EXPERIMENTS ? experiments[i]->stem : NULL;
}

/* ---- collapses ------------------------------------------------------------------------------- */

pare_status compared_open(compared *c, pare_arena *a, const pare_model *m, const pare_inputs *in,
                          const pare_inputs *calib, pare_err *err)
{
    *c = (compared){.m = m, .in = in, .calib = calib, .a = a, .err = err};
    return san_answers(&c->y, &c->n, a, m, in, err);
}

pare_status compared_model(double *out, const compared *c, const pare_model *g, distance_fn *by)
{
    const pare_mark mark = pare_arena_mark(c->a);
    double *y = NULL;
    size_t n = 0;
    const pare_status st = san_answers(&y, &n, c->a, g, c->in, c->err);
    *out = st ? NAN : by(c->y, y, n);
    pare_arena_reset(c->a, mark);
    return st;
}

pare_status compared_make(pare_model **out, const pare_model *m, pare_collapse kind, size_t keep,
                          const pare_inputs *calib, pare_err *err)
{
    const pare_depth_one_opts o = {kind, pare_collapse_keeps(kind) ? keep : PARE_DEPTH_UNSET};
    return pare_depth_one_layer(out, NULL, m, calib, &o, NULL, err);
}

pare_status compared_collapse(double *out, const compared *c, pare_collapse kind, size_t keep,
                              distance_fn *by)
{
    pare_model *g = NULL;
    pare_status st = compared_make(&g, c->m, kind, keep, c->calib, c->err);
    if (!st) st = compared_model(out, c, g, by);
    pare_model_free(g);
    return st;
}

/* ---- the study ------------------------------------------------------------------------------- */

static pare_status say(study_context *f)
{
    study *const r = f->r;
    r->notes[0] = count_shapes(r);
    r->notes[1] =
        "the paper has no experiments: what is compared with are figures of our own audit, "
        "of other random numbers";
    r->nnotes = 2;
    return r->notes[0] ? PARE_OK : pare_no_memory(f->err);
}

static pare_status make(study_context *f, setting *s, pare_model **trained_model)
{
    const bool needs = wants_part(f, trained.stem) || wants_part(f, scaled.stem);
    /* A model that cannot be read leaves no folder behind; one that is made needs it. */
    pare_status st = f->o->model ? depth_model(f, s, trained_model) : PARE_OK;
    if (!st) st = make_study_folders(f);
    st = pare_ranks_agree(f->ranks, st, f->err);
    if (!st && !f->o->model && needs) st = depth_model(f, s, trained_model);
    if (!st) st = allocate_tables(f, EXPERIMENTS, 0, 2);
    st = run_experiments(f, experiments, EXPERIMENTS, s, "repro depth 1", st);
    return st ? st : say(f);
}

pare_status study_depth(study **out, const study_opts *o, const pare_exec *exec,
                        const pare_ranks *ranks, pare_err *err)
{
    study_context f;
    setting s = {.seed = o->seed, .full = o->full};
    pare_model *model = NULL;
    pare_status st = study_begin(&f, "depth", o, exec, ranks, err);
    if (!st) st = make(&f, &s, &model);
    pare_model_free(model);
    return study_end(out, &f, st);
}
