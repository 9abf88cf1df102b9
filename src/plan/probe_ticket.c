/* A model's matrices as targets of tickets: how large their entries are against what subset sums
 * reach, how many products an entry takes for a given error, and what the ticket weighs.
 *
 * Same-sign products of two U[-1, 1] sum to n' / 8 on average, so an entry w is in reach of n' > 8
 * |w| items at scale 1; a scale of the next power of two above the largest entry makes that 8 at
 * most. Items are counted on draws: entries of the model itself, each with products of its own, and
 * the exact best subset; 99 of 100 must come within the error. Bits of a merged ticket: n' (din^2 +
 * din dout) a head (as in Otsuka 2025), of a factored one n' a weight. */
#include "probe.h"
#include "base/json.h"
#include "model/model_facts.h"
#include "ticket/subset_solver.h"
#include "ticket/ticket_bounds.h"
#include <pare/plan.h>
#include <math.h>
#include <string.h>

enum { MOST_KINDS = 64, DRAWS = 300, MOST_ITEMS = 26, STEP_ITEMS = 2, FIRST_ITEMS = 4 };
static const double errors[] = {1e-1, 1e-2, 1e-3, 1e-4, 1e-5};
enum { ERRORS = sizeof errors / sizeof *errors };

typedef struct ticket_view {
    pare_probe *p;
    pare_ticket_probe *t;
    pare_weight of[MOST_KINDS]; /* the first of each kind */
    double top[MOST_KINDS];     /* its largest entry */
    double ratio_low;           /* least of largest entry / scale over the matrices */
    uint64_t other;             /* weights that merging leaves as they are */
} ticket_view;

/* "blocks.3.attn.wq" and its likes in other blocks are one kind. */
static const char *kind_of(const char *name)
{
    const char *const dot = strncmp(name, "blocks.", 7) == 0 ? strchr(name + 7, '.') : NULL;
    return dot ? dot + 1 : name;
}

static double scale_of(double largest)
{
    return largest > 0 ? exp2(ceil(log2(largest))) : 1;
}

static pare_probe_kind *kind_at(ticket_view *v, const char *name, const pare_weight *w)
{
    for (size_t i = 0; i < v->t->nkinds; i++)
        if (strcmp(v->t->kinds[i].name, name) == 0) return &v->t->kinds[i];
    const char *const kept = pare_strdup(v->p->arena, name);
    if (!kept || v->t->nkinds == MOST_KINDS) return NULL;
    v->of[v->t->nkinds] = *w;
    pare_probe_kind *const k = &v->t->kinds[v->t->nkinds++];
    *k = (pare_probe_kind){.name = kept, .rows = w->rows, .cols = w->cols};
    return k;
}

static pare_status look(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    ticket_view *const v = self;
    if (vector || !pare_has(w)) return PARE_OK;
    pare_probe_kind *const k = kind_at(v, kind_of(name), w);
    if (!k) return v->t->nkinds == MOST_KINDS ? PARE_OK : pare_no_memory(err);
    double sum = k->rms * k->rms * (double)k->weights, largest = 0;
    for (size_t i = 0; i < w->rows * w->cols; i++) {
        const double x = pare_weight_at(w, i);
        largest = fmax(largest, fabs(x));
        sum += x * x;
    }
    if (k->count == 0) v->top[k - v->t->kinds] = largest;
    k->count++;
    k->weights += w->rows * w->cols;
    k->largest = fmax(k->largest, largest);
    k->rms = sqrt(sum / (double)k->weights);
    k->reach = (size_t)ceil(8 * k->largest);
    v->t->f32 += 4 * w->rows * w->cols;
    if (largest > 0) v->ratio_low = fmin(v->ratio_low, largest / scale_of(largest));
    if (!strstr(name, ".attn.w")) v->other += w->rows * w->cols;
    return PARE_OK;
}

/* ---- what draws say -------------------------------------------------------------------------- */

/* Error of one entry of a matrix, in units of the matrix's largest. */
static pare_status draw(double *out, pare_subset_solver *s, const pare_weight *w, double largest,
                        pare_rng *r, size_t items, uint64_t stream, pare_err *err)
{
    int32_t a[2 * MOST_ITEMS];
    int64_t x[MOST_ITEMS];
    uint64_t mask;
    pare_subset best;
    const double scale = scale_of(largest);
    const double entry =
        pare_weight_at(w, (size_t)pare_rng_below(r, (uint64_t)w->rows * w->cols)) / scale;
    pare_source_weights(a, r->seed, stream, 0, 2 * items);
    for (size_t k = 0; k < items; k++) x[k] = (int64_t)a[2 * k] * a[2 * k + 1];
    const pare_status st =
        pare_subset_solve(s, &best, &mask, x, items, llrint(entry * 0x1p48), NULL, err);
    *out = fabs((double)best.error) * 0x1p-48 * scale / largest;
    return st;
}

/* How many of the draws are within each error. */
static pare_status met(size_t count[ERRORS], const ticket_view *v, pare_subset_solver *s,
                       size_t items, uint64_t seed, pare_err *err)
{
    pare_rng r = pare_rng_at(seed, items);
    memset(count, 0, ERRORS * sizeof *count);
    for (size_t i = 0; i < DRAWS; i++) {
        const size_t k = i % v->t->nkinds;
        double e = 0;
        const uint64_t stream = 1 + i * 64 + items;
        const pare_status st =
            v->top[k] > 0 ? draw(&e, s, &v->of[k], v->top[k], &r, items, stream, err) : PARE_OK;
        if (st) return st;
        for (size_t j = 0; j < ERRORS; j++) count[j] += e <= errors[j];
    }
    return PARE_OK;
}

