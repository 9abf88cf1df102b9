/* names.c - the words of the file format. The order is the order of the enums in pare/model.h. */
#include "model_facts.h"
#include "names.h"
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const char *const norms[] = {"none", "layer", "rms", "batch", "mean"};
const char *const pare_act_names[] = {"none", "relu", "gelu", "gelu_tanh", "silu", "tanh", NULL};
static const char *const skips[] = {"none", "identity", "diagonal", "dense"};
static const char *const attns[] = {"none",  "exact",  "zero",   "const", "uniform", "constq",
                                    "meanq", "linear", "affmix", "pool",  "umix",    "poly"};
static const char *const ffns[] = {"none", "mlp", "gated"};
static const char *const positions[] = {"none", "learned", "sinusoidal", "rotary"};
const char *const pare_pool_names[] = {"none", "first", "mean", "max", "last", NULL};
static const char *const patterns[] = {"full", "causal", "window", "graph"};
static const char *const tokenizers[] = {"none", "gpt2", "llama2c", "words", "bytes", "json"};

const word_table norm_words = {"norm kind", norms, COUNT(norms)};
const word_table act_words = {"activation", pare_act_names, COUNT(pare_act_names) - 1};
const word_table skip_words = {"skip kind", skips, COUNT(skips)};
const word_table attn_words = {"attention kind", attns, COUNT(attns)};
const word_table ffn_words = {"ffn kind", ffns, COUNT(ffns)};
const word_table position_words = {"position kind", positions, COUNT(positions)};
const word_table pool_words = {"pooling", pare_pool_names, COUNT(pare_pool_names) - 1};
const word_table pattern_words = {"pattern", patterns, COUNT(patterns)};
const word_table tokenizer_words = {"tokenizer", tokenizers, COUNT(tokenizers)};

pare_status word_find(int *out, const word_table *t, const char *word, pare_err *err)
{
    for (int i = 0; i < t->n; i++) {
        if (strcmp(t->words[i], word) == 0) {
            *out = i;
            return PARE_OK;
        }
    }
    return pare_fail(err, PARE_ERR_INPUT, "unknown %s \"%s\"", t->what, word);
}

const char *pare_norm_name(pare_norm_kind k)
{
    return norms[k];
}
const char *pare_act_name(pare_act a)
{
    return pare_act_names[a];
}
const char *pare_skip_name(pare_skip_kind k)
{
    return skips[k];
}
const char *pare_attn_name(pare_attn_kind k)
{
    return attns[k];
}
bool pare_attn_is_softmax(pare_attn_kind k)
{
    return k == PARE_ATTN_EXACT || k == PARE_ATTN_POLY;
}
bool pare_attn_has_softmax(pare_attn_kind k)
{
    return pare_attn_is_softmax(k) || k == PARE_ATTN_CONSTQ || k == PARE_ATTN_MEANQ;
}
const char *pare_ffn_name(pare_ffn_kind k)
{
    return ffns[k];
}
const char *pare_position_name(pare_position_kind k)
{
    return positions[k];
}
const char *pare_pool_name(pare_pool p)
{
    return pare_pool_names[p];
}
const char *pare_pattern_name(pare_pattern_kind k)
{
    return patterns[k];
}
const char *pare_tokenizer_name(pare_tokenizer_kind k)
{
    return tokenizers[k];
}
