/* lm.c - pare_width for models with norms, positions and ids (lm.h): set the sizes, cut by the
 * method, report. */
#include "lm.h"
#include <math.h>
#include <string.h>

bool pare_width_is_text(const pare_model *m, pare_width_method method)
{
    if (method != PARE_WIDTH_AUTO && method != PARE_WIDTH_QK)
        return method == PARE_WIDTH_SLICE || method == PARE_WIDTH_SVD;
    /* What the constructions for graph transformers cannot represent. */
    if (m->pattern.kind == PARE_GRAPH) return false;
    bool text = m->embedding.ids || m->embedding.pos.kind != PARE_POS_NONE ||
                lm_divides(&m->embedding.norm) || lm_divides(&m->head.norm);
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        const pare_ffn *const f = &m->blocks[b].ffn;
        text = text || lm_divides(&a->in_norm) || lm_divides(&a->out_norm) ||
               lm_divides(&f->in_norm) || lm_divides(&f->out_norm) || f->kind == PARE_FFN_GATED;
    }
    return text;
}

/* ---- options -------------------------------------------------------------------------------- */

/* The methods that cut the sublayers alone, fitted to data (lm_auto.c). */
static bool fits_on_data(const pare_width_opts *o)
{
    return o->method == PARE_WIDTH_AUTO || o->method == PARE_WIDTH_QK;
}

static void check_opts(pare_work *w, const pare_width_opts *o, const pare_inputs *data)
{
    const bool slice = o->method == PARE_WIDTH_SLICE, qk = o->method == PARE_WIDTH_QK;
    const char *const name = pare_width_method_names[o->method];
    if (!(o->keep >= 0 && o->keep <= 1))
        pare_work_fail(w, PARE_ERR_USAGE, "keep must be in (0, 1]");
    if (slice && (o->qk_dim || o->v_dim || o->ffn_dim))
        pare_work_fail(
            w, PARE_ERR_USAGE,
            "the method slice cuts only the residual stream: set dim, not qk_dim, v_dim or "
            "ffn_dim");
    if ((slice || fits_on_data(o)) && (!data || data->n == 0))
        pare_work_fail(w, PARE_ERR_USAGE, "the method %s is fitted to data; none is given", name);
    if (qk && (o->dim || o->v_dim || o->ffn_dim))
        pare_work_fail(
            w, PARE_ERR_USAGE,
            "the method qk cuts only queries and keys: set qk_dim, not dim, v_dim or ffn_dim");
    if (fits_on_data(o) && o->dim)
        pare_work_fail(
            w, PARE_ERR_USAGE,
            "the method auto keeps the residual stream of such a model: set keep, qk_dim, v_dim or "
            "ffn_dim, or take the method slice for dim");
    if (fits_on_data(o) && o->keep > 0 && (o->qk_dim || o->v_dim || o->ffn_dim))
        pare_work_fail(
            w, PARE_ERR_USAGE,
            "the method %s chooses the widths by keep: leave qk_dim, v_dim and ffn_dim at 0", name);
    if (o->standard && (o->method != PARE_WIDTH_AUTO || o->qk_dim || o->v_dim))
        pare_work_fail(
            w, PARE_ERR_USAGE,
            "only hidden units are cut to a standard shape: set keep or ffn_dim, and the "
            "method auto");
    if (o->basis == PARE_BASIS_MINMAX)
        pare_work_fail(w, PARE_ERR_USAGE, "the method %s has no basis minmax; take pca or shared",
                       name);
    if (!o->dim && !o->qk_dim && !o->v_dim && !o->ffn_dim && !(o->keep > 0))
        pare_work_fail(w, PARE_ERR_USAGE, "the method %s needs %s or keep", name,
                       slice                          ? "dim"
                       : qk                           ? "qk_dim"
                       : o->method == PARE_WIDTH_AUTO ? "qk_dim, v_dim, ffn_dim"
                                                      : "dim, qk_dim, v_dim, ffn_dim");
}

