/* pare-check's readers, by the first byte: a model (its seal made true), an .npz, an .npy, or a certificate with the
 * model that it is about, whose hashes are made true, so that its claims are checked. Nothing of the library is
 * linked here. What is accepted is evaluated; what is refused has a code and a reason. */
#include "../check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

enum { MOST_WORK = 3000, MOST_BALLS = 4096, MOST_TOKENS = 4 };

static void expect(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "broken: %s\n", what);
    abort();
}

/* A block of exactly these bytes: one read too far is seen. */
static unsigned char *copy_of(const uint8_t *data, size_t n)
{
    unsigned char *const copy = malloc(n ? n : 1);
    expect(copy != NULL, "memory");
    if (n) memcpy(copy, data, n);
    return copy;
}

static const char certificate_name[] = "c";

typedef struct target {
    bytes file, text; /* the only file there is, under every name but that of the certificate */
    cJSON *root;      /* of a certificate */
    bool zipped;      /* of arrays */
} target;

static bool read_memory(void *self, const char *path, bytes *out)
{
    const target *const t = self;
    *out = strcmp(path, certificate_name) == 0 ? t->text : t->file;
    return true;
}

static options options_for(target *t)
{
    return (options){.read = read_memory,
                     .self = t,
                     .tries = 1,
                     .most_work = MOST_WORK,
                     .most_balls = MOST_BALLS};
}

static void end(job *j, bool good)
{
    expect(good == (j->code == 0), "a refusal has a code");
    expect(good || j->trouble[0] != '\0', "a refusal has a reason");
    expect(good || j->code == UNREADABLE || j->code == NOT_TRUE, "a code of verify");
    end_job(j);
}

/* ---- seals ----------------------------------------------------------------------------------- */

static void hash(char hex[65], const void *data, size_t n)
{
    unsigned char sum[32];
    SHA256(data, n, sum);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", sum[i]);
}

static size_t header_bytes(const unsigned char *d, size_t n)
{
    uint64_t length = 0;
    for (size_t i = 8; n >= 8 && i-- > 0;) length = length << 8 | d[i];
    return n >= 8 && length <= n - 8 ? (size_t)length : 0;
}

/* The checksum of a model's header. */
static void reseal_model(unsigned char *d, size_t n)
{
    static const char key[] = "pare.sha256";
    const size_t length = header_bytes(d, n);
    char hex[65];
    unsigned char *const at = length ? memmem(d + 8, length, key, sizeof key - 1) : NULL;
    if (!at) return;
    unsigned char *digits = at + sizeof key - 1;
    const unsigned char *const stop = d + 8 + length;
    while (digits < stop && strchr("\": ", *digits) && *digits) digits++;
    if ((size_t)(stop - digits) < 64) return;
    memset(digits, '0', 64);
    hash(hex, d + 8, length);
    memcpy(digits, hex, 64);
}

static void set_text(cJSON *o, const char *key, const char *text)
{
    cJSON *const v = cJSON_GetObjectItemCaseSensitive(o, key);
    if (cJSON_IsString(v)) cJSON_SetValuestring(v, text);
}

/* What a certificate says of one of its models. */
static void reseal_side(cJSON *side, const model *m, const char *file)
{
    cJSON *const files = cJSON_GetObjectItemCaseSensitive(side, "files");
    cJSON *const tensors = cJSON_GetObjectItemCaseSensitive(side, "tensors");
    set_text(side, "sha256", file);
    set_text(side, "architecture", m->hash);
    if (cJSON_IsObject(files) && files->child && cJSON_IsString(files->child))
        cJSON_SetValuestring(files->child, file);
    for (size_t i = 0; cJSON_IsObject(tensors) && i < m->tensors.n; i++)
        set_text(tensors, m->tensors.list[i].name, m->tensors.list[i].hash);
}

/* The hash of the random inputs that it names. */
static void reseal_inputs(cJSON *root, const model *m)
{
    cJSON *const data = cJSON_GetObjectItemCaseSensitive(root, "data");
    const cJSON *const reduction = cJSON_GetObjectItemCaseSensitive(root, "reduction");
    const cJSON *const count = cJSON_GetObjectItemCaseSensitive(data, "count");
    const cJSON *const tokens = cJSON_GetObjectItemCaseSensitive(data, "tokens");
    const cJSON *const seed = cJSON_GetObjectItemCaseSensitive(reduction, "seed");
    if (!cJSON_IsNumber(count) || !cJSON_IsNumber(tokens) || !cJSON_IsString(seed)) return;
    const double n = count->valuedouble, length = tokens->valuedouble;
    if (!(n >= 1 && n <= 3 && length >= 1 && length <= MOST_TOKENS)) return;
    const size_t n_inputs = (size_t)n;
    input *const list = take(n_inputs, sizeof *list);
    for (size_t i = 0; i < n_inputs; i++)
        list[i] = random_input(m, strtoull(seed->valuestring, NULL, 10), i, (size_t)length);
    set_text(data, "inputs_sha256", hash_inputs(list, n_inputs, 0));
}

