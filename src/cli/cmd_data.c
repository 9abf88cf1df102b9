/* cmd_data.c - pare data: test data and random models. Each kind has options of its own. */
#include "out.h"
#include "interrupt.h"

#include <string.h>

#define MOST_TOKENS ((size_t)1 << 24)
#define MOST_WIDTH  ((size_t)1 << 20)

enum { MOST_KINDS = 8 };

typedef struct data_opts {
    size_t side, count, tokens, length, symbols, vocab, width;
    pare_random_model_opts model;
    size_t model_kind; /* index into pare_random_kinds */
    size_t act;        /* pare_act; ACT_DEFAULT */
    size_t pool;       /* pare_pool */
} data_opts;

enum { ACT_DEFAULT = PARE_ACT_TANH + 1 };

static const data_opts defaults = {.side = 20,
                                   .count = 64,
                                   .tokens = 16,
                                   .length = 6,
                                   .symbols = 3,
                                   .vocab = 256,
                                   .width = 64,
                                   .model = PARE_RANDOM_MODEL_OPTS_DEFAULT,
                                   .act = ACT_DEFAULT};

/* ---- kinds --------------------------------------------------------------------------------- */

static pare_status make_minesweeper(cli *c, const data_opts *o)
{
    return pare_make_minesweeper(c->out, o->side, c->seed, c->force, &c->err);
}

static pare_status make_angular(cli *c, const data_opts *o)
{
    return pare_make_angular(c->out, o->count, o->tokens, c->seed, c->force, &c->err);
}

static pare_status make_sort(cli *c, const data_opts *o)
{
    return pare_make_sort(c->out, o->count, o->length, o->symbols, c->seed, c->force, &c->err);
}

static pare_status make_random(cli *c, const data_opts *o)
{
    const pare_status st = cli_only(c, "width", o->vocab == 0, "--vocab 0, which makes vectors");
    if (st) return st;
    return o->vocab ? pare_make_random_ids(c->out, o->count, o->tokens, o->vocab, c->seed, c->force,
                                           &c->err)
                    : pare_make_random_vectors(c->out, o->count, o->tokens, o->width, c->seed,
                                               c->force, &c->err);
}

static pare_status make_model(cli *c, const data_opts *o)
{
    pare_model *m = NULL;
    pare_random_model_opts opts = o->model;
    opts.kind = (pare_random_kind)o->model_kind;
    opts.pool = (pare_pool)o->pool;
    opts.variant.has_act = o->act != ACT_DEFAULT;
    if (opts.variant.has_act) opts.variant.act = (pare_act)o->act;
    opts.seed = c->seed;
    opts.exec = &c->exec;
    const bool graph = opts.kind == PARE_RANDOM_GRAPH, bert = opts.kind == PARE_RANDOM_BERT;
    const cli_rule rules[] = {
        {"features", graph, "--kind graph"},
        {"classes", (graph || bert) && !o->pool, "--kind graph and --kind bert, without --pool"},
        {"pool", !graph, "the other kinds: a graph has an output for each node"},
        {"vocab,context", !graph, "the other kinds: a graph has no tokens"},
        {0},
    };
    pare_status st = cli_check_rules(c, rules);
    if (!st) st = pare_random_model(&m, &opts, &c->err);
    if (!st) st = pare_model_save(m, c->out, c->force, NULL, &c->err);
    pare_model_free(m);
    return st;
}

typedef struct data_kind {
    const char *name, *about, *examples[2];
    const opt *own;
    size_t nown;
    pare_status (*make)(cli *c, const data_opts *o);
} data_kind;

/* ---- running one --------------------------------------------------------------------------- */

static pare_status make(cli *c, const data_kind *k, const data_opts *o)
{
    char sha256[PARE_SHA256_HEX];
    pare_status st = cli_may_write(c, c->out, NULL);
    if (!st) st = cli_name(c, k->make(c, o), c->out);
    if (st) return st;
    if (!c->json) {
        cli_note(c, "wrote %s", c->out);
        return PARE_OK;
    }
    st = pare_sha256_file(sha256, c->out, &c->err);
    if (st) return st;
    cJSON *const root = out_json_begin(c);
    return out_json(c, root,
                    pare_json_add_record(root, "output", "path:s sha256:s", c->out, sha256));
}

