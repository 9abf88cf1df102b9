/* run_poly.c - pare run --attention poly: which layers it reaches, and what became of each. */
#include "out.h"
#include "run.h"

#include <stdlib.h>
#include <string.h>

/* What happened in one layer, over its heads and sequences. */
struct run_layer {
    size_t heads;                /* of all sequences */
    size_t polynomial;           /* of these */
    size_t degree, features;     /* largest */
    size_t rows, rows_exact;     /* of those done by polynomials */
    pare_ub proven;              /* of these rows, in units of the range of the values */
    char by[160], exact_by[160]; /* reasons: of the first of either sort */
};

pare_status run_set_attention(cli *c, run_state *s)
{
    const run_opts *const o = s->o;
    size_t reached = 0;
    if (o->attention == RUN_ATTENTION_MODEL) return PARE_OK;
    for (size_t b = 0; b < s->m->nblocks; b++) {
        pare_attn *const a = &s->m->blocks[b].attn;
        if (!pare_attn_is_softmax(a->kind)) continue;
        a->kind = o->attention == RUN_ATTENTION_POLY ? PARE_ATTN_POLY : PARE_ATTN_EXACT;
        if (a->kind == PARE_ATTN_POLY) a->tolerance = o->tolerance;
        reached++;
    }
    if (reached == 0)
        return pare_fail(&c->err, PARE_ERR_INPUT, "%s: has no softmax attention for --attention",
                         c->operand[0]);
    return PARE_OK;
}

pare_status run_collect_poly(cli *c, run_state *s)
{
    bool any = false;
    for (size_t b = 0; b < s->m->nblocks; b++) any |= s->m->blocks[b].attn.kind == PARE_ATTN_POLY;
    if (s->o->f64 || !any) return PARE_OK;
    s->layers = pare_alloc(c->arena, s->m->nblocks, sizeof *s->layers);
    return s->layers ? PARE_OK : pare_no_memory(&c->err);
}

void run_add_poly(void *self, size_t block, size_t head, const pare_poly_report *r)
{
    run_layer *const l = &((run_state *)self)->layers[block];
    (void)head;
    l->heads++;
    if (r->kind == PARE_POLY_EXACT) {
        if (!l->exact_by[0]) memcpy(l->exact_by, r->why, sizeof l->exact_by);
        return;
    }
    if (!l->polynomial++) memcpy(l->by, r->why, sizeof l->by);
    if (r->degree > l->degree) l->degree = r->degree;
    if (r->features > l->features) l->features = r->features;
    l->rows += r->rows;
    l->rows_exact += r->rows_exact;
    l->proven = pare_ub_max(l->proven, r->proven);
}

void run_note_poly(cli *c, const run_state *s)
{
    char bound[40];
    for (size_t b = 0; s->layers && b < s->m->nblocks; b++) {
        const run_layer *const l = &s->layers[b];
        if (l->polynomial)
            cli_note(c,
                     "layer %zu: %zu of %zu heads by polynomials (%s); proven error %s of the "
                     "value range, %zu of %zu rows exact",
                     b, l->polynomial, l->heads, l->by, pare_ub_format(bound, l->proven, 2),
                     l->rows_exact, l->rows);
        if (l->polynomial < l->heads)
            cli_note(c, "layer %zu: %zu of %zu heads %s", b, l->heads - l->polynomial, l->heads,
                     l->exact_by);
    }
}

bool run_json_poly(cJSON *root, const run_state *s)
{
    if (!s->layers) return true;
    cJSON *const all = pare_json_add_array(root, "attention");
    bool ok = all != NULL;
    for (size_t b = 0; ok && b < s->m->nblocks; b++) {
        const run_layer *const l = &s->layers[b];
        if (l->heads == 0) continue;
        ok = pare_json_add_record(
            all, NULL,
            "layer:z heads:z polynomial:z degree:z features:z rows:z rows_exact:z proven:g why:s",
            b, l->heads, l->polynomial, l->degree, l->features, l->rows, l->rows_exact, l->proven.v,
            l->polynomial ? l->by : l->exact_by);
    }
    return ok;
}
