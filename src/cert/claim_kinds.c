/* claim_kinds.c - every kind of claim that a certificate can make, in one table.
 *
 * The kind and its parameters say what is claimed; sentence, norm, side and tolerance follow from
 * them and are in the file for people. Nothing is decided by words. docs/format.md has the same
 * table (tools/lint-docs compares the names). */
#include "prove.h"
#include "cert_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUTS_NORM  "largest absolute difference over the output entries"
#define SCORE_NORM    "largest change of the second output minus the first"
#define SHARE_NORM    "share of the output rows"
#define COSINE_NORM   "1 - cosine of the output rows of both models"
#define KL_NORM       "Kullback-Leibler divergence of the softmax of output rows, in nats"
#define AUC_NORM      "area under the ROC curve of the test rows"
#define COLLAPSE_NORM "largest difference of an entry between two tokens of one input"
#define ENGINE_NORM   "largest distance of the f32 engine's outputs from the exact function"
#define COLLAPSE      "how far the tokens of the input model are apart at the end (rank collapse)"
#define NEAR          1e-3

/* One kind a row, its sentence below it. */
/* clang-format off */
const pare_kind_row pare_kinds[PARE_KINDS] = {
    [PARE_FOLD_SAME] = {.name = "fold.same", .has_value = true, .has_limit = true,
        .sentence = "weights and settings in which the output differs from the folded input"},
    [PARE_FOLD_ROUNDED] = {.name = "fold.rounded", .has_value = true, .has_limit = true,
        .sentence = "weights that folding had to round"},
    [PARE_FOLD_NOT_ROTARY] = {.name = "fold.not_rotary",
        .sentence = "positions are not rotary, so key biases may be dropped"},
    [PARE_FOLD_ROWS_NOT_EMPTY] = {.name = "fold.rows_not_empty",
        .sentence = "every token sees a key, so value biases may be merged into the output bias"},
    [PARE_SHARED_ROWS_SAME] = {.name = "shared_rows.same", .has_value = true, .has_limit = true,
        .sentence = "weights and settings in which the output differs from the input, but for rows "
                    "that became the shared one"},
    [PARE_SHARED_ROWS_BOUNDED] = {.name = "shared_rows.bounded", .text = "why",
        .sentence = "what the last map reads is bounded on all inputs: {why}"},
    [PARE_APRIORI_APPLIES] = {.name = "apriori.applies", .text = "why",
        .sentence = "a bound from sizes and norms alone: {why}"},
    [PARE_APRIORI_FOLDED] = {.name = "apriori.folded", .has_value = true, .has_limit = true,
        .sentence = "a bound from norms alone needs folded models (fold first: pare fold): weights "
                    "that folding would round"},
    [PARE_LOCAL_APPLIES] = {.name = "local.applies", .text = "why",
        .sentence = "a bound layer by layer does not cover {why}"},
    [PARE_BALL_APPLIES] = {.name = "ball.applies", .text = "why",
        .sentence = "a bound on balls for the pair of models: {why}"},
    [PARE_PLAIN_APPLIES] = {.name = "theorem42.applies", .text = "why",
        .sentence = "Theorem 4.2 (Shirzad 2024) needs {why}"},
    [PARE_LEVERAGE_DRAWS] = {.name = "leverage.draws", .parameters = {"layer", "rank"},
        .has_value = true, .has_limit = true,
        .sentence = "layer {layer}: hidden units, and the draws that sampling by leverage scores "
                    "needs at rank {rank}"},
    [PARE_CLUSTER_RADIUS] = {.name = "cluster.radius", .parameters = {"layer", "clusters"},
        .has_value = true, .has_limit = true,
        .sentence = "layer {layer}: radius of {clusters} clusters relative to their centers (eps), "
                    "in f64"},
    [PARE_CLUSTER_SEPARATION] = {.name = "cluster.separation", .parameters = {"layer"},
        .has_value = true, .has_limit = true,
        .sentence = "layer {layer}: separation of the clusters, in f64"},
    [PARE_JL_DIMENSION] = {.name = "jl.dimension", .parameters = {"layer", "eps", "delta"},
        .has_value = true, .has_limit = true,
        .sentence = "layer {layer}: dimension of queries and keys, and what the "
                    "Johnson-Lindenstrauss lemma needs (eps {eps}, delta {delta})"},
    [PARE_JL_DISTORTION] = {.name = "jl.distortion", .parameters = {"layer"}, .has_value = true,
        .has_limit = true,
        .sentence = "layer {layer}: largest |q.k - q^.k^| / |q||k| as drawn, in f64"},
    [PARE_LAYERS_MERGED] = {.name = "layers.merged", .parameters = {"before", "after"},
        .sentence = "layers of the model: {before} before, {after} after"},
    [PARE_LAYER_REPLACED] = {.name = "layer.replaced", .parameters = {"layer"}, .text = "by",
        .sentence = "layer {layer}: its attention is replaced by {by}"},
    [PARE_TICKET_LATTICE] = {.name = "ticket.lattice", .has_value = true, .has_limit = true,
        .sentence = "Lemma S: the error is above what the lattice of the random weights costs (n' "
                    "2^-23)"},
    [PARE_NEW_INPUT_INDEPENDENT] = {.name = "new_input.independent",
        .sentence = "the data are independent draws of the source of new inputs, seen by neither "
                    "the training of the model nor the cut: no file can show this"},
    [PARE_LINK_HYPOTHESES] = {.name = "link.hypotheses", .parameters = {"link"},
        .text = "reduction",
        .sentence = "every hypothesis of link {link} ({reduction}) holds"},

    [PARE_APRIORI_OUTPUTS] = {.name = "apriori.outputs", .section = PARE_THEOREM,
        .norm = OUTPUTS_NORM,
        .sentence = "from sizes and norms alone: outputs"},
    [PARE_APRIORI_SCORE] = {.name = "apriori.score", .section = PARE_THEOREM, .norm = SCORE_NORM,
        .sentence = "from sizes and norms alone: difference of the two outputs"},
    [PARE_APRIORI_HIDDEN] = {.name = "apriori.hidden", .section = PARE_THEOREM,
        .norm = "largest euclidean distance of a row",
        .sentence = "from sizes and norms alone: hidden rows before the head"},
    [PARE_SHARED_ROWS_OTHERS] = {.name = "shared_rows.others", .section = PARE_THEOREM,
        .norm = OUTPUTS_NORM, .parameters = {"tokens"},
        .sentence = "outputs of all tokens but the {tokens} that share a row"},
    [PARE_SHARED_ROWS_OUTPUTS] = {.name = "shared_rows.outputs", .section = PARE_THEOREM,
        .norm = OUTPUTS_NORM, .parameters = {"tokens"},
        .sentence = "all outputs, those of the {tokens} tokens that share a row too"},
    [PARE_SHARED_ROWS_KL] = {.name = "shared_rows.kl", .section = PARE_THEOREM, .norm = KL_NORM,
        .parameters = {"tokens"},
        .sentence = "KL divergence of the output model from the input model, in each output row; "
                    "{tokens} tokens share a row"},
    [PARE_LAYER_INJECTED] = {.name = "layer.injected", .section = PARE_THEOREM,
        .norm = "largest euclidean length of a token's change at that layer",
        .parameters = {"layer"},
        .sentence = "layer {layer}: error that its replaced attention adds"},
    [PARE_LAYER_TICKET] = {.name = "layer.ticket", .section = PARE_THEOREM,
        .norm = "largest euclidean distance of a row at that layer, from the same input rows",
        .parameters = {"layer"}, .text = "part",
        .sentence = "layer {layer}: error that the ticket of the {part} adds"},
    [PARE_RANK_COLLAPSE] = {.name = "rank_collapse", .section = PARE_THEOREM, .norm = COLLAPSE_NORM,
        .sentence = COLLAPSE},
    [PARE_DIAMETER_OUTPUTS] = {.name = "diameter.outputs", .section = PARE_THEOREM,
        .norm = OUTPUTS_NORM, .parameters = {"diameter"},
        .sentence = "inputs of diameter {diameter}: outputs"},
    [PARE_DIAMETER_SCORE] = {.name = "diameter.score", .section = PARE_THEOREM, .norm = SCORE_NORM,
        .parameters = {"diameter"},
        .sentence = "inputs of diameter {diameter}: difference of the two outputs"},
    [PARE_DIAMETER_RANK_COLLAPSE] = {.name = "diameter.rank_collapse", .section = PARE_THEOREM,
        .norm = COLLAPSE_NORM, .parameters = {"diameter"},
        .sentence = "inputs of diameter {diameter}: " COLLAPSE},
    [PARE_ONE_LAYER_LEAST] = {.name = "one_layer.least", .section = PARE_THEOREM, .lower = true,
        .norm = OUTPUTS_NORM,
        .sentence = "least error of any one layer of softmax heads and an identity skip, without "
                    "biases"},
    [PARE_OUTPUTS_LEAST] = {.name = "outputs.least", .section = PARE_THEOREM, .lower = true,
        .norm = OUTPUTS_NORM, .parameters = {"width"},
        .sentence = "least error of any model with an affine head on last rows of {width} numbers"},
    [PARE_ROWS_CHANGED] = {.name = "rows.changed", .section = PARE_THEOREM, .norm = SHARE_NORM,
        .ceiling = 1,
        .sentence = "rows whose largest entry may have changed"},
    [PARE_COSINE_DISTANCE] = {.name = "cosine.distance", .section = PARE_THEOREM,
        .norm = COSINE_NORM, .parameters = {"rows", "left_out"}, .ceiling = 2,
        .sentence = "1 - cosine between the outputs of both models, over {rows} output rows; "
                    "largest left out: {left_out}"},
    [PARE_NEIGHBORS_CHANGED] = {.name = "neighbors.changed", .section = PARE_THEOREM,
        .norm = "share of the inputs", .parameters = {"nearest"}, .ceiling = 1,
        .sentence = "inputs whose set of nearest other inputs ({nearest} of them, by the cosine of "
                    "the outputs) may have changed"},
    [PARE_KL_MOST] = {.name = "kl.most", .section = PARE_THEOREM, .norm = KL_NORM,
        .sentence = "KL divergence of the output model from the input model: largest over the "
                    "output rows"},
    [PARE_KL_MEAN] = {.name = "kl.mean", .section = PARE_THEOREM, .norm = KL_NORM,
        .sentence = "KL divergence of the output model from the input model: mean over the output "
                    "rows"},
    [PARE_AUC_MOST] = {.name = "auc.most", .section = PARE_THEOREM, .norm = AUC_NORM, .ceiling = 1,
        .sentence = "AUC of the output model"},
    [PARE_AUC_LEAST] = {.name = "auc.least", .section = PARE_THEOREM, .lower = true,
        .norm = AUC_NORM,
        .sentence = "AUC of the output model"},
    [PARE_AUC_DIFFERENCE] = {.name = "auc.difference", .section = PARE_THEOREM,
        .norm = "difference of the areas under the ROC curve of the test rows", .ceiling = 1,
        .sentence = "AUC of both models: difference"},
    [PARE_ATTENTION_RATIO] = {.name = "attention.ratio", .section = PARE_THEOREM,
        .norm = "largest |ln(a / a^)| over the attention weights", .parameters = {"layer"},
        .sentence = "attention weights of layer {layer}"},
    [PARE_BALL_OUTPUTS] = {.name = "ball.outputs", .section = PARE_THEOREM, .norm = OUTPUTS_NORM,
        .parameters = {"radius"}, .text = "ball_norm",
        .sentence = "ball of radius {radius} {ball_norm}: outputs"},
    [PARE_BALL_ROWS_CHANGED] = {.name = "ball.rows_changed", .section = PARE_THEOREM,
        .norm = SHARE_NORM, .parameters = {"radius"}, .text = "ball_norm", .ceiling = 1,
        .sentence = "ball of radius {radius} {ball_norm}: rows whose largest entry may differ"},
    [PARE_BALL_SCORE] = {.name = "ball.score", .section = PARE_THEOREM,
        .norm = "largest absolute difference over the rows", .parameters = {"radius"},
        .text = "ball_norm",
        .sentence = "ball of radius {radius} {ball_norm}: the second output minus the first"},
    [PARE_EDITS_OUTPUTS] = {.name = "edits.outputs", .section = PARE_THEOREM, .norm = OUTPUTS_NORM,
        .parameters = {"rows"},
        .sentence = "single-node edits to one of the {rows} most frequent feature rows (0: to "
                    "any): outputs"},
    [PARE_EDITS_ROWS_CHANGED] = {.name = "edits.rows_changed", .section = PARE_THEOREM,
        .norm = "share of the pairs of an edit and a node it reaches", .parameters = {"rows"},
        .ceiling = 1,
        .sentence = "single-node edits to one of the {rows} most frequent feature rows (0: to "
                    "any): nodes that an edit reaches whose largest entry may differ"},
    [PARE_LOCAL_OUTPUTS] = {.name = "local.outputs", .section = PARE_THEOREM, .norm = OUTPUTS_NORM,
        .sentence = "layer by layer, without a run of the input model from end to end"},
    [PARE_GIVEN_OUTPUTS] = {.name = "given.outputs", .section = PARE_THEOREM, .norm = OUTPUTS_NORM,
        .sentence = "layer by layer on the given inputs: outputs"},
    [PARE_PLAIN_OUTPUTS] = {.name = "theorem42.outputs", .section = PARE_THEOREM,
        .norm = "largest euclidean distance of the last rows, decoded", .parameters = {"width"},
        .sentence = "Theorem 4.2 (Shirzad 2024) as it is true: some net of width {width}"},
    [PARE_CLUSTER_OUTPUTS] = {.name = "theorem44.outputs", .section = PARE_THEOREM,
        .norm = OUTPUTS_NORM, .parameters = {"codes"},
        .sentence = "Theorem 4.4 (Shirzad 2024) as it is true: from the radii of the clusters and "
                    "the errors of {codes} codes"},
    [PARE_ENGINE_ROUNDING] = {.name = "engine.rounding", .section = PARE_THEOREM,
        .norm = ENGINE_NORM,
        .sentence = "rounding of the f32 engine on the output model, a priori"},
    [PARE_NEW_INPUT_OUTPUTS] = {.name = "new_input.outputs", .section = PARE_THEOREM,
        .norm = OUTPUTS_NORM, .parameters = {"draws", "left_out"},
        .sentence = "a new input of the same source, from {draws} held-out inputs; largest errors "
                    "left out: {left_out}"},
    [PARE_NEW_INPUT_COSINE_DISTANCE] = {.name = "new_input.cosine_distance",
        .section = PARE_THEOREM, .norm = COSINE_NORM, .parameters = {"draws", "left_out"},
        .ceiling = 2,
        .sentence = "1 - cosine on a new input of the same source, from {draws} held-out inputs; "
                    "largest left out: {left_out}"},
    [PARE_NEW_INPUT_KL] = {.name = "new_input.kl", .section = PARE_THEOREM, .norm = KL_NORM,
        .parameters = {"draws", "left_out"},
        .sentence = "KL divergence, mean over the rows of a new input of the same source, from "
                    "{draws} held-out inputs; largest left out: {left_out}"},
    [PARE_NEW_INPUTS_SHARE] = {.name = "new_inputs.share", .section = PARE_THEOREM,
        .norm = "share of the inputs of the source", .parameters = {"draws", "left_out"},
        .ceiling = 1,
        .sentence = "new inputs with a larger error than that, from {draws} held-out inputs; "
                    "largest errors left out: {left_out}"},

    [PARE_ENGINE_DISTANCE] = {.name = "engine.distance", .section = PARE_OBSERVATION,
        .has_value = true, .tolerance = 3, .one_sided = true,
        .sentence = "distance of the f32 engine's outputs from the exact function of the output "
                    "model, on these inputs, on the writer's machine; rounded up to one digit"},
    [PARE_STREAM_RANK] = {.name = "stream.rank", .section = PARE_OBSERVATION,
        .parameters = {"width", "rank_tolerance"}, .text = "point", .has_value = true,
        .tolerance = NEAR,
        .sentence = "{point}: numerical affine rank of the residual stream (up to {rank_tolerance} "
                    "of its largest entry), beside the new width {width}"},
    [PARE_STREAM_RESIDUAL] = {.name = "stream.residual", .section = PARE_OBSERVATION,
        .parameters = {"width"}, .text = "point", .has_value = true, .tolerance = NEAR,
        .sentence = "{point}: largest distance of a row of the residual stream from the best "
                    "affine subspace of {width} dimensions"},
    [PARE_ATTENTION_RATIO_SEEN] = {.name = "attention.ratio_seen", .section = PARE_OBSERVATION,
        .parameters = {"layer"}, .has_value = true, .tolerance = NEAR,
        .sentence = "layer {layer}: largest |ln(a / a^)| seen"},
    [PARE_PLAIN_EPS] = {.name = "theorem42.eps", .section = PARE_OBSERVATION,
        .parameters = {"width"}, .has_value = true, .tolerance = NEAR,
        .sentence = "Theorem 4.2 (Shirzad 2024): eps, for subspaces of {width} dimensions"},
    [PARE_RELATIVE_ERROR] = {.name = "relative_error", .section = PARE_OBSERVATION,
        .has_value = true, .tolerance = NEAR,
        .sentence = "relative error |S - S'| / |S| of the outputs"},
    [PARE_ROW_ERROR] = {.name = "row_error", .section = PARE_OBSERVATION, .has_value = true,
        .tolerance = NEAR,
        .sentence = "largest euclidean error of a row of the outputs"},
    [PARE_LOST_FRACTION] = {.name = "lost_fraction", .section = PARE_OBSERVATION, .has_value = true,
        .tolerance = NEAR,
        .sentence = "lost fraction |S - S'| / |S - S without attention|"},
    [PARE_TICKET_ENTRY_ERROR] = {.name = "ticket.entry_error", .section = PARE_OBSERVATION,
        .parameters = {"matrices"}, .has_value = true, .tolerance = NEAR,
        .sentence = "largest error of an entry of the {matrices} fitted matrices"},

    [PARE_QK_OPTIMALITY] = {.name = "qk.optimality", .section = PARE_EVIDENCE,
        .parameters = {"layer", "head", "rank"}, .has_value = true, .has_limit = true,
        .sentence = "layer {layer} head {head}: score error in the metric of the data, and the "
                    "least of any form of rank {rank}"},
    [PARE_STREAM_OPTIMALITY] = {.name = "stream.optimality", .section = PARE_EVIDENCE,
        .parameters = {"width"}, .text = "point", .has_value = true, .has_limit = true,
        .sentence = "{point}: residual of the stream decoded from {width} numbers a row (root mean "
                    "square), and the best rank-{width} residual (Eckart-Young)"},
    [PARE_STREAM_OPTIMALITY_WEIGHTED] = {.name = "stream.optimality_weighted",
        .section = PARE_EVIDENCE, .parameters = {"width"}, .text = "point", .has_value = true,
        .has_limit = true,
        .sentence = "{point}, in the gradient metric: residual of the stream decoded from {width} "
                    "numbers a row, and the best rank-{width} residual (Eckart-Young)"},
    [PARE_TICKET_LEAST_BITS] = {.name = "ticket.least_bits", .section = PARE_EVIDENCE,
        .has_limit = true,
        .sentence = "mask bits for every target of these shapes and ranks k whose first k rows and "
                    "columns have entries up to these sizes, with these errors, at one source and "
                    "scale: the least of any construction"},
    [PARE_TICKET_PRODUCTS] = {.name = "ticket.products", .section = PARE_EVIDENCE,
        .parameters = {"failure"}, .has_limit = true,
        .sentence = "products an entry that Lemma S needs for this error beforehand, failing with "
                    "probability {failure} at most"},

    [PARE_PAPER_PLAIN] = {.name = "paper.theorem42", .section = PARE_PAPER, .has_value = true,
        .sentence = "Shirzad 2024, Theorem 4.2 by the last line of its proof"},
    [PARE_PAPER_JL] = {.name = "paper.theorem33", .section = PARE_PAPER, .has_value = true,
        .sentence = "Shirzad 2024, Theorem 3.3 with its printed constants c1 and c2"},
    [PARE_PAPER_SCORES] = {.name = "paper.scores", .section = PARE_PAPER, .parameters = {"layer"},
        .has_value = true,
        .sentence = "Shirzad 2024, C.1: scores of layer {layer}, 2 sqrt(alpha) beta e + (beta "
                    "e)^2"},
    [PARE_PAPER_SELECTOR] = {.name = "paper.selector", .section = PARE_PAPER,
        .parameters = {"layer"}, .has_value = true,
        .sentence = "Shirzad 2024, C.5: selector of layer {layer}, largest bias -3 |c|^2"},
    [PARE_PAPER_COLLAPSE_BOUND] = {.name = "paper.collapse_bound", .section = PARE_PAPER,
        .has_value = true,
        .sentence = "Rank collapse 2025, Theorem D.1: bound of its proof"},
    [PARE_PAPER_COLLAPSE_CLAIM] = {.name = "paper.collapse_claim", .section = PARE_PAPER,
        .has_value = true,
        .sentence = "Rank collapse 2025, Theorem D.1: 2A/L"},
    [PARE_PAPER_TICKET] = {.name = "paper.ticket", .section = PARE_PAPER, .has_value = true,
        .sentence = "Otsuka 2025, Lemma 8 and equation 17: the attention layer"},
};
/* clang-format on */

