/* outputs.c - what one output row of two enclosures says: how far the models are apart there,
 * whether the largest entry is the same one in both, how far the f32 engine was off. */
#include "outputs.h"
#include "linalg/dd.h"
#include "model/model_facts.h"
#include "enclose.h"

static size_t largest(const double *v, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (v[i] > v[best]) best = i;
    return best;
}

/* Entry c is above all others, whatever the exact values within `rad` are. Rounding to nearest is
 * monotone and 2 rad is a double: a computed difference above it has an exact one above it. */
static bool surely_largest(const double *v, size_t n, size_t c, double rad)
{
    for (size_t i = 0; i < n; i++)
        if (i != c && !(v[c] - v[i] > 2 * rad)) return false;
    return true;
}

/* The radius of row i around the high parts of its midpoints alone. */
static double flat_radius(const pare_enclosure *e, size_t i)
{
    double low = 0;
    for (size_t k = 0; e->lo && k < e->cols; k++) low = fmax(low, fabs(e->lo[i * e->cols + k]));
    return e->lo ? up_add(e->rad[i], low) : e->rad[i];
}

pare_status pare_enclosure_flatten(pare_enclosure *out, pare_arena *a, const pare_enclosure *e,
                                   pare_err *err)
{
    *out = *e;
    if (!e->lo) return PARE_OK;
    out->lo = NULL;
    out->rad = pare_alloc(a, e->rows, sizeof *out->rad);
    if (!out->rad) return pare_no_memory(err);
    for (size_t i = 0; i < e->rows; i++) out->rad[i] = flat_radius(e, i);
    return PARE_OK;
}

/* |F - G| of one entry, to the nearest double. */
static double apart_at(const pare_enclosure *f, const pare_enclosure *g, size_t k)
{
    if (!f->lo) return fabs(f->mid[k] - g->mid[k]);
    return fabs(dd_sub((dd){f->mid[k], f->lo[k]}, (dd){g->mid[k], g->lo[k]}).hi);
}

pare_ub pare_outputs_row(pare_output_bound *out, const pare_enclosure *f, const pare_enclosure *g,
                         size_t i)
{
    const double *const a = f->mid + i * f->cols, *const b = g->mid + i * g->cols;
    const double radius = up_add(f->rad[i], g->rad[i]);
    double apart = 0;
    for (size_t k = 0; k < f->cols; k++) {
        apart = up_max(apart, apart_at(f, g, i * f->cols + k));
        out->gap.scale = up_max(out->gap.scale, fabs(a[k]));
    }
    /* The difference is within half a unit of its last place (in double-double 2^-102 of itself
     * more): the next double is above it. Where it is 0 the midpoints are equal. */
    const pare_ub bound = pare_ub_exact(up_add(apart == 0 ? 0 : up(apart), radius));
    out->gap.measured = up_max(out->gap.measured, apart);
    out->gap.radius = up_max(out->gap.radius, radius);
    out->gap.proven = pare_ub_max(out->gap.proven, bound);
    out->gap.rounding = pare_ub_max(out->gap.rounding, pare_ub_exact(g->rad32[i]));
    const size_t c = largest(a, f->cols);
    out->rows++;
    out->certain += surely_largest(a, f->cols, c, flat_radius(f, i)) &&
                    surely_largest(b, g->cols, c, flat_radius(g, i));
    return bound;
}

void pare_outputs_engine(pare_output_bound *out, const pare_enclosure *g, const float *y, size_t i)
{
    double off = y ? 0 : INFINITY;
    for (size_t k = i * g->cols; y && k < (i + 1) * g->cols; k++)
        off = up_max(off, up(fabs((double)y[k] - g->mid[k])));
    out->gap.engine = up_max(out->gap.engine, up_add(off, flat_radius(g, i)));
}

double pare_passes_work(const pare_model *f, const pare_model *g, const pare_inputs *set)
{
    double sum = 0;
    for (size_t i = 0; i < set->n; i++) {
        const pare_input *const in = &set->in[i];
        const uint64_t edges = in->graph ? in->graph->ptr[in->graph->n] : 0;
        sum += (double)in->batch * ((double)pare_model_macs(f, in->tokens, edges) +
                                    (double)pare_model_macs(g, in->tokens, edges));
    }
    return sum;
}

/* ---- the claims -------------------------------------------------------------------------------
 */

pare_status pare_cert_take_outputs(pare_cert *c, pare_arena *a, const pare_output_bound *o,
                                   pare_err *err)
{
    const pare_auc_bound f = o->auc[0], g = o->auc[1];
    const double changed = (double)(o->rows - o->certain) / (double)o->rows;
    pare_status st = pare_cert_take_gap(c, a, &o->gap, err);
    if (!st)
        st = pare_cert_add(
            c, a,
            (pare_claim){.kind = PARE_ROWS_CHANGED,
                         .value = o->certain < o->rows ? fmin(1, nextafter(changed, INFINITY)) : 0},
            err);
    if (!st) st = pare_cert_take_each(c, a, o->each, err);
    if (st || !(f.low <= f.high && g.low <= g.high)) return st;
    const double apart = fmin(1, pare_ub_of(fmax(f.high - g.low, g.high - f.low)).v);
    st = pare_cert_add(c, a, (pare_claim){.kind = PARE_AUC_MOST, .value = g.high}, err);
    if (!st) st = pare_cert_add(c, a, (pare_claim){.kind = PARE_AUC_LEAST, .value = g.low}, err);
    if (!st)
        st = pare_cert_add(c, a, (pare_claim){.kind = PARE_AUC_DIFFERENCE, .value = apart}, err);
    return st;
}
