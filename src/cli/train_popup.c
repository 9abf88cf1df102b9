/* train_popup.c - --popup and --preset of pare train (train.h). */
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const train_source_names[] = {"normal", "signed", NULL};
const char *const train_preset_names[] = {"none", "gpt2-mini", "gpt2-small", "gpt2-medium", NULL};

/* Pruned as in Otsuka 2025: 50 epochs of 227 steps, the first of them warm-up. It does not say how
 * large its batches are; one window of 1024 is what fits a small machine. */
#define GPT2_RECIPE                                                                                \
    .steps = 50 * 227, .warmup = 227, .batch = 1, .window = 1024, .lr = 1e-4, .last_lr = 1e-5,     \
    .decay = 0.01, .clip = 1
const recipe train_presets[] = {
    {.dim = 768, .layers = 4, .heads = 12, GPT2_RECIPE},
    {.dim = 768, .layers = 12, .heads = 12, GPT2_RECIPE},
    {.dim = 1024, .layers = 24, .heads = 16, GPT2_RECIPE},
};

pare_status popup_check_options(cli *c, train_opts *o)
{
    const char *const scale = o->qk_scale ? o->qk_scale : "theory";
    char *end = NULL;
    if (!o->popup) return PARE_OK;
    if (o->from) return cli_usage_error(c, "--popup starts from random weights: leave --from out");
    if (!pare_variant_is_usual(&o->variant))
        return cli_usage_error(
            c, "--popup has skips, norms and GPT-2's activation, and no biases: leave "
               "--no-skips, --no-norms, --no-biases and --act out");
    if (isnan(o->keep)) o->keep = TRAIN_KEEP;
    if (o->source == SOURCE_DEFAULT) o->source = PARE_FROZEN_NORMAL;
    if (strcmp(scale, "theory") == 0) {
        o->scale = pare_popup_theory_scale(o->dim / o->heads);
        return PARE_OK;
    }
    o->scale = strtod(scale, &end);
    if (end == scale || *end || !(o->scale >= 1e-3 && o->scale <= 1e3))
        return cli_usage_error(c, "--qk-scale %s: give a number from 0.001 to 1000, or theory",
                               scale);
    return PARE_OK;
}

pare_frozen_gpt popup_source(const train_opts *o, uint64_t seed)
{
    return (pare_frozen_gpt){
        .kind = (pare_frozen_kind)o->source, .seed = seed, .qk_scale = o->scale};
}
