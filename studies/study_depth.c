/* study_depth.c - the experiments of our audit of Rank collapse 2025, each with the shape that is
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
    return i < EXPERIMENTS ? experiments[i]->file_prefix : NULL;
}

/* ---- a network and what stands in its place -------------------------------------------------- */

pare_status compared_open(compared *c, pare_arena *a, const pare_model *m, const pare_inputs *in,
                          const pare_inputs *calib, pare_err *err)
{
    c->m = m;
    c->in = in;
    c->calib = calib;
    c->a = a;
    c->err = err;
    return san_answers(&c->y, &c->n, a, m, in, err);
}

pare_status compared_new(compared *c, pare_arena *a, const san_shape *net, san_tokens t, size_t fit,
                         pare_rng *rng, pare_err *err)
{
    c->own = NULL;
    pare_status st = san_new(&c->own, net, rng, err);
    if (!st) st = san_pairs(&c->x, a, t, fit, rng, err);
    return st ? st : compared_open(c, a, c->own, &c->x.heldout, fit ? &c->x.fit : NULL, err);
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

pare_status one_layer(pare_model **out, const pare_model *m, pare_collapse kind, size_t keep,
                      const pare_inputs *calib, pare_err *err)
{
    const pare_depth_one_opts o = {.which = kind,
                                   .keep = pare_collapse_keeps(kind) ? keep : PARE_DEPTH_UNSET};
    return pare_depth_one_layer(out, NULL, m, calib, &o, NULL, err);
}

pare_status compared_collapse(double *out, const compared *c, pare_collapse kind, size_t keep,
                              distance_fn *by)
{
    pare_model *g = NULL;
    pare_status st = one_layer(&g, c->m, kind, keep, c->calib, c->err);
    if (!st) st = compared_model(out, c, g, by);
    pare_model_free(g);
    return st;
}

double longest_row_of_8(const double *a, const double *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i += 8) most = fmax(most, san_distance(a + i, b + i, 8));
    return most;
}

double widest_column(const double *x, size_t n, size_t d)
{
    double most = 0;
    for (size_t c = 0; c < d; c++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < n; i++) {
            low = fmin(low, x[i * d + c]);
            high = fmax(high, x[i * d + c]);
        }
        most = fmax(most, high - low);
    }
    return most;
}

/* ---- the study ------------------------------------------------------------------------------- */

pare_status study_depth(study **out, const study_opts *o, const pare_exec *exec,
                        const pare_ranks *ranks, pare_err *err)
{
    study_context c;
    setting s = {.seed = o->seed, .full = o->full};
    pare_model *model = NULL;
    pare_status st = study_begin(&c, "depth", o, exec, ranks, err);
    if (!st) {
        const bool needs =
            wants_part(&c, trained.file_prefix) || wants_part(&c, scaled.file_prefix);
        /* A model that cannot be read leaves no folder behind; one that is made needs it. */
        if (o->model) st = depth_model(&c, &s, &model);
        if (!st) st = make_study_folders(&c);
        st = pare_ranks_agree(ranks, st, err);
        if (!st && !o->model && needs) st = depth_model(&c, &s, &model);
        st = run_experiments(&c, experiments, EXPERIMENTS, &s, "repro depth 1", st);
        if (!st) st = note_shapes(&c);
        if (!st)
            st = add_note(&c, "the paper has no experiments: what is compared with are figures of "
                              "our own audit, of other random numbers");
    }
    pare_model_free(model);
    return study_end(out, &c, st);
}