static pare_status items_seen(ticket_view *v, uint64_t seed, pare_err *err)
{
    pare_subset_solver *s;
    size_t count[ERRORS];
    pare_status st = pare_subset_new(&s, err);
    if (st) return st;
    for (size_t n = FIRST_ITEMS; !st && n <= MOST_ITEMS; n += STEP_ITEMS) {
        st = met(count, v, s, n, seed, err);
        for (size_t j = 0; !st && j < ERRORS; j++)
            if (!v->t->needs[j].seen && 100 * count[j] >= 99 * DRAWS) v->t->needs[j].seen = n;
    }
    pare_subset_free(s);
    return st;
}

/* ---- what it weighs -------------------------------------------------------------------------- */

static uint64_t merged_entries(const pare_model *m)
{
    uint64_t n = 0;
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const at = &m->blocks[b].attn;
        n += at->nheads * ((uint64_t)at->din * at->din + (uint64_t)at->din * at->dout);
        const pare_ffn *const f = &m->blocks[b].ffn; /* a ReLU source: both signs of its inputs */
        if (f->kind == PARE_FFN_MLP && f->act == PARE_ACT_RELU)
            n += (uint64_t)f->layers[0].w.rows * f->layers[0].w.cols;
    }
    return n;
}

static const char *not_merged(const pare_model *m)
{
    if (pare_model_is_rotary(m)) return "rotary positions stand between queries and keys";
    for (size_t b = 0; b < m->nblocks; b++)
        if (m->blocks[b].attn.nheads > 0) return "";
    return "the model has no heads";
}

static void weigh(ticket_view *v, const pare_model *m)
{
    uint64_t weights = 0;
    for (size_t i = 0; i < v->t->nkinds; i++) weights += v->t->kinds[i].weights;
    v->t->not_merged = not_merged(m);
    for (size_t j = 0; j < ERRORS; j++) {
        pare_probe_need *const n = &v->t->needs[j];
        const double eta = errors[j] * v->ratio_low;
        const pare_ticket_need s = pare_ticket_units(eta, .01 / (double)weights, 1);
        n->error = errors[j];
        n->proven = s.units;
        n->density = s.density;
        n->coupling = s.coupling / v->ratio_low;
        n->factored = (n->seen * weights + 7) / 8;
        if (!*v->t->not_merged) n->merged = (n->seen * (v->other + merged_entries(m)) + 7) / 8;
    }
}

pare_status probe_ticket(pare_probe *p, const pare_model *m, uint64_t seed, const pare_exec *exec,
                         pare_err *err)
{
    ticket_view v = {.p = p, .t = &p->ticket, .ratio_low = 1};
    pare_model *copy;
    pare_status st = pare_model_clone(&copy, m, err); /* only to walk: visiting may write */
    if (st) return st;
    (void)exec;
    p->ticket = (pare_ticket_probe){.nneeds = ERRORS, .not_merged = ""};
    p->ticket.kinds = pare_alloc(p->arena, MOST_KINDS, sizeof *p->ticket.kinds);
    p->ticket.needs = pare_alloc(p->arena, ERRORS, sizeof *p->ticket.needs);
    if (!p->ticket.kinds || !p->ticket.needs) st = pare_no_memory(err);
    if (!st) st = pare_model_visit(copy, look, &v, err);
    p->has_ticket = !st && p->ticket.nkinds > 0;
    if (p->has_ticket) st = items_seen(&v, seed, err);
    if (!st && p->has_ticket) weigh(&v, m);
    pare_model_free(copy);
    return st;
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static bool kinds_json(cJSON *to, const pare_ticket_probe *t)
{
    cJSON *const list = pare_json_add_array(to, "kinds");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < t->nkinds; i++) {
        const pare_probe_kind *const k = &t->kinds[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_string(o, "name", k->name) &&
             pare_json_add_size(o, "count", k->count) && pare_json_add_size(o, "rows", k->rows) &&
             pare_json_add_size(o, "cols", k->cols) &&
             pare_json_add_size(o, "weights", (size_t)k->weights) &&
             probe_number(o, "largest", k->largest) && probe_number(o, "rms", k->rms) &&
             pare_json_add_size(o, "reach", k->reach);
    }
    return ok;
}

bool probe_ticket_json(cJSON *to, const pare_probe *p)
{
    const pare_ticket_probe *const t = &p->ticket;
    if (!p->has_ticket) return true;
    cJSON *const o = pare_json_add_object(to, "ticket");
    bool ok = o && kinds_json(o, t) && pare_json_add_size(o, "f32_bytes", (size_t)t->f32) &&
              pare_json_add_string(o, "not_merged", t->not_merged);
    cJSON *const list = ok ? pare_json_add_array(o, "needs") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < t->nneeds; i++) {
        const pare_probe_need *const n = &t->needs[i];
        cJSON *const r = pare_json_add_object(list, NULL);
        ok = r && probe_number(r, "error", n->error) && pare_json_add_size(r, "seen", n->seen) &&
             pare_json_add_size(r, "proven", n->proven) &&
             pare_json_add_size(r, "density", n->density) &&
             probe_number(r, "coupling", n->coupling) &&
             pare_json_add_size(r, "factored_bytes", (size_t)n->factored) &&
             pare_json_add_size(r, "merged_bytes", (size_t)n->merged);
    }
    return ok;
}
