/* --popup and --preset of `pare train`. */
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

static pare_status read_scale(cli *c, train_opts *o)
{
    const char *const text = o->qk_scale ? o->qk_scale : "theory";
    char *end = NULL;
    if (strcmp(text, "theory") == 0) {
        o->scale = pare_popup_theory_scale(o->dim / o->heads);
        return PARE_OK;
    }
    o->scale = strtod(text, &end);
    if (end == text || *end || !(o->scale >= 1e-3 && o->scale <= 1e3))
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--qk-scale: '%s' is neither 'theory' nor a number from 0.001 to 1000",
                         text);
    return PARE_OK;
}

pare_status popup_settle(cli *c, train_opts *o)
{
    const bool gpt = o->kind == PARE_INIT_GPT;
    if (o->preset && !gpt)
        return pare_fail(&c->err, PARE_ERR_USAGE, "--preset: these are sizes of --kind gpt");
    if (!o->popup) {
        const char *const alone = !isnan(o->keep)                ? "--keep"
                                  : o->qk_scale                  ? "--qk-scale"
                                  : o->source != SOURCE_NOT_SAID ? "--source"
                                                                 : NULL;
        return alone ? pare_fail(&c->err, PARE_ERR_USAGE, "%s needs --popup", alone) : PARE_OK;
    }
    if (!gpt) return pare_fail(&c->err, PARE_ERR_USAGE, "--popup is for --kind gpt");
    if (o->from)
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--popup finds a part of a random network: it has no --from");
    if (!pare_variant_is_usual(&o->variant))
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--popup: its nets have skips, norms and GPT-2's activation, and no "
                         "biases: --no-skips, --no-norms, --no-biases and --act do not go with it");
    if (isnan(o->keep)) o->keep = TRAIN_KEEP;
    if (o->source == SOURCE_NOT_SAID) o->source = PARE_FROZEN_NORMAL;
    if (!(o->keep > 0 && o->keep <= 1))
        return pare_fail(&c->err, PARE_ERR_USAGE, "--keep %g: it must be above 0 and at most 1",
                         o->keep);
    return read_scale(c, o);
}

pare_frozen_gpt popup_source(const train_opts *o, uint64_t seed)
{
    return (pare_frozen_gpt){
        .kind = (pare_frozen_kind)o->source, .seed = seed, .qk_scale = o->scale};
}
