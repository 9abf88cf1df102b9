/* packed.c - what packed weights gain: tokens per second of the decoder and passes of a sentence
 * encoder, from f32 weights and from integers of 8 and 4 bits, one thread: CSV.
 *
 *   bench/packed                            random models of the shapes of stories15M and MiniLM
 *   bench/packed generate MODEL ENGINE      } a peer of bench/peers/turns.py: one such measurement
 *   bench/packed encode MODEL ENGINE TOKENS } of a file, whenever it is asked for (and THREADS)
 *   bench/packed quantize MODEL BITS GROUP OUT      such a file, to nearest, of a file or of a random
 *                                                   model ("llama", "bert"); 32 bits: as it is
 *
 * ENGINE is f32 (the weights as numbers), packed (as they lie in the file) or int8. Everything is
 * measured in short pieces that take turns; of each kind the lower quartile counts. */
#include "model/ticket_store.h"
#include <pare/pare.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOKENS = 32, SENTENCE = 32, ROUNDS = 40, MOST_ROUNDS = 4096, MOST_WEIGHTS = 256 };

static _Noreturn void stop(const char *what, const pare_err *err)
{
    fprintf(stderr, "bench: %s: %s\n", what, err ? err->msg : "");
    exit(2);
}

static void *need(void *p)
{
    if (!p) stop("out of memory", NULL);
    return p;
}

/* One thing to measure. */
typedef struct worker {
    pare_model *m;
    pare_exec exec;
    pare_decoder *d; /* NULL: the model encodes sentences */
    pare_input in;
    int64_t ids[512];
    float *out;
    size_t n;
    double seconds[MOST_ROUNDS];
} worker;

static pare_model *load(const char *path, bool packed)
{
    const pare_load_opts o = {.packed = packed};
    pare_err err = {0};
    pare_model *m = NULL;
    pare_files *const files = need(pare_files_new_unhashed());
    if (pare_model_load_as(&m, path, &o, files, &err)) stop("no model", &err);
    pare_files_free(files);
    return m;
}

static void prepare(worker *w, const char *path, bool generate, const char *engine, size_t tokens)
{
    pare_err err = {0};
    *w = (worker){.exec = {.threads = 1, .int8 = strcmp(engine, "int8") == 0}};
    w->m = load(path, strcmp(engine, "f32") != 0);
    if (generate && pare_decoder_new(&w->d, w->m, TOKENS, &w->exec, &err)) stop("no decoder", &err);
    pare_rng r = pare_rng_at(1, 1);
    for (size_t i = 0; i < 512; i++) w->ids[i] = (int64_t)pare_rng_below(&r, w->m->embedding.vocab);
    w->in = (pare_input){.batch = 1, .tokens = tokens, .ids = w->ids};
    if (generate) return;
    w->out =
        need(calloc(pare_output_rows(w->m, &w->in) * pare_model_outputs(w->m), sizeof *w->out));
}

