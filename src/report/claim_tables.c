/* claim_tables.c - the statements of a certificate, section by section (items.h).
 *
 * Statements of one kind that differ only in a layer, a width or a place of the residual stream
 * share one small table: its caption has the sentence, its columns have what differs. So neither
 * sentence nor norm nor domain is repeated in every row. */
#include "items.h"

#include <math.h>
#include <string.h>

enum { GROUP = 3 }; /* so many of a kind get a table of their own */

const char *claim_sentence(page *p, const pare_claim *t)
{
    switch (t->kind) {
    case PARE_APRIORI_OUTPUTS:
        return "outputs, from sizes and norms alone";
    case PARE_GIVEN_OUTPUTS:
        return "outputs, added up layer by layer on the given inputs";
    case PARE_LOCAL_OUTPUTS:
        return "outputs, added up layer by layer";
    case PARE_ENGINE_DISTANCE:
        return "rounding of the f32 engine on these inputs, measured on the writer's machine";
    case PARE_ENGINE_ROUNDING:
        return "rounding of the f32 engine, from sizes and norms alone";
    case PARE_LINK_HYPOTHESES:
        return page_format(p, "optional bounds of link %g (%s)", t->p[0], t->text);
    case PARE_EDITS_OUTPUTS:
        if (t->p[0] == 0) return "outputs, after any node gets any feature row of the graph";
        break;
    case PARE_EDITS_ROWS_CHANGED:
        if (t->p[0] == 0)
            return "nodes whose largest output may differ, after any node gets any feature row of "
                   "the graph";
        break;
    default:
        break;
    }
    const char *const text = p->w.st ? "" : pare_claim_sentence(p->w.arena, t);
    if (!text) pare_work_keep(&p->w, pare_no_memory(p->w.err));
    return text ? text : "";
}

static bool is_theorem(const pare_claim *t)
{
    return pare_kinds[t->kind].section == PARE_THEOREM;
}

/* Upper bounds in the norm of the headline stand in one plot with it. */
bool claim_is_bar(const pare_cert *c, const pare_claim *t)
{
    const pare_kind_row *const row = &pare_kinds[t->kind];
    return t->kind == PARE_ENGINE_DISTANCE ||
           (is_theorem(t) && !row->lower && strcmp(row->norm, c->norm) == 0);
}

/* ---- cells ----------------------------------------------------------------------------------- */

static void value_cell(page *p, table *t, bool has, double v)
{
    number n;
    table_text(p, t, has ? show_value(n, v) : "");
}

static void bound_cells(page *p, table *t, const item *it, const pare_claim *c)
{
    const pare_kind_row *const row = &pare_kinds[c->kind];
    number v;
    table_cell(p, t, NULL);
    if (isinf(c->value))
        page_put(p, "no bound (inf)");
    else
        page_put(p, "%s %s", row->lower ? "at least" : "at most",
                 row->lower ? show_lower(v, c->value) : show_bound(v, c->value));
    if (c->kind == PARE_ENGINE_ROUNDING && is_vacuous(it, c->value))
        page_put(p, " <span class=\"chip warn\">vacuous</span>");
    table_cell_end(p);
}

/* A hypothesis is evaluated, not proven: nothing of it is green. */
static void hypothesis_cells(page *p, table *t, const item *it, const pare_claim *c)
{
    static const char *const word[] = {"fails", "holds", "not decided"};
    static const char *const claimed[] = {"said to fail", "said to hold", "not decided"};
    static const char *const optional[] = {"not all available", "all available", "not decided"};
    static const char *const cls[] = {"chip warn", "chip", "chip dim"};
    const pare_kind_row *const row = &pare_kinds[c->kind];
    const bool verified = it->holds == PARE_TRUE, link = c->kind == PARE_LINK_HYPOTHESES;
    table_tag(p, t, "span", verified && !link ? cls[c->holds] : "chip dim",
              link       ? optional[c->holds]
              : verified ? word[c->holds]
                         : claimed[c->holds]);
    value_cell(p, t, row->has_value, c->value);
    value_cell(p, t, row->has_limit, c->limit);
}

static void value_cells(page *p, table *t, const item *it, const pare_claim *c)
{
    (void)it;
    value_cell(p, t, pare_kinds[c->kind].has_value, c->value);
}

/* A figure and its optimum, both in f64. */
static void evidence_cells(page *p, table *t, const item *it, const pare_claim *c)
{
    const pare_kind_row *const row = &pare_kinds[c->kind];
    (void)it;
    value_cell(p, t, row->has_value, c->value);
    value_cell(p, t, row->has_limit, c->limit);
    value_cell(p, t, row->has_value && row->has_limit && c->limit > 0, c->value / c->limit);
}

