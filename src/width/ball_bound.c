/* ball_bound.c - how far apart two models are on every input near the given one: each feature row
 * may move by at most rho (euclidean, all rows at once; docs/theory/width.md section 6).
 *
 * Each model's outputs stay within the radius of its own path (tube.c), so an entry differs by at
 * most |F - G| + r_f + r_g, with r of entry c: |w_c| times the radius of the last row, and
 * rounding. The class is the same for all inputs of the ball where in both models the margin
 * between the same entry c and any other entry k is larger than |w_c - w_k| r and rounding. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "prove.h"
#include <math.h>
#include <string.h>

pare_mat ball_path(pare_work *w, const propagation *t, double rho, pare_ub *r)
{
    pare_mat h = propagation_embedding(w, t, r);
    pare_ub *const next = pare_work_alloc(w, h.rows, sizeof *next);
    for (size_t i = 0; !w->st && i < h.rows; i++)
        r[i] = pare_ub_fma(t->map, pare_ub_exact(rho), r[i]);
    for (size_t l = 0; !w->st && l < t->n->nlayers; l++) {
        h = propagation_layer(w, t, l, &h, r, next);
        for (size_t i = 0; !w->st && i < h.rows; i++) r[i] = next[i];
        if (!w->st) w->st = pare_progress(w->exec, "prove the ball", l + 1, t->n->nlayers, w->err);
    }
    return h;
}

typedef struct side { /* one model */
    const propagation *t;
    pare_enclosure out;
    pare_ub *r;   /* of the last rows */
    pare_mat gap; /* |w_c - w_k| from above; what folding may be off by included */
} side;

/* |w_c - w_k| <= |w~_c - w~_k| + what |w_c| and |w_k| may be off by. */
static pare_mat class_gaps(pare_work *w, const propagation *t)
{
    const pare_mat *const wh = &t->n->wh;
    pare_mat gap = mat_zeros(w, wh->rows, wh->rows);
    double *const d = vec_zeros(w, wh->cols);
    for (size_t c = 0; !w->st && c < wh->rows; c++)
        for (size_t k = 0; k < wh->rows; k++) {
            for (size_t j = 0; j < wh->cols; j++) d[j] = pare_row(wh, c)[j] - pare_row(wh, k)[j];
            pare_ub far = pare_ub_mul(vector_norm(d, wh->cols), pare_ub_exact(1 + 0x1p-51));
            const pare_ub sum = pare_ub_add(t->top[c], t->top[k]);
            far = pare_ub_fma(t->off, sum, pare_ub_add(far, pare_ub_exact(0x1p-129)));
            pare_row_mut(&gap, c)[k] = far.v;
        }
    return gap;
}

static side side_of(pare_work *w, const propagation *t, double rho)
{
    side s = {.t = t, .r = pare_work_alloc(w, t->in->tokens, sizeof *s.r)};
    if (w->st) return s;
    const pare_mat h = ball_path(w, t, rho, s.r);
    if (!w->st) s.out = propagation_head(w, t, &h);
    s.gap = class_gaps(w, t);
    return s;
}

static pare_ub entry_radius(const side *s, size_t i, size_t c)
{
    return pare_ub_fma(s->t->top[c], s->r[i], pare_ub_exact(s->out.rad[i]));
}

static bool class_stays(const side *s, size_t i, size_t c)
{
    const double *const y = s->out.mid + i * s->out.cols;
    const pare_ub twice = pare_ub_mul(pare_ub_exact(2), pare_ub_exact(s->out.rad[i]));
    for (size_t k = 0; k < s->out.cols; k++) {
        const pare_ub need = pare_ub_fma(pare_ub_exact(pare_row(&s->gap, c)[k]), s->r[i], twice);
        if (k != c && !(nextafter(y[c] - y[k], -INFINITY) > need.v)) return false;
    }
    return true;
}

static void compare_row(ball_bound *b, const side *f, const side *g, size_t i)
{
    const double *const y = f->out.mid + i * f->out.cols, *const z = g->out.mid + i * f->out.cols;
    size_t c = 0;
    for (size_t k = 0; k < f->out.cols; k++) {
        const pare_ub far = y[k] == z[k] ? pare_ub_exact(0) : pare_ub_of(y[k] - z[k]);
        const pare_ub both = pare_ub_add(entry_radius(f, i, k), entry_radius(g, i, k));
        b->apart = pare_ub_max(b->apart, pare_ub_add(far, both));
        if (y[k] > y[c]) c = k;
    }
    b->rows++;
    b->certain += class_stays(f, i, c) && class_stays(g, i, c);
}

ball_bound ball_compare(pare_work *w, const propagation *f, const propagation *g, double rho)
{
    ball_bound b = {0};
    const pare_mark mark = pare_arena_mark(w->arena);
    const side a = side_of(w, f, rho), c = side_of(w, g, rho);
    if (!w->st && (a.out.rows != c.out.rows || a.out.cols != c.out.cols))
        pare_work_fail(w, PARE_ERR_VERIFY, "outputs [%zu, %zu] and [%zu, %zu] of the models",
                       a.out.rows, a.out.cols, c.out.rows, c.out.cols);
    for (size_t i = 0; !w->st && i < a.out.rows; i++) compare_row(&b, &a, &c, i);
    pare_arena_reset(w->arena, mark);
    if (w->st) b.apart = pare_ub_inf();
    return b;
}

ball_bound ball_of_set(pare_work *w, const model_pair *p, const pare_inputs *set, double rho)
{
    ball_bound all = {0};
    for (size_t i = 0; !w->st && i < set->n; i++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const pare_input *const in = &set->in[i];
        const pare_graph keys = key_graph(w, &p->f->pattern, in->graph, in->tokens);
        const propagation f = propagation_new(w, p->f, p->nf, p->rounded_f, in, &keys);
        const propagation g = propagation_new(w, p->g, p->ng, p->rounded_g, in, &keys);
        const ball_bound b = ball_compare(w, &f, &g, rho);
        all.apart = pare_ub_max(all.apart, b.apart);
        all.rows += b.rows;
        all.certain += b.certain;
        pare_arena_reset(w->arena, mark);
    }
    if (w->st || propagation_refuses(p->f) || propagation_refuses(p->g))
        all = (ball_bound){pare_ub_inf(), all.rows, 0};
    return all;
}
