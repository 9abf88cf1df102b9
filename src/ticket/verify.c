/* verify.c - proves a ticket from the two models and the inputs alone. Loading a ticket has drawn
 * its source again from the seed and applied the masks, so this is a pair of ordinary models.
 *
 * The headline encloses both models on every input. The certificate adds Theorem B through all
 * layers for all inputs, Theorem C layer by layer for the given ones, the error that each layer
 * adds on its own, the bits that no ticket of these errors can do without, the number of
 * products that an entry would have needed beforehand, and the bound that Otsuka 2025 prints. */
#include "fitted_entries.h"
#include "cert/conformal.h"
#include "cert/outputs.h"
#include "cert/prove.h"
#include "ticket_bounds.h"
#include <math.h>

#define GIVEN_WORK 1e10 /* multiply-adds of all passes: more is not bounded layer by layer */
#define FAILURE    0.01

/* ---- all inputs ------------------------------------------------------------------------------ */

static const char *domain_text(cert_builder *s, const pare_model *f, double alpha)
{
    pare_arena *const a = s->work.arena;
    if (f->embedding.ids && f->context)
        return pare_sprintf(a, "all token sequences of up to %zu tokens", f->context);
    if (f->embedding.ids) return pare_strdup(a, "all token sequences");
    return pare_sprintf(a, "all inputs with rows of euclidean length up to %.17g", alpha);
}

/* The error that the ticket of each layer adds alone, where the rows of f enter it. */
static void add_layers(cert_builder *s, const model_sizes *m, const char *domain, double alpha)
{
    const pare_ub a = pare_ub_exact(alpha), zero = pare_ub_exact(0);
    span x = embedding_move(&m->embedding, (span){a, a, zero, 0});
    for (size_t b = 0; !s->work.st && b < m->nblocks; b++) {
        const attn_sizes *const at = &m->blocks[b].attn;
        const ffn_sizes *const ff = &m->blocks[b].ffn;
        pare_claim c = {.kind = PARE_LAYER_TICKET, .p = {(double)b}, .text = "attention"};
        const pare_ub rows = norm_move(&at->in, x).f;
        if (at->kind != PARE_ATTN_NONE && at->nheads > 0)
            add_bound(s, c, domain, attn_move(at, (span){rows, rows, zero, 0}).d);
        const pare_ub later = norm_move(&ff->in, block_attention_move(&m->blocks[b], x)).f;
        c.text = "feed-forward part";
        if (ff->kind != PARE_FFN_NONE)
            add_bound(s, c, domain, ffn_move(ff, (span){later, later, zero, 0}).d);
        x = block_move(&m->blocks[b], x);
    }
}

static void add_all_inputs(cert_builder *s, const model_sizes *m, const char *why,
                           const pare_model *f, double alpha)
{
    pare_ticket_bound b = {pare_ub_inf(), pare_ub_inf(), ""};
    const char *const domain = domain_text(s, f, alpha);
    const bool known = f->embedding.ids || alpha > 0;
    if (!*why && known) model_move(&b, m, alpha);
    const bool bounded = !*why && known && !isinf(b.outputs.v);
    const char *const reason = bounded  ? "Theorem B, layer by layer"
                               : *why   ? why
                               : !known ? "the given rows are all zero"
                                        : "the bound overflows";
    const char *const text = pare_strdup(s->work.arena, reason);
    if (!text) pare_work_keep(&s->work, pare_no_memory(s->work.err));
    add_statement(s, (pare_claim){.kind = PARE_APRIORI_APPLIES,
                                  .holds = bounded ? PARE_TRUE : PARE_FALSE,
                                  .text = text});
    if (*why || !known) return;
    add_bound(s, (pare_claim){.kind = PARE_APRIORI_OUTPUTS}, domain, b.outputs);
    add_bound(s, (pare_claim){.kind = PARE_APRIORI_HIDDEN}, domain, b.rows);
    add_layers(s, m, domain, alpha);
    /* the printed bound is about one attention layer on given vectors */
    const attn_sizes *const first = m->nblocks == 1 ? &m->blocks[0].attn : NULL;
    const pare_attn *const at = first ? &f->blocks[0].attn : NULL;
    if (s->work.st || !first || first->nheads == 0 || f->embedding.ids || m->embedding.map ||
        at->in_norm.kind != PARE_NORM_NONE || first->heads[0].factored)
        return;
    add_statement(s, (pare_claim){.kind = PARE_PAPER_TICKET,
                                  .value = paper_form(first, at->din, at->dout, alpha)});
}