/* ---- sections -------------------------------------------------------------------------------- */

typedef struct section {
    pare_section of;
    const char *title, *claimed; /* claimed: of a certificate that nobody has verified */
    const char *about;           /* NULL: none */
    const char *figures;         /* columns after the statement, as in table */
    void (*cells)(page *p, table *t, const item *it, const pare_claim *c);
} section;

static bool is_in_section(const section *s, const pare_cert *c, const pare_claim *t)
{
    return pare_kinds[t->kind].section == s->of && !claim_is_bar(c, t);
}

static bool same_table(const pare_claim *a, const pare_claim *b)
{
    return a->kind == b->kind && (!is_theorem(a) || strcmp(a->domain, b->domain) == 0);
}

/* How many statements like this one there are; *first: none of them stands before it. */
static size_t group_size(const section *s, const pare_cert *c, size_t i, bool *first)
{
    size_t n = 0;
    *first = true;
    for (size_t k = 0; k < c->nclaims; k++) {
        if (!is_in_section(s, c, &c->claims[k]) || !same_table(&c->claims[k], &c->claims[i]))
            continue;
        n++;
        if (k < i) *first = false;
    }
    const pare_kind_row *const row = &pare_kinds[c->claims[i].kind];
    return row->text || row->parameters[0] ? n : 1;
}

/* What a theorem bounds, and on which inputs where they are not those of the headline. */
static void put_scope(page *p, const item *it, const pare_claim *t)
{
    if (!is_theorem(t)) return;
    page_put(p, "<div class=\"small dim\">%s", pare_kinds[t->kind].norm);
    if (strcmp(t->domain, it->cert->domain) != 0) page_put(p, "; on %s", t->domain);
    if (pare_kind_is_drawn(t->kind))
        page_put(p, "; with probability at least %.6f", floor(1e6 * t->probability) / 1e6);
    page_put(p, "</div>");
}

static void single_claims(page *p, const item *it, const section *s)
{
    const pare_cert *const c = it->cert;
    bool any = false, first;
    table t;
    for (size_t i = 0; i < c->nclaims; i++) {
        if (!is_in_section(s, c, &c->claims[i]) || group_size(s, c, i, &first) >= GROUP) continue;
        if (!any) table_begin(p, &t, page_format(p, "statement|%s", s->figures), NULL);
        any = true;
        table_row(p, &t);
        table_cell(p, &t, "what");
        page_text(p, claim_sentence(p, &c->claims[i]));
        put_scope(p, it, &c->claims[i]);
        table_cell_end(p);
        s->cells(p, &t, it, &c->claims[i]);
        table_row_end(p);
    }
    if (any) table_end(p);
}

#define POINTS " (h0: before layer 0; z0: after its attention; h1: before layer 1; and so on)"

/* What the rows of such a table say; NULL: nothing but the sentence of the kind. */
static const char *caption_of(pare_kind kind)
{
    switch (kind) {
    case PARE_LEVERAGE_DRAWS:
        return "Hidden units, and the draws that sampling by leverage scores needs, per layer";
    case PARE_CLUSTER_RADIUS:
        return "Radius of the clusters relative to their centers (eps), per layer";
    case PARE_CLUSTER_SEPARATION:
        return "Separation of the clusters, per layer";
    case PARE_JL_DIMENSION:
        return "Dimension of queries and keys, and what the Johnson-Lindenstrauss lemma needs, "
               "per layer";
    case PARE_JL_DISTORTION:
        return "Largest |q.k - q^.k^| / |q||k| as drawn, per layer";
    case PARE_LAYER_REPLACED:
        return "What replaces the attention, per layer";
    case PARE_LAYER_INJECTED:
        return "Error that the replaced attention adds, per layer";
    case PARE_LAYER_TICKET:
        return "Error that the ticket adds, per layer and part";
    case PARE_ATTENTION_RATIO:
        return "Attention weights, per layer";
    case PARE_ATTENTION_RATIO_SEEN:
        return "Largest |ln(a / a^)| of the attention weights, per layer";
    case PARE_STREAM_RANK:
        return "Numerical affine rank of the residual stream and its new width, per point" POINTS;
    case PARE_STREAM_RESIDUAL:
        return "Largest distance of a row of the residual stream from the best affine subspace of "
               "the new width, per point" POINTS;
    case PARE_STREAM_OPTIMALITY:
        return "Error of the residual stream at its new width (root mean square), and the least "
               "of any linear map (Eckart-Young), per point" POINTS;
    case PARE_STREAM_OPTIMALITY_WEIGHTED:
        return "Error of the residual stream at its new width, each direction weighted by how much "
               "it moves the outputs, and the least of any linear map, per point" POINTS;
    case PARE_QK_OPTIMALITY:
        return "Error of the attention scores on the data, and the least of any form of that "
               "rank, per head";
    case PARE_BALL_OUTPUTS:
        return "Outputs for every input near the given ones, per radius";
    case PARE_BALL_ROWS_CHANGED:
        return "Rows whose largest entry may differ, for every input near the given ones, per "
               "radius";
    case PARE_PAPER_SCORES:
        return "Shirzad 2024, C.1: scores, 2 sqrt(alpha) beta e + (beta e)^2, per layer";
    case PARE_PAPER_SELECTOR:
        return "Shirzad 2024, C.5: selector, largest bias -3 |c|^2, per layer";
    default:
        return NULL;
    }
}

