/* Proving a ticket again, from the two models and the inputs alone. By the time this runs, the
 * source has been drawn again from its seed and the masks laid over it (that is what loading a
 * ticket does): what is left is a pair of ordinary models.
 *
 * The headline encloses both models on every input. Beside it stand Theorem B through all layers
 * for all inputs, Theorem C layer by layer for the given ones, what each attention layer adds on
 * its own, what no ticket of these errors can do without, how many products an entry would have
 * been promised beforehand, and what Otsuka 2025 prints. */
#include "model_bound.h"
#include "cert_builder.h"
#include <pare/exchange.h>
#include <pare/outputs.h>
#include <pare/publish.h>
#include <math.h>

#define GIVEN_WORK 1e10 /* multiply-adds of all passes: more is not walked layer by layer */
#define FAILURE    0.01 /* of the promise that is looked at */

static void add(cert_builder *s, pare_claim c)
{
    if (!s->st) s->st = pare_cert_add(s->cert, s->keep, c, s->err);
}

/* A theorem on that domain; vacuous bounds are left out. */
static void bound_by(cert_builder *s, pare_claim c, const char *domain, pare_ub bound)
{
    if (!s->st && !domain) s->st = pare_no_memory(s->err);
    if (s->st || isinf(bound.v)) return;
    c.value = bound.v;
    c.domain = domain;
    add(s, c);
}

/* ---- all inputs ------------------------------------------------------------------------------ */

static const char *all_words(cert_builder *s, const pare_model *f, double alpha)
{
    if (f->stem.ids && f->context)
        return pare_sprintf(s->keep, "all token sequences of up to %zu tokens", f->context);
    if (f->stem.ids) return pare_strdup(s->keep, "all token sequences");
    return pare_sprintf(s->keep, "all inputs with rows of euclidean length up to %.17g", alpha);
}

/* What a layer's own ticket adds where the walk of f has come to. */
static void layer_adds(cert_builder *s, size_t b, const char *what, const char *domain,
                       pare_ub bound)
{
    bound_by(s, (pare_claim){.kind = PARE_LAYER_TICKET, .p = {(double)b}, .text = what}, domain,
             bound);
}

static void layers(cert_builder *s, const model_sizes *m, const char *domain, double alpha)
{
    const pare_ub a = pare_ub_exact(alpha);
    span x = embedding_move(&m->stem, (span){a, a, pare_ub_exact(0), 0});
    for (size_t b = 0; !s->st && b < m->nblocks; b++) {
        const attn_sizes *const at = &m->blocks[b].attn;
        const ffn_sizes *const ff = &m->blocks[b].ffn;
        const pare_ub rows = norm_move(&at->in, x).f;
        if (at->kind != PARE_ATTN_NONE && at->nheads > 0)
            layer_adds(s, b, "attention", domain,
                       attn_move(at, (span){rows, rows, pare_ub_exact(0), 0}).d);
        const pare_ub later = norm_move(&ff->in, block_attention_move(&m->blocks[b], x)).f;
        if (ff->kind != PARE_FFN_NONE)
            layer_adds(s, b, "feed-forward part", domain,
                       ffn_move(ff, (span){later, later, pare_ub_exact(0), 0}).d);
        x = block_move(&m->blocks[b], x);
    }
}

static void printed(cert_builder *s, const model_sizes *m, const pare_model *f, double alpha)
{
    const pare_attn *const at = m->nblocks == 1 ? &f->blocks[0].attn : NULL;
    if (s->st || !at || m->blocks[0].attn.nheads == 0 || f->stem.ids) return;
    if (at->in_norm.kind != PARE_NORM_NONE || m->blocks[0].attn.heads[0].factored || m->stem.map)
        return;
    add(s, (pare_claim){.kind = PARE_PAPER_TICKET,
                        .value = paper_form(&m->blocks[0].attn, at->din, at->dout, alpha)});
}

static void all_inputs(cert_builder *s, const model_sizes *m, const char *why, const pare_model *f,
                       double alpha)
{
    pare_ticket_bound b = {pare_ub_inf(), pare_ub_inf(), ""};
    const char *const domain = all_words(s, f, alpha);
    const bool known = f->stem.ids || alpha > 0;
    if (!*why && known) model_move(&b, m, alpha);
    const bool bounded = !*why && known && !isinf(b.outputs.v);
    const char *const reason = bounded  ? "Theorem B, layer by layer"
                               : *why   ? why
                               : !known ? "the given rows are all zero"
                                        : "the bound overflows";
    const char *const text = pare_strdup(s->keep, reason);
    if (!s->st && !text) s->st = pare_no_memory(s->err);
    add(s, (pare_claim){.kind = PARE_APRIORI_APPLIES,
                        .holds = bounded ? PARE_TRUE : PARE_FALSE,
                        .text = text});
    if (*why || !known) return;
    bound_by(s, (pare_claim){.kind = PARE_APRIORI_OUTPUTS}, domain, b.outputs);
    bound_by(s, (pare_claim){.kind = PARE_APRIORI_HIDDEN}, domain, b.rows);
    layers(s, m, domain, alpha);
    printed(s, m, f, alpha);
}