bool pare_kind_is_drawn(pare_kind k)
{
    return k == PARE_NEW_INPUT_OUTPUTS || k == PARE_NEW_INPUT_COSINE_DISTANCE ||
           k == PARE_NEW_INPUT_KL || k == PARE_NEW_INPUTS_SHARE;
}

bool pare_same_claim(const pare_claim *a, const pare_claim *b)
{
    const pare_kind_row *const row = &pare_kinds[a->kind];
    if (a->kind != b->kind) return false;
    for (size_t i = 0; i < PARE_PARAMETERS && row->parameters[i]; i++)
        if (!(a->p[i] == b->p[i])) return false;
    return !row->text || (a->text && b->text && strcmp(a->text, b->text) == 0);
}

/* ---- sentences ------------------------------------------------------------------------------- */

/* The fewest digits that give the number again. */
static void number_text(char text[40], double x)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, 40, "%.*g", digits, x);
        if (strtod(text, NULL) == x) return;
    }
}

/* The parameter called so (n letters), as text; NULL: the kind has none of that name. */
static const char *parameter_text(char number[40], const pare_claim *c, const char *name, size_t n)
{
    const pare_kind_row *const row = &pare_kinds[c->kind];
    if (row->text && strlen(row->text) == n && strncmp(row->text, name, n) == 0) return c->text;
    for (size_t i = 0; i < PARE_PARAMETERS && row->parameters[i]; i++) {
        if (strlen(row->parameters[i]) != n || strncmp(row->parameters[i], name, n) != 0) continue;
        number_text(number, c->p[i]);
        return number;
    }
    return NULL;
}

