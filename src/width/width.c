/* width.c - pare_width: from a model and its data to a narrower model (pare/width.h). Fold, compute
 * the activations, cut, write; where a share of the parameters or a largest error is requested, the
 * dimension is found by bisection. */
#include "balance.h"
#include "cuts.h"
#include "lm.h"
#include "attention/attend.h"
#include "cert/prove.h"
#include "model/shared_rows.h"
#include <pare/fold.h>
#include <pare/width.h>
#include <math.h>
#include <string.h>

const char *const pare_width_method_names[] = {"exact", "lowrank", "leverage", "cluster", "jl",
                                               "qk",    "auto",    "slice",    "svd",     NULL};
const char *const pare_width_rows_names[] = {"greedy", "sample", NULL};
const char *const pare_width_start_names[] = {"rank", "jl", NULL};
const char *const pare_width_rule_names[] = {"margin", "paper", NULL};
const char *const pare_width_basis_names[] = {"pca", "minmax", "shared", NULL};

/* What every trial of the search needs. */
typedef struct width_job {
    pare_work w;
    const pare_model *in;
    pare_model *folded;
    const pare_inputs *data;
    net n;
    activations p;
    pare_mat *metric; /* auto: of every stream point */
} width_job;

/* ---- options -------------------------------------------------------------------------------- */

static bool cuts_scores(const pare_width_opts *o)
{
    return o->method == PARE_WIDTH_JL || o->method == PARE_WIDTH_QK;
}

static bool is_search(const pare_width_opts *o)
{
    return o->keep > 0 || isfinite(o->max_move);
}

static void check_opts(pare_work *w, const pare_width_opts *o)
{
    const char *const name = pare_width_method_names[o->method];
    const bool exact = o->method == PARE_WIDTH_EXACT, cluster = o->method == PARE_WIDTH_CLUSTER;
    if (!(o->keep >= 0 && o->keep <= 1) || !(o->max_move >= 0))
        pare_work_fail(w, PARE_ERR_USAGE, "keep must be in (0, 1], max_move must not be negative");
    if (o->trials < 1) pare_work_fail(w, PARE_ERR_USAGE, "trials must be at least 1");
    if (exact && (o->dim || o->qk_dim || o->ffn_dim || o->keep > 0))
        pare_work_fail(
            w, PARE_ERR_USAGE,
            "the method exact finds its dimensions itself; leave dim, qk_dim, ffn_dim and "
            "keep at 0");
    if (cuts_scores(o) && (o->dim || o->ffn_dim))
        pare_work_fail(w, PARE_ERR_USAGE,
                       "the method %s cuts only queries and keys: set qk_dim, not dim or ffn_dim",
                       name);
    if (cuts_scores(o) && !o->qk_dim && !is_search(o))
        pare_work_fail(w, PARE_ERR_USAGE, "the method %s needs qk_dim, keep or max_move", name);
    if (cluster && (o->qk_dim || o->ffn_dim))
        pare_work_fail(w, PARE_ERR_USAGE, "the method cluster takes dim only");
    if (!exact && !cuts_scores(o) && !o->dim && !is_search(o) &&
        (cluster || (!o->qk_dim && !o->ffn_dim)))
        pare_work_fail(w, PARE_ERR_USAGE, "the method %s needs dim, keep or max_move", name);
}

static size_t max_width(const net *n)
{
    size_t most = n->we.rows;
    for (size_t i = 0; i < n->nlayers; i++) {
        if (n->layers[i].heads[0].wo.rows > most) most = n->layers[i].heads[0].wo.rows;
        if (n->layers[i].w2.rows > most) most = n->layers[i].w2.rows;
    }
    return most;
}

static size_t max_qk_dim(const net *n)
{
    size_t most = 0;
    for (size_t i = 0; i < n->nlayers; i++)
        for (size_t k = 0; k < n->layers[i].nheads; k++)
            if (n->layers[i].heads[k].wq.rows > most) most = n->layers[i].heads[k].wq.rows;
    return most;
}

static size_t max_units(const net *n)
{
    size_t most = 0;
    for (size_t i = 0; i < n->nlayers; i++)
        if (n->layers[i].w1.rows > most) most = n->layers[i].w1.rows;
    return most;
}