/* ---- given inputs ---------------------------------------------------------------------------- */

static double walk_work(const pare_model *f, const pare_model *g, const pare_inputs *set)
{
    return 6 * (double)(f->nblocks + 1) * pare_passes_work(f, g, set);
}

static void given_inputs(cert_builder *s, const pare_model *f, const pare_model *g,
                         const pare_inputs *set)
{
    pare_ticket_bound b;
    if (s->st || !(walk_work(f, g, set) <= GIVEN_WORK)) return;
    s->st = pare_ticket_bound_given(&b, f, g, set, s->exec, s->err);
    if (!s->st) bound_by(s, (pare_claim){.kind = PARE_GIVEN_OUTPUTS}, s->cert->domain, b.outputs);
}

/* ---- what it takes --------------------------------------------------------------------------- */

static void what_it_takes(cert_builder *s, const model_sizes *m, const pare_model *f,
                          const pare_model *g)
{
    const ticket_entries e = ticket_entries_of(m, f, g);
    if (s->st || e.entries == 0 || !(e.error > 0)) return;
    add(s,
        (pare_claim){.kind = PARE_TICKET_ENTRY_ERROR, .p = {(double)e.matrices}, .value = e.error});
    const pare_ticket_need n = pare_ticket_units(e.error, FAILURE / (double)e.entries, e.largest);
    if (n.units == 0 && n.density > 0)
        add(s, (pare_claim){.kind = PARE_TICKET_LATTICE,
                            .holds = PARE_FALSE,
                            .value = e.error,
                            .limit = n.coupling});
    if (!s->cert->evidence) return;
    add(s, (pare_claim){.kind = PARE_TICKET_LEAST_BITS, .limit = e.bits});
    if (n.units > 0)
        add(s,
            (pare_claim){.kind = PARE_TICKET_PRODUCTS, .p = {FAILURE}, .limit = (double)n.units});
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void theorems(cert_builder *s, const pare_model *f, const pare_model *g,
                     const pare_inputs *set)
{
    char why[200] = "";
    pare_work p = {pare_arena_new(), s->exec, s->err, PARE_OK};
    if (!p.arena) s->st = pare_no_memory(s->err);
    if (s->st) return;
    const model_sizes m = model_sizes_of(&p, f, g, why);
    s->st = p.st;
    if (!s->st) all_inputs(s, &m, why, f, pare_ticket_alpha(set));
    if (!s->st && !*why) what_it_takes(s, &m, f, g);
    if (!s->st && !*why) given_inputs(s, f, g, set);
    pare_arena_free(p.arena);
}

static pare_status prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                         const pare_model *f, const pare_model *g, const pare_inputs *set,
                         const pare_exec *exec, pare_err *err)
{
    cert_builder s = {again, a, exec, err, PARE_OK};
    pare_output_bound o;
    again->norm = PARE_NORM_HEADLINE;
    again->domain = pare_domain_text(a, &claimed->data);
    if (!again->domain) return pare_no_memory(err);
    /* In units of one enclosure of both models; a walk takes one for every layer and more. */
    const bool draws = claimed->data.candidates == 1;
    const double walk = walk_work(f, g, set) <= GIVEN_WORK ? 3 * (double)f->nblocks : 0;
    pare_steps steps = pare_steps_of(exec, 1 + 0.3 + walk + (draws ? 1 : 0));
    exec = pare_step(&steps, "prove", 1);
    s.exec = exec;
    s.st = pare_outputs_compare(&o, f, g, set, true, exec, err);
    (void)pare_step(&steps, "prove layer by layer", 0.3 + walk);
    if (!s.st) s.st = pare_cert_take_outputs(again, a, &o, err);
    if (!s.st) theorems(&s, f, g, set);
    (void)pare_step(&steps, "prove for new inputs", draws ? 1 : 0);
    if (!s.st) s.st = pare_add_new_inputs(again, a, &claimed->data, f, g, set, exec, err);
    return s.st;
}

const pare_prover pare_ticket_prover = {"ticket", prove};
