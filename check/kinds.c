/* kinds.c - every kind of claim, as in the tables of docs/format.md ("Kinds"), and the words that follow
 * from it: a certificate whose words say something else than its kinds is not accepted. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUTS "largest absolute difference over the output entries"

/* The name is followed by those of the parameters. */
static const kind_row table[] = {
    {.list = HYPOTHESES,
     .kind = "fold.same",
     .value = true,
     .limit = true,
     .sentence = "weights and settings in which the output differs from the folded input"},
    {.list = HYPOTHESES,
     .kind = "fold.rounded",
     .value = true,
     .limit = true,
     .sentence = "weights that folding had to round"},
    {.list = HYPOTHESES,
     .kind = "fold.not_rotary",
     .sentence = "positions are not rotary, so key biases may be dropped"},
    {.list = HYPOTHESES,
     .kind = "fold.rows_not_empty",
     .sentence = "every token sees a key, so value biases may be merged into the output bias"},
    {.list = HYPOTHESES,
     .kind = "apriori.applies why",
     .sentence = "a bound from sizes and norms alone: {why}"},
    {.list = HYPOTHESES,
     .kind = "apriori.folded",
     .value = true,
     .limit = true,
     .sentence = "a bound from norms alone needs folded models (fold first: pare fold): weights "
                 "that folding would round"},
    {.list = HYPOTHESES,
     .kind = "local.applies why",
     .sentence = "a bound layer by layer does not cover {why}"},
    {.list = HYPOTHESES,
     .kind = "ball.applies why",
     .sentence = "a bound on balls for the pair of models: {why}"},
    {.list = HYPOTHESES,
     .kind = "theorem42.applies why",
     .sentence = "Theorem 4.2 (Shirzad 2024) needs {why}"},
    {.list = HYPOTHESES,
     .kind = "leverage.draws layer rank",
     .value = true,
     .limit = true,
     .sentence = "layer {layer}: hidden units, and the draws that sampling by leverage scores "
                 "needs at rank {rank}"},
    {.list = HYPOTHESES,
     .kind = "cluster.radius layer clusters",
     .value = true,
     .limit = true,
     .sentence =
         "layer {layer}: radius of {clusters} clusters relative to their centers (eps), in f64"},
    {.list = HYPOTHESES,
     .kind = "cluster.separation layer",
     .value = true,
     .limit = true,
     .sentence = "layer {layer}: separation of the clusters, in f64"},
    {.list = HYPOTHESES,
     .kind = "jl.dimension layer eps delta",
     .value = true,
     .limit = true,
     .sentence = "layer {layer}: dimension of queries and keys, and what the Johnson-Lindenstrauss "
                 "lemma needs (eps {eps}, delta {delta})"},
    {.list = HYPOTHESES,
     .kind = "jl.distortion layer",
     .value = true,
     .limit = true,
     .sentence = "layer {layer}: largest |q.k - q^.k^| / |q||k| as drawn, in f64"},
    {.list = HYPOTHESES,
     .kind = "layers.merged before after",
     .sentence = "layers of the model: {before} before, {after} after"},
    {.list = HYPOTHESES,
     .kind = "layer.replaced layer by",
     .sentence = "layer {layer}: its attention is replaced by {by}"},
    {.list = HYPOTHESES,
     .kind = "ticket.lattice",
     .value = true,
     .limit = true,
     .sentence =
         "Lemma S: the error is above what the lattice of the random weights costs (n' 2^-23)"},
    {.list = HYPOTHESES,
     .kind = "new_input.independent",
     .sentence = "the data are independent draws of the source of new inputs, seen by neither the "
                 "training of the model nor the cut: no file can show this"},
    {.list = HYPOTHESES,
     .kind = "link.hypotheses link reduction",
     .sentence = "every hypothesis of link {link} ({reduction}) holds"},
    {.list = THEOREMS,
     .kind = "apriori.outputs",
     .norm = OUTPUTS,
     .sentence = "from sizes and norms alone: outputs"},
    {.list = THEOREMS,
     .kind = "apriori.score",
     .norm = "largest change of the second output minus the first",
     .sentence = "from sizes and norms alone: difference of the two outputs"},
    {.list = THEOREMS,
     .kind = "apriori.hidden",
     .norm = "largest euclidean distance of a row",
     .sentence = "from sizes and norms alone: hidden rows before the head"},
    {.list = THEOREMS,
     .kind = "layer.injected layer",
     .norm = "largest euclidean length of a token's change at that layer",
     .sentence = "layer {layer}: error that its replaced attention adds"},
    {.list = THEOREMS,
     .kind = "layer.ticket layer part",
     .norm = "largest euclidean distance of a row at that layer, from the same input rows",
     .sentence = "layer {layer}: error that the ticket of the {part} adds"},
    {.list = THEOREMS,
     .kind = "rank_collapse",
     .norm = "largest difference of an entry between two tokens of one input",
     .sentence = "how far the tokens of the input model are apart at the end (rank collapse)"},
    {.list = THEOREMS,
     .kind = "diameter.outputs diameter",
     .norm = OUTPUTS,
     .sentence = "inputs of diameter {diameter}: outputs"},
    {.list = THEOREMS,
     .kind = "diameter.score diameter",
     .norm = "largest change of the second output minus the first",
     .sentence = "inputs of diameter {diameter}: difference of the two outputs"},
    {.list = THEOREMS,
     .kind = "diameter.rank_collapse diameter",
     .norm = "largest difference of an entry between two tokens of one input",
     .sentence = "inputs of diameter {diameter}: how far the tokens of the input model are apart "
                 "at the end (rank collapse)"},
    {.list = THEOREMS,
     .kind = "one_layer.least",
     .lower = true,
     .norm = OUTPUTS,
     .sentence =
         "least error of any one layer of softmax heads and an identity skip, without biases"},
    {.list = THEOREMS,
     .kind = "outputs.least width",
     .lower = true,
     .norm = OUTPUTS,
     .sentence = "least error of any model with an affine head on last rows of {width} numbers"},
    {.list = THEOREMS,
     .kind = "rows.changed",
     .norm = "share of the output rows",
     .ceiling = 1,
     .sentence = "rows whose largest entry may have changed"},
    {.list = THEOREMS,
     .kind = "auc.most",
     .norm = "area under the ROC curve of the test rows",
     .ceiling = 1,
     .sentence = "AUC of the output model"},
    {.list = THEOREMS,
     .kind = "auc.least",
     .lower = true,
     .norm = "area under the ROC curve of the test rows",
     .sentence = "AUC of the output model"},
    {.list = THEOREMS,
     .kind = "auc.difference",
     .norm = "difference of the areas under the ROC curve of the test rows",
     .ceiling = 1,
     .sentence = "AUC of both models: difference"},
    {.list = THEOREMS,
     .kind = "attention.ratio layer",
     .norm = "largest |ln(a / a^)| over the attention weights",
     .sentence = "attention weights of layer {layer}"},
    {.list = THEOREMS,
     .kind = "ball.outputs radius ball_norm",
     .norm = OUTPUTS,
     .sentence = "ball of radius {radius} {ball_norm}: outputs"},
    {.list = THEOREMS,
     .kind = "ball.rows_changed radius ball_norm",
     .norm = "share of the output rows",
     .ceiling = 1,
     .sentence = "ball of radius {radius} {ball_norm}: rows whose largest entry may differ"},
    {.list = THEOREMS,
     .kind = "ball.score radius ball_norm",
     .norm = "largest absolute difference over the rows",
     .sentence = "ball of radius {radius} {ball_norm}: the second output minus the first"},
    {.list = THEOREMS,
     .kind = "edits.outputs rows",
     .norm = OUTPUTS,
     .sentence =
         "single-node edits to one of the {rows} most frequent feature rows (0: to any): outputs"},
    {.list = THEOREMS,
     .kind = "edits.rows_changed rows",
     .norm = "share of the pairs of an edit and a node it reaches",
     .ceiling = 1,
     .sentence = "single-node edits to one of the {rows} most frequent feature rows (0: to any): "
                 "nodes that an edit reaches whose largest entry may differ"},
    {.list = THEOREMS,
     .kind = "local.outputs",
     .norm = OUTPUTS,
     .sentence = "layer by layer, without a run of the input model from end to end"},
    {.list = THEOREMS,
     .kind = "given.outputs",
     .norm = OUTPUTS,
     .sentence = "layer by layer on the given inputs: outputs"},
    {.list = THEOREMS,
     .kind = "theorem42.outputs width",
     .norm = "largest euclidean distance of the last rows, decoded",
     .sentence = "Theorem 4.2 (Shirzad 2024) as it is true: some net of width {width}"},
    {.list = THEOREMS,
     .kind = "theorem44.outputs codes",
     .norm = OUTPUTS,
     .sentence = "Theorem 4.4 (Shirzad 2024) as it is true: from the radii of the clusters and the "
                 "errors of {codes} codes"},
    {.list = THEOREMS,
     .kind = "engine.rounding",
     .norm = "largest distance of the f32 engine's outputs from the exact function",
     .sentence = "rounding of the f32 engine on the output model, a priori"},
    {.list = THEOREMS,
     .kind = "new_input.outputs draws left_out",
     .norm = OUTPUTS,
     .sentence = "a new input of the same source, from {draws} held-out inputs; largest errors "
                 "left out: {left_out}"},
    {.list = THEOREMS,
     .kind = "new_inputs.share draws left_out",
     .norm = "share of the inputs of the source",
     .ceiling = 1,
     .sentence = "new inputs with a larger error than that, from {draws} held-out inputs; largest "
                 "errors left out: {left_out}"},
    {.list = OBSERVATIONS,
     .kind = "engine.distance",
     .value = true,
     .tolerance = 3,
     .sentence = "distance of the f32 engine's outputs from the exact function of the output "
                 "model, on these inputs, on the writer's machine; rounded up to one digit"},
    {.list = OBSERVATIONS,
     .kind = "stream.rank width rank_tolerance point",
     .value = true,
     .tolerance = 0.001,
     .sentence = "{point}: numerical affine rank of the residual stream (up to {rank_tolerance} of "
                 "its largest entry), beside the new width {width}"},
    {.list = OBSERVATIONS,
     .kind = "stream.residual width point",
     .value = true,
     .tolerance = 0.001,
     .sentence = "{point}: largest distance of a row of the residual stream from the best affine "
                 "subspace of {width} dimensions"},
    {.list = OBSERVATIONS,
     .kind = "attention.ratio_seen layer",
     .value = true,
     .tolerance = 0.001,
     .sentence = "layer {layer}: largest |ln(a / a^)| seen"},
    {.list = OBSERVATIONS,
     .kind = "theorem42.eps width",
     .value = true,
     .tolerance = 0.001,
     .sentence = "Theorem 4.2 (Shirzad 2024): eps, for subspaces of {width} dimensions"},
    {.list = OBSERVATIONS,
     .kind = "relative_error",
     .value = true,
     .tolerance = 0.001,
     .sentence = "relative error |S - S'| / |S| of the outputs"},
    {.list = OBSERVATIONS,
     .kind = "row_error",
     .value = true,
     .tolerance = 0.001,
     .sentence = "largest euclidean error of a row of the outputs"},
    {.list = OBSERVATIONS,
     .kind = "lost_fraction",
     .value = true,
     .tolerance = 0.001,
     .sentence = "lost fraction |S - S'| / |S - S without attention|"},
    {.list = OBSERVATIONS,
     .kind = "ticket.entry_error matrices",
     .value = true,
     .tolerance = 0.001,
     .sentence = "largest error of an entry of the {matrices} fitted matrices"},
    {.list = EVIDENCE,
     .kind = "qk.optimality layer head rank",
     .value = true,
     .limit = true,
     .sentence = "layer {layer} head {head}: score error in the metric of the data, and the least "
                 "of any form of rank {rank}"},
    {.list = EVIDENCE,
     .kind = "stream.optimality width point",
     .value = true,
     .limit = true,
     .sentence = "{point}: residual of the stream decoded from {width} numbers a row (root mean "
                 "square), and the best rank-{width} residual (Eckart-Young)"},
    {.list = EVIDENCE,
     .kind = "stream.optimality_weighted width point",
     .value = true,
     .limit = true,
     .sentence = "{point}, in the gradient metric: residual of the stream decoded from {width} "
                 "numbers a row, and the best rank-{width} residual (Eckart-Young)"},
    {.list = EVIDENCE,
     .kind = "ticket.least_bits",
     .limit = true,
     .sentence = "mask bits for every target of these shapes and ranks k whose first k rows and "
                 "columns have entries up to these sizes, with these errors, at one source and "
                 "scale: the least of any construction"},
    {.list = EVIDENCE,
     .kind = "ticket.products failure",
     .limit = true,
     .sentence = "products an entry that Lemma S needs for this error beforehand, failing with "
                 "probability {failure} at most"},
    {.list = PAPER,
     .kind = "paper.theorem42",
     .value = true,
     .sentence = "Shirzad 2024, Theorem 4.2 by the last line of its proof"},
    {.list = PAPER,
     .kind = "paper.theorem33",
     .value = true,
     .sentence = "Shirzad 2024, Theorem 3.3 with its printed constants c1 and c2"},
    {.list = PAPER,
     .kind = "paper.scores layer",
     .value = true,
     .sentence = "Shirzad 2024, C.1: scores of layer {layer}, 2 sqrt(alpha) beta e + (beta e)^2"},
    {.list = PAPER,
     .kind = "paper.selector layer",
     .value = true,
     .sentence = "Shirzad 2024, C.5: selector of layer {layer}, largest bias -3 |c|^2"},
    {.list = PAPER,
     .kind = "paper.collapse_bound",
     .value = true,
     .sentence = "Rank collapse 2025, Theorem D.1: bound of its proof"},
    {.list = PAPER,
     .kind = "paper.collapse_claim",
     .value = true,
     .sentence = "Rank collapse 2025, Theorem D.1: 2A/L"},
    {.list = PAPER,
     .kind = "paper.ticket",
     .value = true,
     .sentence = "Otsuka 2025, Lemma 8 and equation 17: the attention layer"},
};

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
