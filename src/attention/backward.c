/* Attention for training: forward that keeps what the way back needs, and the way back. */
#include <pare/attention.h>
#include <stdlib.h>

static pare_mat widened(const pare_mat32 *x, bool *ok)
{
    pare_mat m = {x->rows, x->cols, x->cols, malloc((x->rows * x->cols + 1) * sizeof(double))};
    if (!m.v) {
        *ok = false;
        return m;
    }
    for (size_t i = 0; i < x->rows; i++)
        for (size_t c = 0; c < x->cols; c++) m.v[i * m.ld + c] = (double)x->v[i * x->ld + c];
    return m;
}

static void narrow(pare_mat32 *to, const pare_mat *x)
{
    for (size_t i = 0; i < x->rows; i++)
        for (size_t c = 0; c < x->cols; c++) to->v[i * to->ld + c] = (float)x->v[i * x->ld + c];
}

pare_status pare_attend_keep_f32(pare_mat32 *y, float *lse, const pare_mat32 *q,
                                 const pare_mat32 *k, const pare_mat32 *v, float scale,
                                 const pare_pattern *p, const pare_graph *g, const pare_exec *exec,
                                 pare_err *err)
{
    bool ok = true;
    pare_mat q64 = widened(q, &ok), k64 = widened(k, &ok), v64 = widened(v, &ok);
    pare_mat y64 = widened(v, &ok);
    double *const l64 = malloc((q->rows + 1) * sizeof *l64);
    pare_status st = ok && l64 ? PARE_OK : pare_no_memory(err);
    if (!st) st = pare_attend_keep_f64(&y64, l64, &q64, &k64, &v64, (double)scale, p, g, exec, err);
    if (!st) {
        narrow(y, &y64);
        for (size_t i = 0; i < q->rows; i++) lse[i] = (float)l64[i];
    }
    free(q64.v), free(k64.v), free(v64.v), free(y64.v), free(l64);
    return st;
}

pare_status pare_attend_backward_f32(pare_mat32 *dq, pare_mat32 *dk, pare_mat32 *dv,
                                     const pare_mat32 *dy, const pare_mat32 *q, const pare_mat32 *k,
                                     const pare_mat32 *v, const pare_mat32 *y, const float *lse,
                                     float scale, const pare_pattern *p, const pare_graph *g,
                                     const pare_turned *turned, const pare_exec *exec,
                                     pare_err *err)
{
    bool ok = true;
    pare_mat q64 = widened(q, &ok), k64 = widened(k, &ok), v64 = widened(v, &ok);
    pare_mat y64 = widened(y, &ok), dy64 = widened(dy, &ok);
    pare_mat dq64 = widened(dq, &ok), dk64 = widened(dk, &ok), dv64 = widened(dv, &ok);
    double *const l64 = malloc((q->rows + 1) * sizeof *l64);
    pare_status st = ok && l64 ? PARE_OK : pare_no_memory(err);
    for (size_t i = 0; !st && i < q->rows; i++) l64[i] = (double)lse[i];
    if (!st)
        st = pare_attend_backward_f64(&dq64, &dk64, &dv64, &dy64, &q64, &k64, &v64, &y64, l64,
                                      (double)scale, p, g, turned, exec, err);
    if (!st) narrow(dq, &dq64), narrow(dk, &dk64), narrow(dv, &dv64);
    free(q64.v), free(k64.v), free(v64.v), free(y64.v), free(dy64.v), free(l64);
    free(dq64.v), free(dk64.v), free(dv64.v);
    return st;
}
