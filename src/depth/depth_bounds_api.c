/* depth_bounds_api.c - the public interface (pare/depth.h) to the bounds of depth_bounds.h. */
#include "depth_bounds.h"
#include <pare/depth.h>
#include <string.h>

const char *const pare_collapse_names[] = {
    "identity",         "keep",    "keepbias", "parallel", "uniform", "uniform+keep",
    "parallel+uniform", "rankone", "umix",     NULL};

pare_status pare_collapse_apriori(pare_collapse_bound *out, const pare_model *f,
                                  const pare_model *g, double phi0, const pare_exec *exec,
                                  pare_err *err)
{
    const depth_domain box = {.phi0 = phi0, .diam0 = -1};
    depth_bound b = {.bound = pare_ub_inf(), .difference = pare_ub_inf()};
    const pare_status st = depth_apriori(&b, f, g, &box, exec, err);
    out->bound = b.bound;
    out->difference = b.difference;
    memcpy(out->why, b.why, sizeof out->why);
    return st;
}

pare_status pare_collapse_rank(double *log_bound, const pare_model *f, double phi0, double diam0,
                               const pare_exec *exec, pare_err *err)
{
    const depth_domain box = {.phi0 = phi0, .diam0 = diam0};
    depth_rank r;
    const pare_status st = depth_rank_collapse(&r, f, &box, exec, err);
    if (st) return st;
    *log_bound = r.log_bound[0] < r.log_bound[1] ? r.log_bound[0] : r.log_bound[1];
    return PARE_OK;
}

pare_status pare_collapse_lower(double *lb, const double (*layers)[2], size_t nlayers, double box,
                                size_t grid, pare_err *err)
{
    depth_lower out = {0};
    const pare_status st = depth_lower_bound(&out, layers, nlayers, box, grid, err);
    *lb = out.lb;
    return st;
}

pare_collapse_printed pare_collapse_paper(double eta, double phi0, size_t heads, size_t layers)
{
    const depth_paper p = depth_paper_of(eta, phi0, heads, layers);
    return (pare_collapse_printed){.eta = p.eta,
                                   .phi0 = p.phi0,
                                   .eps = p.eps,
                                   .c = p.k,
                                   .a = p.a,
                                   .holds = p.holds,
                                   .bound = p.bound,
                                   .claim = p.claim};
}