static void check_sizes(pare_work *w, const net *n, const pare_width_opts *o)
{
    const struct {
        const char *name;
        size_t asked, most;
    } all[] = {{"dim", o->dim, max_width(n)},
               {"qk-dim", o->qk_dim, max_qk_dim(n)},
               {"ffn-dim", o->ffn_dim, max_units(n)}};
    for (size_t i = 0; i < 3; i++)
        if (all[i].asked > all[i].most)
            pare_work_fail(w, PARE_ERR_USAGE, "%s %zu is larger than the model's %zu", all[i].name,
                           all[i].asked, all[i].most);
}

/* The model of a net, rounded to what it is stored in. */
static pare_status write_cut(pare_model **out, const width_job *s, const net *n, pare_dtype dtype)
{
    pare_status st = net_write(out, n, s->folded, s->w.err);
    if (!st) st = pare_model_round(*out, s->in, dtype, s->w.err);
    if (!st) st = pare_model_check(*out, s->w.err);
    if (!st) return PARE_OK;
    pare_model_free(*out);
    *out = NULL;
    return st;
}

/* ---- one trial ------------------------------------------------------------------------------ */

static net cut_net(width_job *s, const pare_width_opts *o, cut_record *r)
{
    pare_work *const w = &s->w;
    net n = s->n;
    *r = record_new(w, &s->n);
    if (w->st) return n;
    if (cuts_scores(o)) {
        n = cut_scores(w, &s->n, &s->p, o, r);
    } else if (o->method == PARE_WIDTH_AUTO) {
        n = cut_auto(w, &s->n, &s->p, s->metric, o, r);
    } else if (o->method == PARE_WIDTH_CLUSTER) {
        cluster_facts *const facts = pare_work_alloc(w, s->n.nlayers, sizeof *facts);
        if (!w->st) n = cut_cluster(w, &s->n, &s->p, o, r, facts);
    } else {
        n = cut_subspaces(w, &s->n, &s->p, o, r);
    }
    if (!w->st && pare_never_empty(&s->folded->pattern)) net_merge_value_biases(w, &n);
    if (!w->st) net_balance(w, &n, !cuts_scores(o)); /* jl, qk: values stay what they are */
    return n;
}

static pare_width_opts with_dim(const pare_width_opts *o, size_t d)
{
    pare_width_opts t = *o;
    t.keep = 0;
    *(cuts_scores(o) ? &t.qk_dim : &t.dim) = d;
    if (o->method == PARE_WIDTH_LEVERAGE && o->ffn_dim == 0) t.ffn_dim = d;
    return t;
}

/* Whether dimension d meets the request. Memory is given back. */
static bool meets_request(width_job *s, const pare_width_opts *o, size_t d)
{
    const pare_mark mark = pare_arena_mark(s->w.arena);
    const pare_width_opts t = with_dim(o, d);
    const pare_exec *const exec = s->w.exec, quiet = pare_exec_silent(exec);
    cut_record r;
    s->w.exec = &quiet;
    const net n = cut_net(s, &t, &r);
    bool yes = false;
    if (!s->w.st && o->keep > 0)
        yes =
            (double)net_parameters(&n) <= o->keep * (double)pare_model_size(s->in, 1, 1).parameters;
    else if (!s->w.st) {
        pare_model *m = NULL;
        double moved = INFINITY;
        s->w.st = write_cut(&m, s, &n, o->dtype);
        if (!s->w.st) s->w.st = pare_measure(&moved, s->in, m, s->data, s->w.exec, s->w.err);
        yes = moved <= o->max_move;
        pare_model_free(m);
    }
    pare_arena_reset(s->w.arena, mark);
    s->w.exec = exec;
    return yes;
}

enum { HALVINGS = 8 }; /* of a usual search, for its progress */

/* keep: the largest that meets_request; max_move: the smallest. */
static size_t search(width_job *s, const pare_width_opts *o)
{
    const bool up = o->keep > 0;
    size_t low = 1, high = cuts_scores(o) ? max_qk_dim(&s->n) : max_width(&s->n);
    const size_t end = up ? low : high;
    if (!meets_request(s, o, end))
        pare_work_fail(
            &s->w, PARE_ERR_PROMISE,
            up ? "even dimension %zu leaves more parameters than that share; keep a larger one"
               : "even the full dimension %zu moves an output by more than that; allow a larger "
                 "error",
            end);
    for (size_t k = 1; !s->w.st && low < high; k++) {
        s->w.st = pare_progress(s->w.exec, "cut", k, HALVINGS, s->w.err);
        const size_t mid = up ? (low + high + 1) / 2 : (low + high) / 2;
        const bool yes = meets_request(s, o, mid);
        if (up)
            *(yes ? &low : &high) = yes ? mid : mid - 1;
        else
            *(yes ? &high : &low) = yes ? mid : mid + 1;
    }
    return low;
}