static int run_kind(const data_kind *k, const data_opts *o, int argc, char **argv)
{
    char command[64], example[2][128];
    snprintf(command, sizeof command, "data %s", k->name);
    for (size_t i = 0; i < 2; i++)
        snprintf(example[i], sizeof example[i], "data %s", k->examples[i]);
    const opt_spec spec = {
        .command = command,
        .args = "-o FILE",
        .about = k->about,
        .examples = {example[0], example[1]},
        .seeded = true,
        .own = k->own,
        .nown = k->nown,
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MUST_OUT, "the file to write", argc, argv, &rc)) return rc;
    interrupt_at_once(); /* nothing here looks at the stop flag */
    return cli_finish(&c, make(&c, k, o));
}

/* Without a kind: help, or the complaint that it is missing. */
static int list_kinds(const data_kind *kinds, size_t n, const data_opts *o, int argc, char **argv)
{
    const char *names[MOST_KINDS + 1] = {0};
    opt_format format;
    for (size_t i = 0; i < n; i++) names[i] = kinds[i].name;
    if (!opt_asks_help(&format, argc, argv))
        return cli_unknown_word("data", "kind", argc > 0 ? argv[0] : NULL, names, argc, argv);
    if (format == OPT_HELP) {
        puts("Usage: pare data KIND -o FILE\n"
             "Makes test data, or a model with random weights, from a seed.\n");
        for (size_t i = 0; i < n; i++) printf("  %-12s %s\n", kinds[i].name, kinds[i].about);
        puts("\nEach kind has options of its own: pare data KIND --help\n\nExamples\n"
             "  pare data minesweeper --side 30 -o board.npz\n"
             "  pare data model --kind llama --layers 4 -o m.safetensors");
        return 0;
    }
    if (format == OPT_COMPLETION) {
        fputs("    data) values='", stdout);
        for (size_t i = 0; i < n; i++) printf("%s%s", i ? " " : "", kinds[i].name);
        puts("' ;;");
    }
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) {
        if (i > 0 && format == OPT_HELP_ALL) putchar('\n');
        rc = run_kind(&kinds[i], o, argc, argv);
    }
    return rc;
}

/* clang-format off */
#define SIZE_ROW(word, field, var, text, least, most) \
    .name = word, .kind = OPT_SIZE, .to = &o.field, .metavar = var, .help = text, .min = least, .max = most
#define FLAG_ROW(word, field, text) \
    .name = word, .kind = OPT_FLAG, .to = &o.model.variant.field, .help = text, .rare = true
#define COUNT(rows) (sizeof rows / sizeof *rows)

