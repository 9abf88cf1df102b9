/* Which seed, stream and spread every matrix of a frozen GPT has (GPT-2's, held at other widths).
 */
#include <pare/popup.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define GPT2_WIDTH 768.0
#define GPT2_SIGMA 0.02

double pare_popup_theory_scale(size_t dk)
{
    return sqrt(sqrt((double)dk)); /* IEEE roots: the same bits everywhere */
}

/* A stream is layer << 48 | matrix << 24 | 1: no two matrices of a network share one, and none is
 * that of a ticket's source, which ends in 0. */
typedef enum place { Q, K, V, O, FIRST, SECOND, EMBEDDING, POSITIONS } place;

typedef struct part {
    const char *name;
    place at;
} part;

static bool find(const part *all, size_t n, const char *name, place *out)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].name, name) == 0) {
            *out = all[i].at;
            return true;
        }
    return false;
}

static bool place_of(place *out, size_t *layer, const char *name)
{
    static const part ends[] = {{"stem.embedding", EMBEDDING}, {"stem.positions", POSITIONS}};
    static const part inner[] = {{"attn.wq", Q}, {"attn.wk", K},          {"attn.wv", V},
                                 {"attn.wo", O}, {"ffn.0.weight", FIRST}, {"ffn.1.weight", SECOND}};
    int after = 0;
    *layer = 0;
    if (find(ends, 2, name, out)) return true;
    if (sscanf(name, "blocks.%zu.%n", layer, &after) != 1 || after == 0) return false;
    return *layer < 1 << 14 && find(inner, 6, name + after, out);
}

bool pare_source_of(pare_frozen *out, const pare_source *s, const char *name, size_t dim,
                    size_t layers)
{
    place at;
    size_t layer;
    if (!place_of(&at, &layer, name)) return false;
    double std = GPT2_SIGMA * sqrt(GPT2_WIDTH / (double)dim);
    if (at == O || at == SECOND) std /= sqrt(2 * (double)layers);
    if (at == Q || at == K) std *= s->qk_scale;
    *out = (pare_frozen){.kind = s->kind,
                         .seed = s->seed,
                         .stream = (uint64_t)layer << 48 | (uint64_t)at << 24 | 1,
                         .unit = pare_frozen_unit(s->kind, std)};
    return true;
}
