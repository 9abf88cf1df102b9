/* import_config.c - what config.json and the file's own metadata say. */
#include "import_tensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *meta_of(const im_source *s, const char *key)
{
    for (size_t f = 0; key && f < s->nfiles; f++) {
        const char *text = st_meta(&s->files[f], key);
        if (text) return text;
    }
    return NULL;
}

static const cJSON *config_of(const im_source *s, const char *key)
{
    return key && s->config && pare_json_has(s->config, key)
               ? cJSON_GetObjectItemCaseSensitive(s->config, key)
               : NULL;
}

static bool read_text(im_source *s, const char **out, const char *meta, const char *config)
{
    const char *text = meta_of(s, meta);
    const cJSON *item = text ? NULL : config_of(s, config);
    if (item && !cJSON_IsString(item)) im_fail(s, "config.json: '%s' is not a string", config);
    if (item && !s->st) text = item->valuestring;
    if (!text || s->st) return false;
    *out = text;
    return true;
}

bool im_text(im_source *s, const char **out, const char *config)
{
    return read_text(s, out, NULL, config);
}

void im_refuse_key(im_source *s, const char *key, const char *why)
{
    const cJSON *const item = config_of(s, key);
    if (!item || cJSON_IsNull(item) || cJSON_IsFalse(item) ||
        (cJSON_IsNumber(item) && item->valuedouble == 0) ||
        ((cJSON_IsObject(item) || cJSON_IsArray(item)) && !item->child))
        return;
    im_fail(s, "config.json: %s is not supported: %s", key, why);
}

bool im_number(im_source *s, double *out, const char *meta, const char *config)
{
    const char *text = meta_of(s, meta);
    const cJSON *item = text ? NULL : config_of(s, config);
    if (s->st || (!text && !item)) return false;
    double v = NAN;
    if (text) {
        char *end = NULL;
        v = strtod(text, &end);
        if (end == text || *end) v = NAN;
    } else if (cJSON_IsNumber(item)) {
        v = item->valuedouble;
    }
    if (!isfinite(v)) {
        im_fail(s, text ? "metadata: '%s' is not a number" : "config.json: '%s' is not a number",
                text ? meta : config);
        return false;
    }
    *out = v;
    return true;
}

bool im_size(im_source *s, size_t *out, const char *meta, const char *config)
{
    double v;
    if (!im_number(s, &v, meta, config)) return false;
    if (!(v >= 1 && v <= 0x1p32) || v != floor(v)) {
        im_fail(s, "'%s' is %g, not a whole number from 1 to 2^32",
                meta_of(s, meta) ? meta : config, v);
        return false;
    }
    *out = (size_t)v;
    return true;
}

bool im_flag(im_source *s, bool *out, const char *config)
{
    const cJSON *item = config_of(s, config);
    if (s->st || !item) return false;
    if (!cJSON_IsBool(item)) {
        im_fail(s, "config.json: '%s' is not true or false", config);
        return false;
    }
    *out = cJSON_IsTrue(item) != 0;
    return true;
}

bool im_says(const im_source *s, const char *meta, const char *words)
{
    const char *text = meta_of(s, meta);
    return text && strstr(text, words);
}

bool im_word_number(im_source *s, double *out, const char *meta, const char *word)
{
    const char *text = meta_of(s, meta);
    const char *at = text ? strstr(text, word) : NULL;
    if (s->st || !at) return false;
    at += strlen(word);
    char *end = NULL;
    const double v = strtod(at, &end);
    if (end == at || !isfinite(v)) {
        im_fail(s, "metadata: '%s' = '%.80s' has no number after '%s'", meta, text, word);
        return false;
    }
    *out = v;
    return true;
}

bool im_act(im_source *s, pare_act *out, const char *config)
{
    static const struct {
        const char *name;
        pare_act act;
    } known[] = {{"relu", PARE_ACT_RELU},
                 {"gelu", PARE_ACT_GELU},
                 {"gelu_erf", PARE_ACT_GELU},
                 {"gelu_python", PARE_ACT_GELU},
                 {"gelu_new", PARE_ACT_GELU_TANH},
                 {"gelu_tanh", PARE_ACT_GELU_TANH},
                 {"gelu_pytorch_tanh", PARE_ACT_GELU_TANH},
                 {"gelu_python_tanh", PARE_ACT_GELU_TANH},
                 {"gelu_accurate", PARE_ACT_GELU_TANH},
                 /* sqrt(2 / pi) with ten digits: the same number in f32 */
                 {"gelu_fast", PARE_ACT_GELU_TANH},
                 {"silu", PARE_ACT_SILU},
                 {"swish", PARE_ACT_SILU},
                 {"swiglu", PARE_ACT_SILU},
                 {"tanh", PARE_ACT_TANH}};
    const char *name = NULL;
    if (!read_text(s, &name, "act", config)) return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(name, known[i].name) == 0) {
            *out = known[i].act;
            return true;
        }
    }
    const bool own = meta_of(s, "act") != NULL;
    im_fail(
        s,
        "%s%s: activation '%.60s' is not supported; pare has relu, gelu (gelu_python), gelu_new "
        "(gelu_pytorch_tanh, gelu_fast, gelu_accurate), silu (swish) and tanh",
        own ? "metadata: " : "config.json: ", own ? "act" : config, name);
    return false;
}

void im_agree(im_source *s, const char *key, size_t value)
{
    size_t said = value;
    if (im_size(s, &said, NULL, key) && said != value)
        im_fail(s, "config.json: %s is %zu, and the tensors have %zu", key, said, value);
}

bool im_built_for(const im_source *s, const char *task)
{
    const cJSON *const list = config_of(s, "architectures");
    const cJSON *const first = cJSON_IsArray(list) ? list->child : NULL;
    return cJSON_IsString(first) && strstr(first->valuestring, task);
}

void im_labels(im_source *s, size_t n)
{
    const cJSON *const labels = config_of(s, "id2label");
    if (!labels) return;
    if (!cJSON_IsObject(labels))
        im_fail(s, "config.json: 'id2label' is not an object");
    else if ((size_t)cJSON_GetArraySize(labels) != n)
        im_fail(s, "config.json: id2label has %d labels, and the classifier %zu rows",
                cJSON_GetArraySize(labels), n);
}

void im_expect(im_source *s, const char *key, const char *const *values)
{
    const char *got = NULL;
    if (!read_text(s, &got, NULL, key)) return;
    for (size_t i = 0; values[i]; i++)
        if (strcmp(got, values[i]) == 0) return;
    im_fail(s, "config.json: %s '%.60s' is not supported here, only '%s'", key, got, values[0]);
}

void im_orientation(im_source *s, bool input_first)
{
    const char *text = meta_of(s, "linear");
    char packed[64] = "";
    size_t n = 0;
    s->input_first = input_first;
    if (!text) return;
    for (const char *c = text; *c && n + 1 < sizeof packed; c++)
        if (*c != ' ') packed[n++] = *c;
    packed[n] = 0;
    s->linear_given = true;
    if (strncmp(packed, "y=xW^T", 6) == 0)
        s->input_first = false;
    else if (strncmp(packed, "y=xW", 4) == 0 && (packed[4] == 0 || packed[4] == '+'))
        s->input_first = true;
    else
        im_fail(s, "metadata: linear = '%.60s' is neither 'y=x W + b' nor 'y=x W^T + b'", text);
}