/* ---- targets --------------------------------------------------------------------------------- */

static void evaluate_model(void *with)
{
    const target *const t = with;
    const model m = read_model("m", t->file), both[2] = {m, m};
    const size_t tokens = m.context && m.context < 3 ? m.context : 3;
    const input in = random_input(&m, 1, 0, tokens);
    balls y[2];
    bits = 64;
    if (work_of(&m, &in) < MOST_WORK) compare(both, &in, ~0u, new_figures(count_figures(&m)), y);
}

static void look_at(const array *a)
{
    double sum = 0;
    for (size_t i = 0; i < a->count; i++) sum += a->v[i];
    volatile double kept = sum;
    (void)kept;
}

static void read_arrays(void *with)
{
    const target *const t = with;
    const arrays z = t->zipped ? read_npz("a", t->file) : (arrays){0};
    const array a = t->zipped ? (array){0} : read_npy("a", t->file);
    look_at(&a);
    for (size_t i = 0; i < z.n; i++) look_at(&z.list[i]);
}

static void try_file(const uint8_t *data, size_t size, void (*f)(void *), bool zipped)
{
    unsigned char *const d = copy_of(data, size);
    target t = {.file = {d, size}, .zipped = zipped};
    const options o = options_for(&t);
    job j = {.o = &o};
    if (f == evaluate_model) reseal_model(d, size);
    end(&j, attempt(&j, f, &t));
    free(d);
}

static void reseal(void *with)
{
    const target *const t = with;
    const model m = read_model("m", t->file);
    char hex[65];
    hash(hex, t->file.v, t->file.n);
    reseal_side(cJSON_GetObjectItemCaseSensitive(t->root, "input"), &m, hex);
    reseal_side(cJSON_GetObjectItemCaseSensitive(t->root, "output"), &m, hex);
    reseal_inputs(t->root, &m);
}

/* A 16-bit length, the certificate, then the model that is both of its models. */
static void try_certificate(const uint8_t *data, size_t size)
{
    if (size < 2) return;
    size_t n = (size_t)data[0] | (size_t)data[1] << 8;
    if (n > size - 2) n = size - 2;
    unsigned char *const d = copy_of(data + 2 + n, size - 2 - n);
    target t = {.file = {d, size - 2 - n}};
    const options o = options_for(&t);
    job j = {.o = &o}, seals = {.o = &o};
    reseal_model(d, t.file.n);
    t.root = cJSON_ParseWithLength((const char *)data + 2, n);
    char *const text =
        t.root && attempt(&seals, reseal, &t) ? cJSON_PrintUnformatted(t.root) : NULL;
    cJSON_Delete(t.root);
    end_job(&seals);
    if (text) n = strlen(text);
    unsigned char *const own = copy_of(text ? (uint8_t *)text : data + 2, n);
    t.text = (bytes){own, n};
    end(&j, check_certificate(&j, certificate_name));
    free(own);
    cJSON_free(text);
    free(d);
}

/* Changes `n` bytes at `at` and moves what follows; their number now is written before them, little-endian. */
static size_t mutate_part(uint8_t *data, size_t size, size_t max_size, size_t at, size_t n,
                          size_t digits)
{
    static uint8_t kept[4096];
    const size_t rest = size - at - n;
    if (n > sizeof kept || at + rest >= max_size) return LLVMFuzzerMutate(data, size, max_size);
    const size_t capacity = max_size - at - rest < sizeof kept ? max_size - at - rest : sizeof kept;
    memcpy(kept, data + at, n);
    const size_t grown = LLVMFuzzerMutate(kept, n, capacity);
    memmove(data + at + grown, data + at + n, rest);
    memcpy(data + at, kept, grown);
    for (size_t i = 0; i < digits; i++)
        data[at - digits + i] = (uint8_t)((uint64_t)grown >> (8 * i));
    return at + grown + rest;
}

/* The header of a model or the text of a certificate, with its length kept true; or else any byte. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    if (size > max_size || size < 12 || seed % 4 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    if (data[0] % 4 == 0) {
        const size_t n = header_bytes(data + 1, size - 1);
        if (n > 0) return mutate_part(data, size, max_size, 9, n, 8);
    }
    if (data[0] % 4 == 3) {
        const size_t n = (size_t)data[1] | (size_t)data[2] << 8;
        if (n <= size - 3) return mutate_part(data, size, max_size, 3, n, 2);
    }
    return LLVMFuzzerMutate(data, size, max_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const uint8_t *const rest = data + 1;
    switch (data[0] % 4) {
    case 0:
        try_file(rest, size - 1, evaluate_model, false);
        break;
    case 1:
        try_file(rest, size - 1, read_arrays, true);
        break;
    case 2:
        try_file(rest, size - 1, read_arrays, false);
        break;
    default:
        try_certificate(rest, size - 1);
        break;
    }
    return 0;
}