int cmd_data(int argc, char **argv)
{
    data_opts o = defaults;
    const opt minesweeper[] = {
        {SIZE_ROW("side", side, "N", "the board has N x N cells; each is a node of the graph", 2, 2048), .group = "Size"},
    };
    const opt angular[] = {
        {SIZE_ROW("count", count, "N", "number of sequences", 1, MOST_TOKENS), .group = "Size"},
        {SIZE_ROW("tokens", tokens, "T", "points in each sequence", 2, MOST_WIDTH)},
    };
    const opt sort[] = {
        {SIZE_ROW("count", count, "N", "number of sequences", 1, MOST_TOKENS), .group = "Size"},
        {SIZE_ROW("length", length, "T", "symbols to sort in each sequence", 1, MOST_WIDTH)},
        {SIZE_ROW("symbols", symbols, "S", "number of different symbols", 1, MOST_WIDTH)},
    };
    const opt random[] = {
        {SIZE_ROW("count", count, "N", "number of sequences", 1, MOST_TOKENS), .group = "Size"},
        {SIZE_ROW("tokens", tokens, "T", "tokens in each sequence", 1, MOST_WIDTH)},
        {SIZE_ROW("vocab", vocab, "V", "draw token ids below V; 0: draw normal vectors instead", 0, (size_t)1 << 31)},
        {SIZE_ROW("width", width, "D", "with --vocab 0: entries of each vector", 1, MOST_WIDTH)},
    };
    const opt model[] = {
        {.name = "kind", .kind = OPT_CHOICE, .to = &o.model_kind, .metavar = "K", .choices = pare_random_kinds,
         .group = "Shape", .help = "architecture of the model"},
        {SIZE_ROW("dim", model.dim, "D", "width of the residual stream", 1, MOST_WIDTH)},
        {SIZE_ROW("layers", model.layers, "L", "number of blocks", 1, 4096)},
        {SIZE_ROW("heads", model.heads, "H", "attention heads; H must divide D", 1, 4096)},
        {SIZE_ROW("ffn", model.ffn, "D", "hidden units of each feed-forward layer", 1, MOST_WIDTH),
         .unset = "4 D, llama 8/3 D, graph 2 D"},
        {SIZE_ROW("vocab", model.vocab, "V", "size of the vocabulary; with 256 the model reads the bytes of a text", 1, MOST_TOKENS)},
        {SIZE_ROW("context", model.context, "T", "longest input in tokens", 1, MOST_TOKENS)},
        {SIZE_ROW("features", model.features, "D", "graph: entries of each node's feature vector", 1, MOST_WIDTH), .rare = true},
        {SIZE_ROW("classes", model.classes, "C", "bert and graph: number of classes", 1, MOST_WIDTH), .rare = true},
        {.name = "pool", .kind = OPT_CHOICE, .to = &o.pool, .metavar = "P", .choices = pare_pool_names,
         .unset = "as usual for the kind", .help = "make an encoder of texts: its outputs are the rows of all tokens pooled this way"},
        {.name = "normalize", .kind = OPT_FLAG, .to = &o.model.normalize, .help = "divide each output row by its length"},
        {.name = "sigma", .kind = OPT_REAL, .to = &o.model.sigma, .metavar = "S", .group = "Weights", .low = 0, .high = 1e6,
         .unset = "1/sqrt(inputs)", .rare = true, .help = "standard deviation of the weights"},
        {FLAG_ROW("no-skips", no_skips, "leave out the residual connections"), .group = "Parts"},
        {FLAG_ROW("no-norms", no_norms, "leave out the normalization layers")},
        {FLAG_ROW("no-biases", no_biases, "leave out the biases")},
        {.name = "act", .kind = OPT_CHOICE, .to = &o.act, .metavar = "A", .choices = pare_act_names,
         .unset = "as usual for the kind", .rare = true, .help = "activation of the feed-forward layers"},
    };
    const data_kind kinds[] = {
        {"minesweeper", "A Minesweeper board as a graph to classify its nodes (.npz).",
         {"minesweeper --side 30 -o board.npz", "minesweeper --seed 1 -o unseen.npz"},
         minesweeper, COUNT(minesweeper), make_minesweeper},
        {"angular", "Points that turn on a circle, and how fast: regression (.npz).",
         {"angular --tokens 32 -o angular.npz", "angular --count 1k -o angular.npz"},
         angular, COUNT(angular), make_angular},
        {"sort", "Sequences, each followed by its sorted copy (.npz).",
         {"sort --count 200 -o sort.npz", "sort --length 8 --symbols 5 -o sort.npz"},
         sort, COUNT(sort), make_sort},
        {"random", "Random token ids [N,T], or normal vectors [N,T,D] (.npy).",
         {"random --count 2 --vocab 100 -o ids.npy", "random --vocab 0 --width 16 -o vectors.npy"},
         random, COUNT(random), make_random},
        {"model", "A model with random weights (.safetensors).",
         {"model --kind llama --layers 4 -o m.safetensors", "model --dim 64 --heads 4 -o gpt.safetensors"},
         model, COUNT(model), make_model},
    };
    /* clang-format on */
    const char *word = argc > 0 ? argv[0] : NULL;
    for (size_t i = 0; word && i < COUNT(kinds); i++)
        if (strcmp(word, kinds[i].name) == 0) return run_kind(&kinds[i], &o, argc - 1, argv + 1);
    return list_kinds(kinds, COUNT(kinds), &o, argc, argv);
}