static size_t largest(const size_t *v, size_t n)
{
    size_t best = 0;
    for (size_t i = 0; i < n; i++)
        if (v[i] > best) best = v[i];
    return best;
}

static size_t max_units(const lm *m, const lm_shape *f)
{
    size_t units = 0;
    for (size_t b = 0; b < m->m->nblocks; b++)
        if (f[b].units > units) units = f[b].units;
    return units;
}

static void check_sizes(pare_work *w, const lm *m, const lm_shape *f, const pare_width_opts *o)
{
    size_t dk = 0, dv = 0;
    for (size_t b = 0; b < m->m->nblocks; b++) {
        if (f[b].dk > dk) dk = f[b].dk;
        if (f[b].dv > dv) dv = f[b].dv;
    }
    const struct {
        const char *name;
        size_t asked, have;
    } all[] = {{"dim", o->dim, largest(m->width, m->nplaces)},
               {"qk-dim", o->qk_dim, dk},
               {"v-dim", o->v_dim, dv},
               {"ffn-dim", o->ffn_dim, max_units(m, f)}};
    for (size_t i = 0; i < 4; i++)
        if (all[i].asked > all[i].have)
            pare_work_fail(w, PARE_ERR_USAGE, "%s %zu is larger than the model's %zu", all[i].name,
                           all[i].asked, all[i].have);
}

/* ---- a share of the parameters -------------------------------------------------------------- */

/* The widest stream within the share `keep`; with `both` the hidden layers shrink likewise. */
static void size_by_share(pare_work *w, lm_sizes *s, const lm *m, const lm_shape *f, double keep,
                          bool both)
{
    const double limit = keep * (double)pare_model_size(m->m, 1, 1).parameters;
    const size_t wide = largest(m->width, m->nplaces), units = max_units(m, f);
    size_t low = 0, high = wide;
    while (low < high) { /* the largest that fits; 0: none */
        const size_t mid = (low + high + 1) / 2;
        s->dim = mid;
        if (both) s->ffn = (units * mid + wide - 1) / wide;
        if ((double)lm_count(m, f, s) <= limit)
            low = mid;
        else
            high = mid - 1;
    }
    s->dim = low;
    if (both) s->ffn = (units * low + wide - 1) / wide;
    if (low == 0)
        pare_work_fail(
            w, PARE_ERR_PROMISE,
            "even dimension 1 leaves more parameters than that share; keep a larger one");
}

/* ---- what methods share --------------------------------------------------------------------- */

void lm_need_one_width(pare_work *w, const lm *m)
{
    for (size_t p = 1; p < m->nplaces; p++)
        if (m->width[p] != m->width[0])
            pare_work_fail(w, PARE_ERR_INPUT,
                           "the stream has widths %zu and %zu: one basis cannot serve both",
                           m->width[0], m->width[p]);
}

void lm_job_write_ends(lm_job *j, const lm_basis *first, const lm_basis *last)
{
    const bool tied = first && j->m->m->head.tied && !j->size.untie;
    const pare_mat embed = tied ? lm_embed_basis(j->w, j->m, first) : (pare_mat){0};
    lm_write_ends(j->w, j->out, first, last, tied ? &embed : NULL);
}

/* ---- the report ----------------------------------------------------------------------------- */

static size_t units_of(const pare_ffn *f)
{
    return f->kind == PARE_FFN_NONE ? 0 : f->layers[0].w.rows;
}

static size_t place_width(const pare_model *m, size_t p)
{
    if (p % 2 == 0) return pare_model_width(m, p / 2);
    const pare_attn *const a = &m->blocks[p / 2].attn;
    return a->kind == PARE_ATTN_NONE ? pare_model_width(m, p / 2) : a->dout;
}