const char *pare_claim_sentence(pare_arena *a, const pare_claim *c)
{
    const char *rest = pare_kinds[c->kind].sentence, *text = pare_strdup(a, "");
    for (const char *open; text && (open = strchr(rest, '{'));) {
        const char *const close = strchr(open, '}');
        char number[40];
        const char *const value = parameter_text(number, c, open + 1, (size_t)(close - open) - 1);
        text = pare_sprintf(a, "%s%.*s%s", text, (int)(open - rest), rest, value ? value : "?");
        rest = close + 1;
    }
    return text ? pare_sprintf(a, "%s%s", text, rest) : NULL;
}

/* ---- the list of a certificate ----------------------------------------------------------------
 */

pare_status cert_append(pare_cert *c, pare_arena *a, pare_claim claim, pare_err *err)
{
    if (c->nclaims == c->claims_capacity) {
        const size_t capacity = c->claims_capacity ? 2 * c->claims_capacity : 16;
        pare_claim *const more = pare_alloc(a, capacity, sizeof *more);
        if (!more) return pare_no_memory(err);
        if (c->nclaims) memcpy(more, c->claims, c->nclaims * sizeof *more);
        c->claims = more;
        c->claims_capacity = capacity;
    }
    c->claims[c->nclaims++] = claim;
    return PARE_OK;
}