/* ---- the report ----------------------------------------------------------------------------- */

static void *copy_list(pare_work *w, pare_arena *to, const void *list, size_t n, size_t size)
{
    void *const copy = pare_alloc(to, n ? n : 1, size);
    if (!copy)
        w->st = pare_no_memory(w->err);
    else
        memcpy(copy, list, n * size);
    return copy;
}

static pare_status cut_width(pare_model **out, pare_width_report *report, const pare_model *in,
                             const pare_inputs *data, const pare_width_opts *opts,
                             const pare_exec *exec, pare_err *err)
{
    if (pare_width_is_text(in, opts->method))
        return lm_width(out, report, in, data, opts, exec, err);
    width_job s = {.w = {pare_arena_new(), exec, err, PARE_OK}, .in = in, .data = data};
    cut_record r;
    pare_model *m = NULL;
    *out = NULL;
    pare_work *const w = &s.w;
    if (!w->arena) return pare_no_memory(err);
    /* The gradient metric of auto takes about as long as the cut, a search about eight cuts. */
    const size_t requested = cuts_scores(opts) ? opts->qk_dim : opts->dim;
    const bool exact = opts->method == PARE_WIDTH_EXACT;
    const bool tries = !exact && is_search(opts) && requested == 0;
    const double metric_time = opts->method == PARE_WIDTH_AUTO ? 1 : 0.3;
    const double search_time = tries ? HALVINGS : 0;
    pare_steps steps = pare_steps_of(exec, metric_time + search_time + 1);
    w->exec = pare_step(&steps, "cut", metric_time);
    pare_fold_report folded;
    check_opts(w, opts);
    if (!w->st && data->n != 1)
        pare_work_fail(w, PARE_ERR_INPUT,
                       "this cut is fitted to one graph with its features; the data has %zu inputs",
                       data->n);
    if (!w->st) w->st = pare_fold(&s.folded, &folded, in, err);
    if (!w->st) s.n = net_read(w, s.folded);
    if (opts->dtype) s.n.dtype = memory_dtype(in, opts->dtype);
    if (!w->st) check_sizes(w, &s.n, opts);
    if (!w->st) s.p = activations_of(w, s.folded, &s.n, &data->in[0]);
    if (!w->st && opts->method == PARE_WIDTH_AUTO)
        s.metric = gradient_metric(w, s.folded, &data->in[0], opts->seed);
    (void)pare_step(&steps, "cut", search_time);
    pare_width_opts o = *opts;
    if (!w->st && tries) o = with_dim(opts, search(&s, opts));
    if (!w->st && !exact && requested) o = with_dim(opts, requested);
    (void)pare_step(&steps, "cut", 1);
    if (!w->st) {
        const net n = cut_net(&s, &o, &r);
        if (!w->st) w->st = write_cut(&m, &s, &n, o.dtype);
        if (!w->st) {
            *report = (pare_width_report){.dim = max_width(&n),
                                          .qk_dim = max_qk_dim(&n),
                                          .ffn_dim = max_units(&n),
                                          .npoints = r.npoints,
                                          .nheads = r.nheads,
                                          .nhidden = r.nhidden};
            report->points = copy_list(w, m->arena, r.points, r.npoints, sizeof *r.points);
            report->heads = copy_list(w, m->arena, r.heads, r.nheads, sizeof *r.heads);
            report->hidden = copy_list(w, m->arena, r.hidden, r.nhidden, sizeof *r.hidden);
        }
    }
    if (w->st) {
        pare_model_free(m);
        m = NULL;
    }
    *out = m;
    pare_model_free(s.folded);
    pare_arena_free(w->arena);
    return w->st;
}

/* Rows that tokens share are cut as the rows of each, and shared again where they are still the same. */
pare_status pare_width(pare_model **out, pare_width_report *report, const pare_model *in,
                       const pare_inputs *data, const pare_width_opts *opts, const pare_exec *exec,
                       pare_err *err)
{
    const pare_model *whole = in;
    pare_model *owned;
    *out = NULL;
    pare_status st = pare_model_whole(&whole, &owned, err);
    if (!st) st = cut_width(out, report, whole, data, opts, exec, err);
    if (!st) st = pare_model_share_like(*out, in, err);
    pare_model_free(owned);
    if (!st) return PARE_OK;
    pare_model_free(*out);
    *out = NULL;
    return st;
}