/* One piece of work. */
static double run(worker *w)
{
    pare_err err = {0};
    const float *logits;
    if (w->d) pare_decoder_reset(w->d);
    const double start = pare_seconds();
    for (size_t i = 0; w->d && i < TOKENS; i++)
        if (pare_decoder_step(w->d, w->ids[i], &logits, &err)) stop("generation failed", &err);
    if (!w->d && pare_forward_f32(w->out, w->m, &w->in, NULL, &w->exec, &err))
        stop("the pass failed", &err);
    return pare_seconds() - start;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double lower_quartile(worker *w)
{
    qsort(w->seconds, w->n, sizeof *w->seconds, ascending);
    return w->seconds[w->n / 4];
}

/* ---- random models, quantized to nearest ------------------------------------------------------- */

typedef struct quantizer {
    pare_model *m;
    pare_coded *coded;
    unsigned bits;
    size_t group; /* 0: a row */
} quantizer;

static pare_status quantize(void *self, const char *name, pare_weight *w, bool vector,
                            pare_err *err)
{
    quantizer *const z = self;
    if (vector || !pare_has(w)) return PARE_OK;
    if (w->dtype != PARE_F32 || (z->group && w->cols % z->group))
        return pare_fail(err, PARE_ERR_INPUT, "%s: not in f32, or not in whole groups", name);
    pare_arena *const a = z->m->arena;
    const size_t group = z->group ? z->group : w->cols, n = w->rows * w->cols;
    const float most = (float)((1 << (z->bits - 1)) - 1), *const from = w->data;
    int8_t *const q = need(pare_alloc(a, n, 1));
    float *const scale = need(pare_alloc(a, n / group, sizeof *scale));
    float *const to = need(pare_alloc(a, n, sizeof *to));
    for (size_t g = 0; g < n / group; g++) {
        float size = 0;
        for (size_t i = g * group; i < (g + 1) * group; i++) size = fmaxf(size, fabsf(from[i]));
        scale[g] = size / most;
        for (size_t i = g * group; i < (g + 1) * group; i++)
            q[i] = (int8_t)(size > 0 ? rintf(from[i] / scale[g]) : 0);
    }
    const pare_int_groups groups = {
        .rows = w->rows, .cols = w->cols, .group = group, .bits = z->bits, .q = q, .scale = scale};
    pare_int_groups_expand(to, &groups);
    w->data = to;
    pare_coded *const c = &z->coded[z->m->ncoded++];
    const pare_status st = pare_coded_groups(c, a, &groups, err);
    c->name = pare_strdup(a, name);
    return st;
}

static pare_model *random_model(pare_random_kind kind)
{
    const pare_random_model_opts stories15m = {.kind = PARE_RANDOM_LLAMA,
                                               .dim = 288,
                                               .layers = 6,
                                               .heads = 6,
                                               .kv_heads = 6,
                                               .ffn = 768,
                                               .vocab = 32000,
                                               .context = 256,
                                               .seed = 1};
    const pare_random_model_opts minilm = {.kind = PARE_RANDOM_BERT,
                                           .dim = 384,
                                           .layers = 6,
                                           .heads = 12,
                                           .ffn = 1536,
                                           .vocab = 1024,
                                           .context = 512,
                                           .classes = 2,
                                           .pool = PARE_POOL_MEAN,
                                           .seed = 1};
    pare_err err = {0};
    pare_model *m = NULL;
    if (pare_random_model(&m, kind == PARE_RANDOM_BERT ? &minilm : &stories15m, &err))
        stop("no model", &err);
    return m;
}

/* bits 32: as it is. Frees the model. */
static void save(const char *path, pare_model *m, unsigned bits, size_t group)
{
    char hex[PARE_SHA256_HEX];
    pare_err err = {0};
    quantizer z = {m, need(pare_alloc(m->arena, MOST_WEIGHTS, sizeof *z.coded)), bits, group};
    m->coded = z.coded;
    if (bits < 32 && pare_model_each_weight(m, quantize, &z, &err)) stop("no integers", &err);
    if (pare_model_save(m, path, true, hex, &err)) stop("not saved", &err);
    pare_model_free(m);
}

typedef struct measurement {
    const char *engine;
    pare_random_kind kind;
    unsigned bits;
    size_t group;
} measurement;

static const measurement all[] = {
    {"f32", PARE_RANDOM_LLAMA, 32, 0},  {"packed", PARE_RANDOM_LLAMA, 8, 32},
    {"int8", PARE_RANDOM_LLAMA, 8, 32}, {"packed", PARE_RANDOM_LLAMA, 4, 32},
    {"int8", PARE_RANDOM_LLAMA, 4, 32}, {"f32", PARE_RANDOM_BERT, 32, 0},
    {"packed", PARE_RANDOM_BERT, 8, 0}, {"int8", PARE_RANDOM_BERT, 8, 0},
};
enum { ALL = sizeof all / sizeof *all, ENCODERS = 5 /* from here on */ };

static int measure_all(void)
{
    static worker w[ALL];
    char dir[] = "/tmp/pare-bench-XXXXXX", path[64];
    if (!mkdtemp(dir)) stop("no folder", NULL);
    snprintf(path, sizeof path, "%s/m.safetensors", dir);
    for (size_t i = 0; i < ALL; i++) {
        save(path, random_model(all[i].kind), all[i].bits, all[i].group);
        prepare(&w[i], path, all[i].kind == PARE_RANDOM_LLAMA, all[i].engine, SENTENCE);
    }
    pare_folder_remove(dir);
    for (size_t r = 0; r < ROUNDS; r++)
        for (size_t i = 0; i < ALL; i++) {
            const double seconds = run(&w[i]);
            if (r > 0) w[i].seconds[w[i].n++] = seconds; /* the first fills the caches */
        }
    printf("shape,engine,bits,group,ms,per_second,times_as_fast_as_f32\n");
    for (size_t i = 0; i < ALL; i++) {
        const double per = w[i].d ? TOKENS : 1, s = lower_quartile(&w[i]) / per;
        const worker *const f32 = &w[i < ENCODERS ? 0 : ENCODERS];
        const double usual = f32->seconds[f32->n / 4] / per; /* sorted before */
        printf("%s,%s,%u,%zu,%.4f,%.0f,%.2f\n",
               w[i].d ? "stories15M token" : "MiniLM sentence of 32", all[i].engine, all[i].bits,
               all[i].group, 1e3 * s, 1 / s, usual / s);
    }
    return 0;
}

/* ---- a peer ------------------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
    static worker w;
    char line[256];
    if (argc == 1) return measure_all();
    if (argc == 6 && strcmp(argv[1], "quantize") == 0) {
        pare_model *const m = strcmp(argv[2], "llama") == 0  ? random_model(PARE_RANDOM_LLAMA)
                              : strcmp(argv[2], "bert") == 0 ? random_model(PARE_RANDOM_BERT)
                                                             : load(argv[2], false);
        save(argv[5], m, (unsigned)strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10));
        return 0;
    }
    if (argc < 4) stop("what it does is in the first lines of bench/packed.c", NULL);
    prepare(&w, argv[2], strcmp(argv[1], "generate") == 0, argv[3],
            argc > 4 ? (size_t)strtoul(argv[4], NULL, 10) : SENTENCE);
    if (argc > 5) w.exec.threads = atoi(argv[5]); /* of passes; a decoder has one */
    printf("pare-peer 1 pare-%s\n", argv[3]);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (strncmp(line, "run ", 4) != 0) break;
        const size_t n = strtoul(line + 4, NULL, 10);
        printf("ms");
        for (size_t i = 0; i < n; i++) printf(" %.6f", 1e3 * run(&w) / (w.d ? TOKENS : 1));
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
