/* folder_shapes.c - which cuts a Hugging Face folder can hold (reduce_parts.h). A config has one number
 * for all layers: of blocks, of hidden units, of heads and their width. So blocks may go as a whole,
 * and hidden units in all layers alike; what makes one layer differ from the others does not fit. */
#include "model/model_facts.h"
#include "reduce_parts.h"

#include <math.h>
#include <string.h>

/* Families whose folders pare writes (export_like.c). */
static bool is_family(const pare_model *m)
{
    static const char *const names[] = {"bert", "distilbert", "roberta", "xlm-roberta",
                                        "gpt2", "llama",      "mistral", "qwen2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (m->name && strcmp(m->name, names[i]) == 0) return true;
    return false;
}

static const char *width_obstacle(const pare_width_opts *w)
{
    if (w->method != PARE_WIDTH_AUTO)
        return "only the method auto, which removes hidden units, keeps to the shapes of a config";
    if (w->dim) return "a narrower residual stream changes what its norms divide by";
    if (w->qk_dim || w->v_dim)
        return "its heads have one width for queries, keys and values, which is not cut alone";
    return NULL;
}

/* GPT-2's scale_attn_by_inverse_layer_idx. */
static bool has_one_scale(const pare_model *m)
{
    double scale = NAN;
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        for (size_t h = 0; h < a->nheads; h++) {
            if (isnan(scale)) scale = a->heads[h].scale;
            if (!(a->heads[h].scale == scale)) return false;
        }
    }
    return true;
}

pare_status reduce_fits_folder(const pare_model *m, const pare_reduce_opts *o, pare_err *err)
{
    const char *why = NULL;
    if (!is_family(m))
        return pare_fail(err, PARE_ERR_USAGE,
                         "a model of the kind '%s' is not written as a folder; set any_shape",
                         m->name ? m->name : "unknown");
    switch (o->kind) {
    case PARE_REDUCE_FOLD: /* into the tensors that it has */
        break;
    case PARE_REDUCE_WIDTH:
        why = width_obstacle(&o->width);
        break;
    case PARE_REDUCE_DEPTH:
        if (o->depth.blocks == 0)
            why = "every block of its family has exact attention; remove whole blocks (set blocks)";
        else if (!has_one_scale(m))
            why = "it scales the scores of a block by the number of the block, which changes";
        break;
    case PARE_REDUCE_ONE_LAYER:
        why = "its blocks have feed-forward layers and norms";
        break;
    case PARE_REDUCE_TICKET:
        return pare_fail(err, PARE_ERR_USAGE,
                         "a ticket is a file: a seed and a mask in the place of the weights; give "
                         "it the name of a file");
    case PARE_REDUCE_QUANT:
        return pare_fail(err, PARE_ERR_USAGE,
                         "quantized weights are a pare file: no loader of folders reads these "
                         "groups of integers; give it the name of a file");
    }
    if (!why) return PARE_OK;
    return pare_fail(err, PARE_ERR_USAGE,
                     "a folder of the kind '%s' cannot hold this cut: %s; set any_shape for a pare "
                     "file of any shape",
                     m->name, why);
}
