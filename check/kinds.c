/* kinds.c - every kind of claim, as in the tables of docs/format.md ("Kinds"), and the words that follow
 * from it: a certificate whose words say something else than its kinds is not accepted. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUTS "largest absolute difference over the output entries"

/* One line for each kind: its list, its name and those of its parameters, what it has, its norm, the
 * largest bound or the tolerance (0: none), its sentence. */
/* clang-format off */
static const kind_row table[] = {
    {HYPOTHESES, "fold.same", VALUE | LIMIT, NULL, 0, "weights and settings in which the output differs from the folded input"},
    {HYPOTHESES, "fold.rounded", VALUE | LIMIT, NULL, 0, "weights that folding had to round"},
    {HYPOTHESES, "fold.not_rotary", 0, NULL, 0, "positions are not rotary, so key biases may be dropped"},
    {HYPOTHESES, "fold.rows_not_empty", 0, NULL, 0, "every token sees a key, so value biases may be merged into the output bias"},
    {HYPOTHESES, "apriori.applies why", 0, NULL, 0, "a bound from sizes and norms alone: {why}"},
    {HYPOTHESES, "apriori.folded", VALUE | LIMIT, NULL, 0, "a bound from norms alone needs folded models (fold first: pare fold): weights that folding would round"},
    {HYPOTHESES, "local.applies why", 0, NULL, 0, "a bound layer by layer does not cover {why}"},
    {HYPOTHESES, "ball.applies why", 0, NULL, 0, "a bound on balls for the pair of models: {why}"},
    {HYPOTHESES, "theorem42.applies why", 0, NULL, 0, "Theorem 4.2 (Shirzad 2024) needs {why}"},
    {HYPOTHESES, "leverage.draws layer rank", VALUE | LIMIT, NULL, 0, "layer {layer}: hidden units, and the draws that sampling by leverage scores needs at rank {rank}"},
    {HYPOTHESES, "cluster.radius layer clusters", VALUE | LIMIT, NULL, 0, "layer {layer}: radius of {clusters} clusters relative to their centers (eps), in f64"},
    {HYPOTHESES, "cluster.separation layer", VALUE | LIMIT, NULL, 0, "layer {layer}: separation of the clusters, in f64"},
    {HYPOTHESES, "jl.dimension layer eps delta", VALUE | LIMIT, NULL, 0, "layer {layer}: dimension of queries and keys, and what the Johnson-Lindenstrauss lemma needs (eps {eps}, delta {delta})"},
    {HYPOTHESES, "jl.distortion layer", VALUE | LIMIT, NULL, 0, "layer {layer}: largest |q.k - q^.k^| / |q||k| as drawn, in f64"},
    {HYPOTHESES, "layers.merged before after", 0, NULL, 0, "layers of the model: {before} before, {after} after"},
    {HYPOTHESES, "layer.replaced layer by", 0, NULL, 0, "layer {layer}: its attention is replaced by {by}"},
    {HYPOTHESES, "ticket.lattice", VALUE | LIMIT, NULL, 0, "Lemma S: the error is above what the lattice of the random weights costs (n' 2^-23)"},
    {HYPOTHESES, "new_input.independent", 0, NULL, 0, "the data are independent draws of the source of new inputs, seen by neither the training of the model nor the cut: no file can show this"},
    {HYPOTHESES, "link.hypotheses link reduction", 0, NULL, 0, "every hypothesis of link {link} ({reduction}) holds"},
    {THEOREMS, "apriori.outputs", 0, OUTPUTS, 0, "from sizes and norms alone: outputs"},
    {THEOREMS, "apriori.score", 0, "largest change of the second output minus the first", 0, "from sizes and norms alone: difference of the two outputs"},
    {THEOREMS, "apriori.hidden", 0, "largest euclidean distance of a row", 0, "from sizes and norms alone: hidden rows before the head"},
    {THEOREMS, "layer.injected layer", 0, "largest euclidean length of a token's change at that layer", 0, "layer {layer}: error that its replaced attention adds"},
    {THEOREMS, "layer.ticket layer part", 0, "largest euclidean distance of a row at that layer, from the same input rows", 0, "layer {layer}: error that the ticket of the {part} adds"},
    {THEOREMS, "rank_collapse", 0, "largest difference of an entry between two tokens of one input", 0, "how far the tokens of the input model are apart at the end (rank collapse)"},
    {THEOREMS, "diameter.outputs diameter", 0, OUTPUTS, 0, "inputs of diameter {diameter}: outputs"},
    {THEOREMS, "diameter.score diameter", 0, "largest change of the second output minus the first", 0, "inputs of diameter {diameter}: difference of the two outputs"},
    {THEOREMS, "diameter.rank_collapse diameter", 0, "largest difference of an entry between two tokens of one input", 0, "inputs of diameter {diameter}: how far the tokens of the input model are apart at the end (rank collapse)"},
    {THEOREMS, "one_layer.least", LOWER, OUTPUTS, 0, "least error of any one layer of softmax heads and an identity skip, without biases"},
    {THEOREMS, "outputs.least width", LOWER, OUTPUTS, 0, "least error of any model with an affine head on last rows of {width} numbers"},
    {THEOREMS, "rows.changed", 0, "share of the output rows", 1, "rows whose largest entry may have changed"},
    {THEOREMS, "auc.most", 0, "area under the ROC curve of the test rows", 1, "AUC of the output model"},
    {THEOREMS, "auc.least", LOWER, "area under the ROC curve of the test rows", 0, "AUC of the output model"},
    {THEOREMS, "auc.difference", 0, "difference of the areas under the ROC curve of the test rows", 1, "AUC of both models: difference"},
    {THEOREMS, "attention.ratio layer", 0, "largest |ln(a / a^)| over the attention weights", 0, "attention weights of layer {layer}"},
    {THEOREMS, "ball.outputs radius ball_norm", 0, OUTPUTS, 0, "ball of radius {radius} {ball_norm}: outputs"},
    {THEOREMS, "ball.rows_changed radius ball_norm", 0, "share of the output rows", 1, "ball of radius {radius} {ball_norm}: rows whose largest entry may differ"},
    {THEOREMS, "ball.score radius ball_norm", 0, "largest absolute difference over the rows", 0, "ball of radius {radius} {ball_norm}: the second output minus the first"},
    {THEOREMS, "edits.outputs rows", 0, OUTPUTS, 0, "single-node edits to one of the {rows} most frequent feature rows (0: to any): outputs"},
    {THEOREMS, "edits.rows_changed rows", 0, "share of the pairs of an edit and a node it reaches", 1, "single-node edits to one of the {rows} most frequent feature rows (0: to any): nodes that an edit reaches whose largest entry may differ"},
    {THEOREMS, "local.outputs", 0, OUTPUTS, 0, "layer by layer, without a run of the input model from end to end"},
    {THEOREMS, "given.outputs", 0, OUTPUTS, 0, "layer by layer on the given inputs: outputs"},
    {THEOREMS, "theorem42.outputs width", 0, "largest euclidean distance of the last rows, decoded", 0, "Theorem 4.2 (Shirzad 2024) as it is true: some net of width {width}"},
    {THEOREMS, "theorem44.outputs codes", 0, OUTPUTS, 0, "Theorem 4.4 (Shirzad 2024) as it is true: from the radii of the clusters and the errors of {codes} codes"},
    {THEOREMS, "engine.rounding", 0, "largest distance of the f32 engine's outputs from the exact function", 0, "rounding of the f32 engine on the output model, a priori"},
    {THEOREMS, "new_input.outputs draws left_out", 0, OUTPUTS, 0, "a new input of the same source, from {draws} held-out inputs; largest errors left out: {left_out}"},
    {THEOREMS, "new_inputs.share draws left_out", 0, "share of the inputs of the source", 1, "new inputs with a larger error than that, from {draws} held-out inputs; largest errors left out: {left_out}"},
    {OBSERVATIONS, "engine.distance", VALUE, NULL, 3, "distance of the f32 engine's outputs from the exact function of the output model, on these inputs, on the writer's machine; rounded up to one digit"},
    {OBSERVATIONS, "stream.rank width rank_tolerance point", VALUE, NULL, 0.001, "{point}: numerical affine rank of the residual stream (up to {rank_tolerance} of its largest entry), beside the new width {width}"},
    {OBSERVATIONS, "stream.residual width point", VALUE, NULL, 0.001, "{point}: largest distance of a row of the residual stream from the best affine subspace of {width} dimensions"},
    {OBSERVATIONS, "attention.ratio_seen layer", VALUE, NULL, 0.001, "layer {layer}: largest |ln(a / a^)| seen"},
    {OBSERVATIONS, "theorem42.eps width", VALUE, NULL, 0.001, "Theorem 4.2 (Shirzad 2024): eps, for subspaces of {width} dimensions"},
    {OBSERVATIONS, "relative_error", VALUE, NULL, 0.001, "relative error |S - S'| / |S| of the outputs"},
    {OBSERVATIONS, "row_error", VALUE, NULL, 0.001, "largest euclidean error of a row of the outputs"},
    {OBSERVATIONS, "lost_fraction", VALUE, NULL, 0.001, "lost fraction |S - S'| / |S - S without attention|"},
    {OBSERVATIONS, "ticket.entry_error matrices", VALUE, NULL, 0.001, "largest error of an entry of the {matrices} fitted matrices"},
    {EVIDENCE, "qk.optimality layer head rank", VALUE | LIMIT, NULL, 0, "layer {layer} head {head}: score error in the metric of the data, and the least of any form of rank {rank}"},
    {EVIDENCE, "stream.optimality width point", VALUE | LIMIT, NULL, 0, "{point}: residual of the stream decoded from {width} numbers a row (root mean square), and the best rank-{width} residual (Eckart-Young)"},
    {EVIDENCE, "stream.optimality_weighted width point", VALUE | LIMIT, NULL, 0, "{point}, in the gradient metric: residual of the stream decoded from {width} numbers a row, and the best rank-{width} residual (Eckart-Young)"},
    {EVIDENCE, "ticket.least_bits", LIMIT, NULL, 0, "mask bits for every target of these shapes and ranks k whose first k rows and columns have entries up to these sizes, with these errors, at one source and scale: the least of any construction"},
    {EVIDENCE, "ticket.products failure", LIMIT, NULL, 0, "products an entry that Lemma S needs for this error beforehand, failing with probability {failure} at most"},
    {PAPER, "paper.theorem42", VALUE, NULL, 0, "Shirzad 2024, Theorem 4.2 by the last line of its proof"},
    {PAPER, "paper.theorem33", VALUE, NULL, 0, "Shirzad 2024, Theorem 3.3 with its printed constants c1 and c2"},
    {PAPER, "paper.scores layer", VALUE, NULL, 0, "Shirzad 2024, C.1: scores of layer {layer}, 2 sqrt(alpha) beta e + (beta e)^2"},
    {PAPER, "paper.selector layer", VALUE, NULL, 0, "Shirzad 2024, C.5: selector of layer {layer}, largest bias -3 |c|^2"},
    {PAPER, "paper.collapse_bound", VALUE, NULL, 0, "Rank collapse 2025, Theorem D.1: bound of its proof"},
    {PAPER, "paper.collapse_claim", VALUE, NULL, 0, "Rank collapse 2025, Theorem D.1: 2A/L"},
    {PAPER, "paper.ticket", VALUE, NULL, 0, "Otsuka 2025, Lemma 8 and equation 17: the attention layer"},
};
/* clang-format on */

