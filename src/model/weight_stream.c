/* weight_stream.c - which stream of the random source belongs to a weight, by its name in the file:
 * so it also says where in the model the weight is. */
#include "source.h"
#include <stdio.h>
#include <string.h>

typedef struct place {
    const char *name;
    pare_source_matrix matrix;
} place;

static const place attn_places[] = {
    {"wq", PARE_SOURCE_Q},           {"wk", PARE_SOURCE_K},          {"wv", PARE_SOURCE_V},
    {"wo", PARE_SOURCE_O},           {"matrix", PARE_SOURCE_MATRIX}, {"mix", PARE_SOURCE_MIX},
    {"skip", PARE_SOURCE_ATTN_SKIP}, {"bq", PARE_SOURCE_BQ},         {"bk", PARE_SOURCE_BK},
    {"bv", PARE_SOURCE_BV},          {"bo", PARE_SOURCE_BO}};
static const place end_places[] = {
    {"embedding.embedding", PARE_SOURCE_EMBEDDING}, {"embedding.positions", PARE_SOURCE_POSITIONS},
    {"embedding.map.weight", PARE_SOURCE_MAP},      {"head.dense.weight", PARE_SOURCE_DENSE},
    {"head.out.weight", PARE_SOURCE_OUT},           {"embedding.map.bias", PARE_SOURCE_MAP_BIAS},
    {"head.dense.bias", PARE_SOURCE_DENSE_BIAS},    {"head.out.bias", PARE_SOURCE_OUT_BIAS}};

static bool find_place(pare_source_matrix *out, const place *p, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(p[i].name, name) == 0) {
            *out = p[i].matrix;
            return true;
        }
    return false;
}

bool pare_source_find(uint64_t *out, const char *name)
{
    size_t block, layer;
    int at = 0;
    pare_source_matrix m;
    if (sscanf(name, "blocks.%zu.attn.%n", &block, &at) == 1 && at) {
        const size_t n = sizeof attn_places / sizeof *attn_places;
        if (!find_place(&m, attn_places, n, name + at)) return false;
        *out = pare_source_stream(block, 0, m);
    } else if (sscanf(name, "blocks.%zu.ffn.%zu.%n", &block, &layer, &at) == 2 && at) {
        static const pare_source_matrix of[2][2] = {{PARE_SOURCE_W1, PARE_SOURCE_W2},
                                                    {PARE_SOURCE_B1, PARE_SOURCE_B2}};
        *out = pare_source_stream(block, layer / 2, of[strcmp(name + at, "bias") == 0][layer % 2]);
    } else if (sscanf(name, "blocks.%zu.ffn.skip%n", &block, &at) == 1 && at) {
        *out = pare_source_stream(block, 0, PARE_SOURCE_FFN_SKIP);
    } else {
        if (!find_place(&m, end_places, sizeof end_places / sizeof *end_places, name)) return false;
        *out = pare_source_stream(PARE_SOURCE_ENDS, 0, m);
    }
    return true;
}

uint64_t pare_source_of(const char *name)
{
    uint64_t stream = 0;
    const bool known = pare_source_find(&stream, name);
    PARE_ASSERT(known);
    return stream;
}