/* ---- what it takes --------------------------------------------------------------------------- */

static void add_requirements(cert_builder *s, const model_sizes *m, const pare_model *f,
                             const pare_model *g)
{
    const ticket_entries e = ticket_entries_of(m, f, g);
    if (s->work.st || e.entries == 0 || !(e.error > 0)) return;
    add_statement(
        s,
        (pare_claim){.kind = PARE_TICKET_ENTRY_ERROR, .p = {(double)e.matrices}, .value = e.error});
    const pare_ticket_need n = pare_ticket_units(e.error, FAILURE / (double)e.entries, e.largest);
    if (n.units == 0 && n.density > 0)
        add_statement(s, (pare_claim){.kind = PARE_TICKET_LATTICE,
                                      .holds = PARE_FALSE,
                                      .value = e.error,
                                      .limit = n.coupling});
    if (!s->cert->evidence) return;
    add_statement(s, (pare_claim){.kind = PARE_TICKET_LEAST_BITS, .limit = e.bits});
    if (n.units > 0)
        add_statement(
            s,
            (pare_claim){.kind = PARE_TICKET_PRODUCTS, .p = {FAILURE}, .limit = (double)n.units});
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void add_theorems(cert_builder *s, const pare_model *f, const pare_model *g,
                         const pare_inputs *set, bool given)
{
    char why[200] = "";
    pare_work *const w = &s->work;
    pare_work p = {pare_arena_new(), w->exec, w->err, PARE_OK};
    if (!p.arena) w->st = pare_no_memory(w->err);
    if (w->st) return;
    const model_sizes m = model_sizes_of(&p, f, g, why);
    w->st = p.st;
    if (!w->st) add_all_inputs(s, &m, why, f, pare_ticket_alpha(set));
    if (!w->st && !*why) add_requirements(s, &m, f, g);
    if (!w->st && !*why && given) {
        pare_ticket_bound b;
        w->st = pare_ticket_bound_given(&b, f, g, set, w->exec, w->err);
        if (!w->st)
            add_bound(s, (pare_claim){.kind = PARE_GIVEN_OUTPUTS}, s->cert->domain, b.outputs);
    }
    pare_arena_free(p.arena);
}

static pare_status prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                         const pare_model *f, const pare_model *g, const pare_inputs *set,
                         const pare_exec *exec, pare_err *err)
{
    cert_builder s = {.work = {.arena = a, .err = err}, .cert = again};
    pare_work *const w = &s.work;
    pare_output_bound o;
    again->norm = PARE_NORM_HEADLINE;
    again->domain = pare_domain_text(a, &claimed->data);
    if (!again->domain) return pare_no_memory(err);
    /* In units of one enclosure of both models; bounds on the given inputs take three a block. */
    const double macs = 6 * (double)(f->nblocks + 1) * pare_passes_work(f, g, set);
    const bool given = macs <= GIVEN_WORK;
    const double layers = 0.3 + (given ? 3 * (double)f->nblocks : 0);
    pare_steps steps = pare_steps_of(exec, 1 + layers);
    w->exec = pare_step(&steps, "prove", 1);
    w->st = pare_outputs_compare(&o, a, f, g, set, true, w->exec, err);
    (void)pare_step(&steps, "prove layer by layer", layers);
    if (!w->st) w->st = pare_cert_take_outputs(again, a, &o, err);
    if (!w->st) add_theorems(&s, f, g, set, given);
    if (!w->st) w->st = pare_add_new_inputs(again, a, &claimed->data, set, o.each, err);
    return w->st;
}

const pare_prover pare_ticket_prover = {"ticket", prove};