const kind_row *find_kind(section list, const char *kind)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].list == list && strcspn(table[i].kind, " ") == strlen(kind) &&
            strncmp(table[i].kind, kind, strlen(kind)) == 0)
            return &table[i];
    return NULL;
}

/* At least 6 digits, and as many as restore the number. */
static const char *number_words(job *j, double v)
{
    char text[40];
    int digits = 6;
    do snprintf(text, sizeof text, "%.*g", digits++, v);
    while (digits <= 17 && strtod(text, NULL) != v);
    return words(j, "%s", text);
}

/* The sentence of a kind with parameters in place of {name}. */
const char *sentence_of(job *j, const kind_row *row, const cJSON *parameters)
{
    const char *out = "";
    for (const char *p = row->sentence; *p && !j->t.code;) {
        const size_t plain = strcspn(p, "{");
        out = words(j, "%s%.*s", out, (int)plain, p);
        p += plain;
        if (!*p) break;
        const size_t length = strcspn(p, "}");
        const cJSON *const v = find(parameters, words(j, "%.*s", (int)length - 1, p + 1));
        out = words(j, "%s%s", out,
                    cJSON_IsString(v)   ? v->valuestring
                    : cJSON_IsNumber(v) ? number_words(j, v->valuedouble)
                                        : "");
        p += length + 1;
    }
    return out;
}
