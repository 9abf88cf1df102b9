/* Proving a ticket again, from the two models and the inputs alone. By the time this runs, the
 * source has been drawn again from its seed and the masks laid over it (that is what loading a
 * ticket does): what is left is a pair of ordinary models.
 *
 * The headline encloses both models on every input. Beside it stand Theorem B through all layers
 * for all inputs, Theorem C layer by layer for the given ones, what each attention layer adds on
 * its own, what no ticket of these errors can do without, how many products an entry would have
 * been promised beforehand, and what the paper has printed. */
#include "recursion.h"
#include "said.h"
#include <pare/exchange.h>
#include <pare/outputs.h>
#include <pare/publish.h>
#include <math.h>

#define GIVEN_WORK 1e10 /* multiply-adds of all passes: more is not walked layer by layer */
#define FAILURE    0.01 /* of the promise that is looked at */

/* Bounds that say nothing are left out. */
static void state(said *s, const char *name, const char *norm, const char *domain, pare_ub bound)
{
    if (!s->st && (!name || !domain)) s->st = pare_no_memory(s->err);
    if (s->st || isinf(bound.v)) return;
    PARE_ASSERT(s->cert->nstatements < s->room);
    s->cert->statements[s->cert->nstatements++] = (pare_statement){name, norm, domain, 1, bound.v};
}

static void suppose(said *s, pare_truth holds, double value, double limit, const char *name)
{
    if (!s->st && !name) s->st = pare_no_memory(s->err);
    if (s->st) return;
    PARE_ASSERT(s->cert->nhypotheses < s->room);
    s->cert->hypotheses[s->cert->nhypotheses++] = (pare_hypothesis){name, holds, value, limit};
}

/* ---- all inputs ------------------------------------------------------------------------------ */

static const char *all_words(said *s, const pare_model *f, double alpha)
{
    if (f->stem.ids && f->context)
        return pare_sprintf(s->keep, "all token sequences of up to %zu tokens", f->context);
    if (f->stem.ids) return pare_strdup(s->keep, "all token sequences");
    return pare_sprintf(s->keep, "all inputs with rows of euclidean length up to %.17g", alpha);
}

/* What a layer's own ticket adds where the walk of f has come to. */
static void layer_adds(said *s, size_t b, const char *what, const char *domain, pare_ub bound)
{
    state(s, pare_sprintf(s->keep, "layer %zu: what the ticket of the %s adds", b, what),
          "largest euclidean distance of a row at that layer, from the same input rows", domain,
          bound);
}