pare_status pare_cert_add(pare_cert *c, pare_arena *a, pare_claim claim, pare_err *err)
{
    const pare_kind_row *const row = &pare_kinds[claim.kind];
    if (row->section == PARE_THEOREM && !claim.domain) claim.domain = c->domain;
    /* An optimality figure is computed in f64 beside the optimum: rounding may swap the two. */
    if (row->section == PARE_EVIDENCE && row->has_value && claim.limit > claim.value)
        claim.limit = claim.value;
    return cert_append(c, a, claim, err);
}

void add_statement(cert_builder *b, pare_claim c)
{
    if (!b->work.st) b->work.st = pare_cert_add(b->cert, b->work.arena, c, b->work.err);
}

void add_bound(cert_builder *b, pare_claim c, const char *domain, pare_ub bound)
{
    if (!domain) pare_work_keep(&b->work, pare_no_memory(b->work.err));
    c.value = bound.v;
    c.domain = domain;
    if (!isinf(bound.v)) add_statement(b, c);
}

const pare_claim *pare_cert_find(const pare_cert *c, pare_kind kind)
{
    for (size_t i = 0; i < c->nclaims; i++)
        if (c->claims[i].kind == kind) return &c->claims[i];
    return NULL;
}

double pare_cert_apriori(const pare_cert *c)
{
    const pare_claim *const t = pare_cert_find(c, PARE_APRIORI_OUTPUTS);
    return t ? t->value : INFINITY;
}
