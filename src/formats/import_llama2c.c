/* import_llama2c.c - llama2.c's legacy .bin: seven little-endian words (dim, hidden, layers, heads,
 * key heads, vocab - negative when the classifier is a matrix of its own -, context), then f32
 * weights without names, kind by kind over all layers, then the rotary tables. The parts are given
 * their names and handed to the Llama importer: so both forms of one model are the same bits. */
#include "base/support.h"
#include "import_families.h"

#include <string.h>

#define WORDS 7

typedef struct header {
    size_t dim, hidden, layers, heads, kv, vocab, context;
    bool shared; /* the classifier is the embedding */
} header;

static bool read_header(header *h, const pare_blob *b)
{
    int32_t w[WORDS];
    if (b->bytes < sizeof w) return false;
    for (size_t i = 0; i < WORDS; i++) {
        const uint8_t *p = b->data + 4 * i;
        w[i] = (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                         (uint32_t)p[3] << 24);
    }
    for (size_t i = 0; i < WORDS; i++)
        if (i != 5 && (w[i] <= 0 || w[i] > 1 << 24)) return false;
    if (w[5] == 0 || w[5] > 1 << 28 || w[5] < -(1 << 28)) return false;
    *h = (header){.dim = (size_t)w[0],
                  .hidden = (size_t)w[1],
                  .layers = (size_t)w[2],
                  .heads = (size_t)w[3],
                  .kv = (size_t)w[4],
                  .vocab = (size_t)(w[5] > 0 ? w[5] : -w[5]),
                  .context = (size_t)w[6],
                  .shared = w[5] > 0};
    return h->dim % h->heads == 0 && h->dim / h->heads % 2 == 0 && h->heads % h->kv == 0;
}

bool im_llama2c_header(const pare_blob *b)
{
    header h;
    return read_header(&h, b);
}

/* The weights as they follow one another; per_layer: one for each layer. */
typedef struct part {
    const char *name; /* NULL: skipped */
    size_t rows, cols;
    bool per_layer, vector;
} part;

#define PARTS 14

/* rows x cols stay below 2^52 by the limits of read_header. */
static bool file_bytes(size_t *out, const part p[PARTS], size_t layers)
{
    size_t total = 4 * WORDS, one;
    for (size_t i = 0; i < PARTS; i++)
        if (!pare_mul(&one, p[i].rows * p[i].cols, 4) ||
            !pare_mul(&one, one, p[i].per_layer ? layers : 1) || !pare_add(&total, total, one))
            return false;
    *out = total;
    return true;
}

static void add_tensor(im_source *s, const part *p, const uint8_t **at, const char *name)
{
    if (!name) s->st = pare_no_memory(s->err);
    if (s->st) return;
    im_tensor *t = &s->tensors[s->n++];
    *t = (im_tensor){.key = name, .name = name, .blob = s->blobs[0]};
    t->array = (pare_array){.dtype = PARE_F32, .data = *at};
    if (!p->vector) t->array.shape[t->array.ndim++] = p->rows;
    t->array.shape[t->array.ndim++] = p->cols;
    *at += 4 * p->rows * p->cols;
}

static void write_config(im_source *s, const header *h)
{
    if (s->st) return;
    s->config = cJSON_CreateObject();
    if (!s->config || !pare_json_add_size(s->config, "num_attention_heads", h->heads) ||
        !pare_json_add_size(s->config, "num_key_value_heads", h->kv) ||
        !pare_json_add_size(s->config, "max_position_embeddings", h->context))
        s->st = pare_no_memory(s->err);
}

void im_llama2c(im_source *s, pare_blob *b)
{
    header h;
    part p[PARTS];
    size_t bytes = 0;
    const bool plausible = read_header(&h, b);
    PARE_ASSERT(plausible);
    const size_t d = h.dim, kv = h.kv * (d / h.heads), half = d / h.heads / 2;
    const part all[PARTS] = {
        {"tok_embeddings", h.vocab, d, false, false},
        {"attention_norm", 1, d, true, true},
        {"wq", d, d, true, false},
        {"wk", kv, d, true, false},
        {"wv", kv, d, true, false},
        {"wo", d, d, true, false},
        {"ffn_norm", 1, d, true, true},
        {"w1", h.hidden, d, true, false},
        {"w2", d, h.hidden, true, false},
        {"w3", h.hidden, d, true, false},
        {"norm", 1, d, false, true},
        {NULL, h.context, half, false, false}, /* cosines: computed anew, in f64 */
        {NULL, h.context, half, false, false}, /* sines */
        {"output", h.shared ? 0 : h.vocab, d, false, false},
    };
    memcpy(p, all, sizeof all);
    const bool fits = file_bytes(&bytes, p, h.layers);
    if (!fits || bytes != b->bytes) {
        im_fail(s,
                "read as llama2.c: dim %zu, hidden %zu, %zu layers, %zu heads, %zu key heads, "
                "vocab %zu, context %zu need %zu bytes, the file has %zu",
                h.dim, h.hidden, h.layers, h.heads, h.kv, h.vocab, h.context,
                fits ? bytes : SIZE_MAX, b->bytes);
        return;
    }
    s->blobs = pare_alloc(s->scratch, 1, sizeof *s->blobs);
    s->files = pare_alloc(s->scratch, 1, sizeof *s->files); /* no metadata */
    if (!s->blobs || !s->files) {
        s->st = pare_no_memory(s->err);
        return;
    }
    s->blobs[s->nfiles++] = pare_blob_retain(b);
    const uint8_t *at = s->blobs[0]->data + 4 * WORDS;
    s->tensors = pare_alloc(s->scratch, PARTS * (h.layers + 1), sizeof *s->tensors);
    if (!s->tensors) s->st = pare_no_memory(s->err);
    for (size_t i = 0; i < PARTS && !s->st; i++) {
        if (!p[i].name) at += 4 * p[i].rows * p[i].cols;
        if (!p[i].name || p[i].rows == 0) continue;
        if (!p[i].per_layer)
            add_tensor(s, &p[i], &at, pare_sprintf(s->scratch, "%s.weight", p[i].name));
        for (size_t l = 0; p[i].per_layer && l < h.layers && !s->st; l++)
            add_tensor(s, &p[i], &at,
                       pare_sprintf(s->scratch, "layers.%zu.%s.weight", l, p[i].name));
    }
    im_sort(s);
    write_config(s, &h);
    if (!s->st) im_llama(s);
}