static void layers(said *s, const model_sizes *m, const char *domain, double alpha)
{
    const pare_ub a = pare_ub_exact(alpha);
    span x = stem_move(&m->stem, (span){a, a, pare_ub_exact(0), 0});
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

static void printed(said *s, const model_sizes *m, const pare_model *f, double alpha)
{
    const pare_attn *const at = m->nblocks == 1 ? &f->blocks[0].attn : NULL;
    if (s->st || !at || m->blocks[0].attn.nheads == 0 || f->stem.ids) return;
    if (at->in_norm.kind != PARE_NORM_NONE || m->blocks[0].attn.heads[0].turns || m->stem.map)
        return;
    s->cert->paper = pare_alloc(s->keep, 1, sizeof *s->cert->paper);
    if (!s->cert->paper) s->st = pare_no_memory(s->err);
    if (s->st) return;
    s->cert->paper[0] = (pare_named){"Lemma 8 and equation 17: the attention layer",
                                     paper_form(&m->blocks[0].attn, at->din, at->dout, alpha)};
    s->cert->npaper = 1;
}

static void all_inputs(said *s, const model_sizes *m, const char *why, const pare_model *f,
                       double alpha)
{
    pare_ticket_bound b = {pare_ub_inf(), pare_ub_inf(), ""};
    const char *const domain = all_words(s, f, alpha);
    const bool known = f->stem.ids || alpha > 0;
    if (!*why && known) model_move(&b, m, alpha);
    s->cert->apriori = b.outputs.v;
    if (*why || !known || isinf(b.outputs.v)) {
        const char *const reason = *why     ? why
                                   : !known ? "the given rows are all zero"
                                            : "the bound overflows";
        suppose(s, PARE_FALSE, NAN, NAN, pare_sprintf(s->keep, "a priori: %s", reason));
    } else {
        suppose(s, PARE_TRUE, NAN, NAN,
                pare_strdup(s->keep, "a priori: Theorem B, layer by layer"));
    }
    if (*why || !known) return;
    state(s, PARE_TICKET_ALL, PARE_NORM_HEADLINE, domain, b.outputs);
    state(s, PARE_TICKET_ALL_ROWS, "largest euclidean distance of a row", domain, b.rows);
    layers(s, m, domain, alpha);
    printed(s, m, f, alpha);
}

/* ---- given inputs ---------------------------------------------------------------------------- */

static void given_inputs(said *s, const pare_model *f, const pare_model *g, const pare_inputs *set)
{
    pare_ticket_bound b;
    const double passes = 6 * (double)(f->nblocks + 1) * pare_passes_work(f, g, set);
    if (s->st || !(passes <= GIVEN_WORK)) return;
    s->st = pare_ticket_bound_given(&b, f, g, set, s->exec, s->err);
    if (!s->st) state(s, PARE_TICKET_GIVEN, PARE_NORM_HEADLINE, s->cert->domain, b.outputs);
}

/* ---- what it takes --------------------------------------------------------------------------- */

static void what_it_takes(said *s, const model_sizes *m, const pare_model *f, const pare_model *g)
{
    const ticket_entries e = ticket_entries_of(m, f, g);
    if (s->st || e.entries == 0 || !(e.error > 0)) return;
    suppose(
        s, PARE_TRUE, e.error, NAN,
        pare_sprintf(s->keep, "largest error of an entry of the %zu fitted matrices", e.matrices));
    suppose(s, PARE_TRUE, NAN, e.bits,
            pare_strdup(s->keep,
                        "mask bits for every target of these shapes and ranks k whose first k "
                        "rows and columns have entries up to these sizes, with these errors, at "
                        "one source and scale: " PARE_LEAST));
    const pare_ticket_need n = pare_ticket_units(e.error, FAILURE / (double)e.entries, e.largest);
    if (n.units > 0)
        suppose(s, PARE_TRUE, NAN, (double)n.units,
                pare_sprintf(s->keep,
                             "products an entry that Lemma S asks for, for this error beforehand "
                             "with probability %g",
                             1 - FAILURE));
    else if (n.density > 0)
        suppose(s, PARE_FALSE, e.error, n.coupling,
                pare_strdup(s->keep, "Lemma S: the error is above what the lattice of the weights "
                                     "costs (n' 2^-23)"));
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void rows_kept(said *s, const pare_output_bound *o)
{
    const double changed = (double)(o->rows - o->certain) / (double)(o->rows ? o->rows : 1);
    state(s, "rows whose largest entry may have changed", "share of the output rows",
          s->cert->domain, pare_ub_exact(changed));
}

static void theorems(said *s, const pare_model *f, const pare_model *g, const pare_inputs *set)
{
    char why[200] = "";
    proof p = {pare_arena_new(), s->exec, s->err, PARE_OK};
    if (!p.a) s->st = pare_no_memory(s->err);
    if (s->st) return;
    const model_sizes m = model_sizes_of(&p, f, g, why);
    s->st = p.st;
    if (!s->st) all_inputs(s, &m, why, f, pare_ticket_alpha(set));
    if (!s->st && !*why) what_it_takes(s, &m, f, g);
    if (!s->st && !*why) given_inputs(s, f, g, set);
    pare_arena_free(p.a);
}

static pare_status open_lists(said *s, const pare_model *f, size_t nasked)
{
    s->room = 2 * f->nblocks + 16 + nasked;
    s->cert->hypotheses = pare_alloc(s->keep, s->room, sizeof *s->cert->hypotheses);
    s->cert->statements = pare_alloc(s->keep, s->room, sizeof *s->cert->statements);
    const bool there = s->cert->hypotheses && s->cert->statements;
    return there ? PARE_OK : pare_no_memory(s->err);
}

static pare_status prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                         const pare_model *f, const pare_model *g, const pare_inputs *set,
                         const pare_exec *exec, pare_err *err)
{
    said s = {again, a, 0, exec, err, PARE_OK};
    pare_output_bound o;
    const pare_statement *const asked = claimed->statements;
    const size_t nasked = claimed->nstatements;
    again->nhypotheses = again->nstatements = again->npaper = 0; /* `again` may be `claimed` */
    again->norm = PARE_NORM_HEADLINE;
    again->domain = pare_domain_text(a, &claimed->data);
    if (!again->domain) return pare_no_memory(err);
    s.st = open_lists(&s, f, nasked);
    if (!s.st) s.st = pare_outputs_compare(&o, f, g, set, exec, err);
    if (!s.st) s.st = pare_outputs_certain(&o, f, g, set, exec, err);
    if (s.st) return s.st;
    again->proven = o.gap.proven.v;
    again->measured = o.gap.measured;
    again->measured_slack = pare_measured_slack(&o.gap);
    again->rounding = o.gap.rounding.v;
    rows_kept(&s, &o);
    theorems(&s, f, g, set);
    if (!s.st)
        s.st = pare_exchange_say(again, a, &claimed->data, asked, nasked, f, g, set, exec, err);
    return s.st;
}

const pare_prover pare_ticket_prover = {"ticket", prove};
