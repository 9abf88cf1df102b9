/* probe_ticket.c - a model's matrices as targets of tickets: how large their entries are against
 * what subset sums reach, how many products an entry takes for a given error, and how many bytes
 * the ticket takes.
 *
 * Same-sign products of two U[-1, 1] sum to n' / 8 on average, so n' > 8 |w| items reach an entry w
 * at scale 1; a scale of the next power of two above the largest entry makes that 8 at most. Items
 * are counted on draws: entries of the model itself, each with products of its own, and the exact
 * best subset; 99 of 100 must come within the error. Bits of a ticket:
 *
 *     merged:    n' (din^2 + din dout) a head (as in Otsuka 2025),
 *     factored:  n' a weight. */
#include "probe.h"
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
    double largest[MOST_KINDS]; /* its largest entry */
    double ratio_low;           /* least of largest entry / scale over the matrices */
    uint64_t other;             /* weights that merging leaves as they are */
} ticket_view;

static double scale_of(double largest)
{
    return largest > 0 ? exp2(ceil(log2(largest))) : 1;
}

static pare_status add_matrix(void *self, const char *name, pare_weight *w, bool vector,
                              pare_err *err)
{
    ticket_view *const v = self;
    pare_ticket_probe *const t = v->t;
    if (vector || !pare_has(w)) return PARE_OK;
    /* "blocks.3.attn.wq" and its counterparts in other blocks are one kind. */
    const char *const dot = strncmp(name, "blocks.", 7) == 0 ? strchr(name + 7, '.') : NULL;
    const char *const kind = dot ? dot + 1 : name;
    size_t at = 0;
    while (at < t->nkinds && strcmp(t->kinds[at].name, kind) != 0) at++;
    if (at == MOST_KINDS) return PARE_OK;
    pare_probe_kind *const k = &t->kinds[at];
    if (at == t->nkinds) {
        const char *const copy = pare_strdup(v->p->arena, kind);
        if (!copy) return pare_no_memory(err);
        v->of[t->nkinds++] = *w;
        *k = (pare_probe_kind){.name = copy, .rows = w->rows, .cols = w->cols};
    }
    double sum = k->rms * k->rms * (double)k->weights, largest = 0;
    for (size_t i = 0; i < w->rows * w->cols; i++) {
        const double x = pare_weight_at(w, i);
        largest = fmax(largest, fabs(x));
        sum += x * x;
    }
    if (k->count == 0) v->largest[at] = largest;
    k->count++;
    k->weights += w->rows * w->cols;
    k->largest = fmax(k->largest, largest);
    k->rms = sqrt(sum / (double)k->weights);
    k->reach = (size_t)ceil(8 * k->largest);
    t->f32 += 4 * w->rows * w->cols;
    if (largest > 0) v->ratio_low = fmin(v->ratio_low, largest / scale_of(largest));
    if (!strstr(name, ".attn.w")) v->other += w->rows * w->cols;
    return PARE_OK;
}

/* Error of one entry of a matrix, in units of the matrix's largest. */
static pare_status fit_entry(double *out, pare_subset_solver *s, const pare_weight *w,
                             double largest, pare_rng *r, size_t items, uint64_t stream,
                             pare_err *err)
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

/* The fewest items with which 99 of 100 draws are within each error. */
static pare_status count_items(ticket_view *v, uint64_t seed, pare_err *err)
{
    pare_subset_solver *s;
    pare_status st = pare_subset_new(&s, err);
    if (st) return st;
    for (size_t n = FIRST_ITEMS; !st && n <= MOST_ITEMS; n += STEP_ITEMS) {
        pare_rng r = pare_rng_at(seed, n);
        size_t count[ERRORS] = {0};
        for (size_t i = 0; !st && i < DRAWS; i++) {
            const size_t k = i % v->t->nkinds;
            const uint64_t stream = 1 + i * 64 + n;
            double e = 0;
            if (v->largest[k] > 0)
                st = fit_entry(&e, s, &v->of[k], v->largest[k], &r, n, stream, err);
            for (size_t j = 0; j < ERRORS; j++) count[j] += e <= errors[j];
        }
        for (size_t j = 0; !st && j < ERRORS; j++)
            if (!v->t->needs[j].seen && 100 * count[j] >= 99 * DRAWS) v->t->needs[j].seen = n;
    }
    pare_subset_free(s);
    return st;
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
    if (!st) st = pare_model_each_weight(copy, add_matrix, &v, err);
    p->has_ticket = !st && p->ticket.nkinds > 0;
    if (p->has_ticket) st = count_items(&v, seed, err);
    if (!st && p->has_ticket) {
        uint64_t weights = 0, merged = v.other;
        bool heads = false;
        for (size_t i = 0; i < v.t->nkinds; i++) weights += v.t->kinds[i].weights;
        for (size_t b = 0; b < m->nblocks; b++) {
            const pare_attn *const at = &m->blocks[b].attn;
            const pare_ffn *const f =
                &m->blocks[b].ffn; /* a ReLU source: both signs of its inputs */
            merged += at->nheads * ((uint64_t)at->din * at->din + (uint64_t)at->din * at->dout);
            if (f->kind == PARE_FFN_MLP && f->act == PARE_ACT_RELU)
                merged += (uint64_t)f->layers[0].w.rows * f->layers[0].w.cols;
            heads = heads || at->nheads > 0;
        }
        v.t->not_merged = pare_model_is_rotary(m)
                              ? "rotary positions stand between queries and keys"
                          : heads ? ""
                                  : "the model has no heads";
        for (size_t j = 0; j < ERRORS; j++) {
            pare_probe_need *const n = &v.t->needs[j];
            const double eta = errors[j] * v.ratio_low;
            const pare_ticket_need s = pare_ticket_units(eta, .01 / (double)weights, 1);
            n->error = errors[j];
            n->proven = s.units;
            n->density = s.density;
            n->coupling = s.coupling / v.ratio_low;
            n->factored = (n->seen * weights + 7) / 8;
            if (!*v.t->not_merged) n->merged = (n->seen * merged + 7) / 8;
        }
    }
    pare_model_free(copy);
    return st;
}