static void write_report(pare_work *w, pare_width_report *r, const pare_model *f, pare_model *g)
{
    size_t heads = 0;
    if (w->st) return;
    for (size_t b = 0; b < f->nblocks; b++) heads += f->blocks[b].attn.nheads;
    *r = (pare_width_report){.npoints = 2 * f->nblocks + 1};
    r->points = pare_alloc(g->arena, r->npoints, sizeof *r->points);
    r->heads = pare_alloc(g->arena, heads + 1, sizeof *r->heads);
    r->hidden = pare_alloc(g->arena, f->nblocks, sizeof *r->hidden);
    if (!r->points || !r->heads || !r->hidden) {
        w->st = pare_no_memory(w->err);
        return;
    }
    for (size_t p = 0; p < r->npoints; p++) {
        pare_width_point *const to = &r->points[p];
        *to = (pare_width_point){.before = place_width(f, p), .residual_est = NAN};
        to->after = place_width(g, p);
        snprintf(to->name, sizeof to->name, "%c%zu", p % 2 ? 'z' : 'h', p / 2);
        if (to->after > r->dim) r->dim = to->after;
    }
    for (size_t b = 0; b < f->nblocks; b++) {
        const pare_attn *const fa = &f->blocks[b].attn, *const ga = &g->blocks[b].attn;
        const pare_ffn *const ff = &f->blocks[b].ffn, *const gf = &g->blocks[b].ffn;
        for (size_t i = 0; fa->kind != PARE_ATTN_NONE && i < fa->nheads; i++) {
            r->heads[r->nheads++] =
                (pare_width_head){b, i, fa->heads[i].dk, ga->heads[i].dk, NAN, NAN, NAN};
            if (ga->heads[i].dk > r->qk_dim) r->qk_dim = ga->heads[i].dk;
        }
        if (ff->kind == PARE_FFN_NONE) continue;
        r->hidden[r->nhidden++] = (pare_width_hidden){b, units_of(ff), units_of(gf), NAN, NAN, NAN};
        if (units_of(gf) > r->ffn_dim) r->ffn_dim = units_of(gf);
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */

pare_status lm_width(pare_model **out, pare_width_report *report, const pare_model *in,
                     const pare_inputs *data, const pare_width_opts *opts, const pare_exec *exec,
                     pare_err *err)
{
    pare_work w = {pare_arena_new(), exec, err, PARE_OK};
    lm_out o = {0};
    *out = NULL;
    if (!w.arena) return pare_no_memory(err);
    check_opts(&w, opts, data);
    const bool inner =
        opts->dim == 0 && (opts->qk_dim || opts->v_dim || opts->ffn_dim) && !(opts->keep > 0);
    lm m = lm_open(&w, in, !inner && !fits_on_data(opts));
    if (opts->standard) m.merges = false; /* there may be value biases without an output bias */
    const lm_shape *const shapes = w.st ? NULL : lm_shapes(&w, &m);
    if (!w.st) check_sizes(&w, &m, shapes, opts);
    lm_job j = {&w, &m, opts, data, &o, shapes, {0}};
    const bool slice = opts->method == PARE_WIDTH_SLICE, svd = opts->method == PARE_WIDTH_SVD;
    if (!w.st) {
        j.size = (lm_sizes){.dim = opts->dim,
                            .qk = opts->qk_dim,
                            .v = opts->v_dim,
                            .ffn = opts->ffn_dim,
                            .own = slice && opts->basis == PARE_BASIS_PCA,
                            .untie = opts->untie};
        const bool stream_only = !opts->qk_dim && !opts->v_dim && !opts->ffn_dim;
        if (opts->dim == 0 && opts->keep > 0 && (slice || svd))
            size_by_share(&w, &j.size, &m, shapes, opts->keep, stream_only && svd);
    }
    lm_write_begin(&w, &o, &m, opts->dtype);
    if (!w.st && slice) lm_slice(&j);
    if (!w.st && svd) lm_svd(&j);
    if (!w.st && fits_on_data(opts)) lm_auto(&j);
    pare_model *small = lm_write_finish(&w, &o);
    write_report(&w, report, in, small);
    if (w.st) pare_model_free(small);
    *out = w.st ? NULL : small;
    pare_arena_free(w.arena);
    return w.st;
}
