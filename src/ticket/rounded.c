/* What a round-to-nearest quantiser does with the bytes of a ticket: an honest neighbour. */
#include <pare/ticket.h>
#include <math.h>
#include <string.h>

enum { SCALE_BITS = 32 }; /* one f32 for each matrix */
#define MOST_LEVELS 0x1p24

typedef struct rounder {
    const pare_ticket_report *of;
    pare_arena *arena;
    double bits; /* stored, over all matrices */
} rounder;

static const pare_ticket_matrix *find(const pare_ticket_report *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->matrix[i].name, name) == 0) return &r->matrix[i];
    return NULL;
}

/* Levels at equal distances from -most to most; the number need not be a power of two. */
static double levels_for(size_t bytes, size_t count)
{
    const double bits = (8 * (double)bytes - SCALE_BITS) / (double)count;
    const double levels = floor(exp2(bits));
    return levels < 2 ? 2 : levels > MOST_LEVELS ? MOST_LEVELS : levels;
}

static pare_status round_one(void *self, const char *name, pare_weight *w, bool vector,
                             pare_err *err)
{
    rounder *const r = self;
    const pare_ticket_matrix *const t = pare_has(w) ? find(r->of, name) : NULL;
    (void)vector;
    if (!t) return PARE_OK;
    const size_t count = w->rows * w->cols;
    float *const to = pare_alloc(r->arena, count, sizeof *to);
    if (!to) return pare_no_memory(err);
    double most = 0;
    for (size_t i = 0; i < count; i++) most = fmax(most, fabs(pare_weight_at(w, i)));
    const double levels = levels_for(t->bytes, count), step = 2 * most / (levels - 1);
    for (size_t i = 0; i < count; i++) {
        const double k = most > 0 ? nearbyint((pare_weight_at(w, i) + most) / step) : 0;
        to[i] = most > 0 ? (float)(k * step - most) : 0;
    }
    r->bits += (double)count * log2(levels) + SCALE_BITS;
    *w = (pare_weight){PARE_F32, w->rows, w->cols, to};
    return PARE_OK;
}

pare_status pare_ticket_rounded(pare_model **out, double *bits, const pare_model *in,
                                const pare_ticket_report *of, pare_err *err)
{
    pare_model *m = NULL;
    pare_status st = pare_model_clone(&m, in, err);
    rounder r = {.of = of, .arena = st ? NULL : m->arena};
    if (!st) st = pare_model_visit(m, round_one, &r, err);
    if (!st) st = pare_model_check(m, err);
    if (st) {
        pare_model_free(m);
        m = NULL;
    }
    *bits = of->weights ? r.bits / (double)of->weights : 0;
    *out = m;
    return st;
}