/* One table for all claims like claim `first`. */
static void claim_group(page *p, const item *it, const section *s, size_t first)
{
    const pare_cert *const c = it->cert;
    const pare_kind_row *const row = &pare_kinds[c->claims[first].kind];
    const char *const caption = caption_of(c->claims[first].kind);
    table t;
    page_put(p, "<p class=\"small\">%s", caption ? caption : "");
    /* Without a caption: the sentence of the kind with the names of its parameters in it. */
    for (const char *at = caption ? "" : row->sentence; *at;) {
        const size_t plain = strcspn(at, "{");
        page_put(p, "%.*s", (int)plain, at);
        at += plain;
        if (!*at) break;
        const size_t name = strcspn(at, "}");
        page_put(p, "<i>%.*s</i>", (int)name - 1, at + 1);
        at += name + 1;
    }
    page_put(p, "</p>");
    put_scope(p, it, &c->claims[first]);
    const char *columns = row->text ? page_format(p, "%s|", row->text) : "";
    for (size_t i = 0; i < PARE_PARAMETERS && row->parameters[i]; i++)
        columns = page_format(p, "%s%s|", columns, row->parameters[i]);
    table_begin(p, &t, page_format(p, "%s%s", columns, s->figures), "pack");
    for (size_t k = first; k < c->nclaims; k++) {
        const pare_claim *const at = &c->claims[k];
        if (!is_in_section(s, c, at) || !same_table(at, &c->claims[first])) continue;
        table_row(p, &t);
        if (row->text) table_text(p, &t, at->text);
        for (size_t i = 0; i < PARE_PARAMETERS && row->parameters[i]; i++)
            table_text(p, &t,
                       page_format(p, "%s%s%g", i || row->text ? "" : row->parameters[i],
                                   i || row->text ? "" : " ", at->p[i]));
        s->cells(p, &t, it, at);
        table_row_end(p);
    }
    table_end(p);
}

static void put_section(page *p, const item *it, const section *s)
{
    const pare_cert *const c = it->cert;
    const bool claimed = it->holds != PARE_TRUE;
    size_t n = 0;
    bool first;
    for (size_t i = 0; i < c->nclaims; i++) n += is_in_section(s, c, &c->claims[i]);
    if (n == 0) return;
    page_fold(p, claimed && s->claimed ? s->claimed : s->title,
              page_format(p, "%zu %s", n, n == 1 ? "statement" : "statements"));
    if (s->about) page_tag(p, "p", "small dim", s->about);
    single_claims(p, it, s);
    for (size_t i = 0; i < c->nclaims; i++)
        if (is_in_section(s, c, &c->claims[i]) && group_size(s, c, i, &first) >= GROUP && first)
            claim_group(p, it, s, i);
    page_fold_end(p);
}

void claim_tables(page *p, const item *it)
{
    static const section all[] = {
        {PARE_THEOREM, "Also proven", "Also claimed",
         "On the same inputs as the bound above, unless a line names others.", "#bound|",
         bound_cells},
        {PARE_HYPOTHESIS, "Hypotheses: what the theorems need", NULL,
         "A theorem whose hypothesis fails is not used, and no bound on this page needs it. "
         "Values are computed in f64.",
         "verdict|#value|#limit|", hypothesis_cells},
        {PARE_OBSERVATION, "Measured, no bounds", NULL, NULL, "#measured|", value_cells},
        {PARE_EVIDENCE, "How close to the best possible cut", NULL,
         "Computed in f64, not proven, and not checked by this page. A ratio of 1 is optimal.",
         "#reached|#best possible|#ratio|", evidence_cells},
        {PARE_PAPER, "Formulas as a paper prints them: not sound, no bounds", NULL, NULL, "#gives|",
         value_cells},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) put_section(p, it, &all[i]);
}
